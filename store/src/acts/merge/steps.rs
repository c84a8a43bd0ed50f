//! The steps of a merge: each moves a bounded number of rows and leaves a state that every reader may see.
//!
//! Turns move newest first, so that the larger conversation grows into its past, as when history is read
//! back: what a prompt reads is there from the first step on. Turns at one place of the room's order (the
//! same time and ordinal) move in capture order, because their new seqs say which of them is first. At any
//! time a turn is in one of the two conversations, with all rows that belong to it.

use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::indexed::in_index;
use crate::rows::linked;
use crate::rows::open::open_run;

use super::JOIN_ATTRIBUTES_SQL;
use crate::StoreError;
use crate::rows::columns::limit_of;
use crate::rows::costs::move_costs_txn;
use crate::rows::fresh_starts::merge_fresh_starts_txn;
use crate::rows::memories::move_memories_txn;
use crate::rows::memory_marks::{delete_marks_txn, merge_marks_txn};
use crate::rows::networks::move_states_txn;
use crate::rows::run_events::move_events_txn;
use crate::rows::search_text::{index_turn_txn, unindex_turn_txn};
use crate::rows::summaries::set_aside_txn;
use vocative_core::ids::ChatId;

/// Turns that move with the first commit: this many of the newest of each conversation, and as many that
/// concern an agent. More than a prompt reads with the default options.
pub(crate) const FIRST_TURNS: usize = 500;

/// The turns that each later step moves, which takes the writer about ten milliseconds.
pub(crate) const STEP_TURNS: usize = 250;

/// The rows of any other kind that a step moves.
const STEP_ROWS: usize = 200;

/// The posts that a step looks at.
const STEP_POSTS: usize = 2_000;

/// How many steps for the rows other than turns the first commit makes at once, after the last turn.
const FIRST_LEAVES: usize = 8;

/// A conversation that is being emptied, and the one that its turns go to.
#[derive(Clone, Copy)]
struct Pair {
    source: i64,
    target: i64,
}

/// Moves the turns that prompts read; for a chat of the usual size, all rows.
pub(super) fn first_step_txn(
    connection: &Connection,
    from: ChatId,
    target: ChatId,
) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT m.source_id, m.target_id FROM conversation_merges m
         JOIN conversations c ON c.id = m.target_id WHERE c.chat_id = ?1 ORDER BY m.source_id",
    )?;
    let pairs = statement.query_map([target], |row| {
        Ok(Pair {
            source: row.get("source_id")?,
            target: row.get("target_id")?,
        })
    })?;
    let pairs: Vec<Pair> = pairs.collect::<crate::engine::sql::Result<_>>()?;
    for pair in pairs {
        let newest = move_newest_txn(connection, pair, FIRST_TURNS)?;
        let newest_seq = newest.max(move_concerning_txn(connection, pair, FIRST_TURNS)?);
        // Runs at work must still read these turns, which had a lower seq when the runs were claimed.
        connection
            .prepare_cached(concat!(
                "UPDATE runs INDEXED BY runs_waiting SET as_of_seq = max(as_of_seq, ?2)
                 WHERE ",
                open_run!(),
                " AND chat_id IN (?1, ?3)
                   AND as_of_seq IS NOT NULL AND ?2 IS NOT NULL"
            ))?
            .execute(params![target, newest_seq, from])?;
        for _ in 0..FIRST_LEAVES {
            if !is_empty(connection, pair.source)? || leave_txn(connection, pair)? {
                break;
            }
        }
    }
    move_runs_txn(connection, from, target)?;
    move_posts_txn(connection, from)?;
    settle_chat_txn(connection, from)?;
    Ok(())
}

/// Makes the next step of the merges in progress; returns whether there is another.
pub(super) fn step_txn(connection: &Connection) -> Result<bool, StoreError> {
    let pair = connection
        .prepare_cached("SELECT source_id, target_id FROM conversation_merges LIMIT 1")?
        .query_row([], |row| {
            Ok(Pair {
                source: row.get("source_id")?,
                target: row.get("target_id")?,
            })
        })
        .optional()?;
    if let Some(pair) = pair {
        if is_empty(connection, pair.source)? {
            leave_txn(connection, pair)?;
        } else {
            move_newest_txn(connection, pair, STEP_TURNS)?;
        }
        return Ok(true);
    }
    let chats: Option<(ChatId, ChatId)> = connection
        .prepare_cached("SELECT from_chat_id, chat_id FROM chat_merges LIMIT 1")?
        .query_row([], |row| {
            Ok((row.get("from_chat_id")?, row.get("chat_id")?))
        })
        .optional()?;
    let Some((from, target)) = chats else {
        return Ok(false);
    };
    if !move_runs_txn(connection, from, target)? {
        move_posts_txn(connection, from)?;
    }
    settle_chat_txn(connection, from)?;
    Ok(true)
}

const NEWEST_SQL: &str = "INSERT INTO moved (old)
     SELECT seq FROM turns WHERE conversation_id = ?1
     ORDER BY sent_at_ms DESC, ordinal DESC, seq LIMIT ?2";

const AGENTS_SQL: &str = "WITH RECURSIVE agents (name) AS (
         SELECT min(agent) FROM involvements WHERE conversation_id = ?1
         UNION ALL
         SELECT (SELECT min(agent) FROM involvements WHERE conversation_id = ?1 AND agent > name)
         FROM agents WHERE name IS NOT NULL)
     SELECT name FROM agents WHERE name IS NOT NULL";

/// Leaves out turns with earlier turns at the same place of the order: those move together, later.
const CONCERNING_SQL: &str = "INSERT OR IGNORE INTO moved (old)
     SELECT i.seq FROM (SELECT sent_at_ms, ordinal, seq FROM involvements
                        WHERE conversation_id = ?1 AND agent = ?3
                        ORDER BY sent_at_ms DESC, ordinal DESC, seq DESC LIMIT ?2) i
     WHERE NOT EXISTS (SELECT 1 FROM turns x
                       WHERE x.conversation_id = ?1 AND x.sent_at_ms = i.sent_at_ms
                         AND x.ordinal = i.ordinal AND x.seq < i.seq)";

/// Moves the newest turns; returns the largest of their new seqs, unless there is none to move.
fn move_newest_txn(
    connection: &Connection,
    pair: Pair,
    turns_max: usize,
) -> Result<Option<i64>, StoreError> {
    move_txn(connection, pair, |connection| {
        let values = params![pair.source, limit_of(turns_max)];
        Ok(connection.prepare_cached(NEWEST_SQL)?.execute(values)?)
    })
}

/// Moves the newest turns that concern each agent; returns the largest of their new seqs.
fn move_concerning_txn(
    connection: &Connection,
    pair: Pair,
    turns_max: usize,
) -> Result<Option<i64>, StoreError> {
    move_txn(connection, pair, |connection| {
        let mut statement = connection.prepare_cached(AGENTS_SQL)?;
        let agents = statement.query_map([pair.source], |row| row.get("name"))?;
        let mut chosen = 0;
        for agent in agents.collect::<crate::engine::sql::Result<Vec<String>>>()? {
            let values = params![pair.source, limit_of(turns_max), agent];
            chosen += connection.prepare_cached(CONCERNING_SQL)?.execute(values)?;
        }
        Ok(chosen)
    })
}

/// Moves the turns that are put into the table `moved`.
fn move_txn(
    connection: &Connection,
    pair: Pair,
    choose: impl FnOnce(&Connection) -> Result<usize, StoreError>,
) -> Result<Option<i64>, StoreError> {
    connection.execute_batch(
        "CREATE TEMP TABLE IF NOT EXISTS moved (old INTEGER PRIMARY KEY, new INTEGER);
         DELETE FROM moved",
    )?;
    match choose(connection)? {
        0 => Ok(None),
        _ => move_chosen_txn(connection, pair).map(Some),
    }
}

fn move_chosen_txn(connection: &Connection, pair: Pair) -> Result<i64, StoreError> {
    // A turn's seq is a parent key; its children follow one statement later.
    connection.execute_batch(
        "PRAGMA defer_foreign_keys = ON;
         UPDATE moved SET new = n.new FROM (
             SELECT old, (SELECT s.seq FROM sqlite_sequence s WHERE s.name = 'turns')
                         + row_number() OVER (ORDER BY old) AS new
             FROM moved) n
         WHERE n.old = moved.old;
         UPDATE sqlite_sequence SET seq = (SELECT max(new) FROM moved) WHERE name = 'turns'",
    )?;
    index_anew_txn(connection, pair)?;
    stale_summaries_txn(connection, pair)?;
    for sql in [
        "UPDATE involvements SET seq = (SELECT new FROM moved WHERE old = seq), conversation_id = ?1
         WHERE seq IN (SELECT old FROM moved)",
        "UPDATE turns SET seq = (SELECT new FROM moved WHERE old = seq), conversation_id = ?1
         WHERE seq IN (SELECT old FROM moved)",
    ] {
        connection.prepare_cached(sql)?.execute([pair.target])?;
    }
    for (table, column) in linked(|links| links.turns.iter().copied()) {
        connection.execute_batch(&format!(
            "UPDATE {table} SET {column} = (SELECT new FROM moved WHERE old = {column})
             WHERE {column} IN (SELECT old FROM moved)"
        ))?;
    }
    connection
        .prepare_cached(
            "UPDATE conversations
             SET turn_count = turn_count
                            + iif(id = ?2, 1, -1) * (SELECT count(*) FROM moved),
                 last_seq = iif(id = ?2, (SELECT max(new) FROM moved), last_seq),
                 merged_seq = (SELECT max(new) FROM moved)
             WHERE id IN (?1, ?2)",
        )?
        .execute([pair.source, pair.target])?;
    let newest_seq =
        connection.query_row("SELECT max(new) AS newest_seq FROM moved", [], |row| {
            row.get("newest_seq")
        })?;
    merge_marks_txn(connection, pair.source, pair.target, newest_seq)?;
    connection.execute_batch("PRAGMA defer_foreign_keys = OFF")?;
    Ok(newest_seq)
}

fn index_anew_txn(connection: &Connection, pair: Pair) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(concat!(
        "SELECT m.old, m.new, t.content FROM moved m CROSS JOIN turns t ON t.seq = m.old WHERE ",
        in_index!("t")
    ))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let content: String = row.get("content")?;
        unindex_turn_txn(connection, row.get("old")?, pair.source, &content)?;
        index_turn_txn(connection, row.get("new")?)?;
    }
    Ok(())
}

/// Sets summaries aside that reach the first moved turn; earlier ones stay valid. A summary over expired turns
/// stays: it can't be made again.
fn stale_summaries_txn(connection: &Connection, pair: Pair) -> Result<(), StoreError> {
    let (sent_at_ms, ordinal): (i64, i64) = connection
        .prepare_cached(
            "SELECT t.sent_at_ms, t.ordinal FROM moved m CROSS JOIN turns t ON t.seq = m.old
             ORDER BY t.sent_at_ms, t.ordinal LIMIT 1",
        )?
        .query_row([], |row| Ok((row.get("sent_at_ms")?, row.get("ordinal")?)))?;
    set_aside_txn(
        connection,
        "conversation_id = ?1 AND NOT holds_expired AND through_sent_at_ms >= ?2
         AND (through_sent_at_ms, through_ordinal) >= (?2, ?3)",
        params![pair.target, sent_at_ms, ordinal],
    )?;
    Ok(())
}

fn is_empty(connection: &Connection, source: i64) -> Result<bool, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT NOT EXISTS (SELECT 1 FROM turns WHERE conversation_id = ?1) AS is_so",
        )?
        .query_row([source], |row| row.get("is_so"))?)
}

/// A function that is called for each row that moved.
type FollowTxn = fn(&Connection, i64) -> Result<(), StoreError>;

/// Moves the remaining rows other than turns; returns whether the source is gone.
fn leave_txn(connection: &Connection, pair: Pair) -> Result<bool, StoreError> {
    let rows: [(&str, FollowTxn); 3] = [
        (
            "UPDATE runs SET conversation_id = ?2 WHERE id IN (
                 SELECT id FROM runs WHERE conversation_id = ?1 ORDER BY id DESC LIMIT ?3)
             RETURNING id",
            move_events_txn,
        ),
        (
            "UPDATE run_events SET conversation_id = ?2 WHERE id IN (
                 SELECT id FROM run_events WHERE conversation_id = ?1 ORDER BY id LIMIT ?3)
             RETURNING id",
            |_, _| Ok(()),
        ),
        (
            "UPDATE summaries SET conversation_id = ?2 WHERE id IN (
                 SELECT id FROM summaries WHERE conversation_id = ?1 LIMIT ?3)
             RETURNING id",
            |connection, id| {
                set_aside_txn(connection, "id = ?1 AND NOT holds_expired", params![id]).map(drop)
            },
        ),
    ];
    for (sql, follow_txn) in rows {
        let values = params![pair.source, pair.target, limit_of(STEP_ROWS)];
        let moved: Vec<i64> = connection
            .prepare_cached(sql)?
            .query_map(values, |row| row.get("id"))?
            .collect::<crate::engine::sql::Result<_>>()?;
        for id in &moved {
            follow_txn(connection, *id)?;
        }
        if !moved.is_empty() {
            return Ok(false);
        }
    }
    move_costs_txn(connection, pair.source, pair.target)?;
    merge_fresh_starts_txn(connection, pair.source, pair.target)?;
    delete_marks_txn(connection, pair.source)?;
    move_states_txn(connection, pair.source, pair.target)?;
    connection
        .prepare_cached(JOIN_ATTRIBUTES_SQL)?
        .execute([pair.source, pair.target])?;
    connection
        .prepare_cached("UPDATE conversations SET parent_id = ?2 WHERE parent_id = ?1")?
        .execute([pair.source, pair.target])?;
    for (table, column) in linked(|links| links.conversation) {
        let sql = format!("UPDATE {table} SET {column} = ?2 WHERE {column} = ?1");
        connection
            .prepare_cached(&sql)?
            .execute([pair.source, pair.target])?;
    }
    for sql in [
        "DELETE FROM conversation_merges WHERE source_id = ?1",
        "DELETE FROM conversations WHERE id = ?1",
    ] {
        connection.prepare_cached(sql)?.execute([pair.source])?;
    }
    Ok(true)
}

/// Moves all rows that are few, the memories, and some ended runs, the newest first, as they count for the chat's
/// limits. Returns whether there was any run.
fn move_runs_txn(
    connection: &Connection,
    from: ChatId,
    target: ChatId,
) -> Result<bool, StoreError> {
    for (table, column) in linked(|links| links.chat) {
        let sql = format!("UPDATE {table} SET {column} = ?2 WHERE {column} = ?1");
        connection.prepare_cached(&sql)?.execute((from, target))?;
    }
    move_memories_txn(connection, from, target)?;
    let moved = connection
        .prepare_cached(
            "UPDATE runs SET chat_id = ?2 WHERE id IN (
                 SELECT id FROM runs WHERE chat_id = ?1 ORDER BY created_at_ms DESC LIMIT ?3)",
        )?
        .execute(params![from, target, limit_of(STEP_ROWS)])?;
    Ok(moved > 0)
}

/// Moves finished posts. No index finds them by their chat, so the whole table is scanned once, in steps.
fn move_posts_txn(connection: &Connection, from: ChatId) -> Result<(), StoreError> {
    for sql in [
        "UPDATE outbox SET chat_id = m.chat_id FROM chat_merges m
         WHERE m.from_chat_id = ?1 AND outbox.chat_id = ?1 AND outbox.id IN (
             SELECT id FROM outbox WHERE id > (SELECT posts_through FROM chat_merges
                                               WHERE from_chat_id = ?1)
             ORDER BY id LIMIT ?2)",
        "UPDATE chat_merges SET posts_through = coalesce(
             (SELECT max(id) FROM (SELECT id FROM outbox WHERE id > posts_through
                                   ORDER BY id LIMIT ?2)), posts_through)
         WHERE from_chat_id = ?1",
    ] {
        connection
            .prepare_cached(sql)?
            .execute(params![from, limit_of(STEP_POSTS)])?;
    }
    Ok(())
}

/// Ends a merge when nothing refers to the old chat any more but the identity of its messages.
fn settle_chat_txn(connection: &Connection, from: ChatId) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "DELETE FROM chat_merges
             WHERE from_chat_id = ?1
               AND NOT EXISTS (SELECT 1 FROM runs WHERE chat_id = ?1)
               AND NOT EXISTS (SELECT 1 FROM outbox WHERE id > posts_through)
               AND NOT EXISTS (SELECT 1 FROM conversation_merges p
                               JOIN conversations c ON c.id = p.target_id
                               WHERE c.chat_id = chat_merges.chat_id)",
        )?
        .execute([from])?;
    Ok(())
}
