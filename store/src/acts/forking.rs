//! Forks: conversations that go on from a turn of another one. The turns up to that one are read from the original
//! conversation (`views/history/`) and never copied, so that each is found, edited and erased once.

use crate::capability::MayCapture;
use crate::contract::Forking;
use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::columns::conversation_row_id;
use crate::rows::open::open_run;
use crate::rows::places::{ConversationRow, conversation_at, find_conversation};
use crate::{NewId as _, Store, StoreError};
use vocative_core::history::FORKS_DEEP_MAX;
use vocative_core::ids::{ConversationId, Seq};

impl<C: MayCapture> Store<C> {
    /// Begins a conversation that goes on from a turn of another one, once for each key. No message of the chat may
    /// have the key as its id.
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

/// Reads of a turn: whether it is a message of an existing conversation, whether a question up to it is still open,
/// and how deep its conversation is nested in forks.
const AT_SQL: &str = concat!(
    "WITH RECURSIVE above (id, depth) AS (
         SELECT ?2, 0
         UNION ALL
         SELECT c.parent_id, a.depth + 1 FROM above a JOIN conversations c ON c.id = a.id
         WHERE c.is_fork AND a.depth <= ?3
     )
     SELECT EXISTS (SELECT 1 FROM turns
                    WHERE seq = ?1 AND conversation_id = ?2 AND visibility = 'room' AND kind = 'message') AS is_there,
            EXISTS (SELECT 1 FROM runs r JOIN run_triggers g ON g.run_id = r.id
                    WHERE r.conversation_id = ?2 AND g.turn_seq <= ?1 AND ",
    open_run!("r"),
    ") AS is_open,
            (SELECT max(depth) FROM above) AS depth"
);

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
    let (is_there, is_open, depth): (bool, bool, u32) = connection
        .prepare_cached(AT_SQL)?
        .query_row((at, parent.row, FORKS_DEEP_MAX), |row| {
            Ok((row.get("is_there")?, row.get("is_open")?, row.get("depth")?))
        })?;
    if !is_there {
        let what = format!("a message {} in this conversation", at.0);
        return Err(StoreError::NotFound { what });
    }
    if is_open {
        return Ok(Forking::Open);
    }
    if depth >= FORKS_DEEP_MAX {
        return Ok(Forking::TooDeep);
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

/// The time of the turn that a fork goes on from: the fork's own turns are ordered after it, whatever the clock
/// says.
pub(crate) fn begin_of_fork(
    connection: &Connection,
    conversation: &ConversationRow,
) -> Result<Option<i64>, StoreError> {
    let Some(root) = conversation.root_seq.filter(|_| conversation.is_fork) else {
        return Ok(None);
    };
    Ok(connection
        .prepare_cached("SELECT sent_at_ms FROM turns WHERE seq = ?1")?
        .query_row([root], |row| row.get("sent_at_ms"))
        .optional()?)
}
