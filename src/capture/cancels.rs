//! Runs that were asked to stop, so that one that is being worked on hears it at once.
//!
//! A hint only: the request to stop is in the store, and the worker of a run reads it with every heartbeat and at the
//! run's end.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use vocative_core::ids::RunId;

/// The most requests to stop that are remembered; a run that is not being worked on is never looked up here.
const REMEMBERED_MAX: usize = 1_024;

/// Runs that were asked to stop. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub struct Cancels {
    runs: Arc<Mutex<HashSet<RunId>>>,
    changed: Arc<Notify>,
}

impl Cancels {
    /// Asks a run to stop.
    pub fn ask(&self, run: RunId) {
        let mut runs = self.runs.lock().expect("no holder of this lock panics");
        if runs.len() >= REMEMBERED_MAX {
            runs.clear();
        }
        runs.insert(run);
        drop(runs);
        self.changed.notify_waiters();
    }

    /// Forgets a run that ended.
    pub fn forget(&self, run: RunId) {
        self.runs
            .lock()
            .expect("no holder of this lock panics")
            .remove(&run);
    }

    /// Ends when that run is asked to stop.
    pub async fn asked(&self, run: RunId) {
        loop {
            let changed = self.changed.notified();
            if self.is_asked(run) {
                return;
            }
            changed.await;
        }
    }

    fn is_asked(&self, run: RunId) -> bool {
        self.runs
            .lock()
            .expect("no holder of this lock panics")
            .contains(&run)
    }
}
