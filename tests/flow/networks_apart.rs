//! Networks where something is apart from the worked orders: models that refuse or rest, hooks of single agents,
//! questions of several people, and agents that fail.

use std::net::{Ipv4Addr, SocketAddr};

use serde_json::{Value, json};
use vocative_sandbox::hooks::HookServer;
use vocative_sandbox::model::{ModelReply, ModelServer};
use vocative_sandbox::wire::WireLog;

use crate::harness::{Flow, FlowBuilder};
use crate::networks::{GENERAL, order, plain, rules, team};

fn anywhere() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

const ROUTED: &str = "[networks.support.descriptions]\nlook = \"Looks things up.\"\ndesk = \"All else.\"\n\
                      [[networks.support.rules]]\nask_router = true\nat_most = 5\n";
const DONE: &str = r#"{"agent": null, "done": true, "reason": "answered"}"#;

fn pick(agent: &str) -> String {
    format!(r#"{{"agent": "{agent}", "done": false, "reason": "it fits"}}"#)
}

/// A model `other` on a server of its own, as TOML.
fn other_model(server: &ModelServer) -> String {
    format!(
        "[models.other]\nprovider = \"openai\"\nmodel = \"loopback-other\"\nbase_url = \"{}\"\n\
         api_key = \"env:FLOW_MODEL_KEY\"\n",
        server.openai_url()
    )
}

/// Asks, and returns the answer with what operators are shown of its run.
async fn answer(flow: &Flow, text: &str) -> (String, Value) {
    let asked = flow.ask_team(text);
    let told = flow.slack_reply(GENERAL, &asked).await.text;
    flow.settle().await;
    (told, flow.story(&asked).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_router_that_is_refused_behind_a_wrong_answer_leaves_no_word_to_the_agent() {
    let mut flow = team(
        &plain(&["look", "desk"]),
        "default_agent = \"desk\"",
        ROUTED,
    )
    .start()
    .await;
    // It names nobody that there is, and its second question is refused in each form.
    flow.script(&[&pick("lookup")]);
    for _ in 0..3 {
        flow.model.enqueue(ModelReply::status(400));
    }
    flow.script(&["Here I am.", DONE]);
    let (told, story) = answer(&flow, "where is it?").await;
    assert_eq!(told, "Here I am.", "{story:#}");
    assert_eq!(order(&story), "R0 desk R1 ■ done");
    assert_eq!(story["decisions"][0]["by"], "default");
    // A question that is refused in every form says nothing of the forms.
    let last = &flow.model.requests()[5].body;
    assert!(
        last["response_format"]["json_schema"].is_object(),
        "{last:#}"
    );
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_form_that_is_refused_is_not_tried_again() {
    let mut flow = team(
        &plain(&["look", "desk"]),
        "default_agent = \"desk\"",
        ROUTED,
    )
    .start()
    .await;
    flow.model.enqueue(ModelReply::status(400));
    flow.model.enqueue(ModelReply::tool_call(
        "c1",
        "select_agent",
        json!({"name": "look"}),
    ));
    flow.script(&["42"]);
    flow.model
        .enqueue(ModelReply::tool_call("c2", "done", json!({})));
    let (told, story) = answer(&flow, "which order?").await;
    assert_eq!(told, "42", "{story:#}");
    assert_eq!(order(&story), "R0 look R1 ■ done");
    let requests = flow.model.requests();
    assert_eq!(requests.len(), 4);
    assert!(requests[3].body.get("response_format").is_none());
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_is_asked_for_each_agent_that_names_it() {
    let guard = HookServer::start(anywhere()).await.unwrap();
    let host = guard.addr();
    let hook = format!(
        "[hooks.guard]\nkind = \"http\"\nat = [\"before_run\"]\nurl = \"http://{host}/decide\"\n\
         allow_private = [\"{host}\"]\nbearer = \"file:guard.key\"\n"
    );
    let both = rules(&["when = { calls = 0 }; call = [\"look\", \"desk\"]"]);
    let hooked = "hooks = [\"guard\"]";
    let mut flow = team(
        &[("look", hooked), ("desk", hooked)],
        "",
        &format!("{both}{hook}"),
    )
    .prepare()
    .await;
    std::fs::write(flow.directory().join("guard.key"), "guard-secret").unwrap();
    flow.start().await;
    guard.says(json!({"verdict": "note", "text": "Ann is a gold customer."}));
    guard.says(json!({"verdict": "deny", "reason": "not on a Sunday"}));
    flow.script(&["42"]);
    let (told, story) = answer(&flow, "which order?").await;
    assert!(told.contains("not on a Sunday"), "{told} {story:#}");
    let asked: Vec<Value> = guard.asked().into_iter().map(|it| it.event).collect();
    let agents: Vec<&Value> = asked.iter().map(|body| &body["agent"]).collect();
    assert_eq!(agents, ["look", "desk"]);
    assert_eq!(flow.model.requests().len(), 1);

    // What was noted for one agent is sent to no other.
    guard.says(json!({"verdict": "note", "text": "Ann is a gold customer."}));
    flow.script(&["43", "Dear Ann, 43."]);
    let (told, _) = answer(&flow, "and now?").await;
    assert_eq!(told, "Dear Ann, 43.");
    let requests = flow.model.requests();
    let noted = |n: usize| requests[n].body.to_string().contains("gold customer");
    assert_eq!((noted(1), noted(2)), (true, false));
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_is_no_admin_beside_one() {
    let by_sender = rules(&[
        "when = { sender = \"admin\" }; call = \"look\"",
        "call = \"desk\"",
    ]);
    let mut flow = team(
        &[("look", ""), ("desk", "overlap = \"collect\"")],
        "default_agent = \"desk\"\nmax_calls = 1",
        &by_sender,
    )
    .slack("admins = [\"U0BOB\"]")
    .start()
    .await;
    flow.script(&["first", "second"]);
    flow.model.hold();
    let asked = flow.ask_team("one");
    flow.wait_for_model(1).await;
    flow.slack.say_in(GENERAL, "bob", &asked, "@vocative two");
    flow.slack.say_in(GENERAL, "ann", &asked, "@vocative three");
    flow.wait_until_heard().await;
    flow.model.release();
    let both = flow.slack_post(GENERAL, |post| {
        post.is_reply_in(&asked) && post.text == "second"
    });
    both.await;
    flow.settle().await;
    let story = flow.story(&asked).await;
    assert!(order(&story).starts_with("R0 desk R1 ■"), "{story:#}");
    // Alone one is.
    flow.script(&["third"]);
    flow.slack.say_in(GENERAL, "bob", &asked, "@vocative four");
    let alone = flow.slack_post(GENERAL, |post| {
        post.is_reply_in(&asked) && post.text == "third"
    });
    alone.await;
    flow.settle().await;
    let story = flow.story(&asked).await;
    assert!(order(&story).starts_with("R0 look R1 ■"), "{story:#}");
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_read_what_was_said_without_the_address() {
    let by_text = rules(&[
        "when = { text = { matches = \"(?i)^refund\" } }; call = \"look\"",
        "when = { text = { is_empty = true } }; call = \"pen\"",
        "call = \"desk\"",
    ]);
    let network = "default_agent = \"desk\"\nmax_calls = 1";
    let mut flow = team(&plain(&["look", "pen", "desk"]), network, &by_text)
        .start()
        .await;
    for (text, who) in [
        ("refund my lamp", "look"),
        ("support, refund my lamp", "look"),
        ("a refund", "desk"),
        ("", "pen"),
    ] {
        flow.script(&[who]);
        let (told, story) = answer(&flow, text).await;
        assert_eq!(told, who, "{text}: {story:#}");
        assert!(
            order(&story).starts_with(&format!("R0 {who} R1 ■")),
            "{text}: {story:#}"
        );
    }
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_several_answers_the_one_that_a_hook_withholds_is_missing_alone() {
    let guard = HookServer::start(anywhere()).await.unwrap();
    let host = guard.addr();
    let hook = format!(
        "[hooks.guard]\nkind = \"http\"\nat = [\"before_post\"]\nurl = \"http://{host}/decide\"\n\
         allow_private = [\"{host}\"]\nbearer = \"file:guard.key\"\n"
    );
    let all = rules(&["when = { calls = 0 }; call = [\"look\", \"pen\"]"]);
    let mut flow = team(
        &[("look", "hooks = [\"guard\"]"), ("pen", "")],
        "answer_from = \"each\"",
        &format!("{all}{hook}"),
    )
    .prepare()
    .await;
    std::fs::write(flow.directory().join("guard.key"), "guard-secret").unwrap();
    flow.start().await;
    guard.says(json!({"verdict": "deny"}));
    flow.script(&["a secret", "Dear Ann."]);
    let (told, _) = answer(&flow, "which order?").await;
    assert_eq!(told, "Pen: Dear Ann.");
    assert_eq!(flow.slack_posts(GENERAL).len(), 1);
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_works_while_the_model_of_the_default_agent_rests() {
    let other = ModelServer::start(anywhere(), WireLog::new())
        .await
        .unwrap();
    let only_look = rules(&[
        "when = { text = { contains = \"desk\" } }; call = \"desk\"",
        "call = \"look\"",
    ]);
    let network = "default_agent = \"desk\"\nmax_calls = 1";
    let mut flow = team(
        &[("look", "model = \"other\""), ("desk", "")],
        network,
        &format!("{only_look}{}", other_model(&other)),
    )
    .start()
    .await;
    flow.model.enqueue(ModelReply::rate_limited(3_600));
    flow.ask_team("to the desk");
    flow.wait_for_status("the model rests", |status| {
        status["models"].to_string().contains("resting")
    })
    .await;
    other.enqueue(ModelReply::text("42"));
    let asked = flow.ask_team("which order?");
    assert_eq!(flow.slack_reply(GENERAL, &asked).await.text, "42");
    assert_eq!(flow.model.requests().len(), 1);
    flow.kill().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_that_names_a_model_is_answered_by_it_where_an_agent_may_ask_it() {
    let other = ModelServer::start(anywhere(), WireLog::new())
        .await
        .unwrap();
    let both = rules(&["when = { calls = 0 }; call = [\"look\", \"desk\"]"]);
    let may = "models = [\"other\"]";
    let mut flow = team(
        &[("look", ""), ("desk", may)],
        "default_agent = \"desk\"",
        &format!("{both}{}", other_model(&other)),
    )
    .start()
    .await;
    flow.script(&["42"]);
    other.enqueue(ModelReply::text("Dear Ann, 42."));
    let asked = flow.ask_team("--model other which order?");
    assert_eq!(
        flow.slack_reply(GENERAL, &asked).await.text,
        "Dear Ann, 42."
    );
    assert_eq!(flow.model.requests().len(), 1);
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_without_an_answer_of_its_form_has_failed_and_another_takes_over() {
    let both = rules(&[
        "when = { calls = 0 }; call = \"look\"",
        "when = { last_failed = true }; call = \"desk\"",
    ]);
    let form = "answer_schema = '{\"type\": \"object\", \"required\": [\"n\"], \"properties\": {\"n\": {\"type\": \"integer\"}}}'";
    let mut flow = team(&[("look", form), ("desk", "")], "", &both)
        .start()
        .await;
    flow.script(&["no JSON", "nor this", "nor that", "I take over."]);
    let asked = flow.ask_team("which order?");
    let told = flow.slack_reply(GENERAL, &asked).await.text;
    flow.settle().await;
    let story = flow.story(&asked).await;
    assert_eq!(order(&story), "R0 look R1 desk R2 ■ no_rule", "{story:#}");
    assert_eq!(story["agent_calls"][0]["outcome"], "failed");
    assert!(!told.is_empty());
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_agent_call_has_attempts_of_its_own() {
    let all = rules(&["when = { calls = 0 }; call = [\"look\", \"pen\", \"desk\"]"]);
    let twice = "channels = []\nmax_attempts = 2";
    let network =
        "[networks.support]\nagents = [\"look\", \"pen\", \"desk\"]\ndefault_agent = \"desk\"\n";
    let mut flow = FlowBuilder::default();
    for agent in ["look", "pen", "desk"] {
        flow = flow.agent(agent, twice);
    }
    let mut flow = flow.config(&format!("{network}{all}")).start().await;
    flow.script(&["", "a", "", "b", "", "c"]);
    let (told, story) = answer(&flow, "which order?").await;
    assert_eq!(told, "c", "{story:#}");
    assert_eq!(order(&story), "R0 look R1 pen R2 desk R3 ■ no_rule");
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_routing_agent_waits_for_a_place_at_its_model() {
    let other = ModelServer::start(anywhere(), WireLog::new())
        .await
        .unwrap();
    let network = "default_agent = \"desk\"\nmax_calls = 1\nrouter_model = \"other\"";
    let model = other_model(&other);
    let mut flow = team(
        &plain(&["look", "desk"]),
        network,
        &format!("{ROUTED}{model}max_parallel = 1\n"),
    )
    .start()
    .await;
    for _ in 0..2 {
        other.enqueue(ModelReply::text(&pick("look")));
    }
    flow.script(&["42", "43"]);
    other.hold();
    let first = flow.ask_team("which order?");
    assert!(other.wait_for_requests(1, crate::harness::WAIT).await);
    let second = flow.ask_team("and which else?");
    flow.wait_for_status("the second one waits for a place", |status| {
        status["runs"]["queued"] == 1
    })
    .await;
    assert_eq!(other.requests().len(), 1);
    other.release();
    flow.slack_reply(GENERAL, &first).await;
    flow.slack_reply(GENERAL, &second).await;
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_with_a_decision_that_cant_be_read_asks_nobody_again_and_says_so() {
    let both = rules(&["when = { calls = 0 }; call = [\"look\", \"desk\"]"]);
    let mut flow = team(&plain(&["look", "desk"]), "", &both).start().await;
    flow.script(&["42", "never said"]);
    flow.model.hold();
    let asked = flow.ask_team("which order?");
    flow.wait_for_model(1).await;
    flow.model.release_one();
    flow.wait_for_model(2).await;
    flow.kill().await;
    let database = rusqlite::Connection::open(flow.directory().join("data/vocative.db")).unwrap();
    let changed = database.execute(
        "UPDATE network_decisions SET decided_by = 'oracle' WHERE calls = 1",
        [],
    );
    assert_eq!(changed.unwrap(), 1);
    drop(database);
    flow.start().await;
    let told = flow.slack_reply(GENERAL, &asked).await.text;
    assert!(told.starts_with("Sorry"), "{told}");
    flow.settle().await;
    assert_eq!(flow.model.requests().len(), 2);
    let story = flow.story(&asked).await;
    assert_eq!(story["state"], "dead", "{story:#}");
}
