//! Queues events for hooks: that a run has ended, or that an approval was decided.

use crate::StoreError;
use crate::engine::sql::{Connection, params};
use crate::new_id::NewId as _;
use crate::rows::jobs::enqueue_txn;
use vocative_core::approving::ApprovalState;
use vocative_core::hooking::HookPoint;
use vocative_core::ids::{AccountId, TellingId};
use vocative_core::job::Job;
use vocative_core::run::RunStage;

/// Queues an event for an agent's hooks when its run has ended.
pub(crate) fn tell_run_end_txn(
    connection: &Connection,
    run_row: i64,
    stage: RunStage,
    now_ms: i64,
) -> Result<(), StoreError> {
    let of = EndedRun {
        point: HookPoint::RunEnded,
        run_row,
        approval_row: None,
        outcome: stage.name(),
    };
    tell_txn(connection, &of, now_ms)
}

/// Queues an event for the hooks of the agent whose call an approval was about, when it is no longer open.
pub(crate) fn tell_decision_txn(
    connection: &Connection,
    approval_row: i64,
    run_row: i64,
    state: ApprovalState,
    now_ms: i64,
) -> Result<(), StoreError> {
    let of = EndedRun {
        point: HookPoint::ApprovalDecided,
        run_row,
        approval_row: Some(approval_row),
        outcome: state.name(),
    };
    tell_txn(connection, &of, now_ms)
}

/// The run that an event is about.
struct EndedRun<'a> {
    point: HookPoint,
    run_row: i64,
    approval_row: Option<i64>,
    outcome: &'a str,
}

fn tell_txn(connection: &Connection, of: &EndedRun<'_>, now_ms: i64) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT h.hook, c.account_id
         FROM runs r JOIN telling_hooks h ON h.agent = r.agent JOIN chats c ON c.id = r.chat_id
         WHERE r.id = ?1 AND h.point = ?2",
    )?;
    let hooks = statement.query_map(params![of.run_row, of.point.name()], |row| {
        Ok((row.get("hook")?, row.get("account_id")?))
    })?;
    let hooks: Vec<(String, AccountId)> = hooks.collect::<crate::engine::sql::Result<_>>()?;
    for (hook, account) in hooks {
        let telling = TellingId::generate();
        connection
            .prepare_cached(
                "INSERT INTO tellings (uuid, hook, point, run_id, approval_id, outcome, at_ms)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute(params![
                telling,
                hook,
                of.point.name(),
                of.run_row,
                of.approval_row,
                of.outcome,
                now_ms
            ])?;
        enqueue_txn(
            connection,
            &Job::TellHook { telling },
            Some(account),
            now_ms,
        )?;
    }
    Ok(())
}
