//! Two chats that are found to be one become one, in one transaction.
//!
//! The chat of the old id merges into the chat of the new one. Its conversations move; where the
//! new chat has the same thread or topic already, the smaller conversation's turns move into the
//! larger one, with new seqs (they are new to a reader that goes on from a cursor) and unchanged
//! positions: after a supergroup upgrade a handful of new turns moves, and not years of old ones.
//! Runs and posts follow, summaries go stale (but for those over turns that went by their age). The old chat's row stays as the identity of its
//! messages (see `messages`).

use crate::sql::{Connection, params};

use super::fresh_starts::merge_fresh_starts_txn;
use super::notices::withdraw_introduction_txn;
use super::places::{ChatRow, ConversationRow, ensure_chat_txn, find_conversation};
use super::search_text::{in_index, index_turn_txn, unindex_turn_txn};
use super::{Store, StoreError};
use vocative_core::ids::{AccountId, ChatId};

impl Store {
    /// Makes two chat ids one chat, whichever of them was heard first. Doing it again does nothing.
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
            merge_txn(connection, &from, &target, &to)
        })
        .await
    }
}

fn merge_txn(
    connection: &Connection,
    from: &ChatRow,
    target: &ChatRow,
    to_platform_id: &str,
) -> Result<(), StoreError> {
    for source in conversations_of(connection, from.id)? {
        stale_summaries_txn(connection, source.row)?;
        match find_conversation(connection, target.id, &source.thread)? {
            Some(counterpart) => {
                stale_summaries_txn(connection, counterpart.row)?;
                if is_larger(connection, &source, &counterpart)? {
                    merge_conversation_txn(connection, &counterpart, &source)?;
                    move_conversation_txn(connection, source.row, target.id)?;
                } else {
                    merge_conversation_txn(connection, &source, &counterpart)?;
                }
            }
            None => move_conversation_txn(connection, source.row, target.id)?,
        }
    }
    withdraw_introduction_txn(connection, from.id, target.id)?;
    join_attributes_txn(connection, from.id, target.id)?;
    for sql in [
        "UPDATE chat_ids SET chat_id = ?2 WHERE chat_id = ?1",
        "UPDATE runs SET chat_id = ?2 WHERE chat_id = ?1",
    ] {
        connection
            .prepare_cached(sql)?
            .execute(params![from.id, target.id])?;
    }
    // What is still to be sent goes to the new id; the message it answers has another id there.
    connection
        .prepare_cached(
            "UPDATE outbox SET target = json_remove(json_set(target, '$.chat', ?2), '$.reply_to')
             WHERE chat_id = ?1 AND state IN ('pending', 'leased', 'unknown', 'held')",
        )?
        .execute(params![from.id, to_platform_id])?;
    connection
        .prepare_cached("UPDATE outbox SET chat_id = ?2 WHERE chat_id = ?1")?
        .execute(params![from.id, target.id])?;
    Ok(())
}

/// Whether a conversation holds more turns than another, as they are counted at capture.
fn is_larger(
    connection: &Connection,
    one: &ConversationRow,
    other: &ConversationRow,
) -> Result<bool, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT a.turn_count > b.turn_count FROM conversations a, conversations b
             WHERE a.id = ?1 AND b.id = ?2",
        )?
        .query_row([one.row, other.row], |row| row.get(0))?)
}

/// Parents first, so that a thread finds its parent moved.
fn conversations_of(
    connection: &Connection,
    chat: ChatId,
) -> Result<Vec<ConversationRow>, StoreError> {
    let mut statement = connection
        .prepare_cached("SELECT thread FROM conversations WHERE chat_id = ?1 ORDER BY thread")?;
    let keys = statement.query_map(params![chat], |row| row.get(0))?;
    let keys: Vec<String> = keys.collect::<Result<_, _>>()?;
    let mut conversations = Vec::with_capacity(keys.len());
    for key in keys {
        conversations.extend(find_conversation(connection, chat, &key)?);
    }
    Ok(conversations)
}

fn stale_summaries_txn(connection: &Connection, conversation_row: i64) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE summaries SET state = 'stale'
             WHERE conversation_id = ?1 AND state = 'current' AND NOT holds_expired",
        )?
        .execute([conversation_row])?;
    Ok(())
}

/// The target knows better, where it knows something.
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

/// Moves all that one conversation holds into another, and removes it.
fn merge_conversation_txn(
    connection: &Connection,
    source: &ConversationRow,
    target: &ConversationRow,
) -> Result<(), StoreError> {
    // A turn's seq is a parent key; its children follow one statement later.
    connection.execute_batch("PRAGMA defer_foreign_keys = ON")?;
    number_anew_txn(connection, source)?;
    index_anew_txn(connection, source)?;
    merge_fresh_starts_txn(connection, source.row, target.row)?;
    for sql in [
        "UPDATE turns SET seq = (SELECT new FROM moved WHERE old = seq), conversation_id = ?2
         WHERE conversation_id = ?1",
        "UPDATE involvements SET seq = (SELECT new FROM moved WHERE old = seq), conversation_id = ?2
         WHERE conversation_id = ?1",
        "UPDATE runs SET conversation_id = ?2 WHERE conversation_id = ?1",
        "UPDATE summaries SET conversation_id = ?2 WHERE conversation_id = ?1",
        "UPDATE conversations SET parent_id = ?2 WHERE parent_id = ?1",
        "UPDATE conversations
         SET own_title = coalesce(own_title, (SELECT s.own_title FROM conversations s
                                              WHERE s.id = ?1))
         WHERE id = ?2",
    ] {
        connection
            .prepare_cached(sql)?
            .execute([source.row, target.row])?;
    }
    for (table, column) in [
        ("messages", "turn_seq"),
        ("revisions", "turn_seq"),
        ("run_triggers", "turn_seq"),
        ("outbox", "turn_seq"),
        ("files", "turn_seq"),
        ("raw_envelopes", "turn_seq"),
        ("turn_sources", "turn_seq"),
        ("turn_sources", "source_seq"),
        ("summary_turns", "turn_seq"),
        ("run_sources", "source_seq"),
    ] {
        connection.execute_batch(&format!(
            "UPDATE {table} SET {column} = (SELECT new FROM moved WHERE old = {column})
             WHERE {column} IN (SELECT old FROM moved)"
        ))?;
    }
    for sql in [
        "UPDATE turns SET reply_to_seq = (SELECT new FROM moved WHERE old = reply_to_seq)
         WHERE reply_to_seq IN (SELECT old FROM moved)
           AND conversation_id IN (SELECT id FROM conversations WHERE chat_id IN (?1, ?2))",
        "UPDATE conversations SET root_turn_seq = (SELECT new FROM moved WHERE old = root_turn_seq)
         WHERE root_turn_seq IN (SELECT old FROM moved) AND chat_id IN (?1, ?2)",
        "UPDATE runs SET as_of_seq = max(as_of_seq, (SELECT max(new) FROM moved))
         WHERE chat_id IN (?1, ?2) AND state IN ('queued', 'leased', 'waiting')
           AND as_of_seq IS NOT NULL AND EXISTS (SELECT 1 FROM moved)",
    ] {
        connection
            .prepare_cached(sql)?
            .execute(params![source.chat, target.chat])?;
    }
    settle_target_txn(connection, source, target)?;
    connection.execute_batch("DROP TABLE moved; PRAGMA defer_foreign_keys = OFF")?;
    Ok(())
}

/// Draws new seqs for a conversation's turns, in their old order, into the table `moved`.
fn number_anew_txn(connection: &Connection, source: &ConversationRow) -> Result<(), StoreError> {
    connection
        .execute_batch("CREATE TEMP TABLE moved (old INTEGER PRIMARY KEY, new INTEGER NOT NULL)")?;
    connection
        .prepare_cached(
            "INSERT INTO moved (old, new)
             SELECT seq, (SELECT s.seq FROM sqlite_sequence s WHERE s.name = 'turns')
                         + row_number() OVER (ORDER BY seq)
             FROM turns WHERE conversation_id = ?1",
        )?
        .execute([source.row])?;
    connection.execute_batch(
        "UPDATE sqlite_sequence SET seq = max(seq, coalesce((SELECT max(new) FROM moved), 0))
         WHERE name = 'turns'",
    )?;
    Ok(())
}

fn index_anew_txn(connection: &Connection, source: &ConversationRow) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(concat!(
        "SELECT m.old, m.new, t.content FROM moved m CROSS JOIN turns t ON t.seq = m.old WHERE ",
        in_index!("t")
    ))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let content: String = row.get(2)?;
        unindex_turn_txn(connection, row.get(0)?, source.row, &content)?;
        index_turn_txn(connection, row.get(1)?)?;
    }
    Ok(())
}

/// Counts the moved turns where they are.
fn settle_target_txn(
    connection: &Connection,
    source: &ConversationRow,
    target: &ConversationRow,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE conversations
             SET turn_count = conversations.turn_count + s.turn_count,
                 last_seq = coalesce((SELECT max(new) FROM moved), conversations.last_seq),
                 last_activity_ms = max(conversations.last_activity_ms, s.last_activity_ms),
                 expired_through_ms = min(conversations.expired_through_ms, s.expired_through_ms),
                 title = coalesce(conversations.title, s.title),
                 root_turn_seq = coalesce(conversations.root_turn_seq, s.root_turn_seq)
             FROM conversations s WHERE s.id = ?1 AND conversations.id = ?2",
        )?
        .execute([source.row, target.row])?;
    connection
        .prepare_cached("DELETE FROM conversations WHERE id = ?1")?
        .execute([source.row])?;
    Ok(())
}
