//! Stores facts about chats, topics and persons that do not come with messages. Nothing here makes a row
//! for a place or person of which nothing was captured.

use crate::capability::MayCapture;
use crate::engine::sql::{Connection, params};
use crate::rows::participants::{keep_former_names_txn, names_of};
use crate::rows::run_events::move_events_txn;
use vocative_contract::envelope::{ChatKind, Place, Sender};

use crate::acts::notices::introduce_txn;
use crate::acts::parking::unpark_txn;
use crate::rows::columns::chat_kind_name;
use crate::rows::places::{
    ChatRow, ConversationSeat, ensure_chat_txn, ensure_conversation_txn, find_chat, name_topic_txn,
};
use crate::{Reader, Store, StoreError};
use vocative_core::ids::AccountId;
use vocative_core::place::Scope;

impl Reader {
    /// People of an account without a display name, and group chats without a title, as platform
    /// ids: at most `limit` each, most recently active first.
    ///
    /// # Errors
    /// `Unavailable` if storage refuses.
    pub async fn unnamed(
        &self,
        account: AccountId,
        limit: usize,
    ) -> Result<(Vec<String>, Vec<String>), StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.read(move |connection| {
            let people = ids(
                connection,
                "SELECT platform_id FROM participants
                 WHERE account_id = ?1 AND kind = 'user' AND display_name IS NULL
                   AND NOT EXISTS (SELECT 1 FROM erased_identities e
                                   WHERE e.account_id = ?1 AND e.kind = 'person'
                                     AND e.platform_id = participants.platform_id AND e.chat = ''
                                     AND e.erased_at_ms >= participants.last_seen_ms)
                 ORDER BY last_seen_ms DESC, id DESC LIMIT ?2",
                account,
                limit,
            )?;
            let chats = ids(
                connection,
                "SELECT platform_id FROM chats
                 WHERE account_id = ?1 AND title IS NULL AND last_heard_ms > 0
                   AND kind IS NOT 'direct'
                   AND EXISTS (SELECT 1 FROM chat_ids i WHERE i.chat_id = chats.id)
                 ORDER BY last_heard_ms DESC, id DESC LIMIT ?2",
                account,
                limit,
            )?;
            Ok((people, chats))
        })
        .await
    }
}

impl<C: MayCapture> Store<C> {
    /// Stores a known chat's title or kind, or a topic's name.
    ///
    /// # Errors
    /// `Unavailable` if storage refuses.
    pub async fn learn_place(
        &self,
        account: AccountId,
        place: Place,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        self.write(move |connection| learn_place_txn(connection, account, &place, now_ms))
            .await
    }

    /// Notes that the bot joined or left a known chat; joining unparks a parked chat. An introduction is
    /// posted once in a room that the bot joins.
    ///
    /// # Errors
    /// `Unavailable` if storage refuses.
    pub async fn record_membership(
        &self,
        account: AccountId,
        place: Place,
        is_present: bool,
        introduction: Option<String>,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        self.write(move |connection| {
            let introduction = introduction.filter(|_| is_present);
            if introduction.is_some() {
                ensure_chat_txn(connection, account, &place.chat)?;
            }
            learn_place_txn(connection, account, &place, now_ms)?;
            let Some(chat) = find_chat(connection, account, &place.chat)? else {
                return Ok(());
            };
            // A broadcast channel is no room: a post there goes out to all its readers.
            let is_room = !matches!(
                place.kind.or(chat.kind),
                Some(ChatKind::Direct | ChatKind::Broadcast)
            );
            if let Some(text) = introduction.filter(|_| is_room) {
                let chat = (chat.id, place.chat.as_str());
                introduce_txn(connection, account, chat, &text, now_ms)?;
            }
            connection
                .prepare_cached("UPDATE chats SET is_present = ?2 WHERE id = ?1")?
                .execute(params![chat.id, is_present])?;
            if is_present {
                unpark_txn(connection, chat.id, now_ms)?;
            }
            Ok(())
        })
        .await
    }

    /// Stores the names of a known participant.
    ///
    /// # Errors
    /// `Unavailable` if storage refuses.
    pub async fn learn_person(&self, account: AccountId, sender: Sender) -> Result<(), StoreError> {
        self.write(move |connection| {
            let before = names_of(connection, account, &sender.id)?;
            connection
                .prepare_cached(
                    "UPDATE participants SET display_name = coalesce(?3, display_name),
                            username = coalesce(?4, username)
                     WHERE account_id = ?1 AND platform_id = ?2 AND kind IN ('user', 'system')
                       AND NOT EXISTS (SELECT 1 FROM erased_identities e
                                       WHERE e.account_id = ?1 AND e.kind = 'person'
                                         AND e.platform_id = ?2 AND e.chat = ''
                                         AND e.erased_at_ms >= participants.last_seen_ms)",
                )?
                .execute(params![
                    account,
                    sender.id,
                    sender.display_name,
                    sender.username
                ])?;
            keep_former_names_txn(connection, &before)
        })
        .await
    }
}

fn ids(
    connection: &Connection,
    sql: &str,
    account: AccountId,
    limit: i64,
) -> Result<Vec<String>, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![account, limit], |row| row.get("platform_id"))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn learn_place_txn(
    connection: &Connection,
    account: AccountId,
    place: &Place,
    now_ms: i64,
) -> Result<(), StoreError> {
    let Some(chat) = find_chat(connection, account, &place.chat)? else {
        return Ok(());
    };
    connection
        .prepare_cached(
            "UPDATE chats SET title = coalesce(?2, title), kind = coalesce(?3, kind) WHERE id = ?1",
        )?
        .execute(params![
            chat.id,
            place.title,
            place.kind.map(chat_kind_name)
        ])?;
    settle_kind_txn(connection, &chat, place.kind, now_ms)?;
    if let (Some(topic), Some(title)) = (&place.topic, &place.topic_title) {
        let seat = ConversationSeat::Topic(topic);
        let conversation = ensure_conversation_txn(connection, chat.id, seat, now_ms)?;
        name_topic_txn(connection, conversation.row, title)?;
    }
    Ok(())
}

/// A run that waits longer than this is not waiting to learn its chat's kind, but for quiet hours to end.
const KIND_WAIT_MAX_MS: i64 = 10_000;

/// Corrects what was captured while a chat's kind was not known: a platform may report a mention before it
/// reports the chat. `chat` is the row as it was before.
pub(crate) fn settle_kind_txn(
    connection: &Connection,
    chat: &ChatRow,
    learnt: Option<ChatKind>,
    now_ms: i64,
) -> Result<(), StoreError> {
    let Some(kind) = learnt.filter(|_| chat.kind.is_none()) else {
        return Ok(());
    };
    if Scope::of(Some(kind), false) == Scope::Dm {
        answer_in_line_txn(connection, chat)?;
    }
    // Runs that waited for the kind to be learnt wait no longer; an album's run still waits.
    connection
        .prepare_cached(
            "UPDATE runs SET not_before_ms = min(not_before_ms, ?2)
             WHERE chat_id = ?1 AND state = 'queued' AND attempt = 0
               AND not_before_ms - created_at_ms <= ?3
               AND NOT EXISTS (SELECT 1 FROM run_triggers g JOIN turns t ON t.seq = g.turn_seq
                               WHERE g.run_id = runs.id AND t.album IS NOT NULL)",
        )?
        .execute(params![chat.id, now_ms, KIND_WAIT_MAX_MS])?;
    Ok(())
}

/// Turns of direct chats all have scope `dm`, and answers open no threads there: a run that waits in a thread
/// without turns moves back to the conversation of its trigger.
fn answer_in_line_txn(connection: &Connection, chat: &ChatRow) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE turns SET scope = 'dm'
             WHERE scope <> 'dm'
               AND conversation_id IN (SELECT id FROM conversations WHERE chat_id = ?1)",
        )?
        .execute([chat.id])?;
    let moved: Vec<i64> = connection
        .prepare_cached(
            "UPDATE runs
             SET conversation_id = (SELECT c.parent_id FROM conversations c
                                    WHERE c.id = runs.conversation_id)
             WHERE chat_id = ?1 AND state = 'queued' AND attempt = 0
               AND conversation_id IN (SELECT id FROM conversations
                                       WHERE chat_id = ?1 AND parent_id IS NOT NULL
                                         AND NOT is_fork AND turn_count = 0)
             RETURNING id",
        )?
        .query_map([chat.id], |row| row.get("id"))?
        .collect::<crate::engine::sql::Result<_>>()?;
    for run in moved {
        move_events_txn(connection, run)?;
    }
    connection
        .prepare_cached(
            "DELETE FROM conversations
             WHERE chat_id = ?1 AND parent_id IS NOT NULL AND NOT is_fork AND turn_count = 0
               AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.conversation_id = conversations.id)",
        )?
        .execute([chat.id])?;
    Ok(())
}
