//! How far the person of a program's conversation has read it.

use crate::capability::MayCapture;
use crate::engine::sql::{Connection, OptionalExtension};
use crate::rows::columns::conversation_row_id;
use crate::{Store, StoreError};
use vocative_core::ids::{ConversationId, Seq};

impl<C: MayCapture> Store<C> {
    /// Notes that a conversation was read up to a turn; the mark never moves back. Returns how far it is read.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation, or no such turn in it.
    pub async fn mark_read(
        &self,
        conversation: ConversationId,
        up_to: Seq,
    ) -> Result<Seq, StoreError> {
        self.write(move |connection| mark_read_txn(connection, conversation, up_to))
            .await
    }
}

fn mark_read_txn(
    connection: &Connection,
    conversation: ConversationId,
    up_to: Seq,
) -> Result<Seq, StoreError> {
    let row = conversation_row_id(connection, conversation)?;
    let read = connection
        .prepare_cached(
            "UPDATE conversations SET last_read_seq = max(coalesce(last_read_seq, 0), ?2)
             WHERE id = ?1 AND EXISTS (SELECT 1 FROM turns WHERE seq = ?2 AND conversation_id = ?1)
             RETURNING last_read_seq",
        )?
        .query_row((row, up_to), |row| row.get("last_read_seq"))
        .optional()?;
    read.ok_or_else(|| StoreError::NotFound {
        what: format!("a turn {} in this conversation", up_to.0),
    })
}
