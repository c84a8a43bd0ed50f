//! Decisions about approvals: by a press, by an operator or by time. One transaction stores the decision, replaces the
//! card and wakes the run. `core/approving` decides what a press does; `pressing` takes the actions of people and
//! operators.

use crate::engine::sql::{Connection, OptionalExtension, params};
use vocative_contract::outbound::{Operation, Part, Target};

use crate::StoreError;
use crate::acts::telling::tell_decision_txn;
use crate::new_id::NewId as _;
use crate::rows::approvals::{ApprovalRow, CardRow, card_of};
use crate::rows::outbox_rows::{NewPosts, append_post_txn, json};
use crate::rows::places::find_chat;
use vocative_core::approving::{ApprovalDeadline, ApprovalState, DecidedVia, GRANT_MS};
use vocative_core::ids::{AccountId, GrantId, OutboxId, ParticipantId};
use vocative_core::turn::ParticipantKind;

/// The most approvals that expire in one transaction.
const EXPIRED_AT_ONCE: i64 = 100;

/// The name under which a participant is shown to people.
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

/// The press that is to be answered.
pub(crate) struct AnsweredPress {
    pub(crate) account: AccountId,
    pub(crate) interaction: String,
    pub(crate) person: String,
    pub(crate) place: Target,
    pub(crate) now_ms: i64,
}

impl AnsweredPress {
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
pub(crate) struct ApprovalDecision {
    pub(crate) state: ApprovalState,
    pub(crate) by: Option<ParticipantId>,
    pub(crate) operator: Option<String>,
    /// The platform's ids of the people who are that operator.
    pub(crate) people: Vec<String>,
    pub(crate) via: Option<DecidedVia>,
    pub(crate) note: Option<String>,
    pub(crate) has_grant: bool,
    pub(crate) now_ms: i64,
}

/// Decides an open approval; of two decisions the first one counts. Returns whether this one counted.
pub(crate) fn decide_txn(
    connection: &Connection,
    found: &ApprovalRow,
    decision: &ApprovalDecision,
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

/// Makes the grant that comes with an approval: for exactly this call for a day, or for the tool if only its first
/// call is asked about. There is no grant if several people asked for the run together.
fn grant_txn(
    connection: &Connection,
    found: &ApprovalRow,
    decision: &ApprovalDecision,
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

/// Replaces an approval's card with its outcome: by changing the text of a card that is not sent yet, else by an
/// edit that is queued behind it.
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

/// Replaces a card with another post; returns the entry of the edit, or nothing if the card was not sent yet and its
/// own entry was changed.
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

/// Lets approvals expire whose time is over; returns how many.
pub(crate) fn expire_txn(connection: &Connection, now_ms: i64) -> Result<usize, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT id, asked_at_ms, expires_at_ms FROM approvals
         WHERE state = 'open' AND expires_at_ms IS NOT NULL AND (expires_at_ms <= ?1 OR asked_at_ms > ?1)
         ORDER BY expires_at_ms LIMIT ?2",
    )?;
    let rows = statement.query_map((now_ms, EXPIRED_AT_ONCE), |row| {
        let expiry = ApprovalDeadline {
            asked_at_ms: row.get("asked_at_ms")?,
            expires_at_ms: row.get("expires_at_ms")?,
        };
        Ok((row.get("id")?, expiry))
    })?;
    let found: Vec<(i64, ApprovalDeadline)> = rows.collect::<crate::engine::sql::Result<_>>()?;
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
    // A card whose outcome text can't be decoded stays; a press of its buttons is answered with the state.
    if let Some(outcome) = outcomes.get(which) {
        show_outcome_txn(connection, row, outcome, now_ms)?;
    }
    tell_decision_txn(connection, row, run_row, state, now_ms)?;
    wake_txn(connection, run_row, now_ms)
}

/// Cancels the open approvals of a run, with their cards.
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

/// Queues a run again that waits for people or agents, once all is decided and answered. It keeps the read bound of
/// its first claim.
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
