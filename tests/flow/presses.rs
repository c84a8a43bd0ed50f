//! Presses of buttons that no card of ours has: they end harmlessly, and people don't wait for an answer.

use serde_json::Value;
use vocative_sandbox::model::ModelReply;
use vocative_sandbox::telegram::{ANONYMOUS_ADMIN_ID, TelegramWorld};

use crate::harness::Flow;

const GROUP: i64 = TelegramWorld::GROUP;
const ANN: i64 = TelegramWorld::ANN;
const BOB: i64 = TelegramWorld::BOB;

/// Data of the form that buttons of cards have, for an approval that there is not.
const FORGED: &str = "a10190c1f200000000000000000000000ay01234567";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_waits_for_the_answer_to_a_press_that_is_nothing_to_us() {
    let mut flow = Flow::start_default().await;
    flow.model.enqueue(ModelReply::text("At three."));
    let asked = flow.telegram.say(GROUP, ANN, "@vocative_bot when?");
    let answer = flow.telegram_reply(GROUP, asked).await.message_id;
    flow.settle().await;
    let posts = flow.telegram.posts(GROUP).len();
    let press =
        |user: i64, message: i64, data: &str| flow.telegram.callback(GROUP, user, message, data);
    let gone = flow.telegram.say(GROUP, BOB, "never mind");
    assert!(flow.telegram.delete(GROUP, gone));
    let presses = [
        press(ANN, answer, "other:1"),
        press(ANN, answer, &"x".repeat(64)),
        press(ANN, answer, FORGED),
        press(ANN, asked, FORGED),
        press(BOB, gone, FORGED),
        press(ANONYMOUS_ADMIN_ID, answer, FORGED),
        press(ANN, answer, ""),
        flow.telegram.inline_callback("AgAA", ANN, FORGED),
    ];
    for (n, press) in presses.iter().enumerate() {
        let is_answered = || flow.telegram.callback_answer(press).is_some();
        flow.wait_until(&format!("press {n} is answered"), is_answered)
            .await;
    }
    flow.settle().await;
    // Bob's message is the only one that came.
    assert_eq!(flow.telegram.posts(GROUP).len(), posts + 1);
    let told = |press: &String| -> Value { flow.telegram.callback_answer(press).unwrap() };
    assert_eq!(told(&presses[0])["text"], "");
    flow.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_press_fifty_times_is_answered_fifty_times_and_does_nothing() {
    let mut flow = Flow::start_default().await;
    flow.model.enqueue(ModelReply::text("At three."));
    let asked = flow.telegram.say(GROUP, ANN, "@vocative_bot when?");
    let answer = flow.telegram_reply(GROUP, asked).await.message_id;
    let presses: Vec<String> = (0..50)
        .map(|_| flow.telegram.callback(GROUP, ANN, answer, FORGED))
        .collect();
    let are_answered = || {
        let mut presses = presses.iter();
        presses.all(|press| flow.telegram.callback_answer(press).is_some())
    };
    flow.wait_until("all presses are answered", are_answered)
        .await;
    assert_eq!(flow.telegram.bot_posts(GROUP).len(), 1);
    flow.stop().await;
}
