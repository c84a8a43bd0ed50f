//! Restoring a backup: the present database is replaced atomically, and kept under another name.
//!
//! The backup is copied beside the database, verified and made ready there; only then it takes the
//! database's name, by one rename. A kill before the rename leaves the old database as it was, and the next
//! open clears away the rest (`restore_traces`); a kill after it leaves the new one. Before the rename, open
//! runs and posts of the backup are held (the caller says how), and its stored files are copied under their
//! hashes; the kept database keeps its own. Other files beside the database (the erasure ledger) stay.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use crate::StoreError;
use crate::engine::backup::{
    CopyProgress, copy_database, count_of, remove_database, time_name, verify,
};
use crate::engine::beside::{beside, files_beside};
use crate::engine::content_copies::{
    Copied, CopySource, contents_of, copy_contents, folder_of_copy, link_contents, own_like_parent,
};
use crate::engine::damage::refuse_emptied;
use crate::engine::error::cannot;
use crate::engine::lock;
use crate::engine::restore_traces::{KEPT_ENDING, READY_ENDING, clear_traces};
use crate::engine::schema::sync_folder;
use crate::engine::sql;

/// What a restore did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreReport {
    /// Where the replaced database is kept, if there was one.
    pub kept: Option<PathBuf>,
    /// Turns restored.
    pub turns: u64,
    /// Conversations restored.
    pub conversations: u64,
    /// Posts that were open in the backup and now wait for a decision.
    pub posts_held: u64,
    /// Runs that were open in the backup and now wait for a decision.
    pub runs_held: u64,
    /// Stored files that the database refers to and has.
    pub files: u64,
    /// Stored files that the database refers to but that were not found: they are fetched again at the next
    /// start.
    pub files_missing: u64,
}

/// How many open entries of a backup are held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeldCounts {
    /// Posts.
    pub(crate) posts: u64,
    /// Runs.
    pub(crate) runs: u64,
}

/// Holds what was open in a backup, in a transaction, as of now.
pub(crate) type Hold = fn(&sql::Connection, i64) -> sql::Result<HeldCounts>;

/// Puts a backup in the place of a database that no daemon has open, and has what was open in it held before.
///
/// # Errors
/// As [`restore`](crate::restore) says.
pub(crate) fn restore_and_hold(
    backup: &Path,
    database: &Path,
    now_ms: i64,
    hold: Hold,
    tell: &dyn Fn(CopyProgress),
) -> Result<RestoreReport, StoreError> {
    if !backup.is_file() {
        return Err(cannot(format!("there is no file {}", backup.display())));
    }
    let same = |path: &Path| path.canonicalize().ok();
    if database.exists() && same(backup) == same(database) {
        return Err(cannot(format!(
            "{} is the database itself; name a backup of it",
            backup.display()
        )));
    }
    let folder = database.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)
        .map_err(|error| cannot(format!("{}: {error}", folder.display())))?;
    let _lock = lock::take(database)?;
    clear_traces(database)?;
    let ready = beside(database, READY_ENDING);
    let made = make_ready(backup, &ready, now_ms, hold, tell);
    let mut report = match made {
        Ok(report) => report,
        Err(error) => {
            let _ = remove_database(&ready);
            return Err(error);
        }
    };
    let files = match bring_files(backup, &ready, database, tell) {
        Ok(files) => files,
        Err(error) => {
            let _ = remove_database(&ready);
            return Err(error);
        }
    };
    report.files = files.files;
    report.files_missing = files.missing.len() as u64;
    report.kept = swap(&ready, database, now_ms)?;
    Ok(report)
}

/// Copies the stored files of the backup into the database's folder. If the restore ends here, the next start
/// removes the files that nothing refers to.
fn bring_files(
    backup: &Path,
    ready: &Path,
    database: &Path,
    tell: &dyn Fn(CopyProgress),
) -> Result<Copied, StoreError> {
    let wanted = contents_of(ready)?;
    let source = CopySource {
        folder: folder_of_copy(backup),
        may_link: false,
    };
    let of = wanted.iter().map(|it| it.1).sum();
    let folder = files_beside(database);
    let copied = copy_contents(&wanted, &[source], &folder, &|bytes| {
        tell(CopyProgress::Files { bytes, of });
    })?;
    own_like_parent(&folder)?;
    Ok(copied)
}

/// Copies the backup, verifies the copy, holds its open entries, and syncs it to disk.
fn make_ready(
    backup: &Path,
    ready: &Path,
    now_ms: i64,
    hold: Hold,
    tell: &dyn Fn(CopyProgress),
) -> Result<RestoreReport, StoreError> {
    copy_database(backup, ready, None, bad_backup, tell)?;
    tell(CopyProgress::Verifying);
    let found = verify(ready, backup, bad_backup)?;
    let said = |error: rusqlite::Error| cannot(format!("{}: {error}", ready.display()));
    let mut connection = Connection::open(ready).map_err(said)?;
    let held = hold_open(&mut connection, now_ms, hold).map_err(said)?;
    connection.close().map_err(|(_, error)| said(error))?;
    File::open(ready)
        .and_then(|file| file.sync_all())
        .map_err(|error| cannot(format!("{}: {error}", ready.display())))?;
    Ok(RestoreReport {
        kept: None,
        turns: count_of(&found, "turns"),
        conversations: count_of(&found, "conversations"),
        posts_held: held.posts,
        runs_held: held.runs,
        files: 0,
        files_missing: 0,
    })
}

fn hold_open(connection: &mut Connection, now_ms: i64, hold: Hold) -> rusqlite::Result<HeldCounts> {
    let transaction = connection.transaction()?;
    let held = hold(&sql::Connection::of(&transaction), now_ms)?;
    transaction.commit()?;
    Ok(held)
}

fn bad_backup(backup: &Path, what: String) -> StoreError {
    StoreError::BadBackup {
        path: backup.to_owned(),
        what,
    }
}

/// Puts the new database in the place of the old one, which is kept under another name.
fn swap(ready: &Path, database: &Path, now_ms: i64) -> Result<Option<PathBuf>, StoreError> {
    let said = |error: std::io::Error| cannot(format!("{}: {error}", database.display()));
    own_like(ready, database).map_err(said)?;
    let kept = if database.exists() {
        settle_log(database)?;
        let kept = free_name(database, now_ms);
        // The kept database gets its own links to its files: the new one's first start removes those it does not use.
        let files = folder_of_copy(&kept);
        link_contents(database, &files_beside(database), &files)?;
        own_like_parent(&files)?;
        keep(database, &kept).map_err(said)?;
        // Nothing in a database identifies its log: the old log would be read into the new database.
        for suffix in ["-wal", "-shm", "-journal"] {
            remove_if_there(&beside(database, suffix)).map_err(said)?;
        }
        Some(kept)
    } else {
        remove_if_there(&beside(database, "-wal")).map_err(said)?;
        None
    };
    std::fs::rename(ready, database)
        .and_then(|()| sync_folder(database))
        .map_err(said)?;
    Ok(kept)
}

/// Writes the commits of the write-ahead log into the database, so that the file alone is whole. A damaged
/// database is kept with its log, as it is.
fn settle_log(database: &Path) -> Result<(), StoreError> {
    // SQLite would remove the log of an emptied database file.
    if refuse_emptied(database).is_err() {
        return Ok(());
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let settled = Connection::open_with_flags(database, flags).and_then(|connection| {
        let is_busy: bool =
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        connection.close().map_err(|(_, error)| error)?;
        Ok(is_busy)
    });
    match settled {
        Ok(true) => Err(cannot(
            "another program reads the database; end it and try again",
        )),
        Err(error) if is_busy(&error) => Err(cannot(format!(
            "another program has the database ({error}); end it and try again"
        ))),
        Ok(false) | Err(_) => Ok(()),
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked)
    )
}

/// An unused name beside the database.
fn free_name(database: &Path, now_ms: i64) -> PathBuf {
    let name = beside(database, &format!("{KEPT_ENDING}{}", time_name(now_ms)));
    let further = (2..).map(|number| beside(&name, &format!("-{number}")));
    std::iter::once(name.clone())
        .chain(further)
        .find(|path| !path.exists() && !folder_of_copy(path).exists())
        .unwrap_or(name)
}

/// Links the old database to a second name; it has both until the new one takes the first. Its log gets a
/// second name, too, if it could not be written into the database.
fn keep(database: &Path, kept: &Path) -> std::io::Result<()> {
    let log = beside(database, "-wal");
    if std::fs::metadata(&log).is_ok_and(|log| log.len() > 0) {
        link(&log, &beside(kept, "-wal"))?;
    }
    link(database, kept)?;
    sync_folder(kept)
}

/// Makes a hard link to a file; a copy where the file system has no hard links.
fn link(file: &Path, name: &Path) -> std::io::Result<()> {
    if std::fs::hard_link(file, name).is_ok() {
        return Ok(());
    }
    std::fs::copy(file, name)?;
    File::open(name)?.sync_all()
}

fn remove_if_there(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Keeps the owner of the database, or takes that of its folder, when root restores.
fn own_like(ready: &Path, database: &Path) -> std::io::Result<()> {
    let folder = database.parent().unwrap_or(Path::new("."));
    let model = if database.exists() { database } else { folder };
    let model = std::fs::metadata(model)?;
    for file in [ready.to_owned(), lock::lock_path(database)] {
        let own = std::fs::metadata(&file)?;
        if (own.uid(), own.gid()) != (model.uid(), model.gid()) {
            std::os::unix::fs::chown(&file, Some(model.uid()), Some(model.gid()))?;
        }
    }
    Ok(())
}
