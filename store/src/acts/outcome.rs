//! The outcome of a post after an attempt or a look. `outbox` describes the states of an entry.

use crate::capability::MayDeliver;
use crate::engine::sql::{Connection, OptionalExtension};
use vocative_contract::outbound::{Delivered, Operation, Part, Target};

use vocative_core::outbox::OutboxUpdate;

use crate::acts::outbox::close_attempt_txn;
use crate::acts::parking::{Parking, give_up_old_txn, park_txn, unpark_txn};
use crate::acts::placeholder::{gives_place, move_txn};
use crate::acts::probing::{forget_own_message_txn, note_own_message_txn};
use crate::acts::standing::move_on_txn;
use crate::contract::LeaseOutcome;
use crate::rows::messages::{MessageEntry, add_message_txn};
use crate::rows::outbox_rows::{
    NewPosts, PostPosition, append_post_txn, insert_post_txn, operation_from_row,
};
use crate::rows::places::find_chat;
use crate::{Store, StoreError};
use vocative_core::ids::{AccountId, ChatId, LeaseToken, OutboxId, Seq};
use vocative_core::outbox::DeadCause;

impl<C: MayDeliver> Store<C> {
    /// Writes the outcome of an attempt.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn update_post(
        &self,
        entry: OutboxId,
        token: LeaseToken,
        update: OutboxUpdate,
        now_ms: i64,
    ) -> Result<LeaseOutcome, StoreError> {
        self.write(move |connection| update_post_txn(connection, entry, token, &update, now_ms))
            .await
    }
}

/// A leased entry, as far as an update needs it.
struct Leased {
    row: i64,
    account: AccountId,
    chat: ChatId,
    turn: Option<Seq>,
    run_row: Option<i64>,
    part_number: u32,
    sort_key: f64,
    operation: Operation,
    /// The entry is the placeholder of an answer that is being written, and is no message of any turn yet.
    is_placeholder: bool,
    /// Bytes of an earlier attempt may be out, and none left under the present lease.
    is_look: bool,
    /// Its chat refused posts before.
    is_parked: bool,
}

fn leased_post(
    connection: &Connection,
    entry: OutboxId,
    token: LeaseToken,
) -> Result<Option<Leased>, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT o.id, o.account_id, o.chat_id, o.turn_seq, o.run_id, o.part, o.sort_key,
                    o.send_started AND NOT EXISTS (
                        SELECT 1 FROM outbox_attempts a
                        WHERE a.outbox_id = o.id AND a.ended_at_ms IS NULL) AS is_look,
                    o.target, o.operation, o.placeholder_of IS NOT NULL AS is_placeholder,
                    (SELECT c.parked_reason IS NOT NULL FROM chats c WHERE c.id = o.chat_id) AS is_parked
             FROM outbox o WHERE o.uuid = ?1 AND o.token = ?2 AND o.state = 'leased'",
        )?
        .query_row((entry, token), |row| {
            Ok(Leased {
                row: row.get("id")?,
                account: row.get("account_id")?,
                chat: row.get("chat_id")?,
                turn: row.get("turn_seq")?,
                run_row: row.get("run_id")?,
                part_number: row.get("part")?,
                sort_key: row.get("sort_key")?,
                operation: operation_from_row(row)?,
                is_placeholder: row.get("is_placeholder")?,
                is_look: row.get("is_look")?,
                is_parked: row.get("is_parked")?,
            })
        })
        .optional()?)
}

pub(crate) fn update_post_txn(
    connection: &Connection,
    entry: OutboxId,
    token: LeaseToken,
    update: &OutboxUpdate,
    now_ms: i64,
) -> Result<LeaseOutcome, StoreError> {
    let Some(leased) = leased_post(connection, entry, token)? else {
        return Ok(LeaseOutcome::Stale);
    };
    close_attempt_txn(connection, leased.row, outcome_name(update), now_ms)?;
    match update {
        OutboxUpdate::Sent(delivered) => sent_txn(connection, &leased, delivered, now_ms)?,
        OutboxUpdate::Replace {
            parts,
            target,
            operation,
            ..
        } => {
            let with = EntryReplacement {
                parts,
                target,
                operation,
            };
            insert_replacing_txn(connection, &leased, &with, now_ms)?;
        }
        OutboxUpdate::ParkChat {
            not_before_ms,
            keep_ms,
            reason,
        } => {
            let parking = Parking {
                until_ms: *not_before_ms,
                keep_ms: *keep_ms,
                reason,
            };
            park_txn(connection, leased.chat, &parking)?;
        }
        OutboxUpdate::Rest { until_ms, .. } => {
            connection
                .prepare_cached("UPDATE chats SET rests_until_ms = ?2 WHERE id = ?1")?
                .execute((leased.chat, until_ms))?;
        }
        OutboxUpdate::HoldAccount { reason } => {
            connection
                .prepare_cached("UPDATE accounts SET held_reason = ?2 WHERE id = ?1")?
                .execute((leased.account, reason))?;
        }
        OutboxUpdate::Undecided { resend: true, .. } => {
            connection
                .prepare_cached(
                    "UPDATE accounts SET resent_undecided = resent_undecided + 1 WHERE id = ?1",
                )?
                .execute([leased.account])?;
        }
        // Only the entry itself changes.
        OutboxUpdate::Undecided { resend: false, .. }
        | OutboxUpdate::Retry { .. }
        | OutboxUpdate::Look { .. }
        | OutboxUpdate::Resend { .. }
        | OutboxUpdate::ResendLater { .. }
        | OutboxUpdate::Hold { .. }
        | OutboxUpdate::Dead { .. }
        | OutboxUpdate::Drop { .. } => {}
    }
    if let Some(next) = Released::after(update, &leased, now_ms) {
        next.write_txn(connection, leased.row, now_ms)?;
    }
    if matches!(update, OutboxUpdate::ParkChat { .. }) {
        give_up_old_txn(connection, leased.chat, now_ms)?;
    }
    Ok(LeaseOutcome::Written)
}

/// Notes that a post is in the room; text that the platform changed is stored as it shows there.
fn sent_txn(
    connection: &Connection,
    leased: &Leased,
    delivered: &Delivered,
    now_ms: i64,
) -> Result<(), StoreError> {
    let identity = match find_chat(connection, leased.account, &delivered.chat)? {
        Some(chat) => chat.identity,
        None => leased.chat,
    };
    if leased.operation.makes_message() {
        note_own_message_txn(connection, leased.row, identity, &delivered.message_id)?;
        if !leased.is_placeholder {
            record_message_txn(connection, leased, identity, delivered)?;
        }
    }
    if let Operation::Delete { message_id } = &leased.operation {
        forget_own_message_txn(connection, identity, message_id)?;
    }
    mark_sent_txn(connection, leased.row, &delivered.message_id, now_ms)?;
    if leased.is_parked {
        unpark_txn(connection, leased.chat, now_ms)?;
    }
    if let Some(shown) = &delivered.shown {
        connection
            .prepare_cached("UPDATE outbox SET payload = ?2 WHERE id = ?1")?
            .execute((leased.row, serde_json::to_string(shown)?))?;
    }
    Ok(())
}

fn outcome_name(update: &OutboxUpdate) -> &str {
    match update {
        OutboxUpdate::Sent(_) => "sent",
        OutboxUpdate::Retry { reason, .. }
        | OutboxUpdate::Rest { reason, .. }
        | OutboxUpdate::Look { reason, .. }
        | OutboxUpdate::Resend { reason }
        | OutboxUpdate::ResendLater { reason, .. }
        | OutboxUpdate::Undecided { reason, .. }
        | OutboxUpdate::Hold { reason }
        | OutboxUpdate::Dead { reason }
        | OutboxUpdate::Drop { reason }
        | OutboxUpdate::Replace { reason, .. }
        | OutboxUpdate::ParkChat { reason, .. }
        | OutboxUpdate::HoldAccount { reason } => reason,
    }
}

/// The new state of an entry whose lease ends without success.
struct Released<'a> {
    state: &'static str,
    dead_cause: Option<DeadCause>,
    reason: &'a str,
    /// `None` leaves it as it is.
    not_before_ms: Option<i64>,
    /// Whether bytes may be out; `None` leaves it as it is.
    send_started: Option<bool>,
    looks: u32,
    resends: u32,
    is_undecided: bool,
    finished_at_ms: Option<i64>,
}

impl<'a> Released<'a> {
    /// The state after an update; `None` if the entry was sent.
    fn after(update: &'a OutboxUpdate, leased: &Leased, now_ms: i64) -> Option<Self> {
        Some(match update {
            OutboxUpdate::Sent(_) => return None,
            OutboxUpdate::Retry {
                not_before_ms,
                reason,
            } => Self::pending(*not_before_ms, reason),
            OutboxUpdate::Rest { reason, .. } => Self::pending(now_ms, reason),
            OutboxUpdate::Look {
                not_before_ms,
                reason,
            } => Self {
                looks: 1,
                ..Self::unknown(*not_before_ms, reason)
            },
            OutboxUpdate::Resend { reason } => Self {
                resends: 1,
                ..Self::pending(now_ms, reason)
            },
            OutboxUpdate::ResendLater {
                not_before_ms,
                reason,
            } => Self {
                resends: 1,
                ..Self::pending(*not_before_ms, reason)
            },
            OutboxUpdate::Undecided {
                resend: true,
                reason,
            } => Self {
                resends: 1,
                ..Self::pending(now_ms, reason)
            },
            OutboxUpdate::Undecided {
                resend: false,
                reason,
            } => Self {
                is_undecided: true,
                ..Self::ended("held", reason)
            },
            OutboxUpdate::Hold { reason } => Self::ended("held", reason),
            OutboxUpdate::Dead { reason } => Self {
                dead_cause: Some(DeadCause::GivenUp),
                ..Self::finished("dead", reason, now_ms)
            },
            OutboxUpdate::Drop { reason } => Self {
                dead_cause: Some(DeadCause::Dropped),
                ..Self::finished("dead", reason, now_ms)
            },
            OutboxUpdate::Replace { reason, .. } => Self::finished("replaced", reason, now_ms),
            OutboxUpdate::ParkChat { reason, .. } | OutboxUpdate::HoldAccount { reason } => {
                Self::unchanged(leased, now_ms, reason)
            }
        })
    }

    fn pending(not_before_ms: i64, reason: &'a str) -> Self {
        Self {
            not_before_ms: Some(not_before_ms),
            send_started: Some(false),
            ..Self::ended("pending", reason)
        }
    }

    fn unknown(not_before_ms: i64, reason: &'a str) -> Self {
        Self {
            not_before_ms: Some(not_before_ms),
            send_started: Some(true),
            ..Self::ended("unknown", reason)
        }
    }

    /// The state after the chat or account refused: an attempt was not sent, but a refused look says nothing about
    /// an earlier attempt.
    fn unchanged(leased: &Leased, now_ms: i64, reason: &'a str) -> Self {
        if leased.is_look {
            Self::unknown(now_ms, reason)
        } else {
            Self::pending(now_ms, reason)
        }
    }

    fn finished(state: &'static str, reason: &'a str, now_ms: i64) -> Self {
        Self {
            finished_at_ms: Some(now_ms),
            ..Self::ended(state, reason)
        }
    }

    fn ended(state: &'static str, reason: &'a str) -> Self {
        Self {
            state,
            dead_cause: None,
            reason,
            not_before_ms: None,
            send_started: None,
            looks: 0,
            resends: 0,
            is_undecided: false,
            finished_at_ms: None,
        }
    }

    fn write_txn(&self, connection: &Connection, row: i64, now_ms: i64) -> Result<(), StoreError> {
        connection
            .prepare_cached(
                "UPDATE outbox SET state = ?2, reason = ?3,
                        not_before_ms = coalesce(?4, not_before_ms), waits_from_ms = ?11,
                        send_started = coalesce(?5, send_started),
                        looks = looks + ?6, resends = resends + ?7, finished_at_ms = ?8,
                        is_undecided = ?9, dead_cause = ?10,
                        owner = NULL, token = NULL, lease_until_ms = NULL
                 WHERE id = ?1",
            )?
            .execute((
                row,
                self.state,
                self.reason,
                self.not_before_ms,
                self.send_started,
                self.looks,
                self.resends,
                self.finished_at_ms,
                self.is_undecided,
                self.dead_cause,
                now_ms,
            ))?;
        Ok(())
    }
}

/// Marks an entry as being on the platform. The text of a post without a turn is removed: only posts of turns
/// expire, are deleted and are erased with their turn.
pub(crate) fn mark_sent_txn(
    connection: &Connection,
    row: i64,
    message_id: &str,
    now_ms: i64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE outbox SET state = 'sent', message_id = ?2, finished_at_ms = ?3, reason = NULL,
                    owner = NULL, token = NULL, lease_until_ms = NULL,
                    payload = CASE WHEN turn_seq IS NULL THEN ?4 ELSE payload END
             WHERE id = ?1",
        )?
        .execute((
            row,
            message_id,
            now_ms,
            serde_json::to_string(&Part::plain(""))?,
        ))?;
    Ok(())
}

/// Records the platform's message id for the turn. Our own post may have come back as an event before; a
/// message known as deleted stays so, and a message without a turn never gets one.
fn record_message_txn(
    connection: &Connection,
    leased: &Leased,
    identity: ChatId,
    delivered: &Delivered,
) -> Result<(), StoreError> {
    add_message_txn(
        connection,
        MessageEntry {
            account: leased.account,
            identity,
            message_id: &delivered.message_id,
            turn_seq: leased.turn.map(|turn| turn.0),
            conversation: None,
            part: i64::from(leased.part_number),
            text: None,
            edit_marker: None,
            sent_at_ms: None,
        },
    )?;
    Ok(())
}

/// The parts that replace an entry.
struct EntryReplacement<'a> {
    parts: &'a [Part],
    target: &'a Target,
    /// The operation of the first part.
    operation: &'a Operation,
}

impl<'a> EntryReplacement<'a> {
    fn posts(&self, leased: &Leased, now_ms: i64) -> NewPosts<'a> {
        NewPosts {
            account: leased.account,
            chat: leased.chat,
            turn: leased.turn,
            run_row: leased.run_row,
            target: self.target,
            operation: self.operation,
            parts: self.parts,
            now_ms,
        }
    }
}

/// Inserts other parts in place of an entry: after it, and before whatever followed it.
fn insert_replacing_txn(
    connection: &Connection,
    leased: &Leased,
    with: &EntryReplacement<'_>,
    now_ms: i64,
) -> Result<(), StoreError> {
    let parts = remaining_txn(connection, leased, with, now_ms)?;
    // Only parts of the same turn can stand between this entry and the next whole number.
    let (next_key, mut part_number): (Option<f64>, u32) = connection
        .prepare_cached(
            "SELECT (SELECT min(sort_key) FROM outbox WHERE turn_seq = ?1 AND sort_key > ?2) AS next_key,
                    (SELECT coalesce(max(part), ?3) + 1 FROM outbox WHERE turn_seq = ?1) AS part",
        )?
        .query_row((leased.turn, leased.sort_key, leased.part_number), |row| {
            Ok((row.get("next_key")?, row.get("part")?))
        })?;
    let whole = leased.sort_key.floor() + 1.0;
    let end = next_key.map_or(whole, |key| key.min(whole));
    #[allow(clippy::cast_precision_loss)] // A handful of parts.
    let step = (end - leased.sort_key) / (parts.len() as f64 + 1.0);
    let posts = NewPosts {
        parts,
        ..with.posts(leased, now_ms)
    };
    let further = match with.operation {
        Operation::Edit { .. } => &Operation::Post,
        other => other,
    };
    let mut sort_key = leased.sort_key;
    for (number, part) in parts.iter().enumerate() {
        sort_key += step;
        let place = PostPosition {
            part_number,
            sort_key,
        };
        let operation = if number == 0 { with.operation } else { further };
        let posts = NewPosts { operation, ..posts };
        let id = insert_post_txn(connection, &posts, place, part)?;
        if number == 0 {
            move_txn(connection, leased.row, leased.chat, id)?;
            follow_alike_txn(connection, leased.row, id)?;
        }
        part_number += 1;
    }
    match (&leased.operation, with.operation) {
        (Operation::Edit { message_id }, Operation::Post) => {
            abandon_txn(connection, leased, message_id, &posts)
        }
        _ => Ok(()),
    }
}

/// The parts that are posted at the place of an entry; the others move on to later messages of its answer.
fn remaining_txn<'a>(
    connection: &Connection,
    leased: &Leased,
    with: &EntryReplacement<'a>,
    now_ms: i64,
) -> Result<&'a [Part], StoreError> {
    let said = unsaid(connection, leased, with)?;
    // A post that another text will replace shows only its first part: further messages would never be removed.
    if gives_place(connection, leased.row)? {
        return Ok(&said[..said.len().min(1)]);
    }
    let stays = match (&leased.operation, with.operation) {
        (Operation::Edit { .. }, Operation::Edit { .. }) => 1,
        (Operation::Edit { .. }, Operation::Post) => 0,
        _ => return Ok(said),
    };
    let (here, further) = with.parts.split_at(stays.min(with.parts.len()));
    let posts = NewPosts {
        operation: &Operation::Post,
        parts: further,
        ..with.posts(leased, now_ms)
    };
    let is_moved = !further.is_empty() && move_on_txn(connection, &posts, leased.row)?;
    Ok(if is_moved { here } else { with.parts })
}

/// The parts without leading ones that equal an earlier post which a person dropped: the person found that post in
/// the room or does not want it, and posting its text again would double it.
fn unsaid<'a>(
    connection: &Connection,
    leased: &Leased,
    with: &EntryReplacement<'a>,
) -> Result<&'a [Part], StoreError> {
    if *with.operation != Operation::Post {
        return Ok(with.parts);
    }
    let mut statement = connection.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM outbox
                        WHERE turn_seq = ?1 AND sort_key < ?2 AND state IN ('dead', 'replaced') AND dead_cause = ?3
                          AND CASE WHEN json_valid(payload) THEN json_extract(payload, '$.text') END = ?4) AS is_said",
    )?;
    let mut parts = with.parts;
    while let Some((first, rest)) = parts.split_first() {
        let of_first = (
            leased.turn,
            leased.sort_key,
            DeadCause::Dropped,
            first.text.as_str(),
        );
        if !statement.query_row(of_first, |row| row.get("is_said"))? {
            break;
        }
        parts = rest;
    }
    Ok(parts)
}

/// Lets an edit that replaces another one refer to the same message.
fn follow_alike_txn(connection: &Connection, from: i64, to: OutboxId) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE outbox SET edit_of = (SELECT edit_of FROM outbox WHERE id = ?1)
             WHERE uuid = ?2 AND operation = 'edit'",
        )?
        .execute((from, to))?;
    Ok(())
}

/// Removes a message that could not be edited from its turn, and queues its deletion behind the posts that
/// replace it.
fn abandon_txn(
    connection: &Connection,
    leased: &Leased,
    message_id: &str,
    posts: &NewPosts<'_>,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE messages SET turn_seq = NULL, text = NULL, gone = 'deleted'
             WHERE account_id = ?1 AND platform_id = ?2 AND turn_seq = ?3",
        )?
        .execute((leased.account, message_id, leased.turn))?;
    let part = Part::plain("");
    let message_id = message_id.to_owned();
    let deletion = NewPosts {
        turn: None,
        operation: &Operation::Delete { message_id },
        ..*posts
    };
    append_post_txn(connection, &deletion, 0, &part)?;
    Ok(())
}
