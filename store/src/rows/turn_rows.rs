//! Reading the row of one turn, as far as capture needs it.

use crate::StoreError;
use crate::engine::sql::Connection;
use crate::rows::places::{ConversationRow, conversation_at};
use vocative_core::ids::TurnId;

/// A turn's row as far as capture needs it.
#[derive(Clone, Debug)]
pub(crate) struct TurnRow {
    pub(crate) seq: i64,
    pub(crate) id: TurnId,
    pub(crate) conversation: ConversationRow,
    pub(crate) sent_at_ms: i64,
    pub(crate) ordinal: i64,
    pub(crate) content: String,
    pub(crate) attachments: Option<String>,
    pub(crate) revision: i64,
    pub(crate) is_inbound: bool,
    pub(crate) album: Option<String>,
}

/// Reads a turn's row.
pub(crate) fn turn_at(connection: &Connection, seq: i64) -> Result<TurnRow, StoreError> {
    let conversation = conversation_of_turn(connection, seq)?;
    let turn = connection
        .prepare_cached(
            "SELECT uuid, sent_at_ms, ordinal, content, attachments, revision, is_inbound, album
             FROM turns WHERE seq = ?1",
        )?
        .query_row([seq], |row| {
            Ok(TurnRow {
                seq,
                id: row.get("uuid")?,
                conversation,
                sent_at_ms: row.get("sent_at_ms")?,
                ordinal: row.get("ordinal")?,
                content: row.get("content")?,
                attachments: row.get("attachments")?,
                revision: row.get("revision")?,
                is_inbound: row.get("is_inbound")?,
                album: row.get("album")?,
            })
        })?;
    Ok(turn)
}

/// The conversation a turn is in.
pub(crate) fn conversation_of_turn(
    connection: &Connection,
    seq: i64,
) -> Result<ConversationRow, StoreError> {
    let conversation_row = connection
        .prepare_cached("SELECT conversation_id FROM turns WHERE seq = ?1")?
        .query_row([seq], |row| row.get("conversation_id"))?;
    conversation_at(connection, conversation_row)
}
