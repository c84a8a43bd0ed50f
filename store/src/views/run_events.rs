//! What happens in runs, for who watches: events after an id, and a run as it stands.

use tokio::sync::watch;

use crate::contract::EventScope;
use crate::engine::sql::{Connection, OptionalExtension, Row};
use crate::rows::columns::{conversation_row_id, count_from, limit_of};
use crate::rows::open::open_run;
use crate::rows::run_rows::run_by_id;
use crate::{Reader, StoreError};
use vocative_core::ids::{ConversationId, EventId, RunId};
use vocative_core::run::{RunState, Usage};
use vocative_core::run_event::{Ending, EndingKind, EventKind, Happening, RunEvent, RunSnapshot};

/// The kind of a turn that is an answer. A run that did not finish has none: an answer that is its own is
/// one that it was to replace.
const MESSAGE: &str = "message";

/// The most open runs of a conversation that a late reader is told of.
const OPEN_RUNS_MAX: usize = 20;

macro_rules! select_events {
    ($tail:literal) => {
        concat!(
            "SELECT e.id, r.uuid AS run, c.uuid AS conversation, r.agent, e.kind, e.step, e.text, e.call_id, e.tool, e.turn,
                    e.prompt_tokens, e.cache_read_tokens, e.cache_write_tokens, e.completion_tokens, e.at_ms, t.content, r.reason, t.kind AS turn_kind
             FROM run_events e CROSS JOIN runs r ON r.id = e.run_id
             CROSS JOIN conversations c ON c.id = e.conversation_id
             LEFT JOIN turns t ON t.uuid = e.turn ",
            $tail
        )
    };
}

const ALL_AFTER_SQL: &str = select_events!("WHERE e.id > ?1 ORDER BY e.id LIMIT ?2");
const OF_RUN_SQL: &str = select_events!(
    "WHERE e.run_id = (SELECT id FROM runs WHERE uuid = ?3) AND e.id > ?1 ORDER BY e.id LIMIT ?2"
);
const OF_CONVERSATION_SQL: &str = select_events!(
    "WHERE e.conversation_id = (SELECT id FROM conversations WHERE uuid = ?3) AND e.id > ?1
     ORDER BY e.id LIMIT ?2"
);

/// Statements of readers.
#[cfg(test)]
pub(crate) const PLANNED_SQL: [&str; 3] = [ALL_AFTER_SQL, OF_RUN_SQL, OF_CONVERSATION_SQL];

impl Reader {
    /// Events after an id, oldest first.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn run_events_after(
        &self,
        scope: EventScope,
        after: EventId,
        limit: usize,
    ) -> Result<Vec<RunEvent>, StoreError> {
        self.read(move |connection| events_after(connection, scope, after, limit))
            .await
    }

    /// A run as it stands, and the newest id of all events then: what comes after it has not been
    /// told by this.
    ///
    /// # Errors
    /// `NotFound` if there is no such run.
    pub async fn run_snapshot(&self, run: RunId) -> Result<(RunSnapshot, EventId), StoreError> {
        self.read(move |connection| Ok((snapshot(connection, run)?, newest(connection)?)))
            .await
    }

    /// The open runs of a conversation as they stand, the oldest first, and the newest id of all
    /// events then.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation.
    pub async fn conversation_snapshot(
        &self,
        conversation: ConversationId,
    ) -> Result<(Vec<RunSnapshot>, EventId), StoreError> {
        self.read(move |connection| {
            let runs = open_runs(connection, conversation)?;
            let snapshots = runs.into_iter().map(|run| snapshot(connection, run));
            Ok((snapshots.collect::<Result<_, _>>()?, newest(connection)?))
        })
        .await
    }

    /// The newest id of all events.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn newest_event(&self) -> Result<EventId, StoreError> {
        self.read(newest).await
    }

    /// When the newest backup was put back, in milliseconds since the Unix epoch; `None` if none ever was.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn restored_at_ms(&self) -> Result<Option<i64>, StoreError> {
        self.read(|connection| {
            let newest = "SELECT max(at_ms) AS newest_ms FROM restores";
            Ok(connection.query_row(newest, [], |row| row.get("newest_ms"))?)
        })
        .await
    }

    /// Changes with every commit: a hint that there may be events.
    #[must_use]
    pub fn commits_seen(&self) -> Option<watch::Receiver<()>> {
        self.committed()
    }
}

fn events_after(
    connection: &Connection,
    scope: EventScope,
    after: EventId,
    limit: usize,
) -> Result<Vec<RunEvent>, StoreError> {
    let limit = limit_of(limit);
    let events = match scope {
        EventScope::All => connection
            .prepare_cached(ALL_AFTER_SQL)?
            .query_map((after, limit), event_from_row)?
            .collect::<crate::engine::sql::Result<_>>()?,
        EventScope::Run(run) => connection
            .prepare_cached(OF_RUN_SQL)?
            .query_map((after, limit, run), event_from_row)?
            .collect::<crate::engine::sql::Result<_>>()?,
        EventScope::Conversation(conversation) => connection
            .prepare_cached(OF_CONVERSATION_SQL)?
            .query_map((after, limit, conversation), event_from_row)?
            .collect::<crate::engine::sql::Result<_>>()?,
    };
    Ok(events)
}

fn newest(connection: &Connection) -> Result<EventId, StoreError> {
    Ok(connection
        .prepare_cached("SELECT seq FROM sqlite_sequence WHERE name = 'run_events'")?
        .query_row([], |row| row.get("seq"))?)
}

fn open_runs(
    connection: &Connection,
    conversation: ConversationId,
) -> Result<Vec<RunId>, StoreError> {
    let conversation_row = conversation_row_id(connection, conversation)?;
    let mut statement = connection.prepare_cached(concat!(
        "SELECT uuid FROM runs INDEXED BY runs_open
         WHERE ",
        open_run!(),
        " AND conversation_id = ?1
         ORDER BY id LIMIT ?2"
    ))?;
    let limit = limit_of(OPEN_RUNS_MAX);
    let runs = statement.query_map((conversation_row, limit), |row| row.get("uuid"))?;
    Ok(runs.collect::<crate::engine::sql::Result<_>>()?)
}

fn snapshot(connection: &Connection, id: RunId) -> Result<RunSnapshot, StoreError> {
    let run = run_by_id(connection, id)?;
    let end = match ending_kind(&run.state) {
        Some(kind) => Some(end_of(connection, id, kind)?),
        None => None,
    };
    let (step, text) = match &end {
        Some(end) => (0, said_at(end)),
        None => said_so_far(connection, id)?,
    };
    Ok(RunSnapshot {
        run: id,
        conversation: run.conversation,
        agent: run.agent,
        state: run.state.name(),
        attempt: run.attempt,
        step,
        text,
        end,
    })
}

fn said_at(end: &RunEvent) -> String {
    match &end.what {
        Happening::Ended(ending) => ending.text.clone(),
        _ => String::new(),
    }
}

/// The way in which a run of this state ended; `None` if it has not.
fn ending_kind(state: &RunState) -> Option<EndingKind> {
    match state {
        RunState::Done => Some(EndingKind::Finished),
        RunState::Dead { .. } => Some(EndingKind::Failed),
        RunState::Cancelled => Some(EndingKind::Cancelled),
        RunState::Queued { .. }
        | RunState::Leased { .. }
        | RunState::Waiting { .. }
        | RunState::Held { .. } => None,
    }
}

/// The event of a run's end. If the run is older than events, or its events were deleted, it is made from the run's
/// state.
fn end_of(connection: &Connection, run: RunId, kind: EndingKind) -> Result<RunEvent, StoreError> {
    let told = connection
        .prepare_cached(select_events!(
            "WHERE e.run_id = (SELECT id FROM runs WHERE uuid = ?1)
               AND e.kind IN ('finished', 'failed', 'cancelled', 'interrupted')"
        ))?
        .query_row([run], event_from_row)
        .optional()?;
    if let Some(told) = told {
        return Ok(told);
    }
    Ok(connection
        .prepare_cached(
            "SELECT c.uuid AS conversation, r.agent, r.finished_at_ms, r.reason, t.uuid AS turn, t.content
             FROM runs r JOIN conversations c ON c.id = r.conversation_id
             LEFT JOIN turns t ON t.seq = (SELECT max(seq) FROM turns
                                           WHERE run_id = r.id
                                             AND (kind = 'notice' OR (kind = 'message' AND ?2)))
             WHERE r.uuid = ?1",
        )?
        .query_row((run, kind == EndingKind::Finished), |row| {
            Ok(RunEvent {
                id: None,
                run,
                conversation: row.get("conversation")?,
                agent: row.get("agent")?,
                what: Happening::Ended(Ending {
                    kind,
                    turn: row.get("turn")?,
                    text: row.get::<_, Option<String>>("content")?.unwrap_or_default(),
                    reason: row.get("reason")?,
                }),
                at_ms: row.get::<_, Option<i64>>("finished_at_ms")?.unwrap_or(0),
            })
        })?)
}

/// What was said in the newest step that said something.
fn said_so_far(connection: &Connection, run: RunId) -> Result<(u32, String), StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT coalesce(e.step, 0) AS step, coalesce(e.text, '') AS text FROM run_events e
         WHERE e.run_id = (SELECT id FROM runs WHERE uuid = ?1) AND e.kind = ?2 ORDER BY e.id",
    )?;
    let mut rows = statement.query((run, EventKind::Text))?;
    let mut said = (0, String::new());
    while let Some(row) = rows.next()? {
        let step: u32 = row.get("step")?;
        if step != said.0 {
            said = (step, String::new());
        }
        said.1
            .push_str(row.get_ref("text")?.as_str().unwrap_or_default());
    }
    Ok(said)
}

fn event_from_row(row: &Row<'_>) -> crate::engine::sql::Result<RunEvent> {
    let kind: String = row.get("kind")?;
    let kind = EventKind::from_name(&kind).unwrap_or(EventKind::Ended(EndingKind::Failed));
    let step =
        || Ok::<_, crate::engine::sql::Error>(row.get::<_, Option<u32>>("step")?.unwrap_or(0));
    let word = |n| {
        Ok::<_, crate::engine::sql::Error>(row.get::<_, Option<String>>(n)?.unwrap_or_default())
    };
    let tokens = |n| {
        Ok::<_, crate::engine::sql::Error>(count_from(row.get::<_, Option<i64>>(n)?.unwrap_or(0)))
    };
    let what = match kind {
        EventKind::Started => Happening::Started,
        EventKind::Restarted => Happening::Restarted,
        EventKind::Text => Happening::Text {
            step: step()?,
            text: word("text")?,
        },
        EventKind::ToolCall => Happening::ToolCall {
            step: step()?,
            call_id: word("call_id")?,
            tool: word("tool")?,
            arguments: row.get("text")?,
        },
        EventKind::ToolProgress => Happening::ToolProgress {
            step: step()?,
            call_id: word("call_id")?,
            tool: word("tool")?,
            text: word("text")?,
        },
        EventKind::ToolResult => Happening::ToolResult {
            step: step()?,
            call_id: word("call_id")?,
            tool: word("tool")?,
            turn: row.get("turn")?,
            // The turn's text, or until there is a turn, the event's own.
            text: match row.get("content")? {
                Some(text) => text,
                None => word("text")?,
            },
        },
        EventKind::Usage => Happening::Usage {
            step: step()?,
            usage: Usage {
                prompt_tokens: tokens("prompt_tokens")?,
                cache_read_tokens: tokens("cache_read_tokens")?,
                cache_write_tokens: tokens("cache_write_tokens")?,
                completion_tokens: tokens("completion_tokens")?,
            },
        },
        EventKind::Ended(kind) => {
            let of_turn = row.get::<_, Option<String>>("turn_kind")?;
            let is_its = kind == EndingKind::Finished || of_turn.as_deref() != Some(MESSAGE);
            Happening::Ended(Ending {
                kind,
                turn: if is_its { row.get("turn")? } else { None },
                text: if is_its {
                    word("content")?
                } else {
                    String::new()
                },
                reason: row.get("reason")?,
            })
        }
    };
    Ok(RunEvent {
        id: Some(row.get("id")?),
        run: row.get("run")?,
        conversation: row.get("conversation")?,
        agent: row.get("agent")?,
        what,
        at_ms: row.get("at_ms")?,
    })
}
