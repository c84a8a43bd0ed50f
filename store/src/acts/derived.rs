//! Turns that were made from others (a tool's result quotes them, an answer that is to be replaced was made from
//! them): from which, and what becomes of them when one of those is deleted.

use crate::engine::sql::{Connection, OptionalExtension};
use crate::rows::steps::delete_steps_txn;

use crate::rows::run_events::forget_results_txn;
use crate::{Reader, StoreError};
use vocative_core::ids::TurnId;

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

/// Takes out of the store what was made from a turn, but answers (`made_from` has those): the text of turns that quote it, and the
/// recorded steps of their runs.
pub(crate) fn forget_derived_txn(connection: &Connection, source: i64) -> Result<(), StoreError> {
    let quoting = "IN (SELECT t.run_id FROM turn_sources s JOIN turns t ON t.seq = s.turn_seq
                       WHERE s.source_seq = ?1 AND t.kind <> 'message')";
    delete_steps_txn(connection, quoting, source)?;
    for sql in [
        "UPDATE turns SET content = '', tokens = NULL, counter = NULL, revision = revision + 1
         WHERE seq IN (SELECT turn_seq FROM turn_sources WHERE source_seq = ?1) AND kind <> 'message'",
        "DELETE FROM turn_sources WHERE source_seq = ?1",
    ] {
        connection.prepare_cached(sql)?.execute([source])?;
    }
    // A result that is told and not recorded yet has not noted what it quotes.
    forget_results_txn(connection, source)
}
