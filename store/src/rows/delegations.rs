//! Tasks that runs give other agents, as rows: how they are read back, and what the runs that they started used.

use crate::engine::sql::{Connection, OptionalExtension, Row, params};

use crate::registry::{ErasureRule, Fate, OF_RUN, Restore, StoreTable, account, text};
use crate::rows::columns::count_from;
use crate::{Reader, StoreError};
use vocative_core::delegating::{ChildUse, Share, StoredTask, TaskState};
use vocative_core::ids::{AgentName, RunId, ToolCallId};
use vocative_core::running::budget::{RunBudget, RunUse};

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[account(
    "delegations",
    text(&["task", "result"], &[], &["asked_by", "state"]),
    Fate {
        person: ErasureRule::Emptied,
        chat: ErasureRule::Emptied,
        message: ErasureRule::Emptied,
        restore: Restore::Held,
        ..OF_RUN
    },
)];

macro_rules! select_tasks {
    ($tail:literal) => {
        concat!(
            "SELECT p.uuid AS parent, d.asked_by, t.step, c.uuid AS child, c.agent, d.child_id, d.task, d.sees_room,
                    d.tokens_max, d.cost_max_micros, d.worked_max_ms, d.calls_max, d.state, d.result, d.asked_at_ms,
                    d.ended_at_ms
             FROM delegations d JOIN runs p ON p.id = d.parent_id JOIN runs c ON c.id = d.child_id
             LEFT JOIN tool_calls t ON t.id = d.call_id ",
            $tail
        )
    };
}

/// The runs below a run, as `below (id)`. Parameter 1 = its row.
macro_rules! with_below {
    ($tail:literal) => {
        concat!(
            "WITH RECURSIVE below (id) AS (
                 SELECT id FROM runs WHERE parent_run_id = ?1
                 UNION ALL
                 SELECT r.id FROM below JOIN runs r ON r.parent_run_id = below.id) ",
            $tail
        )
    };
}

impl Reader {
    /// The task that a call gave; `None` if it gave none.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn task_of_call(&self, call: ToolCallId) -> Result<Option<StoredTask>, StoreError> {
        self.read(move |connection| {
            let found = connection
                .prepare_cached(select_tasks!("WHERE t.uuid = ?1"))?
                .query_row([call], task_row)
                .optional()?;
            found.map(|row| with_sources(connection, row)).transpose()
        })
        .await
    }

    /// The task that a run works on; `None` if it answers people.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn task_of_run(&self, run: RunId) -> Result<Option<StoredTask>, StoreError> {
        self.read(move |connection| task_of_run(connection, run))
            .await
    }

    /// What the runs that a run started have used, and the tool calls that were made for them.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn children_use(&self, run: RunId) -> Result<(RunUse, u32), StoreError> {
        self.read(move |connection| {
            let row: Option<i64> = connection
                .prepare_cached("SELECT id FROM runs WHERE uuid = ?1")?
                .query_row([run], |row| row.get("id"))
                .optional()?;
            match row {
                Some(row) => used_below(connection, row),
                None => Ok((RunUse::default(), 0)),
            }
        })
        .await
    }
}

/// The task that a run works on; `None` if it answers people.
pub(crate) fn task_of_run(
    connection: &Connection,
    run: RunId,
) -> Result<Option<StoredTask>, StoreError> {
    let found = connection
        .prepare_cached(select_tasks!("WHERE c.uuid = ?1"))?
        .query_row([run], task_row)
        .optional()?;
    found.map(|row| with_sources(connection, row)).transpose()
}

/// The tasks that a run gave, in the order of its calls.
pub(crate) fn tasks_by_run(
    connection: &Connection,
    run: RunId,
) -> Result<Vec<StoredTask>, StoreError> {
    let mut statement =
        connection.prepare_cached(select_tasks!("WHERE p.uuid = ?1 ORDER BY t.id, d.id"))?;
    let rows = statement.query_map([run], task_row)?;
    let rows: Vec<(i64, StoredTask)> = rows.collect::<crate::engine::sql::Result<_>>()?;
    Ok(rows.into_iter().map(|(_, task)| task).collect())
}

fn task_row(row: &Row<'_>) -> crate::engine::sql::Result<(i64, StoredTask)> {
    let state: String = row.get("state")?;
    let task = StoredTask {
        parent: row.get("parent")?,
        asked_by: row.get("asked_by")?,
        step: row.get("step")?,
        child: row.get("child")?,
        agent: row.get("agent")?,
        task: row.get("task")?,
        sees_room: row.get("sees_room")?,
        share: share_of(row)?,
        // A state that can't be read counts as failed: there is no answer.
        state: TaskState::from_name(&state).unwrap_or(TaskState::Failed),
        result: row.get("result")?,
        sources: Vec::new(),
        asked_at_ms: row.get("asked_at_ms")?,
        ended_at_ms: row.get("ended_at_ms")?,
    };
    Ok((row.get("child_id")?, task))
}

fn share_of(row: &Row<'_>) -> crate::engine::sql::Result<Share> {
    Ok(Share {
        budget: RunBudget {
            tokens: count_from(row.get("tokens_max")?),
            cost_micros: count_from(row.get("cost_max_micros")?),
            worked_ms: count_from(row.get("worked_max_ms")?),
        },
        calls: row.get("calls_max")?,
    })
}

fn with_sources(
    connection: &Connection,
    (child, mut task): (i64, StoredTask),
) -> Result<StoredTask, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT t.uuid FROM run_sources s JOIN turns t ON t.seq = s.source_seq
         WHERE s.run_id = ?1 ORDER BY s.source_seq",
    )?;
    let sources = statement.query_map([child], |row| row.get("uuid"))?;
    task.sources = sources.collect::<crate::engine::sql::Result<_>>()?;
    Ok(task)
}

/// The run that people asked for, above a run: itself, if they asked for it. Its triggers, askers and firing are
/// those of all runs below it.
pub(crate) fn asked_run(connection: &Connection, run_row: i64) -> Result<i64, StoreError> {
    Ok(connection
        .prepare_cached(
            "WITH RECURSIVE above (id, parent) AS (
                 SELECT id, parent_run_id FROM runs WHERE id = ?1
                 UNION
                 SELECT r.id, r.parent_run_id FROM above JOIN runs r ON r.id = above.parent)
             SELECT coalesce((SELECT id FROM above WHERE parent IS NULL), ?1) AS id",
        )?
        .query_row([run_row], |row| row.get("id"))?)
}

/// What the runs below a run have used, and the tool calls that were made for them.
pub(crate) fn used_below(
    connection: &Connection,
    run_row: i64,
) -> Result<(RunUse, u32), StoreError> {
    Ok(connection
        .prepare_cached(with_below!(
            "SELECT coalesce(sum(r.spent_tokens), 0) AS tokens, coalesce(sum(r.cost_micros), 0) AS cost_micros,
                    coalesce(sum(r.worked_ms), 0) AS worked_ms,
                    coalesce(sum((SELECT count(*) FROM tool_calls t WHERE t.run_id = r.id AND t.attempts > 0)), 0) AS calls
             FROM below JOIN runs r ON r.id = below.id"
        ))?
        .query_row([run_row], used)?)
}

/// What a run has used itself, and the tool calls that were made for it.
pub(crate) fn used_by(connection: &Connection, run_row: i64) -> Result<(RunUse, u32), StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT r.spent_tokens AS tokens, r.cost_micros, r.worked_ms,
                    (SELECT count(*) FROM tool_calls t WHERE t.run_id = r.id AND t.attempts > 0) AS calls
             FROM runs r WHERE r.id = ?1",
        )?
        .query_row([run_row], used)?)
}

fn used(row: &Row<'_>) -> crate::engine::sql::Result<(RunUse, u32)> {
    let used = RunUse {
        tokens: count_from(row.get("tokens")?),
        cost_micros: count_from(row.get("cost_micros")?),
        worked_ms: count_from(row.get("worked_ms")?),
    };
    Ok((used, row.get("calls")?))
}

/// What each of the runs that a run started has used.
pub(crate) fn children_of(
    connection: &Connection,
    run_row: i64,
) -> Result<Vec<ChildUse>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT child_id, state, tokens_max, cost_max_micros, worked_max_ms, calls_max
         FROM delegations WHERE parent_id = ?1 ORDER BY id",
    )?;
    let rows = statement.query_map(params![run_row], |row| {
        let state: String = row.get("state")?;
        let child = ChildUse {
            is_over: state != TaskState::Open.name(),
            share: share_of(row)?,
            ..ChildUse::default()
        };
        Ok((row.get("child_id")?, child))
    })?;
    let rows: Vec<(i64, ChildUse)> = rows.collect::<crate::engine::sql::Result<_>>()?;
    let child = |(row, child): (i64, ChildUse)| {
        let (own, own_calls) = used_by(connection, row)?;
        let (below, calls_below) = used_below(connection, row)?;
        Ok(ChildUse {
            used: own.plus(below),
            calls: own_calls.saturating_add(calls_below),
            ..child
        })
    };
    rows.into_iter().map(child).collect()
}

/// The agents from the run that people asked for down to a run.
pub(crate) fn path_of(connection: &Connection, run_row: i64) -> Result<Vec<AgentName>, StoreError> {
    let mut statement = connection.prepare_cached(
        "WITH RECURSIVE above (id, parent, agent, up) AS (
             SELECT id, parent_run_id, agent, 0 FROM runs WHERE id = ?1
             UNION ALL
             SELECT r.id, r.parent_run_id, r.agent, above.up + 1 FROM above JOIN runs r ON r.id = above.parent)
         SELECT agent FROM above ORDER BY up DESC",
    )?;
    let path = statement.query_map([run_row], |row| row.get("agent"))?;
    Ok(path.collect::<crate::engine::sql::Result<_>>()?)
}

/// The agents that asked, from the run that people asked for down to a run; for a run of a network, the one of its
/// agents.
pub(crate) fn askers_of(
    connection: &Connection,
    run_row: i64,
) -> Result<Vec<AgentName>, StoreError> {
    let mut statement = connection.prepare_cached(
        "WITH RECURSIVE above (id, parent, up) AS (
             SELECT id, parent_run_id, 0 FROM runs WHERE id = ?1
             UNION ALL
             SELECT r.id, r.parent_run_id, above.up + 1 FROM above JOIN runs r ON r.id = above.parent)
         SELECT d.asked_by FROM above JOIN delegations d ON d.child_id = above.id ORDER BY above.up DESC",
    )?;
    let askers = statement.query_map([run_row], |row| row.get("asked_by"))?;
    Ok(askers.collect::<crate::engine::sql::Result<_>>()?)
}
