//! People who change what they have said: a question into a stop or a command, a mention in or out.

use serde_json::json;
use vocative_sandbox::model::ModelReply;
use vocative_sandbox::telegram::TelegramWorld;

use crate::harness::{Flow, FlowBuilder};

const ANN: i64 = TelegramWorld::ANN;
const BOB: i64 = TelegramWorld::BOB;
const GROUP: i64 = TelegramWorld::SUPERGROUP;
const OPEN: &str = "allow_chats = [\"*\"]\nallow_people = [\"*\"]";

async fn start() -> Flow {
    let within = "manners.edit_answer_within_s = 600";
    FlowBuilder::default()
        .slack(within)
        .telegram(&format!("{OPEN}\n{within}\nmanners.ack_reaction = \"👀\""))
        .start()
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_that_is_edited_into_a_stop_is_stopped() {
    let flow = start().await;
    flow.model.hold();
    let on_slack = flow.slack.say("#general", "ann", "@vocative when?");
    let on_telegram = flow.telegram.say(ANN, ANN, "when?");
    flow.wait_for_model(2).await;
    flow.slack.edit("#general", &on_slack, "<@U0VOCATIVE> stop");
    flow.telegram.edit(ANN, on_telegram, "stop");
    flow.slack_post("#general", |post| post.shown().starts_with("Stopped."))
        .await;
    flow.telegram_reply(ANN, on_telegram).await;
    flow.model.release();
    flow.settle().await;
    assert_eq!(flow.slack_posts("#general").len(), 1);
    let posts = flow.telegram_posts(ANN);
    assert_eq!(posts.len(), 1, "{posts:?}");
    assert_eq!(flow.model.requests().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answered_question_that_is_edited_into_a_stop_or_a_command_keeps_its_answer() {
    let flow = start().await;
    flow.model.enqueue(ModelReply::text("At nine."));
    let on_slack = flow.slack.say("#general", "ann", "@vocative when?");
    flow.slack_reply("#general", &on_slack).await;
    flow.model.enqueue(ModelReply::text("At noon."));
    let on_telegram = flow.telegram.say(GROUP, ANN, "@vocative_bot when?");
    flow.telegram_reply(GROUP, on_telegram).await;
    flow.settle().await;
    for text in ["stop", "new", "forget me yes"] {
        let said = format!("<@U0VOCATIVE> {text}");
        flow.slack.edit("#general", &on_slack, &said);
        flow.telegram.edit(GROUP, on_telegram, &format!("/{text}"));
        flow.settle().await;
    }
    assert_eq!(flow.model.requests().len(), 2);
    let answers = |posts: &[String], text: &str| posts.iter().filter(|it| *it == text).count();
    let on_slack: Vec<String> = flow
        .slack_posts("#general")
        .into_iter()
        .map(|it| it.1)
        .collect();
    assert_eq!(answers(&on_slack, "At nine."), 1, "{on_slack:?}");
    let on_telegram = flow.telegram_posts(GROUP);
    assert_eq!(answers(&on_telegram, "At noon."), 1, "{on_telegram:?}");
    // Nobody typed a command: nothing was begun afresh, and nothing was forgotten.
    for posts in [on_slack, on_telegram] {
        let told = posts
            .iter()
            .any(|it| it.contains("fresh") || it.contains("forgotten"));
        assert!(!told, "{posts:?}");
    }
    let room = flow.conversation_id("C0GENERAL", None).await;
    assert_eq!(flow.turns(&room).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mention_may_come_go_and_come_back_and_is_answered_once() {
    let flow = start().await;
    flow.model.hold();
    flow.telegram.say(GROUP, ANN, "@vocative_bot one?");
    flow.wait_for_model(1).await;
    let said = flow.telegram.say(GROUP, BOB, "when is it?");
    let waiting = async |count: u64| {
        flow.wait_for_status("so many wait", |status| status["runs"]["queued"] == count)
            .await;
    };
    let sign = || {
        let sign = flow.telegram.bot_reaction(GROUP, said);
        sign.is_some_and(|sign| sign != json!([]))
    };
    let to_us = "@vocative_bot when is it?";
    flow.telegram.edit(GROUP, said, to_us);
    waiting(1).await;
    flow.wait_until("there is a sign", sign).await;
    // Without the mention nothing waits, and nothing says so.
    flow.telegram.edit(GROUP, said, "when is it, Ann?");
    waiting(0).await;
    flow.wait_until("the sign is gone", || !sign()).await;
    flow.telegram.edit(GROUP, said, to_us);
    waiting(1).await;
    flow.model.release();
    flow.telegram_reply(GROUP, said).await;
    flow.settle().await;
    assert_eq!(flow.telegram_posts(GROUP).len(), 2);
    // What was answered stays when the mention goes.
    flow.telegram.edit(GROUP, said, "when was it, Ann?");
    flow.settle().await;
    assert_eq!(flow.telegram_posts(GROUP).len(), 2);
    assert_eq!(flow.model.requests().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_of_what_was_never_heard_is_heard_and_gives_no_command() {
    let flow = start().await;
    let before = flow.telegram.say(GROUP, ANN, "the launch is on Monday");
    flow.settle().await;
    flow.telegram.raw_update(json!({"edited_message": {
        "message_id": 90_001, "date": 1_763_700_000, "edit_date": 1_763_700_100,
        "from": {"id": ANN, "is_bot": false, "first_name": "Ann"},
        "chat": {"id": GROUP, "title": "Platform team", "type": "supergroup"},
        "text": "/forget me yes", "entities": [{"type": "bot_command", "offset": 0, "length": 7}],
    }}));
    flow.slack.raw_event(json!({
        "type": "message", "subtype": "message_changed", "channel": "C0GENERAL",
        "channel_type": "channel", "ts": "1763712720.000200", "event_ts": "1763712720.000200",
        "message": {
            "type": "message", "user": "U0ANN", "text": "<@U0VOCATIVE> forget me yes",
            "ts": "1763712710.000100", "edited": {"user": "U0ANN", "ts": "1763712720.000000"},
        },
    }));
    flow.settle().await;
    let id = flow.conversation_id(&GROUP.to_string(), None).await;
    let turns = flow.turns(&id).await;
    assert_eq!(turns.len(), 2, "{before}: {turns:#?}");
    assert_eq!(flow.telegram_posts(GROUP), [""; 0]);
    assert_eq!(flow.slack_posts("#general"), []);
    assert_eq!(flow.model.requests().len(), 0);
}
