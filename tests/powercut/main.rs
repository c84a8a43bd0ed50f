//! The power goes at any write: nothing that was acknowledged is lost, and the database is whole.
//!
//! The store works in a process of its own under a preloaded shim, which logs what it writes and
//! syncs. From the log, disks are made as a cut at any place leaves them, and each is opened and
//! compared with what was acknowledged until then. `VOCATIVE_POWERCUTS=N` cuts N times,
//! `VOCATIVE_POWERCUT_SEED=S` elsewhere. Reading order: `workload`, `disk`, then the tests here.
#![allow(clippy::unwrap_used)]
#![cfg(target_os = "linux")]

mod disk;
#[path = "../storage/shim.rs"]
mod shim;
mod workload;

use std::path::Path;
use std::process::Command;

use rusqlite::{Connection, OptionalExtension as _};
use uuid::Uuid;
use vocative_store::Store;

use disk::{Disk, Operation, Seed};
use workload::{ACKNOWLEDGED, options};

const CUTS: usize = 120;
const SEED: u64 = 1;
/// Says to the test `the_work_is_done` that it is the process under the shim.
const WORK_IN: &str = "VOCATIVE_POWERCUT_WORK_IN";

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[tokio::test]
async fn the_work_is_done() {
    if let Some(folder) = std::env::var_os(WORK_IN) {
        return workload::work(Path::new(&folder)).await;
    }
    let folder = tempfile::tempdir().unwrap();
    workload::work(folder.path()).await;
    let acknowledged = std::fs::read_to_string(folder.path().join(ACKNOWLEDGED)).unwrap();
    assert_eq!(
        lost(folder.path(), &lines(&acknowledged)),
        Vec::<String>::new()
    );
}

#[test]
fn a_power_cut_at_any_write_loses_nothing_that_was_acknowledged() {
    let operations = recorded(true);
    let syncs_of = |file: &str| {
        let is_sync =
            |operation: &&Operation| matches!(operation, Operation::Sync { name } if name == file);
        operations.iter().filter(is_sync).count()
    };
    assert!(syncs_of("vocative.db-wal") > 100, "commits");
    assert!(syncs_of("vocative.db") > 3, "checkpoints");
    let report = cut_often(&operations);
    assert_eq!(report.losses, Vec::<String>::new());
    assert!(report.acknowledged > 0);
}

/// The test has teeth: where nothing is synced, it finds what is lost.
#[test]
fn without_syncs_the_same_cuts_do_lose() {
    let operations = recorded(false);
    let report = cut_often(&operations);
    assert!(!report.losses.is_empty());
    let is_turn = |loss: &&String| loss.contains("turn");
    assert!(
        report.losses.iter().any(|loss| is_turn(&loss)),
        "{:?}",
        report.losses
    );
}

/// Lets the store work under the shim, and gives what it did.
fn recorded(syncs: bool) -> Vec<Operation> {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let work = work.canonicalize().unwrap();
    let log = folder.path().join("log");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "the_work_is_done"])
        .env(WORK_IN, &work)
        .env("LD_PRELOAD", shim::build("shim.c", folder.path()))
        .env("STORAGE_FOLDER", &work)
        .env("STORAGE_LOG", &log);
    if !syncs {
        command.env("STORAGE_NO_SYNC", "1");
    }
    let worked = command.output().unwrap();
    assert!(worked.status.success(), "{worked:?}");
    disk::read_log(&log)
}

#[derive(Debug, Default)]
struct Report {
    losses: Vec<String>,
    acknowledged: usize,
}

/// Cuts at many places, in order of the log, and compares.
fn cut_often(operations: &[Operation]) -> Report {
    let cuts = number("VOCATIVE_POWERCUTS").map_or(CUTS, |cuts| usize::try_from(cuts).unwrap());
    let seed = number("VOCATIVE_POWERCUT_SEED").unwrap_or(SEED);
    let mut places = Seed(seed);
    let mut places: Vec<usize> = (0..cuts)
        .map(|_| places.below(operations.len() + 1))
        .collect();
    places.sort_unstable();
    let (mut disk, mut acknowledged) = (Disk::default(), String::new());
    let (mut done, mut report) = (0, Report::default());
    for (number, place) in places.into_iter().enumerate() {
        for operation in &operations[done..place] {
            match operation {
                Operation::Write { name, bytes, .. } if name == ACKNOWLEDGED => {
                    acknowledged.push_str(std::str::from_utf8(bytes).unwrap());
                }
                operation => disk.apply(operation),
            }
        }
        done = place;
        let folder = tempfile::tempdir().unwrap();
        disk.cut(&mut Seed(seed ^ number as u64), folder.path());
        let acknowledged = lines(&acknowledged);
        report.acknowledged += acknowledged.len();
        for loss in lost(folder.path(), &acknowledged) {
            report.losses.push(format!(
                "cut {number} of seed {seed} at operation {place}: {loss}"
            ));
        }
    }
    println!(
        "{} operations, {cuts} cuts, {} acknowledgements looked for, {} losses",
        operations.len(),
        report.acknowledged,
        report.losses.len()
    );
    report
}

fn lines(text: &str) -> Vec<(&str, Uuid)> {
    let lines = text.lines().map(|line| line.split_once(' ').unwrap());
    lines
        .map(|(what, id)| (what, id.parse().unwrap()))
        .collect()
}

/// What of the acknowledged is not there, and what else is wrong with a database after a start.
fn lost(folder: &Path, acknowledged: &[(&str, Uuid)]) -> Vec<String> {
    let path = folder.join("vocative.db");
    match Store::open(&options(&path), 1_000_000) {
        Ok((store, _)) => drop(store),
        Err(error) => return vec![format!("it does not open: {error}; every turn is lost")],
    }
    let database = Connection::open(&path).unwrap();
    let mut found = damage(&database);
    for (what, id) in acknowledged {
        let sql = match *what {
            "turn" => {
                "SELECT 1 FROM turns t JOIN messages m ON m.turn_seq = t.seq WHERE t.uuid = ?1"
            }
            "run" => {
                "SELECT 1 FROM runs r JOIN run_triggers t ON t.run_id = r.id WHERE r.uuid = ?1"
            }
            "done" => {
                "SELECT 1 FROM runs r JOIN outbox o ON o.run_id = r.id
                 JOIN turns t ON t.seq = o.turn_seq WHERE r.uuid = ?1 AND r.state = 'done'"
            }
            "started" => "SELECT 1 FROM outbox WHERE uuid = ?1 AND state IN ('unknown', 'sent')",
            "sent" => "SELECT 1 FROM outbox WHERE uuid = ?1 AND state = 'sent'",
            other => panic!("{other} is not acknowledged"),
        };
        let row = database
            .query_row(sql, [id.as_bytes()], |_| Ok(()))
            .optional();
        if !matches!(row, Ok(Some(()))) {
            found.push(format!("{what} {id} is lost: {row:?}"));
        }
    }
    found
}

fn damage(database: &Connection) -> Vec<String> {
    let mut found = Vec::new();
    let verdict: rusqlite::Result<String> =
        database.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0));
    if !verdict.as_ref().is_ok_and(|verdict| verdict == "ok") {
        found.push(format!("it is damaged: {verdict:?}"));
    }
    let dangling = database
        .query_row("PRAGMA foreign_key_check", [], |_| Ok(()))
        .optional();
    if !matches!(dangling, Ok(None)) {
        found.push(format!("a row refers to nothing: {dangling:?}"));
    }
    let text = "INSERT INTO turn_text (turn_text) VALUES ('integrity-check')";
    if let Err(error) = database.execute_batch(text) {
        found.push(format!("its full text is damaged: {error}"));
    }
    found
}
