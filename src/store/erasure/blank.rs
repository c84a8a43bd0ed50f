//! Emptying turns: those of an order, and those of ours that were made from them.

use rusqlite::{Connection, OptionalExtension, params};
use vocative_channels::outbound::Part;

use super::orders::{ErasureCounts, Order, Targets};
use super::traces::note_traces_txn;
use crate::store::StoreError;
use crate::store::outbox::DROPPED;
use crate::store::summaries::{SummaryFate, invalidate_summaries_txn};
use crate::store::triggers::cancel_runs_of_deleted_txn;
use crate::store::turns::{TurnRow, blank_turn_txn, turn_at};

/// Turns blanked in one transaction.
const TURNS_MAX: i64 = 32;
/// Turns looked through in one transaction, in capture order.
const WINDOW_SEQS: i64 = 20_000;

/// Blanks the next turns of an order; returns where to go on, or `None` at the end.
pub(super) fn blank_batch_txn(
    connection: &Connection,
    order: &Order,
    targets: &Targets,
    now_ms: i64,
) -> Result<(ErasureCounts, Option<i64>), StoreError> {
    let end: i64 = connection
        .prepare_cached("SELECT coalesce(max(seq), 0) FROM turns")?
        .query_row([], |row| row.get(0))?;
    if order.cursor >= end || targets.is_empty() {
        return Ok((ErasureCounts::default(), None));
    }
    let through = order.cursor.saturating_add(WINDOW_SEQS).min(end);
    let seqs = next_turns(connection, order, targets, through)?;
    let mut counts = ErasureCounts::default();
    for seq in &seqs {
        counts.add(blank_theirs_txn(connection, order, targets, *seq, now_ms)?);
    }
    let is_full = seqs.len() as i64 == TURNS_MAX;
    let last = seqs.last().copied().filter(|_| is_full);
    Ok((counts, Some(last.unwrap_or(through))))
}

fn next_turns(
    connection: &Connection,
    order: &Order,
    targets: &Targets,
    through: i64,
) -> Result<Vec<i64>, StoreError> {
    let (people, rooms) = targets.json();
    let mut statement = connection.prepare_cached(
        "SELECT seq FROM turns
         WHERE seq > ?1 AND seq <= ?2 AND sent_at_ms <= ?3
           AND (participant_id IN (SELECT value FROM json_each(?4))
                OR conversation_id IN (SELECT value FROM json_each(?5)))
         ORDER BY seq LIMIT ?6",
    )?;
    let erased_at_ms = order.entry.erased_at_ms;
    let values = params![
        order.cursor,
        through,
        erased_at_ms,
        people,
        rooms,
        TURNS_MAX
    ];
    let seqs = statement.query_map(values, |row| row.get(0))?;
    Ok(seqs.collect::<rusqlite::Result<_>>()?)
}

fn blank_theirs_txn(
    connection: &Connection,
    order: &Order,
    targets: &Targets,
    seq: i64,
    now_ms: i64,
) -> Result<ErasureCounts, StoreError> {
    let turn = turn_at(connection, seq)?;
    note_traces_txn(connection, order, targets, &turn)?;
    let answers = made_from(connection, &turn)?;
    let details = unquote_txn(connection, seq)?;
    cancel_runs_of_deleted_txn(connection, &turn, now_ms)?;
    let is_new = blank_any_txn(connection, &turn, now_ms)?;
    let mut counts = ErasureCounts {
        turns: u64::from(is_new),
        details,
        ..ErasureCounts::default()
    };
    for answer in answers {
        counts.answers += u64::from(blank_ours_txn(connection, answer, now_ms)?);
    }
    Ok(counts)
}

/// Our turns of the runs that read a turn for certain: it triggered them, one of their triggers
/// replies to it, their tools found it, or it is the root of the thread they answered in.
fn made_from(connection: &Connection, turn: &TurnRow) -> Result<Vec<i64>, StoreError> {
    let mut statement = connection.prepare_cached(
        "WITH read_by (run_id) AS (
             SELECT run_id FROM run_triggers WHERE turn_seq = ?1
             UNION
             SELECT g.run_id FROM turns r JOIN run_triggers g ON g.turn_seq = r.seq
             WHERE r.reply_to_seq = ?1
             UNION
             SELECT r.run_id FROM turn_sources s JOIN turns r ON r.seq = s.turn_seq
             WHERE s.source_seq = ?1 AND r.run_id IS NOT NULL
             UNION
             SELECT n.id FROM messages m JOIN conversations c ON c.thread = m.platform_id
             JOIN runs n ON n.conversation_id = c.id
             WHERE m.turn_seq = ?1 AND c.chat_id = ?2 AND c.root_turn_seq = ?1
         )
         SELECT t.seq FROM read_by b JOIN turns t ON t.run_id = b.run_id
         WHERE t.visibility <> 'hidden'",
    )?;
    let seqs = statement.query_map(params![turn.seq, turn.conversation.chat], |row| row.get(0))?;
    Ok(seqs.collect::<rusqlite::Result<_>>()?)
}

/// Takes what replies quote of a turn out of them.
fn unquote_txn(connection: &Connection, seq: i64) -> Result<u64, StoreError> {
    let changed = connection
        .prepare_cached(
            "UPDATE turns SET quote = NULL, revision = revision + 1
             WHERE reply_to_seq = ?1 AND quote IS NOT NULL",
        )?
        .execute([seq])?;
    Ok(changed as u64)
}

/// Blanks a turn of ours that was made from something erased, and the steps of its run. Returns
/// whether it said anything.
pub(super) fn blank_ours_txn(
    connection: &Connection,
    seq: i64,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let turn = turn_at(connection, seq)?;
    connection
        .prepare_cached(
            "DELETE FROM steps WHERE run_id = (SELECT run_id FROM turns WHERE seq = ?1)",
        )?
        .execute([seq])?;
    blank_any_txn(connection, &turn, now_ms)
}

/// Empties a turn whatever it is, with its posts; its messages stay as tombstones. Returns whether
/// there was anything.
fn blank_any_txn(connection: &Connection, turn: &TurnRow, now_ms: i64) -> Result<bool, StoreError> {
    let seq = turn.seq;
    connection
        .prepare_cached(
            "UPDATE messages SET turn_seq = NULL, text = NULL, gone = 'erased' WHERE turn_seq = ?1",
        )?
        .execute([seq])?;
    empty_posts_txn(connection, "turn_seq = ?1", seq, now_ms)?;
    let visibility: String = connection
        .prepare_cached("SELECT visibility FROM turns WHERE seq = ?1")?
        .query_row([seq], |row| row.get(0))?;
    match visibility.as_str() {
        "room" => blank_turn_txn(connection, turn)?,
        // It went by its age, and summaries may hold it.
        "hidden" => {
            invalidate_summaries_txn(connection, turn, SummaryFate::Void)?;
            return Ok(false);
        }
        // Only the timeline shows it: it is in no index.
        _ => {
            connection
                .prepare_cached(
                    "UPDATE turns SET content = '', attachments = NULL, quote = NULL, tokens = NULL,
                            counter = NULL, visibility = 'hidden', revision = revision + 1
                     WHERE seq = ?1",
                )?
                .execute([seq])?;
            invalidate_summaries_txn(connection, turn, SummaryFate::Void)?;
        }
    }
    Ok(true)
}

/// Empties posts. What was not sent yet is not sent; what may be out keeps its state, so that it is
/// known where it went.
pub(super) fn empty_posts_txn(
    connection: &Connection,
    which: &'static str,
    value: i64,
    now_ms: i64,
) -> Result<(), StoreError> {
    let emptied = serde_json::to_string(&Part::plain(""))?;
    connection
        .prepare_cached(&format!(
            "UPDATE outbox SET payload = ?2, progress = NULL,
                    reason = CASE WHEN state IN ('sent', 'dead', 'replaced')
                                    OR (state = 'leased' AND send_started = 1)
                             THEN reason ELSE ?3 END,
                    finished_at_ms = CASE WHEN state = 'leased' AND send_started = 1 THEN NULL
                                     ELSE coalesce(finished_at_ms, ?4) END,
                    token = CASE WHEN state = 'leased' AND send_started = 0 THEN NULL
                            ELSE token END,
                    state = CASE WHEN state IN ('sent', 'dead', 'replaced')
                                   OR (state = 'leased' AND send_started = 1)
                            THEN state ELSE 'dead' END
             WHERE {which}"
        ))?
        .execute(params![value, emptied, DROPPED, now_ms])?;
    Ok(())
}

/// Takes the names of a person off their rows, and off their direct chats, which bear them.
pub(super) fn unname_txn(
    connection: &Connection,
    order: &Order,
    targets: &Targets,
) -> Result<(), StoreError> {
    let (people, rooms) = targets.json();
    // The chat of a person who is heard again is named again.
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
            "SELECT json_group_array(person_id) FROM participants
             WHERE id IN (SELECT value FROM json_each(?1)) AND person_id IS NOT NULL",
        )?
        .query_row([&people], |row| row.get(0))?;
    connection
        .prepare_cached(
            "UPDATE participants SET display_name = NULL, username = NULL, person_id = NULL
             WHERE id IN (SELECT value FROM json_each(?1)) AND last_seen_ms <= ?2",
        )?
        .execute(params![people, order.entry.erased_at_ms])?;
    connection
        .prepare_cached(
            "DELETE FROM former_names WHERE participant_id IN (SELECT value FROM json_each(?1))",
        )?
        .execute([&people])?;
    // A record holds a room's title, and no more of what was said than a hash.
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
        .execute([joined])?;
    connection
        .prepare_cached(
            "UPDATE conversations SET title = NULL, own_title = NULL
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

/// Whether a turn of the order was captured behind the cursor while it was carried out.
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
            row.get(0)
        })
        .optional()?;
    Ok(left.is_none())
}
