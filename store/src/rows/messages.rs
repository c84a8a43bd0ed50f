//! Message identity: which platform message is which turn. A row without a turn is a tombstone.
//!
//! A message is known by (account, identity of the chat's platform id, message id). Chats that were
//! merged keep their own identities, because one platform counts anew after a merge and another
//! keeps its ids. So a message that is not known under the id its event names is looked for under
//! the chat's other ids, and counts as the same where it was sent at the same time.

use crate::engine::sql::{Connection, OptionalExtension, Row, params};
use crate::rows::turn_rows::conversation_of_turn;

use crate::StoreError;
use crate::registry::{
    Class, ErasureRule, ExpiryRule, ExportRule, Fate, OF_TURN, StoreTable, account, text,
};
use crate::rows::places::{ChatRow, ConversationRow};
use vocative_core::ids::{AccountId, ChatId};

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[account(
    "messages",
    text(&["text"], &[], &["platform_id", "edit_marker", "gone"]),
    Fate {
        person: ErasureRule::Emptied,
        chat: ErasureRule::Emptied,
        message: ErasureRule::Emptied,
        expiry: ExpiryRule::Emptied(Class::Text),
        export: ExportRule::Nothing("its text is part of its turn's"),
        ..OF_TURN
    },
)
.follows(&["turn_seq"])];

/// A message that was captured or deleted before.
#[derive(Clone, Debug)]
pub(crate) struct KnownMessage {
    /// The chat identity its row is under.
    pub(crate) identity: ChatId,
    /// `None` = a tombstone.
    pub(crate) turn_seq: Option<i64>,
    /// An album item's own text.
    pub(crate) text: Option<String>,
    pub(crate) edit_marker: Option<String>,
}

/// A message to look for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageKey<'a> {
    pub(crate) account: AccountId,
    pub(crate) chat: &'a ChatRow,
    pub(crate) message_id: &'a str,
}

impl KnownMessage {
    fn from_row(row: &Row<'_>) -> crate::engine::sql::Result<Self> {
        Ok(Self {
            identity: row.get("chat_id")?,
            turn_seq: row.get("turn_seq")?,
            edit_marker: row.get("edit_marker")?,
            text: row.get("text")?,
        })
    }
}

/// Finds a message under the very chat id its event names.
pub(crate) fn find_message(
    connection: &Connection,
    key: MessageKey<'_>,
) -> Result<Option<KnownMessage>, StoreError> {
    let found = connection
        .prepare_cached(
            "SELECT chat_id, turn_seq, edit_marker, text FROM messages
             WHERE account_id = ?1 AND chat_id = ?2 AND platform_id = ?3",
        )?
        .query_row(
            params![key.account, key.chat.identity, key.message_id],
            KnownMessage::from_row,
        )
        .optional()?;
    Ok(found)
}

/// Finds a message under any id its chat has had; `sent_at_ms`, where given, must agree for another
/// id than the named one. Of a message that was deleted before it was heard no time is known: only a
/// platform that keeps its ids tells of such.
pub(crate) fn find_message_of_merged_chat(
    connection: &Connection,
    key: MessageKey<'_>,
    sent_at_ms: Option<i64>,
) -> Result<Option<KnownMessage>, StoreError> {
    if let Some(found) = find_message(connection, key)? {
        return Ok(Some(found));
    }
    if !key.chat.has_other_ids {
        return Ok(None);
    }
    let found = connection
        .prepare_cached(
            "SELECT m.chat_id, m.turn_seq, m.edit_marker, m.text
             FROM chat_ids i
             JOIN messages m ON m.account_id = i.account_id AND m.chat_id = i.identity_id
                            AND m.platform_id = ?3
             WHERE i.chat_id = ?2 AND i.account_id = ?1 AND i.identity_id <> ?4
               AND (?5 IS NULL OR m.sent_at_ms = ?5
                    OR (m.turn_seq IS NULL AND m.sent_at_ms IS NULL))
             ORDER BY m.chat_id DESC LIMIT 1",
        )?
        .query_row(
            params![
                key.account,
                key.chat.id,
                key.message_id,
                key.chat.identity,
                sent_at_ms
            ],
            KnownMessage::from_row,
        )
        .optional()?;
    Ok(found)
}

/// A message to remember.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageEntry<'a> {
    pub(crate) account: AccountId,
    pub(crate) identity: ChatId,
    pub(crate) message_id: &'a str,
    /// `None` = a tombstone.
    pub(crate) turn_seq: Option<i64>,
    /// The turn's conversation, where the caller has it at hand.
    pub(crate) conversation: Option<&'a ConversationRow>,
    pub(crate) part: i64,
    /// An album item's own text.
    pub(crate) text: Option<&'a str>,
    pub(crate) edit_marker: Option<&'a str>,
    /// When it was sent; `None` = when its turn was.
    pub(crate) sent_at_ms: Option<i64>,
}

/// Remembers a message; returns whether it was new. Replies that wait for it find it, and threads
/// whose root it is.
pub(crate) fn add_message_txn(
    connection: &Connection,
    entry: MessageEntry<'_>,
) -> Result<bool, StoreError> {
    let added = connection
        .prepare_cached(
            "INSERT INTO messages
                 (account_id, chat_id, platform_id, turn_seq, part, text, edit_marker,
                  sent_at_ms, gone)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7,
                     coalesce(?8, (SELECT sent_at_ms FROM turns WHERE seq = ?4)),
                     CASE WHEN ?4 IS NULL THEN 'deleted' END)
             ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            entry.account,
            entry.identity,
            entry.message_id,
            entry.turn_seq,
            entry.part,
            entry.text,
            entry.edit_marker,
            entry.sent_at_ms
        ])?;
    if added == 0 {
        return Ok(false);
    }
    if let Some(seq) = entry.turn_seq {
        match entry.conversation {
            Some(conversation) => {
                resolve_waiting_txn(connection, conversation, seq, entry.message_id)?;
            }
            None => {
                let conversation = conversation_of_turn(connection, seq)?;
                resolve_waiting_txn(connection, &conversation, seq, entry.message_id)?;
            }
        }
    }
    Ok(true)
}

/// Links what was captured before its target: replies in the same conversation, and the thread
/// below it.
fn resolve_waiting_txn(
    connection: &Connection,
    conversation: &ConversationRow,
    seq: i64,
    message_id: &str,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE turns SET reply_to_seq = ?1, reply_to_message = NULL
             WHERE conversation_id = ?2 AND reply_to_message = ?3",
        )?
        .execute(params![seq, conversation.row, message_id])?;
    if conversation.thread.is_empty() {
        connection
            .prepare_cached(
                "UPDATE conversations SET root_turn_seq = ?1
                 WHERE chat_id = ?2 AND thread = ?3 AND is_topic = 0 AND root_turn_seq IS NULL",
            )?
            .execute(params![seq, conversation.chat, message_id])?;
    }
    Ok(())
}
