//! The versions of the schema. `upgrade` brings an older database to the newest.
//!
//! A migration that was released never changes: its checksum is kept in the database and compared
//! at every open. A database of a newer version is refused.

use std::fs::File;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest, Sha256};

use crate::StoreError;
use crate::engine::faults::not_opened;

/// Marks a file as a database of this program (`PRAGMA application_id`): "Voca".
const APPLICATION_ID: i32 = 0x566f_6361;

/// One step of the schema.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Migration {
    pub(crate) name: &'static str,
    pub(crate) sql: &'static str,
}

/// The step of a file in `migrations/`. Its name is what follows the number.
macro_rules! step {
    ($file:literal) => {
        Migration {
            name: $file.split_at(NUMBER_LEN).1,
            sql: include_str!(concat!("../migrations/", $file, ".sql")),
        }
    };
}

/// The characters of a file's number, with the underscore behind it.
const NUMBER_LEN: usize = 5;

/// All steps, in order; the number of a step is its place, from 1.
pub(crate) const MIGRATIONS: &[Migration] = &[
    step!("0001_initial"),
    step!("0002_turn_sources"),
    step!("0003_imports"),
    step!("0004_history_gaps"),
    step!("0005_conversations"),
    step!("0006_token_ratios"),
    step!("0007_erasure"),
    step!("0008_follow_ups"),
    step!("0009_run_events"),
    step!("0010_placeholders"),
    step!("0011_commands"),
    step!("0012_files"),
    step!("0013_sound"),
    step!("0014_house"),
    step!("0015_search_and_costs"),
    step!("0016_recall_and_tools"),
    step!("0017_approvals"),
    step!("0018_waits_from"),
    step!("0019_taints"),
    step!("0020_questions"),
    step!("0021_schedules"),
    step!("0022_planned_by_calls"),
    step!("0023_hooks"),
    step!("0024_memories"),
    step!("0025_knowledge"),
    step!("0026_learning"),
    step!("0027_audit"),
    step!("0028_run_requests"),
    step!("0029_networks"),
    step!("0030_delegations"),
    step!("0031_tellings"),
    step!("0032_feedback"),
    step!("0033_changed_calls"),
    step!("0034_intent"),
    step!("0035_skills"),
    step!("0036_asked_forms"),
    step!("0037_asked_models"),
    step!("0038_codes"),
    step!("0039_interruptions"),
];

/// Compares the applied migrations with those that this build knows; returns how many are applied.
pub(crate) fn check(
    connection: &Connection,
    path: &Path,
    migrations: &[Migration],
) -> Result<u32, StoreError> {
    let cannot = |what: String| StoreError::Open {
        path: path.to_owned(),
        what,
    };
    let read = |error: rusqlite::Error| not_opened(path, "", &error);
    let found: u32 = pragma(connection, "user_version").map_err(read)?;
    let known = u32::try_from(migrations.len()).unwrap_or(u32::MAX);
    let id: i32 = pragma(connection, "application_id").map_err(read)?;
    if found == 0 && is_empty(connection).map_err(read)? {
        return Ok(0);
    }
    if id != APPLICATION_ID {
        return Err(cannot("it is not a database of this program".to_owned()));
    }
    if found > known {
        return Err(StoreError::Newer { found, known });
    }
    for (number, migration) in (1_u32..=found).zip(migrations) {
        let stored = stored_checksum(connection, number).map_err(read)?;
        if stored.as_deref() != Some(checksum(migration).as_slice()) {
            return Err(cannot(format!(
                "migration {number} was applied from another text; use the build that made it"
            )));
        }
    }
    Ok(found)
}

fn pragma<T: rusqlite::types::FromSql>(connection: &Connection, name: &str) -> rusqlite::Result<T> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}

fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| {
        row.get(0)
    })
}

fn stored_checksum(connection: &Connection, number: u32) -> rusqlite::Result<Option<Vec<u8>>> {
    connection
        .query_row(
            "SELECT checksum FROM migrations WHERE number = ?1",
            [number],
            |row| row.get(0),
        )
        .optional()
}

fn checksum(migration: &Migration) -> Vec<u8> {
    Sha256::digest(migration.sql.as_bytes()).to_vec()
}

/// Applies one step in an open transaction.
pub(crate) fn apply_txn(
    connection: &Connection,
    number: u32,
    migration: &Migration,
    now_ms: i64,
) -> rusqlite::Result<()> {
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS migrations (
             number        INTEGER PRIMARY KEY,
             name          TEXT NOT NULL,
             checksum      BLOB NOT NULL,
             applied_at_ms INTEGER NOT NULL
         ) STRICT",
    )?;
    connection.execute_batch(migration.sql)?;
    connection.execute(
        "INSERT INTO migrations (number, name, checksum, applied_at_ms) VALUES (?1, ?2, ?3, ?4)",
        params![number, migration.name, checksum(migration), now_ms],
    )?;
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.pragma_update(None, "user_version", number)
}

/// Syncs the folder of a path: a rename is only durable once its folder is on disk.
pub(crate) fn sync_folder(path: &Path) -> std::io::Result<()> {
    match path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        Some(folder) => File::open(folder)?.sync_all(),
        None => File::open(".")?.sync_all(),
    }
}
