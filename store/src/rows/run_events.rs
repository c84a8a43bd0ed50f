//! Run events: what happens in a run, in order, told while it happens.
//!
//! A run's start is written with its claim, its usage with the step, its tools' results as they come (their
//! text is the turn's as soon as the step has recorded it), its end where it ends (`acts/ending`): in the same
//! transaction, once. What is said meanwhile rides with other commits, at a cost that does not grow
//! with what was said before; it is gone as soon as the run is let go, because a turn has it then or
//! it is void. Readers ask for what came after an id.

use crate::capability::MayReply;
use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::leases::leased_run;
use crate::rows::open::open_run;
use crate::rows::turn_sources::visible_sources;

use crate::contract::{LeaseOutcome, NewRunEvent};
use crate::registry::{ErasureRule, Fate, MergeRule, OF_RUN, Restore, StoreTable, account, text};
use crate::rows::columns::stored_count;
use crate::{Store, StoreError};
use vocative_core::ids::{EventId, LeaseToken, RunId, TurnId};
use vocative_core::run::{StopCause, Usage};
use vocative_core::run_event::{EndingKind, EventKind};

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[account(
    "run_events",
    text(&["text"], &[], &["kind", "call_id", "tool"]),
    Fate {
        person: ErasureRule::Emptied,
        chat: ErasureRule::Emptied,
        message: ErasureRule::Emptied,
        merge: MergeRule::Moves,
        restore: Restore::Emptied,
        ..OF_RUN
    },
)];

/// The next id, from the time in milliseconds: at least 1,024 for each, so that it is above all that
/// were told before, also those that a power cut or an older copy took back. Until the year 2248 they
/// are numbers that JavaScript can hold.
macro_rules! next_id {
    ($now_ms:literal) => {
        concat!(
            "max((SELECT seq + 1 FROM sqlite_sequence WHERE name = 'run_events'), ",
            $now_ms,
            " * 1024)"
        )
    };
}

const INSERT_SQL: &str = concat!(
    "INSERT INTO run_events
         (run_id, conversation_id, kind, step, text, call_id, tool, turn, prompt_tokens,
          cache_read_tokens, cache_write_tokens, completion_tokens, at_ms, id)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ",
    next_id!("?13"),
    ")"
);
/// Core says what a claim and an end are told as, in either case. The statement itself tells the cases apart, which
/// saves another statement for each answer.
const CLAIM_SQL: &str = concat!(
    "INSERT INTO run_events (id, run_id, conversation_id, kind, at_ms)
     SELECT ",
    next_id!("?2"),
    ", id, conversation_id, iif(first_claimed_at_ms IS NULL, ?3, ?4), ?2
     FROM runs WHERE id = ?1"
);

const END_SQL: &str = concat!(
    "INSERT INTO run_events (id, run_id, conversation_id, kind, turn, at_ms)
     SELECT ",
    next_id!("?2"),
    ", id, conversation_id,
            iif(stop_cause = ?4, ?5, ?3),
            (SELECT uuid FROM turns WHERE run_id = ?1 AND kind IN ('message', 'notice')
             ORDER BY seq DESC LIMIT 1), ?2
     FROM runs
     WHERE id = ?1 AND state NOT IN ('done', 'failed', 'cancelled', 'superseded', 'dead')"
);

/// The event that told a call's result, and whether the timeline has it, too. Looked for among the
/// newest events of the run: a step's calls and results are never further apart.
const TOLD_RESULT_SQL: &str = "SELECT id, turn IS NOT NULL AS has_turn FROM (
         SELECT id, kind, step, call_id, turn FROM run_events WHERE run_id = ?1 ORDER BY id DESC LIMIT 64)
     WHERE kind = ?4 AND step = ?2 AND call_id = ?3 ORDER BY id DESC LIMIT 1";

/// The statements that run for each event; they read no other event.
#[cfg(test)]
pub(crate) const PROBED_SQL: [&str; 2] = [INSERT_SQL, CLAIM_SQL];
impl<C: MayReply> Store<C> {
    /// Tells what happens in a leased run, in order. Answers once everybody sees it; a power cut may
    /// undo it.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn record_run_events(
        &self,
        run: RunId,
        token: LeaseToken,
        events: Vec<NewRunEvent>,
        now_ms: i64,
    ) -> Result<LeaseOutcome, StoreError> {
        self.write_riding(move |connection| record_txn(connection, run, token, &events, now_ms))
            .await
    }
}

/// An event to be inserted.
#[derive(Clone, Copy, Debug)]
struct RunEventRow<'a> {
    kind: EventKind,
    step: Option<u32>,
    text: Option<&'a str>,
    call_id: Option<&'a str>,
    tool: Option<&'a str>,
    turn: Option<TurnId>,
    usage: Option<Usage>,
}

impl RunEventRow<'_> {
    /// An event of a kind that says nothing else.
    fn of(kind: EventKind) -> Self {
        Self {
            kind,
            step: None,
            text: None,
            call_id: None,
            tool: None,
            turn: None,
            usage: None,
        }
    }
}

/// Where an event belongs.
#[derive(Clone, Copy)]
struct EventOwner {
    run_row: i64,
    conversation_row: i64,
}

fn record_txn(
    connection: &Connection,
    run: RunId,
    token: LeaseToken,
    events: &[NewRunEvent],
    now_ms: i64,
) -> Result<LeaseOutcome, StoreError> {
    // A run that was asked to stop has had its text taken away, and tells no more.
    let leased = leased_run(connection, run, token)?.filter(|leased| !leased.is_cancelled);
    let Some(leased) = leased else {
        return Ok(LeaseOutcome::Stale);
    };
    let owner = EventOwner {
        run_row: leased.row,
        conversation_row: leased.conversation_row,
    };
    for event in events {
        record_one_txn(connection, owner, event, now_ms)?;
    }
    Ok(LeaseOutcome::Written)
}

fn record_one_txn(
    connection: &Connection,
    owner: EventOwner,
    event: &NewRunEvent,
    now_ms: i64,
) -> Result<(), StoreError> {
    let entry = match event {
        NewRunEvent::Text { step, text } => RunEventRow {
            step: Some(*step),
            text: Some(text),
            ..RunEventRow::of(EventKind::Text)
        },
        NewRunEvent::Restarted => {
            void_text_txn(connection, owner.run_row)?;
            RunEventRow::of(EventKind::Restarted)
        }
        NewRunEvent::ToolCall {
            step,
            call_id,
            tool,
            arguments,
        } => RunEventRow {
            step: Some(*step),
            text: Some(arguments),
            call_id: Some(call_id),
            tool: Some(tool),
            ..RunEventRow::of(EventKind::ToolCall)
        },
        NewRunEvent::ToolProgress {
            step,
            call_id,
            tool,
            text,
        } => {
            connection
                .prepare_cached(
                    "DELETE FROM run_events WHERE run_id = ?1 AND kind = ?3 AND call_id = ?2",
                )?
                .execute((owner.run_row, call_id, EventKind::ToolProgress))?;
            RunEventRow {
                step: Some(*step),
                text: Some(text),
                call_id: Some(call_id),
                tool: Some(tool),
                ..RunEventRow::of(EventKind::ToolProgress)
            }
        }
        NewRunEvent::ToolResult {
            step,
            call_id,
            tool,
            text,
            sources,
        } => {
            if let Some((_, true)) = told_result(connection, owner.run_row, *step, call_id)? {
                // The result was recorded, and told, before this event was written.
                return Ok(());
            }
            let is_whole = visible_sources(connection, sources)?.is_some();
            RunEventRow {
                step: Some(*step),
                text: is_whole.then_some(text.as_str()),
                call_id: Some(call_id),
                tool: Some(tool),
                ..RunEventRow::of(EventKind::ToolResult)
            }
        }
    };
    insert_txn(connection, owner, entry, now_ms)
}

fn told_result(
    connection: &Connection,
    run_row: i64,
    step: u32,
    call_id: &str,
) -> Result<Option<(EventId, bool)>, StoreError> {
    Ok(connection
        .prepare_cached(TOLD_RESULT_SQL)?
        .query_row(
            params![run_row, step, call_id, EventKind::ToolResult],
            |row| Ok((row.get("id")?, row.get("has_turn")?)),
        )
        .optional()?)
}

fn void_text_txn(connection: &Connection, run_row: i64) -> Result<(), StoreError> {
    connection
        .prepare_cached("DELETE FROM run_events WHERE run_id = ?1 AND kind = ?2")?
        .execute((run_row, EventKind::Text))?;
    Ok(())
}

fn insert_txn(
    connection: &Connection,
    owner: EventOwner,
    entry: RunEventRow<'_>,
    now_ms: i64,
) -> Result<(), StoreError> {
    let tokens = |of: fn(Usage) -> u64| entry.usage.map(|usage| stored_count(of(usage)));
    connection.prepare_cached(INSERT_SQL)?.execute(params![
        owner.run_row,
        owner.conversation_row,
        entry.kind,
        entry.step,
        entry.text,
        entry.call_id,
        entry.tool,
        entry.turn,
        tokens(|usage| usage.prompt_tokens),
        tokens(|usage| usage.cache_read_tokens),
        tokens(|usage| usage.cache_write_tokens),
        tokens(|usage| usage.completion_tokens),
        now_ms,
    ])?;
    Ok(())
}

/// Tells that a run is claimed: for the first time, or again. To be called before the claim is written.
pub(crate) fn tell_claim_txn(
    connection: &Connection,
    run_row: i64,
    now_ms: i64,
) -> Result<(), StoreError> {
    connection.prepare_cached(CLAIM_SQL)?.execute((
        run_row,
        now_ms,
        EventKind::of_claim(true),
        EventKind::of_claim(false),
    ))?;
    Ok(())
}

/// Tells what a step used.
pub(crate) fn tell_usage_txn(
    connection: &Connection,
    (run_row, conversation_row): (i64, i64),
    step: u32,
    usage: Usage,
    now_ms: i64,
) -> Result<(), StoreError> {
    let owner = EventOwner {
        run_row,
        conversation_row,
    };
    let entry = RunEventRow {
        step: Some(step),
        usage: Some(usage),
        ..RunEventRow::of(EventKind::Usage)
    };
    insert_txn(connection, owner, entry, now_ms)
}

/// A tool's result that the timeline has.
pub(crate) struct ToldResult<'a> {
    pub(crate) step: u32,
    pub(crate) call_id: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) turn: TurnId,
}

/// Tells a tool's result that the timeline has: of one that was told when it came, from where its text
/// is read from here on.
pub(crate) fn tell_result_txn(
    connection: &Connection,
    (run_row, conversation_row): (i64, i64),
    result: &ToldResult<'_>,
    now_ms: i64,
) -> Result<(), StoreError> {
    if let Some((id, false)) = told_result(connection, run_row, result.step, result.call_id)? {
        connection
            .prepare_cached("UPDATE run_events SET turn = ?2, text = NULL WHERE id = ?1")?
            .execute((id, result.turn))?;
        return Ok(());
    }
    let owner = EventOwner {
        run_row,
        conversation_row,
    };
    let entry = RunEventRow {
        step: Some(result.step),
        call_id: Some(result.call_id),
        tool: Some(result.tool),
        turn: Some(result.turn),
        ..RunEventRow::of(EventKind::ToolResult)
    };
    insert_txn(connection, owner, entry, now_ms)
}

/// Takes away what tools found in runs of a turn's account that are worked on, as far as no turn has it
/// yet: it may quote that turn, which has just gone.
pub(crate) fn forget_results_txn(connection: &Connection, seq: i64) -> Result<(), StoreError> {
    connection
        .prepare_cached(concat!(
            "UPDATE run_events SET text = NULL WHERE kind IN (?2, ?3) AND text IS NOT NULL
               AND run_id IN (SELECT id FROM runs INDEXED BY runs_waiting
                              WHERE ",
            open_run!(),
            " AND state = 'leased'
                                AND (SELECT account_id FROM chats WHERE id = runs.chat_id)
                                  = (SELECT h.account_id FROM turns t
                                     JOIN conversations c ON c.id = t.conversation_id
                                     JOIN chats h ON h.id = c.chat_id WHERE t.seq = ?1))"
        ))?
        .execute((seq, EventKind::ToolResult, EventKind::ToolProgress))?;
    Ok(())
}

/// Deletes the text told so far of a run: its worker lets it go, or it was asked to stop.
pub(crate) fn forget_live_text_txn(
    connection: &Connection,
    run_row: i64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached("DELETE FROM run_events WHERE run_id = ?1 AND kind IN (?2, ?3)")?
        .execute((run_row, EventKind::Text, EventKind::ToolProgress))?;
    connection
        .prepare_cached("UPDATE run_events SET text = NULL WHERE run_id = ?1 AND text IS NOT NULL")?
        .execute([run_row])?;
    Ok(())
}

/// Tells the end of a run that is not at its end yet. To be called before the end is written.
pub(crate) fn tell_end_txn(
    connection: &Connection,
    run_row: i64,
    kind: EndingKind,
    now_ms: i64,
) -> Result<(), StoreError> {
    connection.prepare_cached(END_SQL)?.execute((
        run_row,
        now_ms,
        EventKind::Ended(kind),
        StopCause::Interrupted,
        EventKind::Ended(kind.interrupted()),
    ))?;
    Ok(())
}

/// Takes back the end of a run that goes on.
pub(crate) fn untell_end_txn(connection: &Connection, run_row: i64) -> Result<(), StoreError> {
    // The kinds are written as in the index of ends, so that it is used.
    connection
        .prepare_cached(
            "DELETE FROM run_events WHERE run_id = ?1
               AND kind IN ('finished', 'failed', 'cancelled', 'interrupted')",
        )?
        .execute([run_row])?;
    Ok(())
}

/// Moves a run's events to the conversation that the run is in.
pub(crate) fn move_events_txn(connection: &Connection, run_row: i64) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE run_events SET conversation_id = (SELECT conversation_id FROM runs WHERE id = ?1)
             WHERE run_id = ?1",
        )?
        .execute([run_row])?;
    Ok(())
}

/// Takes away what is said in all runs that are worked on: the end of each tells the whole text.
pub(crate) fn forget_texts_txn(connection: &Connection) -> Result<u64, StoreError> {
    let said = connection
        .prepare_cached(concat!(
            "DELETE FROM run_events WHERE kind = ?1
               AND run_id IN (SELECT id FROM runs INDEXED BY runs_waiting
                              WHERE ",
            open_run!(),
            " AND state = 'leased')"
        ))?
        .execute([EventKind::Text])?;
    let told = connection
        .prepare_cached(concat!(
            "UPDATE run_events SET text = NULL WHERE text IS NOT NULL
               AND run_id IN (SELECT id FROM runs INDEXED BY runs_waiting
                              WHERE ",
            open_run!(),
            " AND state = 'leased')"
        ))?
        .execute([])?;
    Ok((said + told) as u64)
}
