//! One queue for durable work: fair, leased, put off, given up; never lost and never doubled.

use super::*;
use crate::contract::JobClaim;
use crate::new_id::NewId as _;
use crate::rows::jobs::{BEHIND_SQL, FIRST_SQL, NEXT_ACCOUNT_SQL, TAKE_OVER_SQL};
use crate::scene::Scene;
use vocative_core::ids::{FileId, OwnerId};
use vocative_core::job::{ClaimedJob, Job, JobKind, JobState};
use vocative_core::queueing::Shares;

const LEASE_MS: i64 = 60_000;

pub(super) fn claim_by(owner: OwnerId, accounts: &[AccountId], now_ms: i64) -> JobClaim {
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
pub(super) async fn claim(store: &Store, accounts: &[AccountId], now_ms: i64) -> Vec<ClaimedJob> {
    let claim = claim_by(OwnerId::generate(), accounts, now_ms);
    store.claim_jobs(claim).await.unwrap()
}

/// Claims the one job that is due.
pub(super) async fn only_claimed(store: &Store, accounts: &[AccountId], now_ms: i64) -> ClaimedJob {
    let claimed = claim(store, accounts, now_ms).await;
    assert_eq!(claimed.len(), 1, "{claimed:?}");
    claimed[0]
}

fn fetch(file: i64) -> Job {
    Job::FetchFile { file: FileId(file) }
}

#[tokio::test]
async fn a_claim_reads_a_bounded_number_of_rows() {
    let scene = Scene::open().await;
    let head = "SEARCH jobs USING COVERING INDEX jobs_by_state (state=? AND kind=? AND account_id=? AND not_before_ms";
    for sql in [FIRST_SQL, BEHIND_SQL] {
        let plan = scene.plan(sql).await;
        assert!(plan.len() == 1 && plan[0].starts_with(head), "{plan:?}");
    }
    let plan = scene.plan(NEXT_ACCOUNT_SQL).await;
    let accounts = "jobs_by_state (state=? AND kind=? AND account_id>?)";
    assert!(plan.len() == 1 && plan[0].contains(accounts), "{plan:?}");
    // Leased jobs are as many as there are slots.
    let plan = scene.plan(TAKE_OVER_SQL).await;
    assert!(plan.len() == 1 && plan[0].contains("(state=?)"), "{plan:?}");
}

#[tokio::test]
async fn jobs_of_another_build_are_set_aside_and_counted_and_stop_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = Some(folder.path().join("store.db"));
    let scene = Scene::open_at(path.clone()).await;
    let (store, account) = (&scene.store, scene.account);
    for number in [1, 2, 3] {
        store
            .enqueue_job(fetch(number), Some(account), 0)
            .await
            .unwrap();
    }
    scene
        .write(|connection| {
            Ok(connection.execute_batch(
                "UPDATE jobs SET kind = 'paint' WHERE id = 1; UPDATE jobs SET version = 9 WHERE id = 2",
            )?)
        })
        .await;
    store.close().await.unwrap();
    drop(scene);
    let scene = Scene::open_at(path).await;
    assert_eq!(
        only_claimed(&scene.store, &[account], 0).await.job,
        fetch(3)
    );
    let status = scene.store.status(0).await.unwrap();
    assert_eq!(status.quarantined, 2);
    let aside: u64 = status
        .jobs
        .iter()
        .filter(|it| it.state == JobState::Quarantined)
        .map(|it| it.count)
        .sum();
    assert_eq!(aside, 2);
}

#[tokio::test]
async fn what_a_hook_was_to_be_told_goes_with_a_job_that_has_been_dead_for_long() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let hook = crate::contract::TellingHook {
        agent: crate::scene::agent(),
        point: vocative_core::hooking::HookPoint::RunEnded,
        hook: "guard".to_owned(),
    };
    scene.store.set_telling_hooks(vec![hook]).await.unwrap();
    scene.post(&room, &["yes"], 10).await;
    let settle = |now_ms: i64| {
        scene.write(move |connection| {
            connection.execute("UPDATE jobs SET state = 'dead', updated_at_ms = 1_000", [])?;
            crate::rows::jobs::settle_at_open_txn(connection, now_ms)
        })
    };
    settle(2_000).await;
    assert_eq!(scene.value::<i64>("SELECT count(*) FROM tellings").await, 1);
    settle(i64::MAX).await;
    assert_eq!(scene.value::<i64>("SELECT count(*) FROM tellings").await, 0);
}
