//! Networks: several agents behind one name. The twelve worked orders through the whole daemon, killed on the way, what
//! people see of it, and what operators are shown.

use std::net::{Ipv4Addr, SocketAddr};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use vocative_sandbox::model::ModelReply;
use vocative_sandbox::orders::OrderServer;

use crate::harness::{Flow, FlowBuilder, WAIT};

pub(crate) const GENERAL: &str = "#general";
/// The same by its id.
const GENERAL_ID: &str = "C0GENERAL";

/// A flow whose Slack channel is served by the network `support` of these agents alone.
pub(crate) fn team(agents: &[(&str, &str)], network: &str, more: &str) -> FlowBuilder {
    let mut builder = FlowBuilder::default();
    for (name, settings) in agents {
        builder = builder.agent(name, &format!("channels = []\n{settings}"));
    }
    let names: Vec<String> = agents.iter().map(|(name, _)| format!("{name:?}")).collect();
    builder.config(&format!(
        "[networks.support]\nagents = [{}]\n{network}\n{more}",
        names.join(", ")
    ))
}

/// Rules as TOML, one line each.
pub(crate) fn rules(lines: &[&str]) -> String {
    let rule = |line: &&str| format!("[[networks.support.rules]]\n{}\n", line.replace("; ", "\n"));
    lines.iter().map(rule).collect()
}

const STATE: &str =
    "[networks.support.state]\nfound = { type = \"boolean\" }\nok = { type = \"boolean\" }\n";

fn sets(id: &str, values: Value) -> ModelReply {
    ModelReply::tool_call(id, "set_state", values)
}

impl Flow {
    /// Asks in Slack.
    pub(crate) fn ask_team(&self, text: &str) -> String {
        self.slack.say(GENERAL, "ann", &format!("@vocative {text}"))
    }

    pub(crate) fn script(&self, replies: &[&str]) {
        for reply in replies {
            self.model.enqueue(ModelReply::text(reply));
        }
    }

    /// All of the newest run of a thread.
    pub(crate) async fn story(&self, root_ts: &str) -> Value {
        let conversation = self.conversation_id(GENERAL_ID, Some(root_ts)).await;
        let args = ["conversations", "show", &conversation, "--timeline"];
        let shown = self.cli_json(&args).await;
        let timeline = shown["timeline"].as_array().unwrap();
        let run = timeline
            .iter()
            .rfind(|entry| entry["entry"] == "run")
            .unwrap();
        self.cli_json(&["runs", "show", run["of"]["id"].as_str().unwrap()])
            .await
    }

    /// Asks, kills the daemon while it waits for each of so many answers of the model, and once more at the end. Each
    /// was asked once more for its kill, and never again. The script must be laid out before.
    async fn played(&mut self, text: &str, calls: usize) -> Played {
        let before = self.model.requests().len();
        self.model.hold();
        let asked = self.ask_team(text);
        self.killed_at_each_of(before, calls).await;
        self.model.release();
        self.slack_reply(GENERAL, &asked).await;
        self.settle().await;
        let posts = self.posts_of(&asked);
        self.kill().await;
        self.start().await;
        self.settle().await;
        assert_eq!(self.posts_of(&asked), posts);
        assert_eq!(self.model.requests().len() - before, 2 * calls);
        let story = self.story(&asked).await;
        Played {
            order: order(&story),
            asked,
            posts,
            story,
        }
    }

    /// What was posted in a thread.
    fn posts_of(&self, asked: &str) -> Vec<String> {
        let posts = self.slack_posts(GENERAL).into_iter();
        let here = posts.filter(|(thread, _)| thread.as_deref() == Some(asked));
        here.map(|(_, text)| text).collect()
    }

    /// Lets the model answer call by call, and kills the daemon while it waits for each of them. The model must be on
    /// hold, and was asked so often before.
    pub(crate) async fn killed_at_each_of(&mut self, before: usize, calls: usize) {
        for done in 0..calls {
            self.wait_for_model(before + 2 * done + 1).await;
            self.kill().await;
            self.start().await;
            self.wait_for_model(before + 2 * done + 2).await;
            self.model.release_one();
        }
    }
}

/// What came of a question through its kills.
struct Played {
    /// The message of the question.
    asked: String,
    /// What was posted in its thread.
    posts: Vec<String>,
    /// Decisions and agent calls as one line.
    order: String,
    /// All that operators are shown of its run.
    story: Value,
}

impl Played {
    /// Checks the order in which agents were called, and what people read.
    #[track_caller]
    fn is(&self, order: &str, posts: &[&str]) {
        assert_eq!(self.order, order, "{:#}", self.story);
        assert_eq!(self.posts, posts, "{:#}", self.story);
    }
}

/// Decisions and agent calls as one line.
pub(crate) fn order(story: &Value) -> String {
    let none = Vec::new();
    let decisions = story["decisions"].as_array().unwrap_or(&none);
    let each = decisions.iter().map(|decision| {
        let who = match decision["agent"].as_str() {
            Some(agent) => agent.to_owned(),
            None => format!("■ {}", decision["by"].as_str().unwrap()),
        };
        format!("R{} {who}", decision["calls"])
    });
    each.collect::<Vec<_>>().join(" ")
}

pub(crate) fn plain(names: &[&'static str]) -> Vec<(&'static str, &'static str)> {
    names.iter().map(|name| (*name, "")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn example_1_two_agents_work_in_order_and_the_last_one_answers() {
    let rules = rules(&[
        "when = { calls = 0 }; call = \"look\"",
        "when = { calls = 1 }; call = \"pen\"",
    ]);
    let mut flow = team(&plain(&["look", "pen"]), "", &rules).start().await;
    flow.script(&["The order is 42.", "Dear Ann, it is 42."]);
    let played = flow.played("which order?", 2).await;
    played.is("R0 look R1 pen R2 ■ no_rule", &["Dear Ann, it is 42."]);
    let asked = played.asked;
    // The second one is sent the words of the first as another's, and the question once, last.
    let sent = flow.model_prompt(3);
    let texts: Vec<&str> = sent.iter().map(|(_, text)| text.as_str()).collect();
    assert!(
        texts.contains(&"Look (agent): The order is 42."),
        "{sent:#?}"
    );
    let (role, last) = sent.last().unwrap();
    assert!(
        role == "user" && last.ends_with("which order?"),
        "{sent:#?}"
    );
    assert_eq!(
        texts
            .iter()
            .filter(|text| text.contains("which order?"))
            .count(),
        1
    );
    // Of the next question in the thread both know what was posted: another's words for one, its own for the other.
    flow.script(&["Nothing new.", "Still 42."]);
    flow.slack.say_in(GENERAL, "ann", &asked, "@vocative sure?");
    let again = flow.slack_post(GENERAL, |post| {
        post.is_reply_in(&asked) && post.text == "Still 42."
    });
    again.await;
    let posted = "Dear Ann, it is 42.";
    let look = flow.model_prompt(4);
    assert!(
        look.contains(&("user".to_owned(), format!("Pen (agent): {posted}"))),
        "{look:#?}"
    );
    let pen = flow.model_prompt(5);
    assert!(
        pen.contains(&("assistant".to_owned(), posted.to_owned())),
        "{pen:#?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn example_2_nothing_to_post_is_said_in_one_line() {
    let rules = rules(&[
        "when = { calls = 0 }; call = \"sort\"",
        "when = { last_agent = \"sort\", last_text = { contains = \"invoice\" } }; call = \"desk\"",
    ]);
    let mut flow = team(&plain(&["sort", "desk"]), "silent = [\"sort\"]", &rules)
        .start()
        .await;
    flow.script(&["small talk", "an Invoice", "It is paid."]);
    let played = flow.played("hello", 1).await;
    assert_eq!(played.order, "R0 sort R1 ■ no_rule");
    let [told] = played.posts.as_slice() else {
        panic!("{:#?}", played.posts);
    };
    assert!(
        told.contains("came to no answer that belongs here"),
        "{told}"
    );
    let played = flow.played("where is my money?", 2).await;
    played.is("R0 sort R1 desk R2 ■ no_rule", &["It is paid."]);
    // What the silent one said was posted nowhere.
    let posts = flow.slack_posts(GENERAL);
    assert!(
        !posts.iter().any(|(_, text)| text.contains("small talk")),
        "{posts:#?}"
    );
    assert_eq!(posts.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn example_3_what_a_rule_adds_comes_behind_the_list_and_each_has_a_post() {
    let rules = rules(&[
        "when = { calls = 0 }; call = [\"look\", \"pen\", \"check\"]",
        "when = { last_agent = \"look\" }; call = \"desk\"",
    ]);
    let agents = plain(&["look", "pen", "check", "desk"]);
    let mut flow = team(
        &agents,
        "answer_from = \"each\"\nsilent = [\"check\"]",
        &rules,
    )
    .start()
    .await;
    flow.script(&["a", "b", "c", "d"]);
    let played = flow.played("all of you", 4).await;
    let order = "R0 look R1 pen R2 check R3 desk R4 ■ no_rule";
    played.is(order, &["Look: a", "Pen: b", "Desk: d"]);
    let asked = played.asked;
    // Each is a turn under its own name; a word in the thread is one to the network.
    let conversation = flow.conversation_id(GENERAL_ID, Some(&asked)).await;
    let turns = flow.turns(&conversation).await;
    let by: Vec<&str> = turns
        .iter()
        .filter_map(|turn| turn["speaker"].as_str())
        .collect();
    assert!(by.ends_with(&["Look", "Pen", "Desk"]), "{turns:#?}");
    flow.script(&["e", "f", "g", "h"]);
    flow.slack.reply(GENERAL, "ann", &asked, "and now?");
    flow.slack_post(GENERAL, |post| {
        post.is_reply_in(&asked) && post.text == "Desk: h"
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn example_4_calls_are_used_up() {
    let rules = rules(&["call = \"desk\"; at_most = 9"]);
    let mut flow = team(&plain(&["desk"]), "max_calls = 2", &rules)
        .start()
        .await;
    flow.script(&["one", "two"]);
    let played = flow.played("go on", 2).await;
    played.is("R0 desk R1 desk R2 ■ max_calls", &["two"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn example_5_a_value_that_an_agent_sets_decides_however_often_it_is_killed() {
    let rules = rules(&[
        "when = { calls = 0 }; call = \"look\"",
        "when = { state = { found = true } }; call = \"pen\"",
    ]);
    let of_agents = "[networks.support.writes]\nlook = [\"found\"]\n[networks.support.reads]\npen = [\"found\", \"ok\"]\n";
    let mut flow = team(
        &plain(&["look", "pen"]),
        "",
        &format!("{of_agents}{STATE}{rules}"),
    )
    .start()
    .await;
    flow.model.enqueue(sets("c1", json!({"found": "yes"})));
    flow.model.enqueue(sets("c2", json!({"ok": true})));
    flow.model.enqueue(sets("c3", json!({"found": true})));
    flow.script(&["found it", "Here it is."]);
    let played = flow.played("where is it?", 5).await;
    played.is("R0 look R1 pen R2 ■ no_rule", &["Here it is."]);
    let story = played.story;
    assert_eq!(story["agent_calls"][0]["state"], json!({"found": true}));
    assert_eq!(story["agent_calls"][0]["tools"], json!(["set_state"]));
    // What does not fit is refused with what does, and what is another's is.
    let results: Vec<&str> = story["calls"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|it| it["result"].as_str())
        .collect();
    assert_eq!(results.len(), 3, "{story:#}");
    assert_eq!(results[2], "set: found = true");
    let sent = flow.model_prompt(9);
    let state = sent
        .iter()
        .find(|(_, text)| text.starts_with("(now) state:"));
    assert_eq!(state.unwrap().1, "(now) state: found = true; ok is not set");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn example_6_a_draft_goes_round_until_its_rules_are_used_up() {
    let rules = rules(&[
        "when = { calls = 0 }; call = \"pen\"",
        "when = { last_agent = \"pen\" }; call = \"check\"; at_most = 3; set = { ok = false }",
        "when = { last_agent = \"check\", state = { ok = false } }; call = \"pen\"; at_most = 2",
    ]);
    let network = "answer_from = \"pen\"\nsilent = [\"check\"]";
    let mut flow = team(
        &plain(&["pen", "check"]),
        network,
        &format!("{STATE}{rules}"),
    )
    .start()
    .await;
    flow.script(&["first", "no", "second", "nah", "third", "still no"]);
    let played = flow.played("write it", 6).await;
    let order = "R0 pen R1 check R2 pen R3 check R4 pen R5 check R6 ■ no_rule";
    played.is(order, &["third"]);
    // It is sent its own earlier draft as its own.
    let sent = flow.model_prompt(9);
    assert!(
        sent.contains(&("assistant".to_owned(), "second".to_owned())),
        "{sent:#?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn examples_7_and_8_a_routing_agent_picks_and_is_told_what_there_is() {
    let rules = rules(&["ask_router = true; at_most = 5"]);
    let described = "[networks.support.descriptions]\nlook = \"Looks things up.\"\npen = \"Writes letters.\"\ndesk = \"All else.\"\n";
    let network = "default_agent = \"desk\"";
    let mut flow = team(
        &plain(&["look", "pen", "desk"]),
        network,
        &format!("{described}{rules}"),
    )
    .start()
    .await;
    let pick =
        |agent: &str| format!(r#"{{"agent": "{agent}", "done": false, "reason": "it fits"}}"#);
    let done = r#"{"agent": null, "done": true, "reason": "answered"}"#;
    flow.script(&[&pick("look"), "42", &pick("pen"), "Dear Ann: 42.", done]);
    let played = flow.played("which order?", 5).await;
    played.is("R0 look R1 pen R2 ■ done", &["Dear Ann: 42."]);
    let asked = &flow.model.requests()[0].body;
    let schema = &asked["response_format"]["json_schema"]["schema"];
    assert_eq!(
        schema["properties"]["agent"]["enum"],
        json!(["look", "pen", "desk", null])
    );
    assert!(
        asked.to_string().contains("- pen: Writes letters."),
        "{asked:#}"
    );
    // A name that does not exist, twice: the default agent works.
    flow.script(&[&pick("lookup"), &pick("lookup"), "Here I am.", done]);
    let played = flow.played("and the other one?", 4).await;
    played.is("R0 desk R1 ■ done", &["Here I am."]);
    let story = played.story;
    assert_eq!(story["decisions"][0]["by"], "default");
    assert_eq!(story["steps"].as_array().unwrap().len(), 4);
    let told = flow.model_prompt(13).pop().unwrap().1;
    assert!(
        told.contains("there is no agent \"lookup\". There are look, pen, desk."),
        "{told}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_routing_agent_tries_its_model_after_a_rest() {
    let rules = rules(&["ask_router = true; at_most = 2"]);
    let described = "[networks.support.descriptions]\nlook = \"Looks things up.\"\n";
    let mut flow = team(&plain(&["look"]), "", &format!("{described}{rules}"))
        .start()
        .await;
    // The run that tries it has the only place there is.
    flow.model.enqueue(ModelReply::rate_limited(1));
    let pick = r#"{"agent": "look", "done": false, "reason": "it fits"}"#;
    let done = r#"{"agent": null, "done": true, "reason": "answered"}"#;
    flow.script(&[pick, "42", done]);
    let asked = flow.ask_team("which order?");
    assert_eq!(flow.slack_reply(GENERAL, &asked).await.text, "42");
    flow.settle().await;
    assert_eq!(order(&flow.story(&asked).await), "R0 look R1 ■ done");
    assert_eq!(flow.model.requests().len(), 4);
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn example_9_an_agent_that_fails_is_tried_again_and_the_one_before_it_is_not() {
    let rules = rules(&[
        "when = { calls = 0 }; call = \"look\"",
        "when = { calls = 1 }; call = \"pen\"",
    ]);
    let mut flow = team(&plain(&["look", "pen"]), "", &rules).start().await;
    flow.script(&["42", "", "Dear Ann: 42."]);
    let played = flow.played("which order?", 3).await;
    played.is("R0 look R1 pen R2 ■ no_rule", &["Dear Ann: 42."]);
    let story = played.story;
    assert_eq!(story["agent_calls"].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn example_10_a_call_waits_for_a_person_and_the_run_goes_on_where_it_was() {
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let shop = OrderServer::start(anywhere).await.unwrap();
    let host = shop.addr();
    let tool = format!(
        "[tools.refund]\nkind = \"http\"\ndescription = \"Refunds something.\"\nmethod = \"POST\"\n\
         url = \"http://{host}/orders\"\nallow_private = [\"{host}\"]\napprovers = [\"anyone_in_chat\"]\n\
         parameters = '{{\"type\": \"object\", \"properties\": {{\"what\": {{\"type\": \"string\"}}}}}}'\n"
    );
    let rules = rules(&[
        "when = { calls = 0 }; call = \"sort\"",
        "when = { calls = 1 }; call = \"desk\"",
    ]);
    let agents = [("sort", ""), ("desk", "tools = [\"refund\"]")];
    let mut flow = team(&agents, "silent = [\"sort\"]", &format!("{rules}{tool}"))
        .start()
        .await;
    flow.script(&["a refund"]);
    flow.model.enqueue(ModelReply::tool_call(
        "c1",
        "refund",
        json!({"what": "lamp"}),
    ));
    flow.model.hold();
    let asked = flow.ask_team("refund my lamp");
    flow.killed_at_each_of(0, 2).await;
    let card = flow.card(&asked).await;
    flow.kill().await;
    flow.start().await;
    // Another question is answered meanwhile.
    flow.script(&["small talk", "Hello!", "Refunded."]);
    flow.model.release();
    let other = flow.ask_team("hello?");
    assert_eq!(flow.slack_reply(GENERAL, &other).await.text, "Hello!");
    assert!(shop.orders().is_empty());
    // Killed behind the press, too, while the agent is sent what the shop said, and once its answer is posted.
    let before = flow.model.requests().len();
    flow.model.hold();
    flow.press("bob", &card, "Approve");
    flow.killed_at_each_of(before, 1).await;
    flow.model.release();
    let answer = flow.slack_post(GENERAL, |post| {
        post.is_reply_in(&asked) && post.text == "Refunded."
    });
    answer.await;
    flow.settle().await;
    flow.kill().await;
    flow.start().await;
    flow.settle().await;
    assert_eq!(shop.orders().len(), 1);
    let said = |posts: &[String]| posts.iter().filter(|it| *it == "Refunded.").count();
    assert_eq!(said(&flow.posts_of(&asked)), 1);
    let story = flow.story(&asked).await;
    assert_eq!(order(&story), "R0 sort R1 desk R2 ■ no_rule");
    // Three calls were asked once more for their kills; those of the other question once.
    assert_eq!(flow.model.requests().len(), 8);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn example_11_a_rule_may_call_who_is_not_in_the_list() {
    let rules = rules(&[
        "when = { calls = 0 }; call = \"pen\"",
        "when = { calls = 0 }; call = \"desk\"",
    ]);
    let mut flow = team(&plain(&["desk"]), "", &rules)
        .agent("pen", "channels = []")
        .start()
        .await;
    flow.script(&["Dear Ann."]);
    let played = flow.played("write", 1).await;
    played.is("R0 pen R1 ■ no_rule", &["Dear Ann."]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn example_11_who_does_not_work_in_this_chat_is_passed_over() {
    let rules = rules(&[
        "when = { calls = 0 }; call = \"pen\"",
        "when = { calls = 0 }; call = \"desk\"",
    ]);
    let elsewhere = "channels = []\n[agents.pen.enabled]\nchats = [\"acme/C0RANDOM\"]";
    let mut flow = team(&plain(&["desk"]), "", &rules)
        .agent("pen", elsewhere)
        .start()
        .await;
    flow.script(&["I am at the desk."]);
    let played = flow.played("write", 1).await;
    played.is("R0 desk R1 ■ no_rule", &["I am at the desk."]);
    let refused = &played.story["decisions"][0]["refused"];
    assert_eq!(*refused, json!(["pen"]), "{:#}", played.story);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_fails_for_good_is_a_fact_and_its_failure_is_told_where_nobody_takes_over() {
    let both = [
        "when = { calls = 0 }; call = \"look\"",
        "when = { last_failed = true }; call = \"desk\"",
    ];
    let mut flow = team(&plain(&["look", "desk"]), "", &rules(&both))
        .start()
        .await;
    flow.model.enqueue(ModelReply::status(400));
    flow.script(&["I take over."]);
    let played = flow.played("look it up", 2).await;
    played.is("R0 look R1 desk R2 ■ no_rule", &["I take over."]);

    flow.model.enqueue(ModelReply::status(400));
    flow.model.enqueue(ModelReply::status(400));
    let asked = flow.ask_team("once more");
    let answer = flow.slack_reply(GENERAL, &asked).await.text;
    assert!(
        answer.starts_with("Sorry, I could not answer this."),
        "{answer}"
    );
    flow.settle().await;
    let story = flow.story(&asked).await;
    assert_eq!(story["state"], "dead");
    assert!(
        story["reason"].as_str().unwrap().starts_with("desk: "),
        "{story:#}"
    );
    assert_eq!(story["agent_calls"][0]["outcome"], "failed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_that_calls_nobody_says_so() {
    let rules = rules(&["when = { text = { contains = \"order\" } }; call = [\"look\", \"pen\"]"]);
    let mut flow = team(&plain(&["look", "pen"]), "answer_from = \"each\"", &rules)
        .start()
        .await;
    let played = flow.played("hello", 0).await;
    assert_eq!(played.order, "R0 ■ no_rule");
    let [told] = played.posts.as_slice() else {
        panic!("{:#?}", played.posts);
    };
    assert!(told.contains("Nobody in my team takes this on"), "{told}");
    assert_eq!(flow.model.requests().len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_outlive_the_run_where_that_is_wanted_and_go_with_what_was_said() {
    let rules = rules(&[
        "call = \"look\"; when = { state = { found = true } }",
        "call = \"pen\"",
    ]);
    let of_agents = "[networks.support.writes]\npen = [\"found\"]\n";
    let network = "persist = true\nmax_calls = 1";
    let flow = team(
        &plain(&["look", "pen"]),
        network,
        &format!("{of_agents}{STATE}{rules}"),
    )
    .start()
    .await;
    flow.model.enqueue(sets("c1", json!({"found": true})));
    flow.script(&["noted", "known"]);
    let asked = flow.ask_team("it is blue");
    assert_eq!(flow.slack_reply(GENERAL, &asked).await.text, "noted");
    flow.slack
        .say_in(GENERAL, "ann", &asked, "@vocative which?");
    flow.slack_post(GENERAL, |post| {
        post.is_reply_in(&asked) && post.text == "known"
    })
    .await;
    flow.settle().await;
    assert_eq!(order(&flow.story(&asked).await), "R0 look R1 ■ max_calls");
}

/// A request to the API with a token that may do all; what it answers.
async fn asked(flow: &Flow, line: &str, body: &Value) -> (String, Value) {
    let mut stream = UnixStream::connect(flow.api_socket()).await.unwrap();
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let request = format!(
        "{line} HTTP/1.0\r\nhost: vocative\r\nauthorization: Bearer operator-secret-of-some-length\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let read = stream.read_to_string(&mut answer);
    tokio::time::timeout(WAIT, read).await.unwrap().unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().to_owned();
    (status, serde_json::from_str(body).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_sees_and_corrects_the_values_that_are_kept() {
    let rules = rules(&[
        "call = \"look\"; when = { state = { found = true } }",
        "call = \"pen\"",
    ]);
    let more = "[networks.support.writes]\npen = [\"found\"]\n";
    let tokens = "[api]\nenabled = true\n[api.tokens.operator]\ntoken = \"file:operator.token\"\n\
                  scopes = [\"read\", \"admin\"]\n";
    let mut flow = team(
        &plain(&["look", "pen"]),
        "persist = true\nmax_calls = 1",
        &format!("{more}{STATE}{rules}{tokens}"),
    )
    .prepare()
    .await;
    let token = flow.config_path().with_file_name("operator.token");
    std::fs::write(token, "operator-secret-of-some-length").unwrap();
    flow.start().await;
    flow.model.enqueue(sets("c1", json!({"found": true})));
    flow.script(&["noted", "unknown"]);
    let root = flow.ask_team("it is blue");
    assert_eq!(flow.slack_reply(GENERAL, &root).await.text, "noted");
    let conversation = flow.conversation_id(GENERAL_ID, Some(&root)).await;
    let shown = flow
        .cli_json(&["state", "show", &conversation, "support"])
        .await;
    assert_eq!(
        (&shown["version"], &shown["values"]["found"]["value"]),
        (&json!(1), &json!(true))
    );

    let set = ["state", "set", &conversation, "support"];
    for (wrong, said) in [
        (&["found=maybe"][..], "found must be true or false"),
        (
            &["lost=true"],
            "there is no value lost; there are found, ok",
        ),
        (
            &["found=false", "--version", "0"],
            "were changed since you looked at them",
        ),
    ] {
        let told = flow.cli(&[&set, wrong].concat()).await;
        assert!(
            told.status == Some(1) && told.stderr.contains(said),
            "{told:?}"
        );
    }
    let told = flow
        .cli(&[&set[..], &["found=false", "--version", "1"]].concat())
        .await;
    assert_eq!(told.status, Some(0), "{told:?}");
    flow.slack.say_in(GENERAL, "ann", &root, "@vocative which?");
    flow.slack_post(GENERAL, |post| {
        post.is_reply_in(&root) && post.text == "unknown"
    })
    .await;
    flow.settle().await;
    assert_eq!(order(&flow.story(&root).await), "R0 pen R1 ■ no_rule");

    programs_correct_them_too(&flow, &conversation).await;
    they_go_with_what_was_said(&flow, &root, &conversation).await;

    // Without a daemon, too.
    flow.stop().await;
    let told = flow
        .cli(&["state", "clear", &conversation, "support"])
        .await;
    assert_eq!(told.status, Some(0), "{told:?}");
    let shown = flow
        .cli_json(&["state", "show", &conversation, "support"])
        .await;
    assert_eq!(shown["values"]["ok"].get("value"), None);
}

/// The same over the API.
async fn programs_correct_them_too(flow: &Flow, conversation: &str) {
    let path = format!("/v1/conversations/{conversation}/state/support");
    let change = json!({"set": {"ok": true}, "version": 2});
    let (status, said) = asked(flow, &format!("POST {path}"), &change).await;
    assert_eq!(
        (status.as_str(), &said["state"]["version"]),
        ("200", &json!(3)),
        "{said}"
    );
    assert_eq!(asked(flow, &format!("POST {path}"), &change).await.0, "409");
    let (_, said) = asked(flow, &format!("GET {path}"), &Value::Null).await;
    assert_eq!(said["state"]["values"]["ok"]["value"], json!(true));
}

/// What may repeat a message goes with it, and its version does not come again.
async fn they_go_with_what_was_said(flow: &Flow, root: &str, conversation: &str) {
    flow.slack.edit(GENERAL, root, "@vocative it is red");
    let found = async || {
        flow.cli_json(&["state", "show", conversation, "support"])
            .await
    };
    let deadline = tokio::time::Instant::now() + WAIT;
    while found().await["version"] == json!(3) {
        assert!(tokio::time::Instant::now() < deadline);
    }
    flow.settle().await;
    let shown = found().await;
    assert!(shown["version"].as_i64() > Some(3), "{shown}");
    assert_eq!(shown["values"]["ok"].get("value"), None, "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn example_12_an_agent_asks_another_one_which_may_not_ask_back() {
    let look = "[agents.look]\nchannels = []\ndelegates = [\"desk\"]\n";
    let rules = rules(&["when = { calls = 0 }; call = \"desk\""]);
    let desk = [("desk", "delegates = [\"look\"]")];
    let mut flow = team(&desk, "", &format!("{rules}{look}")).start().await;
    let task = |agent: &str| {
        let arguments = json!({"agent": agent, "task": "Where is the key?"});
        ModelReply::tool_call("c1", "ask_agent", arguments)
    };
    flow.model.enqueue(task("look"));
    flow.model.enqueue(task("desk"));
    flow.script(&["Under the mat.", "It lies under the mat."]);
    let played = flow.played("find the key", 4).await;
    played.is("R0 desk R1 ■ no_rule", &["It lies under the mat."]);
    let refused = flow.model.requests()[5].body["messages"].to_string();
    assert!(
        refused.contains("desk itself waits for this answer"),
        "{refused}"
    );
    let tasks = played.story["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), 1, "{tasks:#?}");
    let given = ["asked_by", "agent", "state", "result"].map(|key| &tasks[0][key]);
    assert_eq!(given, ["desk", "look", "answered", "Under the mat."]);
}
