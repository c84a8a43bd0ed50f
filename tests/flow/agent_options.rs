//! Options of agents, as their models meet them.

use std::net::{Ipv4Addr, SocketAddr};

use serde_json::json;
use vocative_sandbox::model::{ModelReply, ModelServer};
use vocative_sandbox::wire::WireLog;

use crate::harness::{Flow, FlowBuilder, WAIT, said};

const GENERAL: &str = "#general";

async fn talk(flow: &Flow, texts: &[&str]) {
    for text in texts {
        let posts = flow.slack_posts("D0ANN").len();
        flow.slack.say("D0ANN", "ann", text);
        flow.wait_until("it answers", || flow.slack_posts("D0ANN").len() > posts)
            .await;
        flow.settle().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_is_shown_as_much_of_the_history_as_it_is_to_be() {
    let mut flow = FlowBuilder::default()
        .agent("vocative", "history = \"last 2\"")
        .start()
        .await;
    talk(&flow, &["one", "two", "three"]).await;
    let newest = [
        said("user", "Ann: two"),
        said("assistant", "echo: Ann: two"),
        said("user", "Ann: three"),
    ];
    assert_eq!(flow.model_history(2), newest);
    flow.reconfigure("history = \"last 2\"", "history = \"none\"");
    flow.reload().await;
    talk(&flow, &["four"]).await;
    assert_eq!(flow.model_history(3), [said("user", "Ann: four")]);
    let room = flow.conversation_id("D0ANN", None).await;
    let shown = flow.prompt(&[&room]).await;
    assert!(!format!("{shown:?}").contains("Ann: three"), "{shown:?}");
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_request_of_a_run_is_for_the_tool_that_is_to_be_called_first() {
    let mut flow = FlowBuilder::default()
        .agent("vocative", "tool_choice = \"conversation_search\"")
        .start()
        .await;
    let search = json!({"query": "lunch"});
    flow.model.enqueue(ModelReply::tool_call(
        "call_1",
        "conversation_search",
        search,
    ));
    flow.model.enqueue(ModelReply::text("Nothing was said."));
    talk(&flow, &["when is lunch?"]).await;
    let asked = flow.model.requests();
    let forced = json!({"type": "function", "function": {"name": "conversation_search"}});
    assert_eq!(asked[0].body["tool_choice"], forced);
    assert_eq!(asked[1].body.get("tool_choice"), None);

    flow.reconfigure("\"conversation_search\"", "\"none\"");
    flow.reload().await;
    talk(&flow, &["and dinner?"]).await;
    let asked = flow.model.requests();
    assert_eq!(asked[2].body["tool_choice"], "none");
    assert!(asked[2].body["tools"].is_array());
    assert_eq!(flow.stop().await, Some(0));
}

/// Ann is in the list and Bob is not; a network passes over who does not work for Bob.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_works_for_whom_it_is_there() {
    let mut flow = FlowBuilder::default()
        .slack("default_agent = \"vocative\"")
        .telegram("default_agent = \"vocative\"\nallow_chats = [\"*\"]\nallow_people = [\"*\"]")
        .agent("vocative", "enabled.people = [\"acme/U0ANN\"]")
        .agent("pen", "channels = []\nenabled.people = [\"acme/U0ANN\"]")
        .agent("look", "channels = []")
        .config(
            "[networks.support]\nagents = [\"pen\", \"look\"]\ndefault_agent = \"look\"\n\
             [[networks.support.rules]]\nwhen = { calls = 0 }\ncall = \"pen\"\n\
             [[networks.support.rules]]\nwhen = { calls = 0 }\ncall = \"look\"\n",
        )
        .start()
        .await;
    for _ in 0..2 {
        flow.slack.say("#general", "bob", "@vocative is it up?");
    }
    flow.slack_post("#general", |post| {
        post.text.contains("not at work here now")
    })
    .await;
    let asked = flow.slack.say("#general", "ann", "@vocative is it up?");
    flow.slack_reply("#general", &asked).await;
    let of_network = flow.slack.say("#general", "bob", "support: is it up?");
    flow.slack_reply("#general", &of_network).await;
    flow.settle().await;
    let told = flow.slack_posts("#general");
    let resting = told.iter().filter(|(_, text)| text.contains("not at work"));
    assert_eq!(resting.count(), 1, "{told:?}");
    assert_eq!(flow.model.requests().len(), 2);
    assert_eq!(flow.status().await["runs"]["dead"], 0);
    assert_eq!(flow.stop().await, Some(0));
}

/// In one chat the agents are told more; what was sent there is made again as it was, whatever is set since.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn examples_and_further_instructions_of_a_chat_stand_in_its_prompts() {
    let mut flow = FlowBuilder::default()
        .agent(
            "vocative",
            "instructions = \"Be brief.\"\nexamples = [{ question = \"Open?\", answer = \"Until six.\" }]",
        )
        .config("[channels.slack.acme.chats.D0ANN]\ninstructions = \"No names in {{chat}}.\"\n")
        .start()
        .await;
    talk(&flow, &["one"]).await;
    let asked = flow.slack.say("#general", "ann", "@vocative two");
    flow.slack_reply("#general", &asked).await;
    flow.settle().await;
    let system = |n: usize| {
        let asked = flow.model.requests();
        asked[n].body["messages"][0]["content"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(system(0), "Be brief.\n\nNo names in Ann.");
    assert_eq!(system(1), "Be brief.");
    let shown = [said("user", "Open?"), said("assistant", "Until six.")];
    for n in [0, 1] {
        assert_eq!(flow.model_history(n)[..2], shown);
    }
    let room = flow.conversation_id("D0ANN", None).await;
    let listed = flow
        .cli_json(&["conversations", "show", &room, "--timeline"])
        .await;
    let run = listed["timeline"].as_array().unwrap().iter();
    let run = run
        .filter_map(|entry| {
            entry["of"]["id"]
                .as_str()
                .filter(|_| entry["entry"] == "run")
        })
        .next()
        .unwrap()
        .to_owned();
    flow.reconfigure("Until six.", "Until seven.");
    flow.reconfigure("No names", "Names");
    flow.reload().await;
    let again = flow.cli_json(&["prompt", "--run", &run]).await;
    assert_eq!(again["as_sent"]["is_same"], true, "{again}");
    assert!(again.to_string().contains("Until six.") && again.to_string().contains("No names"));
    assert_eq!(flow.stop().await, Some(0));
}

/// A model server, and settings that call its model "deep".
async fn deep_model() -> (ModelServer, String) {
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let deep = ModelServer::start(anywhere, WireLog::new()).await.unwrap();
    let settings = format!(
        "[models.deep]\nprovider = \"openai\"\nmodel = \"loopback-deep\"\nbase_url = \"{}\"\napi_key = \"env:FLOW_MODEL_KEY\"\n",
        deep.openai_url()
    );
    (deep, settings)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_may_ask_for_another_model_of_its_agent() {
    let (deep, settings) = deep_model().await;
    let manners = "[channels.slack.acme.manners]\nedit_answer_within_s = 600\n";
    let mut flow = FlowBuilder::default()
        .agent("vocative", "models = [\"deep\"]")
        .config(&format!("{settings}{manners}"))
        .start()
        .await;
    let ask = |text: &str| flow.slack.say("D0ANN", "ann", text);
    let answered = async |text: &str| {
        flow.wait_until("it answers", || {
            let posts = flow.slack_posts("D0ANN");
            posts.last().is_some_and(|post| post.1 == text)
        })
        .await;
    };
    deep.enqueue(ModelReply::text("From the deep."));
    let asked = ask("--model deep why is it blue?");
    answered("From the deep.").await;
    assert_eq!((deep.requests().len(), flow.model.requests().len()), (1, 0));

    // The next question asks nothing of the kind, and an edit takes the wish back.
    flow.model.enqueue(ModelReply::text("From the usual."));
    ask("and why is it dark?");
    answered("From the usual.").await;
    flow.settle().await;
    flow.model.enqueue(ModelReply::text("From the usual, too."));
    flow.slack.edit("D0ANN", &asked, "why is it blue?");
    flow.wait_until("the first is answered again", || {
        let posts = flow.slack_posts("D0ANN");
        posts.iter().any(|post| post.1 == "From the usual, too.")
    })
    .await;
    assert_eq!((deep.requests().len(), flow.model.requests().len()), (1, 2));

    // A name that is none of its models is told, and no model is asked.
    ask("--model huge why?");
    flow.wait_until("it is told", || {
        let posts = flow.slack_posts("D0ANN");
        posts.iter().any(|post| post.1.contains("there are: deep"))
    })
    .await;
    flow.settle().await;
    assert_eq!((deep.requests().len(), flow.model.requests().len()), (1, 2));

    // The wish outlives a kill.
    deep.hold();
    ask("--model deep once more?");
    assert!(deep.wait_for_requests(2, WAIT).await);
    flow.kill().await;
    deep.release();
    deep.enqueue(ModelReply::text("Deep again."));
    flow.start().await;
    flow.wait_until("it answers", || {
        let posts = flow.slack_posts("D0ANN");
        posts.last().is_some_and(|post| post.1 == "Deep again.")
    })
    .await;
    assert_eq!(flow.model.requests().len(), 2);
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_waits_for_the_model_that_it_asks_for_and_for_no_other() {
    let (deep, settings) = deep_model().await;
    let mut flow = FlowBuilder::default()
        .agent("vocative", "models = [\"deep\"]")
        .config(&settings)
        .start()
        .await;
    // The agent's own model refuses the account: its questions wait, one for the other model does not.
    flow.model.enqueue(ModelReply::status(401));
    flow.slack.say("D0ANN", "ann", "one");
    flow.wait_until("it was asked", || flow.model.requests().len() == 1)
        .await;
    deep.enqueue(ModelReply::text("From the deep."));
    let asked = flow.slack.say(GENERAL, "bob", "@vocative --model deep two");
    assert_eq!(
        flow.slack_reply(GENERAL, &asked).await.text,
        "From the deep."
    );
    assert_eq!(flow.model.requests().len(), 1);

    // Once that one refuses, too, the queue says which model a question waits for.
    deep.enqueue(ModelReply::status(401));
    flow.slack
        .say(GENERAL, "bob", "@vocative --model deep three");
    assert!(deep.wait_for_requests(2, WAIT).await);
    let shown = flow.cli(&["queue", "list"]).await.stdout;
    assert!(shown.contains("its model deep"), "{shown}");
    assert_eq!(flow.stop().await, Some(0));
}
