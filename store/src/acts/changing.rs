//! Changing the arguments of a call that waits for people: its approval ends as changed, the call gets the new
//! arguments, and its run is woken to ask about it again, in one transaction.
//!
//! Until the run has read the new arguments, the store does not know what the call does (`CHANGED_DIGEST`): no
//! approval, grant or button matches it, so it can't be made. Its hooks are asked again, too.

use crate::StoreError;
use crate::acts::deciding::{ApprovalDecision, decide_txn, show_outcome_txn};
use crate::contract::{CallToBegin, NewMessage};
use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::approvals::{ApprovalRow, approval_of};
use crate::rows::places::ChatRow;
use vocative_contract::crash;
use vocative_core::addressing::{ChangedCall, WaitingCall};
use vocative_core::approving::{ApprovalState, DecidedVia};
use vocative_core::hooking::HookPoint;
use vocative_core::ids::{ApprovalId, ParticipantId};
use vocative_core::tool_call::{CHANGED_DIGEST, CallState};

use super::deciding::known_name;

/// The call that waits on the card that a new message replies to.
pub(crate) fn waiting_call(
    connection: &Connection,
    message: &NewMessage,
    chat: &ChatRow,
) -> Result<Option<WaitingCall>, StoreError> {
    let Some(reply_to) = message.reply_to.as_deref().filter(|_| !message.is_edit) else {
        return Ok(None);
    };
    let found: Option<(ApprovalId, String)> = connection
        .prepare_cached(
            "SELECT a.uuid, a.parameters FROM approvals a INDEXED BY approvals_open
             JOIN outbox o ON o.id = a.card_post
             WHERE a.state = 'open' AND a.parameters IS NOT NULL AND o.chat_id = ?1 AND o.message_id = ?2
             LIMIT 1",
        )?
        .query_row((chat.id, reply_to), |row| {
            Ok((row.get("uuid")?, row.get("parameters")?))
        })
        .optional()?;
    let Some((id, parameters)) = found else {
        return Ok(None);
    };
    let Some(ApprovalRow { approval, .. }) = approval_of(connection, id)? else {
        return Ok(None);
    };
    let mut requesters = approval.requesters.iter();
    Ok(Some(WaitingCall {
        is_requester: requesters.any(|person| person.id == message.sender.id),
        sender_name: known_name(connection, message.account, &message.sender.id)?,
        approval,
        parameters,
    }))
}

/// Changes a call by a captured reply, if the call still waits.
pub(crate) fn change_by_reply_txn(
    connection: &Connection,
    change: &ChangedCall,
    person: ParticipantId,
    now_ms: i64,
) -> Result<(), StoreError> {
    let Some(found) = approval_of(connection, change.approval)? else {
        return Ok(());
    };
    let decision = ApprovalDecision {
        state: ApprovalState::Changed,
        by: Some(person),
        operator: None,
        people: Vec::new(),
        via: Some(DecidedVia::Card),
        note: None,
        has_grant: false,
        now_ms,
    };
    if change_txn(connection, &found, &decision, &change.arguments)? {
        show_outcome_txn(connection, found.row, &change.outcome, now_ms)?;
    }
    Ok(())
}

/// Changes a call that waits. Returns whether it still did.
pub(crate) fn change_txn(
    connection: &Connection,
    found: &ApprovalRow,
    decision: &ApprovalDecision,
    arguments: &str,
) -> Result<bool, StoreError> {
    if !decide_txn(connection, found, decision)? {
        return Ok(false);
    }
    connection
        .prepare_cached(
            "UPDATE tool_calls SET arguments = ?2, digest = ?3, state = ?4 WHERE state = 'waiting'
               AND id = (SELECT call_id FROM approvals WHERE id = ?1)",
        )?
        .execute(params![
            found.row,
            arguments,
            &CHANGED_DIGEST[..],
            CallState::Ready
        ])?;
    // The verdicts of hooks were about the old arguments.
    connection
        .prepare_cached(
            "DELETE FROM hook_verdicts WHERE run_id = ?2 AND point = ?3 AND (step, n) IN (
                 SELECT t.step, t.n FROM approvals a JOIN tool_calls t ON t.id = a.call_id WHERE a.id = ?1)",
        )?
        .execute(params![
            found.row,
            found.run_row,
            HookPoint::BeforeTool.name()
        ])?;
    // The run is woken to ask again, even if other calls of it still wait.
    connection
        .prepare_cached(
            "UPDATE runs SET state = 'queued', waiting_for = NULL, waiting_until_ms = NULL, not_before_ms = ?2,
                    asked_at_run_ms = asked_at_run_ms + (SELECT elapsed_ms FROM run_clock)
             WHERE id = ?1 AND state = 'waiting'",
        )?
        .execute((found.run_row, decision.now_ms))?;
    crash::point("change.before-commit");
    Ok(true)
}

/// Stores what a changed call does, once its run has read it. Returns `false` if the worker read the call before it
/// was changed, and so has to read it again.
pub(crate) fn know_changed_txn(
    connection: &Connection,
    call_row: i64,
    call: &CallToBegin,
) -> Result<bool, StoreError> {
    if !call.is_changed {
        return Ok(false);
    }
    crash::point("change.before-asked-anew");
    connection
        .prepare_cached("UPDATE tool_calls SET digest = ?2 WHERE id = ?1")?
        .execute(params![call_row, &call.digest[..]])?;
    Ok(true)
}
