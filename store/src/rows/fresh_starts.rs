//! Fresh starts: from where on an agent's prompts read a conversation.
//!
//! Nothing is removed: the archive and searches in it know everything. A thread also starts afresh
//! with its room. Summaries of what is older stay and are not used: one that is used begins behind the
//! newest fresh start, because it was made from turns behind it.

use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::columns::{AT, FIRST, LAST, position_at};
use crate::rows::open::open_run;
use vocative_contract::crash::{self, Sabotage};

use crate::StoreError;
use crate::registry::{Fate, MergeRule, STATE, StoreTable, account, text};
use crate::rows::places::ConversationRow;
use vocative_core::ids::AgentName;
use vocative_core::turn::Position;

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[account(
    "fresh_starts",
    text(&[], &[], &["agent"]),
    Fate {
        merge: MergeRule::Joined,
        ..STATE
    },
)];

pub(crate) const FLOOR_SQL: &str = "SELECT sent_at_ms, ordinal, seq FROM fresh_starts
     WHERE conversation_id = ?1 AND agent = ?2 AND at_ms <= ?3
     ORDER BY sent_at_ms DESC, ordinal DESC, seq DESC LIMIT 1";

const PARENT_SQL: &str = "SELECT parent_id FROM conversations WHERE id = ?1";

/// Lets prompts of these agents read nothing of a conversation, or of the threads below it, that stands at a position
/// or before it. A run that was claimed before is not affected, whatever the clock said then.
pub(crate) fn begin_afresh_txn(
    connection: &Connection,
    conversation_row: i64,
    agents: &[AgentName],
    from: Position,
    now_ms: i64,
) -> Result<(), StoreError> {
    let claimed_ms: Option<i64> = connection
        .prepare_cached(concat!(
            "SELECT max(coalesce(r.afresh_ms, r.first_claimed_at_ms)) AS value FROM runs r
             WHERE ",
            open_run!("r"),
            "
               AND r.chat_id = (SELECT chat_id FROM conversations WHERE id = ?1)"
        ))?
        .query_row([conversation_row], |row| row.get("value"))?;
    let at_ms = claimed_ms.map_or(now_ms, |claimed_ms| now_ms.max(claimed_ms + 1));
    for agent in agents {
        connection
            .prepare_cached(
                "INSERT INTO fresh_starts (conversation_id, agent, at_ms, sent_at_ms, ordinal, seq)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT DO UPDATE SET sent_at_ms = excluded.sent_at_ms,
                     ordinal = excluded.ordinal, seq = excluded.seq
                 WHERE (excluded.sent_at_ms, excluded.ordinal, excluded.seq)
                     > (sent_at_ms, ordinal, seq)",
            )?
            .execute(params![
                conversation_row,
                agent,
                at_ms,
                from.sent_at_ms,
                from.ordinal,
                from.seq
            ])?;
    }
    Ok(())
}

/// The position behind everything that is known of a conversation and of the threads below it. By the platform's
/// times: its clock and ours differ.
pub(crate) fn behind_everything(
    connection: &Connection,
    conversation: &ConversationRow,
) -> Result<Position, StoreError> {
    let newest_ms: Option<i64> = connection
        .prepare_cached(
            "SELECT max(last_activity_ms) AS newest_ms FROM conversations WHERE id = ?1 OR parent_id = ?1",
        )?
        .query_row([conversation.row], |row| row.get("newest_ms"))?;
    Ok(Position {
        sent_at_ms: newest_ms.unwrap_or(0),
        ..LAST
    })
}

/// The position behind which an agent reads a conversation, counting fresh starts up to a time; before everything if
/// there is none by then.
pub(crate) fn floor(
    connection: &Connection,
    conversation_row: i64,
    agent: &AgentName,
    afresh_ms: i64,
) -> Result<Position, StoreError> {
    if crash::is_sabotaged(Sabotage::NoFreshStart) {
        return Ok(FIRST);
    }
    let of = |row: i64| {
        connection
            .prepare_cached(FLOOR_SQL)?
            .query_row(params![row, agent, afresh_ms], |row| position_at(row, AT))
            .optional()
    };
    let parent: Option<i64> = connection
        .prepare_cached(PARENT_SQL)?
        .query_row([conversation_row], |row| row.get("parent_id"))
        .optional()?
        .flatten();
    let own = of(conversation_row)?;
    let above = match parent {
        Some(parent) => of(parent)?,
        None => None,
    };
    Ok(own.max(above).unwrap_or(FIRST))
}

/// Moves the fresh starts of one conversation to the other one that it becomes.
pub(crate) fn merge_fresh_starts_txn(
    connection: &Connection,
    source_row: i64,
    target_row: i64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT OR IGNORE INTO fresh_starts
             SELECT ?2, agent, at_ms, sent_at_ms, ordinal, seq FROM fresh_starts
             WHERE conversation_id = ?1",
        )?
        .execute([source_row, target_row])?;
    connection
        .prepare_cached("DELETE FROM fresh_starts WHERE conversation_id = ?1")?
        .execute([source_row])?;
    connection
        .prepare_cached("UPDATE inquiries SET conversation_id = ?2 WHERE conversation_id = ?1")?
        .execute([source_row, target_row])?;
    Ok(())
}
