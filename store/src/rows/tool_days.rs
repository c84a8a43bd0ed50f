//! How often tools are called in a day, by whom, and what came of it.

use crate::contract::ToolCounts;
use crate::engine::sql::{Connection, OptionalExtension, params};

use crate::StoreError;
use crate::registry::{STATE, StoreTable, account, text};
use crate::rows::columns::{count_from, day_start_ms};
use vocative_core::slots::Asker;
use vocative_core::tool_call::CallState;

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[account("tool_days", text(&[], &[], &["tool"]), STATE)];

/// How often which tool was called today.
pub(crate) fn tool_counts(
    connection: &Connection,
    now_ms: i64,
) -> Result<Vec<ToolCounts>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT tool, sum(begun) AS begun, sum(done) AS done, sum(failed) AS failed,
                        sum(unknown) AS unknown, sum(denied) AS denied
                 FROM tool_days WHERE day_start_ms = ?1 GROUP BY tool ORDER BY tool",
    )?;
    let counts = statement.query_map([day_start_ms(now_ms)], |row| {
        Ok(ToolCounts {
            tool: row.get("tool")?,
            begun: count_from(row.get("begun")?),
            done: count_from(row.get("done")?),
            failed: count_from(row.get("failed")?),
            unknown: count_from(row.get("unknown")?),
            denied: count_from(row.get("denied")?),
        })
    })?;
    Ok(counts.collect::<crate::engine::sql::Result<_>>()?)
}

/// How often a tool was begun today for a person.
pub(crate) fn begun_today(
    connection: &Connection,
    asker: Asker,
    tool: &str,
    now_ms: i64,
) -> Result<u32, StoreError> {
    let begun: Option<u32> = connection
        .prepare_cached(
            "SELECT begun FROM tool_days
             WHERE account_id = ?1 AND day_start_ms = ?2 AND tool = ?3
               AND coalesce(participant_id, 0) = coalesce(?4, 0)",
        )?
        .query_row(
            params![asker.account, day_start_ms(now_ms), tool, asker.person],
            |row| row.get("begun"),
        )
        .optional()?;
    Ok(begun.unwrap_or(0))
}

/// Counts a call that is begun.
pub(crate) fn count_begun_txn(
    connection: &Connection,
    asker: Asker,
    tool: &str,
    now_ms: i64,
) -> Result<(), StoreError> {
    count_txn(connection, asker, tool, "begun", now_ms)
}

/// Counts what came of a call.
pub(crate) fn count_over_txn(
    connection: &Connection,
    asker: Asker,
    tool: &str,
    state: CallState,
    now_ms: i64,
) -> Result<(), StoreError> {
    match state {
        CallState::Done | CallState::Failed | CallState::Unknown | CallState::Denied => {
            count_txn(connection, asker, tool, state.name(), now_ms)
        }
        CallState::Waiting | CallState::Ready | CallState::Running => Ok(()),
    }
}

fn count_txn(
    connection: &Connection,
    asker: Asker,
    tool: &str,
    column: &'static str,
    now_ms: i64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(&format!(
            "INSERT INTO tool_days (account_id, day_start_ms, tool, participant_id, {column})
             VALUES (?1, ?2, ?3, ?4, 1)
             ON CONFLICT (account_id, day_start_ms, tool, coalesce(participant_id, 0))
             DO UPDATE SET {column} = {column} + 1"
        ))?
        .execute(params![
            asker.account,
            day_start_ms(now_ms),
            tool,
            asker.person
        ])?;
    Ok(())
}
