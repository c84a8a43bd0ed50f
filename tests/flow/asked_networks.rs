//! Networks that an agent asks: what the room, their agents and operators see of it, and what a kill changes.

use std::net::{Ipv4Addr, SocketAddr};

use serde_json::{Value, json};
use vocative_sandbox::model::ModelReply;
use vocative_sandbox::orders::OrderServer;

use crate::approvals::{made, refund, refund_tool};
use crate::erased_everywhere::count_in_folder;
use crate::harness::{Flow, FlowBuilder};

const GENERAL: &str = "#general";

/// A flow whose agent may ask the network `team` of `look` and `pen`; all ask one model, one after the other.
fn asked_team(look: &str, network: &str, rules: &str) -> FlowBuilder {
    let member = "channels = []\n";
    FlowBuilder::default()
        .agent("vocative", "delegates = [\"team\"]")
        .agent("look", &format!("{member}{look}"))
        .agent("pen", member)
        .config(&format!(
            "[networks.team]\nchannels = []\npurpose = \"finds things and writes of them\"\n\
             agents = [\"look\", \"pen\"]\n{network}\n{rules}"
        ))
}

const IN_ORDER: &str =
    "[[networks.team.rules]]\nwhen = { calls = 0 }\ncall = [\"look\", \"pen\"]\n";

fn ask(agent: &str, what: &str) -> ModelReply {
    ModelReply::tool_call("call_1", "ask_agent", json!({"agent": agent, "task": what}))
}

fn say_key(flow: &Flow) -> String {
    flow.slack.say(GENERAL, "ann", "@vocative find the key")
}

/// What a request of the model had, as text.
fn sent(flow: &Flow, number: usize) -> String {
    flow.model.requests()[number].body["messages"].to_string()
}

/// All that was posted.
fn posted(flow: &Flow) -> Vec<String> {
    let posts = flow.slack_posts(GENERAL).into_iter();
    posts.map(|(_, text)| text).collect()
}

/// What became of the one task that a question's run gave. The timeline has the runs of both.
async fn task_of(flow: &Flow, asked: &str) -> Value {
    let room = flow.conversation_id("C0GENERAL", Some(asked)).await;
    let args = ["conversations", "show", &room, "--timeline"];
    let shown = flow.cli_json(&args).await;
    let mut entries = shown["timeline"].as_array().unwrap().iter();
    let is_asking = |entry: &&Value| entry["entry"] == "run" && entry["of"]["agent"] == "vocative";
    let run = entries
        .find(is_asking)
        .unwrap_or_else(|| panic!("{shown:#}"));
    let id = run["of"]["id"].as_str().unwrap();
    flow.cli_json(&["runs", "show", id]).await["tasks"][0].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_agents_of_a_network_answer_through_kills_and_who_asked_says_it_once() {
    // The second one is called by a value that the first one sets.
    let rules = "[networks.team.state]\nfound = { type = \"boolean\" }\n[networks.team.writes]\nlook = [\"found\"]\n\
                 [[networks.team.rules]]\nwhen = { calls = 0, text = { contains = \"Where\" } }\ncall = \"look\"\n\
                 [[networks.team.rules]]\nwhen = { state = { found = true } }\ncall = \"pen\"\n";
    let network = "answer_from = \"each\"\npersist = true";
    let mut flow = asked_team("", network, rules).start().await;
    for reply in [
        ask("team", "Where is the key?"),
        ModelReply::tool_call("call_2", "set_state", json!({"found": true})),
        ModelReply::text("Under the mat."),
        ModelReply::text("A line."),
        ModelReply::text("It lies under the mat."),
    ] {
        flow.model.enqueue(reply);
    }
    flow.model.hold();
    flow.slack.say(GENERAL, "bob", "it rains in the yard");
    let asked = say_key(&flow);
    flow.killed_at_each_of(0, 5).await;
    flow.model.release();
    let told = flow.slack_reply(GENERAL, &asked).await;
    assert_eq!(told.text, "It lies under the mat.");
    flow.settle().await;
    flow.kill().await;
    flow.start().await;
    flow.settle().await;
    // Each was asked once more for its kill, and the room read one answer.
    assert_eq!(flow.model.requests().len(), 10);
    assert_eq!(posted(&flow), ["It lies under the mat."]);

    let tools = flow.model.requests()[0].body["tools"].to_string();
    assert!(tools.contains("- team: finds things and writes of them"));
    // Its agents saw the task and each other, and not the room.
    let look = sent(&flow, 3);
    assert!(
        look.contains("vocative (agent): Where is the key?"),
        "{look}"
    );
    let pen = flow.model_history(7);
    assert_eq!(pen.last().unwrap().1, "vocative (agent): Where is the key?");
    let texts: Vec<&str> = pen.iter().map(|(_, text)| text.as_str()).collect();
    assert!(texts.contains(&"Look (agent): Under the mat."), "{pen:#?}");
    for hidden in ["it rains", "find the key"] {
        assert!(!look.contains(hidden) && !sent(&flow, 7).contains(hidden));
    }
    // Operators see who did what.
    let task = task_of(&flow, &asked).await;
    assert_eq!(task["agent"], "team");
    assert_eq!(task["state"], "answered");
    assert_eq!(task["result"], "Look: Under the mat.\n\nPen: A line.");
    assert!(sent(&flow, 9).contains("Look: Under the mat."));
    let child = task["child"].as_str().unwrap();
    let story = flow.cli_json(&["runs", "show", child]).await;
    let called: Vec<&Value> = story["agent_calls"].as_array().unwrap().iter().collect();
    let called: Vec<&Value> = called.iter().map(|call| &call["agent"]).collect();
    assert_eq!(called, ["look", "pen"], "{story:#}");
    assert_eq!(story["task"]["asked_by"], "vocative", "{story:#}");
    let shown = flow.cli(&["runs", "show", child]).await.stdout;
    assert!(shown.contains("look") && shown.contains("pen"), "{shown}");
    // Values of a network that an agent asked are those of its run.
    let room = flow.conversation_id("C0GENERAL", Some(&asked)).await;
    let kept = flow.cli_json(&["state", "show", &room, "team"]).await;
    assert_eq!(kept["version"], 0, "{kept:#}");
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_agents_are_silent_to_who_asks_too() {
    let mut flow = asked_team("", "silent = [\"pen\"]", IN_ORDER).start().await;
    for reply in [
        ask("team", "Where is the key?"),
        ModelReply::text("Under the mat."),
        ModelReply::text("A line."),
        ModelReply::text("There."),
    ] {
        flow.model.enqueue(reply);
    }
    let asked = say_key(&flow);
    assert_eq!(flow.slack_reply(GENERAL, &asked).await.text, "There.");
    let task = task_of(&flow, &asked).await;
    assert_eq!(task["result"], "Under the mat.", "{task}");
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_is_in_no_network_that_is_asked() {
    // vocative asks look, which would ask a network that may call vocative.
    let member = "channels = []\n";
    let mut flow = FlowBuilder::default()
        .agent("vocative", "delegates = [\"look\"]")
        .agent("look", &format!("{member}delegates = [\"team\"]"))
        .agent("pen", member)
        .config(
            "[networks.team]\nchannels = []\nagents = [\"pen\"]\n\
             [[networks.team.rules]]\ncall = [\"pen\", \"vocative\"]\n",
        )
        .start()
        .await;
    for reply in [
        ask("look", "Where is the key?"),
        ask("team", "Where is it?"),
        ModelReply::text("I do not know."),
        ModelReply::text("Nobody knows."),
    ] {
        flow.model.enqueue(reply);
    }
    let asked = say_key(&flow);
    let told = flow.slack_reply(GENERAL, &asked).await;
    assert_eq!(told.text, "Nobody knows.");
    let refused = sent(&flow, 2);
    let why = "an agent of team itself waits for this answer";
    assert!(refused.contains(why), "{refused}");
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_that_is_asked_in_vain_fails_no_question() {
    let rules = "[[networks.team.rules]]\nwhen = { calls = 0 }\ncall = \"look\"\n";
    let mut flow = asked_team("", "", rules).start().await;
    flow.model.enqueue(ask("team", "Where is the key?"));
    flow.model.enqueue(ModelReply::status(400));
    flow.model
        .enqueue(ModelReply::text("I could not find out."));
    let asked = say_key(&flow);
    let told = flow.slack_reply(GENERAL, &asked).await;
    assert_eq!(told.text, "I could not find out.");
    let why = sent(&flow, 2);
    assert!(why.contains("team gave no answer"), "{why}");
    assert_eq!(posted(&flow), ["I could not find out."]);
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_ends_a_network_that_was_asked_too() {
    let mut flow = asked_team("", "", IN_ORDER).start().await;
    flow.model.enqueue(ask("team", "Where is the key?"));
    flow.model.hold();
    let asked = say_key(&flow);
    flow.wait_for_model(1).await;
    flow.model.release_one();
    flow.wait_for_model(2).await;
    flow.slack.say_in(GENERAL, "ann", &asked, "@vocative stop");
    let is_quiet = |status: &Value| status["runs"]["queued"] == 0 && status["runs"]["leased"] == 0;
    flow.wait_for_status("no run is open", is_quiet).await;
    flow.model.enqueue(ModelReply::text("Under the mat."));
    flow.model.release();
    flow.settle().await;
    let posts = posted(&flow);
    assert!(!posts.iter().any(|text| text.contains("mat")), "{posts:?}");
    assert_eq!(flow.model.requests().len(), 2);
    let task = task_of(&flow, &asked).await;
    assert_eq!(task["state"], "cancelled", "{task}");
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_of_one_of_its_agents_waits_in_the_room_for_who_asked_there() {
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let shop = OrderServer::start(anywhere).await.unwrap();
    let tool = refund_tool(&shop, "approval = \"always\"\napprovers = [\"requester\"]");
    let rules = format!("{IN_ORDER}{tool}");
    let mut flow = asked_team("tools = [\"refund\"]", "", &rules).start().await;
    flow.model.enqueue(ask("team", "Refund the tea."));
    flow.model.enqueue(refund("tea", 4));
    let asked = flow.slack.say(GENERAL, "ann", "@vocative refund my tea");
    let card = flow.card(&asked).await;
    flow.press("bob", &card, "Approve");
    flow.told_privately("U0BOB", "can").await;
    assert!(made(&shop).is_empty());
    flow.kill().await;
    flow.start().await;
    for reply in ["Refunded.", "A line.", "You have it back."] {
        flow.model.enqueue(ModelReply::text(reply));
    }
    flow.press("ann", &card, "Approve");
    flow.outcome(&card, "Approved").await;
    let is_told = |post: &vocative_sandbox::slack::SlackPost| {
        post.is_reply_in(&asked) && post.text == "You have it back."
    };
    flow.slack_post(GENERAL, is_told).await;
    assert_eq!(made(&shop).len(), 1);
    assert_eq!(flow.stop().await, Some(0));
}

/// A tool that orders something of a shop, and asks nobody by itself; as TOML.
fn order_tool(shop: &OrderServer) -> String {
    refund_tool(shop, "approval = \"never\"")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_of_its_agents_has_read_makes_later_calls_ask() {
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let shop = OrderServer::start(anywhere).await.unwrap();
    let host = shop.addr();
    let page = format!(
        "[tools.page]\nkind = \"http\"\ndescription = \"Reads a page.\"\nmethod = \"GET\"\n\
         url = \"http://{host}/orders\"\nallow_private = [\"{host}\"]\nparameters = '{{\"type\": \"object\", \"properties\": {{}}}}'\n"
    );
    let member = "channels = []\n";
    let mut flow = FlowBuilder::default()
        .agent("vocative", "delegates = [\"team\"]\ntools = [\"refund\"]")
        .agent("look", &format!("{member}tools = [\"page\"]"))
        .agent("pen", &format!("{member}tools = [\"refund\"]"))
        .config(&format!(
            "[networks.team]\nchannels = []\nagents = [\"look\", \"pen\"]\n{IN_ORDER}{page}{}",
            order_tool(&shop)
        ))
        .start()
        .await;
    for reply in [
        ask("team", "Read the page."),
        ModelReply::tool_call("call_2", "page", json!({})),
        ModelReply::text("It says: refund the tea."),
        refund("tea", 4),
    ] {
        flow.model.enqueue(reply);
    }
    // Another agent of the network asks, for the first one has read a page.
    let asked = flow
        .slack
        .say(GENERAL, "ann", "@vocative what is on the page?");
    let card = flow.card(&asked).await;
    assert!(made(&shop).is_empty());
    // And so does who asked the network, once it was told what that found.
    flow.model.enqueue(ModelReply::text("Not done."));
    flow.model.enqueue(refund("cake", 5));
    flow.press("ann", &card, "Deny");
    flow.outcome(&card, "Denied").await;
    let card = flow.card(&asked).await;
    assert!(made(&shop).is_empty(), "{card:?}");
    flow.model.enqueue(ModelReply::text("I left it."));
    flow.press("ann", &card, "Deny");
    let is_answer = |post: &vocative_sandbox::slack::SlackPost| {
        post.is_reply_in(&asked) && post.text == "I left it."
    };
    flow.slack_post(GENERAL, is_answer).await;
    assert!(made(&shop).is_empty());
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn its_agents_share_half_of_what_is_left_of_a_limit() {
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let shop = OrderServer::start(anywhere).await.unwrap();
    let member = "channels = []\ntools = [\"refund\"]";
    // Of three tool calls asking is one, and the network has half of the other two.
    let mut flow = FlowBuilder::default()
        .agent("vocative", "delegates = [\"team\"]\ncalls_per_run = 3")
        .agent("look", member)
        .agent("pen", member)
        .config(&format!(
            "[networks.team]\nchannels = []\nagents = [\"look\", \"pen\"]\n{IN_ORDER}{}",
            order_tool(&shop)
        ))
        .start()
        .await;
    for reply in [
        ask("team", "Refund it all."),
        refund("tea", 4),
        ModelReply::text("The tea is refunded."),
        refund("cake", 5),
        ModelReply::text("The cake is not."),
        ModelReply::text("Only the tea."),
    ] {
        flow.model.enqueue(reply);
    }
    let asked = flow.slack.say(GENERAL, "ann", "@vocative refund it all");
    let told = flow.slack_reply(GENERAL, &asked).await;
    assert_eq!(told.text, "Only the tea.");
    assert_eq!(made(&shop).len(), 1, "{}", sent(&flow, 4));
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_erased_person_said_is_gone_from_it_too() {
    const SECRET: &str = "qx-under-the-mat-91b7";
    let network = "[networks.team.state]\nfound = { type = \"string\" }\n\
                   [networks.team.writes]\nlook = [\"found\"]\n";
    let mut flow = asked_team("", "", &format!("{network}{IN_ORDER}"))
        .start()
        .await;
    for reply in [
        ask("team", &format!("Is it {SECRET}?")),
        ModelReply::tool_call("call_2", "set_state", json!({"found": SECRET})),
        ModelReply::text(&format!("It is {SECRET}.")),
        ModelReply::text(&format!("Dear Ann, {SECRET}.")),
        ModelReply::text(&format!("The key: {SECRET}.")),
    ] {
        flow.model.enqueue(reply);
    }
    let question = format!("@vocative the key is {SECRET}, is it?");
    let asked = flow.slack.say(GENERAL, "ann", &question);
    flow.slack_reply(GENERAL, &asked).await;
    flow.settle().await;
    let data = flow.directory().join("data");
    assert!(count_in_folder(&data, SECRET) > 5);
    let args = ["erase", "--person", "acme/Ann", "--verify", "--yes"];
    let done = flow.cli_json(&args).await;
    assert_eq!(done["verification"]["hits"], json!([]), "{done}");
    assert_eq!(count_in_folder(&data, SECRET), 0);
    let task = task_of(&flow, &asked).await;
    assert!(!task.to_string().contains(SECRET), "{task:#}");
    assert_eq!(flow.stop().await, Some(0));
}
