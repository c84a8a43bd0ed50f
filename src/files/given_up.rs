//! Counts files and voice notes that are given up, and keeps the reason of the last one.

use std::sync::{Arc, Mutex, PoisonError};

use vocative_core::file::FileState;

use crate::counters::{CountedEvent, Counters};

/// Counts what is given up.
#[derive(Debug, Default)]
pub struct GivenUpFiles {
    counters: Arc<Counters>,
    last: Mutex<Option<String>>,
}

impl GivenUpFiles {
    /// Counters that start at zero.
    #[must_use]
    pub fn new(counters: Arc<Counters>) -> Self {
        Self {
            counters,
            last: Mutex::default(),
        }
    }

    /// Notes a file that was given up.
    pub fn note(&self, state: FileState, reason: &str) {
        self.note_as(
            match state {
                FileState::Failed => CountedEvent::FilesFailed,
                _ => CountedEvent::FilesRefused,
            },
            reason,
        );
    }

    /// Notes a voice note that is not transcribed.
    pub fn note_unheard(&self, reason: &str) {
        self.note_as(CountedEvent::VoiceNotesUnheard, reason);
    }

    fn note_as(&self, counter: CountedEvent, reason: &str) {
        self.counters.count(counter);
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
