//! Agents that ask other agents: what the room, the agents and operators see of it, and what a kill changes.

use std::net::{Ipv4Addr, SocketAddr};

use serde_json::{Value, json};
use vocative_sandbox::model::{ModelReply, ModelServer, ModelToolCall};
use vocative_sandbox::orders::OrderServer;
use vocative_sandbox::wire::WireLog;

use crate::approvals::{made, refund, refund_tool};
use crate::harness::{Flow, FlowBuilder, WAIT};

const GENERAL: &str = "#general";

/// A flow whose agent may ask two others, each with a model of its own.
struct Team {
    flow: Flow,
    look: ModelServer,
    pen: ModelServer,
}

impl Team {
    async fn start(desk: &str, look_settings: &str, further: &str) -> Self {
        let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let look = ModelServer::start(anywhere, WireLog::new()).await.unwrap();
        let pen = ModelServer::start(anywhere, WireLog::new()).await.unwrap();
        let model = |name: &str, server: &ModelServer| {
            format!(
                "[models.{name}]\nprovider = \"openai\"\nmodel = \"loopback-{name}\"\nbase_url = \"{}\"\n\
                 api_key = \"env:FLOW_MODEL_KEY\"\n",
                server.openai_url()
            )
        };
        let desk = format!("delegates = [\"look\", \"pen\"]\n{desk}");
        let helper = |name: &str, settings: &str| {
            format!(
                "model = \"{name}\"\nchannels = []\npurpose = \"does what {name} does\"\n{settings}"
            )
        };
        let flow = FlowBuilder::default()
            .agent("vocative", &desk)
            .agent("look", &helper("look", look_settings))
            .agent("pen", &helper("pen", ""))
            .config(&format!(
                "{}{}{further}",
                model("look", &look),
                model("pen", &pen)
            ))
            .start()
            .await;
        Self { flow, look, pen }
    }

    async fn waits_for(&self, server: &ModelServer, requests: usize) {
        let is_there = server.wait_for_requests(requests, WAIT).await;
        assert!(
            is_there,
            "{} requests\n{}",
            server.requests().len(),
            self.flow.log()
        );
    }

    /// Waits until nothing of the question is worked on any more.
    async fn is_quiet(&self) {
        let is_quiet = |status: &Value| {
            let runs = &status["runs"];
            runs["queued"] == 0 && runs["leased"] == 0
        };
        self.flow.wait_for_status("no run is open", is_quiet).await;
    }
}

fn task(id: &str, agent: &str, task: &str) -> ModelToolCall {
    ModelToolCall {
        id: id.to_owned(),
        name: "ask_agent".to_owned(),
        arguments: json!({"agent": agent, "task": task}),
    }
}

fn ask_look(what: &str) -> ModelReply {
    ModelReply::tool_calls(vec![task("call_1", "look", what)])
}

/// What a model was sent, as text.
fn sent(server: &ModelServer, number: usize) -> String {
    server.requests()[number].body["messages"].to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_agents_work_side_by_side_through_a_kill_and_one_answer_comes_of_it() {
    let mut team = Team::start("", "", "").await;
    team.look.hold();
    team.pen.hold();
    let both = vec![
        task("call_1", "look", "Where is the key?"),
        task("call_2", "pen", "Write a line."),
    ];
    team.flow.model.enqueue(ModelReply::tool_calls(both));
    team.flow.slack.say(GENERAL, "bob", "it rains in the yard");
    let asked = team
        .flow
        .slack
        .say(GENERAL, "ann", "@vocative find the key");
    // Both are asked while neither has answered, and who asked holds no lease.
    team.waits_for(&team.look, 1).await;
    team.waits_for(&team.pen, 1).await;

    // The room goes on meanwhile.
    team.flow.model.enqueue(ModelReply::text("At four."));
    let other = team
        .flow
        .slack
        .say(GENERAL, "bob", "@vocative when is tea?");
    let told = team.flow.slack_reply(GENERAL, &other).await;
    assert_eq!(told.text, "At four.");

    team.flow.kill().await;
    team.flow.start().await;
    team.waits_for(&team.look, 2).await;
    team.waits_for(&team.pen, 2).await;
    team.look.enqueue(ModelReply::text("Under the mat."));
    team.pen.enqueue(ModelReply::text("A line."));
    team.flow
        .model
        .enqueue(ModelReply::text("It lies under the mat."));
    team.look.release();
    team.pen.release();
    let told = team.flow.slack_reply(GENERAL, &asked).await;
    assert_eq!(told.text, "It lies under the mat.");
    team.is_quiet().await;
    assert_eq!(team.look.requests().len() + team.pen.requests().len(), 4);

    // Each saw its task, and neither the room nor who asked there.
    let task = sent(&team.look, 1);
    assert!(
        task.contains("vocative (agent): Where is the key?"),
        "{task}"
    );
    for hidden in ["it rains", "find the key", "Write a line"] {
        assert!(!task.contains(hidden), "{hidden} in {task}");
    }
    // Who asked was sent both answers.
    let answers = sent(&team.flow.model, 2);
    assert!(
        answers.contains("Under the mat.") && answers.contains("A line."),
        "{answers}"
    );
    // The room was told of neither.
    let posts = team.flow.slack_posts(GENERAL);
    assert!(
        posts.iter().all(|(_, text)| text != "Under the mat."),
        "{posts:?}"
    );

    // Operators see who did what.
    let id = team.flow.conversation_id("C0GENERAL", Some(&asked)).await;
    let runs = team
        .flow
        .cli_json(&["conversations", "show", &id, "--timeline"])
        .await;
    assert!(runs.to_string().contains("ask_agent"), "{runs}");
    let parent = run_of(&team.flow, "find the key").await;
    let story = team.flow.cli_json(&["runs", "show", &parent]).await;
    let tasks = story["tasks"].as_array().unwrap();
    let agents: Vec<&Value> = tasks.iter().map(|task| &task["agent"]).collect();
    assert_eq!(agents, ["look", "pen"], "{story}");
    assert_eq!(tasks[0]["result"], "Under the mat.", "{story}");
    let child = tasks[0]["child"].as_str().unwrap();
    let story = team.flow.cli(&["runs", "show", child]).await.stdout;
    assert!(story.contains(&parent), "{story}");
    assert_eq!(team.flow.stop().await, Some(0));
}

/// The run of a question at the top level of the channel.
async fn run_of(flow: &Flow, question: &str) -> String {
    let id = flow.conversation_id("C0GENERAL", None).await;
    let turns = flow.turns(&id).await;
    let asked = turns
        .iter()
        .find(|turn| turn.to_string().contains(question));
    let asked = asked.unwrap_or_else(|| panic!("{turns:#?}"));
    asked["runs"][0]["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_waits_is_not_asked_and_says_so_to_who_tries() {
    let look = "delegates = [\"vocative\"]";
    let mut team = Team::start("", look, "").await;
    team.flow.model.enqueue(ask_look("Where is the key?"));
    let back = vec![task("call_1", "vocative", "Where is it?")];
    team.look.enqueue(ModelReply::tool_calls(back));
    team.look.enqueue(ModelReply::text("I do not know."));
    team.flow.model.enqueue(ModelReply::text("Nobody knows."));
    let asked = team
        .flow
        .slack
        .say(GENERAL, "ann", "@vocative find the key");
    let told = team.flow.slack_reply(GENERAL, &asked).await;
    assert_eq!(told.text, "Nobody knows.");
    let refused = sent(&team.look, 1);
    assert!(
        refused.contains("itself waits for this answer"),
        "{refused}"
    );
    assert_eq!(team.flow.model.requests().len(), 2);
    assert_eq!(team.flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_ends_who_was_asked_too() {
    let mut team = Team::start("", "", "").await;
    team.look.hold();
    team.flow.model.enqueue(ask_look("Where is the key?"));
    let asked = team
        .flow
        .slack
        .say(GENERAL, "ann", "@vocative find the key");
    team.waits_for(&team.look, 1).await;
    team.flow
        .slack
        .say_in(GENERAL, "ann", &asked, "@vocative stop");
    team.is_quiet().await;
    team.look.release();
    team.look.enqueue(ModelReply::text("Under the mat."));
    team.flow.settle().await;
    let posts = team.flow.slack_posts(GENERAL);
    assert!(
        posts.iter().all(|(_, text)| !text.contains("mat")),
        "{posts:?}"
    );
    assert_eq!(team.flow.model.requests().len(), 1);
    assert_eq!(team.flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_of_who_is_asked_waits_in_the_room_for_who_asked_there() {
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let shop = OrderServer::start(anywhere).await.unwrap();
    let tool = refund_tool(&shop, "approval = \"always\"\napprovers = [\"requester\"]");
    let look = "tools = [\"refund\"]";
    let mut team = Team::start("delegates_see = \"room\"", look, &tool).await;
    team.flow.model.enqueue(ask_look("Refund the tea."));
    team.look.enqueue(refund("tea", 4));
    let asked = team
        .flow
        .slack
        .say(GENERAL, "ann", "@vocative refund my tea");
    let card = team.flow.card(&asked).await;
    // It was shown the room.
    let shown = sent(&team.look, 0);
    assert!(
        shown.contains("refund my tea") && shown.contains("vocative (agent): Refund the tea."),
        "{shown}"
    );
    team.flow.press("bob", &card, "Approve");
    team.flow.told_privately("U0BOB", "can").await;
    assert!(made(&shop).is_empty());

    team.flow.kill().await;
    team.flow.start().await;
    team.look.enqueue(ModelReply::text("Refunded."));
    team.flow
        .model
        .enqueue(ModelReply::text("You have it back."));
    team.flow.press("ann", &card, "Approve");
    team.flow.outcome(&card, "Approved").await;
    let is_told = |post: &vocative_sandbox::slack::SlackPost| {
        post.is_reply_in(&asked) && post.text == "You have it back."
    };
    team.flow.slack_post(GENERAL, is_told).await;
    assert_eq!(made(&shop).len(), 1);
    assert_eq!(team.flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_asked_in_vain_fails_no_question() {
    let mut team = Team::start("", "max_attempts = 1", "").await;
    team.flow.model.enqueue(ask_look("Where is the key?"));
    team.look.enqueue(ModelReply::status(400));
    team.flow
        .model
        .enqueue(ModelReply::text("I could not find out."));
    let asked = team
        .flow
        .slack
        .say(GENERAL, "ann", "@vocative find the key");
    let told = team.flow.slack_reply(GENERAL, &asked).await;
    assert_eq!(told.text, "I could not find out.");
    let why = sent(&team.flow.model, 1);
    assert!(why.contains("look gave no answer"), "{why}");
    assert_eq!(team.flow.stop().await, Some(0));
}
