//! Where a run's answer goes: its room, and its position after the triggers.

use vocative_contract::envelope::ChatKind;

use crate::StoreError;
use crate::engine::sql::{Connection, OptionalExtension};
use crate::rows::columns::chat_kind_from_name;
use crate::rows::delegations::asked_run;
use crate::rows::leases::LeasedRun;
use crate::rows::places::{ConversationRow, conversation_at};
use vocative_core::ids::{AccountId, Seq};

/// The place an answer is posted into.
pub(crate) struct ReplyRoom {
    pub(crate) conversation: ConversationRow,
    pub(crate) account: AccountId,
    pub(crate) kind: Option<ChatKind>,
}

/// A turn that the run answers.
pub(crate) struct Trigger {
    pub(crate) seq: Seq,
    pub(crate) conversation_row: i64,
    pub(crate) sent_at_ms: i64,
    pub(crate) ordinal: i64,
}

/// The room that a run answers in.
pub(crate) fn room_of(
    connection: &Connection,
    leased: &LeasedRun,
) -> Result<ReplyRoom, StoreError> {
    let conversation = conversation_at(connection, leased.conversation_row)?;
    let (account, kind): (_, Option<String>) = connection
        .prepare_cached("SELECT account_id, kind FROM chats WHERE id = ?1")?
        .query_row([conversation.chat], |row| {
            Ok((row.get("account_id")?, row.get("kind")?))
        })?;
    Ok(ReplyRoom {
        conversation,
        account,
        kind: kind.as_deref().and_then(chat_kind_from_name),
    })
}

/// The triggers of a run, oldest first; of one that another run started, those of the run that people asked for.
pub(crate) fn triggers(connection: &Connection, run_row: i64) -> Result<Vec<Trigger>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT t.seq, t.conversation_id, t.sent_at_ms, t.ordinal
         FROM run_triggers g JOIN turns t ON t.seq = g.turn_seq
         WHERE g.run_id = ?1 ORDER BY t.sent_at_ms, t.ordinal, t.seq",
    )?;
    let triggers = statement.query_map([asked_run(connection, run_row)?], |row| {
        Ok(Trigger {
            seq: row.get("seq")?,
            conversation_row: row.get("conversation_id")?,
            sent_at_ms: row.get("sent_at_ms")?,
            ordinal: row.get("ordinal")?,
        })
    })?;
    Ok(triggers.collect::<crate::engine::sql::Result<_>>()?)
}

/// The newest position of the conversation (of its root where it has no turns), but never before the
/// triggers; the turn's own seq orders it after them.
pub(crate) fn position(
    connection: &Connection,
    room: &ReplyRoom,
    triggers: &[Trigger],
    now_ms: i64,
) -> Result<(i64, i64), StoreError> {
    let newest: Option<(i64, i64)> = connection
        .prepare_cached(
            "SELECT sent_at_ms, ordinal FROM turns WHERE conversation_id = ?1
             ORDER BY sent_at_ms DESC, ordinal DESC, seq DESC LIMIT 1",
        )?
        .query_row([room.conversation.row], |row| {
            Ok((row.get("sent_at_ms")?, row.get("ordinal")?))
        })
        .optional()?;
    let root = || {
        connection
            .prepare_cached(
                "SELECT t.sent_at_ms, t.ordinal FROM conversations c
                 JOIN turns t ON t.seq = c.root_turn_seq WHERE c.id = ?1",
            )?
            .query_row([room.conversation.row], |row| {
                Ok((row.get("sent_at_ms")?, row.get("ordinal")?))
            })
            .optional()
    };
    let newest = match newest {
        Some(newest) => Some(newest),
        None => root()?,
    };
    let answered = triggers
        .iter()
        .map(|trigger| (trigger.sent_at_ms, trigger.ordinal));
    Ok(answered.chain(newest).max().unwrap_or((now_ms, 0)))
}
