//! Stores whom a turn addresses, and queues the runs that follow.

use crate::acts::ending::bring_back_txn;
use crate::acts::forgetting::delete_steps_txn;
use crate::engine::sql::{Connection, params};
use crate::rows::run_rows::{NewRun, ask_model_txn, queue_run_txn};
use crate::rows::turn_rows::TurnRow;

use crate::StoreError;
use crate::acts::ending::stop_runs_txn;
use crate::acts::overlap::{
    OpenRuns, TriggeredRow, add_trigger_txn, join_txn, leave_txn, run_of_trigger, take_over_txn,
};
use crate::rows::places::{
    ConversationRow, ConversationSeat, ensure_conversation_txn, set_root_txn,
};
use crate::rows::reactions::take_reaction_back_txn;
use crate::rows::summaries::stale_by_late_turn_txn;
use vocative_core::addressing::{Overlap, RunVerdict, Verdict};
use vocative_core::ids::{AgentName, ErasureId, ParticipantId, RunId, Seq};
use vocative_core::run::StopCause;
use vocative_core::running::overlap::UnansweredMessage;
use vocative_core::running::triggers::{OnAddress, OnUnaddress, on_address, on_unaddress};
use vocative_core::turn::Position;

/// The effects on runs of addressing agents.
#[derive(Default)]
pub(crate) struct Addressed {
    pub(crate) new_runs: Vec<RunId>,
    /// Runs that were ended, or asked to end.
    pub(crate) cancelled_runs: Vec<RunId>,
    /// Orders to erase that a command gave.
    pub(crate) erasures: Vec<ErasureId>,
    /// The verdicts on follow-ups that were judged again.
    pub(crate) follow_ups: Vec<RunVerdict>,
    /// How many agents drop the question because they are answering another one.
    pub(crate) dropped: usize,
}

impl Addressed {
    pub(crate) fn add(&mut self, other: Self) {
        self.new_runs.extend(other.new_runs);
        self.cancelled_runs.extend(other.cancelled_runs);
        self.erasures.extend(other.erasures);
        self.follow_ups.extend(other.follow_ups);
        self.dropped += other.dropped;
    }
}

/// Notes the agents a turn addresses; for each agent without a run of the turn, it joins a waiting run or gets one.
///
/// `is_revised`: the turn's text has changed.
///
/// A turn is in one run per agent, ever: the (turn, agent) pair of its trigger is unique.
pub(crate) fn address_txn(
    connection: &Connection,
    turn: &TurnRow,
    message_id: &str,
    verdict: &Verdict,
    person: ParticipantId,
    (is_revised, now_ms): (bool, i64),
) -> Result<Addressed, StoreError> {
    let mut addressed = Addressed::default();
    let mut is_told = is_revised;
    for agent in &verdict.addressed_to {
        let is_new = involve_txn(connection, turn, agent)?;
        is_told |= is_new;
        let run = match verdict.runs {
            RunVerdict::Run => run_of_trigger(connection, turn.seq, agent)?,
            _ => continue,
        };
        match (
            on_address(verdict.runs, run.as_ref().map(|it| &it.run)),
            run,
        ) {
            (OnAddress::Ask, _) => {
                let place = run_place_txn(connection, turn, message_id, verdict, now_ms)?;
                let overlap = verdict.overlaps.get(agent).copied();
                let question = UnansweredMessage {
                    overlap: overlap.unwrap_or(Overlap::Queue),
                    not_before_ms: verdict.not_before_ms,
                    now_ms,
                };
                let line = OpenRuns {
                    place: &place,
                    agent,
                    person,
                };
                // A repeated event does not ask a dropped question again.
                let was_dropped = question.overlap == Overlap::Drop && !is_new && !is_revised;
                match was_dropped || line.drops(connection, &question)? {
                    true => addressed.dropped += 1,
                    false => addressed.add(ask_txn(connection, turn, &line, &question)?),
                }
            }
            (OnAddress::BringBack, Some(TriggeredRow { row, id, .. })) => {
                bring_back_txn(connection, row, None)?;
                addressed.new_runs.push(id);
            }
            (OnAddress::BringBack | OnAddress::Note, _) => {}
        }
    }
    if !verdict.addressed_to.is_empty() {
        connection
            .prepare_cached("UPDATE run_triggers SET is_unsure = ?2 WHERE turn_seq = ?1")?
            .execute((turn.seq, verdict.is_unsure))?;
    }
    // A repeated event must not undo the model choice of a later question.
    if is_told && (is_revised || verdict.asked_model.is_some()) {
        ask_model_txn(connection, turn.seq, verdict.asked_model.as_deref())?;
    }
    Ok(addressed)
}

/// Puts a turn into the queue of what an agent has to answer.
fn ask_txn(
    connection: &Connection,
    turn: &TurnRow,
    line: &OpenRuns<'_>,
    question: &UnansweredMessage,
) -> Result<Addressed, StoreError> {
    let mut addressed = Addressed::default();
    let run = match line.joined_by(connection, question)? {
        Some((run, triggers)) => {
            join_txn(connection, run, turn, line.agent, question.not_before_ms)?;
            (run, triggers + 1)
        }
        None => {
            let (run, id) = queue_question_txn(connection, turn, line, question)?;
            addressed.new_runs.push(id);
            (run, 1)
        }
    };
    addressed.cancelled_runs = take_over_txn(connection, line, question, run)?;
    Ok(addressed)
}

/// Notes that a turn addresses an agent, in the conversation it was posted into. Returns whether that is new.
pub(crate) fn involve_txn(
    connection: &Connection,
    turn: &TurnRow,
    agent: &AgentName,
) -> Result<bool, StoreError> {
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
    Ok(added > 0)
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

fn queue_question_txn(
    connection: &Connection,
    turn: &TurnRow,
    line: &OpenRuns<'_>,
    question: &UnansweredMessage,
) -> Result<(i64, RunId), StoreError> {
    let new = NewRun {
        conversation: line.place.row,
        chat: line.place.chat,
        agent: line.agent,
        not_before_ms: question.not_before_ms,
        person: Some(line.person),
        now_ms: question.now_ms,
    };
    let (run, id) = queue_run_txn(connection, &new)?;
    add_trigger_txn(connection, run, turn, line.agent)?;
    Ok((run, id))
}

/// Takes back the addressing of agents that an edit no longer addresses; returns the runs cancelled.
/// A waiting run with other triggers goes on without this one. Runs at work or done are not touched.
pub(crate) fn unaddress_txn(
    connection: &Connection,
    turn: &TurnRow,
    agents: &[AgentName],
    now_ms: i64,
) -> Result<Vec<RunId>, StoreError> {
    let mut cancelled = Vec::new();
    for agent in agents {
        let run = run_of_trigger(connection, turn.seq, agent)?;
        match (on_unaddress(run.as_ref().map(|it| &it.run)), run) {
            (OnUnaddress::Leave, Some(run)) => {
                leave_txn(connection, run.row, turn.seq)?;
                take_reaction_back_txn(connection, Seq(turn.seq), now_ms)?;
            }
            (OnUnaddress::End, Some(run)) => {
                let run = vec![(run.row, run.id)];
                cancelled.extend(stop_runs_txn(connection, run, StopCause::Edited, now_ms)?);
            }
            (OnUnaddress::Leave | OnUnaddress::End | OnUnaddress::Keep, _) => {}
        }
        connection
            .prepare_cached(
                "DELETE FROM involvements WHERE seq = ?1 AND agent = ?2 AND how = 'addressed'",
            )?
            .execute(params![turn.seq, agent])?;
    }
    Ok(cancelled)
}

/// Points the waiting runs of a turn to its newest revision. Steps of a failed attempt that answered an older
/// revision are not replayed.
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
