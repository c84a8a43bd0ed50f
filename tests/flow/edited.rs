//! Answers that change because their question was edited.

use rusqlite::Connection;
use serde_json::Value;
use vocative_sandbox::model::ModelReply;
use vocative_sandbox::slack::{CallFault, SlackPost};
use vocative_sandbox::telegram::TelegramWorld;
use vocative_sandbox::wire::{WireKind, WirePeer};

use crate::harness::{Flow, FlowBuilder, said};

const ANN: i64 = TelegramWorld::ANN;
const GROUP: i64 = TelegramWorld::SUPERGROUP;
const OPEN: &str = "allow_chats = [\"*\"]\nallow_people = [\"*\"]";
const AN_HOUR_MS: i64 = 3_600_000;

async fn start() -> Flow {
    let manners = ["slack.acme", "telegram.team"]
        .map(|channel| format!("[channels.{channel}.manners]\nedit_answer_within_s = 600\n"));
    let flow = FlowBuilder::default()
        .telegram(OPEN)
        .config(&manners.concat());
    flow.start().await
}

/// Asks in the Slack channel and waits until the answer is out.
async fn ask(flow: &Flow) -> String {
    flow.model.enqueue(ModelReply::text("At nine."));
    let asked = flow.slack.say("#general", "ann", "@vocative when?");
    flow.slack_reply("#general", &asked).await;
    flow.settle().await;
    asked
}

fn edit(flow: &Flow, asked: &str) {
    flow.slack.edit("#general", asked, "<@U0VOCATIVE> where?");
}

/// The turns of the thread below a question: their texts.
async fn thread(flow: &Flow, asked: &str) -> Vec<(String, u64)> {
    let id = flow.conversation_id("C0GENERAL", Some(asked)).await;
    let turns = flow.turns(&id).await;
    let told = |turn: &Value| {
        let text = turn["text"].as_str().unwrap_or_default().to_owned();
        (text, turn["revision"].as_u64().unwrap_or_default())
    };
    turns.iter().map(told).collect()
}

/// The earlier texts that are kept of answers.
fn earlier(flow: &Flow) -> Vec<String> {
    let connection = Connection::open(flow.directory().join("data/vocative.db")).unwrap();
    let sql = "SELECT v.content FROM revisions v JOIN turns t ON t.seq = v.turn_seq
               WHERE NOT t.is_inbound ORDER BY t.seq";
    let mut statement = connection.prepare(sql).unwrap();
    let texts = statement.query_map([], |row| row.get(0)).unwrap();
    texts.map(Result::unwrap).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_changes_with_its_question_on_both_platforms() {
    let flow = start().await;
    let on_slack = ask(&flow).await;
    flow.model.enqueue(ModelReply::text("At noon."));
    let on_telegram = flow.telegram.say(GROUP, ANN, "@vocative_bot when?");
    flow.telegram_reply(GROUP, on_telegram).await;
    flow.settle().await;

    flow.model.enqueue(ModelReply::text("In the hall."));
    edit(&flow, &on_slack);
    flow.slack_post("#general", |post| post.shown() == "In the hall.")
        .await;
    flow.settle().await;
    let posts = flow.slack_posts("#general");
    assert_eq!(posts, [(Some(on_slack.clone()), "In the hall.".to_owned())]);
    let read = flow.model_history(2);
    assert_eq!(read, [said("user", "Ann: @Vocative where?")]);
    assert_eq!(
        thread(&flow, &on_slack).await,
        [("In the hall.".to_owned(), 2)]
    );

    flow.model.enqueue(ModelReply::text("In the yard."));
    flow.telegram
        .edit(GROUP, on_telegram, "@vocative_bot where?");
    flow.wait_for_model(4).await;
    flow.settle().await;
    let posts = flow.telegram.bot_posts(GROUP);
    let texts: Vec<_> = posts
        .iter()
        .map(|post| (post.text.as_str(), post.edited))
        .collect();
    assert_eq!(texts, [("In the yard.", true)]);
    assert_eq!(earlier(&flow), ["At nine.", "At noon."]);

    // What was answered goes on: a reply in the thread reads the answer as it is now.
    flow.slack.say_in("#general", "ann", &on_slack, "thank you");
    flow.wait_for_model(5).await;
    let read = flow.model_history(4);
    let texts: Vec<&str> = read.iter().map(|(_, text)| text.as_str()).collect();
    assert!(
        texts.iter().any(|text| text.contains("In the hall.")),
        "{texts:?}"
    );
    assert!(
        !texts.iter().any(|text| text.contains("At nine.")),
        "{texts:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_cannot_be_edited_any_more_is_posted_anew() {
    let flow = start().await;
    let asked = ask(&flow).await;
    let refusal = CallFault::Error("cant_update_message".to_owned());
    flow.slack.faults().next("chat.update", refusal);
    flow.model.enqueue(ModelReply::text("In the hall."));
    edit(&flow, &asked);
    flow.slack_post("#general", |post| post.shown() == "In the hall.")
        .await;
    flow.settle().await;
    let mut posts = flow.slack.posts("#general");
    posts.retain(|post| post.user.as_deref() == Some("U0VOCATIVE") && !post.deleted);
    let shown: Vec<String> = posts.iter().map(SlackPost::shown).collect();
    assert_eq!(shown, ["In the hall."]);
    assert_eq!(
        thread(&flow, &asked).await,
        [("In the hall.".to_owned(), 2)]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_that_comes_late_or_says_the_same_changes_nothing() {
    let flow = start().await;
    let asked = ask(&flow).await;
    flow.slack.edit("#general", &asked, "<@U0VOCATIVE> when?");
    flow.slack.set_clock_offset_ms(AN_HOUR_MS);
    edit(&flow, &asked);
    flow.settle().await;
    assert_eq!(flow.model.requests().len(), 1);
    let posts = flow.slack_posts("#general");
    assert_eq!(posts, [(Some(asked.clone()), "At nine.".to_owned())]);
    let room = flow.conversation_id("C0GENERAL", None).await;
    assert!(flow.turns(&room).await[0].to_string().contains("where?"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_that_was_captured_is_answered_once_whatever_is_killed_and_told_again() {
    let mut flow = start().await;
    let asked = ask(&flow).await;
    flow.model.hold();
    edit(&flow, &asked);
    flow.wait_for_model(2).await;
    flow.wait_until_heard().await;
    flow.kill().await;
    flow.model.enqueue(ModelReply::text("In the hall."));
    flow.model.enqueue(ModelReply::text("In the hall."));
    flow.model.release();
    flow.start().await;
    flow.slack_post("#general", |post| post.shown() == "In the hall.")
        .await;
    flow.settle().await;
    let asked_so_often = flow.model.requests().len();

    // The platform tells of the edit once more.
    let records = flow.wire.records();
    let event = records
        .iter()
        .filter(|it| it.peer == WirePeer::Slack && it.kind == WireKind::FrameOut)
        .map(|it| &it.body["payload"]["event"])
        .find(|event| event["subtype"] == "message_changed" && event["message"]["ts"] == *asked)
        .expect("the edit was told");
    flow.slack.raw_event(event.clone());
    flow.settle().await;
    assert_eq!(flow.model.requests().len(), asked_so_often);
    let posts = flow.slack_posts("#general");
    assert_eq!(posts, [(Some(asked.clone()), "In the hall.".to_owned())]);
    assert_eq!(
        thread(&flow, &asked).await,
        [("In the hall.".to_owned(), 2)]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_while_the_answer_is_written_is_what_is_answered() {
    let flow = start().await;
    flow.model.hold();
    let asked = flow.slack.say("#general", "ann", "@vocative when?");
    flow.wait_for_model(1).await;
    edit(&flow, &asked);
    flow.wait_for_model(2).await;
    // So it is while the second one is written.
    flow.slack
        .edit("#general", &asked, "<@U0VOCATIVE> why, after all?");
    flow.wait_for_model(3).await;
    flow.model.release();
    flow.slack_reply("#general", &asked).await;
    flow.settle().await;
    let posts = flow.slack_posts("#general");
    let answer = "echo: Ann: @Vocative why, after all?".to_owned();
    assert_eq!(posts, [(Some(asked.clone()), answer.clone())]);
    assert_eq!(thread(&flow, &asked).await, [(answer, 1)]);
}
