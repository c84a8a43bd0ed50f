//! What turns and runs were made from: a tool's result quotes turns, an answer that is to be replaced was made from
//! them, a run read them for certain.

use crate::engine::sql::{Connection, OptionalExtension};

use crate::registry::{ErasureRule, Fate, OF_TURN, SAYS_NOTHING, StoreTable, account, text};
use crate::{Reader, StoreError};
use vocative_core::ids::TurnId;

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[
    account(
        "run_sources",
        text(&[], &[], &[]),
        Fate {
            person: ErasureRule::Nothing(SAYS_NOTHING),
            chat: ErasureRule::Nothing(SAYS_NOTHING),
            message: ErasureRule::Nothing(SAYS_NOTHING),
            ..OF_TURN
        },
    )
    .follows(&["source_seq"]),
    account("turn_sources", text(&[], &[], &[]), OF_TURN).follows(&["turn_seq", "source_seq"]),
];

impl Reader {
    /// Whether all of these turns are still in the room.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn are_in_room(&self, turns: Vec<TurnId>) -> Result<bool, StoreError> {
        self.read(move |connection| Ok(visible_sources(connection, &turns)?.is_some()))
            .await
    }
}

/// The seqs of turns that are there to be quoted; `None` if one is gone from the room.
pub(crate) fn visible_sources(
    connection: &Connection,
    sources: &[TurnId],
) -> Result<Option<Vec<i64>>, StoreError> {
    let mut statement = connection
        .prepare_cached("SELECT seq FROM turns WHERE uuid = ?1 AND visibility = 'room'")?;
    let mut seqs = Vec::with_capacity(sources.len());
    for source in sources {
        match statement
            .query_row([source], |row| row.get("seq"))
            .optional()?
        {
            Some(seq) => seqs.push(seq),
            None => return Ok(None),
        }
    }
    Ok(Some(seqs))
}

/// Notes what a turn quotes.
pub(crate) fn note_sources_txn(
    connection: &Connection,
    turn_seq: i64,
    sources: &[i64],
) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO turn_sources (source_seq, turn_seq) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
    )?;
    for source in sources {
        statement.execute((source, turn_seq))?;
    }
    Ok(())
}

/// Forgets what a turn was made from.
pub(crate) fn forget_sources_txn(connection: &Connection, turn_seq: i64) -> Result<(), StoreError> {
    connection
        .prepare_cached("DELETE FROM turn_sources WHERE turn_seq = ?1")?
        .execute([turn_seq])?;
    Ok(())
}

/// Notes what a run reads for certain.
pub(crate) fn note_run_sources_txn(
    connection: &Connection,
    run_row: i64,
    sources: &[i64],
) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO run_sources (source_seq, run_id) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
    )?;
    for source in sources {
        statement.execute((source, run_row))?;
    }
    Ok(())
}
