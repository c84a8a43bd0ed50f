//! A model that is over its limit, or refuses its account: what people and operators see of it.

use serde_json::Value;
use vocative_sandbox::model::ModelReply;
use vocative_sandbox::telegram::TelegramWorld;

use crate::harness::{Flow, FlowBuilder};

const ANN: i64 = TelegramWorld::ANN;
const BOB: i64 = TelegramWorld::BOB;
const GROUP: i64 = TelegramWorld::SUPERGROUP;

/// Waits until the queue's only question waits for what has these words.
async fn waits_for(flow: &Flow, words: &[&str]) {
    for _ in 0..600 {
        let queue = flow.cli_json(&["queue"]).await;
        let why = queue[0]["why"].as_str().unwrap_or_default();
        if words.iter().all(|word| why.contains(word)) {
            assert_eq!(queue[0]["run"]["state"], "queued", "no slot is held");
            return;
        }
    }
    panic!(
        "the queue never waits for {words:?}: {}",
        flow.cli_json(&["queue"]).await
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_key_holds_the_agent_until_somebody_acts_and_no_question_is_lost() {
    let mut flow = Flow::start_default().await;
    flow.model.enqueue(ModelReply::status(401));
    flow.telegram.say(GROUP, ANN, "@vocative_bot one?");
    waits_for(&flow, &["its model scripted, which is held", "401"]).await;
    flow.telegram.say(ANN, ANN, "two?");
    flow.wait_until_heard().await;
    let status = flow.cli_json(&["status"]).await;
    assert_eq!(status["models"][0]["state"], "held", "{status}");
    assert_eq!(status["models"][0]["agents"], Value::from(vec!["vocative"]));
    let told = flow.cli(&["status"]).await;
    assert_eq!(told.status, Some(1), "{told:?}");
    assert!(
        told.stdout.contains("vocative agents release scripted"),
        "{told:?}"
    );
    let agents = flow.cli_json(&["agents"]).await;
    assert_eq!(agents[0]["rest"]["state"], "held", "{agents}");
    assert_eq!(
        flow.model.requests().len(),
        1,
        "the second one is not sent into the refusal"
    );

    // Released too early, it is held again, by one request.
    flow.model.enqueue(ModelReply::status(401));
    let told = flow.cli(&["agents", "release", "vocative"]).await;
    assert_eq!(told.status, Some(0), "{told:?}");
    flow.wait_for_model(2).await;
    waits_for(&flow, &["is held"]).await;
    // With the key mended, a restart tries at once.
    flow.restart().await;
    flow.settle().await;
    assert_eq!(flow.telegram_posts(GROUP), ["echo: Ann: @Vocative one?"]);
    assert_eq!(flow.telegram_posts(ANN), ["echo: Ann: two?"]);
    assert_eq!(flow.model.requests().len(), 4);
    let told = flow.cli(&["status"]).await;
    assert_eq!(told.status, Some(0), "{told:?}");
    let told = flow.cli(&["agents", "release", "nobody"]).await;
    assert_eq!(told.status, Some(1), "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rate_limited_model_rests_across_a_restart_and_blocks_no_other_agent() {
    let mut flow = FlowBuilder::default()
        .agent("kael", "aliases = [\"Kael\"]")
        .agent("iris", "model = \"offline\"\naliases = [\"Iris\"]")
        .slack("default_agent = \"kael\"")
        .telegram(
            "allow_chats = [\"*\"]\nallow_people = [\"*\"]\ndefault_agent = \"kael\"\nreply_prefix = \"never\"",
        )
        .start()
        .await;
    flow.model.enqueue(ModelReply::rate_limited(300));
    flow.telegram.say(GROUP, ANN, "Kael: one?");
    waits_for(
        &flow,
        &["its model scripted, which rests", "over its limit"],
    )
    .await;
    flow.telegram.say(GROUP, BOB, "Iris: two?");
    flow.wait_until("the other agent answers in the same chat", || {
        !flow.telegram_posts(GROUP).is_empty()
    })
    .await;
    flow.restart().await;
    waits_for(&flow, &["its model scripted, which rests"]).await;
    let question = flow.telegram.say(GROUP, BOB, "Iris: three?");
    flow.telegram_reply(GROUP, question).await;
    assert_eq!(flow.model.requests().len(), 1, "the wait is kept");
    let told = flow.cli(&["status"]).await;
    assert!(
        told.stdout.contains("model     scripted is resting"),
        "{told:?}"
    );

    let told = flow.cli(&["agents", "release", "kael"]).await;
    assert!(told.stdout.contains("is asked again"), "{told:?}");
    flow.wait_for_model(2).await;
    flow.settle().await;
    assert_eq!(flow.telegram_posts(GROUP).len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_answer_within_the_room_is_told_once_and_all_can_be_tried_again_together() {
    let flow = FlowBuilder::default()
        .agent("vocative", "answer_within_s = 2")
        .start()
        .await;
    flow.model.enqueue(ModelReply::rate_limited(300));
    let question = flow.telegram.say(GROUP, ANN, "@vocative_bot one?");
    let notice = flow.telegram_reply(GROUP, question).await;
    assert!(
        notice
            .text
            .contains("the model I use took no more questions"),
        "{}",
        notice.text
    );
    flow.settle().await;
    assert_eq!(
        (
            flow.model.requests().len(),
            flow.telegram_posts(GROUP).len()
        ),
        (1, 1)
    );
    let dead = flow.cli_json(&["dead", "list"]).await;
    assert_eq!(dead["runs"].as_array().unwrap().len(), 1, "{dead}");

    let told = flow.cli(&["dead", "retry", "--agent", "nobody"]).await;
    assert!(told.stdout.contains("nothing was changed"), "{told:?}");
    let told = flow.cli(&["dead", "retry", "--since", "soon"]).await;
    assert_eq!(told.status, Some(2), "{told:?}");
    let told = flow.cli(&["agents", "release", "vocative"]).await;
    assert_eq!(told.status, Some(0), "{told:?}");
    let told = flow.cli(&["dead", "retry", "--all", "--since", "1h"]).await;
    assert!(
        told.stdout.contains("1 question is queued again"),
        "{told:?}"
    );
    flow.wait_for_model(2).await;
    flow.settle().await;
    let posts = flow.telegram_posts(GROUP);
    assert_eq!(posts.len(), 2, "{posts:?}");
    assert_eq!(posts[1], "echo: Ann: @Vocative one?");
}
