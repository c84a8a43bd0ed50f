//! Stored files in backups, restores, exports, and the numbers about them.

use std::path::Path;

use vocative_sandbox::slack::Fault;

use crate::files::{show_on_slack, slack_file, stored};
use crate::harness::Flow;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A daemon with one stored file.
async fn with_a_file() -> Flow {
    let flow = Flow::start_default().await;
    show_on_slack(
        &flow,
        slack_file("../a/notes.md", "text/markdown", b"a zebra"),
        "a?",
    );
    flow.wait_until("the file is stored", || stored(&flow).len() == 1)
        .await;
    flow.settle().await;
    flow
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_backup_has_its_files_without_the_platform() {
    let mut flow = with_a_file().await;
    let folder = flow.directory().join("backups");
    std::fs::create_dir(&folder).unwrap();
    let told = flow.cli(&["backup", text(&folder), "--keep", "2"]).await;
    assert_eq!(told.status, Some(0), "{told:?}");
    assert!(
        told.stdout.contains("1 attached file, 1 KiB, verified"),
        "{told:?}"
    );
    let names = std::fs::read_dir(&folder).unwrap();
    let mut names: Vec<_> = names.map(|entry| entry.unwrap().path()).collect();
    names.sort();
    assert_eq!(names.len(), 2, "{names:?}");
    assert_eq!(flow.stop().await, Some(0));
    // Everything is lost, and the platform has it no more.
    std::fs::remove_dir_all(flow.directory().join("data")).unwrap();
    flow.slack
        .faults()
        .next("files.info", Fault::Error("file_deleted".to_owned()));
    let told = flow.cli(&["restore", text(&names[0])]).await;
    assert_eq!(told.status, Some(0), "{told:?}");
    assert!(
        told.stdout.contains("1 attached file restored."),
        "{told:?}"
    );
    assert_eq!(std::fs::read(&stored(&flow)[0]).unwrap(), b"a zebra");
    flow.start().await;
    let asked = flow.model.requests().len();
    flow.slack.say("D0ANN", "ann", "again?");
    flow.wait_for_model(asked + 1).await;
    let messages = flow.model_prompt(asked);
    let (_, last) = messages.last().unwrap();
    assert!(last.contains("a zebra"), "{last}");
    // One without them says so.
    let bare = flow.directory().join("bare.db");
    let told = flow.cli(&["backup", text(&bare), "--without-files"]).await;
    assert!(
        told.stdout
            .contains("The bytes of 1 attached file are not in it"),
        "{told:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_or_altered_file_is_an_exit_code_of_the_check_and_the_backup() {
    let mut flow = with_a_file().await;
    let told = flow.cli(&["check", "--database"]).await;
    assert_eq!(told.status, Some(0), "{told:?}");
    let path = stored(&flow).remove(0);
    std::fs::write(&path, b"a zebrA").unwrap();
    let told = flow.cli(&["check", "--database"]).await;
    assert_eq!(told.status, Some(65), "{told:?}");
    assert!(told.stdout.contains("holds other bytes"), "{told:?}");
    assert!(told.stderr.contains("a stored file is lost"), "{told:?}");
    let backup = flow.directory().join("backup.db");
    let told = flow.cli(&["backup", text(&backup)]).await;
    assert_eq!(told.status, Some(65), "{told:?}");
    assert!(backup.is_file(), "the rest is safe: {told:?}");
    assert_eq!(flow.stop().await, Some(0));
    std::fs::remove_file(&path).unwrap();
    let told = flow.cli(&["check", "--database"]).await;
    assert!(told.stdout.contains("is not there"), "{told:?}");
    flow.start().await;
    flow.wait_until("the file is stored again", || stored(&flow).len() == 1)
        .await;
    let told = flow.cli(&["check", "--database"]).await;
    assert_eq!(told.status, Some(0), "{told:?}");
}
