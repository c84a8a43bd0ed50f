//! Tools by configuration, as people and their models meet them.

use std::net::{Ipv4Addr, SocketAddr};

use serde_json::{Value, json};
use vocative_sandbox::model::ModelReply;
use vocative_sandbox::orders::OrderServer;

use crate::harness::{Flow, FlowBuilder};

const GENERAL: &str = "#general";

/// A flow whose agent may order something, for Ann alone.
async fn with_shop() -> (Flow, OrderServer) {
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let shop = OrderServer::start(anywhere).await.unwrap();
    let host = shop.addr();
    let settings = format!(
        "[tools.order]\nkind = \"http\"\ndescription = \"Orders something.\"\nmethod = \"POST\"\n\
         url = \"http://{host}/orders\"\nallow_private = [\"{host}\"]\nallow_people = [\"acme/U0ANN\"]\n\
         approval = \"never\"\ncalls_per_day = 2\nresult = \"/order\"\n\
         parameters = '{{\"type\": \"object\", \"required\": [\"what\"], \"properties\": {{\"what\": {{\"type\": \"string\"}}}}}}'\n"
    );
    let flow = FlowBuilder::default()
        .agent("vocative", "tools = [\"conversation_search\", \"order\"]")
        .config(&settings)
        .start()
        .await;
    (flow, shop)
}

/// The names of the tools that the model was offered in its last request.
fn offered(flow: &Flow) -> Vec<String> {
    let request = flow.model.requests().pop().unwrap();
    let tools = request.body["tools"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let names = tools.iter().map(|tool| &tool["function"]["name"]);
    names.filter_map(Value::as_str).map(str::to_owned).collect()
}

async fn ask(flow: &Flow, who: &str, text: &str) -> String {
    let asked = flow.slack.say(GENERAL, who, &format!("@vocative {text}"));
    flow.slack_reply(GENERAL, &asked).await.text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_acts_once_for_whom_it_may_and_as_often_as_it_may() {
    let (mut flow, shop) = with_shop().await;
    for what in ["tea", "milk", "bread"] {
        let order = json!({"what": what});
        flow.model
            .enqueue(ModelReply::tool_call("call_1", "order", order));
        flow.model.enqueue(ModelReply::text("Done, or not."));
        assert_eq!(
            ask(&flow, "ann", &format!("order {what}")).await,
            "Done, or not."
        );
    }
    assert_eq!(offered(&flow), ["conversation_search", "order"]);
    let orders: Vec<Value> = shop.orders().into_iter().map(|order| order.body).collect();
    assert_eq!(orders, [json!({"what": "tea"}), json!({"what": "milk"})]);
    let told = flow.model.requests().pop().unwrap().body.to_string();
    assert!(told.contains("as often as it may be in a day"), "{told}");

    flow.model.enqueue(ModelReply::text("I can't."));
    ask(&flow, "bob", "order jam").await;
    assert_eq!(offered(&flow), ["conversation_search"]);

    let status = flow.status().await;
    let counts =
        json!([{"tool": "order", "begun": 2, "done": 2, "failed": 0, "unknown": 0, "denied": 1}]);
    assert_eq!(status["tools"], counts);
    let shown = flow.cli(&["tools", "list"]).await;
    let words = |line: &str| line.split_whitespace().take(4).map(str::to_owned).collect();
    let rows: Vec<Vec<String>> = shown.stdout.lines().map(words).collect();
    let order = ["order", "http", "once", "vocative"];
    assert!(rows.iter().any(|row| *row == order), "{shown:?}");
    let called = flow
        .cli(&["tools", "call", "order", r#"{"what": "jam"}"#])
        .await;
    assert_eq!(called.status, Some(0), "{called:?}");
    assert!(called.stdout.contains(r#""data":3"#), "{called:?}");
    let wrong = flow
        .cli(&["tools", "call", "order", r#"{"who": "jam"}"#])
        .await;
    assert_eq!(wrong.status, Some(1), "{wrong:?}");
    assert!(wrong.stdout.contains("`what` is missing"), "{wrong:?}");
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_tool_says_is_the_answer_where_it_is_to_be() {
    let (mut flow, shop) = with_shop().await;
    flow.reconfigure(
        "tools = [\"conversation_search\", \"order\"]",
        "tools = [\"conversation_search\", \"order\"]\nstop_after_tools = [\"order\"]",
    );
    flow.reload().await;
    let order = json!({"what": "tea"});
    flow.model
        .enqueue(ModelReply::tool_call("call_1", "order", order));
    let said = ask(&flow, "ann", "order tea").await;
    assert!(
        said.contains('1') && !said.contains("instruction"),
        "{said}"
    );
    assert_eq!(flow.model.requests().len(), 1);
    assert_eq!(shop.orders().len(), 1);
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_call_ends_the_run_where_there_is_no_answer_without_it() {
    let (mut flow, shop) = with_shop().await;
    flow.reconfigure(
        "tools = [\"conversation_search\", \"order\"]",
        "tools = [\"conversation_search\", \"order\"]\nstop_after_failed_tools = [\"order\"]",
    );
    flow.reload().await;
    let calls = [json!({"query": "tea"}), json!({"who": "tea"})];
    for (call, tool) in calls.into_iter().zip(["conversation_search", "order"]) {
        flow.model.enqueue(ModelReply::tool_call(tool, tool, call));
    }
    let said = ask(&flow, "ann", "order tea").await;
    assert!(said.contains("my call of order did not succeed"), "{said}");
    assert_eq!(flow.model.requests().len(), 2);
    assert_eq!(shop.orders().len(), 0);
    assert_eq!(flow.status().await["runs"]["dead"], 0);
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_is_json_where_it_is_to_be_and_never_something_else() {
    let schema = r#"{"type": "object", "required": ["urgent"], "properties": {"urgent": {"type": "boolean"}}}"#;
    let mut flow = FlowBuilder::default()
        .agent("vocative", &format!("answer_schema = '{schema}'"))
        .start()
        .await;
    flow.model
        .enqueue(ModelReply::text("It is urgent, I think."));
    flow.model
        .enqueue(ModelReply::text("```json\n{\"urgent\": true}\n```"));
    let said = ask(&flow, "ann", "is it urgent?").await;
    assert_eq!(said, "{\"urgent\": true}");
    let asked = flow.model.requests();
    let first = asked[0].body.to_string();
    assert!(first.contains("this JSON schema describes"), "{first}");
    let again = asked[1].body.to_string();
    assert!(again.contains("is not what the schema says"), "{again}");

    for _ in 0..3 {
        flow.model
            .enqueue(ModelReply::text("It is urgent, I think."));
    }
    let said = ask(&flow, "ann", "and now?").await;
    assert!(
        said.starts_with("I tried 3 times to put my answer"),
        "{said}"
    );
    assert_eq!(flow.model.requests().len(), 5);
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arguments_that_are_broken_go_back_to_the_model() {
    let (mut flow, shop) = with_shop().await;
    flow.model
        .enqueue(ModelReply::tool_call("call_1", "order", json!({"what": 7})));
    flow.model.enqueue(ModelReply::tool_call(
        "call_2",
        "order",
        json!({"what": "tea"}),
    ));
    flow.model.enqueue(ModelReply::text("It is ordered."));
    assert_eq!(ask(&flow, "ann", "order 7 teas").await, "It is ordered.");
    assert_eq!(shop.orders().len(), 1);
    let told = flow.model.requests().pop().unwrap().body.to_string();
    assert!(told.contains("`what` must be string, not number"), "{told}");
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chat_allows_some_of_its_agents_tools() {
    let (flow, _shop) = with_shop().await;
    flow.reconfigure(
        "[channels.telegram.team]\n",
        "[channels.slack.acme.chats.C0GENERAL]\ntools = [\"conversation_search\"]\n[channels.telegram.team]\n",
    );
    flow.reload().await;
    for (room, expected) in [
        (GENERAL, vec!["conversation_search"]),
        ("#ops", vec!["conversation_search", "order"]),
    ] {
        flow.model.enqueue(ModelReply::text("Yes."));
        let asked = flow.slack.say(room, "ann", "@vocative are you there?");
        flow.slack_reply(room, &asked).await;
        assert_eq!(offered(&flow), expected, "{room}");
    }
    flow.reconfigure(
        "tools = [\"conversation_search\"]\n[chan",
        "tools = [\"ordr\"]\n[chan",
    );
    let told = flow.cli(&["check"]).await;
    assert!(told.stderr.contains("did you mean \"order\"?"), "{told:?}");
}
