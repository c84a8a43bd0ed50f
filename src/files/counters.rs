//! What became of files since the start, for `status` and metrics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use vocative_core::file::FileState;

/// Counts since the start.
#[derive(Debug, Default)]
pub struct FileCounters {
    /// Files fetched.
    pub fetched: AtomicU64,
    /// Files that are only named: not wanted, too large, refused or gone.
    pub refused: AtomicU64,
    /// Files given up after many attempts.
    pub failed: AtomicU64,
    /// Bytes of files that made room for newer ones.
    pub evicted_bytes: AtomicU64,
    /// Voice notes written down.
    pub heard: AtomicU64,
    /// Voice notes that never will be.
    pub unheard: AtomicU64,
    last: Mutex<Option<String>>,
}

impl FileCounters {
    /// Notes a file that was given up.
    pub fn note(&self, state: FileState, reason: &str) {
        match state {
            FileState::Failed => &self.failed,
            _ => &self.refused,
        }
        .fetch_add(1, Ordering::Relaxed);
        self.note_reason(reason);
    }

    /// Notes a voice note that is not written down.
    pub fn note_unheard(&self, reason: &str) {
        self.unheard.fetch_add(1, Ordering::Relaxed);
        self.note_reason(reason);
    }

    fn note_reason(&self, reason: &str) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some(reason.to_owned());
    }

    /// Why the last one was given up.
    #[must_use]
    pub fn last_reason(&self) -> Option<String> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.clone()
    }
}
