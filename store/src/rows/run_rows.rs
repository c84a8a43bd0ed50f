//! Runs as rows: how one is read back with its triggers, and lists of them.

use crate::engine::sql::{Connection, Row, params};

use crate::new_id::NewId as _;
use crate::registry::{Fate, MergeRule, Restore, STATE, StoreTable, account, text};
use crate::rows::columns::{conversation_row_id, count_from, limit_of, missing, unknown_state};
use crate::rows::delegations::asked_run;
use crate::rows::hook_verdicts::verdicts_of_row;
use crate::rows::run_taints::taints_before;
use crate::rows::steps::models_of;
use crate::{Reader, StoreError};
use vocative_core::ids::{
    AgentName, ChatId, ConversationId, OwnerId, ParticipantId, RunId, Seq, TurnId,
};
use vocative_core::run::{Run, RunState, Usage};

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[
    account(
        "run_triggers",
        text(&[], &[], &["agent"]),
        Fate {
            merge: MergeRule::FollowsTurn,
            ..STATE
        },
    )
    .follows(&["turn_seq"]),
    account(
        "runs",
        text(
            &[],
            &[],
            &[
                "agent",
                "asked_model",
                "state",
                "reason",
                "waiting_for",
                "stop_cause",
            ],
        ),
        Fate {
            merge: MergeRule::Moves,
            restore: Restore::Held,
            ..STATE
        },
    ),
];

macro_rules! select_runs {
    ($tail:literal) => {
        concat!(
            "SELECT r.id, r.uuid, c.uuid AS conversation, r.agent, r.state, r.reason, r.not_before_ms, r.owner,
                    r.lease_until_ms, r.waiting_until_ms, r.as_of_seq, r.first_claimed_at_ms, r.attempt,
                    r.created_at_ms, r.prompt_tokens, r.cache_read_tokens, r.cache_write_tokens,
                    r.completion_tokens, r.cost_micros
             FROM runs r JOIN conversations c ON c.id = r.conversation_id ",
            $tail
        )
    };
}

impl Reader {
    /// Runs that wait for a person, newest first.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn held_runs(&self, limit: usize) -> Result<Vec<Run>, StoreError> {
        self.read(move |connection| held_runs(connection, limit))
            .await
    }

    /// A run.
    ///
    /// # Errors
    /// `NotFound` if there is no such run.
    pub async fn run(&self, id: RunId) -> Result<Run, StoreError> {
        self.read(move |connection| run_by_id(connection, id)).await
    }

    /// Runs of a conversation that are older than one of them, newest first.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation, or no such run.
    pub async fn runs_before(
        &self,
        conversation: ConversationId,
        before: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<Run>, StoreError> {
        self.read(move |connection| {
            let conversation_row = conversation_row_id(connection, conversation)?;
            let before = row_before(connection, before)?;
            let mut statement = connection.prepare_cached(select_runs!(
                "WHERE r.conversation_id = ?1 AND r.id < ?2 ORDER BY r.id DESC LIMIT ?3"
            ))?;
            let page = (conversation_row, before, limit_of(limit));
            let rows = statement.query_map(page, run_from_row)?;
            with_triggers(connection, rows.collect::<crate::engine::sql::Result<_>>()?)
        })
        .await
    }

    /// Runs of all conversations that are older than one of them, newest first.
    ///
    /// # Errors
    /// `NotFound` if there is no such run.
    pub async fn all_runs_before(
        &self,
        before: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<Run>, StoreError> {
        self.read(move |connection| {
            let before = row_before(connection, before)?;
            let mut statement = connection
                .prepare_cached(select_runs!("WHERE r.id < ?1 ORDER BY r.id DESC LIMIT ?2"))?;
            let rows = statement.query_map((before, limit_of(limit)), run_from_row)?;
            with_triggers(connection, rows.collect::<crate::engine::sql::Result<_>>()?)
        })
        .await
    }

    /// Runs of a conversation, newest first.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation.
    pub async fn runs(
        &self,
        conversation: ConversationId,
        limit: usize,
    ) -> Result<Vec<Run>, StoreError> {
        self.read(move |connection| runs(connection, conversation, limit))
            .await
    }
}

/// The row before which a page of runs begins.
fn row_before(connection: &Connection, before: Option<RunId>) -> Result<i64, StoreError> {
    match before {
        Some(run) => connection
            .prepare_cached("SELECT id FROM runs WHERE uuid = ?1")?
            .query_row([run], |row| row.get("id"))
            .map_err(|error| missing(error, || format!("run {run}"))),
        None => Ok(i64::MAX),
    }
}

/// A run to be queued.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewRun<'a> {
    /// The conversation's row.
    pub(crate) conversation: i64,
    /// Its chat.
    pub(crate) chat: ChatId,
    /// Who is to answer.
    pub(crate) agent: &'a AgentName,
    /// When it is due, in milliseconds since the Unix epoch.
    pub(crate) not_before_ms: i64,
    /// Whose message triggers it.
    pub(crate) person: Option<ParticipantId>,
    /// When it is queued.
    pub(crate) now_ms: i64,
}

/// Queues a run: it ages by the run clock from here on. Where its conversation is merging into another one, it is
/// of that one.
pub(crate) fn queue_run_txn(
    connection: &Connection,
    new: &NewRun<'_>,
) -> Result<(i64, RunId), StoreError> {
    let id = RunId::generate();
    connection
        .prepare_cached(
            "INSERT INTO runs (uuid, conversation_id, chat_id, agent, state, not_before_ms,
                    person_participant_id, created_at_ms, asked_at_run_ms)
             VALUES (?1, coalesce((SELECT target_id FROM conversation_merges WHERE source_id = ?2), ?2),
                     ?3, ?4, 'queued', ?5, ?6, ?7, (SELECT elapsed_ms FROM run_clock))",
        )?
        .execute(params![
            id,
            new.conversation,
            new.chat,
            new.agent,
            new.not_before_ms,
            new.person,
            new.now_ms
        ])?;
    Ok((connection.last_insert_rowid(), id))
}

/// A run in the place of another one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Successor {
    /// The other one's row.
    pub(crate) of: i64,
    /// When it is due, in milliseconds since the Unix epoch.
    pub(crate) not_before_ms: i64,
    /// Whose message triggers it; `None` = who triggered the other one.
    pub(crate) person: Option<ParticipantId>,
    /// When it is queued.
    pub(crate) now_ms: i64,
}

/// Queues a run in the place of another one, in its conversation and for its agent.
pub(crate) fn succeed_run_txn(
    connection: &Connection,
    successor: &Successor,
) -> Result<(i64, RunId), StoreError> {
    let (conversation, chat, agent, person): (_, _, AgentName, _) = connection
        .prepare_cached(
            "SELECT conversation_id, chat_id, agent, person_participant_id FROM runs WHERE id = ?1",
        )?
        .query_row([successor.of], |row| {
            Ok((
                row.get("conversation_id")?,
                row.get("chat_id")?,
                row.get("agent")?,
                row.get("person_participant_id")?,
            ))
        })?;
    let new = NewRun {
        conversation,
        chat,
        agent: &agent,
        not_before_ms: successor.not_before_ms,
        person: successor.person.or(person),
        now_ms: successor.now_ms,
    };
    let (run, id) = queue_run_txn(connection, &new)?;
    connection
        .prepare_cached(
            "UPDATE runs SET asked_model = (SELECT asked_model FROM runs WHERE id = ?2) WHERE id = ?1",
        )?
        .execute((run, successor.of))?;
    Ok((run, id))
}

/// Sets the model that the runs of a question ask, if they have not begun, or wait: the newest choice holds. A
/// question that names no model changes nothing where other questions are answered with it.
pub(crate) fn ask_model_txn(
    connection: &Connection,
    turn_seq: i64,
    model: Option<&str>,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE runs SET asked_model = ?2
             WHERE state IN ('queued', 'waiting', 'held')
               AND id IN (SELECT run_id FROM run_triggers WHERE turn_seq = ?1)
               AND (?2 IS NOT NULL
                    OR NOT EXISTS (SELECT 1 FROM run_triggers o WHERE o.run_id = runs.id AND o.turn_seq <> ?1))",
        )?
        .execute((turn_seq, model))?;
    Ok(())
}

/// The run of an id.
pub(crate) fn run_by_id(connection: &Connection, id: RunId) -> Result<Run, StoreError> {
    let row = connection
        .prepare_cached("SELECT id FROM runs WHERE uuid = ?1")?
        .query_row([id], |row| row.get("id"))
        .map_err(|error| missing(error, || format!("run {id}")))?;
    run_by_row(connection, row)
}

/// The run of a row.
pub(crate) fn run_by_row(connection: &Connection, row: i64) -> Result<Run, StoreError> {
    let (row, mut run) = connection
        .prepare_cached(select_runs!("WHERE r.id = ?1"))?
        .query_row([row], run_from_row)?;
    run.triggers = triggers(connection, row)?;
    run.taints = taints_before(connection, row, u32::MAX)?;
    run.models = models_of(connection, row)?;
    run.hooks = verdicts_of_row(connection, row)?;
    Ok(run)
}

pub(crate) fn runs(
    connection: &Connection,
    conversation: ConversationId,
    limit: usize,
) -> Result<Vec<Run>, StoreError> {
    let conversation_row = conversation_row_id(connection, conversation)?;
    let mut statement = connection.prepare_cached(select_runs!(
        "WHERE r.conversation_id = ?1 ORDER BY r.id DESC LIMIT ?2"
    ))?;
    let rows = statement.query_map((conversation_row, limit_of(limit)), run_from_row)?;
    with_triggers(connection, rows.collect::<crate::engine::sql::Result<_>>()?)
}

/// Runs of a conversation that came to be at or after the first time and before the second, oldest
/// first.
pub(crate) fn runs_created(
    connection: &Connection,
    conversation_row: i64,
    (from_ms, before_ms): (i64, i64),
) -> Result<Vec<Run>, StoreError> {
    let mut statement = connection.prepare_cached(select_runs!(
        "WHERE r.chat_id = (SELECT chat_id FROM conversations WHERE id = ?1)
           AND r.created_at_ms >= ?2 AND r.created_at_ms < ?3 AND r.conversation_id = ?1
         ORDER BY r.created_at_ms, r.id"
    ))?;
    let rows = statement.query_map((conversation_row, from_ms, before_ms), run_from_row)?;
    with_triggers(connection, rows.collect::<crate::engine::sql::Result<_>>()?)
}

fn held_runs(connection: &Connection, limit: usize) -> Result<Vec<Run>, StoreError> {
    let mut statement = connection.prepare_cached(select_runs!(
        "WHERE r.state = 'held' ORDER BY r.id DESC LIMIT ?1"
    ))?;
    let rows = statement.query_map([limit_of(limit)], run_from_row)?;
    with_triggers(connection, rows.collect::<crate::engine::sql::Result<_>>()?)
}

/// Runs that a turn triggered, oldest first.
pub(crate) fn runs_of_turn(connection: &Connection, seq: Seq) -> Result<Vec<Run>, StoreError> {
    let mut statement = connection.prepare_cached(select_runs!(
        "WHERE r.id IN (SELECT run_id FROM run_triggers WHERE turn_seq = ?1) ORDER BY r.id"
    ))?;
    let rows = statement.query_map([seq], run_from_row)?;
    with_triggers(connection, rows.collect::<crate::engine::sql::Result<_>>()?)
}

fn with_triggers(connection: &Connection, rows: Vec<(i64, Run)>) -> Result<Vec<Run>, StoreError> {
    rows.into_iter()
        .map(|(row, mut run)| {
            run.triggers = triggers(connection, row)?;
            run.taints = taints_before(connection, row, u32::MAX)?;
            run.models = models_of(connection, row)?;
            run.hooks = verdicts_of_row(connection, row)?;
            Ok(run)
        })
        .collect()
}

/// The triggers of a run, oldest first; of one that another run started, those of the run that people asked for.
fn triggers(connection: &Connection, row: i64) -> Result<Vec<TurnId>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT t.uuid FROM run_triggers g JOIN turns t ON t.seq = g.turn_seq
         WHERE g.run_id = ?1 ORDER BY t.sent_at_ms, t.ordinal, t.seq",
    )?;
    let triggers = statement.query_map([asked_run(connection, row)?], |row| row.get("uuid"))?;
    Ok(triggers.collect::<crate::engine::sql::Result<_>>()?)
}

fn run_from_row(row: &Row<'_>) -> crate::engine::sql::Result<(i64, Run)> {
    let run = Run {
        id: row.get("uuid")?,
        conversation: row.get("conversation")?,
        agent: row.get("agent")?,
        state: run_state(row)?,
        as_of_seq: row.get("as_of_seq")?,
        first_claimed_at_ms: row.get("first_claimed_at_ms")?,
        attempt: row.get("attempt")?,
        triggers: Vec::new(),
        taints: Vec::new(),
        hooks: Vec::new(),
        models: Vec::new(),
        created_at_ms: row.get("created_at_ms")?,
        usage: Usage {
            prompt_tokens: count_from(row.get("prompt_tokens")?),
            cache_read_tokens: count_from(row.get("cache_read_tokens")?),
            cache_write_tokens: count_from(row.get("cache_write_tokens")?),
            completion_tokens: count_from(row.get("completion_tokens")?),
        },
        cost_micros: count_from(row.get("cost_micros")?),
    };
    Ok((row.get("id")?, run))
}

fn run_state(row: &Row<'_>) -> crate::engine::sql::Result<RunState> {
    let state: String = row.get("state")?;
    let reason: Option<String> = row.get("reason")?;
    Ok(match state.as_str() {
        "waiting" => RunState::Waiting {
            until_ms: row.get("waiting_until_ms")?,
        },
        "queued" => RunState::Queued {
            not_before_ms: row.get("not_before_ms")?,
        },
        "leased" => RunState::Leased {
            owner: row
                .get::<_, Option<OwnerId>>("owner")?
                .unwrap_or(OwnerId(uuid::Uuid::nil())),
            until_ms: row.get::<_, Option<i64>>("lease_until_ms")?.unwrap_or(0),
        },
        "held" => RunState::Held {
            reason: reason.unwrap_or_default(),
        },
        "done" => RunState::Done,
        "cancelled" | "superseded" => RunState::Cancelled,
        // `failed` and `dead` were both given up; one that is set aside is listed as such elsewhere.
        "dead" | "failed" | "quarantined" => RunState::Dead {
            reason: reason.unwrap_or_default(),
        },
        other => return Err(unknown_state("run", other)),
    })
}
