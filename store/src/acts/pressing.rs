//! Actions on cards: a press, a sent form, an operator's decision, or expiry.

use crate::acts::changing::change_txn;
use crate::acts::deciding::{
    AnsweredPress, ApprovalDecision, decide_txn, expire_txn, known_name, show_outcome_txn,
};
use crate::acts::questions::{expire_questions_txn, press_question_txn};
use crate::capability::{MayCapture, MayReply};
use crate::engine::sql::Connection;
use vocative_contract::outbound::Part;

use crate::contract::{
    ApprovalFacts, NewPress, OperatorDecided, OperatorDecision, Pressed, PressedButton, SentForm,
};
use crate::rows::approvals::{ApprovalRow, approval_of, card_of, not_found, parameters_of};
use crate::rows::participants::{HeardSender, upsert_participant_txn};
use crate::rows::places::find_chat;
use crate::rows::raw::{is_kept_non_message, keep_non_message_txn};
use crate::{Store, StoreError};
use vocative_core::approving::{
    ApprovalState, DecidedBy, DecidedVia, PressVerdict, StoredApproval,
};
use vocative_core::ids::GrantId;
use vocative_core::tool_call::CallDigest;
use vocative_core::turn::ParticipantKind;

impl<C: MayReply> Store<C> {
    /// Ends approvals and questions whose time is over, and wakes their runs. Returns how many.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn expire_approvals(&self, now_ms: i64) -> Result<usize, StoreError> {
        self.write(move |connection| {
            let approvals = expire_txn(connection, now_ms)?;
            Ok(approvals + expire_questions_txn(connection, now_ms)?)
        })
        .await
    }
}

impl<C: MayCapture> Store<C> {
    /// Captures a press of a card's button, once, with its effect, in one transaction.
    ///
    /// # Errors
    /// Storage refuses; then nothing is written.
    pub async fn capture_press(&self, press: NewPress) -> Result<Pressed, StoreError> {
        self.write(move |connection| press_txn(connection, press))
            .await
    }
}

impl Store {
    /// An operator decides.
    ///
    /// # Errors
    /// `NotFound` if there is no such approval.
    pub async fn decide_approval(
        &self,
        decision: OperatorDecision,
    ) -> Result<OperatorDecided, StoreError> {
        self.write(move |connection| decide_by_operator_txn(connection, decision))
            .await
    }

    /// An operator takes a grant back. Returns whether it held.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn revoke_grant(
        &self,
        grant: GrantId,
        operator: String,
        now_ms: i64,
    ) -> Result<bool, StoreError> {
        self.write(move |connection| {
            let revoked = connection
                .prepare_cached(
                    "UPDATE approval_grants SET revoked_at_ms = ?2, revoked_by = ?3
                     WHERE uuid = ?1 AND revoked_at_ms IS NULL",
                )?
                .execute((grant, now_ms, operator))?;
            Ok(revoked > 0)
        })
        .await
    }
}

fn press_txn(connection: &Connection, mut press: NewPress) -> Result<Pressed, StoreError> {
    if let Some(PressedButton::Form(form)) = press.pressed {
        press.pressed = None;
        return form_txn(connection, &press, form);
    }
    let event = &press.event;
    let (account, now_ms) = (event.account, event.received_at_ms);
    if press.is_kept && !keep_non_message_txn(connection, event)? {
        return Ok(Pressed::default());
    }
    let to_presser = AnsweredPress {
        account,
        interaction: event.id.clone(),
        person: press.sender.id.clone(),
        place: press.place.clone(),
        now_ms,
    };
    let nothing = || {
        to_presser.answer_txn(connection, &Part::plain(""))?;
        Ok(Pressed::default())
    };
    let pressed = match press.pressed.take() {
        Some(PressedButton::Card(pressed)) => pressed,
        Some(PressedButton::Question(pressed)) => {
            return press_question_txn(connection, &press, pressed, &to_presser);
        }
        Some(PressedButton::Form(_)) | None => return nothing(),
    };
    let found = approval_of(connection, pressed.button.approval)?;
    let Some(found) = found.filter(|found| found.approval.account == account) else {
        return nothing();
    };
    let facts = facts_of(connection, &found, &press)?;
    let presser_name = facts.presser_name.clone();
    let answer = (pressed.judge)(facts);
    let state = match answer.verdict {
        _ if !press.is_kept => None,
        PressVerdict::Approve { .. } => Some(ApprovalState::Approved),
        PressVerdict::Deny => Some(ApprovalState::Denied),
        PressVerdict::ShowAll | PressVerdict::Change | PressVerdict::Tell(_) => None,
    };
    if let Some(state) = state {
        let has_grant = matches!(answer.verdict, PressVerdict::Approve { has_grant: true });
        let is_known = presser_name.is_some();
        let decision = ApprovalDecision {
            has_grant,
            ..by_presser_txn(connection, &press, is_known, state)?
        };
        decide_txn(connection, &found, &decision)?;
        if let Some(outcome) = &answer.outcome {
            show_outcome_txn(connection, found.row, outcome, now_ms)?;
        }
    }
    to_presser.answer_txn(connection, &answer.answer)?;
    Ok(Pressed {
        is_decided: state.is_some(),
        opens_form: answer.verdict == PressVerdict::Change && press.is_kept,
        form_problem: None,
    })
}

/// Changes a card's call by a sent form. A refused form is not stored, so that it is judged anew if sent again.
fn form_txn(
    connection: &Connection,
    press: &NewPress,
    form: SentForm,
) -> Result<Pressed, StoreError> {
    let refused = |problem: &str| {
        Ok(Pressed {
            form_problem: Some(problem.to_owned()),
            ..Pressed::default()
        })
    };
    let event = &press.event;
    if is_kept_non_message(connection, event)? {
        return Ok(Pressed::default());
    }
    let found = approval_of(connection, form.button.approval)?;
    let found = found.filter(|found| found.approval.account == event.account);
    let Some(found) = found.filter(|_| press.is_kept) else {
        return refused(&form.not_valid);
    };
    let facts = facts_of(connection, &found, press)?;
    let is_known = facts.presser_name.is_some();
    let change = match (form.judge)(facts) {
        Ok(change) => change,
        Err(problem) => return refused(&problem),
    };
    let decision = by_presser_txn(connection, press, is_known, ApprovalState::Changed)?;
    if !change_txn(connection, &found, &decision, &change.arguments)? {
        return refused(&form.not_valid);
    }
    keep_non_message_txn(connection, event)?;
    show_outcome_txn(connection, found.row, &change.outcome, event.received_at_ms)?;
    Ok(Pressed {
        is_decided: true,
        ..Pressed::default()
    })
}

/// The decision in the name of the person who pressed.
fn by_presser_txn(
    connection: &Connection,
    press: &NewPress,
    is_known: bool,
    state: ApprovalState,
) -> Result<ApprovalDecision, StoreError> {
    let (account, now_ms) = (press.event.account, press.event.received_at_ms);
    // A press may give its person another name than messages do.
    let heard = HeardSender {
        kind: ParticipantKind::User,
        platform_id: &press.sender.id,
        display_name: press.sender.display_name.as_deref().filter(|_| !is_known),
        username: press.sender.username.as_deref(),
        is_bot: None,
    };
    Ok(ApprovalDecision {
        state,
        by: Some(upsert_participant_txn(connection, account, heard, now_ms)?),
        operator: None,
        people: Vec::new(),
        via: Some(DecidedVia::Card),
        note: None,
        has_grant: false,
        now_ms,
    })
}

/// What is known of a press when it is judged.
fn facts_of(
    connection: &Connection,
    found: &ApprovalRow,
    press: &NewPress,
) -> Result<ApprovalFacts, StoreError> {
    let account = press.event.account;
    let chat = find_chat(connection, account, &press.place.chat)?;
    let card = card_of(connection, found.row)?;
    let mut requesters = found.approval.requesters.iter();
    Ok(ApprovalFacts {
        approval: found.approval.clone(),
        is_card_known: card.as_ref().is_none_or(|card| card.message_id.is_some()),
        is_in_card: card.is_some_and(|card| {
            chat.is_some_and(|chat| chat.id == card.chat)
                && card.message_id.as_deref() == Some(&press.message_id)
        }),
        is_requester: requesters.any(|person| person.id == press.sender.id),
        presser_name: known_name(connection, account, &press.sender.id)?,
        parameters: parameters_of(connection, found.row)?,
    })
}

fn decide_by_operator_txn(
    connection: &Connection,
    decision: OperatorDecision,
) -> Result<OperatorDecided, StoreError> {
    let found = approval_of(connection, decision.approval)?;
    let found = found.ok_or_else(|| not_found(decision.approval))?;
    let approval = &found.approval;
    if approval.state != ApprovalState::Open || approval.expiry.is_over(decision.now_ms) {
        return Ok(OperatorDecided::Over(found.approval));
    }
    if let Some(digest) = &decision.digest
        && *digest != hex(&approval.digest)
    {
        return Ok(OperatorDecided::OtherCall(found.approval));
    }
    let is_requester = approval
        .requesters
        .iter()
        .any(|person| person.is_called(&decision.operator) || decision.people.contains(&person.id));
    if approval.approvers.are_four_eyes() && is_requester {
        return Ok(OperatorDecided::IsRequester(found.approval));
    }
    let is_changer = approval
        .changed_by
        .iter()
        .any(|changer| changer.may_be_operator(&decision.operator, &decision.people));
    let is_allowed = decision.is_approved && decision.changed.is_none();
    if is_allowed && approval.approvers.are_four_eyes() && is_changer {
        return Ok(OperatorDecided::IsChanger(found.approval));
    }
    let state = match decision.is_approved {
        true if decision.changed.is_some() => ApprovalState::Changed,
        true => ApprovalState::Approved,
        false => ApprovalState::Denied,
    };
    let decided = ApprovalDecision {
        state,
        by: None,
        operator: Some(decision.operator.clone()),
        people: decision.people.clone(),
        via: Some(decision.via),
        note: decision.note.clone(),
        has_grant: is_allowed && decision.has_grant,
        now_ms: decision.now_ms,
    };
    match &decision.changed {
        Some(arguments) if state == ApprovalState::Changed => {
            change_txn(connection, &found, &decided, arguments)?
        }
        _ => decide_txn(connection, &found, &decided)?,
    };
    let by = DecidedBy {
        name: Some(decision.operator),
        at_ms: decision.now_ms,
        note: decision.note,
    };
    let decided = StoredApproval {
        state,
        decided: by,
        via: Some(decision.via),
        ..found.approval
    };
    let outcome = (decision.outcome)(&decided, &decided.decided);
    show_outcome_txn(connection, found.row, &outcome, decision.now_ms)?;
    Ok(OperatorDecided::Done(decided))
}

/// A digest in hexadecimal.
fn hex(digest: &CallDigest) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
