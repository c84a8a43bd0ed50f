//! A backup and a restore are killed in place of any of their calls to the file system: every backup
//! that has a name is whole, the database is the old one or the new one with all its files, and doing
//! it again puts everything right.
//!
//! The work is done in a process of its own under a preloaded shim (`tests/storage/kill.c`), once to
//! see its calls, and then once for each place where it is killed. Reading order: the tests here, then
//! `world`.
#![allow(clippy::unwrap_used)]
#![cfg(target_os = "linux")]

#[path = "../storage/shim.rs"]
mod shim;
mod world;

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use world::{OLD_FILES, RESTORED_FILES, World};

/// Says to the test `the_work_is_done` what to do, and where.
const WORK: &str = "VOCATIVE_KILLS_WORK";
const WORK_IN: &str = "VOCATIVE_KILLS_WORK_IN";
/// Of many writes one after the other, one of so many is tried.
const WRITES_STEP: usize = 24;
const SIGKILL: i32 = 9;

/// One test at a time: a process that is being made holds its maker's locks until it is its own.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn the_work_is_done() {
    if let Some(folder) = std::env::var_os(WORK_IN) {
        let world = World::at(Path::new(&folder));
        return match std::env::var(WORK).unwrap().as_str() {
            "backup" => world.back_up(),
            _ => world.restore(),
        };
    }
    let _alone = alone();
    let world = World::template();
    world.back_up();
    assert_eq!(world.check_backups(), 2);
    world.restore();
    assert_eq!(world.open().files, RESTORED_FILES);
    assert_eq!(world.check_kept(), 1);
}

#[test]
fn a_backup_that_is_killed_leaves_whole_backups_and_the_next_one_no_rubbish() {
    let killed = kill_everywhere("backup", |world, place| {
        assert!((1..=2).contains(&world.check_backups()), "{place}");
        world.back_up_again();
        let names = world.names_of_backups();
        assert_eq!(names.len(), 2, "{place}: a backup and its files: {names:?}");
        assert_eq!(world.open().files, OLD_FILES, "{place}");
    });
    assert!(killed > 20, "{killed}");
}

#[test]
fn a_restore_that_is_killed_leaves_the_old_database_or_the_new_with_all_their_files() {
    let (mut old, mut new) = (0, 0);
    let killed = kill_everywhere("restore", |world, place| {
        let opened = world.open();
        assert_eq!(opened.lost, 0, "{place}");
        let kept = world.check_kept();
        if opened.files == OLD_FILES {
            assert_eq!(kept, 0, "{place}");
            old += 1;
        } else {
            assert_eq!(opened.files, RESTORED_FILES, "{place}");
            assert_eq!(kept, 1, "{place}");
            new += 1;
        }
        let rubbish = world.names_of_data();
        let is_known =
            |name: &String| name.starts_with("vocative.db") && !name.contains("restoring");
        let rubbish: Vec<&String> = rubbish
            .iter()
            .filter(|name| !is_known(name) && *name != "files")
            .collect();
        assert!(rubbish.is_empty(), "{place}: {rubbish:?}");
        world.restore();
        assert_eq!(world.open().files, RESTORED_FILES, "{place}");
    });
    assert!(old > 20 && new > 0 && old + new == killed, "{old}, {new}");
}

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills that work in place of its calls, one at a time and each in a world of its own, and looks at
/// what is left. Returns how often.
fn kill_everywhere(work: &str, mut check: impl FnMut(&World, &str)) -> usize {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let shim = shim::build("kill.c", folder.path());
    let template = World::template();
    let log = folder.path().join("calls");
    let whole = template.copied();
    let status = run(work, &whole, &shim, ("KILL_CALLS", log.to_str().unwrap()));
    assert!(status.success(), "{status}");
    let calls = std::fs::read(&log).unwrap();
    let mut killed = 0;
    for (before, letter) in calls.iter().enumerate() {
        let is_one_of_many = *letter == b'w' && before > 0 && calls[before - 1] == b'w';
        if is_one_of_many && before % WRITES_STEP > 0 {
            continue;
        }
        let at = before + 1;
        let world = template.copied();
        let status = run(work, &world, &shim, ("KILL_AT", &at.to_string()));
        assert_eq!(status.signal(), Some(SIGKILL), "{status}");
        let letter = char::from(*letter);
        let place = format!("{work}, killed at call {at} ({letter}) of {}", calls.len());
        check(&world, &place);
        killed += 1;
    }
    println!("{work}: {} calls, killed at {killed}", calls.len());
    killed
}

fn run(work: &str, world: &World, shim: &Path, variable: (&str, &str)) -> std::process::ExitStatus {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "the_work_is_done"])
        .env(WORK, work)
        .env(WORK_IN, world.path())
        .env("LD_PRELOAD", shim)
        .env("KILL_FOLDER", world.path())
        .env(variable.0, variable.1);
    command.output().unwrap().status
}
