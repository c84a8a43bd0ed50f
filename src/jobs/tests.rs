//! The loop, with handlers that hang, panic and fail.

#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use vocative_contract::identity::Platform;

use crate::jobs::worker::{JobHandler, JobResult, JobWorker};
use vocative_core::ids::{AccountId, ErasureId, FileId, JobId, LeaseToken, OwnerId};
use vocative_core::job::{ClaimedJob, Job, JobKind, JobState};
use vocative_core::queueing::Outcome;
use vocative_store::contract::{AccountBinding, JobRow};
use vocative_store::{NewId as _, Store, StoreError, StoreOptions};

const START_MS: i64 = 1_700_000_000_000;

/// What a job does the first time; the second time it is done.
#[derive(Clone, Copy, Debug)]
enum First {
    Hangs,
    Panics,
    Fails,
    IsRefused,
    IsUndecodable,
}

/// Does what the test says.
#[derive(Clone, Default)]
struct Script {
    firsts: Arc<Mutex<Vec<(Job, First)>>>,
    begun: Arc<Mutex<Vec<Job>>>,
}

impl JobHandler for Script {
    async fn prepare(&self) {}

    async fn look(&self) {}

    async fn slots(&self, kind: JobKind, _now_ms: i64) -> usize {
        kind.limits().slots
    }

    async fn work(&self, claimed: &ClaimedJob) -> Result<Outcome, StoreError> {
        self.begun.lock().unwrap().push(claimed.job);
        let first = {
            let mut firsts = self.firsts.lock().unwrap();
            let at = firsts.iter().position(|(job, _)| *job == claimed.job);
            at.map(|at| firsts.remove(at).1)
        };
        let what = "it says so".to_owned();
        match first {
            None => Ok(Outcome::Done),
            Some(First::Hangs) => std::future::pending().await,
            Some(First::Panics) => panic!("the test says so"),
            Some(First::Fails) => Ok(Outcome::failed(what)),
            Some(First::IsRefused) => Err(StoreError::Unavailable { what }),
            Some(First::IsUndecodable) => Err(StoreError::Undecodable { what }),
        }
    }

    fn note_dead(&self, _job: &Job, _cause: &str) {}
}

struct Stage {
    store: Store,
    accounts: [AccountId; 2],
    script: Script,
    now_ms: Arc<AtomicI64>,
    stop: CancellationToken,
    wake: Arc<Notify>,
    running: JoinHandle<()>,
}

impl Stage {
    async fn open() -> Self {
        let options = StoreOptions {
            path: None,
            readers: 2,
            page_cache_kib: 1_024,
        };
        let (store, _) = Store::open(&options, START_MS).unwrap();
        let mut accounts = [AccountId(0); 2];
        for (account, name) in accounts.iter_mut().zip(["acme", "globex"]) {
            let binding = AccountBinding {
                channel: name.to_owned(),
                platform: Platform::Slack,
                account: name.to_owned(),
                name: name.to_owned(),
            };
            *account = store.bind_account(binding, START_MS).await.unwrap();
        }
        let (script, now_ms) = (Script::default(), Arc::new(AtomicI64::new(START_MS)));
        let (stop, wake) = (CancellationToken::new(), Arc::new(Notify::new()));
        let mut stage = Self {
            store,
            accounts,
            script,
            now_ms,
            stop,
            wake,
            running: tokio::spawn(async {}),
        };
        let worker = stage.worker(stage.script.clone());
        stage.running = tokio::spawn(worker.run(stage.stop.clone()));
        stage
    }

    fn worker(&self, script: Script) -> JobWorker<Script> {
        let (accounts, clock) = (self.accounts, Arc::clone(&self.now_ms));
        JobWorker {
            store: self.store.only(),
            connected: Arc::new(move || accounts.to_vec()),
            handlers: script,
            owner: OwnerId::generate(),
            wake: Arc::clone(&self.wake),
            clock: Arc::new(move || clock.load(Ordering::SeqCst)),
        }
    }

    async fn ask(&self, job: Job, account: Option<AccountId>, first: Option<First>) {
        let first = first.map(|first| (job, first));
        self.script.firsts.lock().unwrap().extend(first);
        self.store
            .enqueue_job(job, account, START_MS)
            .await
            .unwrap();
        self.wake.notify_one();
    }

    async fn wait_until(&self, what: &str, is_true: impl Fn(&[JobRow]) -> bool) {
        for _ in 0..3_000 {
            if is_true(&self.store.jobs(100).await.unwrap()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let rows = self.store.jobs(100).await.unwrap();
        panic!("it did not come true in time that {what}: {rows:#?}");
    }

    fn times_begun(&self, job: Job) -> usize {
        let begun = self.script.begun.lock().unwrap();
        begun.iter().filter(|it| **it == job).count()
    }
}

fn erase() -> Job {
    Job::Erase {
        order: ErasureId::generate(),
    }
}

fn has(rows: &[JobRow], job: Job, state: JobState) -> bool {
    rows.iter()
        .any(|row| row.kind == job.kind().name() && row.key == job.key() && row.state == state)
}

#[tokio::test]
async fn a_job_that_hangs_panics_or_fails_holds_up_no_other_account_and_no_other_kind() {
    let stage = Stage::open().await;
    let [acme, globex] = stage.accounts;
    let (hanging, behind, other) = (erase(), erase(), erase());
    stage.ask(hanging, Some(acme), Some(First::Hangs)).await;
    stage.ask(behind, Some(acme), None).await;
    stage.ask(Job::MergeChats, None, Some(First::Panics)).await;
    stage
        .ask(Job::RemoveContents, None, Some(First::Fails))
        .await;
    stage.ask(other, Some(globex), None).await;
    let others_are_through = |rows: &[JobRow]| {
        has(rows, hanging, JobState::Leased)
            && has(rows, behind, JobState::Pending)
            && has(rows, Job::MergeChats, JobState::Pending)
            && has(rows, Job::RemoveContents, JobState::Pending)
            && rows.len() == 4
    };
    stage
        .wait_until("the others are through or tried", others_are_through)
        .await;
    // Their time comes.
    stage.now_ms.fetch_add(60_000, Ordering::SeqCst);
    stage
        .wait_until("only what hangs is left", |rows| {
            rows.len() == 2 && has(rows, hanging, JobState::Leased)
        })
        .await;
    assert_eq!(stage.times_begun(Job::MergeChats), 2);
    assert_eq!(stage.times_begun(Job::RemoveContents), 2);
}

#[tokio::test]
async fn what_a_stop_interrupts_is_given_back_and_its_attempt_does_not_count() {
    let stage = Stage::open().await;
    let job = erase();
    stage
        .ask(job, Some(stage.accounts[0]), Some(First::Hangs))
        .await;
    stage
        .wait_until("it is at work", |rows| has(rows, job, JobState::Leased))
        .await;
    stage.stop.cancel();
    stage.running.await.unwrap();
    let rows = stage.store.jobs(9).await.unwrap();
    assert_eq!((rows[0].state, rows[0].attempts), (JobState::Pending, 0));
}

#[tokio::test]
async fn a_cancelled_job_is_ended_and_gives_its_slot_back() {
    let stage = Stage::open().await;
    let fetch = |file| Job::FetchFile { file: FileId(file) };
    let slots = JobKind::FetchFile.limits().slots_of_account;
    let jobs: Vec<Job> = (0..slots as i64).map(fetch).collect();
    for job in &jobs {
        stage
            .ask(*job, Some(stage.accounts[0]), Some(First::Hangs))
            .await;
    }
    stage
        .wait_until("all are at work", |rows| {
            jobs.iter().all(|job| has(rows, *job, JobState::Leased))
        })
        .await;
    let rows = stage.store.jobs(9).await.unwrap();
    stage.store.cancel_job(rows[0].id, START_MS).await.unwrap();
    let next = fetch(90);
    stage.ask(next, Some(stage.accounts[0]), None).await;
    stage
        .wait_until("the next one had the slot", |rows| {
            rows.len() == slots - 1 && !rows.iter().any(|row| row.key == next.key())
        })
        .await;
    assert_eq!(stage.times_begun(next), 1);
}

#[tokio::test]
async fn a_job_that_hangs_has_failed_after_its_time() {
    let stage = Stage::open().await;
    stage.stop.cancel();
    let job = Job::FetchFile { file: FileId(1) };
    let script = stage.script.clone();
    script.firsts.lock().unwrap().push((job, First::Hangs));
    let worker = stage.worker(script);
    let claimed = ClaimedJob {
        id: JobId(1),
        job,
        account: None,
        attempts: 1,
        token: LeaseToken::generate(),
    };
    stage.running.await.unwrap();
    // From here on no other thread has anything to do.
    tokio::time::pause();
    let failed = Outcome::failed("it took too long");
    assert_eq!(worker.work(&claimed).await, JobResult::Outcome(failed));
}

#[tokio::test]
async fn a_row_that_cannot_be_decoded_is_set_aside_and_a_full_disk_is_no_failure_of_the_job() {
    let stage = Stage::open().await;
    stage
        .ask(Job::MergeChats, None, Some(First::IsUndecodable))
        .await;
    stage
        .ask(Job::RemoveContents, None, Some(First::IsRefused))
        .await;
    stage
        .wait_until("one is set aside, the other put off", |rows| {
            has(rows, Job::MergeChats, JobState::Quarantined)
                && rows.iter().any(|row| {
                    row.kind == Job::RemoveContents.kind().name()
                        && row.state == JobState::Pending
                        && (row.attempts, row.not_before_ms) == (0, START_MS + 5_000)
                })
        })
        .await;
}
