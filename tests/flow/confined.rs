//! Outside systemd the daemon gives up what it does not need of the file system (Linux's Landlock).

use std::path::Path;

use crate::files::{show_on_slack, slack_file, stored};
use crate::harness::{Flow, FlowBuilder};

/// A daemon with this setting of `daemon.landlock`.
async fn confined(setting: &str) -> Flow {
    let mut flow = FlowBuilder::default()
        .config("[files]\nwait_s = 1\n")
        .prepare()
        .await;
    flow.reconfigure(
        "[daemon]\n",
        &format!("[daemon]\nlandlock = \"{setting}\"\n"),
    );
    flow.start().await;
    flow
}

/// Whether this machine's kernel can; says so loudly where it can't.
async fn is_possible() -> bool {
    let flow = FlowBuilder::default().prepare().await;
    let told = flow.cli(&["check"]).await;
    let is_possible = told.stdout.contains("landlock       on");
    if !is_possible {
        eprintln!("SKIPPED: this kernel has no Landlock, so nothing was shown of it");
    }
    is_possible
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}

/// Leads the folder of stored files to another place, and shows the daemon a file to store there.
async fn store_elsewhere(flow: &Flow, elsewhere: &Path) {
    let files = flow.directory().join("data").join("files");
    std::fs::remove_dir_all(&files).unwrap();
    std::os::unix::fs::symlink(elsewhere, &files).unwrap();
    let plan = slack_file("plan.txt", "text/plain", b"The plan is secret.");
    show_on_slack(flow, plan, "and what is the plan?");
    flow.wait_for_model(2).await;
    flow.settle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_confined_daemon_works_in_its_own_folders_and_writes_nowhere_else() {
    if !is_possible().await {
        return;
    }
    for (setting, is_confined) in [("on", true), ("auto", true), ("off", false)] {
        let mut flow = confined(setting).await;
        let landlock = flow.status().await["landlock"].to_string();
        assert_eq!(landlock.starts_with("\"on"), is_confined, "{landlock}");
        let notes = slack_file("notes.txt", "text/plain", b"The code is zebra.");
        show_on_slack(&flow, notes, "what is the code?");
        flow.wait_for_model(1).await;
        flow.settle().await;
        assert_eq!(stored(&flow).len(), 1);

        let elsewhere = tempfile::tempdir().unwrap();
        store_elsewhere(&flow, elsewhere.path()).await;
        assert_eq!(is_empty(elsewhere.path()), is_confined, "{setting}");
        // Its sockets and its database, again.
        flow.restart().await;
        assert_eq!(flow.stop().await, Some(0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_confined_daemon_reads_replaced_files_again_and_no_others() {
    if !is_possible().await {
        return;
    }
    let flow = confined("on").await;
    let outside = tempfile::tempdir().unwrap();
    let key = outside.path().join("key");
    std::fs::write(&key, "sk-outside").unwrap();
    let of_file = |path: &Path| format!("api_key = \"file:{}\"", path.display());
    flow.reconfigure("api_key = \"env:FLOW_MODEL_KEY\"", &of_file(&key));
    let told = flow.cli(&["reload"]).await;
    assert_ne!(told.status, Some(0), "{told:?}");
    assert!(told.stderr.contains("daemon.landlock"), "{}", told.stderr);

    let own = flow.directory().join("key");
    std::fs::write(&own, "sk-inside").unwrap();
    let text = std::fs::read_to_string(flow.config_path()).unwrap();
    let replaced = flow.directory().join("vocative.toml.new");
    std::fs::write(&replaced, text.replace(&of_file(&key), &of_file(&own))).unwrap();
    std::fs::rename(&replaced, flow.config_path()).unwrap();
    let told = flow.cli(&["reload"]).await;
    assert_eq!(told.status, Some(0), "{told:?}");
}
