//! The very first start, and the list of chats that every start begins with.

use vocative_sandbox::slack::{CallFault, RetryPlan};
use vocative_sandbox::wire::WireKind;

use crate::catchup::{acme, started, wait_until_read};
use crate::harness::{Flow, FlowBuilder};

const LIST: &str = "users.conversations";

/// When calls of a method came, in milliseconds since the Unix epoch.
fn calls_ms(flow: &Flow, method: &str) -> Vec<i64> {
    let records = flow.wire.records().into_iter();
    let calls = records.filter(|it| it.kind == WireKind::Request && it.name == method);
    calls.map(|call| call.at_ms).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_slack_gives_up_when_the_first_start_is_killed_is_answered_by_the_second() {
    let mut flow = FlowBuilder::default().prepare().await;
    let faults = flow.slack.faults();
    faults.set_retry_plan(RetryPlan {
        after_ms: Vec::new(),
        ..RetryPlan::default()
    });
    for _ in 0..500 {
        faults.next("apps.connections.open", CallFault::Status(500));
    }
    flow.spawn();
    flow.wait_until("the daemon knows its account and asks for a socket", || {
        !calls_ms(&flow, "apps.connections.open").is_empty()
    })
    .await;
    flow.kill().await;

    flow.slack.faults().clear();
    flow.slack.faults().set_retry_plan(RetryPlan {
        after_ms: Vec::new(),
        ..RetryPlan::default()
    });
    let asked = flow.slack.say("#general", "ann", "@vocative what is up?");
    flow.wait_until("Slack has given it up", || {
        !flow.slack.lost_payloads().is_empty()
    })
    .await;
    flow.start().await;
    flow.slack_reply("#general", &asked).await;
    let status = wait_until_read(&flow).await;
    assert!(acme(&status)["unread_from_ms"].is_null());
    flow.settle().await;
    assert_eq!(flow.slack_posts("#general").len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_list_of_chats_costs_a_start_what_slack_says_and_no_more() {
    let mut flow = started(FlowBuilder::default()).await;
    let before = calls_ms(&flow, LIST).len();
    flow.slack.faults().next(LIST, CallFault::RateLimited(1));
    flow.restart().await;
    wait_until_read(&flow).await;
    let calls = calls_ms(&flow, LIST).split_off(before);
    // One that was refused; then one for each kind of chat.
    assert_eq!(calls.len(), 5, "{calls:?}");
    let took_ms = calls.last().unwrap_or(&0) - calls.first().unwrap_or(&0);
    assert!((1_000..5_000).contains(&took_ms), "{took_ms} ms");
}
