//! Storage that refuses: nothing is acknowledged, the log says so, and all goes on when it clears.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use vocative_sandbox::slack::SlackKnobs;
use vocative_sandbox::telegram::{TelegramFault, TelegramWorld};

use crate::harness::{Flow, FlowBuilder};

const PRIVATE: i64 = TelegramWorld::ANN;

/// Another program that keeps the database to itself.
fn lock(flow: &Flow) -> Connection {
    let path = flow.directory().join("data").join("vocative.db");
    let other = Connection::open(path).unwrap();
    other
        .busy_timeout(std::time::Duration::from_secs(10))
        .unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    other
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_1_nothing_is_acknowledged_while_storage_refuses_and_all_is_answered_after() {
    let flow = Flow::start_default().await;
    let patient = |knobs: &mut SlackKnobs| knobs.retry.after_ms = vec![1_000; 60];
    flow.slack.faults().set_knobs(patient);
    let other = lock(&flow);
    let question = flow.slack.say("#general", "ann", "@vocative when is it?");
    let message = flow.telegram.say(PRIVATE, PRIVATE, "and where?");
    flow.wait_until("the log tells of both", || {
        let log = flow.log();
        log.contains("Updates could not be stored") && log.contains("an event could not be stored")
    })
    .await;
    assert!(flow.slack.unacked() > 0);
    assert!(flow.telegram.pending_updates() > 0);
    other.execute_batch("ROLLBACK").unwrap();
    drop(other);

    flow.slack_reply("#general", &question).await;
    flow.telegram_reply(PRIVATE, message).await;
    flow.settle().await;
    assert_eq!(flow.slack_posts("#general").len(), 1);
    assert_eq!(flow.telegram_posts(PRIVATE).len(), 1);
    let status = flow.status().await;
    assert!(
        status["intake"]["refused"].as_u64().unwrap() >= 2,
        "{status}"
    );
    assert_eq!(status["intake"]["captured"], 2, "{status}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_post_that_arrived_while_storage_refuses_is_not_sent_again() {
    let flow = Flow::start_default().await;
    flow.telegram
        .faults()
        .next("sendMessage", TelegramFault::LateAnswer { ms: 1_500 });
    let question = flow.telegram.say(PRIVATE, PRIVATE, "when is it?");
    flow.telegram_reply(PRIVATE, question).await;
    let other = lock(&flow);
    flow.wait_until("the log tells of it", || {
        flow.log()
            .contains("storage refuses what becomes of a post")
    })
    .await;
    other.execute_batch("ROLLBACK").unwrap();
    drop(other);
    flow.settle().await;
    assert_eq!(flow.telegram_posts(PRIVATE).len(), 1);
    let status = flow.status().await;
    assert_eq!(status["posts"]["held"], 0, "{status}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_comes_while_storage_refuses_is_given_after() {
    let flow = Flow::start_default().await;
    flow.model.hold();
    let question = flow.telegram.say(PRIVATE, PRIVATE, "when is it?");
    flow.wait_for_model(1).await;
    let other = lock(&flow);
    flow.model.release();
    flow.wait_until("the log tells of it", || {
        flow.log().contains("a run could not be worked on")
    })
    .await;
    other.execute_batch("ROLLBACK").unwrap();
    drop(other);
    flow.telegram_reply(PRIVATE, question).await;
    flow.settle().await;
    assert_eq!(flow.telegram_posts(PRIVATE).len(), 1);
}

/// The errno of a full disk, of a broken one, and of one that the system made read-only.
#[cfg(target_os = "linux")]
const ERRORS: [(&str, u8, &str); 3] = [
    ("a full disk", 28, "database or disk is full"),
    ("an I/O error", 5, "disk I/O error"),
    ("a disk that was made read-only", 30, "disk I/O error"),
];

/// A daemon whose writes fail with an errno while a file holds it; whose reads, and opening of files,
/// do while the files `reads` and `opens` beside it hold one.
#[cfg(target_os = "linux")]
async fn on_a_disk_that_can_fail() -> (Flow, PathBuf) {
    let mut flow = FlowBuilder::default().prepare().await;
    let folder = flow.directory().canonicalize().unwrap();
    let fault = folder.join("fault");
    flow.set_variable("LD_PRELOAD", crate::shim::build("shim.c", &folder));
    flow.set_variable("STORAGE_FOLDER", folder.join("data"));
    flow.set_variable("STORAGE_FAULT", fault.clone());
    flow.set_variable("STORAGE_READS", folder.join("reads"));
    flow.set_variable("STORAGE_OPENS", folder.join("opens"));
    flow.start().await;
    let patient = |knobs: &mut SlackKnobs| knobs.retry.after_ms = vec![1_000; 60];
    flow.slack.faults().set_knobs(patient);
    (flow, fault)
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_1_nothing_is_acknowledged_while_the_disk_fails_and_all_is_answered_once_after() {
    let (flow, fault) = on_a_disk_that_can_fail().await;
    for (round, (what, errno, told)) in ERRORS.into_iter().enumerate() {
        eprintln!("{what}");
        let (log_before, slack_before) = (flow.log().len(), flow.slack_posts("#general").len());
        let refused_before = flow.status().await["intake"]["refused"].as_u64().unwrap();
        std::fs::write(&fault, errno.to_string()).unwrap();
        let question = flow.slack.say("#general", "ann", "@vocative when is it?");
        let message = flow.telegram.say(PRIVATE, PRIVATE, "and where?");
        flow.wait_until("the log tells of both", || {
            let log = flow.log().split_off(log_before);
            log.contains("Updates could not be stored")
                && log.contains("an event could not be stored")
                && log.contains(told)
        })
        .await;
        assert!(flow.slack.unacked() > 0, "{what}");
        assert!(flow.telegram.pending_updates() > 0, "{what}");
        // Reading goes on: whoever asks is told.
        let status = flow.status().await;
        let refused = status["intake"]["refused"].as_u64().unwrap();
        assert!(refused >= refused_before + 2, "{what}: {status}");

        std::fs::remove_file(&fault).unwrap();
        flow.slack_reply("#general", &question).await;
        flow.telegram_reply(PRIVATE, message).await;
        flow.settle().await;
        assert_eq!(
            flow.slack_posts("#general").len(),
            slack_before + 1,
            "{what}"
        );
        assert_eq!(flow.telegram_posts(PRIVATE).len(), round + 1, "{what}");
        assert_eq!(
            flow.status().await["intake"]["captured"],
            2 * (round + 1),
            "{what}"
        );
    }
    let backup = flow.directory().join("backup.db");
    let told = flow.cli(&["backup", backup.to_str().unwrap()]).await;
    assert!(told.stdout.contains("verified"), "{told:?}");
}

/// Waits until nothing that was said in a Slack channel is still to be read back.
#[cfg(target_os = "linux")]
async fn wait_until_read(flow: &Flow) {
    flow.wait_for_status("all is read back", |status| {
        let channels = status["channels"].as_array().unwrap();
        channels
            .iter()
            .all(|channel| channel["unread_from_ms"].is_null())
    })
    .await;
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_storage_refused_until_the_platform_gave_up_is_read_back_and_answered_once() {
    let (mut flow, fault) = on_a_disk_that_can_fail().await;
    let impatient = |knobs: &mut SlackKnobs| knobs.retry.after_ms = vec![200];
    flow.slack.faults().set_knobs(impatient);
    wait_until_read(&flow).await;
    for (round, is_killed) in [false, true].into_iter().enumerate() {
        std::fs::write(&fault, "28").unwrap();
        let question = flow.slack.say("#general", "ann", "@vocative when is it?");
        let lost = || flow.slack.lost_payloads().len();
        flow.wait_until("the platform gives it up", || {
            lost() > 0 && flow.slack.unacked() == 0
        })
        .await;
        assert_eq!(flow.slack_posts("#general").len(), round);
        if is_killed {
            flow.kill().await;
        }
        std::fs::remove_file(&fault).unwrap();
        if is_killed {
            flow.start().await;
        }
        flow.slack_reply("#general", &question).await;
        wait_until_read(&flow).await;
        flow.settle().await;
        assert_eq!(flow.slack_posts("#general").len(), round + 1);
    }
}

/// SQLite calls a page that can't be read damaged; the exit code is that of a disk that fails, so a
/// supervisor starts the daemon again.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_cannot_be_read_ends_the_daemon_and_nothing_is_lost_or_doubled() {
    let (mut flow, _) = on_a_disk_that_can_fail().await;
    let reads = flow.directory().join("reads");
    let first = flow.slack.say("#general", "ann", "@vocative when is it?");
    flow.slack_reply("#general", &first).await;
    flow.settle().await;
    std::fs::write(&reads, "5").unwrap();
    let question = flow.slack.say("#general", "ann", "@vocative and where?");
    let message = flow.telegram.say(PRIVATE, PRIVATE, "and why?");
    assert_eq!(flow.ended().await, Some(74));
    let log = flow.log();
    for part in ["vocative.db: a part of it can't be read", "dmesg"] {
        assert!(log.contains(part), "it does not say {part:?}: {log}");
    }
    std::fs::remove_file(&reads).unwrap();
    flow.start().await;
    flow.slack_reply("#general", &question).await;
    flow.telegram_reply(PRIVATE, message).await;
    flow.settle().await;
    assert_eq!(flow.slack_posts("#general").len(), 2);
    assert_eq!(flow.telegram_posts(PRIVATE).len(), 1);
}

/// What is in the way of a start, how it is put there, and what a person is told to do.
#[cfg(target_os = "linux")]
type Obstacle = (&'static str, fn(&Path), &'static str);

#[cfg(target_os = "linux")]
const OBSTACLES: [Obstacle; 7] = [
    (
        "files of somebody else",
        |folder| std::fs::write(folder.join("opens"), "13").unwrap(),
        "must belong to the user",
    ),
    (
        "a file system that is read-only",
        |folder| std::fs::write(folder.join("opens"), "30").unwrap(),
        "mount it read-write",
    ),
    (
        "a full disk, without a database yet",
        |folder| {
            std::fs::remove_dir_all(folder.join("data")).unwrap();
            std::fs::write(folder.join("fault"), "28").unwrap();
        },
        "make room",
    ),
    (
        "a disk that can't be read",
        |folder| std::fs::write(folder.join("reads"), "5").unwrap(),
        "the disk or its file system fails",
    ),
    (
        "a file in the folder's place",
        |folder| {
            std::fs::remove_dir_all(folder.join("data")).unwrap();
            std::fs::write(folder.join("data"), "").unwrap();
        },
        "daemon.data_dir must name a folder",
    ),
    (
        "a folder in the database's place",
        |folder| {
            let database = folder.join("data").join("vocative.db");
            std::fs::remove_dir_all(folder.join("data")).unwrap();
            std::fs::create_dir_all(database).unwrap();
        },
        "move it away",
    ),
    (
        "a folder in the place of the log",
        |folder| {
            let log = folder.join("data").join("vocative.db-wal");
            let _ = std::fs::remove_file(&log);
            std::fs::create_dir_all(log.join("inner")).unwrap();
        },
        "must belong to the user",
    ),
];

/// Exit code 74, the file, and what to do; once that is done, it starts.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_without_usable_storage_ends_with_what_to_do() {
    let (mut flow, _) = on_a_disk_that_can_fail().await;
    assert_eq!(flow.stop().await, Some(0));
    let folder = flow.directory().to_owned();
    for (what, put, advice) in OBSTACLES {
        put(&folder);
        let log_before = flow.log().len();
        flow.spawn();
        assert_eq!(flow.ended().await, Some(74), "{what}");
        let said = flow.log().split_off(log_before);
        for part in [folder.join("data").to_str().unwrap(), advice] {
            assert!(said.contains(part), "{what} does not say {part:?}: {said}");
        }
        for control in ["opens", "fault", "reads"] {
            let _ = std::fs::remove_file(folder.join(control));
        }
        let _ = std::fs::remove_file(folder.join("data"));
        let _ = std::fs::remove_dir(folder.join("data/vocative.db"));
        let _ = std::fs::remove_dir_all(folder.join("data/vocative.db-wal"));
        flow.start().await;
        assert_eq!(flow.stop().await, Some(0), "{what}");
    }
}
