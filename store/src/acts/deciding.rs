//! What becomes of approvals: one transaction decides, by a press, by an operator or by time, with what takes the card's
//! place, and wakes the run. `core/approving` decides what a press does.

use crate::capability::{MayCapture, MayReply};
use crate::engine::sql::{Connection, OptionalExtension, params};
use vocative_contract::outbound::{Operation, Part, Target};

use crate::acts::changing::change_txn;
use crate::acts::questions::{expire_questions_txn, press_question_txn};
use crate::contract::{
    ApprovalFacts, NewPress, OperatorDecided, OperatorDecision, Pressed, PressedButton, SentForm,
};
use crate::new_id::NewId as _;
use crate::rows::approvals::{
    ApprovalRow, CardRow, approval_of, card_of, not_found, parameters_of,
};
use crate::rows::outbox_rows::{NewPosts, append_post_txn, json};
use crate::rows::participants::{HeardSender, upsert_participant_txn};
use crate::rows::places::find_chat;
use crate::rows::raw::{is_kept_non_message, keep_non_message_txn};
use crate::rows::tellings::tell_decision_txn;
use crate::{Store, StoreError};
use vocative_core::approving::{
    ApprovalState, DecidedBy, Expiry, GRANT_MS, PressVerdict, StoredApproval, Via,
};
use vocative_core::ids::{AccountId, GrantId, OutboxId, ParticipantId};
use vocative_core::tool_call::CallDigest;
use vocative_core::turn::ParticipantKind;

/// How many approvals one transaction lets expire.
const EXPIRED_AT_ONCE: i64 = 100;

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
    /// Takes a press of a card's button: once, with what it does, in one transaction.
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
    let to_presser = Answered {
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
        let decision = Decision {
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

/// A form changes the call that its card is of, or nothing of it is kept: sent once more it is judged anew.
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

/// The decision of who pressed.
fn by_presser_txn(
    connection: &Connection,
    press: &NewPress,
    is_known: bool,
    state: ApprovalState,
) -> Result<Decision, StoreError> {
    let (account, now_ms) = (press.event.account, press.event.received_at_ms);
    // A press may name its person otherwise than messages do.
    let heard = HeardSender {
        kind: ParticipantKind::User,
        platform_id: &press.sender.id,
        display_name: press.sender.display_name.as_deref().filter(|_| !is_known),
        username: press.sender.username.as_deref(),
        is_bot: None,
    };
    Ok(Decision {
        state,
        by: Some(upsert_participant_txn(connection, account, heard, now_ms)?),
        operator: None,
        people: Vec::new(),
        via: Some(Via::Card),
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

/// The name that people see of somebody.
pub(crate) fn known_name(
    connection: &Connection,
    account: AccountId,
    person: &str,
) -> Result<Option<String>, StoreError> {
    let name = connection
        .prepare_cached(
            "SELECT display_name FROM participants
             WHERE account_id = ?1 AND kind = ?2 AND platform_id = ?3",
        )?
        .query_row((account, ParticipantKind::User, person), |row| {
            row.get("display_name")
        })
        .optional()?;
    Ok(name.flatten())
}

/// Whom a press is answered.
pub(crate) struct Answered {
    account: AccountId,
    interaction: String,
    person: String,
    place: Target,
    now_ms: i64,
}

impl Answered {
    pub(crate) fn answer_txn(
        &self,
        connection: &Connection,
        part: &Part,
    ) -> Result<(), StoreError> {
        let Some(chat) = find_chat(connection, self.account, &self.place.chat)? else {
            return Ok(());
        };
        let posts = NewPosts {
            account: self.account,
            chat: chat.id,
            turn: None,
            run_row: None,
            operation: &Operation::Answer {
                interaction: self.interaction.clone(),
                person: self.person.clone(),
            },
            target: &self.place,
            parts: std::slice::from_ref(part),
            now_ms: self.now_ms,
        };
        append_post_txn(connection, &posts, 0, part).map(drop)
    }
}

/// What was decided.
pub(crate) struct Decision {
    pub(crate) state: ApprovalState,
    pub(crate) by: Option<ParticipantId>,
    pub(crate) operator: Option<String>,
    /// The platform's ids of the people who are that operator.
    pub(crate) people: Vec<String>,
    pub(crate) via: Option<Via>,
    pub(crate) note: Option<String>,
    pub(crate) has_grant: bool,
    pub(crate) now_ms: i64,
}

/// Decides an open approval; of two decisions the first one counts. Returns whether this is it.
pub(crate) fn decide_txn(
    connection: &Connection,
    found: &ApprovalRow,
    decision: &Decision,
) -> Result<bool, StoreError> {
    let is_first = connection
        .prepare_cached(
            "UPDATE approvals SET state = ?2, decided_at_ms = ?3, decided_by = ?4, operator = ?5, via = ?6,
                    note = ?7, operator_people = ?8, outcomes = ''
             WHERE id = ?1 AND state = 'open'",
        )?
        .execute(params![
            found.row,
            decision.state,
            decision.now_ms,
            decision.by,
            decision.operator,
            decision.via,
            decision.note,
            (!decision.people.is_empty()).then(|| json(&decision.people)),
        ])?;
    if is_first == 0 {
        return Ok(false);
    }
    if decision.state == ApprovalState::Approved {
        connection
            .prepare_cached(
                "UPDATE tool_calls SET state = 'ready' WHERE state = 'waiting'
                   AND id = (SELECT call_id FROM approvals WHERE id = ?1)",
            )?
            .execute([found.row])?;
        grant_txn(connection, found, decision)?;
    }
    tell_decision_txn(
        connection,
        found.row,
        found.run_row,
        decision.state,
        decision.now_ms,
    )?;
    wake_txn(connection, found.run_row, decision.now_ms)?;
    Ok(true)
}

/// Makes the standing consent that comes with an approval: of exactly this call for a day, or of the tool where its
/// first call is asked for. Where several people asked for the run together there is none.
fn grant_txn(
    connection: &Connection,
    found: &ApprovalRow,
    decision: &Decision,
) -> Result<(), StoreError> {
    if found.approval.requesters.len() != 1 {
        return Ok(());
    }
    let until_ms = decision.now_ms + GRANT_MS;
    let exact = decision.has_grant.then_some(until_ms);
    for (is_exact, until_ms) in [(true, exact), (false, None)] {
        if is_exact && !decision.has_grant {
            continue;
        }
        connection
            .prepare_cached(
                "INSERT INTO approval_grants (uuid, chat_id, participant_id, agent, tool, definition, digest,
                        granted_by, operator, granted_at_ms, until_ms)
                 SELECT ?2, r.chat_id, r.person_participant_id, r.agent, a.tool, a.definition, iif(?3, a.digest, NULL),
                        ?4, ?5, ?6, ?7
                 FROM approvals a JOIN runs r ON r.id = a.run_id
                 WHERE a.id = ?1 AND r.person_participant_id IS NOT NULL AND (?3 OR a.asking = 'first')",
            )?
            .execute(params![
                found.row,
                GrantId::generate(),
                is_exact,
                decision.by,
                decision.operator,
                decision.now_ms,
                until_ms,
            ])?;
    }
    Ok(())
}

/// Puts what became of an approval in its card's place: as another text of a card that is not sent yet, else by an
/// edit that goes behind it.
pub(crate) fn show_outcome_txn(
    connection: &Connection,
    approval_row: i64,
    outcome: &Part,
    now_ms: i64,
) -> Result<(), StoreError> {
    let Some(card) = card_of(connection, approval_row)? else {
        return Ok(());
    };
    if let Some(id) = replace_card_txn(connection, card, outcome, now_ms)? {
        connection
            .prepare_cached(
                "UPDATE approvals SET outcome_post = (SELECT id FROM outbox WHERE uuid = ?2) WHERE id = ?1",
            )?
            .execute((approval_row, id))?;
    }
    Ok(())
}

/// Puts another post in a card's place; returns the entry that does it, unless the card itself was not sent yet and is
/// that post.
pub(crate) fn replace_card_txn(
    connection: &Connection,
    card: CardRow,
    outcome: &Part,
    now_ms: i64,
) -> Result<Option<OutboxId>, StoreError> {
    if card.is_unsent {
        connection
            .prepare_cached("UPDATE outbox SET payload = ?2 WHERE id = ?1")?
            .execute((card.post_row, json(outcome)))?;
        return Ok(None);
    }
    let (target, run_row): (String, Option<i64>) = connection
        .prepare_cached("SELECT target, run_id FROM outbox WHERE id = ?1")?
        .query_row([card.post_row], |row| {
            Ok((row.get("target")?, row.get("run_id")?))
        })?;
    let Ok(target) = serde_json::from_str::<Target>(&target) else {
        return Ok(None);
    };
    let edit = NewPosts {
        account: card.account,
        chat: card.chat,
        turn: None,
        run_row,
        operation: &Operation::Edit {
            message_id: card.message_id.unwrap_or_default(),
        },
        target: &target,
        parts: std::slice::from_ref(outcome),
        now_ms,
    };
    let id = append_post_txn(connection, &edit, 0, outcome)?;
    connection
        .prepare_cached("UPDATE outbox SET edit_of = ?2 WHERE uuid = ?1")?
        .execute((id, card.post_row))?;
    Ok(Some(id))
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
    let decided = Decision {
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

/// A digest as people read it.
fn hex(digest: &CallDigest) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn expire_txn(connection: &Connection, now_ms: i64) -> Result<usize, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT id, asked_at_ms, expires_at_ms FROM approvals
         WHERE state = 'open' AND expires_at_ms IS NOT NULL AND (expires_at_ms <= ?1 OR asked_at_ms > ?1)
         ORDER BY expires_at_ms LIMIT ?2",
    )?;
    let rows = statement.query_map((now_ms, EXPIRED_AT_ONCE), |row| {
        let expiry = Expiry {
            asked_at_ms: row.get("asked_at_ms")?,
            expires_at_ms: row.get("expires_at_ms")?,
        };
        Ok((row.get("id")?, expiry))
    })?;
    let found: Vec<(i64, Expiry)> = rows.collect::<crate::engine::sql::Result<_>>()?;
    let over: Vec<i64> = found
        .into_iter()
        .filter(|(_, expiry)| expiry.is_over(now_ms))
        .map(|(row, _)| row)
        .collect();
    for row in &over {
        end_txn(connection, *row, ApprovalState::Expired, now_ms)?;
    }
    Ok(over.len())
}

/// Ends an open approval that no person decided, with its card, and wakes its run.
fn end_txn(
    connection: &Connection,
    row: i64,
    state: ApprovalState,
    now_ms: i64,
) -> Result<(), StoreError> {
    let (outcomes, run_row): (String, i64) = connection
        .prepare_cached("SELECT outcomes, run_id FROM approvals WHERE id = ?1")?
        .query_row([row], |found| {
            Ok((found.get("outcomes")?, found.get("run_id")?))
        })?;
    connection
        .prepare_cached(
            "UPDATE approvals SET state = ?2, decided_at_ms = ?3, outcomes = ''
             WHERE id = ?1 AND state = 'open'",
        )?
        .execute((row, state, now_ms))?;
    let outcomes: Vec<Part> = serde_json::from_str(&outcomes).unwrap_or_default();
    let which = usize::from(state != ApprovalState::Expired);
    // A card whose outcome can't be read is left; a press of its buttons is told how it stands.
    if let Some(outcome) = outcomes.get(which) {
        show_outcome_txn(connection, row, outcome, now_ms)?;
    }
    tell_decision_txn(connection, row, run_row, state, now_ms)?;
    wake_txn(connection, run_row, now_ms)
}

/// Cancels what a run still asks people for, with the cards.
pub(crate) fn cancel_approvals_txn(
    connection: &Connection,
    run_row: i64,
    now_ms: i64,
) -> Result<(), StoreError> {
    let open: Vec<i64> = connection
        .prepare_cached("SELECT id FROM approvals WHERE run_id = ?1 AND state = 'open'")?
        .query_map([run_row], |row| row.get("id"))?
        .collect::<crate::engine::sql::Result<_>>()?;
    for row in open {
        end_txn(connection, row, ApprovalState::Cancelled, now_ms)?;
    }
    Ok(())
}

/// Queues a run again that waits for people or agents, once all is decided and answered. It keeps the read bound of its first claim.
pub(crate) fn wake_txn(
    connection: &Connection,
    run_row: i64,
    now_ms: i64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE runs SET state = 'queued', waiting_for = NULL, waiting_until_ms = NULL, not_before_ms = ?2,
                    asked_at_run_ms = asked_at_run_ms + (SELECT elapsed_ms FROM run_clock)
             WHERE id = ?1 AND state = 'waiting'
               AND NOT EXISTS (SELECT 1 FROM approvals a WHERE a.run_id = ?1 AND a.state = 'open')
               AND NOT EXISTS (SELECT 1 FROM questions q WHERE q.run_id = ?1 AND q.state = 'open')
               AND NOT EXISTS (SELECT 1 FROM delegations d WHERE d.parent_id = ?1 AND d.state = 'open')",
        )?
        .execute((run_row, now_ms))?;
    Ok(())
}
