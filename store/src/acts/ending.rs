//! The end of a run: the only place that ends one, whatever state it is in and whoever ends it.
//!
//! Its placeholder is taken back and its signs are taken away in the transaction that ends it, so no
//! ending leaves the beginning of an answer in a room. An answer that is committed with the end has
//! taken the placeholder's place before. `tests/architecture.rs` holds that no other module writes an
//! ended state.

use crate::engine::sql::{Connection, params};

use crate::StoreError;
use crate::acts::placeholder::retract_txn;
use crate::rows::reactions::take_reactions_back_txn;
use vocative_core::ids::RunId;

/// How a run ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EndOfRun<'a> {
    /// It answered.
    Done,
    /// It was given up.
    Dead { reason: &'a str },
    /// It ends without a word, for the reason it was asked to stop.
    Cancelled,
}

/// What became of a run that was told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Ended at once: no worker had it.
    Ended,
    /// Its worker ends it, or the next claim or start if that dies.
    Asked,
    /// It was at its end before.
    Over,
}

/// Ends a run, with what shows of it in the room.
pub(crate) fn end_run_txn(
    connection: &Connection,
    row: i64,
    ending: EndOfRun<'_>,
    now_ms: i64,
) -> Result<(), StoreError> {
    let (state, reason) = match ending {
        EndOfRun::Done => ("done", None),
        EndOfRun::Dead { reason } => ("dead", Some(reason)),
        EndOfRun::Cancelled => ("cancelled", None),
    };
    connection
        .prepare_cached(
            "UPDATE runs SET state = ?2, reason = coalesce(?3, cancel_requested_by),
                    owner = NULL, token = NULL, lease_until_ms = NULL, finished_at_ms = ?4
             WHERE id = ?1",
        )?
        .execute(params![row, state, reason, now_ms])?;
    retract_txn(connection, row, now_ms)?;
    take_reactions_back_txn(connection, row, now_ms)
}

/// Ends a run that no worker has; one that a worker has is asked to stop. The first reason is kept.
pub(crate) fn stop_run_txn(
    connection: &Connection,
    row: i64,
    reason: &str,
    now_ms: i64,
) -> Result<Stop, StoreError> {
    let state: String = connection
        .prepare_cached("SELECT state FROM runs WHERE id = ?1")?
        .query_row([row], |row| row.get(0))?;
    let stop = match state.as_str() {
        "queued" | "waiting" | "held" | "quarantined" => Stop::Ended,
        "leased" => Stop::Asked,
        _ => return Ok(Stop::Over),
    };
    connection
        .prepare_cached(
            "UPDATE runs SET cancel_requested_by = coalesce(cancel_requested_by, ?2) WHERE id = ?1",
        )?
        .execute((row, reason))?;
    if stop == Stop::Ended {
        end_run_txn(connection, row, EndOfRun::Cancelled, now_ms)?;
    }
    Ok(stop)
}

/// Stops each of these runs; returns those that were not at their end.
pub(crate) fn stop_runs_txn(
    connection: &Connection,
    runs: Vec<(i64, RunId)>,
    reason: &str,
    now_ms: i64,
) -> Result<Vec<RunId>, StoreError> {
    let mut stopped = Vec::new();
    for (row, id) in runs {
        if stop_run_txn(connection, row, reason, now_ms)? != Stop::Over {
            stopped.push(id);
        }
    }
    Ok(stopped)
}
