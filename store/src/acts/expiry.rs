//! Retention: data older than its channel keeps is removed, in bounded batches. Ids stay.
//!
//! Three classes. *Text*: turns with their revisions, raw events, full text, and the copies of them in
//! steps and posts. *Raw*: events that did not translate, raw envelopes, commands, and texts before an edit.
//! *Runs*: steps, run events, what prompts were made from, tool calls and results, the text of posts that are
//! done, and their attempts. A chat with an open run or post waits: what a retry reads or a post says must
//! not change meanwhile. Summaries stay: they are the room's memory of the expired turns.

use crate::acts::forgetting::delete_steps_txn;
use crate::capability::MayWork;
use crate::contract::Expired;
use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::indexed::in_index;
use crate::rows::memories::forget_memories_of_turn_txn;
use crate::rows::networks::{expire_states_txn, has_old_states};
use crate::rows::open::{open_post, open_run};
use crate::rows::titles::forget_titles_of_turn_txn;
use vocative_contract::outbound::Part;

use crate::rows::columns::count_from;
use crate::rows::delete_rows_of_turn_txn;
use crate::rows::files::forget_files_txn;
use crate::rows::search_text::unindex_turn_txn;
use crate::rows::sent_prompts::forget_former_names_txn;
use crate::rows::summaries::note_expired_in_summaries_txn;
use crate::{Reader, Store, StoreError};
use vocative_core::ids::AccountId;

/// The most turns, raw events or runs that expire in one transaction.
const BATCH_MAX: i64 = 100;

/// The times before which an account's data expires, in milliseconds since the Unix epoch; `None` = it stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpiryBounds {
    /// Turns sent before.
    pub text_before_ms: Option<i64>,
    /// Raw events received, and texts that an edit replaced, before.
    pub raw_before_ms: Option<i64>,
    /// Runs finished before.
    pub runs_before_ms: Option<i64>,
}

/// The turns there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeptTurns {
    /// How many there ever were.
    pub turns: u64,
    /// The platform's time of the newest, in milliseconds since the Unix epoch.
    pub newest_ms: Option<i64>,
}

impl Reader {
    /// How many turns there are, and how new the newest is. Two steps in indexes.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn kept_turns(&self) -> Result<KeptTurns, StoreError> {
        self.read(|connection| {
            let kept = connection
                .prepare_cached(
                    "SELECT (SELECT max(seq) FROM turns) AS turns,
                            (SELECT max(last_activity_ms) FROM conversations) AS newest_ms",
                )?
                .query_row([], |row| {
                    Ok(KeptTurns {
                        turns: count_from(row.get::<_, Option<i64>>("turns")?.unwrap_or(0)),
                        newest_ms: row.get("newest_ms")?,
                    })
                })?;
            Ok(kept)
        })
        .await
    }

    /// Whether an account has data that is older than its bounds. Data of a chat with an open run or post counts,
    /// although it expires only later.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn is_anything_old(
        &self,
        account: AccountId,
        bounds: ExpiryBounds,
        now_ms: i64,
    ) -> Result<bool, StoreError> {
        self.read(move |connection| is_anything_old(connection, account, bounds, now_ms))
            .await
    }

    /// Whether raw events that are kept for debugging were received before a time.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn is_raw_old(&self, older_than_ms: i64) -> Result<bool, StoreError> {
        self.read(move |connection| {
            let found = connection
                .prepare_cached(
                    "SELECT EXISTS (SELECT 1 FROM raw_envelopes
                                    WHERE reason IS NULL AND received_at_ms < ?1) AS is_old",
                )?
                .query_row([older_than_ms], |row| row.get("is_old"))?;
            Ok(found)
        })
        .await
    }
}

impl<C: MayWork> Store<C> {
    /// Expires data of an account that is older than its bounds, at most `share` rows of each class, in batches
    /// with live writes between them.
    ///
    /// # Errors
    /// Storage refuses; what has expired by then stays removed, the rest expires the next time.
    pub async fn expire(
        &self,
        account: AccountId,
        bounds: ExpiryBounds,
        share: u64,
        now_ms: i64,
    ) -> Result<Expired, StoreError> {
        let pass = |class, at_most| ExpiryPass {
            account,
            class,
            at_most,
            now_ms,
        };
        let mut expired = Expired::default();
        if let Some(before_ms) = bounds.text_before_ms {
            let rooms = self
                .read(move |connection| rooms_to_expire(connection, account, before_ms, i64::MAX))
                .await?;
            for room in rooms {
                let batch =
                    move |connection: &Connection, max| text_txn(connection, room, before_ms, max);
                let left = share.saturating_sub(expired.text);
                expired.text += self.in_batches(pass("text", left), batch).await?;
            }
            let batch = move |connection: &Connection, max| {
                expire_states_txn(connection, account, before_ms, now_ms, max)
            };
            let left = share.saturating_sub(expired.text);
            expired.text += self.in_batches(pass("text", left), batch).await?;
        }
        if let Some(before_ms) = bounds.raw_before_ms {
            let batch =
                move |connection: &Connection, max| raw_txn(connection, account, before_ms, max);
            expired.raw = self.in_batches(pass("raw", share), batch).await?;
        }
        if let Some(before_ms) = bounds.runs_before_ms {
            let batch =
                move |connection: &Connection, max| runs_txn(connection, account, before_ms, max);
            expired.runs = self.in_batches(pass("runs", share), batch).await?;
            if expired.runs < share {
                self.note_others_runs(account, before_ms).await?;
            }
        }
        Ok(expired)
    }

    /// Moves an account's mark beyond old runs of other accounts, if there are any behind it.
    async fn note_others_runs(&self, account: AccountId, before_ms: i64) -> Result<(), StoreError> {
        let last = self.read(move |connection| last_old_run(connection, account, before_ms));
        let Some((through_ms, through_id)) = last.await? else {
            return Ok(());
        };
        self.write(move |connection| note_runs_txn(connection, account, through_ms, through_id))
            .await
    }

    /// Repeats a batch until one is not full or the share is used up; returns how many rows expired.
    async fn in_batches(
        &self,
        pass: ExpiryPass,
        batch: impl Fn(&Connection, i64) -> Result<i64, StoreError> + Copy + Send + 'static,
    ) -> Result<u64, StoreError> {
        let mut total = 0;
        loop {
            let max = i64::try_from(pass.at_most - total).unwrap_or(BATCH_MAX);
            let max = max.min(BATCH_MAX);
            if max == 0 {
                return Ok(total);
            }
            let count = self
                .write_and_clean(pass.now_ms, move |connection| {
                    let count = batch(connection, max)?;
                    note_txn(connection, pass, count)?;
                    Ok(count)
                })
                .await?;
            total += u64::try_from(count).unwrap_or(0);
            if count < max {
                return Ok(total);
            }
            tokio::task::yield_now().await;
        }
    }

    /// Expires raw envelopes kept for debugging, at most `share` at once; events that did not translate stay.
    /// Returns how many went.
    ///
    /// # Errors
    /// `Unavailable` if storage refuses.
    pub async fn expire_raw(&self, older_than_ms: i64, share: u64) -> Result<u64, StoreError> {
        let share = i64::try_from(share).unwrap_or(i64::MAX);
        self.write_and_clean(older_than_ms, move |connection| {
            let expired = connection
                .prepare_cached(
                    "DELETE FROM raw_envelopes WHERE id IN (
                         SELECT id FROM raw_envelopes
                         WHERE reason IS NULL AND received_at_ms < ?1
                         ORDER BY received_at_ms LIMIT ?2)",
                )?
                .execute([older_than_ms, share])?;
            Ok(expired as u64)
        })
        .await
    }
}

/// One class of rows of an account, and how many of them may expire at once.
#[derive(Clone, Copy)]
struct ExpiryPass {
    account: AccountId,
    class: &'static str,
    at_most: u64,
    now_ms: i64,
}

fn note_txn(connection: &Connection, pass: ExpiryPass, count: i64) -> Result<(), StoreError> {
    if count == 0 {
        return Ok(());
    }
    connection
        .prepare_cached(
            "INSERT INTO retention (account_id, class, expired, last_at_ms) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE
             SET expired = expired + excluded.expired, last_at_ms = excluded.last_at_ms",
        )?
        .execute(params![pass.account, pass.class, count, pass.now_ms])?;
    Ok(())
}

fn is_anything_old(
    connection: &Connection,
    account: AccountId,
    bounds: ExpiryBounds,
    now_ms: i64,
) -> Result<bool, StoreError> {
    if let Some(before_ms) = bounds.text_before_ms
        && (!rooms_to_expire(connection, account, before_ms, 1)?.is_empty()
            || has_old_states(connection, account, before_ms, now_ms)?)
    {
        return Ok(true);
    }
    let is_found = |sql, before_ms| -> Result<bool, StoreError> {
        let mut statement = connection.prepare_cached(sql)?;
        Ok(statement.query_row(params![account, before_ms], |row| row.get("is_old"))?)
    };
    if let Some(before_ms) = bounds.raw_before_ms
        && is_found(OLD_RAW_SQL, before_ms)?
    {
        return Ok(true);
    }
    match bounds.runs_before_ms {
        Some(before_ms) => is_found(OLD_RUNS_SQL, before_ms),
        None => Ok(false),
    }
}

const OLD_RAW_SQL: &str = "SELECT
     EXISTS (SELECT 1 FROM raw_envelopes WHERE account_id = ?1 AND received_at_ms < ?2)
     OR EXISTS (SELECT 1 FROM revisions WHERE account_id = ?1 AND replaced_at_ms < ?2)
     OR EXISTS (SELECT 1 FROM non_messages WHERE account_id = ?1 AND received_at_ms < ?2) AS is_old";

/// Whether there are old runs that no pass of the account has looked at. Those of other accounts count, so that the
/// next pass moves the account's mark beyond them: otherwise every look would read all of them.
const OLD_RUNS_SQL: &str = "SELECT EXISTS (
         SELECT 1 FROM runs r
         WHERE (r.finished_at_ms, r.id) >
               (coalesce((SELECT through_ms FROM retention WHERE account_id = ?1 AND class = 'runs'), 0),
                coalesce((SELECT through_id FROM retention WHERE account_id = ?1 AND class = 'runs'), 0))
           AND r.finished_at_ms IS NOT NULL AND r.finished_at_ms < ?2) AS is_old";

/// At most `limit` conversations with turns that are old, also of chats with open runs or posts.
fn rooms_to_expire(
    connection: &Connection,
    account: AccountId,
    before_ms: i64,
    limit: i64,
) -> Result<Vec<i64>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT c.id FROM chats h JOIN conversations c ON c.chat_id = h.id
         WHERE h.account_id = ?1
           AND EXISTS (SELECT 1 FROM turns t
                       WHERE t.conversation_id = c.id AND t.sent_at_ms >= c.expired_through_ms
                         AND t.sent_at_ms < ?2)
         LIMIT ?3",
    )?;
    let rooms = statement.query_map(params![account, before_ms, limit], |row| row.get("id"))?;
    Ok(rooms.collect::<crate::engine::sql::Result<_>>()?)
}

/// Expires the oldest turns of a conversation.
fn text_txn(
    connection: &Connection,
    room: i64,
    before_ms: i64,
    max: i64,
) -> Result<i64, StoreError> {
    let is_at_work: bool = connection
        .prepare_cached(concat!(
            "SELECT EXISTS (SELECT 1 FROM runs r INDEXED BY runs_waiting
                            WHERE ",
            open_run!("r"),
            "
                              AND r.chat_id = (SELECT chat_id FROM conversations WHERE id = ?1))
                 OR EXISTS (SELECT 1 FROM outbox o
                            WHERE ",
            open_post!("o"),
            "
                              AND o.chat_id = (SELECT chat_id FROM conversations WHERE id = ?1)) AS is_at_work"
        ))?
        .query_row([room], |row| row.get("is_at_work"))?;
    if is_at_work {
        return Ok(0);
    }
    let mut statement = connection.prepare_cached(concat!(
        "SELECT t.seq, t.content, ",
        in_index!("t"),
        " AS is_indexed, t.sent_at_ms
         FROM conversations c CROSS JOIN turns t ON t.conversation_id = c.id
         WHERE c.id = ?1 AND t.sent_at_ms >= c.expired_through_ms AND t.sent_at_ms < ?2
           AND t.visibility <> 'hidden'
         ORDER BY t.sent_at_ms, t.ordinal, t.seq LIMIT ?3"
    ))?;
    let rows = statement.query_map((room, before_ms, max), |row| {
        Ok((
            row.get("seq")?,
            row.get("content")?,
            row.get("is_indexed")?,
            row.get("sent_at_ms")?,
        ))
    })?;
    let turns: Vec<(i64, String, bool, i64)> = rows.collect::<crate::engine::sql::Result<_>>()?;
    for (seq, content, is_indexed, _) in &turns {
        if *is_indexed {
            unindex_turn_txn(connection, *seq, room, content)?;
        }
        expire_turn_txn(connection, *seq)?;
    }
    let count = i64::try_from(turns.len()).unwrap_or(max);
    let through_ms = match turns.last() {
        Some((_, _, _, sent_at_ms)) if count == max => *sent_at_ms,
        _ => before_ms,
    };
    connection
        .prepare_cached("UPDATE conversations SET expired_through_ms = ?2 WHERE id = ?1")?
        .execute((room, through_ms))?;
    Ok(count)
}

fn expire_turn_txn(connection: &Connection, seq: i64) -> Result<(), StoreError> {
    note_expired_in_summaries_txn(connection, seq)?;
    forget_memories_of_turn_txn(connection, seq)?;
    forget_titles_of_turn_txn(connection, seq)?;
    delete_rows_of_turn_txn(connection, seq)?;
    for sql in [
        "UPDATE messages SET turn_seq = NULL, text = NULL, gone = 'expired' WHERE turn_seq = ?1",
        "UPDATE turns SET content = '', attachments = NULL, quote = NULL, tokens = NULL,
                counter = NULL, visibility = 'hidden', revision = revision + 1
         WHERE seq = ?1",
        "DELETE FROM turn_sources WHERE turn_seq = ?1",
        // An expired source removes nothing that was made from it, and an expired answer needs no record of its
        // sources.
        concat!(
            "DELETE FROM run_sources WHERE source_seq = ?1
           AND run_id NOT IN (SELECT id FROM runs WHERE runs.id = run_id
                                AND ",
            open_run!(),
            ")"
        ),
        "DELETE FROM run_sources WHERE run_id IN (
             SELECT t.run_id FROM turns t WHERE t.seq = ?1 AND t.kind <> 'tool_result'
                AND t.kind <> 'tool_call')",
    ] {
        connection.prepare_cached(sql)?.execute([seq])?;
    }
    let own = "= (SELECT run_id FROM turns WHERE seq = ?1)";
    delete_steps_txn(connection, own, seq)?;
    forget_files_txn(connection, seq, None)?;
    empty_done_posts_txn(connection, "turn_seq = ?1", seq)
}

/// Empties the posts that are done; those that wait for a person keep their text.
fn empty_done_posts_txn(
    connection: &Connection,
    which: &'static str,
    value: i64,
) -> Result<(), StoreError> {
    let emptied = serde_json::to_string(&Part::plain(""))?;
    connection
        .prepare_cached(&format!(
            "UPDATE outbox SET payload = ?2, progress = NULL
             WHERE {which} AND state IN ('sent', 'dead', 'replaced') AND payload <> ?2"
        ))?
        .execute(params![value, emptied])?;
    Ok(())
}

fn raw_txn(
    connection: &Connection,
    account: AccountId,
    before_ms: i64,
    max: i64,
) -> Result<i64, StoreError> {
    let raw = connection
        .prepare_cached(
            "DELETE FROM raw_envelopes WHERE id IN (
                 SELECT id FROM raw_envelopes
                 WHERE account_id = ?1 AND received_at_ms < ?2 ORDER BY received_at_ms LIMIT ?3)",
        )?
        .execute(params![account, before_ms, max])?;
    let left = max - i64::try_from(raw).unwrap_or(max);
    let earlier_texts = connection
        .prepare_cached(
            "DELETE FROM revisions WHERE (turn_seq, revision) IN (
                 SELECT turn_seq, revision FROM revisions
                 WHERE account_id = ?1 AND replaced_at_ms < ?2 ORDER BY replaced_at_ms LIMIT ?3)",
        )?
        .execute(params![account, before_ms, left])?;
    let left = left - i64::try_from(earlier_texts).unwrap_or(left);
    let commands = connection
        .prepare_cached(
            "DELETE FROM non_messages WHERE (account_id, kind, platform_id) IN (
                 SELECT account_id, kind, platform_id FROM non_messages
                 WHERE account_id = ?1 AND received_at_ms < ?2 LIMIT ?3)",
        )?
        .execute(params![account, before_ms, left])?;
    Ok(i64::try_from(raw + earlier_texts + commands).unwrap_or(max))
}

fn runs_txn(
    connection: &Connection,
    account: AccountId,
    before_ms: i64,
    max: i64,
) -> Result<i64, StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO retention (account_id, class) VALUES (?1, 'runs') ON CONFLICT DO NOTHING",
        )?
        .execute([account])?;
    let mut statement = connection.prepare_cached(
        "SELECT r.id, r.finished_at_ms FROM retention p
         CROSS JOIN runs r ON (r.finished_at_ms, r.id) > (p.through_ms, p.through_id)
         CROSS JOIN chats h ON h.id = r.chat_id
         WHERE p.account_id = ?1 AND p.class = 'runs' AND r.finished_at_ms IS NOT NULL
           AND r.finished_at_ms < ?2 AND h.account_id = ?1
         ORDER BY r.finished_at_ms, r.id LIMIT ?3",
    )?;
    let rows = statement.query_map(params![account, before_ms, max], |row| {
        Ok((row.get("id")?, row.get("finished_at_ms")?))
    })?;
    let runs: Vec<(i64, i64)> = rows.collect::<crate::engine::sql::Result<_>>()?;
    for (run, _) in &runs {
        for turn in turns_with_files(connection, *run)? {
            forget_files_txn(connection, turn, None)?;
        }
        for sql in [
            "DELETE FROM run_events WHERE run_id = ?1",
            "DELETE FROM tellings WHERE run_id = ?1",
            "DELETE FROM approvals WHERE run_id = ?1",
            "DELETE FROM questions WHERE run_id = ?1",
            "DELETE FROM feedback WHERE run_id = ?1",
            "DELETE FROM memory_writes WHERE run_id = ?1",
            "DELETE FROM delegations WHERE parent_id = ?1 OR child_id = ?1",
            "DELETE FROM tool_calls WHERE run_id = ?1",
            "DELETE FROM sent_prompts WHERE run_id = ?1",
            "DELETE FROM turn_sources WHERE turn_seq IN
                 (SELECT seq FROM turns WHERE run_id = ?1 AND visibility = 'timeline')",
            "UPDATE turns SET content = '', attachments = NULL, tokens = NULL, counter = NULL, visibility = 'hidden',
                    revision = revision + 1
             WHERE run_id = ?1 AND visibility = 'timeline'",
            "DELETE FROM outbox_attempts WHERE outbox_id IN
                 (SELECT id FROM outbox WHERE state IN ('sent', 'dead', 'replaced')
                    AND turn_seq IN (SELECT seq FROM turns WHERE run_id = ?1))",
        ] {
            connection.prepare_cached(sql)?.execute([run])?;
        }
        delete_steps_txn(connection, "= ?1", *run)?;
        empty_done_posts_txn(
            connection,
            "turn_seq IN (SELECT seq FROM turns WHERE run_id = ?1)",
            *run,
        )?;
    }
    if !runs.is_empty() {
        forget_former_names_txn(connection)?;
    }
    if let Some((run, finished_at_ms)) = runs.last() {
        note_runs_txn(connection, account, *finished_at_ms, *run)?;
    }
    Ok(i64::try_from(runs.len()).unwrap_or(max))
}

const LAST_OLD_RUN_SQL: &str = "SELECT r.finished_at_ms, r.id FROM runs r
     WHERE r.finished_at_ms IS NOT NULL AND r.finished_at_ms < ?2
       AND (r.finished_at_ms, r.id) > (SELECT through_ms, through_id FROM retention
                                       WHERE account_id = ?1 AND class = 'runs')
     ORDER BY r.finished_at_ms DESC, r.id DESC LIMIT 1";

/// The last run of any account that ended before a time, if an account's mark is before it. A mark is always at the end
/// of a run: one at a time that a wrong clock told would pass over runs that end until then.
fn last_old_run(
    connection: &Connection,
    account: AccountId,
    before_ms: i64,
) -> Result<Option<(i64, i64)>, StoreError> {
    Ok(connection
        .prepare_cached(LAST_OLD_RUN_SQL)?
        .query_row(params![account, before_ms], |row| {
            Ok((row.get("finished_at_ms")?, row.get("id")?))
        })
        .optional()?)
}

/// Moves an account's mark: its runs up to there, in the order of their ends, have expired.
fn note_runs_txn(
    connection: &Connection,
    account: AccountId,
    through_ms: i64,
    through_id: i64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE retention SET through_ms = ?2, through_id = ?3
             WHERE account_id = ?1 AND class = 'runs' AND (through_ms, through_id) < (?2, ?3)",
        )?
        .execute(params![account, through_ms, through_id])?;
    Ok(())
}

/// The turns of a run's timeline that have files.
fn turns_with_files(connection: &Connection, run: i64) -> Result<Vec<i64>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT seq FROM turns WHERE run_id = ?1 AND visibility = 'timeline' AND attachments IS NOT NULL",
    )?;
    let turns = statement.query_map([run], |row| row.get("seq"))?;
    Ok(turns.collect::<crate::engine::sql::Result<_>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::Scene;

    #[tokio::test]
    async fn old_runs_are_looked_for_in_the_order_of_their_ends() {
        let scene = Scene::open().await;
        for sql in [OLD_RUNS_SQL, LAST_OLD_RUN_SQL] {
            let plan = scene.plan(sql).await;
            let by_end =
                "SEARCH r USING COVERING INDEX runs_by_end (finished_at_ms>? AND finished_at_ms<?)";
            assert!(
                plan.iter().any(|step| step.starts_with(by_end)),
                "{plan:#?}"
            );
            assert!(
                !plan
                    .iter()
                    .any(|step| step.contains("SCAN r") || step.contains("B-TREE")),
                "{plan:#?}"
            );
        }
    }
}
