//! Runs that have read what their asker did not write: their calls that act ask, and their answers show no previews.

use std::net::{Ipv4Addr, SocketAddr};

use serde_json::json;
use vocative_sandbox::model::ModelReply;
use vocative_sandbox::orders::OrderServer;

use crate::harness::{Flow, FlowBuilder};

const GENERAL: &str = "#general";
const PARAMETERS: &str =
    r#"parameters = '{"type": "object", "properties": {"what": {"type": "string"}}}'"#;

/// A flow whose agent may read a page and refund something, without asking anybody by itself.
async fn trusting(settings: &str) -> (Flow, OrderServer) {
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let shop = OrderServer::start(anywhere).await.unwrap();
    let host = shop.addr();
    let tool = |name: &str, method: &str, query: &str| {
        format!(
            "[tools.{name}]\nkind = \"http\"\ndescription = \"Does it.\"\nmethod = \"{method}\"\n\
             url = \"http://{host}/orders{query}\"\nallow_private = [\"{host}\"]\n{PARAMETERS}\n"
        )
    };
    let (look, refund) = (
        tool("look", "GET", "?of={what}"),
        tool("refund", "POST", ""),
    );
    let flow = FlowBuilder::default()
        .agent("vocative", "tools = [\"look\", \"refund\"]")
        .config(&format!("{look}{refund}approval = \"never\"\n{settings}"));
    (flow.start().await, shop)
}

fn call(tool: &str) -> ModelReply {
    ModelReply::tool_call(&format!("call_{tool}"), tool, json!({"what": "tea"}))
}

fn refunds(shop: &OrderServer) -> usize {
    shop.orders().len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_acts_asks_who_asked_once_its_run_has_read_a_page() {
    let (mut flow, shop) = trusting("").await;
    // By itself the tool asks nobody.
    flow.model.enqueue(call("refund"));
    flow.model.enqueue(ModelReply::text("It is refunded."));
    let asked = flow.slack.say(GENERAL, "ann", "@vocative refund the tea");
    let told = flow.slack_reply(GENERAL, &asked).await;
    assert_eq!(told.text, "It is refunded.");
    assert_eq!(refunds(&shop), 1);

    // After a page it does.
    flow.model.enqueue(call("look"));
    flow.model.enqueue(call("refund"));
    let asked = flow
        .slack
        .say(GENERAL, "ann", "@vocative look, and refund the tea");
    let card = flow.card(&asked).await;
    assert!(
        card.text.contains("After reading: look (step 1)"),
        "{}",
        card.text
    );
    assert_eq!(refunds(&shop), 1);
    let listed = flow.cli_json(&["approvals", "list"]).await;
    assert_eq!(listed[0]["read"], json!(["look (step 1)"]));
    assert_eq!(listed[0]["approvers"], json!([["requester"]]));
    let id = flow.conversation_id("C0GENERAL", Some(&asked)).await;
    let timeline = flow
        .cli(&["conversations", "show", &id, "--timeline"])
        .await;
    let line = "read what others wrote: look (step 1)";
    assert!(timeline.stdout.contains(line), "{timeline:?}");

    flow.model
        .enqueue(ModelReply::text("Refunded: https://shop.example/orders"));
    flow.press("ann", &card, "Approve");
    flow.outcome(&card, "Approved").await;
    let answer = flow
        .slack_post(GENERAL, |post| post.text.starts_with("Refunded"))
        .await;
    assert_eq!(refunds(&shop), 2);
    assert!(answer.is_reply_in(&asked));
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_runs_it_may_say_that_a_tool_does_not_ask() {
    let (mut flow, shop) = trusting("after_untrusted = \"allow\"\n").await;
    flow.model.enqueue(call("look"));
    flow.model.enqueue(call("refund"));
    flow.model.enqueue(ModelReply::text("It is refunded."));
    let asked = flow
        .slack
        .say(GENERAL, "ann", "@vocative look, and refund the tea");
    let told = flow.slack_reply(GENERAL, &asked).await;
    assert_eq!(told.text, "It is refunded.");
    assert_eq!(refunds(&shop), 1);
    assert_eq!(flow.stop().await, Some(0));
}
