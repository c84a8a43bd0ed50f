//! Backups: a consistent copy of a database that may be in use, verified before it gets its name, and
//! the stored files that it refers to.
//!
//! The copy is made page by page from one snapshot, so it holds every commit before its start and no
//! partial one. Writers do not wait meanwhile; only the write-ahead log grows until the copy is done. This
//! module knows nothing of the daemon; it runs in whichever process asks.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use crate::StoreError;
use crate::engine::beside::{beside, files_beside};
use crate::engine::content_copies::{
    CopySource, ENDING, WantedContent, contents_of, copy_contents, folder_of_copy, remove_folder,
    remove_others, still_referred_to,
};
use crate::engine::damage::{find_damage, in_words, refuse_emptied};
use crate::engine::error::{cannot, is_damage};
use crate::engine::lock;
use crate::engine::lock::{BUSY_TIMEOUT_MS, make_private};
use crate::engine::schema::{self, MIGRATIONS, sync_folder};
use crate::registry::FULL_TEXT;

/// Pages copied at a time: 1 MiB of 4 KiB pages. Between two of them the copy looks at its rate.
const STEP_PAGES: i32 = 256;
/// The wait before a page that another process has locked is tried again.
const BUSY_WAIT: Duration = Duration::from_millis(20);
/// The copy is given up after this many waits in a row.
const BUSY_WAITS_MAX: u32 = 1_500;
/// The most backups of one second in one folder: their numbers have one digit, so that names sort.
const SAME_SECOND_MAX: u32 = 9;
/// The suffix, after the database's name, of the file that says when a backup was last made.
const NOTE_SUFFIX: &str = ".backed-up";
/// The name of a backup that is not finished yet, in the folder where it will be.
const PARTIAL_NAME: &str = ".vocative-backup.partial";
/// The start and end of the names that this program gives to backups; the time is in between.
const NAME_START: &str = "vocative-";
const NAME_END: &str = ".db";

/// How a backup is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupOptions {
    /// Whether an existing file of the target's name is replaced.
    pub replaces: bool,
    /// In a folder: how many backups named by this program stay, this one included; `None` = all.
    pub keep: Option<usize>,
    /// Whether the bytes of attached files are copied, too.
    pub has_files: bool,
    /// The most bytes that are copied in a second; `None` = as fast as the disk goes.
    pub bytes_per_s: Option<u64>,
    /// The time, in milliseconds since the Unix epoch; it names a backup in a folder.
    pub now_ms: i64,
}

/// How far a copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyProgress {
    /// Bytes of the database copied so far, and in all.
    Copied {
        /// So far.
        bytes: u64,
        /// In all.
        of: u64,
    },
    /// The copy is being verified.
    Verifying,
    /// Bytes of attached files that the copy has so far, and in all.
    Files {
        /// So far.
        bytes: u64,
        /// In all.
        of: u64,
    },
}

/// A backup that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupReport {
    /// The file.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Turns in it.
    pub turns: u64,
    /// Conversations in it.
    pub conversations: u64,
    /// Stored files that it refers to, each counted once.
    pub files: u64,
    /// The copies of those files; `None` where they were not copied.
    pub copied_files: Option<CopiedFiles>,
    /// Older backups that were removed.
    pub removed: Vec<PathBuf>,
}

/// The stored files of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedFiles {
    /// The folder.
    pub folder: PathBuf,
    /// How many.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What is wrong with the files that the database has lost, in sentences.
    pub lost: Vec<String>,
}

/// The number of rows of each table, which must be the same in a copy and its source.
pub(crate) type Counts = Vec<(String, i64)>;

/// Copies a database that may be in use into `target`: a file, or a folder, where the backup is
/// named after the time. It is verified, on disk and readable by its owner only before it has its
/// name; if anything fails, whatever was there stays.
///
/// # Errors
/// `Newer` if a newer version wrote the database; `Backup` says what else is wrong.
pub fn backup(
    database: &Path,
    target: &Path,
    options: &BackupOptions,
    tell: &dyn Fn(CopyProgress),
) -> Result<BackupReport, StoreError> {
    let folder = if target.is_dir() {
        target.to_owned()
    } else {
        folder_of(target)
    };
    let partial = folder.join(PARTIAL_NAME);
    let lock = lock::take(&partial).map_err(|error| match error {
        StoreError::Locked { .. } => cannot(format!(
            "another backup is being written into {}",
            folder.display()
        )),
        other => cannot(other.to_string()),
    })?;
    // Under the lock: no other backup takes the name meanwhile.
    let made = path_of_backup(database, target, options)
        .and_then(|path| write_backup(database, &partial, &path, options, tell));
    if made.is_err() {
        let _ = remove_database(&partial);
    }
    let _ = std::fs::remove_file(lock::lock_path(&partial));
    drop(lock);
    let mut report = made?;
    note_backup(database, options.now_ms);
    if let Some(keep) = options.keep.filter(|_| target.is_dir()) {
        report.removed = remove_older(&folder, keep, &report.path).map_err(|error| {
            cannot(format!(
                "the backup {} is made, but older ones could not be removed: {error}",
                report.path.display()
            ))
        })?;
    }
    Ok(report)
}

/// Tells the daemon, which can't see the folder of backups, when the last one was made. If the note can't be written
/// the backup is still good: a monitor then reports it as too old, and a person looks.
fn note_backup(database: &Path, now_ms: i64) {
    let note = beside(database, NOTE_SUFFIX);
    let partial = beside(database, ".backed-up-partial");
    let written = std::fs::write(&partial, format!("{now_ms}\n"))
        .and_then(|()| std::fs::rename(&partial, &note));
    if written.is_err() {
        let _ = std::fs::remove_file(&partial);
    }
}

/// When a backup of the database was last made, in milliseconds since the Unix epoch.
pub(crate) fn last_backup_ms(database: &Path) -> Option<i64> {
    let note = std::fs::read_to_string(beside(database, NOTE_SUFFIX)).ok()?;
    note.trim().parse().ok()
}

fn write_backup(
    database: &Path,
    partial: &Path,
    path: &Path,
    options: &BackupOptions,
    tell: &dyn Fn(CopyProgress),
) -> Result<BackupReport, StoreError> {
    refuse_emptied(database)?;
    let counts = copy_database(database, partial, options.bytes_per_s, damaged, tell)?;
    tell(CopyProgress::Verifying);
    let found = verify(partial, database, damaged)?;
    if found != counts {
        return Err(cannot(format!(
            "the copy does not hold what the database held: {}",
            difference(&counts, &found)
        )));
    }
    let said = |error: std::io::Error| cannot(format!("{}: {error}", path.display()));
    let bytes = File::open(partial)
        .and_then(|file| file.sync_all().and_then(|()| file.metadata()))
        .map_err(said)?
        .len();
    let wanted = contents_of(partial)?;
    let copied_files = match options.has_files {
        true => Some(copy_files(database, path, &wanted, options, tell)?),
        false => None,
    };
    std::fs::rename(partial, path)
        .and_then(|()| sync_folder(path))
        .map_err(said)?;
    let kept: &[WantedContent] = if options.has_files { &wanted } else { &[] };
    remove_others(&folder_of_copy(path), kept)?;
    Ok(BackupReport {
        path: path.to_owned(),
        bytes,
        turns: count_of(&found, "turns"),
        conversations: count_of(&found, "conversations"),
        files: wanted.len() as u64,
        copied_files,
        removed: Vec::new(),
    })
}

/// Copies the stored files that a copy refers to into its folder, before the copy gets its name. Files that
/// an older backup in the same place has are hard-linked: they are in both, but on the disk once.
fn copy_files(
    database: &Path,
    path: &Path,
    wanted: &[WantedContent],
    options: &BackupOptions,
    tell: &dyn Fn(CopyProgress),
) -> Result<CopiedFiles, StoreError> {
    let folder = folder_of_copy(path);
    let older = own_names(&folder_of(path)).map_err(|error| cannot(error.to_string()))?;
    let older = older.iter().rev().map(|name| CopySource {
        folder: folder_of_copy(&path.with_file_name(name)),
        may_link: true,
    });
    let own = CopySource {
        folder: files_beside(database),
        may_link: false,
    };
    let sources: Vec<CopySource> = older
        .filter(|source| source.folder != folder && source.folder.is_dir())
        .take(1)
        .chain([own])
        .collect();
    let (started, of) = (Instant::now(), wanted.iter().map(|it| it.1).sum());
    let was_there = folder.exists();
    let copied = copy_contents(wanted, &sources, &folder, &|bytes| {
        tell(CopyProgress::Files { bytes, of });
        wait_for_rate(started, bytes, options.bytes_per_s);
    });
    let copied = copied.inspect_err(|_| {
        if !was_there {
            // The folder belongs to a backup that was not completed.
            let _ = remove_folder(&folder);
        }
    })?;
    Ok(CopiedFiles {
        folder,
        files: copied.files,
        bytes: copied.bytes,
        lost: still_referred_to(database, copied.missing)?,
    })
}

/// Makes the error that says that a copied file is not whole.
pub(crate) type Unfit = fn(&Path, String) -> StoreError;

fn damaged(database: &Path, what: String) -> StoreError {
    StoreError::Damaged {
        database: Some(database.to_owned()),
        what,
    }
}

fn path_of_backup(
    database: &Path,
    target: &Path,
    options: &BackupOptions,
) -> Result<PathBuf, StoreError> {
    let path = if target.is_dir() {
        free_name(target, &time_name(options.now_ms))?
    } else {
        target.to_owned()
    };
    let same = |path: &Path| path.canonicalize().ok();
    if path.exists() && same(&path) == same(database) {
        return Err(cannot(format!(
            "{} is the database itself; name another file or a folder",
            path.display()
        )));
    }
    if path.exists() && !options.replaces {
        return Err(cannot(format!(
            "{} is there already; name another file or a folder, or replace it with --replace",
            path.display()
        )));
    }
    Ok(path)
}

/// The name of a backup made at a time, in its folder. One made within the same second has a number
/// behind the time, by which it also sorts behind the one before it.
fn free_name(folder: &Path, at: &str) -> Result<PathBuf, StoreError> {
    let numbered = |number: u32| match number {
        1 => folder.join(format!("{NAME_START}{at}{NAME_END}")),
        _ => folder.join(format!("{NAME_START}{at}_{number}{NAME_END}")),
    };
    let mut names = (1..=SAME_SECOND_MAX).map(numbered);
    names.find(|path| !path.exists()).ok_or_else(|| {
        cannot(format!(
            "{} has {SAME_SECOND_MAX} backups of this second already",
            folder.display()
        ))
    })
}

fn folder_of(path: &Path) -> PathBuf {
    let parent = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    parent.map_or_else(|| PathBuf::from("."), Path::to_owned)
}

/// An instant as it stands in file names, in UTC; names sort by time.
pub(crate) fn time_name(at_ms: i64) -> String {
    DateTime::<Utc>::from_timestamp_millis(at_ms).map_or_else(
        || at_ms.to_string(),
        |at| at.format("%Y%m%dT%H%M%SZ").to_string(),
    )
}

/// Copies all that is committed in a database into a new file, which is then whole in itself: no
/// write-ahead log belongs to it. Returns what the snapshot held.
pub(crate) fn copy_database(
    from: &Path,
    to: &Path,
    bytes_per_s: Option<u64>,
    unfit: Unfit,
    tell: &dyn Fn(CopyProgress),
) -> Result<Counts, StoreError> {
    let unreadable = |error: rusqlite::Error| match is_damage(&error) {
        true => unfit(from, error.to_string()),
        false => cannot(format!("{}: {error}", from.display())),
    };
    let unwritable = |error: rusqlite::Error| cannot(format!("{}: {error}", to.display()));
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let source = Connection::open_with_flags(from, flags).map_err(unreadable)?;
    source
        .busy_timeout(Duration::from_millis(BUSY_TIMEOUT_MS))
        .map_err(unreadable)?;
    // The snapshot is held until the copy is done; without it every commit would start it anew.
    source.execute_batch("BEGIN").map_err(unreadable)?;
    let counts = counts(&source).map_err(unreadable)?;

    remove_database(to)
        .and_then(|()| make_private(to))
        .map_err(|error| cannot(format!("{}: {error}", to.display())))?;
    let mut copy = Connection::open(to).map_err(unwritable)?;
    // It has no name yet and is synced before it gets one.
    copy.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
        .map_err(unwritable)?;
    let go_on = |progress| {
        tell(progress);
        true
    };
    copy_pages(&source, &mut copy, bytes_per_s, &go_on).map_err(unreadable)?;
    copy.close().map_err(|(_, error)| unwritable(error))?;
    stand_alone(to).map_err(unwritable)?;
    Ok(counts)
}

/// Copies all pages; returns `false` if `goes_on` stopped it before the end.
#[allow(
    clippy::disallowed_methods,
    reason = "runs on a thread of its own; SQLite has nothing to wait for"
)]
pub(crate) fn copy_pages(
    source: &Connection,
    copy: &mut Connection,
    bytes_per_s: Option<u64>,
    goes_on: &dyn Fn(CopyProgress) -> bool,
) -> rusqlite::Result<bool> {
    let page_bytes: u64 = source
        .query_row("PRAGMA page_size", [], |row| row.get::<_, u32>(0))?
        .into();
    let backup = Backup::new(source, copy)?;
    let started = Instant::now();
    let mut waits = 0;
    loop {
        match backup.step(STEP_PAGES)? {
            StepResult::Done => return Ok(true),
            StepResult::More => {
                waits = 0;
                let progress = backup.progress();
                let pages = |count: i32| u64::try_from(count).unwrap_or(0) * page_bytes;
                let copied = pages(progress.pagecount - progress.remaining);
                let progress = CopyProgress::Copied {
                    bytes: copied,
                    of: pages(progress.pagecount),
                };
                if !goes_on(progress) {
                    return Ok(false);
                }
                wait_for_rate(started, copied, bytes_per_s);
            }
            _ if waits < BUSY_WAITS_MAX => {
                waits += 1;
                std::thread::sleep(BUSY_WAIT);
            }
            _ => {
                let busy = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
                return Err(rusqlite::Error::SqliteFailure(busy, None));
            }
        }
    }
}

/// Sleeps while more was copied than the rate allows.
#[allow(
    clippy::disallowed_methods,
    reason = "runs on a thread of its own; the rate is what is waited for"
)]
fn wait_for_rate(started: Instant, copied: u64, bytes_per_s: Option<u64>) {
    let Some(rate) = bytes_per_s.filter(|rate| *rate > 0) else {
        return;
    };
    let due = Duration::from_millis(copied.saturating_mul(1_000) / rate);
    if let Some(early) = due.checked_sub(started.elapsed()) {
        std::thread::sleep(early);
    }
}

/// Ends the write-ahead-log mode of a copy, so that it can be read from anywhere.
pub(crate) fn stand_alone(path: &Path) -> rusqlite::Result<()> {
    let copy = Connection::open(path)?;
    copy.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))?;
    copy.close().map_err(|(_, error)| error)
}

/// Checks a copy completely: that it is a database of this program, every page and index, references, full text.
/// `shown` is the file that errors name. Returns the counts of its rows.
pub(crate) fn verify(copy: &Path, shown: &Path, unfit: Unfit) -> Result<Counts, StoreError> {
    let bad = |what: &str| unfit(shown, what.to_owned());
    let said = |error: rusqlite::Error| bad(&error.to_string());
    let connection = Connection::open(copy).map_err(said)?;
    let schema = schema::check(&connection, shown, MIGRATIONS).map_err(|error| match error {
        StoreError::Open { what, .. }
        | StoreError::Unusable { what, .. }
        | StoreError::Damaged { what, .. } => bad(&what),
        other => other,
    })?;
    if schema == 0 {
        return Err(bad("it is empty"));
    }
    let findings = find_damage(&connection).map_err(said)?;
    if !findings.is_empty() {
        return Err(bad(&in_words(&findings)));
    }
    let found = counts(&connection).map_err(said)?;
    connection.close().map_err(|(_, error)| said(error))?;
    Ok(found)
}

/// Rows of every table but those of the full-text indexes.
fn counts(connection: &Connection) -> rusqlite::Result<Counts> {
    let mut statement = connection.prepare(
        "SELECT name FROM sqlite_schema
         WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
    )?;
    let mut names: Vec<String> = statement
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    // An index keeps itself in tables whose names begin with its own.
    names.retain(|name| !FULL_TEXT.iter().any(|index| name.starts_with(index)));
    let count = |name: String| {
        let sql = format!("SELECT count(*) FROM \"{}\"", name.replace('"', "\"\""));
        let count = connection.query_row(&sql, [], |row| row.get(0))?;
        Ok((name, count))
    };
    names.into_iter().map(count).collect()
}

pub(crate) fn count_of(counts: &Counts, table: &str) -> u64 {
    let found = counts.iter().find(|(name, _)| name == table);
    found.map_or(0, |(_, count)| u64::try_from(*count).unwrap_or(0))
}

fn difference(before: &Counts, after: &Counts) -> String {
    let differing: Vec<String> = before
        .iter()
        .filter(|entry| !after.contains(entry))
        .map(|(name, count)| format!("{name} had {count} rows"))
        .collect();
    differing.join(", ")
}

/// Removes a database file and what SQLite keeps beside it.
pub(crate) fn remove_database(path: &Path) -> std::io::Result<()> {
    for suffix in ["-journal", "-wal", "-shm", ""] {
        match std::fs::remove_file(beside(path, suffix)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Removes all but the newest backups that this program named, and the stored files of backups that no
/// longer exist.
///
/// # Errors
/// If a backup is named after a later time than the one just made: then the clock is or was wrong, and which
/// ones are old can't be told. Nothing is removed then.
fn remove_older(folder: &Path, keep: usize, made: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let said = |error: std::io::Error| cannot(error.to_string());
    let mut names = own_names(folder).map_err(said)?;
    let made = made.file_name().and_then(|name| name.to_str());
    let later = names.iter().filter(|name| Some(name.as_str()) > made);
    let later: Vec<&str> = later.map(String::as_str).collect();
    if !later.is_empty() {
        return Err(cannot(format!(
            "{} {} a later time in the name, so the clock is or was wrong, and nothing is removed; set the clock \
             right, or rename or remove what is named wrongly",
            later.join(", "),
            if later.len() == 1 { "has" } else { "have" },
        )));
    }
    names.truncate(names.len().saturating_sub(keep.max(1)));
    let mut removed = Vec::with_capacity(names.len());
    for name in names {
        let path = folder.join(name);
        std::fs::remove_file(&path).map_err(said)?;
        removed.push(path);
    }
    for entry in std::fs::read_dir(folder).map_err(said)? {
        let name = entry.map_err(said)?.file_name();
        let backup = name.to_str().and_then(|name| name.strip_suffix(ENDING));
        if let Some(backup) = backup.filter(|backup| is_own_name(backup))
            && !folder.join(backup).exists()
        {
            remove_folder(&folder.join(&name))?;
        }
    }
    Ok(removed)
}

/// The backups of a folder that this program named, oldest first.
fn own_names(folder: &Path) -> std::io::Result<Vec<String>> {
    let mut names: Vec<String> = std::fs::read_dir(folder)?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| is_own_name(name))
        .collect();
    names.sort_unstable();
    Ok(names)
}

fn is_number(text: &str) -> bool {
    matches!(text.as_bytes(), [b'2'..=b'9'])
}

fn is_own_name(name: &str) -> bool {
    let time = name
        .strip_prefix(NAME_START)
        .and_then(|rest| rest.strip_suffix(NAME_END));
    time.is_some_and(|time| {
        let time = match time.split_once('_') {
            Some((time, number)) if is_number(number) => time,
            Some(_) => return false,
            None => time,
        };
        let digits = time.replacen('T', "", 1).replacen('Z', "", 1);
        time.len() == 16 && digits.len() == 14 && digits.bytes().all(|b| b.is_ascii_digit())
    })
}
