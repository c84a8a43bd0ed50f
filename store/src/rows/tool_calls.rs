//! Tool calls as rows: how they are read back.

use crate::engine::sql::{Connection, Row};

use crate::registry::{ErasureRule, Fate, OF_RUN, StoreTable, account, text};
use crate::rows::delegations::asked_run;
use crate::{Reader, StoreError};
use vocative_core::ids::RunId;
use vocative_core::tool_call::StoredCall;

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[account(
    "tool_calls",
    text(
        &["arguments", "result"],
        &[],
        &["call_id", "tool", "rule", "state", "refusal"],
    ),
    Fate {
        person: ErasureRule::Emptied,
        chat: ErasureRule::Emptied,
        message: ErasureRule::Emptied,
        ..OF_RUN
    },
)];

macro_rules! select_calls {
    ($tail:literal) => {
        concat!(
            "SELECT t.uuid, t.step, t.n, t.call_id, t.tool, t.arguments, t.digest, t.rule, t.state, t.refusal,
                    t.attempts, t.result, t.started_at_ms, t.finished_at_ms
             FROM tool_calls t ",
            $tail
        )
    };
}

impl Reader {
    /// The calls of a run in the model's order, but for those of forgotten steps.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn tool_calls(&self, run: RunId) -> Result<Vec<StoredCall>, StoreError> {
        self.read(move |connection| calls_of_run(connection, run))
            .await
    }

    /// The platform's ids of everybody whose messages a run answers, or the one that people asked for above it.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn run_askers(&self, run: RunId) -> Result<Vec<String>, StoreError> {
        self.read(move |connection| {
            let row: i64 = connection
                .prepare_cached("SELECT coalesce((SELECT id FROM runs WHERE uuid = ?1), -1) AS id")?
                .query_row([run], |row| row.get("id"))?;
            let mut statement = connection.prepare_cached(
                "SELECT DISTINCT p.platform_id FROM run_triggers g
                 JOIN turns t ON t.seq = g.turn_seq JOIN participants p ON p.id = t.participant_id
                 WHERE g.run_id = ?1 ORDER BY p.platform_id",
            )?;
            let asked = asked_run(connection, row)?;
            let people = statement.query_map([asked], |row| row.get("platform_id"))?;
            Ok(people.collect::<crate::engine::sql::Result<_>>()?)
        })
        .await
    }
}

/// The calls of a run in the model's order, but for those of forgotten steps.
pub(crate) fn calls_of_run(
    connection: &Connection,
    run: RunId,
) -> Result<Vec<StoredCall>, StoreError> {
    let mut statement = connection.prepare_cached(select_calls!(
        "WHERE t.run_id = (SELECT id FROM runs WHERE uuid = ?1) AND t.step IS NOT NULL
         ORDER BY t.step, t.n"
    ))?;
    let calls = statement.query_map([run], call_from_row)?;
    Ok(calls.collect::<crate::engine::sql::Result<_>>()?)
}

/// The calls of a step in their order.
pub(crate) fn calls_of_step(
    connection: &Connection,
    run_row: i64,
    step: u32,
) -> Result<Vec<StoredCall>, StoreError> {
    let mut statement = connection.prepare_cached(select_calls!(
        "WHERE t.run_id = ?1 AND t.step = ?2 ORDER BY t.n"
    ))?;
    let calls = statement.query_map((run_row, step), call_from_row)?;
    Ok(calls.collect::<crate::engine::sql::Result<_>>()?)
}

fn call_from_row(row: &Row<'_>) -> crate::engine::sql::Result<StoredCall> {
    Ok(StoredCall {
        id: row.get("uuid")?,
        step: row.get("step")?,
        n: row.get("n")?,
        call_id: row.get("call_id")?,
        tool: row.get("tool")?,
        arguments: row.get("arguments")?,
        digest: row.get("digest")?,
        rule: row.get("rule")?,
        state: row.get("state")?,
        refusal: row.get("refusal")?,
        attempts: row.get("attempts")?,
        result: row.get("result")?,
        started_at_ms: row.get("started_at_ms")?,
        finished_at_ms: row.get("finished_at_ms")?,
    })
}
