//! Message numbers, and what was learnt by probing for them on the platform.
//!
//! Stores numbers and times only, never what was said: the newest number of each sequence, and which of the
//! last numbers are known. `delivery::probe` decides what follows.

use std::collections::BTreeSet;

use crate::capability::{MayCapture, MayDeliver};
use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::open::open_post;
use serde::{Deserialize, Serialize};
use vocative_contract::probe::{Numbered, OwnNumber, Sequence};

use crate::contract::LeaseOutcome;
use crate::{Reader, Store, StoreError};
use vocative_core::ids::{AccountId, ChatId, LeaseToken, OutboxId};
use vocative_core::probing::{ProbeFacts, ProbeStage, Probing};

/// Numbers further than this below the newest of their sequence are forgotten: every post of unknown outcome
/// that they could matter to is settled by then.
const REMEMBERED: i64 = 4_096;

impl Reader {
    /// What was learnt of a post by probing, and what else is known; `None` if the numbers of its chat tell
    /// nothing.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn probing(
        &self,
        entry: OutboxId,
    ) -> Result<Option<(Probing, ProbeFacts)>, StoreError> {
        self.read(move |connection| probing(connection, entry))
            .await
    }
}

impl<C: MayCapture> Store<C> {
    /// Notes a number that an event told, and whether another program posts as the bot.
    ///
    /// # Errors
    /// `Unavailable` if storage refuses.
    pub async fn hear_number(
        &self,
        account: AccountId,
        numbered: Numbered,
    ) -> Result<(), StoreError> {
        self.write_shared(move |connection| hear_number_txn(connection, account, &numbered))
            .await
    }

    /// Notes that another program acted as the bot at that time of the platform, in milliseconds since the
    /// Unix epoch.
    ///
    /// # Errors
    /// `Unavailable` if storage refuses.
    pub async fn note_other_sender(
        &self,
        account: AccountId,
        seen_at_ms: i64,
    ) -> Result<(), StoreError> {
        self.write(move |connection| note_other_sender_txn(connection, account, seen_at_ms))
            .await
    }
}

impl<C: MayDeliver> Store<C> {
    /// Keeps what was learnt of a post.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn keep_probing(
        &self,
        entry: OutboxId,
        token: LeaseToken,
        probing: Probing,
    ) -> Result<LeaseOutcome, StoreError> {
        self.write(move |connection| {
            let stored = serde_json::to_string(&Stored::of(&probing))?;
            let kept = connection
                .prepare_cached(
                    "UPDATE outbox SET probing = ?3
                     WHERE uuid = ?1 AND token = ?2 AND state = 'leased'",
                )?
                .execute((entry, token, stored))?;
            Ok(match kept {
                0 => LeaseOutcome::Stale,
                _ => LeaseOutcome::Written,
            })
        })
        .await
    }
}

/// A given-up post may still have arrived. That doubt ends with a message that was sent this long after the post's
/// request ended, in milliseconds: longer than any delay with which a platform was seen to apply a request.
const DOUBT_MS: i64 = 3_600_000;
/// The same where only the machine's clock tells when the request ended.
const LONG_DOUBT_MS: i64 = 86_400_000;

/// The version of the stored format, so that a later version can tell it apart.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Stored {
    version: u32,
    ended_by_ms: Option<i64>,
    asked: u32,
    waited_ms: i64,
    passes: u32,
    stage: String,
    top: i64,
    horizon: Option<i64>,
    ours: BTreeSet<i64>,
    settled: BTreeSet<i64>,
    missed: BTreeSet<i64>,
}

impl Stored {
    fn of(probing: &Probing) -> Self {
        Self {
            version: VERSION,
            ended_by_ms: probing.ended_by_ms,
            asked: probing.asked,
            waited_ms: probing.waited_ms,
            passes: probing.passes,
            stage: probing.stage.name().to_owned(),
            top: probing.top,
            horizon: probing.horizon,
            ours: probing.ours.clone(),
            settled: probing.settled.clone(),
            missed: probing.missed.clone(),
        }
    }

    fn read(self) -> Probing {
        let stage = ProbeStage::ALL
            .into_iter()
            .find(|it| it.name() == self.stage);
        Probing {
            ended_by_ms: self.ended_by_ms,
            asked: self.asked,
            waited_ms: self.waited_ms,
            passes: self.passes,
            stage: stage.unwrap_or_default(),
            top: self.top,
            horizon: self.horizon,
            ours: self.ours,
            settled: self.settled,
            missed: self.missed,
        }
    }
}

fn hear_number_txn(
    connection: &Connection,
    account: AccountId,
    numbered: &Numbered,
) -> Result<(), StoreError> {
    let sequence = &numbered.sequence.name;
    if let Some(number) = numbered.number {
        note_number_txn(connection, account, sequence, number)?;
        connection
            .prepare_cached(
                "UPDATE sequences SET heard = ?3, heard_sent_at_ms = ?4
                 WHERE account_id = ?1 AND name = ?2 AND coalesce(heard, 0) < ?3",
            )?
            .execute(params![account, sequence, number, numbered.sent_at_ms])?;
    }
    for own in &numbered.own {
        if !is_accounted_for(connection, account, numbered, own)? {
            note_other_sender_txn(connection, account, own.sent_at_ms)?;
        }
    }
    Ok(())
}

/// Remembers a number, and forgets those that are old.
fn note_number_txn(
    connection: &Connection,
    account: AccountId,
    sequence: &str,
    number: i64,
) -> Result<(), StoreError> {
    let newest: i64 = connection
        .prepare_cached(
            "INSERT INTO sequences (account_id, name, newest) VALUES (?1, ?2, ?3)
             ON CONFLICT (account_id, name) DO UPDATE SET newest = max(newest, ?3)
             RETURNING newest",
        )?
        .query_row(params![account, sequence, number], |row| row.get("newest"))?;
    connection
        .prepare_cached(
            "INSERT INTO numbers (account_id, sequence, number) VALUES (?1, ?2, ?3)
             ON CONFLICT DO NOTHING",
        )?
        .execute(params![account, sequence, number])?;
    connection
        .prepare_cached(
            "DELETE FROM numbers WHERE account_id = ?1 AND sequence = ?2 AND number < ?3",
        )?
        .execute(params![account, sequence, newest - REMEMBERED])?;
    Ok(())
}

/// Whether a message of the bot is one of ours: it has a row, or may be a post whose outcome is open.
fn is_accounted_for(
    connection: &Connection,
    account: AccountId,
    numbered: &Numbered,
    own: &OwnNumber,
) -> Result<bool, StoreError> {
    Ok(connection
        .prepare_cached(concat!(
            "SELECT EXISTS (SELECT 1 FROM numbers
                            WHERE account_id = ?1 AND sequence = ?2 AND number = ?4)
                 OR EXISTS (SELECT 1 FROM chat_ids i
                            JOIN messages m ON m.account_id = i.account_id
                                           AND m.chat_id = i.identity_id
                                           AND m.platform_id = CAST(?4 AS TEXT)
                            WHERE i.account_id = ?1 AND i.platform_id = ?3)
                 OR EXISTS (SELECT 1 FROM chat_ids i JOIN outbox o ON o.chat_id = i.chat_id
                            WHERE i.account_id = ?1 AND i.platform_id = ?3
                              AND ",
            open_post!("o"),
            "
                              AND (o.send_started = 1 OR o.resends > 0)
                              AND coalesce(o.number_above, 0) < ?4)
                 OR EXISTS (SELECT 1 FROM chat_ids i JOIN outbox o ON o.chat_id = i.chat_id
                            WHERE i.account_id = ?1 AND i.platform_id = ?3
                              AND o.state IN ('held', 'dead') AND o.send_started = 1
                              AND coalesce(o.number_above, 0) < ?4) AS is_so"
        ))?
        .query_row(
            params![account, numbered.sequence.name, numbered.chat, own.number],
            |row| row.get("is_so"),
        )?)
}

fn note_other_sender_txn(
    connection: &Connection,
    account: AccountId,
    seen_at_ms: i64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE accounts SET other_sender_ms = max(coalesce(other_sender_ms, 0), ?2)
             WHERE id = ?1",
        )?
        .execute(params![account, seen_at_ms])?;
    Ok(())
}

/// Notes, when a send begins, above which number its messages will be. Nothing is noted where numbers tell
/// nothing: in broadcast channels, in chats of unknown kind that may be one, and where no number is known yet.
pub(crate) fn begin_probing_txn(
    connection: &Connection,
    row: i64,
    sequence: Option<&Sequence>,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE outbox SET probing = NULL, sequence = NULL, number_above = NULL, above_sent_at_ms = NULL
             WHERE id = ?1",
        )?
        .execute([row])?;
    let Some(sequence) = sequence else {
        return Ok(());
    };
    connection
        .prepare_cached(
            "UPDATE outbox SET sequence = s.name, number_above = s.newest, above_sent_at_ms = s.heard_sent_at_ms
             FROM sequences s, chats c
             WHERE outbox.id = ?1 AND s.account_id = outbox.account_id AND s.name = ?2
               AND c.id = outbox.chat_id
               AND (NOT ?3 OR c.kind IS NOT NULL AND c.kind <> 'broadcast')",
        )?
        .execute(params![row, sequence.name, sequence.is_of_one_chat])?;
    Ok(())
}

/// Notes that a post of ours is on the platform under that id.
pub(crate) fn note_own_message_txn(
    connection: &Connection,
    row: i64,
    identity: ChatId,
    message_id: &str,
) -> Result<(), StoreError> {
    let sequence: Option<(AccountId, String)> = connection
        .prepare_cached(
            "SELECT account_id, sequence FROM outbox WHERE id = ?1 AND sequence IS NOT NULL",
        )?
        .query_row([row], |row| {
            Ok((row.get("account_id")?, row.get("sequence")?))
        })
        .optional()?;
    let (Some((account, sequence)), Ok(number)) = (sequence, message_id.parse::<i64>()) else {
        return Ok(());
    };
    note_number_txn(connection, account, &sequence, number)?;
    connection
        .prepare_cached(
            "UPDATE chats SET newest_own_number = max(coalesce(newest_own_number, 0), ?2)
             WHERE id = ?1",
        )?
        .execute(params![identity, number])?;
    Ok(())
}

/// Forgets the number of a post of ours that is gone: the platform's answer about it would tell nothing.
pub(crate) fn forget_own_message_txn(
    connection: &Connection,
    identity: ChatId,
    message_id: &str,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE chats SET newest_own_number = NULL
             WHERE id = ?1 AND newest_own_number = CAST(?2 AS INTEGER)",
        )?
        .execute(params![identity, message_id])?;
    Ok(())
}

/// Notes that a post which may have arrived is given up: a message that it may have left in the chat must not be taken
/// for another post's. Numbers there are ambiguous until a message is heard that was sent long after it.
pub(crate) fn give_up_probing_txn(
    connection: &Connection,
    row: i64,
    now_ms: i64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE chats SET unsure_until_ms = max(coalesce(unsure_until_ms, 0), p.until_ms)
             FROM (SELECT o.chat_id,
                          coalesce(CASE WHEN json_valid(o.probing)
                                        THEN json_extract(o.probing, '$.ended_by_ms') END + ?2,
                                   max(?4, coalesce((SELECT max(s.heard_sent_at_ms) FROM sequences s
                                                     WHERE s.account_id = o.account_id), 0)) + ?3) AS until_ms
                   FROM outbox o
                   WHERE o.id = ?1 AND o.send_started = 1 AND o.operation IN ('post', 'upload')) p
             WHERE chats.id = p.chat_id",
        )?
        .execute((row, DOUBT_MS, LONG_DOUBT_MS, now_ms))?;
    Ok(())
}

fn probing(
    connection: &Connection,
    entry: OutboxId,
) -> Result<Option<(Probing, ProbeFacts)>, StoreError> {
    let found = connection
        .prepare_cached(
            "SELECT o.id, o.account_id, o.sequence, o.number_above, o.probing, s.heard,
                    s.heard_sent_at_ms, own.newest_own_number, json_extract(o.target, '$.reply_to') AS answered,
                    a.other_sender_ms,
                    coalesce(c.unsure_until_ms > coalesce(o.above_sent_at_ms, 0), 0) AS has_rival, o.chat_id
             FROM outbox o
             JOIN accounts a ON a.id = o.account_id
             JOIN chats c ON c.id = o.chat_id
             JOIN sequences s ON s.account_id = o.account_id AND s.name = o.sequence
             LEFT JOIN chat_ids i ON i.account_id = o.account_id
                                 AND i.platform_id = json_extract(o.target, '$.chat')
             LEFT JOIN chats own ON own.id = i.identity_id
             WHERE o.uuid = ?1",
        )?
        .query_row([entry], |row| {
            let heard: Option<i64> = row.get("heard")?;
            let heard_sent_at_ms: Option<i64> = row.get("heard_sent_at_ms")?;
            let answered: Option<String> = row.get("answered")?;
            let facts = ProbeFacts {
                sequence: row.get("sequence")?,
                above: row.get("number_above")?,
                heard: heard.zip(heard_sent_at_ms),
                known: BTreeSet::new(),
                own: row.get("newest_own_number")?,
                answered: answered.and_then(|id| id.parse().ok()),
                has_rival: row.get("has_rival")?,
                is_busy: false,
                other_sender_ms: row.get("other_sender_ms")?,
            };
            let ids: (i64, AccountId, ChatId) = (row.get("id")?, row.get("account_id")?, row.get("chat_id")?);
            Ok((ids, row.get::<_, Option<String>>("probing")?, facts))
        })
        .optional()?;
    let Some(((row, account, chat), stored, mut facts)) = found else {
        return Ok(None);
    };
    facts.known = known_above(connection, account, &facts)?;
    let (has_rival, is_busy) = rivals(connection, row, chat)?;
    facts.has_rival = facts.has_rival || has_rival;
    facts.is_busy = is_busy;
    let probing = match stored {
        Some(stored) => serde_json::from_str::<Stored>(&stored)?.read(),
        None => Probing::default(),
    };
    Ok(Some((probing, facts)))
}

fn known_above(
    connection: &Connection,
    account: AccountId,
    facts: &ProbeFacts,
) -> Result<BTreeSet<i64>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT number FROM numbers WHERE account_id = ?1 AND sequence = ?2 AND number > ?3",
    )?;
    let numbers = statement.query_map(params![account, facts.sequence, facts.above], |row| {
        row.get("number")
    })?;
    Ok(numbers.collect::<crate::engine::sql::Result<_>>()?)
}

/// Whether another post of the chat may have arrived unnoticed, and whether one is on its way.
fn rivals(connection: &Connection, row: i64, chat: ChatId) -> Result<(bool, bool), StoreError> {
    Ok(connection
        .prepare_cached(concat!(
            "WITH open (id, is_held, is_leased) AS (
                 SELECT id, 0, state = 'leased' FROM outbox
                 WHERE chat_id = ?2 AND id <> ?1 AND send_started = 1
                   AND ",
            open_post!(),
            " AND operation IN ('post', 'upload')
                 UNION ALL
                 SELECT id, 1, 0 FROM outbox
                 WHERE chat_id = ?2 AND id <> ?1 AND send_started = 1
                   AND state = 'held' AND operation IN ('post', 'upload')
             ),
             busy (id) AS (
                 SELECT id FROM open
                 WHERE is_leased = 1 AND EXISTS (SELECT 1 FROM outbox_attempts a
                                                 WHERE a.outbox_id = open.id
                                                   AND a.ended_at_ms IS NULL)
             )
             SELECT EXISTS (SELECT 1 FROM open WHERE id NOT IN (SELECT id FROM busy)) AS is_open,
                    EXISTS (SELECT 1 FROM busy) AS is_busy"
        ))?
        .query_row(params![row, chat], |row| {
            Ok((row.get("is_open")?, row.get("is_busy")?))
        })?)
}
