//! The loop: claims due jobs, has them done, and stores the results.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, Id, JoinSet};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};
use vocative_contract::crash;

use crate::capture::clock::Clock;
use crate::delivery::worker::pause_until;
use vocative_core::ids::{AccountId, JobId, LeaseToken, OwnerId};
use vocative_core::job::{ClaimedJob, Job, JobKind};
use vocative_core::queueing::{JobChange, Outcome, Shares, after};
use vocative_store::contract::{JobClaim, JobsDue};
use vocative_store::{Store, StoreError, Working};

/// How often jobs are looked for without a wake hint.
const POLL: Duration = Duration::from_millis(1_000);
/// How long a lease lasts, in milliseconds, and how often it is extended.
const LEASE_MS: i64 = 60_000;
const EXTEND: Duration = Duration::from_secs(20);
/// The wait after the store refused something, and in milliseconds that of a job that it refused.
const STORE_WAIT: Duration = Duration::from_secs(5);
const STORE_WAIT_MS: i64 = 5_000;

/// Does the jobs: the loop itself does not know what they do.
pub trait JobHandler: Send + Sync + 'static {
    /// Preparations, once before the first job.
    fn prepare(&self) -> impl Future<Output = ()> + Send;

    /// Queues jobs that no event asks for, because only the stored data shows them. Called before each claim, so it
    /// only reads unless there is something to do.
    fn look(&self) -> impl Future<Output = ()> + Send;

    /// The most jobs of a kind that may be done at once.
    fn slots(&self, kind: JobKind, now_ms: i64) -> impl Future<Output = usize> + Send;

    /// Does a job. It may be done again: the process may have ended before its row went.
    ///
    /// # Errors
    /// Storage refuses, or a row can't be decoded.
    fn work(
        &self,
        claimed: &ClaimedJob,
    ) -> impl Future<Output = Result<Outcome, StoreError>> + Send;

    /// A job is dead after its last attempt.
    fn note_dead(&self, job: &Job, cause: &str);
}

/// The worker.
pub struct JobWorker<W> {
    /// The store with the jobs.
    pub store: Store<Working>,
    /// The accounts whose channels are connected.
    pub connected: Arc<dyn Fn() -> Vec<AccountId> + Send + Sync>,
    /// The handlers that do the work.
    pub handlers: W,
    /// The owner of the leases.
    pub owner: OwnerId,
    /// Notified when there may be a job.
    pub wake: Arc<Notify>,
    /// The time.
    pub clock: Clock,
}

/// The jobs that are being done.
#[derive(Default)]
struct AtWork {
    tasks: JoinSet<()>,
    jobs: HashMap<Id, (ClaimedJob, AbortHandle)>,
    shares: Shares,
}

impl AtWork {
    fn leases(&self) -> Vec<(JobId, LeaseToken)> {
        let jobs = self.jobs.values();
        jobs.map(|(job, _)| (job.id, job.token)).collect()
    }

    fn begin(&mut self, job: ClaimedJob, doing: impl Future<Output = ()> + Send + 'static) {
        self.shares.begin(job.job.kind(), job.account);
        let task = self.tasks.spawn(doing);
        self.jobs.insert(task.id(), (job, task));
    }

    fn end(&mut self, task: Id) {
        if let Some((job, _)) = self.jobs.remove(&task) {
            self.shares.end(job.job.kind(), job.account);
        }
    }
}

impl<W: JobHandler> JobWorker<W> {
    /// Works until `stop`. Jobs in work are then given back, and done after the next start.
    pub async fn run(self, stop: CancellationToken) {
        let worker = Arc::new(self);
        let mut at_work = AtWork::default();
        let mut extend = tokio::time::interval(EXTEND);
        extend.set_missed_tick_behavior(MissedTickBehavior::Delay);
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = worker.handlers.prepare() => {}
        }
        loop {
            let notified = worker.wake.notified();
            let pause = worker.begin_due(&mut at_work).await;
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(ended) = at_work.tasks.join_next_with_id(), if !at_work.tasks.is_empty() => {
                    at_work.end(ended.map_or_else(|cause| cause.id(), |(task, ())| task));
                }
                _ = extend.tick(), if !at_work.tasks.is_empty() => worker.extend(&at_work).await,
                () = notified => worker.end_cancelled(&at_work).await,
                () = tokio::time::sleep(pause) => {}
            }
        }
        at_work.tasks.shutdown().await;
        worker.give_back(&at_work).await;
    }

    /// Claims due jobs and begins them. Returns how long no other job is due.
    async fn begin_due(self: &Arc<Self>, at_work: &mut AtWork) -> Duration {
        match self.claim(&at_work.shares).await {
            Ok((claimed, pause)) => {
                for job in claimed {
                    at_work.begin(job, Arc::clone(self).have_done(job));
                }
                pause
            }
            Err(cause) => {
                warn!(error = %cause, "jobs could not be claimed; trying again");
                STORE_WAIT
            }
        }
    }

    async fn claim(&self, shares: &Shares) -> Result<(Vec<ClaimedJob>, Duration), StoreError> {
        self.handlers.look().await;
        let now_ms = (self.clock)();
        let mut slots = Vec::new();
        for kind in JobKind::ALL {
            slots.push((kind, self.handlers.slots(kind, now_ms).await));
        }
        let claim = JobClaim {
            owner: self.owner,
            lease_ms: LEASE_MS,
            now_ms,
            accounts: (self.connected)(),
            slots,
            shares: shares.clone(),
        };
        Ok(match self.store.jobs_due(claim.clone()).await? {
            JobsDue::Now => (self.store.claim_jobs(claim).await?, Duration::ZERO),
            JobsDue::At(due_ms) => (Vec::new(), pause_until(Some(due_ms), now_ms, POLL)),
            JobsDue::None => (Vec::new(), POLL),
        })
    }

    /// Does a job and stores the result. Waits until the store takes it: no other code would store it.
    async fn have_done(self: Arc<Self>, claimed: ClaimedJob) {
        crash::point("job.claimed");
        let worked = self.work(&claimed).await;
        loop {
            let written = match &worked {
                JobResult::Outcome(outcome) => self.finish(&claimed, outcome.clone()).await,
                JobResult::Undecodable(what) => {
                    let now_ms = (self.clock)();
                    let aside =
                        self.store
                            .set_job_aside(claimed.id, claimed.token, what.clone(), now_ms);
                    aside.await
                }
            };
            let Err(cause) = written else { return };
            warn!(error = %cause, job.id = %claimed.id, "storage refuses what became of a job; trying again");
            tokio::time::sleep(STORE_WAIT).await;
        }
    }

    pub(super) async fn work(&self, claimed: &ClaimedJob) -> JobResult {
        let limits = claimed.job.kind().limits();
        let working = AssertUnwindSafe(self.handlers.work(claimed)).catch_unwind();
        let worked = tokio::time::timeout(Duration::from_millis(limits.work_max_ms), working).await;
        let now_ms = (self.clock)();
        match worked {
            Ok(Ok(Ok(outcome))) => JobResult::Outcome(outcome),
            Ok(Ok(Err(cause))) => after_refusal(cause, now_ms),
            Ok(Err(_)) => {
                error!(job.id = %claimed.id, kind = claimed.job.kind().name(), "a job panicked, which is a bug");
                JobResult::Outcome(Outcome::failed("it panicked, which is a bug"))
            }
            Err(_) => JobResult::Outcome(Outcome::failed("it took too long")),
        }
    }

    async fn finish(&self, claimed: &ClaimedJob, outcome: Outcome) -> Result<(), StoreError> {
        let (kind, now_ms) = (claimed.job.kind(), (self.clock)());
        let change = after(kind, claimed.attempts, outcome, now_ms);
        let finishing = self
            .store
            .finish_job(claimed.id, claimed.token, change.clone(), now_ms);
        if !finishing.await? {
            return Ok(());
        }
        let (job, attempts) = (claimed.id, claimed.attempts);
        match change {
            JobChange::Pending { cause, .. } => {
                info!(job.id = %job, kind = kind.name(), attempts, reason = cause, "a job is tried again");
            }
            JobChange::Dead { cause } => {
                warn!(job.id = %job, kind = kind.name(), attempts, reason = cause, "a job was given up; `vocative jobs list` shows it");
                self.handlers.note_dead(&claimed.job, &cause);
            }
            JobChange::Gone | JobChange::Waiting { .. } => {}
        }
        Ok(())
    }

    async fn extend(&self, at_work: &AtWork) {
        let until_ms = (self.clock)().saturating_add(LEASE_MS);
        if let Err(cause) = self.store.extend_jobs(at_work.leases(), until_ms).await {
            warn!(error = %cause, "leases of jobs could not be extended; trying again");
        }
    }

    /// Ends jobs that were cancelled, or whose subject is gone.
    async fn end_cancelled(&self, at_work: &AtWork) {
        if at_work.jobs.is_empty() {
            return;
        }
        let Ok(held) = self.store.held_jobs(at_work.leases()).await else {
            return;
        };
        for (job, task) in at_work.jobs.values() {
            if !held.contains(&job.id) {
                task.abort();
            }
        }
    }

    /// Gives back jobs that a stop interrupted; the attempt does not count.
    async fn give_back(&self, at_work: &AtWork) {
        for (job, _) in at_work.jobs.values() {
            let later = Outcome::Later {
                not_before_ms: (self.clock)(),
                why: "the daemon was stopped".to_owned(),
            };
            if let Err(cause) = self.finish(job, later).await {
                warn!(error = %cause, job.id = %job.id, "a job could not be given back; the next start takes it back");
            }
        }
    }
}

/// The result of doing a job.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum JobResult {
    /// The handler's outcome, or what follows if it gave none.
    Outcome(Outcome),
    /// A row can't be decoded.
    Undecodable(String),
}

/// What follows if the store refused. A full disk is no failure of the job.
fn after_refusal(cause: StoreError, now_ms: i64) -> JobResult {
    match cause {
        StoreError::Undecodable { what } => JobResult::Undecodable(what),
        StoreError::Unavailable { .. } | StoreError::Closed => JobResult::Outcome(Outcome::Later {
            not_before_ms: now_ms.saturating_add(STORE_WAIT_MS),
            why: cause.to_string(),
        }),
        other => JobResult::Outcome(Outcome::failed(other.to_string())),
    }
}
