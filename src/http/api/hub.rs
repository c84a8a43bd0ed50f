//! From the store to all who follow: one reader of the store for any number of them.
//!
//! A commit wakes the hub; it reads the events after the last one it passed on, once, and hands each
//! to the followers of its run or its conversation. The hub waits for no follower: one that is [`BEHIND_MAX`]
//! events behind is cut off, and resumes from the store when it comes back. Without followers
//! nothing is read.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use tokio::sync::{Notify, broadcast};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::epoch::Epoch;
use super::frame;
use vocative_core::ids::EventId;
use vocative_core::run_event::{Happening, RunEvent};
use vocative_store::contract::EventScope;
use vocative_store::{Reader, StoreError};

/// A follower that is this many events behind is cut off.
const BEHIND_MAX: usize = 512;
/// Events of one read.
const PAGE: usize = 256;
/// The pause between two reads, however many commits there are.
const PACE: Duration = Duration::from_millis(10);

/// An event on its way.
#[derive(Debug)]
pub(super) struct Passed {
    pub(super) id: EventId,
    /// Whether its run has ended with it.
    pub(super) is_end: bool,
    pub(super) frame: Bytes,
    pub(super) event: RunEvent,
}

/// Passes events on.
pub(super) struct Hub {
    store: Reader,
    epoch: Epoch,
    state: Mutex<HubState>,
    nudge: Notify,
}

#[derive(Default)]
struct HubState {
    followed: HashMap<EventScope, broadcast::Sender<Arc<Passed>>>,
    /// The last event that was passed on; `None` without followers, or before one has said where to begin.
    through: Option<EventId>,
}

impl Hub {
    pub(super) fn new(store: Reader, epoch: Epoch) -> Self {
        Self {
            store,
            epoch,
            state: Mutex::default(),
            nudge: Notify::new(),
        }
    }

    /// Follows a run or a conversation. There is no gap between what is read from the store afterwards and
    /// what is received here.
    pub(super) async fn follow(
        &self,
        scope: EventScope,
    ) -> Result<broadcast::Receiver<Arc<Passed>>, StoreError> {
        let receiver = self
            .state()
            .followed
            .entry(scope)
            .or_insert_with(|| broadcast::channel(BEHIND_MAX).0)
            .subscribe();
        let newest = self.store.newest_event().await?;
        self.state().through.get_or_insert(newest);
        // A commit between these two steps has not been passed on yet.
        self.nudge.notify_one();
        Ok(receiver)
    }

    /// Passes events on until cancelled.
    pub(super) async fn run(self: Arc<Self>, cancel: CancellationToken) {
        let Some(mut commits) = self.store.commits_seen() else {
            return;
        };
        loop {
            tokio::select! {
                changed = commits.changed() => if changed.is_err() { return },
                () = self.nudge.notified() => {}
                () = cancel.cancelled() => return,
            }
            if let Err(cause) = self.pass_on().await {
                debug!(error = %cause, "events could not be read; trying again with the next commit");
            }
            tokio::time::sleep(PACE).await;
        }
    }

    async fn pass_on(&self) -> Result<(), StoreError> {
        while let Some(through) = self.due() {
            let page = self
                .store
                .run_events_after(EventScope::All, through, PAGE)
                .await?;
            let is_last = page.len() < PAGE;
            let mut state = self.state();
            for event in page {
                let Some(id) = event.id else { continue };
                state.through = Some(id);
                let scopes = [
                    EventScope::Run(event.run),
                    EventScope::Conversation(event.conversation),
                ];
                let followed: Vec<_> = scopes
                    .iter()
                    .filter_map(|scope| state.followed.get(scope))
                    .collect();
                if followed.is_empty() {
                    continue;
                }
                let passed = Arc::new(Passed {
                    id,
                    is_end: matches!(event.what, Happening::Ended(_)),
                    frame: frame::event(&event, self.epoch),
                    event,
                });
                for sender in followed {
                    // Sending fails if the last follower has just left.
                    let _ = sender.send(Arc::clone(&passed));
                }
            }
            if is_last {
                return Ok(());
            }
        }
        Ok(())
    }

    /// After which event to read; `None` if nobody follows.
    fn due(&self) -> Option<EventId> {
        let mut state = self.state();
        state
            .followed
            .retain(|_, sender| sender.receiver_count() > 0);
        if state.followed.is_empty() {
            // The next follower says where to begin.
            state.through = None;
        }
        state.through
    }

    fn state(&self) -> MutexGuard<'_, HubState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
