//! Albums: several platform messages that are one turn.

use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::turn_rows::{TurnRow, turn_at};

use crate::StoreError;
use crate::contract::NewMessage;
use crate::rows::columns::{attachments_from, count_from, stored_attachments};
use crate::rows::messages::KnownMessage;
use crate::rows::places::{ChatRow, ConversationSeat, find_conversation};
use vocative_core::ids::{AccountId, ChatId};

/// The turn of the album that a message is an item of, once another item was captured.
pub(crate) fn turn_of_album(
    connection: &Connection,
    message: &NewMessage,
    chat: Option<&ChatRow>,
) -> Result<Option<TurnRow>, StoreError> {
    let (Some(album), Some(chat)) = (&message.album, chat) else {
        return Ok(None);
    };
    let seat = ConversationSeat::of(&message.place, &message.message_id);
    let Some(conversation) = find_conversation(connection, chat.id, seat.key())? else {
        return Ok(None);
    };
    let seq = connection
        .prepare_cached(
            "SELECT seq FROM turns
             WHERE conversation_id = ?1 AND album = ?2 AND visibility = 'room'",
        )?
        .query_row(params![conversation.row, album], |row| row.get("seq"))
        .optional()?;
    seq.map(|seq| turn_at(connection, seq)).transpose()
}

/// The distinct texts of a turn's items, in the order of their message ids, a line each.
pub(crate) fn joined_text(connection: &Connection, seq: i64) -> Result<String, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT text FROM messages WHERE turn_seq = ?1 AND text <> ''
         ORDER BY length(platform_id), platform_id",
    )?;
    let rows = statement.query_map([seq], |row| row.get::<_, String>("text"))?;
    let mut texts: Vec<String> = Vec::new();
    for text in rows {
        let text = text?;
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    Ok(texts.join("\n"))
}

/// The attachments of an album of which an item is edited: its picture may be another one. Where it is
/// not known which attachment is whose, they stay.
pub(crate) fn with_item_replaced(
    connection: &Connection,
    turn: &TurnRow,
    known: &KnownMessage,
    message: &NewMessage,
) -> Result<Option<String>, StoreError> {
    let mut attachments = attachments_from(turn.attachments.as_deref())?;
    let item = (message.account, known.identity, message.message_id.as_str());
    let at = place_of_item(connection, turn.seq, item, attachments.len())?;
    if let ([new], Some(at)) = (message.attachments.as_slice(), at) {
        attachments[at].clone_from(new);
    }
    Ok(stored_attachments(&attachments))
}

/// The attachments of an album without those of an item that is about to be deleted. Where it is not known
/// which attachment is whose, none stays.
pub(crate) fn without_item(
    connection: &Connection,
    turn: &TurnRow,
    item: (AccountId, ChatId, &str),
) -> Result<Option<String>, StoreError> {
    let mut attachments = attachments_from(turn.attachments.as_deref())?;
    let Some(at) = place_of_item(connection, turn.seq, item, attachments.len())? else {
        return Ok(None);
    };
    attachments.remove(at);
    Ok(stored_attachments(&attachments))
}

/// Which of an album's attachments is an item's: each item has one, in the order in which they came.
/// `None` where that is not so.
fn place_of_item(
    connection: &Connection,
    seq: i64,
    (account, chat, message_id): (AccountId, ChatId, &str),
    attachments: usize,
) -> Result<Option<usize>, StoreError> {
    let found = connection
        .prepare_cached(
            "SELECT (SELECT count(*) FROM messages o WHERE o.turn_seq = m.turn_seq AND o.part < m.part) AS earlier,
                    (SELECT count(*) FROM messages o WHERE o.turn_seq = m.turn_seq) AS all_items
             FROM messages m
             WHERE m.turn_seq = ?1 AND m.account_id = ?2 AND m.chat_id = ?3 AND m.platform_id = ?4",
        )?
        .query_row(params![seq, account, chat, message_id], |row| {
            Ok((count_from(row.get("earlier")?), count_from(row.get("all_items")?)))
        })
        .optional()?;
    let is_one_each = |(_, items): &(u64, u64)| *items == attachments as u64;
    let place = found.filter(is_one_each).map(|(place, _)| place);
    Ok(place.and_then(|place| usize::try_from(place).ok()))
}

/// Whether another item of a turn than this message has text.
pub(crate) fn others_say_something(
    connection: &Connection,
    seq: i64,
    known: &KnownMessage,
    message_id: &str,
) -> Result<bool, StoreError> {
    let others = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM messages WHERE turn_seq = ?1 AND text <> ''
                            AND NOT (chat_id = ?2 AND platform_id = ?3)) AS others",
        )?
        .query_row(params![seq, known.identity, message_id], |row| {
            row.get("others")
        })?;
    Ok(others)
}
