//! Erasure orders: their rows, whom they name in this database, and whether an incoming message falls under one.

use crate::engine::sql::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use vocative_contract::crash;

use super::ledger::{LedgerEntry, LedgerKind, OrderReach, append, path_beside};
use crate::rows::columns::{count_from, missing};
use crate::rows::places::find_chat;
use crate::{Reader, Store, StoreError};
use vocative_core::ids::{AccountId, ChatId};

pub use vocative_core::ids::ErasureId;

/// What an order removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErasureCounts {
    /// Turns blanked.
    pub turns: u64,
    /// Turns of ours made from them, blanked.
    pub answers: u64,
    /// Turns of others that repeated them, cut.
    pub repeats: u64,
    /// Other rows that held something of them: revisions, steps, posts, summaries, raw events.
    pub details: u64,
}

impl ErasureCounts {
    /// Adds another order's.
    pub fn add(&mut self, other: Self) {
        self.turns += other.turns;
        self.answers += other.answers;
        self.repeats += other.repeats;
        self.details += other.details;
    }
}

/// An order and its progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Erasure {
    /// Its id.
    pub id: ErasureId,
    /// What it removed so far.
    pub counts: ErasureCounts,
    /// When it was finished, in milliseconds since the Unix epoch.
    pub finished_at_ms: Option<i64>,
}

/// The rows of this database that an order names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Targets {
    pub(super) participants: Vec<i64>,
    pub(super) conversations: Vec<i64>,
}

impl Targets {
    pub(super) fn join(&mut self, other: Self) {
        self.participants.extend(other.participants);
        self.conversations.extend(other.conversations);
        self.conversations.sort_unstable();
        self.conversations.dedup();
    }

    /// Both as JSON arrays, for `json_each`.
    pub(super) fn json(&self) -> (String, String) {
        let list = |ids: &[i64]| serde_json::to_string(ids).expect("numbers are always JSON");
        (list(&self.participants), list(&self.conversations))
    }
}

/// An order that is being carried out.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub(super) row: i64,
    pub(super) account: AccountId,
    pub(super) entry: LedgerEntry,
    pub(super) phase: String,
    pub(super) cursor: i64,
    /// The last turn that was blanked.
    pub(super) reached: Option<Reached>,
}

/// How far turns are blanked: the key of the last one in the index that finds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reached {
    pub(super) conversation: i64,
    pub(super) sent_at_ms: i64,
    pub(super) ordinal: i64,
    pub(super) seq: i64,
}

impl Reached {
    pub(super) const START: Self = Self {
        conversation: i64::MIN,
        sent_at_ms: i64::MIN,
        ordinal: i64::MIN,
        seq: i64::MIN,
    };
}

/// The fields of an incoming message that are compared with the ledger.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IncomingMessage<'a> {
    pub(crate) account: AccountId,
    pub(crate) sender: &'a str,
    pub(crate) chat: &'a str,
    /// The thread or topic; empty for the chat's own conversation.
    pub(crate) thread: &'a str,
    pub(crate) is_topic: bool,
    pub(crate) sent_at_ms: i64,
}

impl Reader {
    /// The progress of an order.
    ///
    /// # Errors
    /// `NotFound` if there is no such order.
    pub async fn erasure(&self, id: ErasureId) -> Result<Erasure, StoreError> {
        self.read(move |connection| {
            connection
                .prepare_cached(
                    "SELECT turns, answers, repeats, details, finished_at_ms
                     FROM erasures WHERE uuid = ?1",
                )?
                .query_row([id], |row| {
                    Ok(Erasure {
                        id,
                        counts: ErasureCounts {
                            turns: count_from(row.get("turns")?),
                            answers: count_from(row.get("answers")?),
                            repeats: count_from(row.get("repeats")?),
                            details: count_from(row.get("details")?),
                        },
                        finished_at_ms: row.get("finished_at_ms")?,
                    })
                })
                .map_err(|error| missing(error, || format!("erasure {id}")))
        })
        .await
    }

    pub(crate) fn ledger_path(&self) -> Option<std::path::PathBuf> {
        self.database_path().map(path_beside)
    }
}

impl Store {
    /// Writes the orders of a plan into the ledger: from here on they are carried out, whatever
    /// happens. [`Store::carry_out_all`] does it.
    ///
    /// # Errors
    /// Storage refuses; a line that the ledger file took is carried out at the next start.
    pub async fn begin_erasure(&self, entries: Vec<LedgerEntry>) -> Result<(), StoreError> {
        let file = self.ledger_path();
        self.write(move |connection| {
            append(file.as_deref(), &entries, true)?;
            crash::point("erase.ledger-written");
            for entry in &entries {
                add_order_txn(connection, entry)?;
            }
            Ok(())
        })
        .await?;
        crash::point("erase.begun");
        Ok(())
    }
}

/// Whether an incoming message was sent before its sender or place was erased: then nothing of it is
/// stored. Later messages are captured as usual.
pub(crate) fn is_erased(
    connection: &Connection,
    heard: &IncomingMessage<'_>,
) -> Result<bool, StoreError> {
    // A thread goes with its chat's own conversation; a topic is a room of its own. A chat has the same
    // rooms under every id that it has had.
    let found = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM erased_identities
                            WHERE account_id = ?1 AND kind = 'person' AND platform_id = ?2
                              AND chat = '' AND erased_at_ms >= ?6)
                 OR EXISTS (
                     SELECT 1 FROM (SELECT ?3 AS chat UNION
                                    SELECT o.platform_id FROM chat_ids i
                                    JOIN chat_ids o ON o.chat_id = i.chat_id
                                    WHERE i.account_id = ?1 AND i.platform_id = ?3) known
                     CROSS JOIN erased_identities e ON e.account_id = ?1
                            AND ((e.kind = 'chat' AND e.platform_id = '')
                                 OR (e.kind = 'conversation'
                                     AND e.platform_id IN (?4, CASE WHEN ?5 THEN ?4 ELSE '' END)))
                            AND e.chat = known.chat AND e.erased_at_ms >= ?6) AS found",
        )?
        .query_row(
            params![
                heard.account,
                heard.sender,
                heard.chat,
                heard.thread,
                heard.is_topic,
                heard.sent_at_ms
            ],
            |row| row.get("found"),
        )?;
    Ok(found)
}

/// Adds an order that is not known, and notes its identity so that its messages are not captured again.
pub(super) fn add_order_txn(
    connection: &Connection,
    entry: &LedgerEntry,
) -> Result<(), StoreError> {
    // An older copy may not know the account yet; its name comes when the channel is bound.
    connection
        .prepare_cached(
            "INSERT INTO accounts (platform, platform_id, name) VALUES (?1, ?2, '')
             ON CONFLICT DO NOTHING",
        )?
        .execute((&entry.platform, &entry.account))?;
    let account: AccountId = connection
        .prepare_cached("SELECT id FROM accounts WHERE platform = ?1 AND platform_id = ?2")?
        .query_row((&entry.platform, &entry.account), |row| row.get("id"))?;
    connection
        .prepare_cached(
            "INSERT INTO erasures (uuid, account_id, kind, platform_id, chat, erased_at_ms, phase,
                                   reach)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            entry.id,
            account,
            entry.kind.name(),
            entry.platform_id,
            entry.chat,
            entry.erased_at_ms,
            super::work::FIRST_PHASE,
            entry.reach.name(),
        ])?;
    if entry.kind == LedgerKind::Message {
        return Ok(());
    }
    connection
        .prepare_cached(
            "INSERT INTO erased_identities (account_id, kind, platform_id, chat, erased_at_ms)
             VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT DO UPDATE SET erased_at_ms = max(erased_at_ms, excluded.erased_at_ms)",
        )?
        .execute(params![
            account,
            entry.kind.name(),
            entry.platform_id,
            entry.chat,
            entry.erased_at_ms
        ])?;
    Ok(())
}

/// The oldest order that is not finished, or a named one.
pub(super) fn open_order(
    connection: &Connection,
    id: Option<ErasureId>,
) -> Result<Option<Order>, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT e.id, e.account_id, e.uuid, e.kind, a.platform, a.platform_id AS account, e.platform_id AS platform_id,
                    e.chat, e.erased_at_ms, e.phase, e.cursor, e.reach, e.reached
             FROM erasures e JOIN accounts a ON a.id = e.account_id
             WHERE e.finished_at_ms IS NULL AND (?1 IS NULL OR e.uuid = ?1)
             ORDER BY e.id LIMIT 1",
        )?
        .query_row([id], |row| {
            let (kind, reach): (String, String) = (row.get("kind")?, row.get("reach")?);
            let reached: Option<String> = row.get("reached")?;
            Ok(Order {
                row: row.get("id")?,
                account: row.get("account_id")?,
                entry: LedgerEntry {
                    id: row.get("uuid")?,
                    kind: LedgerKind::from_name(&kind).unwrap_or(LedgerKind::Message),
                    reach: OrderReach::from_name(&reach).unwrap_or_default(),
                    platform: row.get("platform")?,
                    account: row.get("account")?,
                    platform_id: row.get("platform_id")?,
                    chat: row.get("chat")?,
                    erased_at_ms: row.get("erased_at_ms")?,
                },
                phase: row.get("phase")?,
                cursor: row.get("cursor")?,
                reached: reached.and_then(|at| serde_json::from_str(&at).ok()),
            })
        })
        .optional()?)
}

/// The rows that an entry names here; none if this database does not know it.
pub(super) fn targets(connection: &Connection, entry: &LedgerEntry) -> Result<Targets, StoreError> {
    let account: Option<AccountId> = connection
        .prepare_cached("SELECT id FROM accounts WHERE platform = ?1 AND platform_id = ?2")?
        .query_row((&entry.platform, &entry.account), |row| row.get("id"))
        .optional()?;
    let Some(account) = account else {
        return Ok(Targets::default());
    };
    let rows = |sql: &str,
                values: &dyn crate::engine::sql::ToSql,
                second: &dyn crate::engine::sql::ToSql| {
        let mut statement = connection.prepare_cached(sql)?;
        let ids = statement.query_map([values, second], |row| row.get("id"))?;
        Ok::<Vec<i64>, StoreError>(ids.collect::<crate::engine::sql::Result<_>>()?)
    };
    match entry.kind {
        LedgerKind::Message => Ok(Targets::default()),
        LedgerKind::Person => Ok(Targets {
            participants: rows(
                "SELECT id FROM participants
                 WHERE account_id = ?1 AND kind IN ('user', 'system') AND platform_id = ?2",
                &account,
                &entry.platform_id,
            )?,
            conversations: Vec::new(),
        }),
        LedgerKind::Conversation => {
            let chat: Option<ChatId> =
                find_chat(connection, account, &entry.chat)?.map(|chat| chat.id);
            let rooms = rows(
                "SELECT id FROM conversations
                     WHERE chat_id = ?1 AND (thread = ?2 OR (?2 = '' AND is_topic = 0)
                         OR id IN (SELECT m.source_id FROM conversation_merges m
                                   JOIN conversations t ON t.id = m.target_id
                                   WHERE t.chat_id = ?1
                                     AND (t.thread = ?2 OR (?2 = '' AND t.is_topic = 0))))
                     ORDER BY id",
                &chat,
                &entry.platform_id,
            )?;
            Ok(Targets {
                participants: Vec::new(),
                conversations: with_forks(connection, rooms)?,
            })
        }
        LedgerKind::Chat => {
            let chat: Option<ChatId> =
                find_chat(connection, account, &entry.chat)?.map(|chat| chat.id);
            Ok(Targets {
                participants: Vec::new(),
                conversations: rows(
                    "SELECT id FROM conversations WHERE chat_id = ?1 AND ?2 = '' ORDER BY id",
                    &chat,
                    &entry.platform_id,
                )?,
            })
        }
    }
}

/// Conversations with all their forks: forks go on from what is erased, and their answers were made from it.
fn with_forks(connection: &Connection, mut rooms: Vec<i64>) -> Result<Vec<i64>, StoreError> {
    let mut forks = connection.prepare_cached(
        "SELECT id FROM conversations WHERE parent_id = ?1 AND is_fork ORDER BY id",
    )?;
    let mut next = 0;
    while let Some(room) = rooms.get(next).copied() {
        for fork in forks.query_map([room], |row| row.get("id"))? {
            let fork = fork?;
            if !rooms.contains(&fork) {
                rooms.push(fork);
            }
        }
        next += 1;
    }
    Ok(rooms)
}
