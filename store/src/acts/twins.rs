//! Twins: one message that was both received live and imported, where the platform has no shared ids.

use crate::StoreError;
use crate::acts::arrival::{known_message, sent_at_ms};
use crate::contract::NewMessage;
use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::messages::{KnownMessage, MessageEntry, add_message_txn};
use crate::rows::places::{ChatRow, ConversationSeat, find_conversation};

/// Two instants within this time are the same where a platform tells whole seconds only.
pub(crate) const SECOND_MS: i64 = 1_000;

/// Finds the imported turn of a live message where the platform has no shared ids: the message is linked to
/// the turn with the same sender, second and text.
pub(crate) fn claim_twin_txn(
    connection: &Connection,
    message: &NewMessage,
    chat: Option<&ChatRow>,
) -> Result<Option<KnownMessage>, StoreError> {
    let Some(chat) = chat else {
        return Ok(None);
    };
    let has_box: bool = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM messages WHERE account_id = ?1 AND chat_id = ?2
                            AND platform_id >= 'import:' AND platform_id < 'import;') AS has_box",
        )?
        .query_row(params![message.account, chat.identity], |row| {
            row.get("has_box")
        })?;
    if !has_box {
        return Ok(None);
    }
    match nth_twin(connection, message, chat, TwinRule::Unheard)? {
        Some(seq) => note_twin_txn(connection, message, chat, seq)?,
        None => return Ok(None),
    }
    known_message(connection, message, Some(chat))
}

/// Which turns count as twins of a message.
#[derive(Clone, Copy)]
pub(crate) enum TwinRule {
    /// All turns count; the turn after the given number of matches is taken.
    After(u32),
    /// Only turns that were imported and not received live count.
    Unheard,
}

/// The turn in the chat with the same sender, second and text.
pub(crate) fn nth_twin(
    connection: &Connection,
    message: &NewMessage,
    chat: &ChatRow,
    twins: TwinRule,
) -> Result<Option<i64>, StoreError> {
    let seat = ConversationSeat::of(&message.place, &message.message_id);
    let Some(conversation) = find_conversation(connection, chat.id, seat.key())? else {
        return Ok(None);
    };
    let (after, is_unheard) = match twins {
        TwinRule::After(count) => (count, false),
        TwinRule::Unheard => (0, true),
    };
    let second_ms = sent_at_ms(message)
        .div_euclid(SECOND_MS)
        .saturating_mul(SECOND_MS);
    let found = connection
        .prepare_cached(
            "SELECT t.seq FROM turns t JOIN participants p ON p.id = t.participant_id
             WHERE t.conversation_id = ?1 AND t.sent_at_ms >= ?2 AND t.sent_at_ms < ?2 + 1000
               AND p.platform_id = ?3 AND t.content = ?4
               AND NOT (?6 AND EXISTS (SELECT 1 FROM messages m WHERE m.turn_seq = t.seq
                                       AND m.platform_id < 'import:'))
             ORDER BY t.sent_at_ms, t.ordinal, t.seq LIMIT 1 OFFSET ?5",
        )?
        .query_row(
            params![
                conversation.row,
                second_ms,
                message.sender.id,
                message.text,
                after,
                is_unheard
            ],
            |row| row.get("seq"),
        )
        .optional()?;
    Ok(found)
}

/// Links a turn that was imported from another account's export to this account's message id, too.
pub(crate) fn note_twin_txn(
    connection: &Connection,
    message: &NewMessage,
    chat: &ChatRow,
    seq: i64,
) -> Result<(), StoreError> {
    let entry = MessageEntry {
        account: message.account,
        identity: chat.identity,
        message_id: &message.message_id,
        turn_seq: Some(seq),
        conversation: None,
        part: 0,
        text: None,
        edit_marker: message.edit_marker.as_deref(),
        sent_at_ms: Some(sent_at_ms(message)),
    };
    add_message_txn(connection, entry).map(|_| ())
}
