//! Blanks the turns of an order, and what was made from them.

use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::turn_rows::turn_at;

use super::ledger::OrderReach;
use super::orders::{ErasureCounts, Order, Reached, Targets};
use super::traces::note_traces_txn;
use crate::StoreError;
use crate::acts::made_from::{blank_any_txn, forget_made_from_txn};
use crate::acts::overlap::cancel_runs_of_deleted_txn;
use crate::acts::schedules::forget_schedules_txn;
use crate::rows::delete_rows_of_people_txn;
use crate::rows::memories::forget_memories_of_people_txn;
use crate::rows::titles::forget_titles_of_people_txn;
use vocative_core::running::made_from::SourceExtent;

/// The most turns that are blanked in one transaction.
const TURNS_MAX: i64 = 32;

/// Blanks the next turns of an order; returns the cursor, or `None` at the end.
pub(super) fn blank_batch_txn(
    connection: &Connection,
    order: &Order,
    targets: &Targets,
    now_ms: i64,
) -> Result<(ErasureCounts, Option<Reached>), StoreError> {
    let turns = next_turns(connection, order, targets)?;
    let mut counts = ErasureCounts::default();
    for turn in &turns {
        counts.add(blank_theirs_txn(
            connection, order, targets, turn.seq, now_ms,
        )?);
    }
    Ok((counts, turns.last().copied()))
}

pub(super) const OF_PERSON_SQL: &str =
    "SELECT conversation_id, sent_at_ms, 0 AS ordinal, seq FROM turns
     WHERE participant_id = ?1 AND (conversation_id, sent_at_ms, seq) > (?2, ?3, ?5)
       AND sent_at_ms <= ?6 AND ?4 IS NOT NULL
     ORDER BY conversation_id, sent_at_ms, seq LIMIT ?7";

pub(super) const OF_ROOM_SQL: &str = "SELECT conversation_id, sent_at_ms, ordinal, seq FROM turns
     WHERE conversation_id = ?1 AND (sent_at_ms, ordinal, seq) > (?3, ?4, ?5)
       AND sent_at_ms <= ?6 AND ?2 IS NOT NULL
     ORDER BY sent_at_ms, ordinal, seq LIMIT ?7";

/// The next turns after the last blanked one, in the order of the index that finds them: the cost depends on
/// their number, not on the size of the store.
fn next_turns(
    connection: &Connection,
    order: &Order,
    targets: &Targets,
) -> Result<Vec<Reached>, StoreError> {
    let reached = order.reached.unwrap_or(Reached::START);
    let mut found = Vec::new();
    let mut read = |sql: &'static str, which: i64, from: Reached| {
        let mut statement = connection.prepare_cached(sql)?;
        let values = params![
            which,
            from.conversation,
            from.sent_at_ms,
            from.ordinal,
            from.seq,
            order.entry.erased_at_ms,
            TURNS_MAX - found.len() as i64
        ];
        let rows = statement.query_map(values, |row| {
            Ok(Reached {
                conversation: row.get("conversation_id")?,
                sent_at_ms: row.get("sent_at_ms")?,
                ordinal: row.get("ordinal")?,
                seq: row.get("seq")?,
            })
        })?;
        for row in rows {
            found.push(row?);
        }
        Ok::<bool, StoreError>((found.len() as i64) < TURNS_MAX)
    };
    for person in &targets.participants {
        read(OF_PERSON_SQL, *person, reached)?;
    }
    let rooms = targets.conversations.iter();
    for room in rooms.filter(|room| **room >= reached.conversation) {
        let is_begun = *room == reached.conversation;
        let from = if is_begun { reached } else { Reached::START };
        if !read(OF_ROOM_SQL, *room, from)? {
            break;
        }
    }
    Ok(found)
}

fn blank_theirs_txn(
    connection: &Connection,
    order: &Order,
    targets: &Targets,
    seq: i64,
    now_ms: i64,
) -> Result<ErasureCounts, StoreError> {
    let turn = turn_at(connection, seq)?;
    if order.entry.reach == OrderReach::Everywhere {
        note_traces_txn(connection, order, targets, &turn)?;
    }
    let gone = forget_made_from_txn(connection, &turn, SourceExtent::FromEverything, now_ms)?;
    cancel_runs_of_deleted_txn(connection, &turn, now_ms)?;
    let is_new = blank_any_txn(connection, &turn, now_ms)?;
    Ok(ErasureCounts {
        turns: u64::from(is_new),
        answers: gone.answers,
        details: gone.quotes,
        ..ErasureCounts::default()
    })
}

/// Removes the names of a person from their rows, and from the titles of their direct chats.
pub(super) fn unname_txn(
    connection: &Connection,
    order: &Order,
    targets: &Targets,
) -> Result<(), StoreError> {
    let (people, rooms) = targets.json();
    forget_schedules_txn(connection, &people, &rooms, order.entry.erased_at_ms)?;
    forget_memories_of_people_txn(connection, &people, order.entry.erased_at_ms)?;
    forget_titles_of_people_txn(connection, &people)?;
    // If the person writes again, the chat gets its title again.
    connection
        .prepare_cached(
            "UPDATE chats SET title = NULL WHERE kind = 'direct' AND id IN (
                 SELECT c.chat_id FROM conversations c
                 WHERE c.id IN (SELECT conversation_id FROM turns WHERE participant_id IN
                                (SELECT value FROM json_each(?1))))",
        )?
        .execute([&people])?;
    let joined: String = connection
        .prepare_cached(
            "SELECT json_group_array(person_id) AS joined FROM participants
             WHERE id IN (SELECT value FROM json_each(?1)) AND person_id IS NOT NULL",
        )?
        .query_row([&people], |row| row.get("joined"))?;
    connection
        .prepare_cached(
            "UPDATE participants SET display_name = NULL, username = NULL, person_id = NULL
             WHERE id IN (SELECT value FROM json_each(?1)) AND last_seen_ms <= ?2",
        )?
        .execute(params![people, order.entry.erased_at_ms])?;
    // A person with a single account left is not linked to any other.
    connection
        .prepare_cached(
            "UPDATE participants SET person_id = NULL
             WHERE person_id IN (SELECT value FROM json_each(?1))
               AND (SELECT count(*) FROM participants o WHERE o.person_id = participants.person_id) = 1",
        )?
        .execute([&joined])?;
    delete_rows_of_people_txn(connection, &people)?;
    // The person's feedback on answers, and all feedback on answers in an erased room.
    connection
        .prepare_cached(
            "DELETE FROM feedback WHERE participant_id IN (SELECT value FROM json_each(?1)) AND captured_at_ms <= ?3
                OR run_id IN (SELECT id FROM runs
                              WHERE conversation_id IN (SELECT value FROM json_each(?2)) AND created_at_ms <= ?3)",
        )?
        .execute(params![people, rooms, order.entry.erased_at_ms])?;
    // A record of a prompt holds the room's title, but only a hash of what was said.
    connection
        .prepare_cached(
            "DELETE FROM sent_prompts WHERE run_id IN (
                 SELECT id FROM runs WHERE conversation_id IN (SELECT value FROM json_each(?1)))",
        )?
        .execute([&rooms])?;
    connection
        .prepare_cached(
            "DELETE FROM persons WHERE id IN (SELECT value FROM json_each(?1))
               AND NOT EXISTS (SELECT 1 FROM participants o WHERE o.person_id = persons.id)",
        )?
        .execute([&joined])?;
    connection
        .prepare_cached(
            "UPDATE conversations SET title = NULL, own_title = NULL, own_title_participant_id = NULL
             WHERE id IN (SELECT value FROM json_each(?1))",
        )?
        .execute([&rooms])?;
    connection
        .prepare_cached(
            "UPDATE chats SET title = NULL WHERE kind = 'direct' AND id IN (
                 SELECT chat_id FROM conversations WHERE id IN (SELECT value FROM json_each(?1)))",
        )?
        .execute([&rooms])?;
    Ok(())
}

/// Whether no turn of the order was captured behind the cursor while it was carried out.
pub(super) fn is_blank(
    connection: &Connection,
    order: &Order,
    targets: &Targets,
) -> Result<bool, StoreError> {
    let (people, rooms) = targets.json();
    let left: Option<i64> = connection
        .prepare_cached(
            "SELECT seq FROM turns
             WHERE participant_id IN (SELECT value FROM json_each(?1))
               AND visibility <> 'hidden' AND sent_at_ms <= ?3
             UNION ALL
             SELECT seq FROM turns
             WHERE conversation_id IN (SELECT value FROM json_each(?2))
               AND visibility <> 'hidden' AND sent_at_ms <= ?3
             LIMIT 1",
        )?
        .query_row(params![people, rooms, order.entry.erased_at_ms], |row| {
            row.get("seq")
        })
        .optional()?;
    Ok(left.is_none())
}
