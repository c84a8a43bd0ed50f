//! Writes what an addressed message does to the open runs of its conversation: it joins a waiting run, takes over
//! the messages of another, or stops runs. `core/running` decides.
//!
//! At any time a trigger belongs to exactly one run.

use crate::acts::forgetting::delete_steps_txn;
use crate::engine::sql::{Connection, OptionalExtension, Row, params};
use crate::rows::open::open_run;
use crate::rows::run_rows::{Successor, succeed_run_txn};
use crate::rows::turn_rows::TurnRow;

use crate::StoreError;
use crate::acts::ending::{stop_run_txn, stop_runs_txn};
use crate::rows::fresh_starts::floor;
use crate::rows::places::ConversationRow;
use vocative_core::addressing::Overlap;
use vocative_core::ids::{AgentName, ChatId, ParticipantId, RunId};
use vocative_core::run::StopCause;
use vocative_core::running::overlap::{OpenRun, UnansweredMessage};
use vocative_core::running::stopping::StoppableRun;
use vocative_core::running::triggers::{OnDelete, TriggeredRun, on_delete};

/// The open runs of a conversation that an agent works on.
pub(crate) struct OpenRuns<'a> {
    pub(crate) place: &'a ConversationRow,
    pub(crate) agent: &'a AgentName,
    /// The person whose message arrives.
    pub(crate) person: ParticipantId,
}

/// A run of a line.
struct LineRun {
    row: i64,
    id: RunId,
    run: OpenRun,
}

impl OpenRuns<'_> {
    /// The runs, newest first, until the callback returns `false`.
    fn newest(
        &self,
        connection: &Connection,
        mut is_wanted: impl FnMut(&LineRun) -> bool,
    ) -> Result<Vec<LineRun>, StoreError> {
        let floor = floor(connection, self.place.row, self.agent, i64::MAX)?;
        let mut statement = connection.prepare_cached(concat!(
            "SELECT r.id, r.uuid, r.state, r.not_before_ms, r.as_of_seq IS NOT NULL AS is_begun,
                    (SELECT count(*) FROM run_triggers g WHERE g.run_id = r.id) AS triggers,
                    EXISTS (SELECT 1 FROM run_triggers g JOIN turns t ON t.seq = g.turn_seq
                            WHERE g.run_id = r.id AND t.participant_id <> ?3) AS is_asked_by_others,
                    EXISTS (SELECT 1 FROM run_triggers g JOIN turns t ON t.seq = g.turn_seq
                            WHERE g.run_id = r.id
                              AND (t.sent_at_ms, t.ordinal, t.seq) <= (?4, ?5, ?6)) AS is_asked_before,
                    EXISTS (SELECT 1 FROM turns a WHERE a.run_id = r.id AND a.kind = 'message'
                              AND a.visibility = 'room') AS replaces_answer
             FROM runs r INDEXED BY runs_open
             WHERE ",
            open_run!("r"),
            " AND r.conversation_id = ?1 AND r.agent = ?2 AND r.stop_cause IS NULL AND r.parent_run_id IS NULL
             ORDER BY r.id DESC"
        ))?;
        let line = params![
            self.place.row,
            self.agent,
            self.person,
            floor.sent_at_ms,
            floor.ordinal,
            floor.seq
        ];
        let mut found = Vec::new();
        for run in statement.query_map(line, line_run)? {
            let run = run?;
            if !is_wanted(&run) {
                break;
            }
            found.push(run);
        }
        Ok(found)
    }

    /// Whether a question is dropped because another one is being answered.
    pub(crate) fn drops(
        &self,
        connection: &Connection,
        question: &UnansweredMessage,
    ) -> Result<bool, StoreError> {
        if question.overlap != Overlap::Drop {
            return Ok(false);
        }
        let mut is_dropped = false;
        self.newest(connection, |open| {
            is_dropped = question.is_dropped_for(&open.run);
            !is_dropped
        })?;
        Ok(is_dropped)
    }

    /// The newest run that a question joins, with its number of triggers.
    pub(crate) fn joined_by(
        &self,
        connection: &Connection,
        question: &UnansweredMessage,
    ) -> Result<Option<(i64, u32)>, StoreError> {
        if matches!(question.overlap, Overlap::Queue | Overlap::Drop) {
            return Ok(None);
        }
        let mut joined = None;
        self.newest(connection, |open| {
            if question.joins(&open.run) {
                joined = Some((open.row, open.run.triggers));
            }
            joined.is_none()
        })?;
        Ok(joined)
    }
}

fn line_run(row: &Row<'_>) -> crate::engine::sql::Result<LineRun> {
    Ok(LineRun {
        row: row.get("id")?,
        id: row.get("uuid")?,
        run: OpenRun {
            stage: row.get("state")?,
            is_begun: row.get("is_begun")?,
            triggers: row.get("triggers")?,
            is_asked_by_others: row.get("is_asked_by_others")?,
            is_asked_before_fresh_start: row.get("is_asked_before")?,
            replaces_answer: row.get("replaces_answer")?,
            not_before_ms: row.get("not_before_ms")?,
        },
    })
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

/// Ends the other open runs of a line if `run`, which has `triggers` triggers by now, is to answer their messages, too.
/// Returns the ended runs.
pub(crate) fn take_over_txn(
    connection: &Connection,
    line: &OpenRuns<'_>,
    question: &UnansweredMessage,
    (run, triggers): (i64, u32),
) -> Result<Vec<RunId>, StoreError> {
    if question.overlap != Overlap::Interrupt {
        return Ok(Vec::new());
    }
    let open = line.newest(connection, |_| true)?;
    let others = open.into_iter().rev().filter(|other| other.row != run);
    let others = others
        .map(|other| ((other.row, other.id), other.run))
        .collect();
    let over = question.takes_over(triggers, others);
    for (other, _) in &over {
        move_triggers_txn(connection, *other, run)?;
    }
    stop_runs_txn(connection, over, StopCause::Interrupted, question.now_ms)
}

fn move_triggers_txn(connection: &Connection, from: i64, to: i64) -> Result<(), StoreError> {
    connection
        .prepare_cached("UPDATE run_triggers SET run_id = ?2 WHERE run_id = ?1")?
        .execute((from, to))?;
    // An answer that the old run was to replace is now replaced by the new one.
    connection
        .prepare_cached("UPDATE turns SET run_id = ?2 WHERE run_id = ?1 AND kind = 'message'")?
        .execute((from, to))?;
    Ok(())
}

/// Ends the runs of questions asked before a turn in its conversation, or in the threads opened there: the
/// person's own, or everybody's. Returns them.
pub(crate) fn stop_txn(
    connection: &Connection,
    turn: &TurnRow,
    person: ParticipantId,
    of_everybody: bool,
    now_ms: i64,
) -> Result<Vec<RunId>, StoreError> {
    let mut statement = connection.prepare_cached(concat!(
        "SELECT r.id, r.uuid,
                EXISTS (SELECT 1 FROM run_triggers g JOIN turns t ON t.seq = g.turn_seq
                        WHERE g.run_id = r.id
                          AND (t.sent_at_ms, t.ordinal, t.seq) > (?3, ?4, ?5)) AS is_asked_later,
                EXISTS (SELECT 1 FROM run_triggers g JOIN turns t ON t.seq = g.turn_seq
                        WHERE g.run_id = r.id AND t.participant_id <> ?6) AS is_asked_by_others
         FROM runs r
         WHERE ",
        open_run!("r"),
        " AND r.chat_id = ?1
           AND r.stop_cause IS NULL AND r.parent_run_id IS NULL
           AND (r.conversation_id = ?2
                OR EXISTS (SELECT 1 FROM run_triggers g JOIN turns t ON t.seq = g.turn_seq
                           WHERE g.run_id = r.id AND t.conversation_id = ?2))
         ORDER BY r.id"
    ))?;
    let place = params![
        turn.conversation.chat,
        turn.conversation.row,
        turn.sent_at_ms,
        turn.ordinal,
        turn.seq,
        person
    ];
    let rows = statement.query_map(place, stoppable_run)?;
    let open = rows.collect::<Result<_, _>>()?;
    stop_those_txn(connection, open, of_everybody, now_ms)
}

/// Which runs a command stops.
pub(crate) struct Stopped {
    pub(crate) chat: ChatId,
    /// The only thread, if it is not the whole chat.
    pub(crate) thread: Option<i64>,
    /// The person who gave the command.
    pub(crate) person: ParticipantId,
    /// Whether other people's questions end, too.
    pub(crate) of_everybody: bool,
}

/// Ends the open runs of a chat or of a thread: those that a person asked for alone, or everybody's.
/// Returns them.
pub(crate) fn stop_chat_txn(
    connection: &Connection,
    what: &Stopped,
    now_ms: i64,
) -> Result<Vec<RunId>, StoreError> {
    let mut statement = connection.prepare_cached(concat!(
        "SELECT r.id, r.uuid, FALSE AS is_asked_later,
                EXISTS (SELECT 1 FROM run_triggers g JOIN turns t ON t.seq = g.turn_seq
                        WHERE g.run_id = r.id AND t.participant_id <> ?2) AS is_asked_by_others
         FROM runs r
         WHERE ",
        open_run!("r"),
        " AND r.chat_id = ?1
           AND r.stop_cause IS NULL AND r.parent_run_id IS NULL AND (?3 IS NULL OR r.conversation_id = ?3)
         ORDER BY r.id"
    ))?;
    let rows = statement.query_map(params![what.chat, what.person, what.thread], stoppable_run)?;
    let open = rows.collect::<Result<_, _>>()?;
    stop_those_txn(connection, open, what.of_everybody, now_ms)
}

fn stoppable_run(row: &Row<'_>) -> crate::engine::sql::Result<((i64, RunId), StoppableRun)> {
    let run = StoppableRun {
        is_asked_later: row.get("is_asked_later")?,
        is_asked_by_others: row.get("is_asked_by_others")?,
    };
    Ok(((row.get("id")?, row.get("uuid")?), run))
}

fn stop_those_txn(
    connection: &Connection,
    open: Vec<((i64, RunId), StoppableRun)>,
    of_everybody: bool,
    now_ms: i64,
) -> Result<Vec<RunId>, StoreError> {
    let ended = open.into_iter().filter(|(_, run)| run.ends(of_everybody));
    let ended = ended.map(|(id, _)| id).collect();
    stop_runs_txn(connection, ended, StopCause::Stopped, now_ms)
}

/// A run of a turn, as a row.
pub(crate) struct TriggeredRow {
    pub(crate) row: i64,
    pub(crate) id: RunId,
    pub(crate) run: TriggeredRun,
}

macro_rules! select_triggered {
    ($tail:literal) => {
        concat!(
            "SELECT r.id, r.uuid, r.state, r.stop_cause,
                    (SELECT count(*) FROM run_triggers o WHERE o.run_id = r.id) > 1 AS is_shared
             FROM run_triggers g JOIN runs r ON r.id = g.run_id WHERE g.turn_seq = ?1 ",
            $tail
        )
    };
}

/// The run of a (turn, agent) pair.
pub(crate) fn run_of_trigger(
    connection: &Connection,
    seq: i64,
    agent: &AgentName,
) -> Result<Option<TriggeredRow>, StoreError> {
    Ok(connection
        .prepare_cached(select_triggered!("AND g.agent = ?2"))?
        .query_row(params![seq, agent], triggered_row)
        .optional()?)
}

fn triggered_row(row: &Row<'_>) -> crate::engine::sql::Result<TriggeredRow> {
    Ok(TriggeredRow {
        row: row.get("id")?,
        id: row.get("uuid")?,
        run: TriggeredRun {
            stage: row.get("state")?,
            stop_cause: row.get("stop_cause")?,
            is_shared: row.get("is_shared")?,
        },
    })
}

/// Ends the runs of a deleted turn: waiting ones at once, leased ones are asked to stop. Their other triggers
/// are still answered, without it. Returns the runs that this ends.
pub(crate) fn cancel_runs_of_deleted_txn(
    connection: &Connection,
    turn: &TurnRow,
    now_ms: i64,
) -> Result<Vec<RunId>, StoreError> {
    let runs: Vec<TriggeredRow> = connection
        .prepare_cached(select_triggered!("ORDER BY r.id"))?
        .query_map([turn.seq], triggered_row)?
        .collect::<Result<_, _>>()?;
    let mut alone = Vec::new();
    let mut ended = Vec::new();
    for TriggeredRow { row, id, run } in runs {
        match on_delete(&run) {
            OnDelete::End => alone.push((row, id)),
            OnDelete::Leave => leave_txn(connection, row, turn.seq)?,
            OnDelete::AnswerRest => {
                leave_txn(connection, row, turn.seq)?;
                let next = queue_again_txn(connection, row, now_ms)?;
                move_triggers_txn(connection, row, next)?;
                stop_run_txn(connection, row, &StopCause::Deleted.into(), now_ms)?;
                ended.push(id);
            }
        }
    }
    ended.extend(stop_runs_txn(
        connection,
        alone,
        StopCause::Deleted,
        now_ms,
    )?);
    Ok(ended)
}

/// Removes a turn from a run, and the steps in which the model answered it.
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

/// Queues another run in place of one that ends.
fn queue_again_txn(connection: &Connection, run: i64, now_ms: i64) -> Result<i64, StoreError> {
    let successor = Successor {
        of: run,
        not_before_ms: 0,
        person: None,
        now_ms,
    };
    Ok(succeed_run_txn(connection, &successor)?.0)
}
