//! Finds unfinished runs that read what an order blanks: only those are stopped.

use crate::acts::forgetting::delete_steps_txn;
use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::open::open_run;
use crate::rows::run_events::forget_live_text_txn;

use super::orders::{Order, targets};
use crate::StoreError;
use crate::rows::sent_turns::recorded_turns;
use vocative_core::ids::TurnId;
use vocative_core::run::StopCause;

/// A run that is not done.
struct Unfinished {
    row: i64,
    is_leased: bool,
    /// The turns of its prompt; `None` where no prompt was made yet.
    read: Option<Vec<TurnId>>,
}

/// Asks the runs of the order's account that read a turn of it to stop; those that wait for another
/// attempt ask their model again. Returns whether a run is at work whose reads are not known yet.
pub(super) fn stop_readers_txn(connection: &Connection, order: &Order) -> Result<bool, StoreError> {
    let targets = targets(connection, &order.entry)?;
    let (people, rooms) = targets.json();
    let mut is_unsure = false;
    for run in unfinished_runs(connection, order)? {
        let Some(read) = run.read else {
            is_unsure |= run.is_leased;
            continue;
        };
        let mut is_theirs = connection.prepare_cached(
            "SELECT participant_id IN (SELECT value FROM json_each(?2))
                    OR conversation_id IN (SELECT value FROM json_each(?3)) AS is_theirs
             FROM turns WHERE uuid = ?1 AND sent_at_ms <= ?4",
        )?;
        let mut has_read = false;
        for turn in read {
            let values = params![turn, people, rooms, order.entry.erased_at_ms];
            has_read |= is_theirs
                .query_row(values, |row| row.get("is_theirs"))
                .optional()?
                .unwrap_or(false);
        }
        match (has_read, run.is_leased) {
            (false, _) => {}
            (true, true) => {
                connection
                    .prepare_cached(
                        "UPDATE runs SET stop_cause = ?2, reason = ?2
                         WHERE id = ?1 AND stop_cause IS NULL",
                    )?
                    .execute((run.row, StopCause::Erased))?;
                forget_live_text_txn(connection, run.row)?;
            }
            (true, false) => {
                delete_steps_txn(connection, "= ?1", run.row)?;
            }
        }
    }
    Ok(is_unsure)
}

/// The runs at work, and the waiting runs that have made a prompt before.
fn unfinished_runs(connection: &Connection, order: &Order) -> Result<Vec<Unfinished>, StoreError> {
    let mut statement = connection.prepare_cached(concat!(
        "SELECT r.id, r.state = 'leased' AS is_leased, s.turns
         FROM runs r INDEXED BY runs_waiting CROSS JOIN chats h ON h.id = r.chat_id
         LEFT JOIN sent_prompts s ON s.run_id = r.id
         WHERE ",
        open_run!("r"),
        " AND h.account_id = ?1
           AND r.stop_cause IS NULL AND (r.state = 'leased' OR s.run_id IS NOT NULL)"
    ))?;
    let rows = statement.query_map([order.account], |row| {
        let turns: Option<Vec<u8>> = row.get("turns")?;
        Ok(Unfinished {
            row: row.get("id")?,
            is_leased: row.get("is_leased")?,
            read: turns.map(|packed| recorded_turns(&packed)),
        })
    })?;
    Ok(rows.collect::<crate::engine::sql::Result<_>>()?)
}
