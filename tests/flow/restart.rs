//! Killed, stopped and started again: what is committed goes on, and nothing is said twice.

use vocative_sandbox::model::ModelReply;
use vocative_sandbox::slack::CallFault;
use vocative_sandbox::telegram::{TelegramFault, TelegramWorld};

use crate::harness::{Flow, FlowBuilder};

const PRIVATE: i64 = TelegramWorld::ANN;

/// A daemon that decides soon about posts of unknown outcome, and that hears of its own posts only
/// by asking.
async fn quick_looks() -> Flow {
    let flow = FlowBuilder::default()
        .config("[delivery]\nfirst_look_s = 1\nvisibility_delay_s = 5")
        .start()
        .await;
    let mute = |knobs: &mut vocative_sandbox::slack::SlackKnobs| knobs.echo_own_posts = false;
    flow.slack.faults().set_knobs(mute);
    flow
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_13_killed_between_capture_and_answer_the_next_start_answers_once() {
    let mut flow = Flow::start_default().await;
    flow.model.hold();
    let question = flow.slack.say("#general", "ann", "@vocative when is it?");
    let message = flow.telegram.say(PRIVATE, PRIVATE, "and where?");
    flow.wait_for_model(2).await;
    flow.kill().await;
    flow.model.release();
    flow.start().await;

    flow.slack_reply("#general", &question).await;
    flow.telegram_reply(PRIVATE, message).await;
    flow.settle().await;
    assert_eq!(flow.slack_posts("#general").len(), 1);
    assert_eq!(flow.telegram_posts(PRIVATE).len(), 1);
    // The same bytes again, whatever was captured in between.
    let mut asked: Vec<_> = (0..4).map(|number| flow.model_prompt(number)).collect();
    asked.sort();
    assert_eq!(asked[0], asked[1]);
    assert_eq!(asked[2], asked[3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_outlives_more_kills_than_a_run_may_have_attempts() {
    let mut flow = Flow::start_default().await;
    flow.model.hold();
    let question = flow.slack.say("#general", "ann", "@vocative when is it?");
    for kill in 1..=8 {
        flow.wait_for_model(kill).await;
        flow.kill().await;
        flow.start().await;
    }
    flow.model.release();
    let told = flow.slack_reply("#general", &question).await.text;
    assert!(!told.starts_with("Sorry"), "{told}");
    flow.settle().await;
    assert_eq!(flow.slack_posts("#general").len(), 1);
}

async fn killed_with_a_slack_post_in_flight(flow: &mut Flow) {
    flow.slack
        .faults()
        .next("chat.postMessage", CallFault::LoseResponse);
    let question = flow.slack.say("#general", "ann", "@vocative when is it?");
    flow.slack_reply("#general", &question).await;
    flow.kill().await;
    flow.start().await;
    flow.settle().await;
    assert_eq!(flow.slack_posts("#general").len(), 1);
    let status = flow.status().await;
    assert_eq!(status["posts"]["held"], 0, "{status}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_13_a_slack_post_in_flight_at_a_kill_is_found_and_not_sent_again() {
    let mut flow = quick_looks().await;
    killed_with_a_slack_post_in_flight(&mut flow).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_13_a_slack_post_in_flight_at_a_kill_is_found_when_history_shows_it_late() {
    let mut flow = quick_looks().await;
    flow.slack.faults().set_visibility_delay_ms(3_000);
    killed_with_a_slack_post_in_flight(&mut flow).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_13_a_telegram_post_in_flight_at_a_kill_is_sent_again_once() {
    let mut flow = FlowBuilder::default()
        .config("[delivery]\non_unknown = \"resend\"\n")
        .start()
        .await;
    flow.telegram
        .faults()
        .next("sendMessage", TelegramFault::StallAfter);
    flow.model.enqueue(ModelReply::text("At three."));
    let question = flow.telegram.say(PRIVATE, PRIVATE, "when is it?");
    flow.telegram_reply(PRIVATE, question).await;
    flow.kill().await;
    flow.start().await;
    flow.settle().await;
    assert_eq!(flow.telegram_posts(PRIVATE), ["At three.", "At three."]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_13_a_stop_posts_the_answer_that_comes_while_it_drains() {
    let mut flow = Flow::start_default().await;
    flow.model.hold();
    let question = flow.slack.say("#general", "ann", "@vocative when is it?");
    flow.wait_for_model(1).await;
    flow.signal("TERM").await;
    flow.wait_until("the daemon hears nothing any more", || {
        flow.slack.open_sockets() == 0 && flow.telegram.polls_waiting() == 0
    })
    .await;
    flow.model.release();
    assert_eq!(flow.ended().await, Some(0));
    let posts = flow.slack_posts("#general");
    assert_eq!(posts.len(), 1, "{posts:?}");
    assert_eq!(posts[0].0.as_deref(), Some(question.as_str()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_13_a_run_at_work_at_the_deadline_is_given_back_and_no_attempt_is_counted() {
    let mut flow = FlowBuilder::default()
        .agent("vocative", "max_attempts = 1")
        .start()
        .await;
    flow.reconfigure("[daemon]\n", "[daemon]\ndrain_deadline_s = 1\n");
    flow.restart().await;
    flow.model.hold();
    let question = flow.slack.say("#general", "ann", "@vocative when is it?");
    for asked in 1..=2 {
        flow.wait_for_model(asked).await;
        assert_eq!(flow.stop().await, Some(0));
        assert_eq!(flow.slack_posts("#general"), []);
        flow.start().await;
    }
    flow.wait_for_model(3).await;
    flow.model.enqueue(ModelReply::text("At three."));
    flow.model.release();
    let answer = flow.slack_reply("#general", &question).await;
    assert_eq!(answer.text, "At three.");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_daemon_on_the_same_data_is_refused_with_advice() {
    let flow = Flow::start_default().await;
    let told = flow.cli(&["run"]).await;
    assert_eq!(told.status, Some(69), "{told:?}");
    assert!(told.stderr.contains("another daemon"), "{}", told.stderr);
    assert!(told.stderr.contains("vocative status"), "{}", told.stderr);
    // The first one goes on, and still answers on its socket.
    let status = flow.status().await;
    assert!(status["started_at_ms"].is_number(), "{status}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reload_adds_an_alias() {
    let flow = FlowBuilder::default()
        .agent("vocative", "aliases = [\"oracle\"]")
        .start()
        .await;
    flow.slack.say("#general", "ann", "zephyr: not yet");
    flow.reconfigure("[\"oracle\"]", "[\"oracle\", \"zephyr\"]");
    flow.wait_until_heard().await;
    flow.reload().await;
    let question = flow.slack.say("#general", "ann", "zephyr: now?");
    flow.slack_reply("#general", &question).await;
    flow.settle().await;
    assert_eq!(flow.slack_posts("#general").len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reload_that_removes_an_agent_cancels_its_waiting_question_with_a_notice() {
    let flow = FlowBuilder::default()
        .agent("vocative", "")
        .agent("ops", "aliases = [\"ops\"]")
        .slack("default_agent = \"vocative\"")
        .telegram("default_agent = \"vocative\"\nallow_chats = [\"*\"]\nallow_people = [\"*\"]")
        .start()
        .await;
    flow.model.hold();
    let first = flow.telegram.say(PRIVATE, PRIVATE, "when is it?");
    flow.wait_for_model(1).await;
    let second = flow.telegram.say(PRIVATE, PRIVATE, "ops: is it up?");
    flow.wait_until_heard().await;
    flow.reconfigure("[agents.ops]\naliases = [\"ops\"]", "");
    flow.reload().await;
    flow.model.release();

    flow.telegram_reply(PRIVATE, first).await;
    let notice = flow.telegram_reply(PRIVATE, second).await;
    assert_eq!(
        notice.text,
        "The agent ops is no longer set up here, so I left this unanswered."
    );
    flow.settle().await;
    assert_eq!(flow.model.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reload_takes_what_becomes_of_posts_and_names_what_needs_a_restart() {
    let flow = FlowBuilder::default()
        .agent("vocative", "aliases = [\"oracle\"]")
        .config("[delivery]\nmax_parts = 20\n")
        .start()
        .await;
    let long = "word ".repeat(6_000);
    flow.model.enqueue(ModelReply::text(&long));
    let before = flow.slack.say("#general", "ann", "@vocative tell me");
    flow.slack_reply("#general", &before).await;
    flow.settle().await;
    assert!(flow.slack_posts("#general").len() > 1);
    flow.reconfigure("max_parts = 20", "max_parts = 1\n[store]\nreaders = 3");
    let told = flow.cli(&["reload"]).await;
    assert_eq!(told.status, Some(0), "{told:?}");
    assert!(told.stdout.starts_with("reloaded: "), "{told:?}");
    assert!(
        told.stdout
            .contains("a restart is needed for: store.readers"),
        "{told:?}"
    );
    assert!(flow.log().contains("counts only after a restart"));
    flow.model.enqueue(ModelReply::text(&long));
    let after = flow.slack.say("#general", "ann", "@vocative tell me again");
    flow.slack_reply("#general", &after).await;
    flow.settle().await;
    let posts = flow.slack_posts("#general");
    let parts = posts
        .iter()
        .filter(|(thread, _)| *thread == Some(after.clone()));
    // One part, and the file with all of it.
    assert!(parts.count() <= 2, "{posts:?}");

    // A refusal is the command's own failure, and so systemd's.
    flow.reconfigure("[\"oracle\"]", "7");
    let told = flow.cli(&["reload"]).await;
    assert_eq!(told.status, Some(1), "{told:?}");
    assert!(told.stderr.contains("aliases"), "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reload_of_a_wrong_configuration_changes_nothing() {
    let flow = FlowBuilder::default()
        .agent("vocative", "aliases = [\"oracle\"]")
        .start()
        .await;
    flow.reconfigure("aliases = [\"oracle\"]", "aliases = 7");
    flow.signal("HUP").await;
    flow.wait_until("the daemon refuses it", || {
        flow.log()
            .contains("not reloaded, the old configuration stays")
    })
    .await;
    let question = flow.slack.say("#general", "ann", "oracle: still there?");
    flow.slack_reply("#general", &question).await;
}
