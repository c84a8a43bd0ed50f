//! Counts the work that a store has done since it was opened, so that the cost of a change can be measured.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::contract::StoreWork;

thread_local! {
    /// Statements that this thread has run, on any store.
    static STATEMENTS: Cell<u64> = const { Cell::new(0) };
}

/// The counters of a store, which its writer and its readers share.
#[derive(Debug, Default)]
pub(crate) struct WorkCounters {
    reads: AtomicU64,
    writes: AtomicU64,
    statements: AtomicU64,
    rows: AtomicU64,
    commits: AtomicU64,
    syncs: AtomicU64,
}

/// Counts a statement of this thread.
pub(crate) fn note_statement() {
    STATEMENTS.with(|count| count.set(count.get() + 1));
}

impl WorkCounters {
    /// Runs a read on this thread, and counts it.
    pub(crate) fn reading<T>(&self, read: impl FnOnce() -> T) -> T {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.counting_statements(read)
    }

    /// Runs a batch of writes on this thread, and counts them.
    pub(crate) fn writing<T>(&self, writes: usize, run: impl FnOnce() -> T) -> T {
        self.writes.fetch_add(writes as u64, Ordering::Relaxed);
        self.counting_statements(run)
    }

    /// Counts a commit, the rows that it changed, and whether a write waited for the disk.
    pub(crate) fn note_commit(&self, rows: u64, is_synced: bool) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.syncs
            .fetch_add(u64::from(is_synced), Ordering::Relaxed);
    }

    /// What was counted so far.
    pub(crate) fn read(&self) -> StoreWork {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        StoreWork {
            reads: of(&self.reads),
            writes: of(&self.writes),
            statements: of(&self.statements),
            rows: of(&self.rows),
            commits: of(&self.commits),
            syncs: of(&self.syncs),
        }
    }

    fn counting_statements<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = STATEMENTS.get();
        let result = work();
        self.statements
            .fetch_add(STATEMENTS.get() - before, Ordering::Relaxed);
        result
    }
}
