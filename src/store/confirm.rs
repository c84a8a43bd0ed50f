//! Our own posts coming back: the surest word on a post whose outcome is unknown.

use rusqlite::{Connection, OptionalExtension, params};

use super::messages::{MessageEntry, MessageKey, add_message_txn, find_message};
use super::places::find_chat;
use super::{Store, StoreError};
use crate::domain::ids::{AccountId, ChatId, OutboxId};

impl Store {
    /// Notes that a post of ours was seen. If its marker is an entry that is leased, of unknown
    /// outcome or held for it, that entry is sent.
    ///
    /// # Errors
    /// `Unavailable` if storage refuses.
    pub async fn confirm_own_post(
        &self,
        account: AccountId,
        chat: &str,
        message_id: &str,
        marker: Option<&str>,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let Some(marker) = marker.and_then(|marker| marker.parse().ok()) else {
            return Ok(());
        };
        let seen = SeenPost {
            account,
            chat: chat.to_owned(),
            message_id: message_id.to_owned(),
            marker,
            now_ms,
        };
        self.write(move |connection| confirm_txn(connection, &seen))
            .await
    }
}

struct SeenPost {
    account: AccountId,
    chat: String,
    message_id: String,
    marker: OutboxId,
    now_ms: i64,
}

struct OpenEntry {
    row: i64,
    chat: ChatId,
    turn_seq: Option<i64>,
    part: i64,
}

fn confirm_txn(connection: &Connection, seen: &SeenPost) -> Result<(), StoreError> {
    let Some(entry) = open_entry(connection, seen)? else {
        return Ok(());
    };
    let chat = find_chat(connection, seen.account, &seen.chat)?;
    if let Some(chat) = &chat {
        let key = MessageKey {
            account: seen.account,
            chat,
            message_id: &seen.message_id,
        };
        if find_message(connection, key)?.is_some() {
            return Ok(());
        }
    }
    connection
        .prepare_cached(
            "UPDATE outbox SET state = 'sent', reason = NULL, message_id = ?2, finished_at_ms = ?3,
                    owner = NULL, token = NULL, lease_until_ms = NULL
             WHERE id = ?1",
        )?
        .execute(params![entry.row, seen.message_id, seen.now_ms])?;
    connection
        .prepare_cached(
            "UPDATE outbox_attempts SET ended_at_ms = ?2, outcome = 'seen'
             WHERE outbox_id = ?1 AND ended_at_ms IS NULL",
        )?
        .execute([entry.row, seen.now_ms])?;
    if entry.turn_seq.is_some() {
        add_message_txn(
            connection,
            MessageEntry {
                account: seen.account,
                identity: chat.map_or(entry.chat, |chat| chat.identity),
                message_id: &seen.message_id,
                turn_seq: entry.turn_seq,
                conversation: None,
                part: entry.part,
                text: None,
                edit_marker: None,
                sent_at_ms: None,
            },
        )?;
    }
    Ok(())
}

/// The entry of a marker, if its outcome is open: it may be on the platform and nobody knows.
fn open_entry(connection: &Connection, seen: &SeenPost) -> Result<Option<OpenEntry>, StoreError> {
    let entry = connection
        .prepare_cached(
            "SELECT id, chat_id, turn_seq, part FROM outbox
             WHERE uuid = ?1 AND account_id = ?2
               AND (state IN ('leased', 'unknown', 'held')
                    OR (state = 'pending' AND send_started = 1))",
        )?
        .query_row(params![seen.marker, seen.account], |row| {
            Ok(OpenEntry {
                row: row.get(0)?,
                chat: row.get(1)?,
                turn_seq: row.get(2)?,
                part: row.get(3)?,
            })
        })
        .optional()?;
    Ok(entry)
}
