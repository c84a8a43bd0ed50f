//! Cleaning: removes deleted text from the unused bytes of the database file, too ([`crate::engine::pages`]).
//!
//! A transaction that deletes what people said queues a job; the job walks the file, a bounded number of pages at a
//! time. Pages are read outside of any transaction; only pages with leftovers are written, a few in each commit.

use crate::capability::{Capability, MayWork};
use crate::engine::pages::{PAGES_MAX, blank_unused};
use crate::engine::sql::{Connection, OptionalExtension};
use crate::engine::untyped::Typed;
use crate::rows::jobs::{enqueue_txn, forget_job_txn};
use crate::{Store, StoreError};
use vocative_core::job::{Job, JobKind};

/// Pages that are read at once.
const READ_MAX: i64 = 1_024;
/// Pages that are written in one transaction.
const WRITTEN_MAX: usize = 256;

const PAGE_SQL: &str = "SELECT data FROM sqlite_dbpage WHERE pgno = ?1";
const WRITE_PAGE_SQL: &str = "UPDATE sqlite_dbpage SET data = ?2 WHERE pgno = ?1";

/// A walk through the pages of the database file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageWalk {
    /// Pages that were looked at.
    pub pages: u64,
    /// Pages of them whose unused bytes held leftovers, which were overwritten.
    pub cleaned: u64,
}

impl<C: Capability> Store<C> {
    /// Runs a job that may delete what a person said: if it changes anything, the write-ahead log is emptied and a walk
    /// through the file is queued.
    pub(crate) fn write_and_clean<T: Send + 'static>(
        &self,
        now_ms: i64,
        job: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Typed<'_, T> {
        self.write_and_scrub(move |connection| {
            let before = connection.total_changes();
            let done = job(connection)?;
            if connection.total_changes() != before {
                want_clean_pages_txn(connection, now_ms)?;
            }
            Ok(done)
        })
    }
}

impl<C: MayWork> Store<C> {
    /// Cleans the next pages. Returns `false` once all were looked at: then nothing that was deleted before the walk
    /// began is left in the file.
    ///
    /// # Errors
    /// Storage refuses, or this build's SQLite can't reach pages.
    pub async fn clean_pages(&self, walk: &mut PageWalk) -> Result<bool, StoreError> {
        let from = i64::try_from(walk.pages).unwrap_or(i64::MAX - READ_MAX) + 1;
        let (read, unclean) = self
            .read(move |connection| unclean_pages(connection, from))
            .await?;
        walk.pages += read;
        for pages in unclean.chunks(WRITTEN_MAX) {
            let pages = pages.to_vec();
            walk.cleaned += self
                .write(move |connection| clean_txn(connection, &pages))
                .await?;
        }
        if read > 0 {
            return Ok(true);
        }
        self.write_and_scrub(|_| Ok(())).await?;
        Ok(false)
    }

    /// Walks through the whole file, in place of the walk that is queued: that one would find nothing.
    pub(crate) async fn clean_all_pages(&self) -> Result<PageWalk, StoreError> {
        let key = Job::CleanPages.key();
        self.write(move |connection| forget_job_txn(connection, JobKind::CleanPages, &key))
            .await?;
        let mut walk = PageWalk::default();
        while self.clean_pages(&mut walk).await? {
            tokio::task::yield_now().await;
        }
        Ok(walk)
    }
}

/// Queues a walk through the file.
pub(crate) fn want_clean_pages_txn(connection: &Connection, now_ms: i64) -> Result<(), StoreError> {
    enqueue_txn(connection, &Job::CleanPages, None, now_ms)
}

/// The number of pages from a page on, up to a limit, and which of them have leftovers in their unused bytes.
fn unclean_pages(connection: &Connection, from: i64) -> Result<(u64, Vec<i64>), StoreError> {
    let pragma = |name: &str| -> Result<i64, StoreError> {
        let mut statement = connection.prepare_cached(&format!("PRAGMA {name}"))?;
        Ok(statement.query_row([], |row| row.get(name))?)
    };
    let last = pragma("page_count")?;
    if last > PAGES_MAX || pragma("auto_vacuum")? != 0 {
        return Err(StoreError::Unavailable {
            what: format!(
                "the unused bytes of the database file can't be overwritten, as it has more than {PAGES_MAX} pages or \
                 auto_vacuum is on: stop the daemon and run `PRAGMA auto_vacuum = 0; VACUUM` on it with sqlite3"
            ),
        });
    }
    let mut statement = connection.prepare_cached(PAGE_SQL)?;
    let (mut read, mut unclean) = (0, Vec::new());
    for number in from..=last.min(from.saturating_add(READ_MAX - 1)) {
        let page: Option<Vec<u8>> = statement
            .query_row([number], |row| row.get("data"))
            .optional()?;
        read += 1;
        if page.is_some_and(|mut page| blank_unused(&mut page, number)) {
            unclean.push(number);
        }
    }
    Ok((read, unclean))
}

/// Cleans pages as they are now; returns how many had leftovers.
fn clean_txn(connection: &Connection, numbers: &[i64]) -> Result<u64, StoreError> {
    let mut cleaned = 0;
    for number in numbers {
        let page: Option<Vec<u8>> = connection
            .prepare_cached(PAGE_SQL)?
            .query_row([number], |row| row.get("data"))
            .optional()?;
        if let Some(mut page) = page
            && blank_unused(&mut page, *number)
        {
            connection
                .prepare_cached(WRITE_PAGE_SQL)?
                .execute((number, page))?;
            cleaned += 1;
        }
    }
    Ok(cleaned)
}
