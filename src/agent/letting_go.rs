//! Releases a run that is not over: it is tried again, or waits for people and other agents.

use std::time::Duration;

use tracing::{debug, info, warn};
use vocative_contract::crash;

use crate::agent::failing::Again;
use crate::agent::worker::AgentWorker;
use crate::agent::working::Working;
use vocative_core::ids::{LeaseToken, RunId};
use vocative_core::run::ClaimedRun;
use vocative_store::StoreError;
use vocative_store::contract::Parked;

/// How long a run is put off when storage failed while it was worked on.
pub(super) const STORAGE_WAIT_MS: i64 = 2_000;
/// The wait between attempts to give a run back while storage refuses it.
const GIVE_BACK_AGAIN: Duration = Duration::from_millis(500);

impl Working<'_> {
    /// Releases the run until people have decided about its calls and agents have answered.
    pub(super) async fn wait_for_people(&self) -> Result<(), StoreError> {
        let (store, wake) = (&self.worker.store, &self.worker.wake);
        let (run, token) = (self.claimed.run.id, self.claimed.token);
        let now_ms = (self.worker.clock)();
        crash::point("park.before-commit");
        let parked = store.park_run(run, token, now_ms).await?;
        crash::point("park.after-commit");
        wake.posts.notify_one();
        match parked {
            Parked::Waits => {
                // The agents that it asked may begin.
                wake.runs.notify_one();
                info!(run.id = %run, "a run waits for people to decide about its tool calls, or for agents to answer");
            }
            Parked::LetGo => {}
            Parked::Decided => {
                let given = store.return_run(run, token, "people have decided", now_ms);
                given.await?;
            }
        }
        Ok(())
    }
}

/// Requeues a run that gave no answer.
pub(super) async fn requeue(
    worker: &AgentWorker,
    claimed: &ClaimedRun,
    again: Again,
    reason: &str,
) -> Result<(), StoreError> {
    let (store, now_ms) = (&worker.store, (worker.clock)());
    let (run, token) = (claimed.run.id, claimed.token);
    let Again { wait_ms, counts } = again;
    let not_before_ms = now_ms + wait_ms;
    let written = if counts {
        let attempt = claimed.attempts_used();
        warn!(run.id = %run, attempt, wait_ms, reason, "a run failed; another attempt follows");
        let requeued = store.requeue_run(run, token, not_before_ms, reason, now_ms);
        requeued.await
    } else {
        info!(run.id = %run, wait_ms, reason, "the model can't answer; the run is put off");
        let put_off = store.put_run_off(run, token, not_before_ms, reason, now_ms);
        put_off.await
    };
    // Without the lease, the worker that holds it decides.
    written.map(drop)
}

/// Gives a run back as a failed attempt, and tries again while storage refuses: nothing else gives it back.
pub(super) async fn give_back(
    worker: &AgentWorker,
    run: RunId,
    token: LeaseToken,
    wait_ms: i64,
    reason: &str,
) {
    loop {
        let now_ms = (worker.clock)();
        let not_before_ms = now_ms + wait_ms;
        let given_back = worker
            .store
            .requeue_run(run, token, not_before_ms, reason, now_ms);
        match given_back.await {
            Ok(_) => return,
            Err(cause) => {
                debug!(error = %cause, run.id = %run, "a run could not be given back; trying again");
                tokio::time::sleep(GIVE_BACK_AGAIN).await;
            }
        }
    }
}
