//! A damaged database: noticed at the start or while the daemon works, told with the way out, and never
//! written onto; and what a damaged log or index of the log is not.

use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::Value;

use crate::harness::{Flow, FlowBuilder};

/// The exit code of damage.
const DAMAGED: Option<i32> = Some(65);
/// More than a start looks through.
const LARGE_BYTES: u32 = 65 << 20;

fn database(flow: &Flow) -> PathBuf {
    flow.directory().join("data").join("vocative.db")
}

fn beside(database: &Path, suffix: &str) -> PathBuf {
    format!("{}{suffix}", database.display()).into()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A database file by its pages.
struct Pages(std::fs::File);

impl Pages {
    fn of(path: &Path) -> Self {
        let mut options = std::fs::OpenOptions::new();
        Self(options.read(true).write(true).open(path).unwrap())
    }

    fn number_at(&self, offset: u64) -> u64 {
        let mut bytes = [0; 4];
        self.0.read_exact_at(&mut bytes, offset).unwrap();
        u32::from_be_bytes(bytes).into()
    }

    fn bytes_each(&self) -> u64 {
        match self.number_at(16) >> 16 {
            1 => 65_536,
            bytes => bytes,
        }
    }

    fn offset_of(&self, page: u64) -> u64 {
        (page - 1) * self.bytes_each()
    }

    fn overwrite(&self, offset: u64, bytes: &[u8]) {
        self.0.write_all_at(bytes, offset).unwrap();
    }

    /// The last leaf of a tree.
    fn last_leaf(&self, root: u64) -> u64 {
        const INTERIOR: [u64; 2] = [2, 5];
        let offset = self.offset_of(root);
        match INTERIOR.contains(&(self.number_at(offset) >> 24)) {
            true => self.last_leaf(self.number_at(offset + 8)),
            false => root,
        }
    }
}

/// Runs statements on a database that nobody has open.
fn change(database: &Path, sql: &str) {
    let connection = Connection::open(database).unwrap();
    connection
        .pragma_update(None, "foreign_keys", "OFF")
        .unwrap();
    connection.execute_batch(sql).unwrap();
    connection.close().unwrap();
}

fn root_of(database: &Path, name: &str) -> u64 {
    let connection = Connection::open(database).unwrap();
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
    let root: u32 = connection.query_row(sql, [name], |row| row.get(0)).unwrap();
    root.into()
}

fn spoil_root(database: &Path, name: &str) {
    let root = root_of(database, name);
    let pages = Pages::of(database);
    pages.overwrite(pages.offset_of(root), &[0xA5; 64]);
}

fn spoil_last_leaf(database: &Path, name: &str) {
    let root = root_of(database, name);
    let pages = Pages::of(database);
    pages.overwrite(pages.offset_of(pages.last_leaf(root)), &[0xA5; 64]);
}

fn cut_to_half(database: &Path) {
    let length = std::fs::metadata(database).unwrap().len();
    Pages::of(database).0.set_len(length / 2).unwrap();
}

fn grow(database: &Path) {
    change(
        database,
        &format!(
            "INSERT INTO raw_envelopes (account_id, reason, raw, received_at_ms)
             SELECT id, 'large', hex(zeroblob({})), 1 FROM accounts LIMIT 1",
            LARGE_BYTES / 2
        ),
    );
}

/// What is damaged, how, and what a person is told of it.
type Case = (&'static str, fn(&Path), &'static str);

const CASES: [Case; 12] = [
    (
        "the header",
        |path| Pages::of(path).overwrite(0, b"no header at all"),
        "file is not a database",
    ),
    (
        "the page of the schema",
        |path| Pages::of(path).overwrite(100, &[0xA5; 64]),
        "malformed",
    ),
    (
        "a leaf of a table",
        |path| spoil_last_leaf(path, "turns"),
        "btreeInitPage",
    ),
    (
        "a leaf of an index",
        |path| spoil_last_leaf(path, "turns_by_position"),
        "btreeInitPage",
    ),
    (
        "the root of a table",
        |path| spoil_root(path, "runs"),
        "btreeInitPage",
    ),
    (
        "the list of free pages",
        |path| {
            change(
                path,
                "CREATE TABLE gone AS SELECT hex(zeroblob(50000)); DROP TABLE gone",
            );
            let pages = Pages::of(path);
            let trunk = pages.offset_of(pages.number_at(32));
            pages.overwrite(trunk + 4, &[0xFF; 4]);
        },
        "freelist",
    ),
    (
        "the full text",
        |path| {
            change(
                path,
                "UPDATE turn_text_data SET block = zeroblob(length(block)) WHERE id > 10",
            );
        },
        "turn_text",
    ),
    (
        "the second half, which is missing",
        cut_to_half,
        "malformed",
    ),
    (
        "everything: the file is empty",
        |path| std::fs::write(path, "").unwrap(),
        "the file is empty",
    ),
    (
        "everything: the file is empty, and only its log is left",
        |path| {
            std::fs::write(path, "").unwrap();
            std::fs::write(beside(path, ".lock"), "").unwrap();
            std::fs::write(beside(path, "-wal"), [0xA5; 5_000]).unwrap();
        },
        "the file is empty",
    ),
    (
        "everything: the file is something else",
        |path| std::fs::write(path, "Dear diary, ".repeat(1_000)).unwrap(),
        "file is not a database",
    ),
    (
        "a page of a database that is too large to be looked through at the start",
        |path| {
            grow(path);
            spoil_root(path, "accounts");
        },
        "malformed",
    ),
];

/// The files of a database that is at rest.
struct Files(Vec<(PathBuf, Vec<u8>)>);

impl Files {
    fn of(flow: &Flow) -> Self {
        let names = ["", "-wal", "-shm", ".lock"];
        let paths = names.map(|suffix| beside(&database(flow), suffix));
        let read = |path: PathBuf| Some((path.clone(), std::fs::read(path).ok()?));
        Self(paths.into_iter().filter_map(read).collect())
    }

    /// Puts them back, and removes whatever else is there.
    fn put_back(&self, flow: &Flow) {
        for entry in std::fs::read_dir(flow.directory().join("data")).unwrap() {
            std::fs::remove_file(entry.unwrap().path()).unwrap();
        }
        for (path, bytes) in &self.0 {
            std::fs::write(path, bytes).unwrap();
        }
    }
}

/// A daemon that has heard and answered something, is backed up into `backup.db`, and stopped.
async fn stopped_after_work() -> Flow {
    let mut flow = FlowBuilder::default().start().await;
    let question = flow.slack.say("#general", "ann", "@vocative when is it?");
    flow.slack_reply("#general", &question).await;
    for number in 0..30 {
        let remark = format!("remark {number} {}", "word ".repeat(200));
        flow.slack.say("#general", "ann", &remark);
    }
    flow.settle().await;
    let backup = flow.directory().join("backup.db");
    let told = flow.cli(&["backup", text(&backup)]).await;
    assert_eq!(told.status, Some(0), "{told:?}");
    assert_eq!(flow.stop().await, Some(0));
    flow
}

fn assert_says_the_way_out(what: &str, said: &str, database: &Path, expected: &str) {
    assert!(!said.contains("panicked"), "{what}: {said}");
    for part in [
        "is damaged",
        text(database),
        "`vocative restore FILE`",
        expected,
    ] {
        assert!(said.contains(part), "{what} does not say {part:?}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_on_a_damaged_database_ends_with_the_way_out_and_writes_nothing() {
    let mut flow = stopped_after_work().await;
    let database = database(&flow);
    let whole = Files::of(&flow);
    let sound = flow.cli(&["check", "--database"]).await;
    assert_eq!(sound.status, Some(0), "{sound:?}");
    assert!(sound.stdout.contains("32 turns"), "{sound:?}");
    for (what, spoil, expected) in CASES {
        whole.put_back(&flow);
        spoil(&database);
        let before = std::fs::read(&database).unwrap();
        let log_before = flow.log().len();
        flow.spawn();
        assert_eq!(flow.ended().await, DAMAGED, "{what}");
        let said = flow.log().split_off(log_before);
        assert_says_the_way_out(what, &said, &database, expected);
        let after = std::fs::read(&database).unwrap();
        assert!(after == before, "{what}: something was written");

        for args in [&["check", "--database"][..], &["backup", "other.db"]] {
            let told = flow.cli(args).await;
            assert_eq!(told.status, DAMAGED, "{what}: {told:?}");
            let said = format!("{}{}", told.stdout, told.stderr);
            assert_says_the_way_out(what, &said, &database, "");
        }
        assert!(!flow.directory().join("other.db").exists(), "{what}");
    }

    let damaged = std::fs::read(&database).unwrap();
    let told = flow.cli(&["restore", "backup.db"]).await;
    assert_eq!(told.status, Some(0), "{told:?}");
    let kept = told.stdout.split("kept as ").nth(1).unwrap();
    let kept = std::fs::read(kept.split(';').next().unwrap()).unwrap();
    assert!(kept == damaged, "the damaged database is kept as it was");
    flow.start().await;
    let question = flow.slack.say("#general", "ann", "@vocative still there?");
    flow.slack_reply("#general", &question).await;
    flow.settle().await;
    assert_eq!(flow.slack_posts("#general").len(), 2);
}

/// The texts of `#general`.
async fn said(flow: &Flow) -> Vec<String> {
    let turns = flow.turns("acme/#general").await;
    let texts = turns.iter().map(|turn| turn["text"].as_str().unwrap());
    texts.map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_1_a_daemon_whose_database_is_damaged_ends_and_a_restore_brings_back_what_was_said()
{
    let mut flow = stopped_after_work().await;
    flow.start().await;
    flow.slack.say("#general", "ann", "since the backup");
    flow.settle().await;
    let database = database(&flow);
    let pages = Pages::of(&database);
    let length = pages.0.metadata().unwrap().len();
    for page in 2..=length / pages.bytes_each() {
        pages.overwrite(pages.offset_of(page), &[0xA5; 64]);
    }
    // What the daemon has in memory it does not read again; what others say makes it read.
    let log_before = flow.log().len();
    for number in 0..3 {
        flow.slack
            .say("#general", "ann", &format!("in between {number}"));
        flow.cli(&["conversations", "show", "acme/#general"]).await;
    }
    assert_eq!(flow.ended().await, DAMAGED);
    let told = flow.log().split_off(log_before);
    assert_says_the_way_out("while it works", &told, &database, "malformed");

    let told = flow.cli(&["restore", "backup.db"]).await;
    assert_eq!(told.status, Some(0), "{told:?}");
    let question = flow.slack.say("#general", "ann", "@vocative and after?");
    flow.start().await;
    flow.slack_reply("#general", &question).await;
    flow.settle().await;
    assert_eq!(flow.slack_posts("#general").len(), 2);
    let said = said(&flow).await;
    for text in ["since the backup", "in between 0", "in between 2"] {
        let count = said.iter().filter(|said| *said == text).count();
        assert_eq!(count, 1, "{text}: {said:?}");
    }
}

/// What is done to the files beside a database.
type LogCase = (&'static str, fn(&Path));

const NO_DAMAGE: [LogCase; 5] = [
    ("a log with a torn end", |path| {
        let mut log = std::fs::read(beside(path, "-wal")).unwrap();
        log.extend_from_slice(&[0xA5; 3_000]);
        std::fs::write(beside(path, "-wal"), log).unwrap();
    }),
    ("a log of which the end is missing", |path| {
        let log = std::fs::read(beside(path, "-wal")).unwrap();
        std::fs::write(beside(path, "-wal"), &log[..log.len() - 100]).unwrap();
    }),
    ("a log with other bytes in the middle", |path| {
        let mut log = std::fs::read(beside(path, "-wal")).unwrap();
        let middle = log.len() / 2;
        log[middle..middle + 50].fill(0xA5);
        std::fs::write(beside(path, "-wal"), log).unwrap();
    }),
    ("a log without a header", |path| {
        let mut log = std::fs::read(beside(path, "-wal")).unwrap();
        log[..32].fill(0xA5);
        std::fs::write(beside(path, "-wal"), log).unwrap();
    }),
    ("an index of the log with other bytes", |path| {
        let length = std::fs::read(beside(path, "-shm")).unwrap().len();
        std::fs::write(beside(path, "-shm"), vec![0xA5; length]).unwrap();
    }),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_log_ends_where_the_damage_begins_and_what_it_held_is_read_back() {
    let mut flow = stopped_after_work().await;
    flow.start().await;
    for number in 0..10 {
        flow.slack
            .say("#general", "ann", &format!("in the log {number}"));
        flow.wait_until_heard().await;
    }
    flow.kill().await;
    let whole = Files::of(&flow);
    for (what, spoil) in NO_DAMAGE {
        eprintln!("{what}");
        whole.put_back(&flow);
        spoil(&database(&flow));
        flow.start().await;
        let question = flow.slack.say("#general", "ann", "@vocative are you well?");
        flow.slack_reply("#general", &question).await;
        flow.wait_for_status("all is read back", |status| {
            let channels = status["channels"].as_array().unwrap();
            channels
                .iter()
                .all(|channel| channel["unread_from_ms"].is_null())
        })
        .await;
        flow.settle().await;
        let is_answer = |post: &(Option<String>, String)| post.0.as_deref() == Some(&*question);
        let answers = flow.slack_posts("#general").into_iter().filter(is_answer);
        assert_eq!(answers.count(), 1, "{what}");
        let said = said(&flow).await;
        for number in 0..10 {
            let text = format!("in the log {number}");
            let count = said.iter().filter(|said| **said == text).count();
            assert_eq!(count, 1, "{what}: {text}");
        }
        assert_eq!(flow.stop().await, Some(0), "{what}");
        let told = flow.cli(&["check", "--database"]).await;
        assert_eq!(told.status, Some(0), "{what}: {told:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_names_rows_that_refer_to_nothing() {
    let flow = stopped_after_work().await;
    change(&database(&flow), "DELETE FROM participants");
    let told = flow.cli(&["check", "--database"]).await;
    assert_eq!(told.status, DAMAGED, "{told:?}");
    let expected = "rows of turns refer to rows of participants that are not there";
    assert!(told.stdout.contains(expected), "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_that_is_not_whole_is_refused_with_what_to_do_and_nothing_changes() {
    let flow = stopped_after_work().await;
    let before = std::fs::read(database(&flow)).unwrap();
    let backup = flow.directory().join("backup.db");
    let whole = std::fs::read(&backup).unwrap();
    for (what, spoil, _) in CASES {
        if what.contains("its log") || what.contains("large") {
            continue;
        }
        std::fs::write(&backup, &whole).unwrap();
        spoil(&backup);
        let told = flow.cli(&["restore", "backup.db"]).await;
        assert_eq!(told.status, DAMAGED, "{what}: {told:?}");
        for part in [
            "the backup backup.db can't be restored",
            "Restore another backup",
        ] {
            assert!(told.stderr.contains(part), "{what}: {told:?}");
        }
        let after = std::fs::read(database(&flow)).unwrap();
        assert!(after == before, "{what}: the database has changed");
    }
    let status: Value = flow.status().await;
    assert_eq!(status["store"]["turns"], 32, "{status}");
}
