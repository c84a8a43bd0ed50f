//! Carries out orders: one batch after the other, online between live writes or at open.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::capability::MayWork;
use crate::engine::sql::{Connection, params};
use crate::rows::open::open_run;
use crate::rows::run_events::forget_live_text_txn;
use vocative_contract::crash;

use super::blank::{blank_batch_txn, is_blank, unname_txn};
use super::columns::search_columns;
use super::files::{Verification, old_copies, remove_old_copies, search_files};
use super::ledger::{LedgerKind, OrderReach, path_beside, reconcile_txn};
use super::needles::Needles;
use super::orders::{ErasureCounts, Order, Reached, open_order, targets};
use super::readers::stop_readers_txn;
use super::sweep::{SweepStage, Sweeper, place_behind, sweep_batch_txn};
use crate::acts::cleaning::want_clean_pages_txn;
use crate::acts::erasure::deletes::delete_txn;
use crate::rows::columns::stored_count;
use crate::rows::jobs::forget_job_txn;
use crate::rows::search_text::index_waiting_txn;
use crate::{Store, StoreError};
use vocative_core::ids::ErasureId;
use vocative_core::job::{Job, JobKind};
use vocative_core::run::StopCause;

/// The phases before and after the places that are swept.
pub(super) const FIRST_PHASE: &str = "blank";
const SETTLE: &str = "settle";
const FILES: &str = "files";

/// How long runs that began before an erasure may end by themselves, in milliseconds.
pub(super) const SETTLE_MS: i64 = 20_000;
/// The pause between two checks whether such runs have ended.
const SETTLE_LOOK: Duration = Duration::from_millis(100);
/// How often the write-ahead log is checked for being empty, and the wait in between.
const SCRUB_LOOKS: u32 = 100;
const SCRUB_LOOK: Duration = Duration::from_millis(100);

/// What is left to do after a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BatchLeft {
    /// Further batches.
    More,
    /// Runs that began before the order are still at work.
    Runs,
    /// Nothing is left to do in the database.
    Files,
    /// There is no such open order.
    Nothing,
}

/// What carrying out orders did besides what their rows count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CarriedOut {
    /// Copies from before a migration that were removed: they held everything.
    pub removed_copies: Vec<PathBuf>,
    /// Copies that still hold what people wanted forgotten: the operator decides about them.
    pub kept_copies: Vec<PathBuf>,
    /// What the search of the files found, if one was asked for.
    pub verification: Option<Verification>,
}

impl<C: MayWork> Store<C> {
    /// Carries out orders to the end, in batches with live writes between them, and searches the
    /// files for the erased texts if asked to.
    ///
    /// # Errors
    /// Storage refuses; the next start goes on where this ended.
    pub async fn carry_out_all(
        &self,
        ids: &[ErasureId],
        verify: bool,
        now_ms: impl Fn() -> i64,
    ) -> Result<CarriedOut, StoreError> {
        for id in ids {
            self.empty_tables(*id, &now_ms).await?;
        }
        let texts = if verify {
            self.traces_of(ids).await?
        } else {
            Vec::new()
        };
        let (removed_copies, kept_copies) = self.settle_copies(ids).await?;
        crash::point("erase.copies-removed");
        for id in ids {
            self.drop_traces(*id).await?;
        }
        // People's own orders should cost only what they delete, so the walk through the file is queued for later.
        if self.of_operators(ids).await?.is_empty() {
            let at_ms = now_ms();
            self.write(move |connection| want_clean_pages_txn(connection, at_ms))
                .await?;
        } else {
            self.clean_all_pages().await?;
        }
        crash::point("erase.pages-cleaned");
        for id in ids {
            self.finish(*id, now_ms()).await?;
        }
        crash::point("erase.finished");
        self.remove_dropped().await?;
        self.scrub().await?;
        crash::point("erase.scrubbed");
        let verification = if verify {
            self.search_files(texts).await?
        } else {
            None
        };
        Ok(CarriedOut {
            removed_copies,
            kept_copies,
            verification,
        })
    }

    async fn empty_tables(
        &self,
        id: ErasureId,
        now_ms: &impl Fn() -> i64,
    ) -> Result<(), StoreError> {
        let sweeper = Arc::new(Mutex::new(Sweeper::default()));
        loop {
            let (sweeper, at_ms) = (Arc::clone(&sweeper), now_ms());
            let left = self
                .write_and_scrub(move |connection| {
                    let mut sweeper = sweeper.lock().expect("no holder of this lock panics");
                    advance_txn(connection, Some(id), &mut sweeper, at_ms)
                })
                .await?;
            crash::point("erase.batch-committed");
            match left {
                BatchLeft::More => tokio::task::yield_now().await,
                BatchLeft::Runs => tokio::time::sleep(SETTLE_LOOK).await,
                BatchLeft::Files | BatchLeft::Nothing => return Ok(()),
            }
        }
    }

    async fn drop_traces(&self, id: ErasureId) -> Result<(), StoreError> {
        self.write_and_scrub(move |connection| drop_traces_txn(connection, id))
            .await
    }

    async fn finish(&self, id: ErasureId, now_ms: i64) -> Result<(), StoreError> {
        self.write(move |connection| finish_txn(connection, id, now_ms))
            .await
    }

    /// The orders of operators that reach everywhere.
    async fn of_operators(&self, ids: &[ErasureId]) -> Result<Vec<ErasureId>, StoreError> {
        let wanted = ids.to_vec();
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM erasures WHERE uuid = ?1
                                  AND kind <> 'message' AND reach = 'everywhere') AS is_everywhere",
            )?;
            let mut found = Vec::new();
            for id in wanted {
                if statement.query_row([id], |row| row.get("is_everywhere"))? {
                    found.push(id);
                }
            }
            Ok(found)
        })
        .await
    }

    async fn traces_of(&self, ids: &[ErasureId]) -> Result<Vec<String>, StoreError> {
        let ids = ids.to_vec();
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT text FROM erasure_traces WHERE chat_id IS NULL
                   AND erasure_id = (SELECT id FROM erasures WHERE uuid = ?1)",
            )?;
            let mut texts = Vec::new();
            for id in ids {
                let rows = statement.query_map([id], |row| row.get::<_, String>("text"))?;
                for text in rows {
                    texts.push(text?);
                }
            }
            Ok(texts)
        })
        .await
    }

    /// Removes the copies that operators' orders concern; returns them, and the copies that only orders of
    /// other people concern.
    async fn settle_copies(
        &self,
        ids: &[ErasureId],
    ) -> Result<(Vec<PathBuf>, Vec<PathBuf>), StoreError> {
        let Some(database) = self.database_path() else {
            return Ok((Vec::new(), Vec::new()));
        };
        let everywhere = self.of_operators(ids).await?;
        let removed = match everywhere.is_empty() {
            true => Vec::new(),
            false => remove_old_copies(database, &everywhere)?,
        };
        Ok((removed, old_copies(database, ids)?))
    }

    /// Waits until nothing that was erased is left in the write-ahead log.
    async fn scrub(&self) -> Result<(), StoreError> {
        let Some(database) = self.database_path() else {
            return Ok(());
        };
        let mut log = database.as_os_str().to_owned();
        log.push("-wal");
        for _ in 0..SCRUB_LOOKS {
            self.write_and_scrub(|_| Ok(())).await?;
            // The writer scrubs before it takes the next job.
            self.write(|_| Ok(())).await?;
            if std::fs::metadata(&log).map_or(0, |log| log.len()) == 0 {
                return Ok(());
            }
            tokio::time::sleep(SCRUB_LOOK).await;
        }
        Err(StoreError::Unavailable {
            what: "the write-ahead log is in use by a reader and still holds erased text; end other commands and erase again".to_owned(),
        })
    }

    async fn search_files(&self, texts: Vec<String>) -> Result<Option<Verification>, StoreError> {
        let Some(folder) = self.database_path().and_then(Path::parent) else {
            return Ok(None);
        };
        let folder = folder.to_owned();
        let count = texts.len() as u64;
        let needles = Arc::new(Needles::new(texts.into_iter().map(|text| (text, None))));
        let wanted = Arc::clone(&needles);
        let columns = self
            .read(move |connection| search_columns(connection, &wanted))
            .await?;
        let searched = tokio::task::spawn_blocking(move || search_files(&folder, &needles, count));
        let found = searched.await.map_err(|_| StoreError::Closed)??;
        Ok(Some(Verification { columns, ..found }))
    }
}

/// Does the next batch of an order, or of the oldest one.
fn advance_txn(
    connection: &Connection,
    id: Option<ErasureId>,
    sweeper: &mut Sweeper,
    now_ms: i64,
) -> Result<BatchLeft, StoreError> {
    let Some(order) = open_order(connection, id)? else {
        return Ok(BatchLeft::Nothing);
    };
    if order.entry.kind == LedgerKind::Message {
        let entry = &order.entry;
        delete_txn(
            connection,
            order.account,
            &entry.chat,
            &entry.platform_id,
            now_ms,
        )?;
        move_txn(connection, &order, ErasureCounts::default(), Some(FILES), 0)?;
        return Ok(BatchLeft::Files);
    }
    match order.phase.as_str() {
        FIRST_PHASE => blank_txn(connection, &order, now_ms),
        SETTLE => settle_txn(connection, &order, now_ms),
        FILES => Ok(BatchLeft::Files),
        _ => sweep_txn(connection, &order, sweeper, now_ms),
    }
}

fn blank_txn(connection: &Connection, order: &Order, now_ms: i64) -> Result<BatchLeft, StoreError> {
    let targets = targets(connection, &order.entry)?;
    let (counts, next) = blank_batch_txn(connection, order, &targets, now_ms)?;
    match next {
        Some(reached) => {
            reach_txn(connection, order, Some(reached))?;
            move_txn(connection, order, counts, None, 0)?;
        }
        // A merge of two chats may have moved turns meanwhile.
        None if !is_blank(connection, order, &targets)? => reach_txn(connection, order, None)?,
        None => {
            unname_txn(connection, order, &targets)?;
            reach_txn(connection, order, None)?;
            move_txn(connection, order, counts, Some(SETTLE), 0)?;
        }
    }
    Ok(BatchLeft::More)
}

/// Notes up to which turn an order is blanked.
fn reach_txn(
    connection: &Connection,
    order: &Order,
    reached: Option<Reached>,
) -> Result<(), StoreError> {
    let reached = reached.map(|at| serde_json::to_string(&at)).transpose()?;
    connection
        .prepare_cached("UPDATE erasures SET reached = ?2 WHERE id = ?1")?
        .execute((order.row, reached))?;
    Ok(())
}

/// Waits for runs that began before the order, which may still answer from what they read, so that the sweep
/// finds their answers. Runs that take long are asked to stop.
fn settle_txn(
    connection: &Connection,
    order: &Order,
    now_ms: i64,
) -> Result<BatchLeft, StoreError> {
    let until_ms = if order.cursor == 0 {
        now_ms + SETTLE_MS
    } else {
        order.cursor
    };
    let has_time = now_ms < until_ms && until_ms - now_ms <= SETTLE_MS;
    if order.entry.reach == OrderReach::Own {
        let is_unsure = stop_readers_txn(connection, order)?;
        if is_unsure && has_time {
            move_txn(connection, order, ErasureCounts::default(), None, until_ms)?;
            return Ok(BatchLeft::Runs);
        }
        let first = place_behind(order, None).map_or(FILES, SweepStage::name);
        move_txn(connection, order, ErasureCounts::default(), Some(first), 0)?;
        return Ok(BatchLeft::More);
    }
    let is_at_work: bool = connection
        .prepare_cached(concat!(
            "SELECT EXISTS (SELECT 1 FROM runs INDEXED BY runs_waiting
                            WHERE ",
            open_run!(),
            " AND state = 'leased'
                              AND stop_cause IS NULL AND first_claimed_at_ms <= ?1) AS is_at_work"
        ))?
        .query_row([until_ms - SETTLE_MS], |row| row.get("is_at_work"))?;
    if is_at_work && has_time {
        move_txn(connection, order, ErasureCounts::default(), None, until_ms)?;
        return Ok(BatchLeft::Runs);
    }
    let stopped: Vec<i64> = connection
        .prepare_cached(
            "UPDATE runs SET stop_cause = ?2, reason = ?2
             WHERE state = 'leased' AND stop_cause IS NULL AND first_claimed_at_ms <= ?1
             RETURNING id",
        )?
        .query_map((until_ms - SETTLE_MS, StopCause::Erased), |row| {
            row.get("id")
        })?
        .collect::<crate::engine::sql::Result<_>>()?;
    for run in stopped {
        forget_live_text_txn(connection, run)?;
    }
    let first = SweepStage::ALL[0].name();
    move_txn(connection, order, ErasureCounts::default(), Some(first), 0)?;
    Ok(BatchLeft::More)
}

fn sweep_txn(
    connection: &Connection,
    order: &Order,
    sweeper: &mut Sweeper,
    now_ms: i64,
) -> Result<BatchLeft, StoreError> {
    let at = SweepStage::ALL
        .iter()
        .position(|place| place.name() == order.phase);
    let Some(at) = at else {
        return Err(StoreError::Unavailable {
            what: format!(
                "an erasure is in the phase {:?}, which this build does not know",
                order.phase
            ),
        });
    };
    let (counts, next) = sweep_batch_txn(connection, order, SweepStage::ALL[at], sweeper, now_ms)?;
    match next {
        Some(cursor) => move_txn(connection, order, counts, None, cursor)?,
        None => {
            let following =
                place_behind(order, Some(SweepStage::ALL[at])).map_or(FILES, SweepStage::name);
            move_txn(connection, order, counts, Some(following), 0)?;
        }
    }
    Ok(BatchLeft::More)
}

/// Stores the progress of an order.
fn move_txn(
    connection: &Connection,
    order: &Order,
    counts: ErasureCounts,
    phase: Option<&str>,
    cursor: i64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE erasures
             SET phase = coalesce(?2, phase), cursor = ?3, turns = turns + ?4,
                 answers = answers + ?5, repeats = repeats + ?6, details = details + ?7
             WHERE id = ?1",
        )?
        .execute(params![
            order.row,
            phase,
            cursor,
            stored_count(counts.turns),
            stored_count(counts.answers),
            stored_count(counts.repeats),
            stored_count(counts.details)
        ])?;
    Ok(())
}

fn drop_traces_txn(connection: &Connection, id: ErasureId) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "DELETE FROM erasure_traces
             WHERE erasure_id = (SELECT id FROM erasures WHERE uuid = ?1)",
        )?
        .execute([id])?;
    Ok(())
}

fn finish_txn(connection: &Connection, id: ErasureId, now_ms: i64) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE erasures SET phase = 'done', finished_at_ms = ?2
             WHERE uuid = ?1 AND finished_at_ms IS NULL",
        )?
        .execute(params![id, now_ms])?;
    Ok(())
}

/// Makes ledger and database agree, and finishes orders that a kill left open or an older copy brought back,
/// before anybody reads. Returns sentences for people.
///
/// # Errors
/// Storage or the ledger file refuses: then nothing is served.
pub(crate) fn settle_at_open(
    connection: &mut rusqlite::Connection,
    database: &Path,
    now_ms: i64,
) -> Result<Vec<String>, StoreError> {
    let transaction = connection.transaction()?;
    let (added, warning) = reconcile_txn(&Connection::of(&transaction), &path_beside(database))?;
    transaction.commit()?;
    let mut report: Vec<String> = warning.into_iter().collect();
    let (mut sweeper, mut finished) = (Sweeper::default(), 0_u64);
    let mut removed = Vec::new();
    loop {
        let transaction = connection.transaction()?;
        let inside = Connection::of(&transaction);
        let left = advance_txn(&inside, None, &mut sweeper, now_ms)?;
        if left == BatchLeft::Files
            && let Some(order) = open_order(&inside, None)?
        {
            let is_an_operators = order.entry.reach == OrderReach::Everywhere;
            if is_an_operators && order.entry.kind != LedgerKind::Message {
                removed.extend(remove_old_copies(database, &[order.entry.id])?);
            }
            drop_traces_txn(&inside, order.entry.id)?;
            finish_txn(&inside, order.entry.id, now_ms)?;
            // This also makes a walk due that an earlier process had put off.
            forget_job_txn(&inside, JobKind::CleanPages, &Job::CleanPages.key())?;
            want_clean_pages_txn(&inside, now_ms)?;
            forget_job_txn(&inside, JobKind::Erase, &order.entry.id.to_string())?;
            finished += 1;
        }
        // The writer does this at the end of its own transactions, too.
        index_waiting_txn(&inside)?;
        transaction.commit()?;
        crash::point("erase.open-batch");
        if left == BatchLeft::Nothing {
            break;
        }
    }
    // Even if nothing is left to finish: a kill may have come after the last commit, but before the deleted
    // text had left the files.
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    if finished > 0 {
        report.push(format!(
            "{finished} erasures were finished ({added} of them known only to the ledger: the database is an older copy)."
        ));
    }
    for copy in removed {
        report.push(format!(
            "Removed {}: it was made before an erasure.",
            copy.display()
        ));
    }
    Ok(report)
}
