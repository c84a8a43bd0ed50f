//! The end of a run. This is the only module that ends a run, whatever its state and whoever ends it, and the
//! only one that brings a run back.
//!
//! The transaction that ends a run also retracts its placeholder and removes its reactions, so no ending
//! leaves the beginning of an answer in a room. Runs that it started end with it, and a run that waits for it
//! goes on. An answer that is committed with the end has replaced the placeholder before.
//! `tests/architecture.rs` checks that no other module writes an ended state.

use crate::acts::timeline::end_calls_txn;
use crate::engine::sql::{Connection, params};

use crate::StoreError;
use crate::acts::deciding::{cancel_approvals_txn, wake_txn};
use crate::acts::delegating::end_task_txn;
use crate::acts::placeholder::retract_txn;
use crate::acts::questions::cancel_questions_txn;
use crate::acts::telling::tell_run_end_txn;
use crate::rows::quarantine::leave_quarantine_txn;
use crate::rows::reactions::take_reactions_back_txn;
use crate::rows::run_events::{
    forget_live_text_txn, move_events_txn, tell_end_txn, untell_end_txn,
};
use crate::rows::run_requests::forget_given_txn;
use vocative_core::ids::RunId;
use vocative_core::run::{RunStage, StopCause, Stopping};
use vocative_core::run_event::EndingKind;
use vocative_core::running::stopping::{RequeuedRun, Stop, stop};

/// How a run ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EndOfRun<'a> {
    /// It answered.
    Done,
    /// It was given up.
    Dead { reason: &'a str },
    /// It ends without an answer, for the reason it was asked to stop.
    Cancelled,
}

/// Ends a run, and removes its signs in the room.
pub(crate) fn end_run_txn(
    connection: &Connection,
    row: i64,
    ending: EndOfRun<'_>,
    now_ms: i64,
) -> Result<(), StoreError> {
    let (stage, reason, kind) = match ending {
        EndOfRun::Done => (RunStage::Done, None, EndingKind::Finished),
        EndOfRun::Dead { reason } => (RunStage::Dead, Some(reason), EndingKind::Failed),
        EndOfRun::Cancelled => (RunStage::Cancelled, None, EndingKind::Cancelled),
    };
    cancel_approvals_txn(connection, row, now_ms)?;
    cancel_questions_txn(connection, row, now_ms)?;
    cancel_tasks_txn(connection, row, now_ms)?;
    end_calls_txn(connection, row, now_ms)?;
    tell_end_txn(connection, row, kind, now_ms)?;
    forget_live_text_txn(connection, row)?;
    forget_given_txn(connection, row)?;
    // A stopped run keeps the reason for the stop; the reason of an earlier failure is cleared.
    connection
        .prepare_cached(
            "UPDATE runs SET state = ?2, reason = coalesce(?3, iif(stop_cause IS NULL, NULL, reason)),
                    owner = NULL, token = NULL, lease_until_ms = NULL, finished_at_ms = ?4
             WHERE id = ?1",
        )?
        .execute(params![row, stage, reason, now_ms])?;
    tell_run_end_txn(connection, row, stage, now_ms)?;
    end_task_txn(connection, row, now_ms)?;
    retract_txn(connection, row, now_ms)?;
    take_reactions_back_txn(connection, row, now_ms)
}

/// Ends a run that no worker holds; a run that a worker holds is asked to stop. The first reason is kept.
pub(crate) fn stop_run_txn(
    connection: &Connection,
    row: i64,
    stopping: &Stopping,
    now_ms: i64,
) -> Result<Stop, StoreError> {
    let (stage, is_told): (RunStage, bool) = connection
        .prepare_cached("SELECT state, stop_cause IS NOT NULL AS is_told FROM runs WHERE id = ?1")?
        .query_row([row], |row| Ok((row.get("state")?, row.get("is_told")?)))?;
    let stop = stop(stage);
    if stop != Stop::Over && !is_told {
        connection
            .prepare_cached("UPDATE runs SET stop_cause = ?2, reason = ?3 WHERE id = ?1")?
            .execute((row, stopping.cause, &stopping.detail))?;
    }
    match stop {
        Stop::Ended => {
            end_run_txn(connection, row, EndOfRun::Cancelled, now_ms)?;
            leave_quarantine_txn(connection)?;
        }
        Stop::Asked => forget_live_text_txn(connection, row)?,
        Stop::Over => {}
    }
    Ok(stop)
}

/// Queues a run again that has ended, is held or is set aside; its wait begins anew. It is due at `not_before_ms`, or
/// when it was before.
pub(crate) fn bring_back_txn(
    connection: &Connection,
    row: i64,
    not_before_ms: Option<i64>,
) -> Result<(), StoreError> {
    let again = connection
        .prepare_cached("SELECT state, stop_cause, attempt, put_offs FROM runs WHERE id = ?1")?
        .query_row([row], |row| {
            Ok(RequeuedRun {
                stage: row.get("state")?,
                stop_cause: row.get("stop_cause")?,
                attempts: row.get("attempt")?,
                put_offs: row.get("put_offs")?,
            })
        })?
        .queued();
    connection
        .prepare_cached(
            "UPDATE runs
             SET state = ?3, reason = NULL, finished_at_ms = NULL,
                 not_before_ms = coalesce(?2, not_before_ms),
                 stop_cause = ?4, attempt = ?5, put_offs = ?6, put_off_at_ms = NULL,
                 asked_at_run_ms = (SELECT elapsed_ms FROM run_clock),
                 conversation_id = coalesce((SELECT target_id FROM conversation_merges
                                             WHERE source_id = runs.conversation_id), conversation_id)
             WHERE id = ?1",
        )?
        .execute((
            row,
            not_before_ms,
            again.stage,
            again.stop_cause,
            again.attempts,
            again.put_offs,
        ))?;
    untell_end_txn(connection, row)?;
    move_events_txn(connection, row)
}

/// Stops each of these runs; returns those that had not ended yet.
pub(crate) fn stop_runs_txn(
    connection: &Connection,
    runs: Vec<(i64, RunId)>,
    cause: StopCause,
    now_ms: i64,
) -> Result<Vec<RunId>, StoreError> {
    let mut stopped = Vec::new();
    for (row, id) in runs {
        if stop_run_txn(connection, row, &cause.into(), now_ms)? != Stop::Over {
            stopped.push(id);
        }
    }
    Ok(stopped)
}

/// Stops the tasks that other agents work on for a run that ends, or whose steps are forgotten.
pub(crate) fn cancel_tasks_txn(
    connection: &Connection,
    run_row: i64,
    now_ms: i64,
) -> Result<(), StoreError> {
    let children: Vec<i64> = connection
        .prepare_cached(
            "UPDATE delegations SET state = 'cancelled', ended_at_ms = ?2
             WHERE parent_id = ?1 AND state = 'open' RETURNING child_id",
        )?
        .query_map((run_row, now_ms), |row| row.get("child_id"))?
        .collect::<crate::engine::sql::Result<_>>()?;
    for child in &children {
        stop_run_txn(connection, *child, &StopCause::Parent.into(), now_ms)?;
    }
    match children.is_empty() {
        true => Ok(()),
        false => wake_txn(connection, run_row, now_ms),
    }
}
