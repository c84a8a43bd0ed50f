//! Finds and removes what was made from a turn: its quotes in replies, our answers that were certainly made
//! from it, and their posts.
//!
//! Deletes, `forget` and erasures all use this module, so that a message is removed to the same extent whoever
//! removes it, and also when an older copy of the database is brought up to date.

use std::collections::BTreeSet;

use crate::acts::forgetting::{blank_turn_txn, delete_steps_txn};
use crate::engine::sql::{Connection, params};
use crate::rows::open::open_post;
use crate::rows::turn_rows::{TurnRow, turn_at};
use vocative_contract::outbound::Part;

use crate::StoreError;
use crate::rows::quarantine::leave_quarantine_txn;
use crate::rows::summaries::{SummaryFate, invalidate_summaries_txn, void_summaries_of_quote_txn};
use vocative_core::outbox::{DeadCause, Emptied, PostStage, emptied};
use vocative_core::running::made_from::{ReadingTurn, SourceExtent};

/// What was removed with a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gone {
    /// Turns of ours that were blanked.
    pub(crate) answers: u64,
    /// Replies that quote it no longer.
    pub(crate) quotes: u64,
}

/// Removes what was made from a turn. Runs at work that read the turn do not answer from what they read: they
/// are tried again.
pub(crate) fn forget_made_from_txn(
    connection: &Connection,
    turn: &TurnRow,
    made: SourceExtent,
    now_ms: i64,
) -> Result<Gone, StoreError> {
    let mut gone = Gone {
        quotes: unquote_txn(connection, turn.seq)?,
        ..Gone::default()
    };
    let readers = "IN (SELECT run_id FROM run_sources WHERE source_seq = ?1)";
    delete_steps_txn(connection, readers, turn.seq)?;
    for seq in made_from(connection, turn, made)? {
        gone.answers += u64::from(blank_ours_txn(connection, seq, now_ms)?);
    }
    Ok(gone)
}

/// Our turns that are to be removed, of the runs that certainly read a turn.
fn made_from(
    connection: &Connection,
    turn: &TurnRow,
    made: SourceExtent,
) -> Result<BTreeSet<i64>, StoreError> {
    let mut statement = connection.prepare_cached(MADE_FROM_SQL)?;
    let opened = made == SourceExtent::FromEverything;
    let turns = statement.query_map(params![turn.seq, turn.conversation.chat, opened], |row| {
        Ok(ReadingTurn {
            seq: row.get("seq")?,
            kind: row.get("kind")?,
            is_asked: row.get("is_asked")?,
            read_at_seq: row.get("read_at_seq")?,
            stage: row.get("state")?,
            is_on_its_way: row.get("is_on_its_way")?,
        })
    })?;
    let turns: Vec<ReadingTurn> = turns.collect::<crate::engine::sql::Result<_>>()?;
    let gone = turns.into_iter().filter(|turn| turn.goes(made));
    Ok(gone.map(|turn| turn.seq).collect())
}

/// Our turns of the runs that certainly read a turn: it triggered them, one of their triggers
/// replies to it, their prompts held its files, their tools found it, or (parameter 3) it is the root of
/// the thread they answered in. If a run at work is to replace an answer, `turn_sources` of that answer and of
/// its tools' turns say what the earlier run had read.
pub(crate) const MADE_FROM_SQL: &str = concat!(
    "WITH read_by (run_id, is_asked, read_at_seq) AS (
         SELECT run_id, 1, 0 FROM run_triggers WHERE turn_seq = ?1
         UNION
         SELECT g.run_id, 0, 0 FROM turns r JOIN run_triggers g ON g.turn_seq = r.seq
         WHERE r.reply_to_seq = ?1
         UNION
         SELECT run_id, 0, NULL FROM run_sources WHERE source_seq = ?1
         UNION
         SELECT r.run_id, 0, s.turn_seq FROM turn_sources s JOIN turns r ON r.seq = s.turn_seq
         WHERE s.source_seq = ?1 AND r.run_id IS NOT NULL
         UNION
         SELECT n.id, 0, 0 FROM messages m JOIN conversations c ON c.thread = m.platform_id
         JOIN runs n ON n.conversation_id = c.id
         WHERE ?3 AND m.turn_seq = ?1 AND c.chat_id = ?2 AND c.root_turn_seq = ?1
     )
     SELECT t.seq, t.kind, b.is_asked, b.read_at_seq, n.state,
            EXISTS (SELECT 1 FROM outbox o WHERE o.turn_seq = t.seq AND (",
    open_post!("o"),
    " OR o.state = 'held')) AS is_on_its_way
     FROM read_by b CROSS JOIN runs n ON n.id = b.run_id CROSS JOIN turns t ON t.run_id = b.run_id
     WHERE t.visibility <> 'hidden'"
);

/// Whether a turn that a run certainly read is gone: the run's answer would bring it back.
pub(crate) fn has_lost_source(connection: &Connection, run_row: i64) -> Result<bool, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM run_sources s CROSS JOIN turns t ON t.seq = s.source_seq
                            WHERE s.run_id = ?1 AND t.visibility = 'hidden') AS is_so",
        )?
        .query_row([run_row], |row| row.get("is_so"))?)
}

/// Forgets what a run did so far, so that its next attempt reads everything again.
pub(crate) fn begin_again_txn(connection: &Connection, run_row: i64) -> Result<(), StoreError> {
    delete_steps_txn(connection, "= ?1", run_row)?;
    connection
        .prepare_cached("DELETE FROM run_sources WHERE run_id = ?1")?
        .execute([run_row])?;
    Ok(())
}

/// Removes the quotes of a turn from replies.
fn unquote_txn(connection: &Connection, seq: i64) -> Result<u64, StoreError> {
    let unquoted: Vec<i64> = connection
        .prepare_cached(
            "UPDATE turns SET quote = NULL, revision = revision + 1
             WHERE reply_to_seq = ?1 AND quote IS NOT NULL RETURNING seq",
        )?
        .query_map([seq], |row| row.get("seq"))?
        .collect::<crate::engine::sql::Result<_>>()?;
    for reply in &unquoted {
        void_summaries_of_quote_txn(connection, *reply)?;
    }
    Ok(unquoted.len() as u64)
}

/// Blanks a turn of ours that was made from a removed turn, and deletes the steps of its run. Returns
/// whether it said anything.
pub(crate) fn blank_ours_txn(
    connection: &Connection,
    seq: i64,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let turn = turn_at(connection, seq)?;
    unquote_txn(connection, seq)?;
    let own = "= (SELECT run_id FROM turns WHERE seq = ?1)";
    delete_steps_txn(connection, own, seq)?;
    blank_any_txn(connection, &turn, now_ms)
}

/// Empties a turn of any kind, with its posts; its messages stay as tombstones. Returns whether there was
/// anything to empty.
pub(crate) fn blank_any_txn(
    connection: &Connection,
    turn: &TurnRow,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let seq = turn.seq;
    connection
        .prepare_cached(
            "UPDATE messages SET turn_seq = NULL, text = NULL, gone = 'erased' WHERE turn_seq = ?1",
        )?
        .execute([seq])?;
    empty_posts_txn(connection, "turn_seq = ?1", seq, now_ms)?;
    let is_hidden: bool = connection
        .prepare_cached("SELECT visibility = 'hidden' AS is_hidden FROM turns WHERE seq = ?1")?
        .query_row([seq], |row| row.get("is_hidden"))?;
    if is_hidden {
        // The turn expired by age, but summaries may still hold it.
        invalidate_summaries_txn(connection, turn, SummaryFate::Void)?;
        return Ok(false);
    }
    blank_turn_txn(connection, turn)?;
    Ok(true)
}

/// Empties posts. Unsent posts are not sent any more; posts that may be out keep their state, so that it
/// is known where they went.
pub(crate) fn empty_posts_txn(
    connection: &Connection,
    which: &'static str,
    value: i64,
    now_ms: i64,
) -> Result<(), StoreError> {
    let posts: Vec<(i64, PostStage, bool)> = connection
        .prepare_cached(&format!(
            "SELECT id, state, send_started FROM outbox WHERE {which}"
        ))?
        .query_map([value], |row| {
            Ok((row.get("id")?, row.get("state")?, row.get("send_started")?))
        })?
        .collect::<crate::engine::sql::Result<_>>()?;
    let nothing = serde_json::to_string(&Part::plain(""))?;
    for (row, stage, is_send_started) in posts {
        match emptied(stage, is_send_started) {
            Emptied::Over => connection
                .prepare_cached(
                    "UPDATE outbox SET payload = ?2, progress = NULL,
                            finished_at_ms = coalesce(finished_at_ms, ?3)
                     WHERE id = ?1",
                )?
                .execute((row, &nothing, now_ms))?,
            Emptied::Leaving => connection
                .prepare_cached(
                    "UPDATE outbox SET payload = ?2, progress = NULL, finished_at_ms = NULL
                     WHERE id = ?1",
                )?
                .execute((row, &nothing))?,
            Emptied::Dropped => connection
                .prepare_cached(
                    "UPDATE outbox SET payload = ?2, progress = NULL, state = ?4, reason = ?5,
                            dead_cause = ?5, token = NULL, finished_at_ms = coalesce(finished_at_ms, ?3)
                     WHERE id = ?1",
                )?
                .execute((
                    row,
                    &nothing,
                    now_ms,
                    PostStage::Dead,
                    DeadCause::Dropped,
                ))?,
        };
    }
    leave_quarantine_txn(connection)
}
