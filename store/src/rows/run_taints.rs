//! What runs have read that their askers did not write, and what they have used of their budgets.

use crate::capability::MayReply;
use crate::engine::sql::{Connection, params};
use crate::rows::leases::leased_run;

use crate::registry::{OF_RUN, StoreTable, account, text};
use crate::rows::columns::{count_from, stored_count};
use crate::rows::delegations::asked_run;
use crate::{Reader, Store, StoreError};
use vocative_core::approving::{AfterUntrusted, ApprovalRule, OutsideSource, Taint, ask_after};
use vocative_core::ids::{LeaseToken, RunId};
use vocative_core::running::budget::RunUse;
use vocative_core::tool_call::CallRule;

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[account(
    "run_taints",
    text(&[], &[], &["source", "tool"]),
    OF_RUN,
)];

impl Reader {
    /// What a run has read that its askers did not write, in the order in which it did.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn run_taints(&self, run: RunId) -> Result<Vec<Taint>, StoreError> {
        self.read(move |connection| {
            let row: i64 = connection
                .prepare_cached("SELECT coalesce((SELECT id FROM runs WHERE uuid = ?1), -1) AS id")?
                .query_row([run], |row| row.get("id"))?;
            taints_before(connection, row, u32::MAX)
        })
        .await
    }

    /// What a run has used of its budget, earlier attempts included.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn run_use(&self, run: RunId) -> Result<RunUse, StoreError> {
        self.read(move |connection| {
            let used = connection
                .prepare_cached(
                    "SELECT coalesce(max(spent_tokens), 0) AS tokens, coalesce(max(cost_micros), 0) AS cost_micros,
                            coalesce(max(worked_ms), 0) AS worked_ms FROM runs WHERE uuid = ?1",
                )?
                .query_row([run], |row| {
                    Ok(RunUse {
                        tokens: count_from(row.get("tokens")?),
                        cost_micros: count_from(row.get("cost_micros")?),
                        worked_ms: count_from(row.get("worked_ms")?),
                    })
                })?;
            Ok(used)
        })
        .await
    }
}

impl<C: MayReply> Store<C> {
    /// Marks a leased run: its prompt shows what its askers did not write. Returns whether the lease is held still.
    ///
    /// # Errors
    /// Storage refuses; then the model is not to be asked.
    pub async fn taint_run(
        &self,
        run: RunId,
        token: LeaseToken,
        sources: Vec<OutsideSource>,
        now_ms: i64,
    ) -> Result<bool, StoreError> {
        self.write_riding(move |connection| {
            let Some(leased) = leased_run(connection, run, token)? else {
                return Ok(false);
            };
            for source in sources {
                taint_txn(connection, leased.row, &Taint::of_prompt(source), now_ms)?;
            }
            Ok(true)
        })
        .await
    }

    /// Keeps how long a leased run was worked on so far, all attempts together, in milliseconds. It never shrinks.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn keep_worked_time(
        &self,
        run: RunId,
        token: LeaseToken,
        worked_ms: u64,
    ) -> Result<(), StoreError> {
        self.write_riding(move |connection| {
            connection
                .prepare_cached(
                    "UPDATE runs SET worked_ms = max(worked_ms, ?3) WHERE uuid = ?1 AND token = ?2",
                )?
                .execute(params![run, token, stored_count(worked_ms)])?;
            Ok(())
        })
        .await
    }
}

/// Marks a run.
pub(crate) fn taint_txn(
    connection: &Connection,
    run_row: i64,
    taint: &Taint,
    now_ms: i64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO run_taints (run_id, step, source, tool, at_ms) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            run_row,
            taint.step,
            taint.source.name(),
            taint.tool,
            now_ms
        ])?;
    Ok(())
}

/// Whether one of these turns was said by somebody who did not ask for the run.
pub(crate) fn are_of_others(
    connection: &Connection,
    run_row: i64,
    turns: &[i64],
) -> Result<bool, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT participant_id NOT IN (
                SELECT t.participant_id FROM run_triggers g JOIN turns t ON t.seq = g.turn_seq WHERE g.run_id = ?1
                UNION SELECT person_participant_id FROM runs WHERE id = ?1 AND person_participant_id IS NOT NULL
            ) AS is_of_other
         FROM turns WHERE seq = ?2",
    )?;
    let asked = asked_run(connection, run_row)?;
    for turn in turns {
        if statement.query_row((asked, turn), |row| row.get("is_of_other"))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What a run had read when its model asked for the calls of a step.
pub(crate) fn taints_before(
    connection: &Connection,
    run_row: i64,
    step: u32,
) -> Result<Vec<Taint>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT step, source, tool FROM run_taints WHERE run_id = ?1 AND step < ?2 ORDER BY step, source, tool",
    )?;
    let taints = statement.query_map((run_row, step), |row| {
        let source: String = row.get("source")?;
        Ok(Taint {
            step: row.get("step")?,
            // A source that only a later version knows is some text of others all the same.
            source: OutsideSource::from_name(&source).unwrap_or(OutsideSource::Tool),
            tool: row.get("tool")?,
        })
    })?;
    Ok(taints.collect::<crate::engine::sql::Result<_>>()?)
}

/// Whether a call of a step needs consent, given what its run had read by then.
pub(crate) fn asking_after(
    connection: &Connection,
    (run_row, step): (i64, u32),
    asking: ApprovalRule,
    rule: CallRule,
    set: AfterUntrusted,
) -> Result<ApprovalRule, StoreError> {
    let has_read: bool = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM run_taints WHERE run_id = ?1 AND step < ?2) AS has_read",
        )?
        .query_row((run_row, step), |row| row.get("has_read"))?;
    Ok(ask_after(asking, rule, has_read, set))
}
