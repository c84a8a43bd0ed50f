//! Claims runs and works on them: one per conversation, many conversations at once.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};
use vocative_channels::channel::BoxFuture;

use crate::agent::registry::Registry;
use crate::agent::run::{LEASE_MS, work_on};
use crate::capture::inbound::Wake;
use crate::delivery::rooms::Rooms;
use crate::delivery::worker::Clock;
use crate::domain::ids::{AccountId, OwnerId, RunId};
use crate::domain::run::ClaimedRun;
use crate::store::Store;
use crate::store::contract::ClaimRequest;

/// With every wake hint lost, runs still start at this pace.
const POLL: Duration = Duration::from_millis(1_000);

/// Looks up the names that an account's newest turns lack. Bounded by the caller.
pub type LearnNames = Arc<dyn Fn(AccountId) -> BoxFuture<'static, ()> + Send + Sync>;

/// The agent worker.
pub struct Worker {
    /// Where runs are.
    pub store: Store,
    /// Who can answer where.
    pub rooms: Rooms,
    /// The agents.
    pub registry: Registry,
    /// This process.
    pub owner: OwnerId,
    /// Wake hints.
    pub wake: Wake,
    /// The time.
    pub clock: Clock,
    /// Looks up names before a prompt is made.
    pub learn_names: LearnNames,
    /// Runs at once, over all conversations.
    pub max_parallel_runs: usize,
    /// Runs to stop now.
    pub cancels: Cancels,
}

/// Runs that were asked to stop, so that a working one hears it at once. Cloning shares it.
#[derive(Clone, Default)]
pub struct Cancels {
    runs: Arc<Mutex<HashSet<RunId>>>,
    changed: Arc<Notify>,
}

impl Cancels {
    /// Asks a run to stop.
    pub fn ask(&self, run: RunId) {
        self.runs
            .lock()
            .expect("no holder of this lock panics")
            .insert(run);
        self.changed.notify_waiters();
    }

    fn is_asked(&self, run: RunId) -> bool {
        self.runs
            .lock()
            .expect("no holder of this lock panics")
            .contains(&run)
    }

    fn forget(&self, run: RunId) {
        self.runs
            .lock()
            .expect("no holder of this lock panics")
            .remove(&run);
    }
}

impl Worker {
    /// Works until `stop`; then lets claimed runs end until `drain_until`, and gives the rest back.
    pub async fn run(self, stop: CancellationToken, drain_until: CancellationToken) {
        let worker = Arc::new(self);
        let mut working = JoinSet::new();
        let mut held = Vec::new();
        loop {
            let notified = worker.wake.runs.notified();
            let is_free = working.len() < worker.max_parallel_runs && !stop.is_cancelled();
            let claimed = if is_free { worker.claim().await } else { None };
            if let Some(claimed) = claimed {
                held.push((claimed.run.id, claimed.token));
                let (working_on, id) = (Arc::clone(&worker), claimed.run.id);
                working.spawn(async move {
                    work_on(working_on, claimed).await;
                    id
                });
                continue;
            }
            if stop.is_cancelled() && working.is_empty() {
                return;
            }
            tokio::select! {
                () = notified => {}
                Some(ended) = working.join_next(), if !working.is_empty() => match ended {
                    Ok(id) => {
                        worker.cancels.forget(id);
                        held.retain(|(run, _)| *run != id);
                    }
                    // The lease runs out, and the run is claimed again as another attempt.
                    Err(cause) => error!(error = %cause, "a run panicked"),
                },
                () = tokio::time::sleep(POLL) => {}
                () = stop.cancelled(), if !stop.is_cancelled() => {}
                () = drain_until.cancelled() => break,
            }
        }
        working.shutdown().await;
        worker.give_back(&held).await;
    }

    async fn claim(&self) -> Option<ClaimedRun> {
        let accounts = self.rooms.accounts();
        if accounts.is_empty() {
            return None;
        }
        let now_ms = (self.clock)();
        let request = ClaimRequest {
            owner: self.owner,
            lease_ms: LEASE_MS,
            now_ms,
            accounts,
        };
        self.store.claim_run(request).await.unwrap_or_else(|cause| {
            warn!(error = %cause, "runs could not be claimed; trying again");
            None
        })
    }

    async fn give_back(&self, held: &[(RunId, crate::domain::ids::LeaseToken)]) {
        for (run, token) in held {
            let now_ms = (self.clock)();
            let given = self
                .store
                .return_run(*run, *token, "shutdown", now_ms)
                .await;
            if let Err(cause) = given {
                warn!(error = %cause, run.id = %run, "a run could not be given back; the next start takes it over");
            }
        }
    }

    /// Ends when that run is asked to stop.
    pub(super) async fn cancelled(&self, run: RunId) {
        loop {
            let changed = self.cancels.changed.notified();
            if self.cancels.is_asked(run) {
                return;
            }
            changed.await;
        }
    }
}
