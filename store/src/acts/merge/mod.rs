//! Merges two chats that turn out to be one, in bounded steps.
//!
//! The chat of the old id merges into the chat of the new one. Its conversations move; where the
//! new chat has the same thread or topic already, the smaller conversation's turns move into the
//! larger one, with new seqs (they are new to a reader that goes on from a cursor) and unchanged
//! positions: after a supergroup upgrade a handful of new turns moves, and not years of old ones.
//! The old chat's row stays as the identity of its messages (see `messages`).
//!
//! The first commit ([`begin_txn`]) makes the two one chat for everything that is captured, asked and sent
//! from then on. The remaining rows move in steps ([`steps`]), each a commit of its own; two tables say
//! what there is to do. A chat of the usual size needs no further steps. `docs/adr/0037-merging-chats.md`
//! says what readers see meanwhile.

pub(crate) mod steps;

use crate::capability::{MayCapture, MayWork};
use crate::engine::sql::{Connection, params};
use crate::rows::open::{open_post, open_run};

use self::steps::{first_step_txn, step_txn};
use crate::acts::notices::withdraw_introduction_txn;
use crate::rows::fresh_starts::merge_fresh_starts_txn;
use crate::rows::jobs::enqueue_txn;
use crate::rows::places::{ChatRow, ConversationRow, ensure_chat_txn, find_conversation};
use crate::{Store, StoreError};
use vocative_core::ids::{AccountId, ChatId};
use vocative_core::job::Job;

impl<C: MayCapture> Store<C> {
    /// Makes two chat ids one chat, whichever of them was heard first. Doing it again does nothing. Long
    /// conversations leave work for [`Store::continue_merges`].
    ///
    /// # Errors
    /// `Unavailable` if storage refuses.
    pub async fn merge_chats(
        &self,
        account: AccountId,
        from_chat: &str,
        to_chat: &str,
        _now_ms: i64,
    ) -> Result<(), StoreError> {
        let (from, to) = (from_chat.to_owned(), to_chat.to_owned());
        self.write(move |connection| {
            let from = ensure_chat_txn(connection, account, &from)?;
            let target = ensure_chat_txn(connection, account, &to)?;
            if from.id == target.id {
                return Ok(());
            }
            begin_txn(connection, &from, &target, &to)
        })
        .await
    }
}

impl<C: MayWork> Store<C> {
    /// Does the next bounded step of the merges that are under way; returns whether anything is left.
    ///
    /// # Errors
    /// `Unavailable` if storage refuses.
    pub async fn continue_merges(&self) -> Result<bool, StoreError> {
        match self.read(is_under_way).await? {
            true => self.write(step_txn).await,
            false => Ok(false),
        }
    }
}

fn is_under_way(connection: &Connection) -> Result<bool, StoreError> {
    Ok(connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM chat_merges) AS is_so")?
        .query_row([], |row| row.get("is_so"))?)
}

/// Begins a merge: everything that is captured, asked or sent from this commit on finds one chat.
fn begin_txn(
    connection: &Connection,
    from: &ChatRow,
    target: &ChatRow,
    to_platform_id: &str,
) -> Result<(), StoreError> {
    for source in conversations_of(connection, from.id)? {
        match find_conversation(connection, target.id, &source.thread)? {
            Some(counterpart) if is_larger(connection, &source, &counterpart)? => {
                join_txn(connection, &counterpart, &source, target.id)?;
                move_conversation_txn(connection, source.row, target.id)?;
            }
            Some(counterpart) => join_txn(connection, &source, &counterpart, target.id)?,
            None => move_conversation_txn(connection, source.row, target.id)?,
        }
    }
    withdraw_introduction_txn(connection, from.id, target.id)?;
    join_attributes_txn(connection, from.id, target.id)?;
    for sql in [
        "UPDATE chat_ids SET chat_id = ?2 WHERE chat_id = ?1",
        concat!(
            "UPDATE runs INDEXED BY runs_waiting SET chat_id = ?2
         WHERE ",
            open_run!(),
            " AND chat_id = ?1"
        ),
        // Unfinished merges into the chat that goes end in the other one.
        "UPDATE chat_merges SET chat_id = ?2 WHERE chat_id = ?1",
        "INSERT INTO chat_merges (from_chat_id, chat_id) VALUES (?1, ?2)",
    ] {
        connection
            .prepare_cached(sql)?
            .execute(params![from.id, target.id])?;
    }
    redirect_posts_txn(connection, from.id, target.id, to_platform_id)?;
    first_step_txn(connection, from.id, target.id)?;
    // Due at once, whatever the time is.
    match is_under_way(connection)? {
        true => enqueue_txn(connection, &Job::MergeChats, None, 0),
        false => Ok(()),
    }
}

/// Redirects unsent posts to the new chat id, without the message they reply to, which has another id there.
fn redirect_posts_txn(
    connection: &Connection,
    from: ChatId,
    target: ChatId,
    to_platform_id: &str,
) -> Result<(), StoreError> {
    for sql in [
        concat!(
            "UPDATE outbox INDEXED BY outbox_open SET chat_id = ?2,
                target = iif(json_valid(target),
                             json_remove(json_set(target, '$.chat', ?3), '$.reply_to'), target)
         WHERE chat_id = ?1 AND ",
            open_post!()
        ),
        "UPDATE outbox INDEXED BY outbox_stuck SET chat_id = ?2,
                target = iif(json_valid(target),
                             json_remove(json_set(target, '$.chat', ?3), '$.reply_to'), target)
         WHERE state IN ('held', 'dead') AND state = 'held' AND chat_id = ?1",
        "UPDATE outbox SET chat_id = ?2,
                target = iif(json_valid(target),
                             json_remove(json_set(target, '$.chat', ?3), '$.reply_to'), target)
         WHERE id IN (SELECT row_id FROM quarantine WHERE queue = 'post')
           AND state = 'quarantined' AND chat_id = ?1",
    ] {
        connection
            .prepare_cached(sql)?
            .execute(params![from, target, to_platform_id])?;
    }
    Ok(())
}

/// Whether a conversation holds more turns than another, by the counts kept at capture.
fn is_larger(
    connection: &Connection,
    one: &ConversationRow,
    other: &ConversationRow,
) -> Result<bool, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT a.turn_count > b.turn_count AS is_larger FROM conversations a, conversations b
             WHERE a.id = ?1 AND b.id = ?2",
        )?
        .query_row([one.row, other.row], |row| row.get("is_larger"))?)
}

/// The conversations of a chat, parents first, so that a thread's parent has moved before it.
fn conversations_of(
    connection: &Connection,
    chat: ChatId,
) -> Result<Vec<ConversationRow>, StoreError> {
    let mut statement = connection
        .prepare_cached("SELECT thread FROM conversations WHERE chat_id = ?1 ORDER BY thread")?;
    let keys = statement.query_map(params![chat], |row| row.get("thread"))?;
    let keys: Vec<String> = keys.collect::<Result<_, _>>()?;
    let mut conversations = Vec::with_capacity(keys.len());
    for key in keys {
        conversations.extend(find_conversation(connection, chat, &key)?);
    }
    Ok(conversations)
}

/// Joins the attributes of two chats; the target's values win where it has any.
fn join_attributes_txn(
    connection: &Connection,
    from: ChatId,
    target: ChatId,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE chats
             SET title = coalesce(chats.title, f.title), kind = coalesce(chats.kind, f.kind),
                 refused_notice_at_ms = coalesce(chats.refused_notice_at_ms, f.refused_notice_at_ms),
                 limit_notice_at_ms = coalesce(chats.limit_notice_at_ms, f.limit_notice_at_ms),
                 introduced_at_ms = coalesce(chats.introduced_at_ms, f.introduced_at_ms),
                 quiet_told_until_ms = coalesce(chats.quiet_told_until_ms, f.quiet_told_until_ms),
                 bot_exchanges = max(chats.bot_exchanges, f.bot_exchanges),
                 last_heard_ms = max(chats.last_heard_ms, f.last_heard_ms)
             FROM chats f WHERE f.id = ?1 AND chats.id = ?2",
        )?
        .execute(params![from, target])?;
    connection
        .prepare_cached(
            "UPDATE chats SET parked_until_ms = NULL, parked_keep_ms = NULL, parked_reason = NULL
             WHERE id = ?1",
        )?
        .execute(params![from])?;
    Ok(())
}

/// A conversation without a counterpart keeps its turns and changes its chat. A thread's parent
/// may be the target's own conversation by then.
fn move_conversation_txn(
    connection: &Connection,
    row: i64,
    target: ChatId,
) -> Result<(), StoreError> {
    connection
        .prepare_cached("UPDATE conversations SET chat_id = ?2 WHERE id = ?1")?
        .execute(params![row, target])?;
    Ok(())
}

/// Begins to move one conversation into another: open runs move at once, and the source gives up its
/// seat. When the steps are done the source is empty, and is removed.
fn join_txn(
    connection: &Connection,
    source: &ConversationRow,
    target: &ConversationRow,
    chat: ChatId,
) -> Result<(), StoreError> {
    merge_fresh_starts_txn(connection, source.row, target.row)?;
    for sql in [
        concat!(
            "UPDATE runs SET conversation_id = ?2
         WHERE conversation_id = ?1 AND ",
            open_run!()
        ),
        concat!(
            "UPDATE run_events SET conversation_id = ?2
         WHERE conversation_id = ?1
           AND run_id IN (SELECT id FROM runs WHERE conversation_id = ?2
                                                AND ",
            open_run!(),
            ")"
        ),
        "UPDATE conversations SET parent_id = ?2 WHERE parent_id = ?1",
        JOIN_ATTRIBUTES_SQL,
        "UPDATE conversation_merges SET target_id = ?2 WHERE target_id = ?1",
        "INSERT INTO conversation_merges (source_id, target_id) VALUES (?1, ?2)",
    ] {
        connection
            .prepare_cached(sql)?
            .execute([source.row, target.row])?;
    }
    // No platform has a thread or topic of this name, so new messages go to the other conversation.
    connection
        .prepare_cached(
            "UPDATE conversations SET chat_id = ?2, thread = 'merging-' || id, is_topic = 1,
                    parent_id = NULL
             WHERE id = ?1",
        )?
        .execute(params![source.row, chat])?;
    Ok(())
}

/// Copies attributes of the source to the target where the target has none.
const JOIN_ATTRIBUTES_SQL: &str = "UPDATE conversations
     SET last_activity_ms = max(conversations.last_activity_ms, s.last_activity_ms),
         expired_through_ms = min(conversations.expired_through_ms, s.expired_through_ms),
         title = coalesce(conversations.title, s.title),
         own_title = coalesce(conversations.own_title, s.own_title),
         own_title_from = CASE WHEN conversations.own_title IS NOT NULL THEN conversations.own_title_from
                               WHEN s.own_title IS NOT NULL THEN s.own_title_from
                               ELSE coalesce(conversations.own_title_from, s.own_title_from) END,
         own_title_participant_id = CASE WHEN conversations.own_title IS NOT NULL
                                         THEN conversations.own_title_participant_id
                                         ELSE s.own_title_participant_id END,
         root_turn_seq = coalesce(conversations.root_turn_seq, s.root_turn_seq)
     FROM conversations s WHERE s.id = ?1 AND conversations.id = ?2";
