//! The schema's versions; how an older database gets there: `upgrade`.
//!
//! A migration that was released never changes: its checksum is kept in the database and compared
//! at every open. A database of a newer version is refused.

use std::fs::File;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest, Sha256};

use crate::StoreError;
use crate::engine::faults::not_opened;

/// Marks a file as ours (`PRAGMA application_id`): "Voca".
const APPLICATION_ID: i32 = 0x566f_6361;

/// One step of the schema.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Migration {
    pub(crate) name: &'static str,
    pub(crate) sql: &'static str,
}

/// All steps, in order; the number of a step is its place, from 1.
pub(crate) const MIGRATIONS: &[Migration] = &[
    Migration {
        name: "initial",
        sql: include_str!("../migrations/0001_initial.sql"),
    },
    Migration {
        name: "turn_sources",
        sql: include_str!("../migrations/0002_turn_sources.sql"),
    },
    Migration {
        name: "imports",
        sql: include_str!("../migrations/0003_imports.sql"),
    },
    Migration {
        name: "history_gaps",
        sql: include_str!("../migrations/0004_history_gaps.sql"),
    },
    Migration {
        name: "conversations",
        sql: include_str!("../migrations/0005_conversations.sql"),
    },
    Migration {
        name: "token_ratios",
        sql: include_str!("../migrations/0006_token_ratios.sql"),
    },
    Migration {
        name: "erasure",
        sql: include_str!("../migrations/0007_erasure.sql"),
    },
    Migration {
        name: "follow_ups",
        sql: include_str!("../migrations/0008_follow_ups.sql"),
    },
    Migration {
        name: "run_events",
        sql: include_str!("../migrations/0009_run_events.sql"),
    },
    Migration {
        name: "placeholders",
        sql: include_str!("../migrations/0010_placeholders.sql"),
    },
    Migration {
        name: "commands",
        sql: include_str!("../migrations/0011_commands.sql"),
    },
    Migration {
        name: "files",
        sql: include_str!("../migrations/0012_files.sql"),
    },
    Migration {
        name: "sound",
        sql: include_str!("../migrations/0013_sound.sql"),
    },
    Migration {
        name: "house",
        sql: include_str!("../migrations/0014_house.sql"),
    },
    Migration {
        name: "search_and_costs",
        sql: include_str!("../migrations/0015_search_and_costs.sql"),
    },
    Migration {
        name: "recall_and_tools",
        sql: include_str!("../migrations/0016_recall_and_tools.sql"),
    },
    Migration {
        name: "approvals",
        sql: include_str!("../migrations/0017_approvals.sql"),
    },
    Migration {
        name: "waits_from",
        sql: include_str!("../migrations/0018_waits_from.sql"),
    },
    Migration {
        name: "taints",
        sql: include_str!("../migrations/0019_taints.sql"),
    },
    Migration {
        name: "questions",
        sql: include_str!("../migrations/0020_questions.sql"),
    },
    Migration {
        name: "schedules",
        sql: include_str!("../migrations/0021_schedules.sql"),
    },
    Migration {
        name: "planned_by_calls",
        sql: include_str!("../migrations/0022_planned_by_calls.sql"),
    },
    Migration {
        name: "hooks",
        sql: include_str!("../migrations/0023_hooks.sql"),
    },
    Migration {
        name: "memories",
        sql: include_str!("../migrations/0024_memories.sql"),
    },
    Migration {
        name: "knowledge",
        sql: include_str!("../migrations/0025_knowledge.sql"),
    },
    Migration {
        name: "learning",
        sql: include_str!("../migrations/0026_learning.sql"),
    },
    Migration {
        name: "audit",
        sql: include_str!("../migrations/0027_audit.sql"),
    },
    Migration {
        name: "run_requests",
        sql: include_str!("../migrations/0028_run_requests.sql"),
    },
    Migration {
        name: "networks",
        sql: include_str!("../migrations/0029_networks.sql"),
    },
    Migration {
        name: "delegations",
        sql: include_str!("../migrations/0030_delegations.sql"),
    },
    Migration {
        name: "tellings",
        sql: include_str!("../migrations/0031_tellings.sql"),
    },
    Migration {
        name: "feedback",
        sql: include_str!("../migrations/0032_feedback.sql"),
    },
    Migration {
        name: "changed_calls",
        sql: include_str!("../migrations/0033_changed_calls.sql"),
    },
    Migration {
        name: "intent",
        sql: include_str!("../migrations/0034_intent.sql"),
    },
    Migration {
        name: "skills",
        sql: include_str!("../migrations/0035_skills.sql"),
    },
    Migration {
        name: "asked_forms",
        sql: include_str!("../migrations/0036_asked_forms.sql"),
    },
    Migration {
        name: "asked_models",
        sql: include_str!("../migrations/0037_asked_models.sql"),
    },
    Migration {
        name: "codes",
        sql: include_str!("../migrations/0038_codes.sql"),
    },
    Migration {
        name: "interruptions",
        sql: include_str!("../migrations/0039_interruptions.sql"),
    },
];

/// Compares what was applied with what this build knows; the number of applied migrations.
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

/// Makes a renaming last: a name is a part of its folder.
pub(crate) fn sync_folder(path: &Path) -> std::io::Result<()> {
    match path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        Some(folder) => File::open(folder)?.sync_all(),
        None => File::open(".")?.sync_all(),
    }
}
