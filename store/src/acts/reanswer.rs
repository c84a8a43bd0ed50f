//! Answers a question again that was edited after it was answered: queues another run, whose answer replaces the
//! earlier one. `core/running/reanswer.rs` decides.
//!
//! The new run takes over the triggers and the turns of the run that answered. So if an answer belongs to a
//! run which has not ended yet, the run is to replace that answer; nothing else says so. The prompt of such
//! a run leaves the old answer out. The new answer is committed as a new revision of the answer's turn, and
//! its posts are edited, part by part; further parts are posted behind, and messages that are left over are
//! deleted.

use crate::acts::arrival::Arrival;
use crate::acts::forgetting::delete_steps_txn;
use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::run_rows::{Successor, ask_model_txn, succeed_run_txn};
use crate::rows::turn_rows::{TurnRow, turn_at};
use crate::rows::turn_sources::forget_sources_txn;
use vocative_contract::crash::{self, Sabotage};

use crate::StoreError;
use crate::acts::ending::stop_run_txn;
use crate::acts::standing::edit_posts_txn;
use crate::acts::triggers::Addressed;
use crate::contract::ReplyCommit;
use crate::rows::outbox_rows::{NewPosts, insert_posts_txn};
use crate::rows::turns::{Replacement, revise_turn_txn};
use vocative_core::ids::{AgentName, OutboxId, RunId, Seq};
use vocative_core::run::{RunStage, StopCause};
use vocative_core::running::reanswer::{AnsweredRun, Edit, Reanswer, replaces_answer};

/// Queues the runs that answer an edited question again. A run that is still answering the earlier text is
/// ended.
pub(crate) fn answer_again_txn(
    connection: &Connection,
    arrival: &Arrival<'_>,
    turn: &TurnRow,
) -> Result<Addressed, StoreError> {
    let (message, verdict) = (arrival.message, &arrival.verdict);
    let mut addressed = Addressed::default();
    let marker = message.edit_marker.as_deref();
    let now_ms = message.received_at_ms;
    let Some(edit) = Edit::of_question(verdict, message.sender.kind, marker, now_ms) else {
        return Ok(addressed);
    };
    for agent in &verdict.addressed_to {
        let Some(answered) = answered_run(connection, turn.seq, agent)? else {
            continue;
        };
        match edit.answers_again(&answered.run) {
            Reanswer::No => {}
            Reanswer::Again => {
                let run = succeed_txn(connection, arrival, &answered)?;
                addressed.new_runs.push(run);
            }
            Reanswer::Instead => {
                let run = succeed_txn(connection, arrival, &answered)?;
                addressed.new_runs.push(run);
                let cause = StopCause::Interrupted.into();
                stop_run_txn(connection, answered.row, &cause, now_ms)?;
                addressed.cancelled_runs.push(answered.id);
            }
        }
        ask_model_txn(connection, turn.seq, verdict.asked_model.as_deref())?;
    }
    Ok(addressed)
}

/// The run of an edited question, as a row.
struct AnsweredRow {
    row: i64,
    id: RunId,
    run: AnsweredRun,
}

fn answered_run(
    connection: &Connection,
    seq: i64,
    agent: &AgentName,
) -> Result<Option<AnsweredRow>, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT r.id, r.uuid, r.state, r.stop_cause, r.finished_at_ms,
                    EXISTS (SELECT 1 FROM turns a WHERE a.run_id = r.id AND a.kind = 'message'
                              AND NOT a.is_inbound) AS has_answered
             FROM run_triggers g JOIN runs r ON r.id = g.run_id
             WHERE g.turn_seq = ?1 AND g.agent = ?2",
        )?
        .query_row(params![seq, agent], |row| {
            Ok(AnsweredRow {
                row: row.get("id")?,
                id: row.get("uuid")?,
                run: AnsweredRun {
                    stage: row.get("state")?,
                    stop_cause: row.get("stop_cause")?,
                    finished_at_ms: row.get("finished_at_ms")?,
                    has_answered: row.get("has_answered")?,
                },
            })
        })
        .optional()?)
}

/// The turn that a run answered with; if the run has not ended, the turn that it is to replace.
pub(crate) fn answer_of(connection: &Connection, run_row: i64) -> Result<Option<i64>, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT seq FROM turns
             WHERE run_id = ?1 AND kind = 'message' AND visibility = 'room' AND NOT is_inbound
             ORDER BY seq DESC LIMIT 1",
        )?
        .query_row([run_row], |row| row.get("seq"))
        .optional()?)
}

/// Queues a run that succeeds another: it takes over its triggers, and replaces its answer.
fn succeed_txn(
    connection: &Connection,
    arrival: &Arrival<'_>,
    outdated: &AnsweredRow,
) -> Result<RunId, StoreError> {
    let answered = outdated.row;
    let is_at_work = outdated.run.stage == RunStage::Leased;
    if outdated.run.stage == RunStage::Done {
        keep_sources_txn(connection, answered)?;
    }
    let successor = Successor {
        of: answered,
        not_before_ms: arrival.verdict.not_before_ms,
        person: Some(arrival.person),
        now_ms: arrival.message.received_at_ms,
    };
    let (run, id) = succeed_run_txn(connection, &successor)?;
    connection
        .prepare_cached(
            "UPDATE run_triggers SET run_id = ?2,
                    revision = (SELECT t.revision FROM turns t WHERE t.seq = turn_seq)
             WHERE run_id = ?1",
        )?
        .execute((answered, run))?;
    // The turns of tool calls that are still at work stay with the run that made them.
    connection
        .prepare_cached(
            "UPDATE turns SET run_id = ?2 WHERE run_id = ?1 AND (kind = 'message' OR NOT ?3)",
        )?
        .execute((answered, run, is_at_work))?;
    // The old run no longer has the question as a trigger, so its steps would not be found when that is deleted.
    delete_steps_txn(connection, "= ?1", answered)?;
    Ok(id)
}

/// Copies the sources of a run to its answer, since the run's successor did not read them.
fn keep_sources_txn(connection: &Connection, run_row: i64) -> Result<(), StoreError> {
    if let Some(answer) = answer_of(connection, run_row)? {
        connection
            .prepare_cached(
                "INSERT OR IGNORE INTO turn_sources (source_seq, turn_seq)
                 SELECT source_seq, ?2 FROM run_sources WHERE run_id = ?1",
            )?
            .execute((run_row, answer))?;
    }
    Ok(())
}

/// The answer that a reply of a run replaces, if it does.
pub(crate) fn replaced_answer(
    connection: &Connection,
    run_row: i64,
    reply: &ReplyCommit,
) -> Result<Option<TurnRow>, StoreError> {
    let stage = connection
        .prepare_cached("SELECT state FROM runs WHERE id = ?1")?
        .query_row([run_row], |row| row.get("state"))?;
    if !replaces_answer(reply.kind, stage) {
        return Ok(None);
    }
    match answer_of(connection, run_row)? {
        Some(seq) => turn_at(connection, seq).map(Some),
        None => Ok(None),
    }
}

/// Whether a run replaces an answer whose earlier text is not to be kept.
pub(crate) fn replaces_for_good(connection: &Connection, run: RunId) -> Result<bool, StoreError> {
    let run_row: Option<i64> = connection
        .prepare_cached("SELECT id FROM runs WHERE uuid = ?1")?
        .query_row([run], |row| row.get("id"))
        .optional()?;
    match run_row {
        Some(row) if answer_of(connection, row)?.is_some() => Ok(!keeps_texts(connection, row)?),
        _ => Ok(false),
    }
}

/// Whether earlier texts are kept: those of an answer are kept if those of its question were.
fn keeps_texts(connection: &Connection, run_row: i64) -> Result<bool, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM run_triggers g JOIN revisions v ON v.turn_seq = g.turn_seq
                            WHERE g.run_id = ?1) AS is_so",
        )?
        .query_row([run_row], |row| row.get("is_so"))?)
}

/// Makes a reply the newest revision of an answer, and updates its posts.
pub(crate) fn replace_answer_txn(
    connection: &Connection,
    reply: &ReplyCommit,
    posts: &NewPosts<'_>,
    answer: &mut TurnRow,
) -> Result<Vec<OutboxId>, StoreError> {
    let keep_revision = keeps_texts(connection, posts.run_row.unwrap_or_default())?;
    // An earlier text that is kept needs its sources, so that it is removed with them.
    if !keep_revision {
        forget_sources_txn(connection, answer.seq)?;
    }
    let replacement = Replacement {
        content: reply.text.clone(),
        attachments: answer.attachments.clone(),
        tokens: reply.tokens.as_ref(),
        keep_revision,
        now_ms: reply.now_ms,
    };
    if !revise_turn_txn(connection, answer, replacement)? {
        return Ok(Vec::new());
    }
    if crash::is_sabotaged(Sabotage::NoReplacement) {
        return insert_posts_txn(connection, posts);
    }
    edit_posts_txn(connection, posts, Seq(answer.seq))
}
