//! Chats that refuse posts are parked: nothing is sent there until an event comes from the chat, or a time is
//! reached. Posts that have waited too long by then are given up, so that a bot that is invited again posts
//! nothing stale.

use crate::engine::sql::{Connection, params};
use crate::rows::open::open_post;

use crate::StoreError;
use crate::rows::columns::chat_kind_name;
use crate::rows::places::ChatRow;
use vocative_contract::envelope::Place;
use vocative_core::ids::ChatId;
use vocative_core::outbox::DeadCause;

/// How long posts wait for a chat that was parked before schema 13, in milliseconds.
const KEEP_MS: i64 = 86_400_000;

/// The reason stored with a post that waited too long for its chat.
const WAITED_OUT: &str = "the chat refused posts for too long";

/// How long a chat is parked, and why.
pub(crate) struct Parking<'a> {
    /// The time at which the chat is tried again at the latest.
    pub(crate) until_ms: i64,
    /// Posts that have waited this long are given up.
    pub(crate) keep_ms: i64,
    pub(crate) reason: &'a str,
}

/// Parks a chat.
pub(crate) fn park_txn(
    connection: &Connection,
    chat: ChatId,
    parking: &Parking<'_>,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE chats SET parked_until_ms = ?2, parked_keep_ms = ?3, parked_reason = ?4
             WHERE id = ?1",
        )?
        .execute(params![
            chat,
            parking.until_ms,
            parking.keep_ms,
            parking.reason
        ])?;
    Ok(())
}

/// Unparks a chat; posts that waited too long are given up.
pub(crate) fn unpark_txn(
    connection: &Connection,
    chat: ChatId,
    now_ms: i64,
) -> Result<(), StoreError> {
    give_up_old_txn(connection, chat, now_ms)?;
    connection
        .prepare_cached(
            "UPDATE chats SET parked_until_ms = NULL, parked_keep_ms = NULL, parked_reason = NULL
             WHERE id = ?1 AND coalesce(parked_until_ms, parked_keep_ms, parked_reason) IS NOT NULL",
        )?
        .execute([chat])?;
    Ok(())
}

/// Gives up posts that waited too long for a parked chat, except those in flight.
pub(crate) fn give_up_old_txn(
    connection: &Connection,
    chat: ChatId,
    now_ms: i64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(concat!(
            "UPDATE outbox SET state = 'dead', dead_cause = ?5, reason = ?3, finished_at_ms = ?2
             WHERE chat_id = ?1 AND ",
            open_post!(),
            " AND state <> 'leased'
               AND created_at_ms <= ?2 - (SELECT coalesce(parked_keep_ms, ?4) FROM chats
                                          WHERE id = ?1 AND parked_reason IS NOT NULL)"
        ))?
        .execute(params![
            chat,
            now_ms,
            WAITED_OUT,
            KEEP_MS,
            DeadCause::GivenUp
        ])?;
    Ok(())
}

/// Stores what an event tells about a chat: that it is heard, its title and kind. An event unparks a parked
/// chat.
pub(crate) fn hear_chat_txn(
    connection: &Connection,
    chat: &ChatRow,
    place: &Place,
    now_ms: i64,
) -> Result<(), StoreError> {
    if chat.knows(place, now_ms) {
        return Ok(());
    }
    if !chat.is_open {
        unpark_txn(connection, chat.id, now_ms)?;
    }
    connection
        .prepare_cached(
            "UPDATE chats SET last_heard_ms = max(last_heard_ms, ?2), is_present = 1,
                    title = coalesce(?3, title), kind = coalesce(?4, kind)
             WHERE id = ?1",
        )?
        .execute(params![
            chat.id,
            now_ms,
            place.title,
            place.kind.map(chat_kind_name)
        ])?;
    Ok(())
}
