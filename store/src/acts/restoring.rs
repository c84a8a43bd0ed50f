//! Prepares a restored backup: its open runs and posts are held, because the posts may have gone out since, and
//! nothing may be posted twice.

use std::path::Path;

use crate::StoreError;
use crate::engine::backup::CopyProgress;
use crate::engine::restore::{HeldCounts, RestoreReport, restore_and_hold};
use crate::engine::sql::{self, Connection};
use crate::rows::open::{open_post, open_run};

/// The reason stored with runs and posts that were open in a restored backup.
const HELD: &str = "it was open in the backup that was restored; look whether it is in the chat";

/// Puts a backup in the place of a database that no daemon has open. An older schema is migrated at
/// the next start.
///
/// # Errors
/// `Locked` while a daemon runs; `Newer` if a newer version made the backup; `BadBackup` if it is not
/// whole; `Backup` says what else is wrong. Nothing has changed then.
pub fn restore(
    backup: &Path,
    database: &Path,
    now_ms: i64,
    tell: &dyn Fn(CopyProgress),
) -> Result<RestoreReport, StoreError> {
    restore_and_hold(backup, database, now_ms, hold_what_is_open_txn, tell)
}

/// Holds the open runs and posts of a backup, whose schema may be older.
fn hold_what_is_open_txn(connection: &Connection, now_ms: i64) -> sql::Result<HeldCounts> {
    connection.execute(
        "UPDATE outbox_attempts SET ended_at_ms = ?1, outcome = 'restored from a backup'
         WHERE ended_at_ms IS NULL",
        [now_ms],
    )?;
    forget_live_texts_txn(connection)?;
    let posts = connection.execute(
        concat!(
            "UPDATE outbox SET state = 'held', reason = ?1,
                owner = NULL, token = NULL, lease_until_ms = NULL
         WHERE ",
            open_post!()
        ),
        [HELD],
    )?;
    let runs = connection.execute(
        concat!(
            "UPDATE runs SET state = 'held', reason = ?1,
                owner = NULL, token = NULL, lease_until_ms = NULL
         WHERE ",
            open_run!()
        ),
        [HELD],
    )?;
    // Inquiries of the backup were answered since, or are obsolete. Backups of older versions have none.
    for (table, sql) in [
        ("inquiries", "DELETE FROM inquiries"),
        ("jobs", "DELETE FROM jobs WHERE kind = 'answer-inquiry'"),
        // Open approvals of the backup were decided since, or their cards are out of sight.
        (
            "approvals",
            "UPDATE approvals SET state = 'cancelled', outcomes = '', decided_at_ms = asked_at_ms
             WHERE state = 'open'",
        ),
        (
            "questions",
            "UPDATE questions SET state = 'cancelled', outcomes = '', ended_at_ms = asked_at_ms
             WHERE state = 'open'",
        ),
        // The run that waited for a task is held; once released, it goes on without the task.
        (
            "delegations",
            "UPDATE delegations SET state = 'cancelled', ended_at_ms = asked_at_ms WHERE state = 'open'",
        ),
        // It is unknown which schedules fired since the backup, so their next times are computed anew.
        ("schedules", "UPDATE schedules SET set_at_ms = NULL"),
    ] {
        let has_table = connection.query_row(
            "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1) AS is_there",
            [table],
            |row| row.get::<_, bool>("is_there"),
        )?;
        if has_table {
            connection.execute(sql, [])?;
        }
    }
    // Messages from before the restore that are read back may have been answered from the replaced database.
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS restores (
    at_ms        INTEGER PRIMARY KEY
) STRICT;",
    )?;
    connection.execute(
        "INSERT OR IGNORE INTO restores (at_ms) VALUES (?1)",
        [now_ms],
    )?;
    Ok(HeldCounts {
        posts: posts as u64,
        runs: runs as u64,
    })
}

/// Forgets the live text of runs at work; it is shown at their end only. Backups of older versions have no such rows.
fn forget_live_texts_txn(connection: &Connection) -> sql::Result<()> {
    let has_events = connection.query_row(
        "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'run_events') AS is_there",
        [],
        |row| row.get::<_, bool>("is_there"),
    )?;
    if has_events {
        connection.execute_batch(
            "DELETE FROM run_events WHERE kind = 'text'
               AND run_id IN (SELECT id FROM runs WHERE state = 'leased');
             UPDATE run_events SET text = NULL WHERE text IS NOT NULL
               AND run_id IN (SELECT id FROM runs WHERE state = 'leased');",
        )?;
    }
    Ok(())
}
