//! Stored files in backups, restores, exports, and the numbers about them.

use std::path::Path;

use rusqlite::Connection;
use serde_json::Value;
use vocative_sandbox::slack::{CallFault, UserPost};

use crate::files::{show_on_slack, slack_file, stored};
use crate::harness::{Flow, FlowBuilder};

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
        .next("files.info", CallFault::Error("file_deleted".to_owned()));
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_brings_the_files_out_of_the_archive() {
    let flow = with_a_file().await;
    let out = flow.directory().join("general.jsonl");
    let files = flow.directory().join("out");
    let conversation = flow.conversation_id("D0ANN", None).await;
    let export = ["conversations", "export", &conversation];
    let plain = flow.cli(&export).await;
    let line: Value = serde_json::from_str(plain.stdout.lines().next().unwrap()).unwrap();
    let attached = &line["attachments"][0];
    assert_eq!(attached["state"], "fetched", "{line}");
    let path = flow
        .directory()
        .join("data")
        .join(attached["path"].as_str().unwrap());
    assert_eq!(std::fs::read(path).unwrap(), b"a zebra");

    let told = flow
        .cli(
            &[
                &export[..],
                &["--output", text(&out), "--files", text(&files)],
            ]
            .concat(),
        )
        .await;
    assert_eq!(told.status, Some(0), "{told:?}");
    let line = std::fs::read_to_string(&out).unwrap();
    let line: Value = serde_json::from_str(line.lines().next().unwrap()).unwrap();
    let path = Path::new(line["attachments"][0]["path"].as_str().unwrap());
    assert_eq!(path.parent(), Some(files.as_path()));
    assert_eq!(path.extension().unwrap(), "md");
    assert_eq!(std::fs::read(path).unwrap(), b"a zebra");
    // What can't be had is named, and the export is there all the same.
    std::fs::remove_file(&stored(&flow)[0]).unwrap();
    let again = flow.directory().join("again.jsonl");
    let told = flow
        .cli(
            &[
                &export[..],
                &["--output", text(&again), "--files", text(&files)],
            ]
            .concat(),
        )
        .await;
    assert_eq!(told.status, Some(1), "{told:?}");
    assert!(told.stderr.contains("is not there"), "{told:?}");
    assert!(again.is_file());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn status_counts_files_and_says_why_one_is_only_named() {
    let flow = with_a_file().await;
    flow.slack
        .faults()
        .next("files.info", CallFault::Error("file_deleted".to_owned()));
    show_on_slack(&flow, slack_file("b.md", "text/markdown", b"b"), "b?");
    let status = flow
        .wait_for_status("both files are settled", |status| {
            status["files"]["refused"] == 1 && status["files"]["waiting"] == 0
        })
        .await;
    let files = &status["files"];
    let counts = ["stored", "bytes", "waiting", "fetched", "failed"];
    let counts = counts.map(|name| files[name].as_u64().unwrap());
    assert_eq!(counts, [1, 7, 0, 1, 0], "{files}");
    assert_eq!(files["last_reason"], "file_deleted");
    let told = flow.cli(&["status"]).await;
    let expected = "files     1 stored (0 KiB), 0 waiting, 1 only named since the start; the last: \
                    file_deleted";
    assert!(told.stdout.contains(expected), "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_are_on_their_way_together_never_pass_the_limit_of_all() {
    let settings = "[files]\nmax_total_mib = 1\nwait_s = 0\n";
    let flow = FlowBuilder::default().config(settings).start().await;
    for _ in 0..4 {
        flow.slack
            .faults()
            .next("files-pri", CallFault::Latency(500));
    }
    for letter in [b'a', b'b', b'c', b'd'] {
        let bytes = vec![letter; 400 << 10];
        show_on_slack(&flow, slack_file("x.txt", "text/plain", &bytes), "x");
    }
    let status = flow
        .wait_for_status("all four are settled", |status| {
            let count = |name| status["files"][name].as_u64().unwrap_or(0);
            count("fetched") + count("refused") == 4
        })
        .await;
    let files = &status["files"];
    assert_eq!(files["fetched"], 2, "{files}");
    assert_eq!(files["stored"], 2, "{files}");
    assert_eq!(files["last_reason"], "files.max_total_mib is reached");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_the_limit_the_oldest_files_make_room_so_that_reading_files_never_ends() {
    let settings = "[files]\nmax_total_mib = 1\nwait_s = 0\n";
    let mut flow = FlowBuilder::default().config(settings).start().await;
    let show = |flow: &Flow, letter: u8| {
        let bytes = vec![letter; 400 << 10];
        show_on_slack(flow, slack_file("x.txt", "text/plain", &bytes), "x");
    };
    show(&flow, b'a');
    show(&flow, b'b');
    flow.wait_for_status("both are fetched", |status| status["files"]["fetched"] == 2)
        .await;
    assert_eq!(flow.stop().await, Some(0));
    let path = flow.directory().join("data").join("vocative.db");
    let database = Connection::open(path).unwrap();
    let earlier = "UPDATE files SET finished_at_ms = finished_at_ms - 7200000 + 1000 * id";
    assert_eq!(database.execute(earlier, []).unwrap(), 2);
    // A run that found a file fetched has read it.
    let earlier = "UPDATE runs SET created_at_ms = created_at_ms - 7200000";
    assert!(database.execute(earlier, []).unwrap() > 0);
    drop(database);

    flow.start().await;
    // In another room: a question in the same one reads the two earlier files, and then they stay.
    let file = slack_file("x.txt", "text/plain", &vec![b'c'; 400 << 10]);
    let file = flow.slack.add_file(file);
    flow.slack.post_with(UserPost {
        channel: "C0GENERAL".to_owned(),
        user: "ann".to_owned(),
        text: "<@U0VOCATIVE> x".to_owned(),
        files: vec![file],
        ..UserPost::default()
    });
    let status = flow
        .wait_for_status("it is fetched", |status| {
            status["files"]["fetched"] == 1 && status["files"]["waiting"] == 0
        })
        .await;
    assert_eq!(status["files"]["evicted_bytes"], 400 << 10, "{status}");
    assert_eq!(status["files"]["stored"], 2, "{status}");
}
