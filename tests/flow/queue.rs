//! What operators see of questions that wait or were given up, and what they can do about them.

use serde_json::Value;
use vocative_sandbox::model::ModelReply;
use vocative_sandbox::telegram::TelegramWorld;

use crate::harness::{Flow, FlowBuilder};

const ANN: i64 = TelegramWorld::ANN;
const BOB: i64 = TelegramWorld::BOB;
const GROUP: i64 = TelegramWorld::SUPERGROUP;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_queue_says_who_waits_for_what_and_lets_one_be_cancelled() {
    let flow = Flow::start_default().await;
    flow.model.hold();
    flow.telegram.say(GROUP, ANN, "@vocative_bot one?");
    flow.wait_for_model(1).await;
    flow.telegram.say(GROUP, BOB, "@vocative_bot two?");
    flow.wait_until_heard().await;
    let queue = flow.cli_json(&["queue"]).await;
    let waits: Vec<[&str; 4]> = queue.as_array().unwrap().iter().map(line).collect();
    let expected = [
        [
            "Ann",
            "@Team Bot one?",
            "leased",
            "its answer: it is at work",
        ],
        [
            "Bob",
            "@Team Bot two?",
            "queued",
            "an earlier question of its conversation",
        ],
    ];
    assert_eq!(waits, expected);
    // The one at work lets go at once, with the model still held.
    let working = queue[0]["run"]["id"].as_str().unwrap();
    let told = flow.cli(&["queue", "cancel", working]).await;
    assert_eq!(told.status, Some(0), "{told:?}");
    flow.wait_for_model(2).await;
    flow.model.release();
    flow.settle().await;
    assert_eq!(flow.telegram_posts(GROUP), ["echo: Bob: @Vocative two?"]);
    assert_eq!(flow.cli_json(&["queue"]).await, Value::Array(vec![]));
}

fn line(queued: &Value) -> [&str; 4] {
    [
        queued["person"].as_str().unwrap(),
        queued["texts"][0].as_str().unwrap(),
        queued["run"]["state"].as_str().unwrap(),
        queued["why"].as_str().unwrap(),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_that_was_given_up_silences_nobody_and_can_be_tried_again_or_dropped() {
    let flow = FlowBuilder::default().start().await;
    for _ in 0..2 {
        flow.model.enqueue(ModelReply::status(400));
        let question = flow.telegram.say(GROUP, ANN, "@vocative_bot why?");
        flow.telegram_reply(GROUP, question).await;
    }
    flow.settle().await;
    let dead = flow.cli_json(&["dead", "list"]).await;
    let runs = dead["runs"].as_array().unwrap();
    assert_eq!((runs.len(), &dead["posts"]), (2, &Value::Array(vec![])));
    let id = |n: usize| runs[n]["run"]["id"].as_str().unwrap();
    let shown = flow.cli(&["dead", "show", id(0)]).await.stdout;
    assert!(
        shown.contains("HTTP 400") && shown.contains("@Team Bot why?"),
        "{shown}"
    );
    let question = flow.telegram.say(GROUP, BOB, "@vocative_bot and me?");
    flow.telegram_reply(GROUP, question).await;

    let told = flow.cli(&["dead", "drop", id(0)]).await;
    assert_eq!(told.status, Some(0), "{told:?}");
    let told = flow.cli(&["dead", "retry", id(1)]).await;
    assert_eq!(told.status, Some(0), "{told:?}");
    flow.wait_for_model(4).await;
    flow.settle().await;
    let posts = flow.telegram_posts(GROUP);
    assert_eq!(posts.len(), 4);
    assert_eq!(posts[3], "echo: Ann: @Vocative why?");
    let told = flow.cli(&["dead", "retry", id(1)]).await;
    assert_eq!(told.status, Some(1), "{told:?}");
    assert!(told.stderr.contains("vocative dead list"), "{told:?}");
    let dead = flow.cli_json(&["dead", "list"]).await;
    assert_eq!(dead["runs"], Value::Array(vec![]));
}
