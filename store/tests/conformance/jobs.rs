//! One queue for durable work: fair, leased, put off, given up; never lost and never doubled.

use futures_util::future::try_join_all;
use vocative_core::ids::{AccountId, ErasureId, FileId, InquiryId, JobId, LeaseToken, OwnerId};
use vocative_core::job::{ClaimedJob, Job, JobKind, JobState, WaitsFor};
use vocative_core::queueing::{JobChange, Outcome, Shares, after};
use vocative_store::contract::{AccountBinding, JobClaim, JobRow, JobsDue};
use vocative_store::{NewId as _, Store, StoreError};

use crate::said::binding;
use crate::scene::Scene;

const LEASE_MS: i64 = 60_000;

pub(crate) fn claim_by(owner: OwnerId, accounts: &[AccountId], now_ms: i64) -> JobClaim {
    JobClaim {
        owner,
        lease_ms: LEASE_MS,
        now_ms,
        accounts: accounts.to_vec(),
        slots: JobKind::ALL
            .map(|kind| (kind, kind.limits().slots))
            .to_vec(),
        shares: Shares::default(),
    }
}

/// Claims what is due as a process of its own.
pub(crate) async fn claim(store: &Store, accounts: &[AccountId], now_ms: i64) -> Vec<ClaimedJob> {
    let claim = claim_by(OwnerId::generate(), accounts, now_ms);
    store.claim_jobs(claim).await.unwrap()
}

/// Claims the one job that is due.
pub(crate) async fn only_claimed(store: &Store, accounts: &[AccountId], now_ms: i64) -> ClaimedJob {
    let claimed = claim(store, accounts, now_ms).await;
    assert_eq!(claimed.len(), 1, "{claimed:?}");
    claimed[0]
}

fn fetch(file: i64) -> Job {
    Job::FetchFile { file: FileId(file) }
}

async fn finish(store: &Store, claimed: &ClaimedJob, outcome: Outcome, now_ms: i64) -> bool {
    let change = after(claimed.job.kind(), claimed.attempts, outcome, now_ms);
    let finished = store.finish_job(claimed.id, claimed.token, change, now_ms);
    finished.await.unwrap()
}

async fn rows(store: &Store) -> Vec<(String, JobState, u32, i64)> {
    let shown = |row: JobRow| (row.key, row.state, row.attempts, row.not_before_ms);
    store
        .jobs(100)
        .await
        .unwrap()
        .into_iter()
        .map(shown)
        .collect()
}

fn done() -> Outcome {
    Outcome::Done
}

#[tokio::test]
async fn a_job_is_one_however_often_it_is_asked_for_and_done_again_if_asked_for_at_work() {
    let Scene { store, account, .. } = Scene::open().await;
    for now_ms in [10, 20, 30] {
        store
            .enqueue_job(fetch(1), Some(account), now_ms)
            .await
            .unwrap();
    }
    assert_eq!(
        rows(&store).await,
        [("1".to_owned(), JobState::Pending, 0, 10)]
    );
    let first = only_claimed(&store, &[account], 40).await;
    assert_eq!((first.job, first.attempts), (fetch(1), 1));
    store
        .enqueue_job(fetch(1), Some(account), 50)
        .await
        .unwrap();
    assert!(finish(&store, &first, done(), 60).await);
    let second = only_claimed(&store, &[account], 70).await;
    assert_eq!((second.job, second.attempts), (fetch(1), 1));
    assert!(finish(&store, &second, done(), 80).await);
    assert_eq!(rows(&store).await, []);
}

#[tokio::test]
async fn a_failed_job_waits_and_is_dead_in_the_end_until_a_person_or_a_new_reason_revives_it() {
    let Scene { store, account, .. } = Scene::open().await;
    store.enqueue_job(fetch(1), Some(account), 0).await.unwrap();
    let mut now_ms = 0;
    for attempts in 1..=10 {
        let claimed = only_claimed(&store, &[account], now_ms).await;
        assert_eq!(claimed.attempts, attempts);
        assert!(finish(&store, &claimed, Outcome::failed("HTTP 503"), now_ms).await);
        assert_eq!(claim(&store, &[account], now_ms + 1).await, []);
        now_ms += 1_800_000;
    }
    let shown = &store.jobs(10).await.unwrap()[0];
    assert_eq!(
        (shown.state, shown.cause.as_deref()),
        (JobState::Dead, Some("HTTP 503"))
    );
    assert_eq!(claim(&store, &[account], now_ms + 86_400_000).await, []);
    store.retry_job(shown.id, now_ms).await.unwrap();
    let claimed = only_claimed(&store, &[account], now_ms).await;
    assert_eq!(claimed.attempts, 1);
    let dead = Outcome::Dead {
        why: "gone".to_owned(),
    };
    assert!(finish(&store, &claimed, dead, now_ms).await);
    store
        .enqueue_job(fetch(1), Some(account), now_ms)
        .await
        .unwrap();
    assert_eq!(only_claimed(&store, &[account], now_ms).await.attempts, 1);
}

#[tokio::test]
async fn what_this_process_works_on_is_never_claimed_again_whatever_the_clock_says() {
    let Scene { store, account, .. } = Scene::open().await;
    store.enqueue_job(fetch(1), Some(account), 0).await.unwrap();
    let (own, other) = (OwnerId::generate(), OwnerId::generate());
    let by = |owner, now_ms| store.claim_jobs(claim_by(owner, &[account], now_ms));
    let first = by(own, 100).await.unwrap().remove(0);
    assert_eq!(by(own, 100 + 400 * 86_400_000).await.unwrap(), []);
    assert_eq!(by(other, 100 + LEASE_MS - 1).await.unwrap(), []);
    // Extended, it is not a stranger's either.
    let leases = vec![(first.id, first.token), (JobId(99), LeaseToken::generate())];
    let extended = store.extend_jobs(leases.clone(), 100 + 2 * LEASE_MS);
    extended.await.unwrap();
    assert_eq!(store.held_jobs(leases).await.unwrap(), [first.id]);
    assert_eq!(by(other, 100 + LEASE_MS).await.unwrap(), []);
    let second = by(other, 100 + 2 * LEASE_MS).await.unwrap().remove(0);
    assert_eq!((second.id, second.attempts), (first.id, 2));
    // The stale lease changes nothing.
    assert!(!finish(&store, &first, done(), 0).await);
    assert!(finish(&store, &second, done(), 0).await);
}

#[tokio::test]
async fn an_open_takes_back_what_a_predecessor_held_and_a_job_that_kills_its_process_dies() {
    let folder = tempfile::tempdir().unwrap();
    let path = Some(folder.path().join("store.db"));
    let mut account = AccountId(0);
    for attempts in 1..=10 {
        let scene = Scene::open_at(path.clone()).await;
        account = scene.account;
        let store = &scene.store;
        if attempts == 1 {
            store.enqueue_job(fetch(1), Some(account), 0).await.unwrap();
        }
        // The clock was years ahead when it was leased.
        let now_ms = 86_400_000_000 - attempts;
        assert_eq!(
            i64::from(only_claimed(store, &[account], now_ms).await.attempts),
            attempts
        );
        store.close().await.unwrap();
    }
    let scene = Scene::open_at(path).await;
    assert_eq!(claim(&scene.store, &[account], 0).await, []);
    let shown = &scene.store.jobs(10).await.unwrap()[0];
    assert_eq!(shown.state, JobState::Dead);
    assert!(
        shown
            .cause
            .as_deref()
            .unwrap()
            .contains("the process ended"),
        "{shown:?}"
    );
}

#[tokio::test]
async fn a_job_that_a_wrong_clock_put_off_for_a_year_is_due() {
    let Scene { store, account, .. } = Scene::open().await;
    let kind = JobKind::FetchFile;
    for (number, wait_ms, is_due) in [
        (1, kind.limits().later_max_ms, false),
        (2, 400 * 86_400_000, true),
    ] {
        store
            .enqueue_job(fetch(number), Some(account), 0)
            .await
            .unwrap();
        let claimed = only_claimed(&store, &[account], 0).await;
        let pending = JobChange::Pending {
            not_before_ms: wait_ms,
            attempts: 1,
            cause: "HTTP 503".to_owned(),
        };
        let put_off = store.finish_job(claimed.id, claimed.token, pending, 0);
        assert!(put_off.await.unwrap());
        let due = store.jobs_due(claim_by(OwnerId::generate(), &[account], 0));
        let expected = match is_due {
            true => JobsDue::Now,
            false => JobsDue::At(wait_ms),
        };
        assert_eq!(due.await.unwrap(), expected);
    }
    assert_eq!(only_claimed(&store, &[account], 0).await.job, fetch(2));
}

async fn second_account(store: &Store) -> AccountId {
    let binding = AccountBinding {
        account: "T2".to_owned(),
        ..binding("globex")
    };
    store.bind_account(binding, 0).await.unwrap()
}

#[tokio::test]
async fn ten_thousand_jobs_of_one_account_starve_no_other_account_and_no_other_kind() {
    let Scene { store, account, .. } = Scene::open().await;
    let quiet = second_account(&store).await;
    let asked = (0..10_000).map(|number| store.enqueue_job(fetch(number), Some(account), 0));
    try_join_all(asked).await.unwrap();
    store
        .enqueue_job(fetch(90_000), Some(quiet), 9)
        .await
        .unwrap();
    let order = ErasureId::generate();
    store
        .enqueue_job(Job::Erase { order }, Some(account), 9)
        .await
        .unwrap();
    store.enqueue_job(Job::MergeChats, None, 9).await.unwrap();
    let claimed = claim(&store, &[account, quiet], 10).await;
    let of = |kind, account| {
        let its = claimed
            .iter()
            .filter(|it| it.job.kind() == kind && it.account == account);
        its.count()
    };
    let slots = JobKind::FetchFile.limits().slots_of_account;
    assert_eq!(of(JobKind::FetchFile, Some(account)), slots);
    assert_eq!(of(JobKind::FetchFile, Some(quiet)), 1);
    assert_eq!(of(JobKind::Erase, Some(account)), 1);
    assert_eq!(of(JobKind::MergeChats, None), 1);
    // What waits for its channel is not claimed without it; the others are nobody's.
    assert_eq!(claim(&store, &[], 10).await, []);
}

#[tokio::test]
async fn a_job_that_waits_for_something_holds_no_slot_and_is_woken_by_it() {
    let Scene { store, account, .. } = Scene::open().await;
    let note = Job::TranscribeFile { file: FileId(1) };
    store.enqueue_job(note, Some(account), 0).await.unwrap();
    let claimed = only_claimed(&store, &[account], 0).await;
    let waits_for = WaitsFor::Transcription;
    assert!(finish(&store, &claimed, Outcome::Wait { waits_for }, 0).await);
    let far_ms = 400 * 86_400_000;
    let due = store.jobs_due(claim_by(OwnerId::generate(), &[account], far_ms));
    assert_eq!(due.await.unwrap(), JobsDue::None);
    let shown = &store.jobs(9).await.unwrap()[0];
    assert_eq!(shown.waits_for.as_deref(), Some("transcription"));
    assert_eq!(store.wake_jobs(waits_for, 5).await.unwrap(), 1);
    assert_eq!(store.wake_jobs(waits_for, 5).await.unwrap(), 0);
    assert_eq!(only_claimed(&store, &[account], 5).await.attempts, 1);
}

#[tokio::test]
async fn what_has_to_be_done_can_not_be_cancelled_and_a_cancelled_lease_is_stale() {
    let Scene { store, account, .. } = Scene::open().await;
    store.enqueue_job(Job::MergeChats, None, 0).await.unwrap();
    store.enqueue_job(fetch(1), Some(account), 0).await.unwrap();
    let claimed = claim(&store, &[account], 0).await;
    let of = |job: Job| *claimed.iter().find(|it| it.job == job).unwrap();
    let refused = store.cancel_job(of(Job::MergeChats).id, 0).await;
    assert!(
        matches!(refused, Err(StoreError::NotFound { .. })),
        "{refused:?}"
    );
    // One at work is not retried beside itself.
    let refused = store.retry_job(of(fetch(1)).id, 0).await;
    assert!(
        matches!(refused, Err(StoreError::NotFound { .. })),
        "{refused:?}"
    );
    let fetching = of(fetch(1));
    store.cancel_job(fetching.id, 0).await.unwrap();
    let held = store.held_jobs(vec![(fetching.id, fetching.token)]).await;
    assert_eq!(held.unwrap(), []);
    assert!(!finish(&store, &fetching, done(), 0).await);
}

#[tokio::test]
async fn an_inquiry_that_is_too_old_goes_and_delays_no_other() {
    let Scene { store, account, .. } = Scene::open().await;
    let job = |inquiry| Job::AnswerInquiry {
        inquiry: InquiryId(inquiry),
    };
    store.enqueue_job(job(1), Some(account), 0).await.unwrap();
    store.enqueue_job(job(2), Some(account), 500).await.unwrap();
    let claimed = only_claimed(&store, &[account], 900_001).await;
    assert_eq!(claimed.job, job(2));
    assert_eq!(rows(&store).await.len(), 1);
}

#[tokio::test]
async fn a_job_asked_for_by_a_clock_that_was_ahead_is_due_after_an_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = Some(folder.path().join("store.db"));
    let scene = Scene::open_at(path.clone()).await;
    // Less ahead than it may wait.
    let ahead_ms = JobKind::FetchFile.limits().later_max_ms / 2;
    let account = Some(scene.account);
    for (number, asked_at_ms) in [(1, ahead_ms), (2, 0)] {
        let asked = scene.store.enqueue_job(fetch(number), account, asked_at_ms);
        asked.await.unwrap();
    }
    let second = only_claimed(&scene.store, &[scene.account], 0).await;
    let pending = JobChange::Pending {
        not_before_ms: 5_000,
        attempts: 1,
        cause: "HTTP 503".to_owned(),
    };
    let put_off = scene.store.finish_job(second.id, second.token, pending, 0);
    assert!(put_off.await.unwrap());
    scene.store.close().await.unwrap();
    let scene = Scene::open_at(path).await;
    let due = only_claimed(&scene.store, &[scene.account], 1_000).await;
    assert_eq!(due.job, fetch(1));
}

#[tokio::test]
async fn a_job_asked_for_again_once_the_clock_is_right_is_due() {
    let Scene { store, account, .. } = Scene::open().await;
    let ahead_ms = JobKind::FetchFile.limits().later_max_ms / 2;
    for asked_at_ms in [ahead_ms, 1_000] {
        let asked = store.enqueue_job(fetch(1), Some(account), asked_at_ms);
        asked.await.unwrap();
    }
    let due = only_claimed(&store, &[account], 1_000).await;
    assert_eq!(due.job, fetch(1));
}
