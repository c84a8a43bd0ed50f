//! What an addressed message does to the runs that its conversation still has open: it joins one that
//! waits, takes what another works on along with it, or says stop.
//!
//! All of it is decided in the transaction that captures the message. A run that was claimed reads as
//! of its claim, however often it is tried again, so it never gets another trigger; its triggers may
//! leave it for a new run. A trigger belongs to exactly one run all the time. A run that replaces an
//! answer of its own question gets no other, and is not interrupted.

use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::open::open_run;
use crate::rows::run_rows::{Successor, succeed_run_txn};
use crate::rows::steps::delete_steps_txn;

use crate::StoreError;
use crate::acts::ending::{stop_run_txn, stop_runs_txn};
use crate::rows::fresh_starts::floor;
use crate::rows::places::ConversationRow;
use crate::rows::turns::TurnRow;
use vocative_core::addressing::Overlap;
use vocative_core::ids::{AgentName, ChatId, ParticipantId, RunId};
use vocative_core::run::StopCause;

/// The most messages that are answered together. A later message waits in another run and does not interrupt,
/// so that a room that never rests is answered too.
pub(crate) const TRIGGERS_MAX: i64 = 20;

/// The open runs of a conversation that an agent works on.
pub(crate) struct OpenRuns<'a> {
    pub(crate) place: &'a ConversationRow,
    pub(crate) agent: &'a AgentName,
}

/// The run that waits and that a message of this person joins, if there is one. What was asked before the
/// agent began afresh is answered by itself.
pub(crate) fn joinable_run(
    connection: &Connection,
    line: &OpenRuns<'_>,
    person: ParticipantId,
    overlap: Overlap,
    due_by_ms: i64,
) -> Result<Option<i64>, StoreError> {
    if overlap == Overlap::Queue {
        return Ok(None);
    }
    let floor = floor(connection, line.place.row, line.agent, i64::MAX)?;
    let run = connection
        .prepare_cached(concat!(
            "SELECT r.id FROM runs r INDEXED BY runs_open
             WHERE ",
            open_run!("r"),
            " AND r.conversation_id = ?1
               AND r.state = 'queued' AND r.as_of_seq IS NULL AND r.stop_cause IS NULL
               AND r.agent = ?2 AND r.not_before_ms <= ?9
               AND NOT EXISTS (SELECT 1 FROM turns a WHERE a.run_id = r.id AND a.kind = 'message')
               AND (SELECT count(*) FROM run_triggers g WHERE g.run_id = r.id) < ?3
               AND (?4 OR NOT EXISTS (SELECT 1 FROM run_triggers g
                                      JOIN turns t ON t.seq = g.turn_seq
                                      WHERE g.run_id = r.id AND t.participant_id <> ?5))
               AND NOT EXISTS (SELECT 1 FROM run_triggers g JOIN turns t ON t.seq = g.turn_seq
                               WHERE g.run_id = r.id
                                 AND (t.sent_at_ms, t.ordinal, t.seq) <= (?6, ?7, ?8))
             ORDER BY r.id DESC LIMIT 1"
        ))?
        .query_row(
            params![
                line.place.row,
                line.agent,
                TRIGGERS_MAX,
                overlap != Overlap::Auto,
                person,
                floor.sent_at_ms,
                floor.ordinal,
                floor.seq,
                due_by_ms
            ],
            |row| row.get("id"),
        )
        .optional()?;
    Ok(run)
}

/// Adds a turn to a waiting run.
pub(crate) fn join_txn(
    connection: &Connection,
    run: i64,
    turn: &TurnRow,
    agent: &AgentName,
    not_before_ms: i64,
) -> Result<(), StoreError> {
    add_trigger_txn(connection, run, turn, agent)?;
    connection
        .prepare_cached("UPDATE runs SET not_before_ms = max(not_before_ms, ?2) WHERE id = ?1")?
        .execute((run, not_before_ms))?;
    Ok(())
}

/// Makes a turn a trigger of a run.
pub(crate) fn add_trigger_txn(
    connection: &Connection,
    run: i64,
    turn: &TurnRow,
    agent: &AgentName,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO run_triggers (run_id, turn_seq, agent, revision) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![run, turn.seq, agent, turn.revision])?;
    Ok(())
}

/// Ends the other open runs of a line; what they were to answer, `run` answers. Returns them.
pub(crate) fn interrupt_txn(
    connection: &Connection,
    line: &OpenRuns<'_>,
    run: i64,
    now_ms: i64,
) -> Result<Vec<RunId>, StoreError> {
    let open = open_runs(connection, line, run)?;
    let triggers = |row| -> Result<i64, StoreError> {
        Ok(connection
            .prepare_cached("SELECT count(*) AS value FROM run_triggers WHERE run_id = ?1")?
            .query_row([row], |row| row.get("value"))?)
    };
    let mut together = triggers(run)?;
    for (other, _) in &open {
        together += triggers(*other)?;
    }
    if together > TRIGGERS_MAX {
        return Ok(Vec::new());
    }
    for (other, _) in &open {
        move_triggers_txn(connection, *other, run)?;
    }
    stop_runs_txn(connection, open, StopCause::Interrupted, now_ms)
}

/// The open runs of a line but one, oldest first; none of what was asked before the agent began afresh.
fn open_runs(
    connection: &Connection,
    line: &OpenRuns<'_>,
    but: i64,
) -> Result<Vec<(i64, RunId)>, StoreError> {
    let floor = floor(connection, line.place.row, line.agent, i64::MAX)?;
    let mut statement = connection.prepare_cached(concat!(
        "SELECT r.id, r.uuid FROM runs r INDEXED BY runs_open
         WHERE ",
        open_run!("r"),
        " AND r.conversation_id = ?1
           AND r.agent = ?2 AND r.id <> ?3 AND r.stop_cause IS NULL
           AND NOT EXISTS (SELECT 1 FROM turns a WHERE a.run_id = r.id AND a.kind = 'message')
           AND NOT EXISTS (SELECT 1 FROM run_triggers g JOIN turns t ON t.seq = g.turn_seq
                           WHERE g.run_id = r.id
                             AND (t.sent_at_ms, t.ordinal, t.seq) <= (?4, ?5, ?6))
         ORDER BY r.id"
    ))?;
    let line = params![
        line.place.row,
        line.agent,
        but,
        floor.sent_at_ms,
        floor.ordinal,
        floor.seq
    ];
    let runs = statement.query_map(line, open_run)?;
    Ok(runs.collect::<Result<_, _>>()?)
}

fn open_run(row: &crate::engine::sql::Row<'_>) -> crate::engine::sql::Result<(i64, RunId)> {
    Ok((row.get(0)?, row.get(1)?))
}

fn move_triggers_txn(connection: &Connection, from: i64, to: i64) -> Result<(), StoreError> {
    connection
        .prepare_cached("UPDATE run_triggers SET run_id = ?2 WHERE run_id = ?1")?
        .execute((from, to))?;
    // The run that takes over also takes over the answer that is to be replaced.
    connection
        .prepare_cached("UPDATE turns SET run_id = ?2 WHERE run_id = ?1 AND kind = 'message'")?
        .execute((from, to))?;
    Ok(())
}

/// Ends a run whose question was edited: another run answers it.
pub(crate) fn end_outdated_txn(
    connection: &Connection,
    (row, id): (i64, RunId),
    now_ms: i64,
) -> Result<RunId, StoreError> {
    stop_run_txn(connection, row, &StopCause::Interrupted.into(), now_ms)?;
    Ok(id)
}

/// Ends the runs of what was asked before a turn where it was said, or in the threads that were opened
/// there: the person's own, or everybody's. Returns them.
pub(crate) fn stop_txn(
    connection: &Connection,
    turn: &TurnRow,
    person: ParticipantId,
    of_everybody: bool,
    now_ms: i64,
) -> Result<Vec<RunId>, StoreError> {
    let open: Vec<(i64, RunId)> = connection
        .prepare_cached(concat!(
            "SELECT r.id, r.uuid FROM runs r
             WHERE ",
            open_run!("r"),
            " AND r.chat_id = ?1
               AND r.stop_cause IS NULL
               AND (r.conversation_id = ?2
                    OR EXISTS (SELECT 1 FROM run_triggers g JOIN turns t ON t.seq = g.turn_seq
                               WHERE g.run_id = r.id AND t.conversation_id = ?2))
               AND NOT EXISTS (SELECT 1 FROM run_triggers g JOIN turns t ON t.seq = g.turn_seq
                               WHERE g.run_id = r.id
                                 AND ((t.sent_at_ms, t.ordinal, t.seq) > (?3, ?4, ?5)
                                      OR (t.participant_id <> ?6 AND NOT ?7)))
             ORDER BY r.id"
        ))?
        .query_map(
            params![
                turn.conversation.chat,
                turn.conversation.row,
                turn.sent_at_ms,
                turn.ordinal,
                turn.seq,
                person,
                of_everybody
            ],
            open_run,
        )?
        .collect::<Result<_, _>>()?;
    stop_runs_txn(connection, open, StopCause::Stopped, now_ms)
}

/// What a command stops.
pub(crate) struct Stopped {
    pub(crate) chat: ChatId,
    /// The only thread, if it is not the whole chat.
    pub(crate) thread: Option<i64>,
    /// Whose questions, if not everybody's.
    pub(crate) whose: Option<ParticipantId>,
}

/// Ends the open runs of a chat or of a thread: those that a person asked for alone, or everybody's.
/// Returns them.
pub(crate) fn stop_chat_txn(
    connection: &Connection,
    what: &Stopped,
    now_ms: i64,
) -> Result<Vec<RunId>, StoreError> {
    let open: Vec<(i64, RunId)> = connection
        .prepare_cached(concat!(
            "SELECT r.id, r.uuid FROM runs r
             WHERE ",
            open_run!("r"),
            " AND r.chat_id = ?1
               AND r.stop_cause IS NULL AND (?3 IS NULL OR r.conversation_id = ?3)
               AND NOT EXISTS (SELECT 1 FROM run_triggers g JOIN turns t ON t.seq = g.turn_seq
                               WHERE g.run_id = r.id AND t.participant_id <> ?2)
             ORDER BY r.id"
        ))?
        .query_map(params![what.chat, what.whose, what.thread], open_run)?
        .collect::<Result<_, _>>()?;
    stop_runs_txn(connection, open, StopCause::Stopped, now_ms)
}

/// A deleted turn leaves the runs that have other triggers: those that wait go on without it; what is
/// being worked on has read it, so another run answers the rest. Returns the runs that this ends.
pub(crate) fn leave_runs_txn(
    connection: &Connection,
    seq: i64,
    now_ms: i64,
) -> Result<Vec<RunId>, StoreError> {
    let shared: Vec<(i64, RunId, bool)> = connection
        .prepare_cached(
            "SELECT r.id, r.uuid, r.state = 'leased' FROM run_triggers g JOIN runs r ON r.id = g.run_id
             WHERE g.turn_seq = ?1
               AND (SELECT count(*) FROM run_triggers o WHERE o.run_id = g.run_id) > 1
             ORDER BY r.id",
        )?
        .query_map([seq], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<Result<_, _>>()?;
    let mut ended = Vec::new();
    for (row, id, is_leased) in shared {
        leave_txn(connection, row, seq)?;
        if is_leased {
            let next = queue_again_txn(connection, row, now_ms)?;
            move_triggers_txn(connection, row, next)?;
            stop_run_txn(connection, row, &StopCause::Deleted.into(), now_ms)?;
            ended.push(id);
        }
    }
    Ok(ended)
}

/// Takes a turn out of a run, and what its model said to it.
pub(crate) fn leave_txn(connection: &Connection, run: i64, seq: i64) -> Result<(), StoreError> {
    connection
        .prepare_cached("DELETE FROM run_triggers WHERE run_id = ?1 AND turn_seq = ?2")?
        .execute((run, seq))?;
    delete_steps_txn(
        connection,
        "IN (SELECT id FROM runs WHERE id = ?1 AND state IN ('queued', 'waiting', 'held'))",
        run,
    )?;
    Ok(())
}

/// Another run in the place of one that ends.
fn queue_again_txn(connection: &Connection, run: i64, now_ms: i64) -> Result<i64, StoreError> {
    let successor = Successor {
        of: run,
        not_before_ms: 0,
        person: None,
        now_ms,
    };
    Ok(succeed_run_txn(connection, &successor)?.0)
}
