//! Answers that the model streams: what the room gets of them, whatever becomes of the stream.

use std::time::Duration;

use vocative_sandbox::model::{ModelAct, ModelReply};
use vocative_sandbox::telegram::TelegramWorld;

use crate::harness::{Flow, FlowBuilder};

const ANN: i64 = TelegramWorld::ANN;
const GROUP: i64 = TelegramWorld::SUPERGROUP;

/// What the daemon logs with the first words of an answer.
const BEGAN: &str = "the model began to write";

fn is_streamed(flow: &Flow) -> Vec<bool> {
    let requests = flow.model.requests();
    let streamed = |body: &serde_json::Value| body["stream"] == true;
    requests
        .iter()
        .map(|request| streamed(&request.body))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_streamed_answer_reaches_both_platforms_whole() {
    let flow = Flow::start_default().await;
    let pace = Duration::from_millis(2);
    let text = "Once upon a time there was a ledge.";
    flow.model.enqueue(ModelReply::text(text).paced(9, pace));
    flow.slack.say("D0ANN", "ann", "tell");
    assert_eq!(flow.slack_post("D0ANN", |_| true).await.text, text);
    flow.model.enqueue(ModelReply::text(text).paced(9, pace));
    let question = flow.telegram.say(GROUP, ANN, "@vocative_bot tell");
    assert_eq!(flow.telegram_reply(GROUP, question).await.text, text);
    flow.settle().await;
    assert_eq!(is_streamed(&flow), [true, true]);
    assert_eq!(flow.log().matches(BEGAN).count(), 2);
    let conversation = flow.conversation_id("D0ANN", None).await;
    let turns = flow.turns(&conversation).await;
    assert_eq!(turns[1]["text"], text, "{turns:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_stops_in_the_middle_is_asked_for_again_and_the_room_gets_one_answer() {
    let flow = Flow::start_default().await;
    let half = || "Once upon".to_owned();
    flow.model
        .enqueue(ModelReply::new(ModelAct::Truncated { text: half() }));
    flow.model.enqueue(ModelReply::text("Once upon a time."));
    let root = flow.slack.say("#general", "ann", "@vocative tell");
    flow.slack_reply("#general", &root).await;
    flow.model
        .enqueue(ModelReply::new(ModelAct::BrokenOff { text: half() }));
    flow.model.enqueue(ModelReply::text("Once upon a time."));
    let question = flow.telegram.say(GROUP, ANN, "@vocative_bot tell");
    flow.telegram_reply(GROUP, question).await;
    flow.settle().await;
    let answer = "Once upon a time.".to_owned();
    assert_eq!(flow.slack_posts("#general"), [(Some(root), answer.clone())]);
    assert_eq!(flow.telegram_posts(GROUP), [answer]);
    assert_eq!(is_streamed(&flow), [true; 4]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_in_the_middle_of_a_stream_leaves_nothing_of_it() {
    let mut flow = Flow::start_default().await;
    flow.model.enqueue(ModelReply::new(ModelAct::Stalled {
        text: "Half of an".to_owned(),
    }));
    flow.slack.say("D0ANN", "ann", "tell");
    flow.wait_until("the model writes", || flow.log().contains(BEGAN))
        .await;
    flow.kill().await;
    flow.model.enqueue(ModelReply::text("A whole one."));
    flow.start().await;
    flow.slack_post("D0ANN", |_| true).await;
    flow.settle().await;
    assert_eq!(
        flow.slack_posts("D0ANN"),
        [(None, "A whole one.".to_owned())]
    );
    let conversation = flow.conversation_id("D0ANN", None).await;
    let turns = flow.turns(&conversation).await;
    assert_eq!(turns[1]["text"], "A whole one.", "{turns:?}");
    assert!(!format!("{turns:?}").contains("Half of"), "{turns:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_may_be_asked_without_streams() {
    let flow = FlowBuilder::default()
        .config("[defaults.model]\nstream = false")
        .start()
        .await;
    flow.model.enqueue(ModelReply::text("Here."));
    flow.slack.say("D0ANN", "ann", "there?");
    flow.slack_post("D0ANN", |post| post.text == "Here.").await;
    assert_eq!(is_streamed(&flow), [false]);
}

/// Meeting a limit is visible: what the model had no room for is not missing in silence.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_was_cut_off_says_so_in_the_room_and_is_kept_as_it_was_said() {
    let flow = Flow::start_default().await;
    let text = "Like this:\n\n```rust\nlet x";
    flow.model.enqueue(ModelReply::new(ModelAct::Cut {
        text: text.to_owned(),
    }));
    flow.slack.say("D0ANN", "ann", "tell");
    flow.settle().await;
    let shown = flow.slack_post("D0ANN", |_| true).await.shown();
    let end = "let x\n```\n\n(This answer ends here because it reached the length";
    assert!(shown.contains(end), "{shown}");
    let conversation = flow.conversation_id("D0ANN", None).await;
    let turns = flow.turns(&conversation).await;
    assert_eq!(turns[1]["text"], text, "{turns:?}");
}
