//! Where answers go: each kind of place on both platforms.

use serde_json::Value;
use vocative_sandbox::model::ModelReply;
use vocative_sandbox::telegram::TelegramWorld;
use vocative_sandbox::wire::{WireKind, WirePeer};

use crate::harness::{Flow, FlowBuilder, said};

const ANN: i64 = TelegramWorld::ANN;
const BOB: i64 = TelegramWorld::BOB;
const FORUM: i64 = TelegramWorld::FORUM;
const GROUP: i64 = TelegramWorld::SUPERGROUP;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mention_in_a_slack_channel_is_answered_in_its_thread() {
    let flow = Flow::start_default().await;
    flow.model.enqueue(ModelReply::text("At three."));
    let question = flow.slack.say("#general", "ann", "@vocative when is it?");
    flow.slack_reply("#general", &question).await;
    flow.settle().await;
    let answer = (Some(question), "At three.".to_owned());
    assert_eq!(flow.slack_posts("#general"), [answer]);
    assert_eq!(
        flow.model_history(0),
        [said("user", "Ann: @Vocative when is it?")]
    );
    assert_eq!(flow.slack.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follow_up_in_a_thread_is_answered_without_a_mention() {
    let flow = Flow::start_default().await;
    flow.model.enqueue(ModelReply::text("At three."));
    flow.model.enqueue(ModelReply::text("By Bob."));
    flow.slack.say("#general", "bob", "Build 42 is green.");
    let root = flow.slack.say("#general", "ann", "@vocative when is it?");
    flow.slack_reply("#general", &root).await;
    flow.settle().await;
    flow.slack.say_in("#general", "bob", &root, "and by whom?");
    flow.slack_post("#general", |post| post.text == "By Bob.")
        .await;
    flow.settle().await;
    let in_thread = |text: &str| (Some(root.clone()), text.to_owned());
    assert_eq!(
        flow.slack_posts("#general"),
        [in_thread("At three."), in_thread("By Bob.")]
    );
    assert_eq!(
        flow.model_history(1),
        [
            said("user", "Ann: @Vocative when is it?"),
            said("assistant", "At three."),
            said("user", "Bob: and by whom?"),
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_threads_prompt_has_the_turns_before_its_root() {
    let agent = "[defaults.agent.prompt]\naddressed_only = false";
    let flow = FlowBuilder::default().config(agent).start().await;
    flow.slack.say("#general", "bob", "Build 42 is green.");
    let root = flow.slack.say("#general", "ann", "@vocative which build?");
    flow.slack_reply("#general", &root).await;
    flow.settle().await;
    flow.slack.say("#general", "bob", "Lunch?");
    flow.settle().await;
    flow.slack.say_in("#general", "ann", &root, "is it green?");
    flow.wait_for_model(2).await;
    flow.settle().await;
    assert_eq!(
        flow.model_history(1),
        [
            said("user", "Bob: Build 42 is green."),
            said("user", "Ann: @Vocative which build?"),
            said("assistant", "echo: Ann: @Vocative which build?"),
            said("user", "Ann: is it green?"),
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follow_up_to_somebody_else_is_not_answered() {
    let flow = Flow::start_default().await;
    let root = flow.slack.say("#general", "ann", "@vocative when is it?");
    flow.slack_reply("#general", &root).await;
    flow.slack
        .say_in("#general", "ann", &root, "@bob do you know?");
    flow.settle().await;
    assert_eq!(flow.slack_posts("#general").len(), 1);
    assert_eq!(flow.model.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_direct_message_is_answered_in_line() {
    let flow = Flow::start_default().await;
    flow.model.enqueue(ModelReply::text("Hello Ann."));
    flow.slack.say("D0ANN", "ann", "hello");
    flow.slack_post("D0ANN", |_| true).await;
    flow.settle().await;
    assert_eq!(flow.slack_posts("D0ANN"), [(None, "Hello Ann.".to_owned())]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_direct_message_needs_a_mention_and_is_answered_in_line() {
    let flow = Flow::start_default().await;
    flow.model.enqueue(ModelReply::text("Yes."));
    flow.slack.say("G0GROUP", "ann", "anybody there?");
    flow.settle().await;
    flow.slack.say("G0GROUP", "ann", "@vocative are you there?");
    flow.slack_post("G0GROUP", |_| true).await;
    flow.settle().await;
    assert_eq!(flow.slack_posts("G0GROUP"), [(None, "Yes.".to_owned())]);
    let conversation = flow.conversation_id("G0GROUP", None).await;
    assert_eq!(flow.turns(&conversation).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mention_in_a_telegram_group_is_answered_as_a_reply() {
    let flow = Flow::start_default().await;
    flow.model.enqueue(ModelReply::text("Bob did."));
    flow.telegram.say(GROUP, BOB, "Lunch at 12?");
    let question = flow.telegram.say(GROUP, ANN, "@vocative_bot who asked?");
    let answer = flow.telegram_reply(GROUP, question).await;
    flow.settle().await;
    assert_eq!((answer.text.as_str(), answer.thread), ("Bob did.", None));
    assert_eq!(flow.telegram_posts(GROUP), ["Bob did."]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_to_the_bot_needs_no_mention_in_a_telegram_group() {
    let flow = Flow::start_default().await;
    let question = flow.telegram.say(GROUP, ANN, "@vocative_bot one?");
    let answer = flow.telegram_reply(GROUP, question).await;
    let follow_up = flow.telegram.reply(GROUP, BOB, answer.message_id, "two?");
    flow.telegram_reply(GROUP, follow_up).await;
    flow.telegram.say(GROUP, BOB, "three?");
    flow.settle().await;
    assert_eq!(flow.telegram_posts(GROUP).len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_telegram_private_chat_is_answered_without_a_mention() {
    let flow = Flow::start_default().await;
    let question = flow.telegram.say(ANN, ANN, "hi there");
    let answer = flow.telegram_reply(ANN, question).await;
    assert_eq!(answer.text, "echo: Ann: hi there");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_is_a_room_of_its_own() {
    let flow = Flow::start_default().await;
    let (incident, deploys) = (TelegramWorld::TOPIC_INCIDENT, TelegramWorld::TOPIC_DEPLOYS);
    let first = flow
        .telegram
        .say_in_topic(FORUM, incident, ANN, "@vocative_bot what burns?");
    let answer = flow.telegram_reply(FORUM, first).await;
    assert_eq!(answer.thread, Some(incident));
    let second = flow
        .telegram
        .say_in_topic(FORUM, deploys, BOB, "@vocative_bot what ships?");
    let answer = flow.telegram_reply(FORUM, second).await;
    assert_eq!(answer.thread, Some(deploys));
    assert_eq!(
        flow.model_history(1),
        [said("user", "Bob: @Vocative what ships?")]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_general_topic_is_answered_without_a_thread_id() {
    let flow = Flow::start_default().await;
    let question = flow.telegram.say(FORUM, ANN, "@vocative_bot all well?");
    let answer = flow.telegram_reply(FORUM, question).await;
    assert_eq!(answer.thread, None);
    let records = flow.wire.records();
    let mut sends = records.iter().filter(|record| {
        (record.peer, record.kind) == (WirePeer::Telegram, WireKind::Request)
            && record.name == "sendMessage"
    });
    let send = sends.next().unwrap();
    assert_eq!(send.body["message_thread_id"], Value::Null);
    assert_eq!(sends.next(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_platforms_are_answered_at_once() {
    let flow = FlowBuilder::default()
        .agent("vocative", "overlap = \"queue\"")
        .start()
        .await;
    let mut asked = Vec::new();
    for n in 0..10 {
        let on_slack = format!("@vocative slack {n}?");
        let on_telegram = format!("@vocative_bot telegram {n}?");
        let ts = flow.slack.say("#general", "ann", &on_slack);
        asked.push((n, ts, flow.telegram.say(GROUP, BOB, &on_telegram)));
    }
    for (n, ts, message) in &asked {
        let answer = flow.slack_reply("#general", ts).await;
        assert_eq!(answer.text, format!("echo: Ann: @Vocative slack {n}?"));
        let answer = flow.telegram_reply(GROUP, *message).await;
        assert_eq!(answer.text, format!("echo: Bob: @Vocative telegram {n}?"));
    }
    flow.settle().await;
    assert_eq!(flow.slack_posts("#general").len(), asked.len());
    assert_eq!(flow.telegram_posts(GROUP).len(), asked.len());
}
