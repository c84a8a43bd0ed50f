//! Claims runs and works on them: one per conversation, many conversations at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span, debug, debug_span, error, warn};
use vocative_channels::channel::BoxFuture;
use vocative_channels::crash;

use crate::agent::ending::retry_wait_ms;
use crate::agent::registry::Registry;
use crate::agent::run::{LEASE_MS, work_on};
use crate::capture::wake::Wake;
use crate::delivery::rooms::Rooms;
use crate::delivery::worker::{Clock, pause_until};
use crate::domain::ids::{AccountId, LeaseToken, OwnerId, RunId};
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
}

/// What every line of a run's work carries when debug lines are wanted; says also that it was claimed.
fn span_of(claimed: &ClaimedRun) -> Span {
    let run = &claimed.run;
    let span = debug_span!("run", conversation.id = %run.conversation, agent = %run.agent);
    let _entered = span.clone().entered();
    debug!(
        run.id = %run.id, attempt = run.attempt, questions = run.triggers.len(),
        as_of_seq = claimed.as_of_seq.0, "a run was claimed"
    );
    span
}

/// A run that is being worked on.
#[derive(Clone, Copy)]
struct Lease {
    run: RunId,
    token: LeaseToken,
    attempt: u32,
}

impl Worker {
    /// Works until `stop`; then lets claimed runs end until `drain_until`, and gives the rest back.
    pub async fn run(self, stop: CancellationToken, drain_until: CancellationToken) {
        let worker = Arc::new(self);
        let mut working = JoinSet::new();
        let mut held = HashMap::new();
        loop {
            let notified = worker.wake.runs.notified();
            let now_ms = (worker.clock)();
            let is_free = working.len() < worker.max_parallel_runs && !stop.is_cancelled();
            let claimed = if is_free {
                worker.claim(now_ms).await
            } else {
                None
            };
            if let Some(claimed) = claimed {
                crash::point("run.claimed");
                let lease = Lease {
                    run: claimed.run.id,
                    token: claimed.token,
                    attempt: claimed.run.attempt,
                };
                let span = span_of(&claimed);
                let task = working.spawn(work_on(Arc::clone(&worker), claimed).instrument(span));
                held.insert(task.id(), lease);
                continue;
            }
            if stop.is_cancelled() && working.is_empty() {
                return;
            }
            let due_ms = worker.next_due_ms(now_ms).await;
            tokio::select! {
                // In this order, so that a simulation can be repeated; whichever it is, all is looked at.
                biased;
                Some(ended) = working.join_next_with_id(), if !working.is_empty() => {
                    let task = ended.as_ref().map_or_else(JoinError::id, |(task, ())| *task);
                    if let Some(lease) = held.remove(&task) {
                        worker.ended(lease, ended.err()).await;
                    }
                }
                () = notified => {}
                () = tokio::time::sleep(pause_until(due_ms, now_ms, POLL)) => {}
                () = stop.cancelled(), if !stop.is_cancelled() => {}
                () = drain_until.cancelled() => break,
            }
        }
        working.shutdown().await;
        let mut held: Vec<Lease> = held.into_values().collect();
        held.sort_unstable_by_key(|lease| lease.run);
        worker.give_back(held).await;
    }

    /// A run's work is over. One that panicked is given back as another failed attempt.
    async fn ended(&self, lease: Lease, failure: Option<JoinError>) {
        self.wake.cancels.forget(lease.run);
        if let Some(cause) = failure {
            error!(error = %cause, run.id = %lease.run, "a run panicked");
            self.give_back_failed(lease).await;
        }
    }

    /// When the next run comes due after now. One that is due and was not claimed waits for
    /// something else than time.
    async fn next_due_ms(&self, now_ms: i64) -> Option<i64> {
        let due_ms = self.store.next_run_due_ms().await.unwrap_or(None);
        due_ms.filter(|due_ms| *due_ms > now_ms)
    }

    async fn claim(&self, now_ms: i64) -> Option<ClaimedRun> {
        let accounts = self.rooms.accounts();
        if accounts.is_empty() {
            return None;
        }
        let request = ClaimRequest {
            owner: self.owner,
            lease_ms: crash::lease_ms(LEASE_MS),
            now_ms,
            accounts,
        };
        self.store.claim_run(request).await.unwrap_or_else(|cause| {
            warn!(error = %cause, "runs could not be claimed; trying again");
            None
        })
    }

    /// A run that panicked is given back as a failed attempt.
    async fn give_back_failed(&self, lease: Lease) {
        let now_ms = (self.clock)();
        let not_before_ms = now_ms + retry_wait_ms(lease.attempt);
        let given = self
            .store
            .requeue_run(lease.run, lease.token, not_before_ms, "it panicked", now_ms)
            .await;
        if let Err(cause) = given {
            warn!(error = %cause, run.id = %lease.run, "a run could not be given back; its lease runs out");
        }
    }

    async fn give_back(&self, held: impl IntoIterator<Item = Lease>) {
        for Lease { run, token, .. } in held {
            let now_ms = (self.clock)();
            let given = self.store.return_run(run, token, "shutdown", now_ms).await;
            if let Err(cause) = given {
                warn!(error = %cause, run.id = %run, "a run could not be given back; the next start takes it over");
            }
        }
    }
}
