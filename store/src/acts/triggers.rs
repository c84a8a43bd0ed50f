//! Whom a turn addresses, and the runs that come of it.

use crate::acts::ending::bring_back_txn;
use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::run_rows::{NewRun, queue_run_txn};
use crate::rows::steps::delete_steps_txn;

use crate::StoreError;
use crate::acts::ending::stop_runs_txn;
use crate::acts::overlap::{
    OpenRuns, add_trigger_txn, interrupt_txn, join_txn, joinable_run, leave_runs_txn, leave_txn,
};
use crate::rows::places::{
    ConversationRow, ConversationSeat, ensure_conversation_txn, set_root_txn,
};
use crate::rows::reactions::take_reaction_back_txn;
use crate::rows::summaries::stale_by_late_turn_txn;
use crate::rows::turns::TurnRow;
use vocative_core::addressing::{Overlap, RunVerdict, Verdict};
use vocative_core::ids::{AgentName, ErasureId, ParticipantId, RunId, Seq};
use vocative_core::run::StopCause;
use vocative_core::slots::PLACE_KEPT_MS_MAX;
use vocative_core::turn::Position;

/// What addressing agents did to runs.
#[derive(Default)]
pub(crate) struct Addressed {
    pub(crate) new_runs: Vec<RunId>,
    /// Ended, or asked to.
    pub(crate) cancelled_runs: Vec<RunId>,
    /// Orders to erase that a command gave.
    pub(crate) erasures: Vec<ErasureId>,
    /// What was decided about follow-ups that were judged again.
    pub(crate) follow_ups: Vec<RunVerdict>,
}

impl Addressed {
    pub(crate) fn add(&mut self, other: Self) {
        self.new_runs.extend(other.new_runs);
        self.cancelled_runs.extend(other.cancelled_runs);
        self.erasures.extend(other.erasures);
        self.follow_ups.extend(other.follow_ups);
    }
}

/// Notes the agents a turn addresses; what has no run yet joins one that waits, or gets one.
///
/// A turn is in one run per agent, ever: the (turn, agent) pair of its trigger is unique.
pub(crate) fn address_txn(
    connection: &Connection,
    turn: &TurnRow,
    message_id: &str,
    verdict: &Verdict,
    person: ParticipantId,
    now_ms: i64,
) -> Result<Addressed, StoreError> {
    let mut addressed = Addressed::default();
    for agent in &verdict.addressed_to {
        involve_txn(connection, turn, agent)?;
        if verdict.runs != RunVerdict::Run {
            continue;
        }
        match run_of_trigger(connection, turn.seq, agent)? {
            None => {
                let place = run_place_txn(connection, turn, message_id, verdict, now_ms)?;
                let asked = TriggerAsker {
                    person,
                    overlap: verdict.overlaps.get(agent).copied(),
                    not_before_ms: verdict.not_before_ms,
                    now_ms,
                };
                let line = OpenRuns {
                    place: &place,
                    agent,
                };
                ask_txn(connection, turn, &line, &asked, &mut addressed)?;
            }
            Some(run) if run.is_edited_away => {
                bring_back_txn(connection, run.row, None)?;
                addressed.new_runs.push(run.id);
            }
            Some(_) => {}
        }
    }
    Ok(addressed)
}

/// Puts a turn into the line of what an agent has to answer.
fn ask_txn(
    connection: &Connection,
    turn: &TurnRow,
    line: &OpenRuns<'_>,
    asked: &TriggerAsker,
    addressed: &mut Addressed,
) -> Result<(), StoreError> {
    let overlap = asked.overlap.unwrap_or(Overlap::Queue);
    // What is said now waits for nothing that is due much later.
    let due_by_ms = asked.not_before_ms.max(asked.now_ms + PLACE_KEPT_MS_MAX);
    let run = match joinable_run(connection, line, asked.person, overlap, due_by_ms)? {
        Some(run) => {
            join_txn(connection, run, turn, line.agent, asked.not_before_ms)?;
            run
        }
        None => {
            let (run, id) = queue_question_txn(connection, turn, line, asked)?;
            addressed.new_runs.push(id);
            run
        }
    };
    if overlap == Overlap::Interrupt {
        let ended = interrupt_txn(connection, line, run, asked.now_ms)?;
        addressed.cancelled_runs.extend(ended);
    }
    Ok(())
}

/// Notes that a turn addresses an agent, in the conversation it was posted into.
fn involve_txn(
    connection: &Connection,
    turn: &TurnRow,
    agent: &AgentName,
) -> Result<(), StoreError> {
    let added = connection
        .prepare_cached(
            "INSERT INTO involvements (conversation_id, agent, sent_at_ms, ordinal, seq, how)
             VALUES (?1, ?2, ?3, ?4, ?5, 'addressed') ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            turn.conversation.row,
            agent,
            turn.sent_at_ms,
            turn.ordinal,
            turn.seq
        ])?;
    if added > 0 {
        let at = Position {
            sent_at_ms: turn.sent_at_ms,
            ordinal: turn.ordinal,
            seq: Seq(turn.seq),
        };
        stale_by_late_turn_txn(connection, turn.conversation.row, Some(agent), at)?;
    }
    Ok(())
}

/// The conversation that a run, its order and its answer belong to: the turn's own, or the thread
/// that the answer opens below it.
pub(crate) fn run_place_txn(
    connection: &Connection,
    turn: &TurnRow,
    message_id: &str,
    verdict: &Verdict,
    now_ms: i64,
) -> Result<ConversationRow, StoreError> {
    if !verdict.opens_thread || !turn.conversation.thread.is_empty() {
        return Ok(turn.conversation.clone());
    }
    let seat = ConversationSeat::Thread(message_id);
    let thread = ensure_conversation_txn(connection, turn.conversation.chat, seat, now_ms)?;
    set_root_txn(connection, thread.row, turn.seq)?;
    Ok(thread)
}

/// The run of a (turn, agent) pair.
struct TriggeredRun {
    row: i64,
    id: RunId,
    is_edited_away: bool,
}

fn run_of_trigger(
    connection: &Connection,
    seq: i64,
    agent: &AgentName,
) -> Result<Option<TriggeredRun>, StoreError> {
    let run = connection
        .prepare_cached(
            "SELECT r.id, r.uuid, r.state = 'cancelled' AND r.stop_cause IS ?3 AS is_edited_away
             FROM run_triggers g JOIN runs r ON r.id = g.run_id
             WHERE g.turn_seq = ?1 AND g.agent = ?2",
        )?
        .query_row(params![seq, agent, StopCause::Edited], |row| {
            Ok(TriggeredRun {
                row: row.get("id")?,
                id: row.get("uuid")?,
                is_edited_away: row.get("is_edited_away")?,
            })
        })
        .optional()?;
    Ok(run)
}

struct TriggerAsker {
    person: ParticipantId,
    overlap: Option<Overlap>,
    not_before_ms: i64,
    now_ms: i64,
}

fn queue_question_txn(
    connection: &Connection,
    turn: &TurnRow,
    line: &OpenRuns<'_>,
    asked: &TriggerAsker,
) -> Result<(i64, RunId), StoreError> {
    let new = NewRun {
        conversation: line.place.row,
        chat: line.place.chat,
        agent: line.agent,
        not_before_ms: asked.not_before_ms,
        person: Some(asked.person),
        now_ms: asked.now_ms,
    };
    let (run, id) = queue_run_txn(connection, &new)?;
    add_trigger_txn(connection, run, turn, line.agent)?;
    Ok((run, id))
}

/// Takes back the addressing of agents that an edit no longer addresses; returns the runs cancelled.
/// A waiting run with other triggers goes on without this one. What is being answered, or was, stays.
pub(crate) fn unaddress_txn(
    connection: &Connection,
    turn: &TurnRow,
    agents: &[AgentName],
    now_ms: i64,
) -> Result<Vec<RunId>, StoreError> {
    let mut cancelled = Vec::new();
    for agent in agents {
        match waiting_run_of(connection, turn.seq, agent)? {
            Some(run) if run.is_shared => {
                leave_txn(connection, run.row, turn.seq)?;
                take_reaction_back_txn(connection, Seq(turn.seq), now_ms)?;
            }
            Some(run) => {
                let run = vec![(run.row, run.id)];
                cancelled.extend(stop_runs_txn(connection, run, StopCause::Edited, now_ms)?);
            }
            None => {}
        }
        connection
            .prepare_cached(
                "DELETE FROM involvements WHERE seq = ?1 AND agent = ?2 AND how = 'addressed'",
            )?
            .execute(params![turn.seq, agent])?;
    }
    Ok(cancelled)
}

/// A run that no worker has yet.
struct WaitingRun {
    row: i64,
    id: RunId,
    /// It has other triggers besides.
    is_shared: bool,
}

/// The run of a (turn, agent) pair, while it waits.
fn waiting_run_of(
    connection: &Connection,
    seq: i64,
    agent: &AgentName,
) -> Result<Option<WaitingRun>, StoreError> {
    let run = connection
        .prepare_cached(
            "SELECT r.id, r.uuid, (SELECT count(*) FROM run_triggers o WHERE o.run_id = r.id) > 1 AS is_shared
             FROM run_triggers g JOIN runs r ON r.id = g.run_id
             WHERE g.turn_seq = ?1 AND g.agent = ?2 AND r.state IN ('queued', 'waiting', 'held')",
        )?
        .query_row(params![seq, agent], |row| {
            Ok(WaitingRun {
                row: row.get("id")?,
                id: row.get("uuid")?,
                is_shared: row.get("is_shared")?,
            })
        })
        .optional()?;
    Ok(run)
}

/// Points the waiting runs of a turn to its newest revision. What a model answered to an older one
/// in an attempt that failed later is not replayed.
pub(crate) fn refresh_triggers_txn(
    connection: &Connection,
    turn: &TurnRow,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE run_triggers SET revision = ?2
             WHERE turn_seq = ?1
               AND run_id IN (SELECT id FROM runs WHERE runs.id = run_id
                                                     AND state IN ('queued', 'waiting', 'held'))",
        )?
        .execute([turn.seq, turn.revision])?;
    delete_steps_txn(
        connection,
        "IN (SELECT r.id FROM run_triggers g JOIN runs r ON r.id = g.run_id
             WHERE g.turn_seq = ?1 AND r.state IN ('queued', 'waiting', 'held'))",
        turn.seq,
    )?;
    Ok(())
}

/// Lets the waiting runs of a turn wait at least until then.
pub(crate) fn postpone_runs_txn(
    connection: &Connection,
    turn: &TurnRow,
    not_before_ms: i64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE runs SET not_before_ms = max(not_before_ms, ?2)
             WHERE state = 'queued'
               AND id IN (SELECT run_id FROM run_triggers WHERE turn_seq = ?1)",
        )?
        .execute([turn.seq, not_before_ms])?;
    Ok(())
}

/// Ends the runs of a deleted turn: waiting ones at once, leased ones are asked to stop. What else they
/// were to answer is answered without it.
pub(crate) fn cancel_runs_of_deleted_txn(
    connection: &Connection,
    turn: &TurnRow,
    now_ms: i64,
) -> Result<Vec<RunId>, StoreError> {
    let mut ended = leave_runs_txn(connection, turn.seq, now_ms)?;
    let runs: Vec<(i64, RunId)> = connection
        .prepare_cached(
            "SELECT r.id, r.uuid FROM run_triggers g JOIN runs r ON r.id = g.run_id
             WHERE g.turn_seq = ?1 ORDER BY r.id",
        )?
        .query_map([turn.seq], |row| Ok((row.get("id")?, row.get("uuid")?)))?
        .collect::<Result<_, _>>()?;
    ended.extend(stop_runs_txn(connection, runs, StopCause::Deleted, now_ms)?);
    Ok(ended)
}
