//! Approvals: a call is stored as waiting, with its card, in one transaction, and its run waits without a lease.
//! `deciding` has the decisions.

use crate::acts::reply_room::room_of;
use crate::capability::MayReply;
use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::leases::leased_run;
use crate::rows::run_taints::asking_after;
use vocative_contract::crash;
use vocative_contract::outbound::Operation;

use crate::acts::ending::{EndOfRun, end_run_txn};
use crate::acts::placeholder::retract_txn;
use crate::contract::{AskOutcome, ConsentSought, NewApproval, Parked};
use crate::rows::approvals::{consent_of_call, requesters, was_changed};
use crate::rows::delegations::asked_run;
use crate::rows::outbox_rows::{NewPosts, append_post_txn, json};
use crate::rows::run_events::forget_live_text_txn;
use crate::{Store, StoreError};
use vocative_core::approving::{
    ApprovalRule, Consent, DecidedBy, GRANT_MS, OPEN_MAX_CHAT, OPEN_MAX_PERSON,
};
use vocative_core::ids::{LeaseToken, RunId};
use vocative_core::tool_call::{CHANGED_DIGEST, CallState};

/// How far in the future a grant may have been written, in milliseconds: small clock corrections are tolerated.
const AHEAD_MAX_MS: i64 = 60_000;

impl<C: MayReply> Store<C> {
    /// Asks people about a call: it waits, and its card is committed with that.
    ///
    /// # Errors
    /// Storage refuses; then nothing is written.
    pub async fn ask_approval(&self, new: NewApproval) -> Result<AskOutcome, StoreError> {
        crash::point("approval.before-commit");
        let asked = self
            .write(move |connection| ask_txn(connection, &new))
            .await?;
        crash::point("approval.after-commit");
        Ok(asked)
    }

    /// Lets a run wait for people, or for agents that it asked, without lease and placeholder, unless all was decided
    /// meanwhile. The wait counts neither as an attempt nor towards the run's age.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn park_run(
        &self,
        run: RunId,
        token: LeaseToken,
        now_ms: i64,
    ) -> Result<Parked, StoreError> {
        self.write(move |connection| park_txn(connection, run, token, now_ms))
            .await
    }
}

fn ask_txn(connection: &Connection, new: &NewApproval) -> Result<AskOutcome, StoreError> {
    let Some(leased) = leased_run(connection, new.run, new.token)? else {
        return Ok(AskOutcome::Stale);
    };
    let call: Option<(i64, u32, String, Vec<u8>)> = connection
        .prepare_cached(
            "SELECT id, step, tool, digest FROM tool_calls
             WHERE uuid = ?1 AND run_id = ?2 AND step IS NOT NULL AND state IN ('ready', 'waiting')",
        )?
        .query_row((new.call, leased.row), |row| {
            Ok((
                row.get("id")?,
                row.get("step")?,
                row.get("tool")?,
                row.get("digest")?,
            ))
        })
        .optional()?;
    let Some((call, step, tool, digest)) = call else {
        return Ok(AskOutcome::SourceGone);
    };
    if consent_of_call(connection, call)?.is_some() {
        return Ok(AskOutcome::Waits);
    }
    let asking = asking_for(connection, (leased.row, step, call), new.sought)?;
    let room = room_of(connection, &leased)?;
    let chat = room.conversation.chat;
    let (of_person, of_chat): (u32, u32) = connection
        .prepare_cached(
            "SELECT count(*) FILTER (WHERE a.participant_id IS ?1) AS of_person,
                    count(*) FILTER (WHERE r.chat_id = ?2) AS of_chat
             FROM approvals a INDEXED BY approvals_open JOIN runs r ON r.id = a.run_id
             WHERE a.state = 'open'",
        )?
        .query_row((new.sought.person, chat), |row| {
            Ok((row.get("of_person")?, row.get("of_chat")?))
        })?;
    if of_person >= OPEN_MAX_PERSON || of_chat >= OPEN_MAX_CHAT {
        return Ok(AskOutcome::TooMany);
    }
    let posts = NewPosts {
        account: room.account,
        chat,
        turn: None,
        run_row: Some(leased.row),
        operation: &Operation::Post,
        target: &new.place,
        parts: std::slice::from_ref(&new.card),
        now_ms: new.now_ms,
    };
    let post = append_post_txn(connection, &posts, 0, &new.card)?;
    connection
        .prepare_cached(
            "INSERT INTO approvals (uuid, call_id, run_id, participant_id, tool, target, digest, definition,
                    asking, approvers, is_whole, card_post, outcomes, state, asked_at_ms, expires_at_ms, parameters)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, (SELECT id FROM outbox WHERE uuid = ?12),
                     ?13, 'open', ?14, ?15, ?16)",
        )?
        .execute(params![
            new.id,
            call,
            leased.row,
            new.sought.person,
            tool,
            new.target,
            digest,
            &new.sought.definition[..],
            asking.name(),
            new.approvers.text(),
            new.is_whole,
            post,
            json(&[&new.expired, &new.cancelled]),
            new.now_ms,
            new.expires_at_ms,
            new.parameters,
        ])?;
    connection
        .prepare_cached("UPDATE tool_calls SET state = ?2 WHERE id = ?1")?
        .execute((call, CallState::Waiting))?;
    Ok(AskOutcome::Waits)
}

/// The rule by which people are asked about a call: a changed call is always asked about, whatever its settings say.
fn asking_for(
    connection: &Connection,
    (run_row, step, call_row): (i64, u32, i64),
    sought: ConsentSought,
) -> Result<ApprovalRule, StoreError> {
    let asking = sought_after(connection, (run_row, step), sought)?.asking;
    Ok(match was_changed(connection, call_row)? {
        true => asking.max(ApprovalRule::Always),
        false => asking,
    })
}

fn park_txn(
    connection: &Connection,
    run: RunId,
    token: LeaseToken,
    now_ms: i64,
) -> Result<Parked, StoreError> {
    let Some(leased) = leased_run(connection, run, token)? else {
        return Ok(Parked::LetGo);
    };
    if leased.is_cancelled {
        end_run_txn(connection, leased.row, EndOfRun::Cancelled, now_ms)?;
        return Ok(Parked::LetGo);
    }
    let (open, until_ms): (u32, Option<i64>) = connection
        .prepare_cached(
            "SELECT count(*) AS open, min(expires_at_ms) AS until_ms FROM (
                 SELECT expires_at_ms FROM approvals WHERE run_id = ?1 AND state = 'open'
                 UNION ALL
                 SELECT expires_at_ms FROM questions WHERE run_id = ?1 AND state = 'open'
                 UNION ALL
                 SELECT NULL FROM delegations WHERE parent_id = ?1 AND state = 'open')",
        )?
        .query_row([leased.row], |row| {
            Ok((row.get("open")?, row.get("until_ms")?))
        })?;
    if open == 0 || has_call_to_ask_anew(connection, leased.row)? {
        return Ok(Parked::Decided);
    }
    forget_live_text_txn(connection, leased.row)?;
    retract_txn(connection, leased.row, now_ms)?;
    connection
        .prepare_cached(
            "UPDATE runs SET state = 'waiting', waiting_for = 'approval', waiting_until_ms = ?2,
                    attempt = attempt - 1, put_off_at_ms = NULL,
                    asked_at_run_ms = asked_at_run_ms - (SELECT elapsed_ms FROM run_clock),
                    owner = NULL, token = NULL, lease_until_ms = NULL
             WHERE id = ?1",
        )?
        .execute((leased.row, until_ms))?;
    Ok(Parked::Waits)
}

/// Whether a changed call of a run still has to be asked about: it has no card yet, so the run must not wait.
fn has_call_to_ask_anew(connection: &Connection, run_row: i64) -> Result<bool, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM tool_calls WHERE run_id = ?1 AND step IS NOT NULL
                            AND state = 'ready' AND digest = ?2) AS is_so",
        )?
        .query_row((run_row, &CHANGED_DIGEST[..]), |row| row.get("is_so"))?)
}

/// Whether a call that is about to be made has the consent that it needs, and who refused it. A grant that covers it
/// is named, to be counted if the call is made.
pub(crate) fn consent(
    connection: &Connection,
    (run_row, call_row): (i64, i64),
    sought: &ConsentSought,
    now_ms: i64,
) -> Result<(Consent, DecidedBy, Option<i64>), StoreError> {
    if let Some((consent, by)) = consent_of_call(connection, call_row)? {
        return Ok((consent, by, None));
    }
    let nobody = DecidedBy::default();
    // Changed arguments have not been approved yet, whatever they are.
    if was_changed(connection, call_row)? {
        return Ok((Consent::Missing, nobody, None));
    }
    if sought.asking == ApprovalRule::Free {
        return Ok((Consent::NotNeeded, nobody, None));
    }
    let grant = match requesters(connection, run_row)?.len() {
        // A grant does not cover runs that a schedule started.
        1 if !is_of_firing(connection, run_row)? => {
            grant_of(connection, (run_row, call_row), sought, now_ms)?
        }
        // A grant of one person does not cover a run that others asked for, too.
        _ => None,
    };
    Ok(match grant {
        Some(_) => (Consent::Given, nobody, grant),
        None => (Consent::Missing, nobody, None),
    })
}

fn is_of_firing(connection: &Connection, run_row: i64) -> Result<bool, StoreError> {
    Ok(connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM firings WHERE run_id = ?1) AS is_so")?
        .query_row([asked_run(connection, run_row)?], |row| row.get("is_so"))?)
}

/// A grant of the person, the chat and the agent that covers a call. A grant that would last longer than allowed
/// was written under a wrong clock, and does not count.
fn grant_of(
    connection: &Connection,
    (run_row, call_row): (i64, i64),
    sought: &ConsentSought,
    now_ms: i64,
) -> Result<Option<i64>, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT g.id FROM runs r JOIN tool_calls t ON t.id = ?2
             JOIN approval_grants g ON g.chat_id = r.chat_id AND g.participant_id = ?3 AND g.tool = t.tool
             WHERE r.id = ?1 AND r.person_participant_id = ?3 AND g.revoked_at_ms IS NULL
               AND g.agent = r.agent AND g.definition = ?4
               AND (g.digest = t.digest OR (g.digest IS NULL AND ?5 = 'first'))
               AND (g.until_ms IS NULL OR g.until_ms BETWEEN ?6 + 1 AND ?6 + ?7)
             ORDER BY g.id DESC LIMIT 1",
        )?
        .query_row(
            params![
                run_row,
                call_row,
                sought.person,
                &sought.definition[..],
                sought.asking.name(),
                now_ms,
                GRANT_MS + AHEAD_MAX_MS,
            ],
            |row| row.get("id"),
        )
        .optional()?)
}

/// Counts that a grant let a call be made.
pub(crate) fn use_grant_txn(connection: &Connection, grant: i64) -> Result<(), StoreError> {
    connection
        .prepare_cached("UPDATE approval_grants SET uses = uses + 1 WHERE id = ?1")?
        .execute([grant])?;
    Ok(())
}

/// Which consent a call of a step needs, given what its run had read by then.
pub(crate) fn sought_after(
    connection: &Connection,
    of_step: (i64, u32),
    sought: ConsentSought,
) -> Result<ConsentSought, StoreError> {
    let (rule, set) = (sought.rule, sought.after_untrusted);
    let asking = asking_after(connection, of_step, sought.asking, rule, set)?;
    Ok(ConsentSought { asking, ..sought })
}
