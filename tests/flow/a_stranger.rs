//! The story of a stranger in a shared channel: Sue is of another organisation, and `answer_strangers` is
//! off. Whatever she says, and whatever Slack leaves out, she is not served, and nothing of her is kept.
//! Ann, who belongs here, is served in the same channel.

use serde_json::json;
use vocative_sandbox::slack::{CallFault, UserPost};

use crate::files::slack_file;
use crate::harness::{Flow, FlowBuilder};

const SUE: &str = "U0STRANGER";

/// Somebody shares a file in the channel that two organisations share; Slack names no team with it.
fn shares_a_file(flow: &Flow, user: &str, text: &str) -> String {
    let file = flow
        .slack
        .add_file(slack_file("notes.txt", "text/plain", b"obsidian notes"));
    flow.slack.post_with(UserPost {
        channel: "#partners".to_owned(),
        user: user.to_owned(),
        text: flow.slack.typed(text),
        files: vec![file],
        ..UserPost::default()
    })
}

/// An event as Slack sends it of a channel that another organisation hosts: the payload names the host.
fn says_in_a_hosted_channel(flow: &Flow, ts: &str, author: &serde_json::Value) {
    let world = flow.slack.world();
    let mut event = json!({"type": "app_mention", "channel": "C0PARTNERS", "user": SUE, "ts": ts,
        "event_ts": ts, "text": format!("<@{}> obsidian by the host's door?", world.bot_user_id)});
    let told = author.as_object().unwrap().clone();
    event.as_object_mut().unwrap().extend(told);
    flow.slack.raw_payload(json!({
        "type": "event_callback", "team_id": "T0OTHER", "enterprise_id": "E0OTHER",
        "context_team_id": world.team_id, "event_id": format!("Ev{ts}"), "event_time": 1,
        "is_ext_shared_channel": true, "event": event,
        "authorizations": [{"team_id": world.team_id, "enterprise_id": null,
                            "user_id": world.bot_user_id, "is_bot": true}],
    }));
}

/// Whether a word is in any file of the daemon's data.
fn is_kept(flow: &Flow, word: &str) -> bool {
    let folder = flow.directory().join("data");
    let files = walk(&folder);
    let word = word.as_bytes();
    files.iter().any(|path| {
        let bytes = std::fs::read(path).unwrap_or_default();
        bytes.windows(word.len()).any(|window| window == word)
    })
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(walk(&path)),
            false => found.push(path),
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_in_a_shared_channel() {
    let flow = FlowBuilder::default().start().await;

    // Sue asks. She alone is told that she is not served.
    flow.slack.say("#partners", "sue", "@vocative obsidian?");
    flow.wait_until("she is told", || flow.slack.ephemerals().len() == 1)
        .await;
    let told = &flow.slack.ephemerals()[0];
    assert_eq!(told.user, SUE);
    assert!(
        told.text.contains("people of other organisations"),
        "{}",
        told.text
    );

    // She shares a file: Slack names no team with it. She is looked up, and still not served.
    shares_a_file(&flow, "sue", "@vocative what is in this obsidian file?");
    // Her organisation hosts the channel, and the payload names it as if it were ours.
    says_in_a_hosted_channel(&flow, "1763712000.000100", &json!({"user_team": "E0OTHER"}));
    says_in_a_hosted_channel(&flow, "1763712000.000200", &json!({"user_team": "T0OTHER"}));
    says_in_a_hosted_channel(&flow, "1763712000.000300", &json!({"team": "T0ACME"}));
    says_in_a_hosted_channel(&flow, "1763712000.000400", &json!({}));
    flow.settle().await;
    assert_eq!(flow.model.requests().len(), 0, "no model was asked");
    assert_eq!(flow.slack_posts("#partners").len(), 0);
    assert!(!is_kept(&flow, "obsidian"), "nothing that she said is kept");
    assert!(!is_kept(&flow, "Sue Example"), "nor her name");

    // Ann shares a file in the same channel. No team is told of her either; the directory knows her.
    let asked = shares_a_file(&flow, "ann", "@vocative and in this?");
    flow.slack_reply("#partners", &asked).await;

    // The directory fails for Bob's first word: who can't be looked up is a stranger.
    for _ in 0..8 {
        flow.slack
            .faults()
            .next("users.info", CallFault::Error("internal_error".to_owned()));
    }
    shares_a_file(&flow, "bob", "@vocative do you know me?");
    flow.settle().await;
    assert_eq!(flow.slack_posts("#partners").len(), 1);
    flow.slack.faults().clear();
    let asked = shares_a_file(&flow, "bob", "@vocative and now?");
    flow.slack_reply("#partners", &asked).await;

    // The operator lets strangers in.
    flow.reconfigure(
        "[channels.slack.acme]",
        "[channels.slack.acme]\nanswer_strangers = true",
    );
    flow.reload().await;
    let asked = flow.slack.say("#partners", "sue", "@vocative may I now?");
    flow.slack_reply("#partners", &asked).await;
    assert_eq!(flow.slack.violations(), Vec::<String>::new());
}
