//! Backups while the daemon works, and restores: nothing acknowledged is missing, nothing is said
//! twice, and whatever fails or is killed leaves a whole database.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use vocative_sandbox::model::ModelReply;

use crate::harness::Flow;

fn data(flow: &Flow) -> PathBuf {
    flow.directory().join("data")
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Lets the daemon work in another data folder from its next start on.
fn move_to(flow: &Flow, folder: &str) {
    let old = format!("data_dir = \"{}\"", data(flow).display());
    let new = format!("data_dir = \"{}\"", flow.directory().join(folder).display());
    flow.reconfigure(&old, &new);
}

fn texts(turns: &[Value]) -> Vec<String> {
    turns
        .iter()
        .map(|turn| turn["text"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_under_load_restores_elsewhere_and_nothing_is_said_again() {
    let mut flow = Flow::start_default().await;
    flow.model.enqueue(ModelReply::text("At three."));
    let answered = flow.slack.say("#general", "ann", "@vocative when is it?");
    flow.slack_reply("#general", &answered).await;
    for number in 0..40 {
        flow.slack
            .say("#general", "ann", &format!("before {number}"));
    }
    flow.settle().await;
    flow.model.hold();
    flow.slack.say("#general", "ann", "@vocative still open?");
    flow.wait_for_model(2).await;

    let is_done = Arc::new(AtomicBool::new(false));
    let file = flow.directory().join("backup.db");
    let told = {
        let backup = async {
            let told = flow.cli(&["backup", text(&file)]).await;
            is_done.store(true, Ordering::Relaxed);
            told
        };
        let load = async {
            let mut said = 0;
            while !is_done.load(Ordering::Relaxed) {
                flow.slack.say("#general", "ann", &format!("during {said}"));
                said += 1;
                flow.wait_until_heard().await;
            }
        };
        tokio::join!(backup, load).0
    };
    assert_eq!(told.status, Some(0), "{told:?}");
    assert!(told.stdout.contains("verified"), "{told:?}");
    flow.model.enqueue(ModelReply::text("Yes, open."));
    flow.model.release();
    flow.settle().await;
    let posts = flow.slack_posts("#general");
    assert_eq!(posts.len(), 2, "{posts:?}");
    let room = flow.turns("acme/#general").await;
    assert_eq!(flow.stop().await, Some(0));

    move_to(&flow, "elsewhere");
    let told = flow.cli(&["restore", text(&file)]).await;
    assert_eq!(told.status, Some(0), "{told:?}");
    assert!(
        told.stdout.contains("held: 0 posts and 1 question, which"),
        "{told:?}"
    );
    flow.start().await;
    flow.settle().await;
    assert_eq!(flow.slack_posts("#general"), posts, "nothing is said again");
    let restored = texts(&flow.turns("acme/#general").await);
    let before = texts(&room);
    assert_eq!(restored, before[..restored.len()]);
    assert!(restored.contains(&"before 39".to_owned()), "{restored:?}");

    let held = flow.cli_json(&["held", "list"]).await;
    let run = held[0]["run"]["id"].as_str().unwrap().to_owned();
    assert!(held[0]["text"].as_str().unwrap().contains("still open?"));
    let status = flow.cli(&["status"]).await;
    assert_eq!(status.status, Some(1), "{status:?}");
    let dropped = flow.cli(&["held", "drop", &run]).await;
    assert_eq!(dropped.stdout, "It is dropped.\n");
    assert_eq!(flow.cli_json(&["held", "list"]).await, Value::Array(vec![]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_question_is_answered_when_a_person_releases_it() {
    let mut flow = Flow::start_default().await;
    flow.model.hold();
    let question = flow.slack.say("#general", "ann", "@vocative when is it?");
    flow.wait_for_model(1).await;
    let file = flow.directory().join("backup.db");
    assert_eq!(flow.cli(&["backup", text(&file)]).await.status, Some(0));
    let refused = flow.cli(&["restore", text(&file)]).await;
    assert_eq!(refused.status, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("a daemon runs"), "{refused:?}");
    flow.kill().await;
    assert_eq!(flow.cli(&["restore", text(&file)]).await.status, Some(0));
    flow.model.release();
    flow.start().await;
    flow.settle().await;
    assert_eq!(flow.slack_posts("#general"), []);
    let held = flow.cli_json(&["held", "list"]).await;
    let run = held[0]["run"]["id"].as_str().unwrap();
    flow.model.enqueue(ModelReply::text("At three."));
    let told = flow.cli(&["held", "release", run]).await;
    assert_eq!(told.stdout, "It will be answered.\n");
    let answer = flow.slack_reply("#general", &question).await;
    assert_eq!(answer.text, "At three.");
}

/// Something that is there once a restore has got so far.
#[derive(Clone, Copy, Debug)]
enum Sign {
    Copying,
    OldKept,
}

fn is_seen(folder: &Path, sign: Sign) -> bool {
    let names = std::fs::read_dir(folder).unwrap();
    let mut names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.any(|name| match sign {
        Sign::Copying => name.ends_with(".restoring"),
        Sign::OldKept => name.contains(".before-restore-"),
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_in_the_middle_a_restore_leaves_the_old_database_or_the_new() {
    let mut flow = Flow::start_default().await;
    for number in 0..30 {
        let long = format!("{number} {}", "word ".repeat(600));
        flow.slack.say("#general", "ann", &long);
    }
    flow.settle().await;
    let file = flow.directory().join("backup.db");
    assert_eq!(flow.cli(&["backup", text(&file)]).await.status, Some(0));
    flow.slack.say("#general", "ann", "since the backup");
    flow.settle().await;
    assert_eq!(flow.stop().await, Some(0));
    let old = std::fs::read(data(&flow).join("vocative.db")).unwrap();
    for sign in [Sign::Copying, Sign::OldKept, Sign::Copying, Sign::OldKept] {
        let mut restoring = flow.start_cli(&["restore", text(&file)]);
        loop {
            let has_ended = restoring.try_wait().unwrap().is_some();
            if has_ended || is_seen(&data(&flow), sign) {
                break;
            }
            tokio::task::yield_now().await;
        }
        let _ = restoring.kill().await;
        let listed = flow.conversations().await;
        let turns = listed[0]["turns"].as_u64().unwrap();
        assert!(turns == 31 || turns == 30, "{sign:?}: {listed:?}");
        // Back to the start, whatever became of it.
        for entry in std::fs::read_dir(data(&flow)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if name != "vocative.db.lock" {
                std::fs::remove_file(&path).unwrap();
            }
        }
        std::fs::write(data(&flow).join("vocative.db"), &old).unwrap();
    }
    assert_eq!(flow.cli(&["restore", text(&file)]).await.status, Some(0));
    // Before a start, which reads back from Slack what was said since.
    let listed = flow.conversations().await;
    assert_eq!(listed[0]["turns"], 30, "{listed:?}");
    flow.start().await;
}
