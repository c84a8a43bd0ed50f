//! Forgetting a turn or the steps of a run, with everything that repeats their words, wherever it is.

use vocative_contract::outbound::Part;

use crate::StoreError;
use crate::acts::deciding::cancel_approvals_txn;
use crate::acts::ending::cancel_tasks_txn;
use crate::acts::questions::cancel_questions_txn;
use crate::engine::sql::Connection;
use crate::rows::delete_rows_of_turn_txn;
use crate::rows::files::forget_files_txn;
use crate::rows::memories::forget_memories_of_turn_txn;
use crate::rows::networks::{delete_courses_txn, forget_states_of_turn_txn};
use crate::rows::outbox_rows::json;
use crate::rows::run_events::{forget_live_text_txn, forget_results_txn};
use crate::rows::search_text::unindex_turn_txn;
use crate::rows::summaries::{SummaryFate, invalidate_summaries_txn};
use crate::rows::titles::forget_titles_of_turn_txn;
use crate::rows::turn_rows::TurnRow;
use crate::rows::turns::is_in_index;

/// Removes all text of a turn from the store; the row stays, hidden.
pub(crate) fn blank_turn_txn(connection: &Connection, turn: &TurnRow) -> Result<(), StoreError> {
    if is_in_index(connection, turn.seq)? {
        let row = turn.conversation.row;
        unindex_turn_txn(connection, turn.seq, row, &turn.content)?;
    }
    connection
        .prepare_cached(
            "UPDATE turns SET content = '', attachments = NULL, quote = NULL, tokens = NULL,
                    counter = NULL, visibility = 'hidden', revision = revision + 1
             WHERE seq = ?1",
        )?
        .execute([turn.seq])?;
    delete_rows_of_turn_txn(connection, turn.seq)?;
    let triggered = "IN (SELECT run_id FROM run_triggers WHERE turn_seq = ?1)";
    delete_steps_txn(connection, triggered, turn.seq)?;
    forget_memories_of_turn_txn(connection, turn.seq)?;
    forget_states_of_turn_txn(connection, turn.seq)?;
    forget_files_txn(connection, turn.seq, None)?;
    forget_derived_txn(connection, turn.seq)?;
    forget_titles_of_turn_txn(connection, turn.seq)?;
    invalidate_summaries_txn(connection, turn, SummaryFate::Void)
}

/// Removes what was made from a turn, except answers (`made_from` has those): the text of turns that quote it, and
/// the recorded steps of their runs.
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
    // A streamed result that is not recorded yet has no record of its sources.
    forget_results_txn(connection, source)
}

/// Deletes the steps of some runs, and what is stored beside them: taints, hook verdicts, decisions, results, live
/// text. Returns how many steps.
///
/// `of` says which runs, as a comparison with `?1`.
pub(crate) fn delete_steps_txn(
    connection: &Connection,
    of: &'static str,
    value: i64,
) -> Result<usize, StoreError> {
    let mut runs: Vec<i64> = connection
        .prepare_cached(&format!(
            "DELETE FROM steps WHERE run_id {of} RETURNING run_id"
        ))?
        .query_map([value], |row| row.get("run_id"))?
        .collect::<crate::engine::sql::Result<_>>()?;
    connection
        .prepare_cached(&format!("DELETE FROM run_taints WHERE run_id {of}"))?
        .execute([value])?;
    connection
        .prepare_cached(&format!("DELETE FROM hook_verdicts WHERE run_id {of}"))?
        .execute([value])?;
    connection
        .prepare_cached(&format!("DELETE FROM run_requests WHERE run_id {of}"))?
        .execute([value])?;
    delete_courses_txn(connection, of, value)?;
    inherit_again_txn(connection, of, value)?;
    forget_results_of_txn(connection, of, value)?;
    let deleted = runs.len();
    runs.dedup();
    for run in runs {
        forget_live_text_txn(connection, run)?;
        forget_calls_txn(connection, run)?;
    }
    Ok(deleted)
}

/// Gives runs whose taints were just deleted with their steps the taints of their tasks again. `of` says which runs,
/// as a comparison with `?1`.
fn inherit_again_txn(
    connection: &Connection,
    of: &'static str,
    value: i64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(&format!(
            "INSERT INTO run_taints (run_id, step, source, tool, at_ms)
             SELECT d.child_id, 0, m.source, m.tool, m.at_ms
             FROM delegations d JOIN tool_calls t ON t.id = d.call_id
             JOIN run_taints m ON m.run_id = d.parent_id AND m.step < t.step
             WHERE d.child_id {of} AND d.state = 'open' ON CONFLICT DO NOTHING"
        ))?
        .execute([value])?;
    Ok(())
}

/// Forgets the results of runs whose steps are forgotten. `of` says which runs, as a comparison with `?1`.
fn forget_results_of_txn(
    connection: &Connection,
    of: &'static str,
    value: i64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(&format!(
            "UPDATE delegations SET result = '', state = iif(state IN ('answered', 'failed'), 'forgotten', state)
             WHERE child_id {of} AND state <> 'open'"
        ))?
        .execute([value])?;
    Ok(())
}

/// Forgets the calls of a run whose steps are deleted. Calls that began and may have acted keep a row without words,
/// so that the run does not act a second time.
fn forget_calls_txn(connection: &Connection, run_row: i64) -> Result<(), StoreError> {
    forget_approvals_txn(connection, run_row)?;
    forget_questions_txn(connection, run_row)?;
    forget_tasks_txn(connection, run_row)?;
    for sql in [
        "DELETE FROM tool_calls
         WHERE run_id = ?1 AND (rule = 'repeatable' OR attempts = 0) AND step IS NOT NULL",
        "UPDATE tool_calls SET step = NULL, arguments = '', result = NULL,
                state = iif(state = 'running', 'unknown', state)
         WHERE run_id = ?1 AND step IS NOT NULL",
    ] {
        connection.prepare_cached(sql)?.execute([run_row])?;
    }
    Ok(())
}

/// Forgets the approvals of a run whose steps are forgotten: open ones are cancelled, and the text of the cards is
/// removed from the outbox.
fn forget_approvals_txn(connection: &Connection, run_row: i64) -> Result<(), StoreError> {
    let now_ms: Option<i64> = connection
        .prepare_cached("SELECT max(asked_at_ms) AS at_ms FROM approvals WHERE run_id = ?1")?
        .query_row([run_row], |row| row.get("at_ms"))?;
    let Some(now_ms) = now_ms else {
        return Ok(());
    };
    cancel_approvals_txn(connection, run_row, now_ms)?;
    connection
        .prepare_cached(
            "UPDATE outbox SET payload = ?2
         WHERE id IN (SELECT card_post FROM approvals WHERE run_id = ?1
                      UNION SELECT outcome_post FROM approvals WHERE run_id = ?1 AND state IN ('approved', 'denied', 'changed'))
           AND state IN ('sent', 'dead', 'replaced')",
        )?
        .execute((run_row, json(&Part::plain(""))))?;
    connection
        .prepare_cached("UPDATE approvals SET call_id = NULL, note = NULL WHERE run_id = ?1")?
        .execute([run_row])?;
    Ok(())
}

/// Forgets the questions of a run whose steps are forgotten: open ones are cancelled, and the text of all is removed,
/// from the outbox too.
fn forget_questions_txn(connection: &Connection, run_row: i64) -> Result<(), StoreError> {
    let now_ms: Option<i64> = connection
        .prepare_cached("SELECT max(asked_at_ms) AS at_ms FROM questions WHERE run_id = ?1")?
        .query_row([run_row], |row| row.get("at_ms"))?;
    let Some(now_ms) = now_ms else {
        return Ok(());
    };
    cancel_questions_txn(connection, run_row, now_ms)?;
    connection
        .prepare_cached(
            "UPDATE outbox SET payload = ?2
             WHERE (id IN (SELECT card_post FROM questions WHERE run_id = ?1)
                    OR id IN (SELECT outcome_post FROM questions WHERE run_id = ?1 AND state <> 'cancelled'))
               AND state IN ('sent', 'dead', 'replaced')",
        )?
        .execute((run_row, json(&Part::plain(""))))?;
    connection
        .prepare_cached(
            "UPDATE questions SET call_id = NULL, question = '', options = '[]', outcomes = '', asked_form = NULL
             WHERE run_id = ?1",
        )?
        .execute([run_row])?;
    Ok(())
}

/// Forgets the tasks of a run whose steps are forgotten: work on them is stopped, and their words are removed, with all
/// that was made from them.
fn forget_tasks_txn(connection: &Connection, run_row: i64) -> Result<(), StoreError> {
    let given: Vec<(i64, i64)> = connection
        .prepare_cached("SELECT child_id, asked_at_ms FROM delegations WHERE parent_id = ?1")?
        .query_map([run_row], |row| {
            Ok((row.get("child_id")?, row.get("asked_at_ms")?))
        })?
        .collect::<crate::engine::sql::Result<_>>()?;
    let Some(now_ms) = given.iter().map(|(_, at_ms)| *at_ms).max() else {
        return Ok(());
    };
    cancel_tasks_txn(connection, run_row, now_ms)?;
    connection
        .prepare_cached(
            "UPDATE delegations SET call_id = NULL, task = '', result = '' WHERE parent_id = ?1",
        )?
        .execute([run_row])?;
    for (child, _) in given {
        delete_steps_txn(connection, "= ?1", child)?;
        blank_timeline_txn(connection, child)?;
    }
    Ok(())
}

/// Blanks the tool calls and results of a run that worked on a task, since they were made from the task.
fn blank_timeline_txn(connection: &Connection, run_row: i64) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE turns SET content = '', tokens = NULL, counter = NULL, revision = revision + 1
             WHERE run_id = ?1 AND visibility = 'timeline' AND content <> ''",
        )?
        .execute([run_row])?;
    Ok(())
}
