//! What can't be read, or is too much: kept, counted, acknowledged, and never in the way.

use serde_json::{Value, json};
use vocative_sandbox::model::ModelReply;
use vocative_sandbox::telegram::TelegramWorld;

use crate::harness::{Flow, FlowBuilder};

const PRIVATE: i64 = TelegramWorld::ANN;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_1_slack_events_that_cannot_be_read_are_kept_acknowledged_and_in_nobodys_way() {
    let flow = Flow::start_default().await;
    let events = [
        json!({"type": "message", "channel": 7, "user": "U0ANN", "text": "x", "ts": "1.1"}),
        json!({"type": "message", "channel": "C0GENERAL", "user": "U0ANN", "text": "x", "ts": 5}),
        json!({"type": "message", "channel": null, "user": null, "text": null, "ts": null}),
        json!({"type": "message"}),
        json!({"type": 9}),
        json!({}),
        json!({"type": "message", "subtype": "never_heard_of", "channel": "C0GENERAL"}),
        json!({"type": "something_new", "data": {"a": [1, null]}}),
        json!({"type": "message", "channel": "C0GENERAL", "user": "U0ANN", "ts": "not a time"}),
    ];
    let count = events.len();
    for event in events {
        flow.slack.raw_event(event);
    }
    for payload in [
        json!({}),
        json!([]),
        json!("text"),
        json!({"event": 7, "type": "event_callback"}),
    ] {
        flow.slack.raw_payload(payload);
    }
    // Frames that are no envelope can't be acknowledged.
    for frame in [
        "",
        "no JSON",
        "[]",
        "7",
        "{\"type\":",
        "{}",
        "{\"envelope_id\":5}",
    ] {
        flow.slack.raw_frame(frame);
    }
    flow.slack.raw_frame(
        r#"{"envelope_id":"lone","type":"events_api","payload":{"event":{"type":"message","text":"\ud800"}}}"#,
    );
    let question = flow.slack.say("#general", "ann", "@vocative still there?");
    flow.slack_reply("#general", &question).await;
    flow.settle().await;
    assert_eq!(flow.slack.unacked(), 0);
    let status = flow.status().await;
    let stubs = status["store"]["raw_stubs"].as_u64().unwrap();
    assert!(stubs >= 5 && stubs <= count as u64 + 5, "{status}");
    assert_eq!(status["intake"]["refused"], 0, "{status}");
    assert!(!flow.log().contains("panicked"));
}

/// A message of Ann's private chat, with these fields on top.
fn message(id: i64, fields: &Value) -> Value {
    let mut message = json!({
        "message_id": id,
        "date": 1_700_000_000,
        "chat": {"id": PRIVATE, "type": "private", "first_name": "Ann"},
        "from": {"id": PRIVATE, "is_bot": false, "first_name": "Ann"},
    });
    let fields = fields.as_object().unwrap().clone();
    message.as_object_mut().unwrap().extend(fields);
    json!({ "message": message })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_1_telegram_updates_that_cannot_be_read_are_kept_confirmed_and_in_nobodys_way() {
    let flow = FlowBuilder::default()
        .agent("vocative", "overlap = \"queue\"")
        .start()
        .await;
    let updates = [
        json!({}),
        json!({"message": null}),
        json!({"message": 7}),
        json!({"message": {"message_id": "x"}}),
        json!({"message": {"message_id": 1, "date": "x", "chat": []}}),
        json!({"something_new": {"a": [1, null]}}),
        message(90_001, &json!({"chat": null, "text": "x"})),
        message(90_002, &json!({"from": null, "text": null})),
        message(90_003, &json!({"never_heard_of": {"deep": [1]}})),
        message(
            90_004,
            &json!({"text": "short", "entities": [
                {"type": "mention", "offset": 3, "length": 900},
                {"type": "bold", "offset": -4, "length": 2},
                {"type": "never_heard_of", "offset": 0, "length": 1},
            ]}),
        ),
        message(
            90_005,
            &json!({"text": "\u{1F600}x", "entities": [
                {"type": "bold", "offset": 1, "length": 1},
            ]}),
        ),
        message(90_006, &json!({"text": "x", "entities": 5})),
        message(i64::MAX, &json!({"text": "x"})),
        message(90_007, &json!({"text": "x", "date": i64::MAX})),
        message(90_008, &json!({"text": "x", "date": -5})),
    ];
    for update in updates {
        flow.telegram.raw_update(update);
    }
    let question = flow.telegram.say(PRIVATE, PRIVATE, "still there?");
    flow.telegram_reply(PRIVATE, question).await;
    flow.settle().await;
    assert_eq!(flow.telegram.pending_updates(), 0);
    let status = flow.status().await;
    assert!(
        status["store"]["raw_stubs"].as_u64().unwrap() >= 4,
        "{status}"
    );
    assert_eq!(status["intake"]["refused"], 0, "{status}");
    assert!(!flow.log().contains("panicked"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_of_a_megabyte_is_cut_with_a_marker() {
    let flow = Flow::start_default().await;
    let long = "word ".repeat(200_000);
    flow.slack.raw_event(json!({
        "type": "message", "channel": "C0GENERAL", "channel_type": "channel", "user": "U0ANN",
        "ts": "1700000000.000100", "team": "T0ACME", "text": long,
    }));
    flow.telegram
        .raw_update(message(90_001, &json!({"text": long})));
    flow.wait_until_heard().await;
    for chat in ["C0GENERAL".to_owned(), PRIVATE.to_string()] {
        let id = flow.conversation_id(&chat, None).await;
        let turns = flow.turns(&id).await;
        let text = turns[0]["text"].as_str().unwrap();
        assert!(text.len() <= 65_536, "{}", text.len());
        assert!(text.ends_with(" bytes left out]"), "{chat}");
    }
    let question = flow.slack.say("#general", "ann", "@vocative still there?");
    flow.slack_reply("#general", &question).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_mentions_are_one_turn_and_one_answer() {
    let flow = Flow::start_default().await;
    flow.model.enqueue(ModelReply::text("That is everybody."));
    let text = "<@U0VOCATIVE> ".repeat(3_000) + &"<@U0BOB> ".repeat(7_000);
    let question = flow.slack.post("C0GENERAL", "U0ANN", &text);
    flow.slack_reply("#general", &question).await;
    flow.settle().await;
    assert_eq!(flow.slack_posts("#general").len(), 1);
    let status = flow.status().await;
    assert_eq!(status["intake"]["captured"], 1, "{status}");
}
