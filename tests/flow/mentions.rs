//! Whom an answer mentions: nobody, or, where that is allowed, people who spoke in the conversation.

use serde_json::json;
use vocative_sandbox::model::ModelReply;
use vocative_sandbox::slack::SlackPost;
use vocative_sandbox::telegram::{TelegramPost, TelegramWorld};

use crate::harness::{Flow, FlowBuilder};

const ANN: i64 = TelegramWorld::ANN;
const BOB: i64 = TelegramWorld::BOB;
const GROUP: i64 = TelegramWorld::SUPERGROUP;

/// Bob has spoken, Sue has not.
const ANSWER: &str = "@Bob knows, or @Sue does, `@Bob`. @channel";

/// Bob says something, Ann asks, and the model answers with [`ANSWER`], on both platforms.
async fn answers(flow: &Flow) -> (SlackPost, TelegramPost) {
    flow.slack.say("#general", "bob", "good morning");
    flow.telegram.say(GROUP, BOB, "good morning");
    flow.wait_until_heard().await;
    flow.model.enqueue(ModelReply::text(ANSWER));
    let root = flow.slack.say("#general", "ann", "@vocative who knows?");
    let on_slack = flow.slack_reply("#general", &root).await;
    flow.model.enqueue(ModelReply::text(ANSWER));
    let asked = flow.telegram.say(GROUP, ANN, "@vocative_bot who knows?");
    (on_slack, flow.telegram_reply(GROUP, asked).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_mentions_nobody_unless_the_channel_allows_it() {
    let flow = Flow::start_default().await;
    let (on_slack, on_telegram) = answers(&flow).await;
    let wire = format!("{} {:?}", on_slack.text, on_slack.blocks);
    assert!(!wire.contains("<@"), "{wire}");
    let entities = on_telegram.entities.to_string();
    assert!(!entities.contains("mention"), "{entities}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_it_is_allowed_people_who_spoke_are_mentioned_and_nobody_else() {
    let flow = FlowBuilder::default()
        .agent("vocative", "")
        .slack("mention_people = true")
        .telegram("allow_chats = [\"*\"]\nallow_people = [\"*\"]\nmention_people = true")
        .start()
        .await;
    let (on_slack, on_telegram) = answers(&flow).await;
    let wire = format!("{} {:?}", on_slack.text, on_slack.blocks);
    assert!(wire.contains("<@U0BOB> knows, or "), "{wire}");
    assert!(
        !wire.contains("<@U0STRANGER>") && !wire.contains("<!channel>"),
        "{wire}"
    );
    let mentions: Vec<_> = on_telegram
        .entities
        .as_array()
        .unwrap()
        .iter()
        .filter(|entity| entity["type"] == "text_mention")
        .map(|entity| json!([entity["offset"], entity["length"], entity["user"]["id"]]))
        .collect();
    assert_eq!(mentions, [json!([0, 4, BOB])]);
}
