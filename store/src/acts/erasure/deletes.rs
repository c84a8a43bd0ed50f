//! Deletes: the text of a message is removed everywhere; its identity stays so that it can't come back.

use crate::acts::forgetting::{blank_turn_txn, forget_derived_txn};
use crate::capability::MayCapture;
use crate::engine::sql::{Connection, params};
use crate::rows::turn_rows::{TurnRow, turn_at};
use vocative_contract::outbound::Part;

use crate::acts::erasure::note_deleted_txn;
use crate::acts::made_from::forget_made_from_txn;
use crate::acts::overlap::cancel_runs_of_deleted_txn;
use crate::acts::questions::cancel_question_of_post_txn;
use crate::acts::schedules::forget_schedules_of_message_txn;
use crate::contract::Deleted;
use crate::rows::album::{joined_text, without_item};
use crate::rows::messages::{
    KnownMessage, MessageEntry, MessageKey, add_message_txn, find_message_of_merged_chat,
};
use crate::rows::places::ensure_chat_txn;
use crate::rows::summaries::{SummaryFate, invalidate_summaries_txn};
use crate::rows::titles::forget_titles_of_turn_txn;
use crate::rows::turns::{Replacement, revise_turn_txn};
use crate::{Store, StoreError};
use vocative_core::ids::AccountId;
use vocative_core::running::made_from::SourceExtent;

impl<C: MayCapture> Store<C> {
    /// Blanks a deleted message; the id of an unknown one is remembered, so that it can't be captured later.
    ///
    /// # Errors
    /// `Unavailable` if storage refuses.
    pub async fn capture_delete(
        &self,
        account: AccountId,
        chat: &str,
        message_id: &str,
        now_ms: i64,
    ) -> Result<Deleted, StoreError> {
        let (chat, message_id) = (chat.to_owned(), message_id.to_owned());
        let ledger = self.ledger_path();
        self.write_and_clean(now_ms, move |connection| {
            let (deleted, is_news) = delete_txn(connection, account, &chat, &message_id, now_ms)?;
            if is_news {
                let named = (chat.as_str(), message_id.as_str());
                note_deleted_txn(connection, ledger.as_deref(), account, named, now_ms)?;
            }
            Ok(deleted)
        })
        .await
    }
}

/// Deletes a message; returns also whether it was not deleted before.
pub(crate) fn delete_txn(
    connection: &Connection,
    account: AccountId,
    chat: &str,
    message_id: &str,
    now_ms: i64,
) -> Result<(Deleted, bool), StoreError> {
    let chat = ensure_chat_txn(connection, account, chat)?;
    cancel_question_of_post_txn(connection, chat.id, message_id, now_ms)?;
    let key = MessageKey {
        account,
        chat: &chat,
        message_id,
    };
    let Some(known) = find_message_of_merged_chat(connection, key, None)? else {
        add_message_txn(
            connection,
            MessageEntry {
                account,
                identity: chat.identity,
                message_id,
                turn_seq: None,
                conversation: None,
                part: 0,
                text: None,
                edit_marker: None,
                sent_at_ms: None,
            },
        )?;
        return Ok((Deleted::Remembered, true));
    };
    let Some(seq) = known.turn_seq else {
        let is_news = forget_expired_txn(connection, key, &known)?;
        return Ok((Deleted::Remembered, is_news));
    };
    let mut turn = turn_at(connection, seq)?;
    let attachments = match turn.album {
        Some(_) => without_item(connection, &turn, (account, known.identity, message_id))?,
        None => None,
    };
    forget_schedules_of_message_txn(connection, chat.id, message_id)?;
    forget_made_from_txn(connection, &turn, SourceExtent::FromMessage, now_ms)?;
    bury_txn(connection, key, &known, &turn)?;
    if has_live_messages(connection, seq)? {
        shrink_turn_txn(connection, &mut turn, attachments, now_ms)?;
        let blanked = Deleted::Blanked {
            turn: turn.id,
            cancelled_runs: Vec::new(),
        };
        return Ok((blanked, true));
    }
    let cancelled_runs = cancel_runs_of_deleted_txn(connection, &turn, now_ms)?;
    blank_turn_txn(connection, &turn)?;
    let blanked = Deleted::Blanked {
        turn: turn.id,
        cancelled_runs,
    };
    Ok((blanked, true))
}

/// Removes an expired message from the summaries that still hold it. Its time says which turn it was. Returns
/// whether it was there by then.
fn forget_expired_txn(
    connection: &Connection,
    key: MessageKey<'_>,
    known: &KnownMessage,
) -> Result<bool, StoreError> {
    let changed = connection
        .prepare_cached(
            "UPDATE messages SET gone = 'deleted'
             WHERE account_id = ?1 AND chat_id = ?2 AND platform_id = ?3 AND gone = 'expired'",
        )?
        .execute(params![key.account, known.identity, key.message_id])?;
    if changed == 0 {
        return Ok(false);
    }
    let mut statement = connection.prepare_cached(
        "SELECT t.seq FROM messages m CROSS JOIN conversations c ON c.chat_id = ?4
         CROSS JOIN turns t ON t.conversation_id = c.id AND t.sent_at_ms = m.sent_at_ms
         WHERE m.account_id = ?1 AND m.chat_id = ?2 AND m.platform_id = ?3 AND t.visibility = 'hidden'",
    )?;
    let rows = statement.query_map(
        params![key.account, known.identity, key.message_id, key.chat.id],
        |row| row.get("seq"),
    )?;
    for seq in rows.collect::<crate::engine::sql::Result<Vec<i64>>>()? {
        let turn = turn_at(connection, seq)?;
        invalidate_summaries_txn(connection, &turn, SummaryFate::Void)?;
    }
    Ok(true)
}

/// Makes a message a tombstone, and empties its post if it was one of ours.
fn bury_txn(
    connection: &Connection,
    key: MessageKey<'_>,
    known: &KnownMessage,
    turn: &TurnRow,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE messages SET turn_seq = NULL, text = NULL, gone = 'deleted'
             WHERE account_id = ?1 AND chat_id = ?2 AND platform_id = ?3",
        )?
        .execute(params![key.account, known.identity, key.message_id])?;
    let emptied = serde_json::to_string(&Part::plain(""))?;
    connection
        .prepare_cached(
            "UPDATE outbox SET payload = ?3
             WHERE turn_seq = ?1 AND state = 'sent' AND message_id = ?2",
        )?
        .execute(params![turn.seq, key.message_id, emptied])?;
    Ok(())
}

fn has_live_messages(connection: &Connection, seq: i64) -> Result<bool, StoreError> {
    let has = connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM messages WHERE turn_seq = ?1) AS has")?
        .query_row([seq], |row| row.get("has"))?;
    Ok(has)
}

/// Reduces a turn to the text and files of its remaining messages.
fn shrink_turn_txn(
    connection: &Connection,
    turn: &mut TurnRow,
    attachments: Option<String>,
    now_ms: i64,
) -> Result<(), StoreError> {
    let content = if turn.is_inbound {
        joined_text(connection, turn.seq)?
    } else {
        posted_text(connection, turn.seq)?
    };
    let replacement = Replacement {
        content,
        attachments,
        tokens: None,
        keep_revision: false,
        now_ms,
    };
    revise_turn_txn(connection, turn, replacement)?;
    for sql in [
        "DELETE FROM revisions WHERE turn_seq = ?1",
        "DELETE FROM raw_envelopes WHERE turn_seq = ?1",
    ] {
        connection.prepare_cached(sql)?.execute([turn.seq])?;
    }
    forget_derived_txn(connection, turn.seq)?;
    forget_titles_of_turn_txn(connection, turn.seq)?;
    invalidate_summaries_txn(connection, turn, SummaryFate::Void)
}

/// The text that the remaining posts of a turn of ours say.
fn posted_text(connection: &Connection, seq: i64) -> Result<String, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT payload FROM outbox WHERE turn_seq = ?1 AND state <> 'replaced'
           AND id NOT IN (SELECT e.edit_of FROM outbox e
                          WHERE e.turn_seq = ?1 AND e.edit_of IS NOT NULL)
         ORDER BY sort_key",
    )?;
    let rows = statement.query_map([seq], |row| row.get::<_, String>("payload"))?;
    let mut texts = Vec::new();
    for payload in rows {
        let part: Part = serde_json::from_str(&payload?)?;
        let said = part.file.map_or(part.text, |file| file.content);
        if !said.is_empty() {
            texts.push(said);
        }
    }
    Ok(texts.join("\n"))
}
