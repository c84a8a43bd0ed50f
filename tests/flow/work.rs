//! What a captured message and an answer cost the store: counted, not timed.

use serde_json::Value;
use vocative_sandbox::telegram::TelegramWorld;

use crate::harness::{Flow, FlowBuilder};

const ANN: i64 = TelegramWorld::ANN;
const GROUP: i64 = TelegramWorld::SUPERGROUP;
/// The least of so many counts: what the daemon does besides is in none or in some of them.
const TIMES: usize = 6;
const COUNTERS: [&str; 6] = ["statements", "rows", "commits", "syncs", "reads", "writes"];

/// By counter, in the order of [`COUNTERS`].
type Work = [u64; COUNTERS.len()];

fn work(status: &Value) -> Work {
    COUNTERS.map(|name| status["store"]["work"][name].as_u64().unwrap())
}

/// Waits until nothing is to be done; what was done so far, and how often was looked.
async fn work_when_done(flow: &Flow) -> (Work, u64) {
    flow.wait_until_heard().await;
    for looks in 1..1_000 {
        let status = flow.status().await;
        let is_done = ["runs", "posts"].iter().all(|queue| {
            let left = ["queued", "leased", "pending", "unknown"];
            left.iter()
                .all(|state| status[queue][state].as_u64().unwrap_or(0) == 0)
        });
        if is_done {
            return (work(&status), looks);
        }
    }
    panic!("something is left to do");
}

/// The least work that something takes which is done several times.
async fn least(flow: &Flow, what: impl AsyncFn(usize)) -> Work {
    let mut look = [u64::MAX; COUNTERS.len()];
    for _ in 0..TIMES {
        let (before, after) = (work(&flow.status().await), work(&flow.status().await));
        look = std::array::from_fn(|at| look[at].min(after[at] - before[at]));
    }
    let mut least = [u64::MAX; COUNTERS.len()];
    for number in 0..TIMES {
        let (before, _) = work_when_done(flow).await;
        what(number).await;
        let (after, looks) = work_when_done(flow).await;
        let taken = |at: usize| (after[at] - before[at]).saturating_sub(look[at] * looks);
        least = std::array::from_fn(|at| least[at].min(taken(at)));
    }
    least
}

#[track_caller]
fn assert_at_most(what: &str, work: Work, most: Work) {
    let is_so = work.iter().zip(most).all(|(count, most)| *count <= most);
    assert!(
        is_so,
        "{what} takes {work:?} of {COUNTERS:?}, and may take {most:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_message_and_an_answer_take_does_not_grow() {
    let flow = FlowBuilder::default().offline().start().await;
    let root = flow.slack.say("D0ANN", "ann", "is it up?");
    flow.slack_post("D0ANN", |post| post.ts != root).await;
    flow.telegram.say(ANN, ANN, "is it up?");
    flow.wait_until("it answers", || !flow.telegram_posts(ANN).is_empty())
        .await;
    flow.slack.say("#general", "ann", "a first line");
    flow.telegram.say(GROUP, ANN, "a first line");

    let slack = least(&flow, async |number| {
        flow.slack.say("#general", "ann", &format!("line {number}"));
    });
    assert_at_most("a message of Slack", slack.await, [22, 14, 1, 1, 1, 1]);
    let telegram = least(&flow, async |number| {
        flow.telegram.say(GROUP, ANN, &format!("line {number}"));
    });
    assert_at_most(
        "a message of Telegram",
        telegram.await,
        [28, 18, 2, 2, 1, 2],
    );
    let slack = least(&flow, async |number| {
        let posts = flow.slack_posts("D0ANN").len();
        flow.slack
            .say("D0ANN", "ann", &format!("question {number}?"));
        flow.wait_until("it answers", || flow.slack_posts("D0ANN").len() > posts)
            .await;
    });
    assert_at_most("an answer on Slack", slack.await, [380, 85, 22, 6, 36, 23]);
    let telegram = least(&flow, async |number| {
        let posts = flow.telegram_posts(ANN).len();
        flow.telegram.say(ANN, ANN, &format!("question {number}?"));
        flow.wait_until("it answers", || flow.telegram_posts(ANN).len() > posts)
            .await;
    });
    assert_at_most(
        "an answer on Telegram",
        telegram.await,
        [345, 66, 19, 6, 39, 23],
    );
}
