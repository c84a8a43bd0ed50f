//! Agents that ask other agents: one transaction queues the other agent's run and makes the call wait for it. That run
//! answers once, and ends with the run that asked. `core/delegating` decides who may ask whom.

use crate::capability::MayReply;
use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::leases::leased_run;
use vocative_contract::crash;

use crate::acts::deciding::wake_txn;
use crate::contract::{NewTask, ReplyCommit, RunEnding, TaskGiven};
use crate::rows::columns::stored_count;
use crate::rows::delegations::{askers_of, children_of, path_of, used_by};
use crate::rows::run_rows::{NewRun, queue_run_txn};
use crate::rows::run_taints::taint_txn;
use crate::{Store, StoreError};
use vocative_core::approving::{OutsideSource, Taint};
use vocative_core::delegating::{DelegatingFacts, RESULT_MAX_CHARS, Share, TaskState, delegate};
use vocative_core::tool_call::CallState;
use vocative_core::turn::TurnKind;

/// The end of a result that was cut.
const CUT: &str = " [cut here: the answer was longer]";

impl<C: MayReply> Store<C> {
    /// Asks another agent: its run is queued, and the call waits.
    ///
    /// # Errors
    /// Storage refuses; then nothing is written.
    pub async fn give_task(&self, new: NewTask) -> Result<TaskGiven, StoreError> {
        // A task makes a call wait as a question to a person does, so both use the same crash points.
        crash::point("approval.before-commit");
        let given = self
            .write(move |connection| give_txn(connection, &new))
            .await?;
        crash::point("approval.after-commit");
        Ok(given)
    }
}

fn give_txn(connection: &Connection, new: &NewTask) -> Result<TaskGiven, StoreError> {
    let Some(leased) = leased_run(connection, new.run, new.token)? else {
        return Ok(TaskGiven::Stale);
    };
    let call: Option<(i64, u32)> = connection
        .prepare_cached(
            "SELECT id, step FROM tool_calls
             WHERE uuid = ?1 AND run_id = ?2 AND step IS NOT NULL AND state IN ('ready', 'waiting', 'running')",
        )?
        .query_row((new.call, leased.row), |row| {
            Ok((row.get("id")?, row.get("step")?))
        })
        .optional()?;
    let Some((call, step)) = call else {
        return Ok(TaskGiven::SourceGone);
    };
    let was_given: bool = connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM delegations WHERE call_id = ?1) AS is_so")?
        .query_row([call], |row| row.get("is_so"))?;
    if was_given || leased.is_cancelled {
        return Ok(TaskGiven::Waits);
    }
    let (used, calls) = used_by(connection, leased.row)?;
    let mut askers = askers_of(connection, leased.row)?;
    askers.push(new.asked_by.clone());
    let facts = DelegatingFacts {
        path: path_of(connection, leased.row)?,
        askers,
        budget: new.budget,
        calls_max: new.calls_max,
        used,
        calls,
        children: children_of(connection, leased.row)?,
    };
    let share = match delegate(&facts, &new.agent, &new.members) {
        Ok(share) => share,
        Err(not) => return Ok(TaskGiven::Not(not)),
    };
    let child = queue_child_txn(connection, leased.row, new)?;
    inherit_taints_txn(connection, (leased.row, step), child, new.now_ms)?;
    insert_txn(connection, (call, leased.row, child), new, share)?;
    connection
        .prepare_cached("UPDATE tool_calls SET state = ?2 WHERE id = ?1")?
        .execute((call, CallState::Waiting))?;
    Ok(TaskGiven::Waits)
}

/// Queues a child run: for the same person, in the same conversation, with the read bound of its parent.
fn queue_child_txn(connection: &Connection, parent: i64, new: &NewTask) -> Result<i64, StoreError> {
    let (conversation, chat, person) = connection
        .prepare_cached(
            "SELECT conversation_id, chat_id, person_participant_id FROM runs WHERE id = ?1",
        )?
        .query_row([parent], |row| {
            Ok((
                row.get("conversation_id")?,
                row.get("chat_id")?,
                row.get("person_participant_id")?,
            ))
        })?;
    let run = NewRun {
        conversation,
        chat,
        agent: &new.agent,
        not_before_ms: new.now_ms,
        person,
        now_ms: new.now_ms,
    };
    let (child, _) = queue_run_txn(connection, &run)?;
    // The child reads the room as of the same moment as its parent.
    connection
        .prepare_cached(
            "UPDATE runs SET parent_run_id = ?2, as_of_seq = (SELECT p.as_of_seq FROM runs p WHERE p.id = ?2)
             WHERE id = ?1",
        )?
        .execute((child, parent))?;
    Ok(child)
}

fn insert_txn(
    connection: &Connection,
    (call, parent, child): (i64, i64, i64),
    new: &NewTask,
    share: Share,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO delegations (call_id, parent_id, child_id, asked_by, task, sees_room, tokens_max, cost_max_micros,
                    worked_max_ms, calls_max, state, result, asked_at_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 'open', '', ?11)",
        )?
        .execute(params![
            call,
            parent,
            child,
            new.asked_by,
            new.task,
            new.sees_room,
            stored_count(share.budget.tokens),
            stored_count(share.budget.cost_micros),
            stored_count(share.budget.worked_ms),
            share.calls,
            new.now_ms,
        ])?;
    Ok(())
}

/// Gives a child run the taints that its parent had when it gave the task, which may pass on what the parent read.
fn inherit_taints_txn(
    connection: &Connection,
    (parent, step): (i64, u32),
    child: i64,
    now_ms: i64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO run_taints (run_id, step, source, tool, at_ms)
             SELECT ?3, 0, source, tool, ?4 FROM run_taints WHERE run_id = ?1 AND step < ?2
             ON CONFLICT DO NOTHING",
        )?
        .execute((parent, step, child, now_ms))?;
    Ok(())
}

/// Taints a run that gave a task if the run that worked on the task is tainted.
pub(crate) fn taint_by_task_txn(
    connection: &Connection,
    (run_row, step): (i64, u32),
    call_row: i64,
    now_ms: i64,
) -> Result<(), StoreError> {
    let tool: Option<String> = connection
        .prepare_cached(
            "SELECT t.tool FROM delegations d JOIN tool_calls t ON t.id = d.call_id
             WHERE d.call_id = ?1 AND EXISTS (SELECT 1 FROM run_taints m WHERE m.run_id = d.child_id)",
        )?
        .query_row([call_row], |row| row.get("tool"))
        .optional()?;
    match tool {
        Some(tool) => {
            let source = OutsideSource::Tool;
            let taint = Taint { step, source, tool };
            taint_txn(connection, run_row, &taint, now_ms)
        }
        None => Ok(()),
    }
}

/// Whether a run works on a task of another one.
pub(crate) fn is_child(connection: &Connection, run_row: i64) -> Result<bool, StoreError> {
    Ok(connection
        .prepare_cached("SELECT parent_run_id IS NOT NULL AS is_so FROM runs WHERE id = ?1")?
        .query_row([run_row], |row| row.get("is_so"))?)
}

/// Gives a run's answer to the run that asked for it, if that still waits.
pub(crate) fn report_txn(
    connection: &Connection,
    run_row: i64,
    reply: &ReplyCommit,
) -> Result<(), StoreError> {
    let is_answer = reply.kind == TurnKind::Message && matches!(reply.ending, RunEnding::Done);
    let state = match is_answer {
        true => TaskState::Answered,
        false => TaskState::Failed,
    };
    let result = match reply.text.char_indices().nth(RESULT_MAX_CHARS) {
        Some((at, _)) => format!("{}{CUT}", &reply.text[..at]),
        None => reply.text.clone(),
    };
    close_txn(connection, run_row, (state, &result), reply.now_ms)?;
    crash::point("task.before-commit");
    Ok(())
}

/// Ends the task of a run that ends without having said anything.
pub(crate) fn end_task_txn(
    connection: &Connection,
    run_row: i64,
    now_ms: i64,
) -> Result<(), StoreError> {
    close_txn(connection, run_row, (TaskState::Cancelled, ""), now_ms)
}

/// Closes the open task of a run, and wakes the run that waits for it.
fn close_txn(
    connection: &Connection,
    run_row: i64,
    (state, result): (TaskState, &str),
    now_ms: i64,
) -> Result<(), StoreError> {
    let parent: Option<i64> = connection
        .prepare_cached(
            "UPDATE delegations SET state = ?2, result = ?3, ended_at_ms = ?4
             WHERE child_id = ?1 AND state = 'open' RETURNING parent_id",
        )?
        .query_row(params![run_row, state.name(), result, now_ms], |row| {
            row.get("parent_id")
        })
        .optional()?;
    match parent {
        Some(parent) => wake_txn(connection, parent, now_ms),
        None => Ok(()),
    }
}

#[cfg(test)]
#[path = "../tests/delegating.rs"]
mod tests;
