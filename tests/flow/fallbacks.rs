//! A model that refuses its account, and another one that is asked in its place: what people and operators see of it.

use std::net::{Ipv4Addr, SocketAddr};

use serde_json::json;
use vocative_sandbox::model::{ModelReply, ModelServer};
use vocative_sandbox::wire::WireLog;

use crate::harness::FlowBuilder;

const GENERAL: &str = "#general";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_model_answers_in_the_middle_of_a_run_and_the_first_once_it_is_back() {
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let main = ModelServer::start(anywhere, WireLog::new()).await.unwrap();
    let settings = format!(
        "[models.main]\nprovider = \"openai\"\nmodel = \"loopback-large\"\nbase_url = \"{}\"\n\
         api_key = \"env:FLOW_MODEL_KEY\"\nfallback = [\"scripted\"]\n",
        main.openai_url()
    );
    let mut flow = FlowBuilder::default()
        .agent("vocative", "model = \"main\"")
        .config(&settings)
        .start()
        .await;
    // It looks something up, and then it is gone: the other one goes on from there.
    let search = json!({"queries": ["tea"]});
    main.enqueue(ModelReply::tool_call("c1", "conversation_search", search));
    main.enqueue(ModelReply::status(401));
    flow.model
        .enqueue(ModelReply::text("No tea was spoken of."));
    let asked = flow.slack.say(GENERAL, "ann", "@vocative was there tea?");
    let told = flow.slack_reply(GENERAL, &asked).await;
    assert_eq!(told.text, "No tea was spoken of.");
    let sent = flow.model.requests()[0].body.to_string();
    assert!(
        sent.contains("conversation_search") && sent.contains("c1"),
        "{sent}"
    );
    assert!(!sent.contains("loopback-large"), "{sent}");
    let id = flow.conversation_id("C0GENERAL", Some(&asked)).await;
    let timeline = flow
        .cli(&["conversations", "show", &id, "--timeline"])
        .await;
    assert!(
        timeline.stdout.contains("by main and scripted"),
        "{timeline:?}"
    );

    // The next question is not sent into the refusal.
    flow.model.enqueue(ModelReply::text("Still none."));
    let asked = flow.slack.say(GENERAL, "bob", "@vocative and coffee?");
    assert_eq!(flow.slack_reply(GENERAL, &asked).await.text, "Still none.");
    assert_eq!(main.requests().len(), 2);

    // Whoever mended the account says so, and it is asked again.
    let released = flow.cli(&["agents", "release", "main"]).await;
    assert_eq!(released.status, Some(0), "{released:?}");
    main.enqueue(ModelReply::text("I am back."));
    let asked = flow.slack.say(GENERAL, "ann", "@vocative hello?");
    assert_eq!(flow.slack_reply(GENERAL, &asked).await.text, "I am back.");
    assert_eq!(flow.model.requests().len(), 2);
    assert_eq!(flow.stop().await, Some(0));
}
