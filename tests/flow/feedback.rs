//! Thumbs of people on answers, on both platforms: counted once, taken back, and only of who is served.

use serde_json::json;
use vocative_sandbox::model::ModelReply;
use vocative_sandbox::telegram::TelegramWorld;

use crate::harness::{Flow, FlowBuilder};

const GENERAL: &str = "#general";
const GROUP: i64 = TelegramWorld::SUPERGROUP;

impl Flow {
    /// Once all is captured, the agent's answers have so many thumbs.
    async fn thumbs(&self, up: u64, down: u64) {
        self.settle().await;
        let agents = self.cli_json(&["agents"]).await;
        assert_eq!(
            agents[0]["thumbs"],
            json!({"up": up, "down": down}),
            "{agents}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thumb_on_an_answer_is_kept_with_its_run_until_it_is_taken_back() {
    let settings = "[channels.slack.acme]\nallow_people = [\"U0ANN\"]";
    let mut flow = FlowBuilder::default().start().await;
    flow.model.enqueue(ModelReply::text("At four."));
    let asked = flow.slack.say(GENERAL, "ann", "@vocative when is tea?");
    let answer = flow.slack_reply(GENERAL, &asked).await;
    flow.settle().await;

    // What is no thumb, and a thumb on what people said, say nothing of the agent.
    flow.slack.react(GENERAL, "ann", &answer.ts, "eyes");
    flow.slack.react(GENERAL, "ann", &asked, "thumbsup");
    flow.slack
        .react(GENERAL, "ann", &answer.ts, "+1::skin-tone-3");
    flow.slack.react(GENERAL, "bob", &answer.ts, "thumbsdown");
    flow.thumbs(1, 1).await;

    // It is there after a kill, and shown with its run.
    flow.kill().await;
    flow.start().await;
    flow.slack.unreact(GENERAL, "bob", &answer.ts, "thumbsdown");
    flow.thumbs(1, 0).await;
    let story = flow.story(&asked).await;
    assert_eq!(story["thumbs"], json!({"up": 1, "down": 0}), "{story}");

    let stats = flow.cli_json(&["conversations", "stats", "acme/#general"]);
    let stats = stats.await;
    let figure = |name: &str| stats[name].as_u64();
    let figures = ["messages_of_people", "runs", "runs_answered"].map(figure);
    assert_eq!(figures, [Some(1); 3], "{stats}");
    assert_eq!(stats["thumbs"], json!({"up": 1, "down": 0}), "{stats}");
    let shown = flow.cli(&["conversations", "stats", "acme/#general", "--since", "1d"]);
    let shown = shown.await;
    for words in ["answers took", "1 up, 0 down", "tokens"] {
        assert!(shown.stdout.contains(words), "{words} in {shown:?}");
    }

    // Of who is not served nothing is kept.
    flow.reconfigure("[channels.slack.acme]", settings);
    flow.reload().await;
    flow.slack.react(GENERAL, "bob", &answer.ts, "thumbsdown");
    flow.slack
        .unreact(GENERAL, "ann", &answer.ts, "+1::skin-tone-3");
    flow.thumbs(0, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn telegram_tells_of_thumbs_where_the_bot_is_an_administrator() {
    let flow = FlowBuilder::default().start().await;
    flow.telegram.promote_bot(GROUP, TelegramWorld::ANN);
    flow.model.enqueue(ModelReply::text("At four."));
    flow.telegram
        .say(GROUP, TelegramWorld::ANN, "@vocative_bot when is tea?");
    let is_answer = |post: &vocative_sandbox::telegram::TelegramPost| post.by_bot;
    let answer = flow
        .telegram
        .wait_for_post(GROUP, is_answer, crate::harness::WAIT)
        .await;
    let answer = answer.expect("an answer").message_id;
    flow.settle().await;
    flow.telegram.react(GROUP, TelegramWorld::BOB, answer, "👎");
    flow.thumbs(0, 1).await;
    // A person has one word on an answer.
    flow.telegram.react(GROUP, TelegramWorld::BOB, answer, "👍");
    flow.thumbs(1, 0).await;
}
