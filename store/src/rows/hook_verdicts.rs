//! What hooks said of runs. A verdict is written with what it decides, and never changes.

use crate::capability::MayReply;
use crate::engine::sql::{Connection, params};
use crate::rows::leases::leased_run;

use crate::contract::LeaseOutcome;
use crate::registry::{OF_RUN, StoreTable, account, text};
use crate::{Reader, Store, StoreError};
use vocative_core::hooking::{HookDecision, HookPoint, HookVerdict};
use vocative_core::ids::{LeaseToken, RunId};

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[account(
    "hook_verdicts",
    text(&["reason", "changed"], &[], &["point", "hook", "verdict"]),
    OF_RUN,
)];

impl Reader {
    /// What hooks said of a run, in the order of its steps. A verdict at a point that this build does not know is
    /// left out.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn hook_verdicts(&self, run: RunId) -> Result<Vec<HookVerdict>, StoreError> {
        self.read(move |connection| verdicts_of(connection, run))
            .await
    }
}

impl Reader {
    /// Whether all that a run answers may be meant for somebody else than its agent.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn is_unsurely_addressed(&self, run: RunId) -> Result<bool, StoreError> {
        self.read(move |connection| {
            let found: Option<bool> = connection
                .prepare_cached(
                    "SELECT min(g.is_unsure) AS is_unsure
                     FROM run_triggers g JOIN runs r ON r.id = g.run_id WHERE r.uuid = ?1",
                )?
                .query_row([run], |row| row.get("is_unsure"))?;
            Ok(found.unwrap_or(false))
        })
        .await
    }
}

impl<C: MayReply> Store<C> {
    /// Keeps what hooks said of a leased run before its model is asked. What was kept before stays.
    ///
    /// # Errors
    /// Storage refuses; then the model is not to be asked.
    pub async fn keep_verdicts(
        &self,
        run: RunId,
        token: LeaseToken,
        verdicts: Vec<HookVerdict>,
        now_ms: i64,
    ) -> Result<LeaseOutcome, StoreError> {
        self.write_riding(move |connection| {
            let Some(leased) = leased_run(connection, run, token)? else {
                return Ok(LeaseOutcome::Stale);
            };
            keep_verdicts_txn(connection, leased.row, &verdicts, now_ms)?;
            Ok(LeaseOutcome::Written)
        })
        .await
    }
}

/// Keeps verdicts with what they decide. The first of a hook at a point holds.
pub(crate) fn keep_verdicts_txn(
    connection: &Connection,
    run_row: i64,
    verdicts: &[HookVerdict],
    now_ms: i64,
) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO hook_verdicts (run_id, point, step, n, hook, verdict, reason, changed, removed, at_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT DO NOTHING",
    )?;
    for of in verdicts {
        statement.execute(params![
            run_row,
            of.point.name(),
            of.step,
            of.n,
            of.hook,
            of.verdict.name(),
            of.verdict.reason(),
            of.verdict.changed(),
            of.verdict.count(),
            now_ms
        ])?;
    }
    Ok(())
}

/// Forgets what hooks said of a model's answer that another answer replaces.
pub(crate) fn forget_verdicts_txn(
    connection: &Connection,
    run_row: i64,
    step: u32,
) -> Result<(), StoreError> {
    connection
        .prepare_cached("DELETE FROM hook_verdicts WHERE run_id = ?1 AND point = ?2 AND step = ?3")?
        .execute(params![run_row, HookPoint::AfterModel.name(), step])?;
    Ok(())
}

fn verdicts_of(connection: &Connection, run: RunId) -> Result<Vec<HookVerdict>, StoreError> {
    let row: i64 = connection
        .prepare_cached("SELECT coalesce((SELECT id FROM runs WHERE uuid = ?1), -1) AS id")?
        .query_row([run], |row| row.get("id"))?;
    verdicts_of_row(connection, row)
}

/// What hooks said of the run of a row.
pub(crate) fn verdicts_of_row(
    connection: &Connection,
    run_row: i64,
) -> Result<Vec<HookVerdict>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT point, step, n, hook, verdict, reason, changed, removed FROM hook_verdicts
         WHERE run_id = ?1 ORDER BY step = 0, step, at_ms, n, point, hook",
    )?;
    let verdicts = statement.query_map([run_row], |row| {
        let (point, verdict): (String, String) = (row.get("point")?, row.get("verdict")?);
        let Some(point) = HookPoint::from_name(&point) else {
            return Ok(None);
        };
        let (reason, changed) = (row.get("reason")?, row.get("changed")?);
        Ok(Some(HookVerdict {
            point,
            step: row.get("step")?,
            n: row.get("n")?,
            hook: row.get("hook")?,
            verdict: HookDecision::stored(&verdict, reason, changed, row.get("removed")?),
        }))
    })?;
    let verdicts: Vec<_> = verdicts.collect::<crate::engine::sql::Result<_>>()?;
    Ok(verdicts.into_iter().flatten().collect())
}
