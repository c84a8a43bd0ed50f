//! Claims runs and works on them: one per conversation, many conversations at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span, debug, debug_span, error, info, warn};
use vocative_contract::crash;

use crate::agent::clocks::{Age, LEASE_MS};
use crate::agent::failing::retry_wait_ms;
use crate::agent::letting_go::give_back;
use crate::agent::models::ModelSlot;
use crate::agent::registry::{AgentSpec, ModelUse};
use crate::agent::run::work_on;
use crate::agent::worker::AgentWorker;
use crate::agent::working::Claim;
use crate::delivery::worker::pause_until;
use vocative_core::ids::{LeaseToken, RunId};
use vocative_core::run::ClaimedRun;
use vocative_core::slots::{Asker, Slots};
use vocative_store::contract::ClaimRequest;

/// How often due runs are looked for without a wake hint.
const POLL: Duration = Duration::from_millis(1_000);
/// How often the run clock is stored.
const CLOCK_STORED_EVERY_MS: i64 = 5_000;

fn millis(ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}

/// The span of a run's log lines when debug lines are wanted; also logs that the run was claimed.
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
    asker: Asker,
}

/// The run clock, which counts while a run is unfinished: what is stored, and how long ago.
struct RunClock {
    stored_ms: i64,
    stored_at: Instant,
}

impl RunClock {
    fn elapsed_ms(&self) -> i64 {
        i64::try_from(self.stored_at.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    fn now_ms(&self) -> i64 {
        self.stored_ms + self.elapsed_ms()
    }
}

impl AgentWorker {
    /// Works until `stop`; then lets claimed runs end until `drain_until`, and gives the rest back.
    pub async fn run(self, stop: CancellationToken, drain_until: CancellationToken) {
        let worker = Arc::new(self);
        let mut working = JoinSet::new();
        let mut held = HashMap::new();
        let mut slots = Slots::default();
        let mut run_clock = worker.run_clock().await;
        worker.models.load().await;
        loop {
            let notified = worker.wake.runs.notified();
            let now_ms = (worker.clock)();
            let expires_at_ms = worker.expire_approvals(now_ms).await;
            slots.run_clock_ms = run_clock.now_ms();
            let is_free = working.len() < worker.max_parallel_runs && !stop.is_cancelled();
            let claimed = if is_free {
                worker.claim(now_ms, &mut slots).await
            } else {
                None
            };
            if let Some(claimed) = claimed {
                crash::point("run.claimed");
                let lease = Lease {
                    run: claimed.run.id,
                    token: claimed.token,
                    attempt: claimed.attempts_used(),
                    asker: claimed.asker,
                };
                slots.begin(lease.asker);
                let span = span_of(&claimed);
                let place = worker.place_at_model(&claimed);
                let age_ms = slots.run_clock_ms - claimed.asked_at_run_ms;
                let claim = Claim {
                    run: claimed,
                    place,
                    age: Age::at_claim(age_ms),
                };
                let task = working.spawn(work_on(Arc::clone(&worker), claim).instrument(span));
                held.insert(task.id(), lease);
                continue;
            }
            if stop.is_cancelled() && working.is_empty() {
                return;
            }
            let due_ms = worker.store.next_run_due_ms(now_ms).await.unwrap_or(None);
            worker
                .keep_run_clock(&mut run_clock, due_ms.is_some())
                .await;
            // A run that is due and was not claimed waits for something other than time.
            let due_ms = due_ms.filter(|due_ms| *due_ms > now_ms);
            let due_ms = due_ms.into_iter().chain(expires_at_ms).min();
            tokio::select! {
                // In this order, so that a simulation can be repeated; whichever branch is taken, the loop checks
                // everything.
                biased;
                Some(ended) = working.join_next_with_id(), if !working.is_empty() => {
                    let task = ended.as_ref().map_or_else(JoinError::id, |(task, ())| *task);
                    if let Some(lease) = held.remove(&task) {
                        slots.end(lease.asker);
                        worker.wake.cancels.forget(lease.run);
                        if let Err(cause) = ended {
                            error!(error = %cause, run.id = %lease.run, "a run panicked");
                            let worker = Arc::clone(&worker);
                            working.spawn(async move { worker.give_back_failed(lease).await });
                        }
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

    /// Ends approvals that have expired; returns when the next one expires.
    async fn expire_approvals(&self, now_ms: i64) -> Option<i64> {
        let next = self.store.next_expiry_ms(now_ms).await;
        let next = next.unwrap_or_default()?;
        if next > now_ms {
            return Some(next);
        }
        match self.store.expire_approvals(now_ms).await {
            Ok(0) => {}
            Ok(expired) => {
                info!(expired, "nobody decided in time about calls of tools");
                self.wake.posts.notify_one();
            }
            Err(cause) => warn!(error = %cause, "approvals could not be ended; trying again"),
        }
        None
    }

    async fn run_clock(&self) -> RunClock {
        let stored_ms = self.store.run_clock_ms().await.unwrap_or_else(|cause| {
            warn!(error = %cause, "the ages of questions could not be read; they count from now on");
            0
        });
        RunClock {
            stored_ms,
            stored_at: Instant::now(),
        }
    }

    /// Stores the run clock now and then; stops it while nothing is unfinished.
    async fn keep_run_clock(&self, run_clock: &mut RunClock, is_needed: bool) {
        let elapsed_ms = run_clock.elapsed_ms();
        if !is_needed {
            run_clock.stored_at = Instant::now();
        } else if elapsed_ms >= CLOCK_STORED_EVERY_MS {
            match self.store.advance_run_clock(elapsed_ms).await {
                Ok(()) => {
                    run_clock.stored_ms += elapsed_ms;
                    run_clock.stored_at += millis(elapsed_ms);
                }
                Err(cause) => warn!(error = %cause, "the ages of questions could not be stored"),
            }
        }
    }

    /// The run's place: at the first model of its agent that does not rest, at the agent's own model if all do;
    /// `None` if the agent is not configured. A network's run gets a place at a model of another of its agents if the
    /// default agent's models take no run now.
    fn place_at_model(&self, claimed: &ClaimedRun) -> Option<ModelSlot> {
        let spec = self.spec_of(claimed)?;
        let open = self.open_model(&spec);
        let awake = || self.models.first_awake(spec.chain()).cloned();
        let model = open.or_else(awake);
        let model = model.as_ref().unwrap_or(&spec.model_use);
        Some(self.models.begin(model, claimed.run.id))
    }

    /// A model of the agent that may take one more run now.
    fn open_model(&self, spec: &AgentSpec) -> Option<ModelUse> {
        let open_of = |spec: &AgentSpec| {
            let awake = self.models.first_awake(spec.chain());
            awake.filter(|model| self.models.is_open(model)).cloned()
        };
        open_of(spec).or_else(|| {
            let of = spec.network.as_ref()?;
            let members = of.network.callable();
            let mut members = members
                .into_iter()
                .filter_map(|agent| self.registry.get(agent));
            members.find_map(|member| open_of(&member)).or_else(|| {
                let router = &of.router.model_use;
                self.models.is_open(router).then(|| router.clone())
            })
        })
    }

    async fn claim(&self, now_ms: i64, slots: &mut Slots) -> Option<ClaimedRun> {
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
        let agents = self.registry.all();
        let closed_ms = |spec: &Arc<AgentSpec>| {
            let is_open = self.open_model(spec).is_some();
            (!is_open).then_some(spec.answer_within_ms)
        };
        let closed = agents.iter();
        slots.closed = closed
            .filter_map(|spec| Some((spec.name.clone(), closed_ms(spec)?)))
            .collect();
        let choices = agents.iter().flat_map(|spec| &spec.choices);
        slots.choices = choices
            .map(|(model, spec)| ((spec.name.clone(), model.clone()), closed_ms(spec)))
            .collect();
        let claimed = self.store.claim_run(request, slots.clone()).await;
        claimed.unwrap_or_else(|cause| {
            warn!(error = %cause, "runs could not be claimed; trying again");
            None
        })
    }

    /// A run that panicked is given back as a failed attempt.
    async fn give_back_failed(&self, lease: Lease) {
        let Lease {
            run,
            token,
            attempt,
            ..
        } = lease;
        give_back(self, run, token, retry_wait_ms(attempt), "it panicked").await;
        self.wake.runs.notify_one();
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
