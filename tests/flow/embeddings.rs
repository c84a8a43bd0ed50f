//! Vectors of what is said: made in the background, gone with the text, and never in the way of an answer.

use serde_json::{Value, json};

use crate::harness::{Flow, FlowBuilder};

const GENERAL: &str = "#general";

async fn with_embeddings(further: &str) -> Flow {
    let flow = FlowBuilder::default().prepare().await;
    let table = format!(
        "[embeddings]\nbase_url = \"{}\"\nmodel = \"loopback-mini\"\napi_key = \"env:FLOW_MODEL_KEY\"\n{further}",
        flow.model.openai_url()
    );
    let text = std::fs::read_to_string(flow.config_path()).unwrap();
    std::fs::write(flow.config_path(), format!("{text}\n{table}")).unwrap();
    flow
}

fn embedded(flow: &Flow) -> Vec<String> {
    flow.model.embedded_texts().into_iter().flatten().collect()
}

fn counts(status: &Value, embedded: u64) -> bool {
    let embeddings = &status["embeddings"];
    embeddings["embedded"] == embedded && embeddings["remaining_max"] == 0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_said_gets_vectors_and_what_is_deleted_loses_them() {
    let mut flow = with_embeddings("").await;
    flow.start().await;
    flow.slack.say(GENERAL, "ann", "the first line");
    let second = flow.slack.say(GENERAL, "bob", "the second line");
    flow.wait_for_status("two turns have vectors", |status| counts(status, 2))
        .await;
    flow.slack.edit(GENERAL, &second, "the zebra line");
    flow.wait_until("the new text is embedded", || {
        embedded(&flow).contains(&"the zebra line".to_owned())
    })
    .await;
    flow.slack.delete(GENERAL, &second);
    flow.wait_for_status("one turn has a vector", |status| counts(status, 1))
        .await;
    let status = flow.status().await;
    assert_eq!(status["embeddings"]["model"], "loopback-mini");
    assert!(
        status["embeddings"]["tokens_today"].as_u64() > Some(0),
        "{status}"
    );
    assert!(!flow.log().contains("zebra") && !flow.log().contains("sk-flow"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_down_delays_vectors_and_no_answer() {
    let mut flow = with_embeddings("").await;
    flow.model.refuse_embeddings(Some((503, "")));
    flow.start().await;
    let asked = flow.slack.say(GENERAL, "ann", "@vocative hello?");
    flow.slack_reply(GENERAL, &asked).await;
    let job = flow.wait_for_job("server can't answer").await;
    assert_eq!(job["kind"], "embed-turns", "{job}");
    flow.model.refuse_embeddings(None);
    flow.wait_for_status("both turns have vectors", |status| counts(status, 2))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_that_is_refused_holds_up_no_other() {
    let mut flow = with_embeddings("").await;
    flow.model.refuse_embeddings(Some((400, "poison")));
    flow.start().await;
    for text in ["before", "a poison text", "after"] {
        flow.slack.say(GENERAL, "ann", text);
    }
    flow.wait_for_status("two turns have vectors", |status| counts(status, 2))
        .await;
    assert!(!embedded(&flow).contains(&"a poison text".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vectors_of_an_exchanged_model_are_not_mixed_with_those_that_are_stored() {
    let mut flow = with_embeddings("").await;
    flow.start().await;
    flow.slack.say(GENERAL, "ann", "before");
    flow.wait_for_status("one turn has a vector", |status| counts(status, 1))
        .await;
    flow.model.exchange_embedding_model(32);
    flow.slack.say(GENERAL, "ann", "after");
    let job = flow.wait_for_job("another model under the same name").await;
    assert_eq!(job["kind"], "embed-turns", "{job}");
    flow.stop().await;
    flow.reconfigure("loopback-mini\"", "loopback-mini\"\ndimensions = 32");
    flow.start().await;
    flow.wait_for_status("both turns have vectors of the new model", |status| {
        counts(status, 2) && status["embeddings"]["model"] == "loopback-mini, 32 dimensions"
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_day_s_tokens_are_spent_once() {
    let mut flow = with_embeddings("tokens_per_day = 1\n").await;
    flow.start().await;
    flow.slack.say(GENERAL, "ann", "a line of some tokens");
    flow.wait_for_status("one turn has a vector", |status| counts(status, 1))
        .await;
    flow.slack.say(GENERAL, "ann", "another line");
    flow.wait_for_job("embeddings.tokens_per_day is spent")
        .await;
    assert_eq!(embedded(&flow), ["a line of some tokens"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_finds_what_means_the_same_in_other_words() {
    let mut flow = with_embeddings("").await;
    flow.model.mean_the_same(&["wifi", "network"]);
    flow.start().await;
    for number in 1..=6 {
        let text = format!("the build number {number} is green");
        flow.slack.say(GENERAL, "bob", &text);
    }
    flow.slack
        .say(GENERAL, "ann", "the network is called otter");
    flow.wait_for_status("seven turns have vectors", |status| counts(status, 7))
        .await;
    let search = json!({"queries": ["wifi"]});
    flow.model
        .look_up("secret", "conversation_search", search.clone());
    let asked = flow
        .slack
        .say(GENERAL, "ann", "@vocative what is the secret?");
    flow.slack_reply(GENERAL, &asked).await;
    let found = flow.model.requests().last().map(|it| it.body.to_string());
    let found = found.unwrap_or_default();
    assert!(found.contains("the network is called otter"), "{found}");
    let found = flow.cli(&["conversations", "search", "acme/#general", "wifi"]);
    let found = found.await.stdout;
    assert!(found.contains("the network is called otter"), "{found}");
    // A server that hangs costs what only it finds, and no answer.
    flow.model.hang_embeddings(true);
    flow.model.look_up("again", "conversation_search", search);
    let asked = flow.slack.say(GENERAL, "ann", "@vocative again?");
    flow.slack_reply(GENERAL, &asked).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_means_the_same_is_put_into_the_prompt_and_a_hanging_server_costs_no_answer() {
    let mut flow = with_embeddings("").await;
    flow.model.mean_the_same(&["wifi", "network"]);
    flow.start().await;
    for number in 1..=6 {
        let text = format!("the build {number} is green");
        flow.slack.say(GENERAL, "bob", &text);
    }
    flow.slack.say(GENERAL, "bob", "my wifi is slow");
    flow.slack.say(GENERAL, "ann", "the network: otter");
    flow.wait_for_status("eight turns have vectors", |status| counts(status, 8))
        .await;
    let asked = flow.slack.say(GENERAL, "bob", "@vocative wifi?");
    flow.slack_reply(GENERAL, &asked).await;
    let sent = flow.model.requests()[0].body.to_string();
    assert!(sent.contains(") Ann: the network: otter"), "{sent}");
    flow.model.hang_embeddings(true);
    let asked = flow
        .slack
        .say(GENERAL, "bob", "@vocative and which wifi is slow?");
    flow.slack_reply(GENERAL, &asked).await;
    let sent = flow.model.requests()[1].body.to_string();
    assert!(sent.contains(") Bob: my wifi is slow"), "{sent}");
}
