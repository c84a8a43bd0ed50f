//! Damage: how it is noticed, what it stops, and a check of a whole database.
//!
//! SQLite keeps no checksums of pages: it notices damage where it reads something that can't be right.
//! The first such sign, at whichever statement, is final: nothing is written to the database any
//! more, not even a checkpoint, and whoever waits for the sign ends the daemon. A small database is
//! checked at every open, a large one only on request, because a check reads all of it.
//! The write-ahead log has checksums: SQLite reads it up to the first incomplete frame, which a power
//! cut leaves and which is no damage.
//!
//! SQLite reports a page that can't be read at all (EIO) in the same way. Reading the files once more
//! shows whether it is the disk that fails: [`diagnose`].

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use tokio::sync::watch;

use crate::StoreError;
use crate::engine::beside::{beside, files_beside};
use crate::engine::contents::find_loss;
use crate::engine::error::is_damage;
use crate::engine::faults::{failing, not_opened};
use crate::engine::lock::BUSY_TIMEOUT_MS;
use crate::engine::schema::{self, MIGRATIONS};

/// A database up to this size, in bytes, is checked at open. That takes a tenth of a second at most, as 61 MiB
/// take 0.7 s, most of it for the full text (measured 2026-11 on a busy machine).
const LOOKED_THROUGH_BYTES_MAX: u64 = 8 << 20;
/// The most findings that a check lists; further ones add nothing new.
const FINDINGS_MAX: usize = 20;

/// The first sign of damage, shared by all who read and write one database.
#[derive(Clone, Debug)]
pub(crate) struct DamageSign(Arc<watch::Sender<Option<String>>>);

impl DamageSign {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }

    /// Notes a sign; only the first one counts.
    pub(crate) fn note(&self, what: &str) {
        self.0.send_if_modified(|sign| {
            let is_first = sign.is_none();
            sign.get_or_insert_with(|| what.to_owned());
            is_first
        });
    }

    /// The first sign, if there was one.
    pub(crate) fn seen(&self) -> Option<String> {
        self.0.borrow().clone()
    }

    /// Waits for a sign.
    pub(crate) async fn wait(&self) -> String {
        let mut sign = self.0.subscribe();
        match sign.wait_for(Option::is_some).await {
            Ok(what) => what.clone().unwrap_or_default(),
            // This handle keeps the sender, so the channel can't be closed.
            Err(_) => std::future::pending().await,
        }
    }
}

/// What a check of a whole database found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckReport {
    /// What is damaged, in sentences; empty = the database is whole.
    pub findings: Vec<String>,
    /// Its size with its write-ahead log.
    pub bytes: u64,
    /// Turns in it.
    pub turns: u64,
    /// What is wrong with the files beside it, in sentences.
    pub lost_files: Vec<String>,
}

/// Checks a database that may be in use: every page, index, reference, and the full text. Reads all of it;
/// beside a running daemon, from one snapshot.
///
/// # Errors
/// `Damaged` if it can't even be read through; `Newer` if a newer version wrote it; `Unusable` or
/// `Open` if it can't be opened.
pub fn check_database(path: &Path) -> Result<CheckReport, StoreError> {
    let (connection, mut report) = check_tables(path)?;
    if report.findings.is_empty() {
        report.lost_files = find_loss(
            &crate::engine::sql::Connection::of(&connection),
            &files_beside(path),
        )?;
    }
    Ok(report)
}

/// Checks the database without the files beside it; the returned connection no longer holds a snapshot.
fn check_tables(path: &Path) -> Result<(Connection, CheckReport), StoreError> {
    let said = |error: rusqlite::Error| not_opened(path, "", &error);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(said)?;
    connection
        .busy_timeout(Duration::from_millis(BUSY_TIMEOUT_MS))
        .map_err(said)?;
    refuse_emptied(path)?;
    schema::check(&connection, path, MIGRATIONS)?;
    connection.execute_batch("BEGIN").map_err(said)?;
    let findings = find_damage(&connection).map_err(said)?;
    let count = "SELECT count(*) FROM turns";
    let turns = connection.query_row(count, [], |row| row.get::<_, i64>(0));
    let turns = match turns {
        Err(error) if findings.is_empty() => return Err(said(error)),
        turns => turns.unwrap_or(0),
    };
    // Damage may have ended the transaction already.
    let _ = connection.execute_batch("ROLLBACK");
    let report = CheckReport {
        findings,
        bytes: bytes_of(path) + bytes_of(&beside(path, "-wal")),
        turns: u64::try_from(turns).unwrap_or(0),
        lost_files: Vec::new(),
    };
    Ok((connection, report))
}

/// Everything that is wrong with a database, in sentences.
pub(crate) fn find_damage(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut findings = complaints(connection, "integrity_check")?;
    if findings.is_empty() {
        findings = dangling(connection)?;
    }
    Ok(findings)
}

/// What one of SQLite's own checks complains of. The full text is a part of them.
fn complaints(connection: &Connection, check: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(&format!("PRAGMA {check}({FINDINGS_MAX})"))?;
    let mut findings = Vec::new();
    for paragraph in statement.query_map([], |row| row.get::<_, String>(0))? {
        match paragraph {
            Ok(paragraph) => {
                let lines = paragraph.lines().map(str::trim);
                let lines = lines.filter(|line| !line.is_empty() && *line != "ok");
                findings.extend(lines.map(str::to_owned));
            }
            // The damage stopped the check itself.
            Err(error) if is_damage(&error) => {
                findings.push(error.to_string());
                break;
            }
            Err(error) => return Err(error),
        }
    }
    findings.truncate(FINDINGS_MAX);
    Ok(findings)
}

/// Rows that refer to rows that are not there.
fn dangling(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(
        "SELECT \"table\", parent, count(*) FROM pragma_foreign_key_check
         GROUP BY 1, 2 ORDER BY 1, 2 LIMIT ?1",
    )?;
    let rows = statement.query_map([FINDINGS_MAX as i64], |row| {
        let (table, parent): (String, String) = (row.get(0)?, row.get(1)?);
        let count: i64 = row.get(2)?;
        Ok(format!(
            "{count} rows of {table} refer to rows of {parent} that are not there"
        ))
    })?;
    rows.collect()
}

/// Turns `Damaged` into a failing disk, if a part of the database can't be read.
#[must_use]
pub fn diagnose(error: StoreError) -> StoreError {
    let StoreError::Damaged {
        database: Some(path),
        ..
    } = &error
    else {
        return error;
    };
    match unreadable(path) {
        Some(cause) => failing(path, format!("a part of it can't be read: {cause}")),
        None => error,
    }
}

/// Why a database or its log can't be read from its beginning to its end.
fn unreadable(path: &Path) -> Option<std::io::Error> {
    let read_through = |path: PathBuf| -> std::io::Result<()> {
        let mut file = match File::open(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            file => file?,
        };
        let mut bytes = vec![0; 1 << 20];
        while file.read(&mut bytes)? > 0 {}
        Ok(())
    };
    let files = [path.to_owned(), beside(path, "-wal")];
    files.into_iter().find_map(|file| read_through(file).err())
}

/// What a sign of damage in a running daemon turns out to be, once everything was read again: damage,
/// a disk that fails, or a read that failed once.
pub(crate) fn look_again(path: &Path, sign: &str) -> StoreError {
    let found = match check_tables(path) {
        Ok((_, report)) if report.findings.is_empty() => {
            let what = format!("{sign}; read again, nothing in it is damaged");
            return failing(path, what);
        }
        Ok((_, report)) => damaged(path, &report.findings),
        Err(error @ StoreError::Damaged { .. }) => error,
        Err(_) => damaged(path, &[sign.to_owned()]),
    };
    diagnose(found)
}

/// Checks a database that is being opened, if it is small.
///
/// # Errors
/// `Damaged` says what was found.
pub(crate) fn look_through(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    if bytes_of(path) > LOOKED_THROUGH_BYTES_MAX {
        return Ok(());
    }
    let findings = complaints(connection, "quick_check");
    let findings = findings.map_err(|error| not_opened(path, "", &error))?;
    if findings.is_empty() {
        return Ok(());
    }
    Err(damaged(path, &findings))
}

/// The error that says what is damaged.
pub(crate) fn damaged(path: &Path, findings: &[String]) -> StoreError {
    StoreError::Damaged {
        database: Some(path.to_owned()),
        what: in_words(findings),
    }
}

/// The first findings in one line.
pub(crate) fn in_words(findings: &[String]) -> String {
    const NAMED_MAX: usize = 3;
    let mut words = findings[..findings.len().min(NAMED_MAX)].join("; ");
    if findings.len() > NAMED_MAX {
        words.push_str("; and more");
    }
    words
}

/// Refuses an empty file where there was a database before. SQLite would take it for a new database, and
/// remove the log with the last commits.
pub(crate) fn refuse_emptied(path: &Path) -> Result<(), StoreError> {
    let is_empty = std::fs::metadata(path).is_ok_and(|file| file.len() == 0);
    let had_log = bytes_of(&beside(path, "-wal")) > 0;
    if is_empty && (had_log || crate::engine::lock::was_used(path)) {
        return Err(damaged(path, &["the file is empty".to_owned()]));
    }
    Ok(())
}

fn bytes_of(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.len())
}
