//! Keeps a run's lease while work is done for it, and shows people that it is being worked on.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::warn;

use crate::agent::clocks::{HEARTBEAT, LEASE_MS};
use crate::agent::registry::AgentSpec;
use crate::agent::working::{RunEnd, UnderLease, Working};
use crate::delivery::live::{self, LiveDesk, LivePlace, LiveReply, SETTLE_MS};
use vocative_core::running::budget::RunUsedUp;
use vocative_store::StoreError;
use vocative_store::contract::RunLease;

impl Working<'_> {
    /// Does work for a run while keeping its lease, showing people that it works, listening for a "stop" and watching
    /// the deadline.
    pub(super) async fn hold<T>(
        &self,
        spec: &AgentSpec,
        begun: Instant,
        signs: impl Future<Output = ()>,
        working: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<UnderLease<T>, StoreError> {
        let (worker, claimed) = (self.worker, self.claimed);
        let longest = spec.settings().run_deadline_s;
        let deadline = tokio::time::sleep_until(begun + longest.duration());
        // The first beat is one interval away: a timer takes a millisecond even to say that it is due.
        let mut heartbeat = tokio::time::interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
        let budget = spec.budget;
        let used_up = async {
            match budget.left_ms(self.clock.worked_ms()) {
                Some(left_ms) => tokio::time::sleep(Duration::from_millis(left_ms)).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(deadline, used_up, working, signs);
        loop {
            tokio::select! {
                // In this order: an answer that is ready at once needs no typing sign.
                biased;
                done = &mut working => return Ok(UnderLease::Done(done?)),
                () = &mut deadline => return Ok(UnderLease::BrokenOff(RunEnd::TooLong { longest })),
                () = &mut used_up => {
                    let used_up = RunUsedUp::Time { max_ms: budget.worked_ms };
                    return Ok(UnderLease::BrokenOff(RunEnd::RunUsedUp(used_up)));
                }
                _ = heartbeat.tick() => {
                    self.keep_worked_time(spec).await;
                    let until_ms = (worker.clock)() + LEASE_MS;
                    match worker.store.extend_run(claimed.run.id, claimed.token, until_ms).await {
                        Ok(RunLease::Held) => {}
                        Ok(RunLease::CancelRequested) => return Ok(UnderLease::BrokenOff(RunEnd::Cancelled)),
                        Ok(RunLease::Lost) => return Ok(UnderLease::BrokenOff(RunEnd::LeaseLost)),
                        // The model's answer is worth waiting for; the next beat tries again.
                        Err(cause) => {
                            warn!(error = %cause, run.id = %claimed.run.id, "a lease could not be extended");
                        }
                    }
                }
                // Only a hint: the heartbeat reads whether the run was cancelled. A run that an edit brought back
                // must not stop.
                () = worker.wake.cancels.asked(claimed.run.id) => {
                    worker.wake.cancels.forget(claimed.run.id);
                    heartbeat.reset_immediately();
                }
                () = &mut signs => {}
            }
        }
    }

    /// Does work for a run whose model has answered, and keeps its lease meanwhile.
    pub(super) async fn keeping_lease<T>(&self, work: impl Future<Output = T>) -> T {
        let mut beat = tokio::time::interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                _ = beat.tick() => {
                    let (run, token) = (self.claimed.run.id, self.claimed.token);
                    let until_ms = (self.worker.clock)() + LEASE_MS;
                    // A lease that is lost is noticed by the commit.
                    if let Err(cause) = self.worker.store.extend_run(run, token, until_ms).await {
                        warn!(error = %cause, run.id = %run, "a lease could not be extended");
                    }
                }
            }
        }
    }

    /// Stores how long the run was worked on, if that time is limited. After a kill, the time since the last
    /// heartbeat is lost.
    pub(super) async fn keep_worked_time(&self, spec: &AgentSpec) {
        if spec.budget.worked_ms == 0 {
            return;
        }
        let (run, token) = (self.claimed.run.id, self.claimed.token);
        let kept = self
            .worker
            .store
            .keep_worked_time(run, token, self.clock.worked_ms());
        if let Err(cause) = kept.await {
            warn!(error = %cause, run.id = %run, "how long a run was worked on could not be kept");
        }
    }

    /// Shows "typing" again and again, until the answer itself can be seen; never returns.
    pub(super) async fn show_working(&self, live: Option<&LiveReply>) {
        let lasts_ms = self.room.capabilities.working_sign_ms;
        if lasts_ms == 0 {
            return std::future::pending().await;
        }
        // A second early, so that the sign does not flicker.
        let again = Duration::from_millis(lasts_ms.saturating_sub(1_000).max(1_000));
        loop {
            if !live.is_some_and(LiveReply::is_visible) {
                self.room.signs.show_working(&self.route.target).await;
            }
            tokio::time::sleep(again).await;
        }
    }

    /// Begins to show the answer while it is written, if that is wanted.
    pub(super) fn begin_live(&self, spec: &AgentSpec) -> Option<LiveReply> {
        let (worker, claimed) = (self.worker, self.claimed);
        let (room, route) = (self.room, self.route);
        // Not shown: an answer that replaces an earlier one (that one stands until then), an answer that hooks may
        // still change, and an answer that another run asked for.
        let is_shown = self.task.is_none() && !spec.holds_answers_back();
        if route.replaces_answer || !is_shown {
            return None;
        }
        // In a network, only the end decides which agent's words are the answer.
        if self.seat.is_some() {
            return None;
        }
        let policy = &room.delivery;
        let plan = live::plan(
            policy.live,
            policy.on_unknown,
            &room.capabilities,
            LivePlace {
                kind: route.chat_kind,
                is_thread: route.target.thread.is_some(),
            },
        )?;
        let desk = LiveDesk {
            store: worker.store.clone(),
            renderer: Arc::clone(&room.renderer),
            signs: Arc::clone(&room.signs),
            run: claimed.run.id,
            token: claimed.token,
            target: route.target.clone(),
            person: route.person.clone(),
            lead: self.lead(spec),
            posts: Arc::clone(&worker.wake.posts),
            posted: Arc::clone(&worker.wake.posted),
            clock: Arc::clone(&worker.clock),
        };
        Some(LiveReply::begin(desk, plan))
    }
}

/// Ends the live view of an answer; returns how long an edit of it may still be on its way, in milliseconds.
pub(super) async fn end_of(live: Option<LiveReply>) -> i64 {
    match live {
        Some(live) => live.end().await,
        None => SETTLE_MS,
    }
}
