//! Answering again what was edited after it was answered: another run for the same question, whose
//! answer takes the earlier one's place.
//!
//! The run takes over the triggers of the run that answered, and its turns. So an answer that belongs
//! to a run which has not ended yet is one that the run replaces: nothing else says so. The prompt of
//! such a run leaves that answer out. It is committed as a new revision of the answer's turn, and its
//! posts are edited, part by part; what has no message of its own yet is posted behind, and messages
//! that are left over are deleted.

use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::run_rows::{Successor, succeed_run_txn};
use crate::rows::steps::delete_steps_txn;
use vocative_contract::crash::{self, Sabotage};
use vocative_contract::envelope::SenderKind;

use crate::StoreError;
use crate::acts::capture::Arrival;
use crate::acts::overlap::end_outdated_txn;
use crate::acts::standing::edit_posts_txn;
use crate::acts::triggers::Addressed;
use crate::contract::ReplyCommit;
use crate::rows::outbox_rows::{NewPosts, insert_posts_txn};
use crate::rows::turns::{Replacement, TurnRow, revise_turn_txn, turn_at};
use vocative_core::addressing::{RunVerdict, edited_at_ms};
use vocative_core::ids::{AgentName, OutboxId, RunId, Seq};
use vocative_core::turn::TurnKind;

/// Queues the runs that answer an edited question again. A run that is answering it as it was ends for
/// that.
pub(crate) fn answer_again_txn(
    connection: &Connection,
    arrival: &Arrival<'_>,
    turn: &TurnRow,
) -> Result<Addressed, StoreError> {
    let (message, verdict) = (arrival.message, &arrival.verdict);
    let within_ms = verdict.edit_answer_within_ms;
    let is_persons = message.sender.kind == SenderKind::Person;
    let mut addressed = Addressed::default();
    if within_ms <= 0 || verdict.runs != RunVerdict::Run || !is_persons {
        return Ok(addressed);
    }
    let marker = message.edit_marker.as_deref();
    let edited_ms = marker
        .and_then(edited_at_ms)
        .unwrap_or(message.received_at_ms);
    for agent in &verdict.addressed_to {
        let since_ms = edited_ms.saturating_sub(within_ms);
        let Some(outdated) = outdated_run(connection, turn.seq, agent, since_ms)? else {
            continue;
        };
        let run = succeed_txn(connection, arrival, &outdated)?;
        addressed.new_runs.push(run);
        if outdated.is_leased {
            let ended = end_outdated_txn(
                connection,
                (outdated.row, outdated.id),
                message.received_at_ms,
            )?;
            addressed.cancelled_runs.push(ended);
        }
    }
    Ok(addressed)
}

/// A run that answered an earlier text of its question, or is at it.
struct OutdatedRun {
    row: i64,
    id: RunId,
    is_leased: bool,
}

/// The run that somebody works on for a turn, or that ended at that time or later, if there is an answer.
/// One that waits reads the newest text by itself.
fn outdated_run(
    connection: &Connection,
    seq: i64,
    agent: &AgentName,
    since_ms: i64,
) -> Result<Option<OutdatedRun>, StoreError> {
    let run = connection
        .prepare_cached(
            "SELECT r.id, r.uuid, r.state = 'leased' AS is_leased
             FROM run_triggers g JOIN runs r ON r.id = g.run_id
             WHERE g.turn_seq = ?1 AND g.agent = ?2
               AND ((r.state = 'leased' AND r.stop_cause IS NULL)
                    OR (r.state IN ('done', 'cancelled', 'dead') AND r.finished_at_ms >= ?3))",
        )?
        .query_row(params![seq, agent, since_ms], |row| {
            Ok(OutdatedRun {
                row: row.get("id")?,
                id: row.get("uuid")?,
                is_leased: row.get("is_leased")?,
            })
        })
        .optional()?;
    match run {
        Some(run) if run.is_leased || answer_of(connection, run.row)?.is_some() => Ok(Some(run)),
        _ => Ok(None),
    }
}

/// The turn that a run answered with. Of a run that has not ended: the one that it replaces.
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

/// Another run in the place of one: it has its triggers, and replaces its answer.
fn succeed_txn(
    connection: &Connection,
    arrival: &Arrival<'_>,
    outdated: &OutdatedRun,
) -> Result<RunId, StoreError> {
    let answered = outdated.row;
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
    // Calls of tools that somebody still waits for stay with the run that made them.
    connection
        .prepare_cached(
            "UPDATE turns SET run_id = ?2 WHERE run_id = ?1 AND (kind = 'message' OR NOT ?3)",
        )?
        .execute((answered, run, outdated.is_leased))?;
    // What its model said to the earlier text goes where nobody would find it from the question.
    delete_steps_txn(connection, "= ?1", answered)?;
    Ok(id)
}

/// The answer that a reply of a run replaces, if it does: a notice stands by itself, and what a run has
/// said stands once it has ended.
pub(crate) fn replaced_answer(
    connection: &Connection,
    run_row: i64,
    reply: &ReplyCommit,
) -> Result<Option<TurnRow>, StoreError> {
    if reply.kind != TurnKind::Message || !is_at_work(connection, run_row)? {
        return Ok(None);
    }
    match answer_of(connection, run_row)? {
        Some(seq) => turn_at(connection, seq).map(Some),
        None => Ok(None),
    }
}

fn is_at_work(connection: &Connection, run_row: i64) -> Result<bool, StoreError> {
    Ok(connection
        .prepare_cached("SELECT state = 'leased' AS value FROM runs WHERE id = ?1")?
        .query_row([run_row], |row| row.get("value"))?)
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

/// Whether earlier texts are kept: those of the answer are where those of its question were.
fn keeps_texts(connection: &Connection, run_row: i64) -> Result<bool, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM run_triggers g JOIN revisions v ON v.turn_seq = g.turn_seq
                            WHERE g.run_id = ?1) AS is_so",
        )?
        .query_row([run_row], |row| row.get("is_so"))?)
}

/// Makes a reply the newest revision of an answer, and its posts what people see of it.
pub(crate) fn replace_answer_txn(
    connection: &Connection,
    reply: &ReplyCommit,
    posts: &NewPosts<'_>,
    answer: &mut TurnRow,
) -> Result<Vec<OutboxId>, StoreError> {
    let replacement = Replacement {
        content: reply.text.clone(),
        attachments: answer.attachments.clone(),
        tokens: reply.tokens.as_ref(),
        keep_revision: keeps_texts(connection, posts.run_row.unwrap_or_default())?,
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
