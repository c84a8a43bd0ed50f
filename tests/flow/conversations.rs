//! Conversations as operators see them, beside the daemon and without it.

use serde_json::Value;
use vocative_sandbox::model::ModelReply;

use crate::harness::Flow;

fn named<'a>(listed: &'a [Value], name: &str) -> Option<&'a Value> {
    listed.iter().find(|view| view["name"] == name)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_is_named_archived_and_found_with_and_without_a_daemon() {
    let mut flow = Flow::start_default().await;
    flow.model.enqueue(ModelReply::text("At three."));
    let question = flow
        .slack
        .say("#general", "ann", "@vocative when is the deploy?");
    flow.slack_reply("#general", &question).await;
    flow.settle().await;
    let listed = flow.conversations().await;
    let thread = listed
        .iter()
        .find(|view| view["scope"] == "thread")
        .unwrap();
    let words = "@Vocative when is the deploy?";
    assert_eq!(
        thread["title"].as_str().unwrap().to_lowercase(),
        words.to_lowercase()
    );
    assert_eq!(thread["source"]["channel"], "acme");
    assert_eq!(thread["source"]["platform"], "slack");
    let id = thread["id"].as_str().unwrap().to_owned();

    for is_running in [true, false] {
        if !is_running {
            assert_eq!(flow.stop().await, Some(0));
        }
        let told = flow
            .cli(&["conversations", "title", &id, "Deploy of\nMay"])
            .await;
        assert!(
            told.stdout.ends_with("is now called Deploy of May\n"),
            "{told:?}"
        );
        let told = flow.cli(&["conversations", "archive", &id]).await;
        assert_eq!(told.status, Some(0), "{told:?}");
        assert!(
            flow.conversations()
                .await
                .iter()
                .all(|view| view["id"] != id.as_str())
        );
        let all = flow.cli_json(&["conversations", "list", "--all"]).await;
        let all = all.as_array().unwrap();
        let found = all.iter().find(|view| view["id"] == id.as_str()).unwrap();
        assert_eq!(found["title"], "Deploy of May");
        assert_eq!(found["has_own_title"], true);
        assert!(found["archived_at_ms"].is_i64(), "{found}");
        let told = flow.cli(&["conversations", "unarchive", &id]).await;
        assert_eq!(told.status, Some(0), "{told:?}");
        let told = flow.cli(&["conversations", "title", &id, "--clear"]).await;
        assert!(
            told.stdout.to_lowercase().contains(&words.to_lowercase()),
            "{told:?}"
        );
        // The bot's own mention has its name, also when nobody can be asked for it.
        let shown = flow.cli(&["conversations", "show", "acme/#general"]).await;
        assert!(!shown.stdout.contains("U0VOCATIVE"), "{shown:?}");
        assert!(shown.stdout.contains("participants  "), "{shown:?}");
        let prompt = flow.cli(&["prompt", &id]).await;
        assert!(!prompt.stdout.contains("U0VOCATIVE"), "{prompt:?}");
        let found = flow
            .cli(&["conversations", "search", "acme/#general", "deploy"])
            .await;
        assert!(!found.stdout.contains("U0VOCATIVE"), "{found:?}");
    }
    let told = flow
        .cli(&["conversations", "archive", "acme/#general"])
        .await;
    assert_eq!(told.status, Some(0), "{told:?}");
    flow.start().await;
    assert!(named(&flow.conversations().await, "acme/#general").is_none());
    flow.slack.say("#general", "ann", "and something new");
    flow.settle().await;
    let listed = flow.conversations().await;
    assert!(named(&listed, "acme/#general").is_some(), "{listed:?}");
}
