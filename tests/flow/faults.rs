//! Platforms that fail in the middle: what arrived is not sent again, what did not arrive is.

use std::net::{Ipv4Addr, SocketAddr};

use serde_json::{Value, json};
use vocative_sandbox::model::ModelReply;
use vocative_sandbox::slack::{CallFault, SlackKnobs};
use vocative_sandbox::telegram::{MigrationOrder, TelegramFault, TelegramServer, TelegramWorld};
use vocative_sandbox::wire::WireLog;

use crate::harness::{Flow, FlowBuilder};

const PRIVATE: i64 = TelegramWorld::ANN;
const GROUP: i64 = TelegramWorld::GROUP;

/// A daemon that decides soon about posts of unknown outcome, and that hears of its own posts only
/// by asking.
async fn quick_looks() -> Flow {
    let flow = FlowBuilder::default()
        .config("[delivery]\nfirst_look_s = 1\nvisibility_delay_s = 2")
        .start()
        .await;
    let mute = |knobs: &mut SlackKnobs| knobs.echo_own_posts = false;
    flow.slack.faults().set_knobs(mute);
    flow
}

/// Asks in Slack while the next post meets this fault; returns how often the answer is there in the
/// end.
async fn posts_after(fault: CallFault) -> usize {
    let flow = quick_looks().await;
    flow.slack.faults().next("chat.postMessage", fault);
    let question = flow.slack.say("#general", "ann", "@vocative when is it?");
    flow.slack_reply("#general", &question).await;
    flow.settle().await;
    let status = flow.status().await;
    assert_eq!(status["needs_person"], Value::Array(vec![]), "{status}");
    flow.slack_posts("#general").len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slack_post_that_was_applied_and_answered_with_500_is_there_once() {
    assert_eq!(posts_after(CallFault::StatusAfterApply(500)).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slack_post_that_was_applied_and_answered_with_internal_error_is_there_once() {
    let fault = CallFault::ErrorAfterApply("internal_error".to_owned());
    assert_eq!(posts_after(fault).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slack_post_that_was_applied_before_the_connection_broke_is_there_once() {
    assert_eq!(posts_after(CallFault::ResetAfter).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slack_post_that_was_not_applied_before_the_connection_broke_is_there_once() {
    assert_eq!(posts_after(CallFault::ResetBefore).await, 1);
}

/// What Slack may answer to a post that it has taken.
fn failures() -> [CallFault; 3] {
    [
        CallFault::StatusAfterApply(500),
        CallFault::ResetAfter,
        CallFault::ErrorAfterApply("fatal_error".to_owned()),
    ]
}

/// Answers in Slack that arrive while the daemon hears of a failure, history showing them so much
/// later; how often each is there in the end.
async fn posts_shown_after(flow: &Flow, delay_ms: u64, failures: &[CallFault]) -> Vec<usize> {
    let faults = flow.slack.faults();
    faults.set_visibility_delay_ms(delay_ms);
    let mut questions = Vec::new();
    for failure in failures {
        // Looks are limited, too.
        faults.next("conversations.replies", CallFault::RateLimited(1));
        faults.next("chat.postMessage", failure.clone());
        let question = flow.slack.say("#general", "ann", "@vocative when is it?");
        flow.slack_reply("#general", &question).await;
        questions.push(question);
    }
    flow.settle().await;
    let posts = flow.slack_posts("#general");
    let count = |question: &String| {
        let in_thread = posts
            .iter()
            .filter(|(thread, _)| thread.as_ref() == Some(question));
        in_thread.count()
    };
    questions.iter().map(count).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slack_post_is_there_once_however_late_history_shows_it_within_the_visibility_delay() {
    let flow = quick_looks().await;
    // What 0, 3 and 20 seconds are to the default of 30; a post is looked for half as long again.
    for delay_ms in [0, 200, 1_400] {
        let posts = posts_shown_after(&flow, delay_ms, &failures()).await;
        assert_eq!(posts, [1, 1, 1], "{delay_ms}");
    }
    // What the setting is for: a platform that is slower than it says.
    let posts = posts_shown_after(&flow, 3_600_000, &failures()[..1]).await;
    assert_eq!(posts, [2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slack_post_that_is_heard_before_its_call_fails_is_there_once() {
    let flow = quick_looks().await;
    flow.slack.faults().set_knobs(|knobs| {
        knobs.echo_own_posts = true;
        knobs.echo_before_response = true;
    });
    // History never shows it: the echo alone says that it is there.
    let posts = posts_shown_after(&flow, 3_600_000, &failures()).await;
    assert_eq!(posts, [1, 1, 1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slack_post_that_must_wait_holds_back_what_follows_in_its_chat() {
    let flow = quick_looks().await;
    let lines: Vec<String> = (0..1_500).map(|n| format!("line {n}")).collect();
    flow.model.enqueue(ModelReply::text(&lines.join("\n")));
    flow.slack
        .faults()
        .next("chat.postMessage", CallFault::RateLimited(2));
    let question = flow.slack.say("#general", "ann", "@vocative a long one");
    flow.wait_for_model(1).await;
    let after = flow.slack.say("#general", "bob", "@vocative a short one");
    flow.slack_reply("#general", &question).await;
    flow.slack_reply("#general", &after).await;
    flow.settle().await;

    let posts = flow.slack_posts("#general");
    let parts: Vec<&str> = posts
        .iter()
        .filter(|(thread, _)| thread.as_ref() == Some(&question))
        .map(|(_, text)| text.as_str())
        .collect();
    assert!(parts.len() >= 2, "{} parts", parts.len());
    let words: Vec<&str> = parts
        .iter()
        .flat_map(|part| part.split_whitespace())
        .collect();
    assert_eq!(words.join(" "), lines.join(" "));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_telegram_post_that_must_wait_is_there_once() {
    let flow = Flow::start_default().await;
    flow.telegram.faults().next(
        "sendMessage",
        TelegramFault::RateLimited { retry_after_s: 1 },
    );
    let question = flow.telegram.say(PRIVATE, PRIVATE, "when is it?");
    flow.telegram_reply(PRIVATE, question).await;
    flow.settle().await;
    assert_eq!(flow.telegram_posts(PRIVATE).len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_13_a_telegram_post_that_may_have_arrived_is_sent_again_once() {
    let flow = FlowBuilder::default()
        .config("[delivery]\non_unknown = \"resend\"\n")
        .start()
        .await;
    flow.model.enqueue(ModelReply::text("At three."));
    flow.telegram
        .faults()
        .next("sendMessage", TelegramFault::ResetAfter);
    flow.telegram.say(PRIVATE, PRIVATE, "when is it?");
    flow.wait_until("it was sent again", || {
        flow.telegram_posts(PRIVATE).len() == 2
    })
    .await;
    flow.settle().await;
    assert_eq!(flow.telegram_posts(PRIVATE), ["At three.", "At three."]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_13_a_post_that_may_have_arrived_twice_over_waits_for_a_person() {
    let flow = FlowBuilder::default()
        .config("[delivery]\non_unknown = \"resend\"\n")
        .start()
        .await;
    for _ in 0..2 {
        flow.telegram
            .faults()
            .next("sendMessage", TelegramFault::ResetBefore);
    }
    flow.telegram.say(PRIVATE, PRIVATE, "when is it?");
    flow.wait_for_status("it is held", |status| status["posts"]["held"] == 1)
        .await;
    assert_eq!(flow.telegram_posts(PRIVATE).len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_post_is_visible_and_goes_when_a_person_releases_it() {
    let flow = FlowBuilder::default()
        .telegram("on_unknown = \"hold\"\nallow_chats = [\"*\"]\nallow_people = [\"*\"]")
        .start()
        .await;
    flow.model.enqueue(ModelReply::text("At three."));
    flow.telegram
        .faults()
        .next("sendMessage", TelegramFault::ResetBefore);
    flow.telegram.say(PRIVATE, PRIVATE, "when is it?");
    flow.wait_for_status("it is held", |status| status["posts"]["held"] == 1)
        .await;
    let told = flow.cli(&["status"]).await;
    assert_eq!(told.status, Some(1), "{told:?}");
    assert!(told.stdout.contains("vocative held list"), "{told:?}");

    let listed = flow.cli(&["held", "list", "--format", "json"]).await;
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(
        (&listed[0]["state"], &listed[0]["text"]),
        (&"held".into(), &"At three.".into())
    );
    assert_eq!(flow.telegram_posts(PRIVATE).len(), 0);
    let id = listed[0]["id"].as_str().unwrap();
    let released = flow.cli(&["held", "release", id]).await;
    assert_eq!(released.status, Some(0), "{released:?}");
    flow.wait_until("it is sent", || !flow.telegram_posts(PRIVATE).is_empty())
        .await;
    flow.settle().await;
    assert_eq!(flow.telegram_posts(PRIVATE), ["At three."]);
    assert_eq!(flow.cli(&["status"]).await.status, Some(0));
}

/// The conversations of the group that was upgraded: chat and number of turns.
async fn conversations_of(flow: &Flow, chats: [i64; 2]) -> Vec<(String, u64)> {
    let chats = chats.map(|chat| chat.to_string());
    let listed = flow.conversations().await;
    let mut found = Vec::new();
    for view in &listed {
        let chat = view["chat"].as_str().unwrap();
        if chats.iter().any(|known| known == chat) {
            let turns = flow.turns(view["id"].as_str().unwrap()).await;
            found.push((chat.to_owned(), turns.len() as u64));
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_waits_while_its_group_is_upgraded_arrives_in_the_new_group() {
    for order in [MigrationOrder::OldFirst, MigrationOrder::NewFirst] {
        let flow = Flow::start_default().await;
        flow.model.enqueue(ModelReply::text("At three."));
        flow.model.hold();
        flow.telegram
            .say(GROUP, PRIVATE, "@vocative_bot when is it?");
        flow.wait_for_model(1).await;
        let new = flow.telegram.migrate_in_order(GROUP, order);
        flow.wait_until_heard().await;
        flow.model.release();
        flow.wait_until("it arrives", || !flow.telegram_posts(new).is_empty())
            .await;
        flow.settle().await;
        assert_eq!(flow.telegram_posts(new), ["At three."]);
        assert_eq!(
            conversations_of(&flow, [GROUP, new]).await,
            [(new.to_string(), 2)]
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_that_only_the_refused_post_tells_of_leaves_one_conversation() {
    let flow = Flow::start_default().await;
    flow.model.enqueue(ModelReply::text("At three."));
    flow.model.hold();
    flow.telegram
        .say(GROUP, PRIVATE, "@vocative_bot when is it?");
    flow.wait_for_model(1).await;
    let deaf = TelegramFault::Gateway { code: 502 };
    flow.telegram.faults().always("getUpdates", deaf);
    let new = flow.telegram.migrate_to_supergroup(GROUP);
    flow.model.release();
    flow.wait_until("it arrives", || !flow.telegram_posts(new).is_empty())
        .await;
    flow.telegram.faults().clear();
    let next = flow.telegram.say(new, PRIVATE, "@vocative_bot and where?");
    flow.telegram_reply(new, next).await;
    flow.settle().await;
    assert_eq!(flow.telegram_posts(new).len(), 2);
    assert_eq!(
        conversations_of(&flow, [GROUP, new]).await,
        [(new.to_string(), 4)]
    );
    // The second prompt knows the first question and answer.
    assert_eq!(
        flow.model_history(1).len(),
        3,
        "{:?}",
        flow.model_history(1)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_in_the_new_group_before_the_service_message_joins_the_same_conversation() {
    let flow = Flow::start_default().await;
    // Another sandbox tells the new group's id before the upgrade: nothing happened in either yet.
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let twin = TelegramServer::start(TelegramWorld::team(), anywhere, WireLog::new()).await;
    let new = twin.unwrap().migrate_to_supergroup(GROUP);
    for (chat, kind, text) in [
        (GROUP, "group", "the lunch is at one"),
        (new, "supergroup", "or at two"),
    ] {
        flow.telegram.raw_update(json!({"message": {
            "message_id": 9_001,
            "date": chrono::Utc::now().timestamp(),
            "chat": {"id": chat, "type": kind, "title": "Lunch"},
            "from": {"id": PRIVATE, "is_bot": false, "first_name": "Ann"},
            "text": text,
        }}));
    }
    flow.wait_until_heard().await;
    assert_eq!(conversations_of(&flow, [GROUP, new]).await.len(), 2);
    assert_eq!(flow.telegram.migrate_to_supergroup(GROUP), new);
    flow.wait_until_heard().await;
    let next = flow.telegram.say(new, PRIVATE, "@vocative_bot and where?");
    flow.telegram_reply(new, next).await;
    flow.settle().await;
    assert_eq!(
        conversations_of(&flow, [GROUP, new]).await,
        [(new.to_string(), 4)]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chat_that_threw_the_bot_out_waits_and_goes_on_with_its_next_message() {
    let flow = Flow::start_default().await;
    flow.model.hold();
    let first = flow
        .telegram
        .say(GROUP, PRIVATE, "@vocative_bot when is it?");
    flow.wait_for_model(1).await;
    flow.telegram.kick_bot(GROUP, PRIVATE);
    flow.model.release();
    flow.wait_for_status("the chat is parked", |status| {
        channel(status, "team")["parked_chats"] == 1
    })
    .await;
    // Another chat is answered meanwhile.
    let elsewhere = flow.telegram.say(PRIVATE, PRIVATE, "and here?");
    flow.telegram_reply(PRIVATE, elsewhere).await;

    flow.telegram.add_bot(GROUP, PRIVATE);
    let next = flow.telegram.say(GROUP, PRIVATE, "@vocative_bot and now?");
    flow.telegram_reply(GROUP, first).await;
    flow.telegram_reply(GROUP, next).await;
    flow.settle().await;
    assert_eq!(flow.telegram_posts(GROUP).len(), 2);
}

fn channel<'a>(status: &'a Value, name: &str) -> &'a Value {
    let channels = status["channels"].as_array().unwrap();
    channels.iter().find(|view| view["name"] == name).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_slack_token_holds_its_channel_only_and_posts_go_when_it_works_again() {
    let flow = Flow::start_default().await;
    flow.slack.faults().set_account_error(Some("token_revoked"));
    let question = flow.slack.say("#general", "ann", "@vocative when is it?");
    let needs = |status: &Value| {
        let needs = status["needs_person"].as_array().unwrap();
        needs.iter().any(|need| {
            let need = need.as_str().unwrap();
            need.contains("acme") && need.contains("token_revoked")
        })
    };
    flow.wait_for_status("the channel raises an alarm", needs)
        .await;
    assert_eq!(flow.cli(&["status"]).await.status, Some(1));
    let elsewhere = flow.telegram.say(PRIVATE, PRIVATE, "and here?");
    flow.telegram_reply(PRIVATE, elsewhere).await;
    assert_eq!(flow.slack_posts("#general"), []);

    flow.slack.faults().set_account_error(None);
    flow.slack_reply("#general", &question).await;
    flow.settle().await;
    assert_eq!(flow.slack_posts("#general").len(), 1);
    assert_eq!(flow.cli(&["status"]).await.status, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_poller_of_the_same_bot_is_told_of_and_outlived() {
    let flow = Flow::start_default().await;
    let other = TelegramFault::Conflict;
    flow.telegram.faults().always("getUpdates", other);
    let first = flow.telegram.say(PRIVATE, PRIVATE, "when is it?");
    flow.wait_for_status("the conflict is told", |status| {
        let view = channel(status, "team");
        view["state"] == "retrying" && view["reason"].as_str().unwrap().contains("Conflict")
    })
    .await;
    let second = flow.telegram.say(PRIVATE, PRIVATE, "and where?");
    flow.telegram.faults().clear();
    flow.telegram_reply(PRIVATE, first).await;
    flow.telegram_reply(PRIVATE, second).await;
    flow.wait_for_status("it is connected again", |status| {
        channel(status, "team")["state"] == "connected"
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn update_ids_that_start_again_lower_lose_nothing() {
    let flow = Flow::start_default().await;
    let first = flow.telegram.say(PRIVATE, PRIVATE, "when is it?");
    flow.telegram_reply(PRIVATE, first).await;
    flow.settle().await;
    flow.telegram.restart_update_ids(7);
    let second = flow.telegram.say(PRIVATE, PRIVATE, "and where?");
    flow.telegram_reply(PRIVATE, second).await;
    flow.settle().await;
    assert_eq!(flow.telegram_posts(PRIVATE).len(), 2);
}

/// Says `count` things, and does something in the middle of them.
async fn flood(flow: &Flow, count: usize, middle: impl Fn()) {
    for number in 0..count {
        if number == count / 2 {
            middle();
        }
        flow.slack
            .say("#general", "ann", &format!("remark {number}"));
    }
    flow.wait_until_heard().await;
    let id = flow.conversation_id("C0GENERAL", None).await;
    let turns = flow.turns(&id).await;
    let texts: Vec<&str> = turns
        .iter()
        .map(|turn| turn["text"].as_str().unwrap())
        .collect();
    let said: Vec<String> = (0..count)
        .map(|number| format!("remark {number}"))
        .collect();
    assert_eq!(texts, said);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_socket_that_is_replaced_in_the_middle_of_a_flood_loses_nothing() {
    let flow = Flow::start_default().await;
    flood(&flow, 200, || flow.slack.disconnect("warning")).await;
    assert_eq!(flow.slack.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_socket_that_breaks_in_the_middle_of_a_flood_loses_nothing() {
    let flow = Flow::start_default().await;
    let plan = |knobs: &mut SlackKnobs| knobs.retry.after_ms = vec![2_000; 10];
    flow.slack.faults().set_knobs(plan);
    flood(&flow, 200, || flow.slack.abort_sockets()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_sockets_answer_each_question_once() {
    let flow = FlowBuilder::default().slack("sockets = 2").start().await;
    assert!(flow.slack.wait_for_socket(2, crate::harness::WAIT).await);
    let questions: Vec<String> = (0..20)
        .map(|number| {
            flow.slack
                .say("#general", "ann", &format!("@vocative {number}?"))
        })
        .collect();
    for question in &questions {
        flow.slack_reply("#general", question).await;
    }
    flow.settle().await;
    assert_eq!(flow.slack_posts("#general").len(), questions.len());
    assert_eq!(flow.slack.violations(), Vec::<String>::new());
}
