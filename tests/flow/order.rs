//! Events that come late, again, or in another order than things were said in.

use rusqlite::Connection;
use serde_json::{Value, json};
use vocative_sandbox::slack::{AckedEnvelope, CallFault, EventFault, RetryPlan};
use vocative_sandbox::telegram::TelegramWorld;

use crate::catchup::started;
use crate::harness::{Flow, FlowBuilder, WAIT, said};

const ANN: i64 = TelegramWorld::ANN;
const GROUP: i64 = TelegramWorld::SUPERGROUP;

/// Lets the next so many Slack events get lost on their way.
fn lose(flow: &Flow, events: usize) {
    for _ in 0..events {
        flow.slack.faults().next_event(EventFault::Drop);
    }
}

/// Brings the lost Slack events after all, the last first, one after the other.
async fn bring_lost(flow: &Flow) {
    for payload in flow.slack.lost_payloads().into_iter().rev() {
        flow.slack.raw_payload(payload);
        flow.wait_until_heard().await;
    }
}

/// Sends every Slack event that was acknowledged again, the last first.
async fn bring_all_again(flow: &Flow) {
    for envelope in flow.slack.acked_envelopes().into_iter().rev() {
        flow.slack.raw_payload(envelope.payload);
    }
    flow.settle().await;
}

/// The texts of a conversation's turns, in the room's order.
async fn texts(flow: &Flow, conversation: &str) -> Vec<String> {
    let turns = flow.turns(conversation).await;
    let text = |turn: &Value| turn["text"].as_str().unwrap().to_owned();
    turns.iter().map(text).collect()
}

/// A question whose two events are lost, and what is said below it.
async fn overtaken_by_follow_ups(flow: &Flow, follow_ups: &[(&str, &str)]) -> String {
    lose(flow, 2);
    let root = flow.slack.say("#general", "ann", "@vocative when is it?");
    for (person, text) in follow_ups {
        flow.slack.reply("#general", person, &root, text);
        flow.wait_until_heard().await;
    }
    let status = flow.status().await;
    assert_eq!(status["intake"]["runs_queued"], 0, "{status}");
    root
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn follow_ups_that_overtake_their_root_are_answered_when_it_comes_and_once() {
    let mut flow = started(FlowBuilder::default()).await;
    let follow_ups = [("ann", "and where?"), ("bob", "may I come, too?")];
    let root = overtaken_by_follow_ups(&flow, &follow_ups).await;
    bring_lost(&flow).await;
    flow.settle().await;
    // One person's are answered together, another's apart, in the room's order.
    assert_eq!(flow.model.requests().len(), 2);
    let mut asked = vec![
        said("user", "Ann: @Vocative when is it?"),
        said("user", "Ann: and where?"),
    ];
    assert_eq!(flow.model_history(0), asked);
    let answer = flow.slack_posts("#general")[0].1.clone();
    assert!(answer.contains("and where?"), "{answer}");
    asked.push(said("assistant", &answer));
    asked.push(said("user", "Bob: may I come, too?"));
    assert_eq!(flow.model_history(1), asked);
    assert_eq!(flow.slack_posts("#general").len(), 2);

    bring_all_again(&flow).await;
    flow.restart().await;
    bring_all_again(&flow).await;
    let posts = flow.slack_posts("#general");
    assert_eq!(posts.len(), 2, "{posts:?}");
    assert!(
        posts
            .iter()
            .all(|(thread, _)| thread.as_deref() == Some(root.as_str()))
    );
    assert_eq!(flow.model.requests().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follow_up_whose_root_is_missed_over_a_kill_is_answered_with_it() {
    let mut flow = started(FlowBuilder::default()).await;
    let root = overtaken_by_follow_ups(&flow, &[("ann", "and where?")]).await;
    flow.kill().await;
    // The root is read back.
    flow.start().await;
    let answer = flow.slack_reply("#general", &root).await;
    assert!(answer.text.contains("and where?"), "{}", answer.text);
    flow.settle().await;
    bring_lost(&flow).await;
    bring_all_again(&flow).await;
    assert_eq!(flow.slack_posts("#general").len(), 1);
    assert_eq!(flow.model.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follow_up_that_is_heard_before_its_missed_root_is_read_back_is_answered_with_it() {
    let mut flow = started(FlowBuilder::default()).await;
    flow.slack.say("#general", "bob", "good morning");
    flow.settle().await;
    assert_eq!(flow.stop().await, Some(0));
    lose(&flow, 2);
    let root = flow.slack.say("#general", "ann", "@vocative when is it?");
    // The catch-up hangs while people go on talking.
    flow.slack
        .faults()
        .next("users.conversations", CallFault::RateLimited(4));
    flow.start().await;
    flow.slack.reply("#general", "ann", &root, "and where?");
    flow.wait_until_heard().await;
    assert_eq!(flow.status().await["intake"]["runs_queued"], 0);
    let answer = flow.slack_reply("#general", &root).await;
    assert!(answer.text.contains("and where?"), "{}", answer.text);
    flow.settle().await;
    bring_all_again(&flow).await;
    assert_eq!(flow.slack_posts("#general").len(), 1);
    assert_eq!(flow.model.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_root_that_becomes_a_question_late_asks_only_with_what_was_said_since() {
    let flow = started(FlowBuilder::default()).await;
    // Slack tells the time of an edit to the second.
    flow.slack.set_clock_offset_ms(-60_000);
    let root = flow.slack.say("#general", "ann", "when is it?");
    flow.slack.reply("#general", "bob", &root, "who knows");
    flow.wait_until_heard().await;
    flow.slack.set_clock_offset_ms(-30_000);
    // The edit is told as two events; both are late.
    lose(&flow, 2);
    let question = flow.slack.typed("@vocative when is it?");
    flow.slack.edit("#general", &root, &question);
    flow.slack.reply("#general", "ann", &root, "and where?");
    flow.wait_until_heard().await;
    assert_eq!(flow.status().await["intake"]["runs_queued"], 0);
    bring_lost(&flow).await;
    flow.settle().await;
    bring_all_again(&flow).await;
    assert_eq!(flow.model.requests().len(), 1);
    let asked = ["Ann: @Vocative when is it?", "Ann: and where?"];
    assert_eq!(flow.model_history(0), asked.map(|text| said("user", text)));
    assert_eq!(flow.slack_posts("#general").len(), 1);
}

/// An envelope as Slack sends it again, under the same id.
fn frame_again(envelope: &AckedEnvelope, retry: u32) -> String {
    json!({
        "envelope_id": envelope.envelope_id,
        "type": "events_api",
        "accepts_response_payload": false,
        "payload": envelope.payload,
        "retry_attempt": retry,
        "retry_reason": "timeout",
    })
    .to_string()
}

/// Sends the first two envelopes on every socket so many times at once.
async fn frames_again(flow: &Flow, times: u32) {
    let heard = || flow.status();
    let before = heard().await["intake"]["duplicates"].as_u64().unwrap();
    let sockets = u64::try_from(flow.slack.open_sockets()).unwrap();
    let envelopes: Vec<_> = flow.slack.acked_envelopes().into_iter().take(2).collect();
    for retry in 0..times {
        for envelope in &envelopes {
            flow.slack.raw_frame(&frame_again(envelope, retry));
        }
    }
    let expected = before + 2 * sockets * u64::from(times);
    flow.wait_for_status("all of them are heard", |status| {
        status["intake"]["duplicates"].as_u64() >= Some(expected)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_envelope_five_times_on_two_sockets_and_after_restarts_is_one_turn_and_one_answer()
{
    let mut flow = started(FlowBuilder::default().slack("sockets = 2")).await;
    assert!(flow.slack.wait_for_socket(2, WAIT).await);
    flow.model.hold();
    let question = flow.slack.say("#general", "ann", "@vocative once?");
    flow.wait_until_heard().await;
    // While it is being answered, after a kill in the middle of that, and long after.
    frames_again(&flow, 5).await;
    flow.kill().await;
    flow.start().await;
    assert!(flow.slack.wait_for_socket(2, WAIT).await);
    flow.model.release();
    flow.slack_reply("#general", &question).await;
    frames_again(&flow, 5).await;
    flow.restart().await;
    frames_again(&flow, 5).await;
    flow.settle().await;
    assert_eq!(flow.slack_posts("#general").len(), 1);
    let room = flow.conversation_id("C0GENERAL", None).await;
    assert_eq!(texts(&flow, &room).await, ["@vocative once?"]);
    assert_eq!(flow.slack.violations(), Vec::<String>::new());
    assert_eq!(flow.stop().await, Some(0));
    assert_eq!(runs(&flow), ["done 1"]);
}

/// The runs in the stopped daemon's database: state and number of triggers.
fn runs(flow: &Flow) -> Vec<String> {
    let path = flow.directory().join("data").join("vocative.db");
    let connection = Connection::open(path).unwrap();
    let sql =
        "SELECT format('%s %s', state, (SELECT count(*) FROM run_triggers g WHERE g.run_id = r.id))
               FROM runs r ORDER BY r.id";
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_said_to_a_stopped_daemon_is_answered_once_from_slacks_retries_alone() {
    for same_envelope_id in [false, true] {
        let builder = FlowBuilder::default().config("[capture]\ncatch_up_days = 0");
        let mut flow = builder.start().await;
        flow.slack.faults().set_retry_plan(RetryPlan {
            same_envelope_id,
            ..RetryPlan::default()
        });
        assert_eq!(flow.stop().await, Some(0));
        let question = flow.slack.say("#general", "ann", "@vocative when is it?");
        flow.start().await;
        flow.slack.redeliver_unacked_now();
        flow.slack_reply("#general", &question).await;
        flow.settle().await;
        let attempts: Vec<u32> = flow
            .slack
            .acked_envelopes()
            .iter()
            .map(|envelope| envelope.attempts)
            .collect();
        assert_eq!(attempts[..2], [2, 2], "{attempts:?}");
        assert_eq!(flow.slack_posts("#general").len(), 1);
        assert_eq!(flow.slack.violations(), Vec::<String>::new());
    }
}

const WHOLE_ROOM: &str = "[defaults.agent.prompt]\naddressed_only = false";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_and_out_of_order_events_land_in_the_rooms_order_in_store_and_prompt() {
    let flow = started(FlowBuilder::default().config(WHOLE_ROOM)).await;
    lose(&flow, 3);
    for text in ["first", "second", "third"] {
        flow.slack.post("#general", "bob", text);
    }
    flow.slack.post("#general", "bob", "fourth");
    flow.wait_until_heard().await;
    bring_lost(&flow).await;
    let now_s = chrono::Utc::now().timestamp();
    for (id, ago_s, text) in [
        (93, 20, "fourth"),
        (92, 30, "third"),
        (90, 31, "first"),
        (91, 30, "second"),
    ] {
        flow.telegram
            .raw_update(json!({"message": group_message(id, now_s - ago_s, text)}));
        flow.wait_until_heard().await;
    }
    let room = ["first", "second", "third", "fourth"];
    let slack = flow.conversation_id("C0GENERAL", None).await;
    assert_eq!(texts(&flow, &slack).await, room);
    let telegram = flow.conversation_id(&GROUP.to_string(), None).await;
    assert_eq!(texts(&flow, &telegram).await, room);

    let question = flow
        .telegram
        .say(GROUP, ANN, "@vocative_bot what was said?");
    flow.telegram_reply(GROUP, question).await;
    let question = flow
        .slack
        .say("#general", "ann", "@vocative what was said?");
    flow.slack_reply("#general", &question).await;
    let heard = "Bob: first\nBob: second\nBob: third\nBob: fourth";
    for number in 0..2 {
        let history = flow.model_history(number);
        let lines: Vec<&str> = history.iter().map(|(_, text)| text.as_str()).collect();
        let lines = lines.join("\n");
        assert_eq!(lines, format!("{heard}\nAnn: @Vocative what was said?"));
    }
}

/// What Bob says in the group.
fn group_message(id: i64, date: i64, text: &str) -> Value {
    json!({
        "message_id": id,
        "date": date,
        "chat": {"id": GROUP, "type": "supergroup", "title": "Team"},
        "from": {"id": TelegramWorld::BOB, "is_bot": false, "first_name": "Bob"},
        "text": text,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gaps_duplicates_and_numbers_that_start_again_lose_and_double_nothing_on_telegram() {
    let mut flow = started(FlowBuilder::default()).await;
    // A gap up, a jump down, and down again after a restart.
    for first_update in [None, Some(900_000_000), Some(7), Some(3)] {
        if let Some(first_update) = first_update {
            flow.telegram.restart_update_ids(first_update);
        }
        if first_update == Some(3) {
            flow.restart().await;
        }
        let question = flow.telegram.say(ANN, ANN, "when is it?");
        flow.telegram_reply(ANN, question).await;
        flow.settle().await;
        // And all that was said so far once more, as new updates.
        for post in flow.telegram.posts(ANN) {
            if !post.by_bot {
                flow.telegram.raw_update(json!({"message": post.wire}));
            }
        }
        flow.settle().await;
    }
    assert_eq!(flow.telegram_posts(ANN).len(), 4);
    assert_eq!(flow.model.requests().len(), 4);
    let room = flow.conversation_id(&ANN.to_string(), None).await;
    assert_eq!(texts(&flow, &room).await.len(), 8);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_that_comes_before_its_message_is_what_is_answered_and_kept() {
    let flow = started(FlowBuilder::default()).await;
    lose(&flow, 1);
    let on_slack = flow.slack.say("D0ANN", "ann", "when?");
    flow.slack.edit("D0ANN", &on_slack, "when is it?");
    flow.wait_until_heard().await;
    bring_lost(&flow).await;
    let now_s = chrono::Utc::now().timestamp();
    let message = json!({
        "message_id": 90, "date": now_s - 10, "text": "where?",
        "chat": {"id": ANN, "type": "private", "first_name": "Ann"},
        "from": {"id": ANN, "is_bot": false, "first_name": "Ann"},
    });
    let mut edited = message.clone();
    edited["text"] = json!("where is it?");
    edited["edit_date"] = json!(now_s - 5);
    flow.telegram.raw_update(json!({"edited_message": edited}));
    flow.wait_until_heard().await;
    flow.telegram.raw_update(json!({"message": message}));
    flow.settle().await;
    assert_eq!(
        flow.slack_posts("D0ANN"),
        [(None, "echo: Ann: when is it?".to_owned())]
    );
    assert_eq!(flow.telegram_posts(ANN), ["echo: Ann: where is it?"]);
    for (chat, text) in [
        ("D0ANN".to_owned(), "when is it?"),
        (ANN.to_string(), "where is it?"),
    ] {
        let room = flow.conversation_id(&chat, None).await;
        assert_eq!(texts(&flow, &room).await[0], text);
    }
    assert_eq!(flow.model.requests().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delete_that_comes_before_its_message_leaves_nothing_to_store_or_answer() {
    let flow = started(FlowBuilder::default()).await;
    flow.slack.post("#general", "bob", "good morning");
    lose(&flow, 2);
    let question = flow.slack.say("#general", "ann", "@vocative when is it?");
    flow.slack.delete("#general", &question);
    flow.wait_until_heard().await;
    bring_lost(&flow).await;
    bring_all_again(&flow).await;
    let room = flow.conversation_id("C0GENERAL", None).await;
    assert_eq!(texts(&flow, &room).await, ["good morning"]);
    assert_eq!(flow.model.requests().len(), 0);
    assert_eq!(flow.slack_posts("#general"), []);
}
