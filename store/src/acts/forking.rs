//! Forks: conversations that go on from a turn of another one. What was said up to that turn is read where it stands
//! (`views/history.rs`) and copied nowhere, so that it is found, edited and erased once.

use crate::capability::MayCapture;
use crate::contract::Forking;
use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::columns::conversation_row_id;
use crate::rows::places::{conversation_at, find_conversation};
use crate::{NewId as _, Store, StoreError};
use vocative_core::ids::{ConversationId, Seq};

impl<C: MayCapture> Store<C> {
    /// Begins a conversation that goes on from a turn of another one, once under its key, which must be one that no
    /// message of the chat has.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation, or no such message in it.
    pub async fn fork_conversation(
        &self,
        of: ConversationId,
        at: Seq,
        key: String,
        now_ms: i64,
    ) -> Result<Forking, StoreError> {
        self.write(move |connection| fork_txn(connection, of, at, &key, now_ms))
            .await
    }
}

fn fork_txn(
    connection: &Connection,
    of: ConversationId,
    at: Seq,
    key: &str,
    now_ms: i64,
) -> Result<Forking, StoreError> {
    let parent = conversation_at(connection, conversation_row_id(connection, of)?)?;
    if let Some(known) = find_conversation(connection, parent.chat, key)? {
        return Ok(match known.root_seq == Some(at.0) {
            true => Forking::Known(known.id),
            false => Forking::Other,
        });
    }
    let is_there = connection
        .prepare_cached(
            "SELECT 1 AS it FROM turns
             WHERE seq = ?1 AND conversation_id = ?2 AND visibility = 'room' AND kind = 'message'",
        )?
        .query_row((at, parent.row), |row| row.get::<_, i64>("it"))
        .optional()?;
    if is_there.is_none() {
        let what = format!("a message {} in this conversation", at.0);
        return Err(StoreError::NotFound { what });
    }
    let id = ConversationId::generate();
    connection
        .prepare_cached(
            "INSERT INTO conversations
                 (uuid, chat_id, thread, is_fork, parent_id, root_turn_seq, created_at_ms, last_activity_ms)
             VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, ?6)",
        )?
        .execute(params![id, parent.chat, key, parent.row, at, now_ms])?;
    Ok(Forking::Made(id))
}
