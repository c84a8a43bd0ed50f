//! Two workers on the two runs of one conversation.

use crate::scene::by_hand;
use std::fmt::Write as _;

use crate::engine::sql::Connection;

use super::{Machine, explore, holder, number, of_either};
use crate::acts::reply::commit_reply_txn;
use crate::acts::runs::{
    Requeue, RequeueKind, cancel_run_txn, claim_run_txn, extend_run_txn, requeue_run_txn,
    take_back_leases_txn,
};
use crate::contract::{ClaimRequest, CommittedReply, LeaseOutcome, RunLease};
use crate::scene::{LEASE_MS, Room, Scene};
use vocative_core::ids::{LeaseToken, RunId};
use vocative_core::run::ClaimedRun;
use vocative_core::slots::Slots;

/// How long a run waits after a failure.
const RETRY_MS: i64 = 2_000;

#[derive(Clone, Copy, Debug)]
enum Step {
    Claim(usize),
    Heartbeat(usize),
    Commit(usize),
    GiveBack(usize, bool),
    Cancel(usize),
    Restart,
    LeaseEnds,
    RetryIsDue,
}

#[derive(Clone)]
struct Runs<'a> {
    scene: &'a Scene,
    room: &'a Room,
    ids: [RunId; 2],
    now_ms: i64,
    /// What each worker believes to hold.
    held: [Option<Claim>; 2],
    /// Who holds each run by the clock: a worker and until when.
    leased: [Option<(usize, i64)>; 2],
    replies: [u32; 2],
    cancelled: [bool; 2],
    restarts: u8,
    ticks: u8,
    failures: u8,
}

#[derive(Clone)]
struct Claim {
    claimed: ClaimedRun,
    /// Which of the two runs.
    run: usize,
    /// It was told to stop: it does nothing but give the run back.
    must_stop: bool,
}

impl<'a> Runs<'a> {
    fn new(scene: &'a Scene, room: &'a Room, ids: [RunId; 2]) -> Self {
        Self {
            scene,
            room,
            ids,
            now_ms: 1_000,
            held: [None, None],
            leased: [None, None],
            replies: [0, 0],
            cancelled: [false, false],
            restarts: 1,
            ticks: 2,
            failures: 1,
        }
    }

    fn request(&self) -> ClaimRequest {
        self.scene.request(self.now_ms)
    }

    /// Whether a worker's lease is the one that counts.
    fn is_current(&self, worker: usize) -> bool {
        let held = self.held[worker].as_ref();
        held.is_some_and(|held| self.leased[held.run].is_some_and(|(by, _)| by == worker))
    }

    fn claim(&mut self, connection: &Connection, worker: usize) {
        let claimed = claim_run_txn(connection, &self.request(), &Slots::default()).unwrap();
        // Whose worker let its lease end though it was asked to stop, is ended by the next claim.
        for run in [0, 1] {
            if self.name(connection, run) == "cancelled" {
                self.leased[run] = None;
            }
        }
        let Some(claimed) = claimed else { return };
        let run = usize::from(claimed.run.id == self.ids[1]);
        for (_, until_ms) in self.leased.iter().flatten() {
            assert!(
                *until_ms <= self.now_ms,
                "two runs of a conversation at once"
            );
        }
        assert!(
            !self.cancelled[run],
            "a run that was to stop is started again"
        );
        if run == 1 {
            let state = self.name(connection, 0);
            assert!(
                ["done", "cancelled"].contains(&state.as_str()),
                "the second before the first"
            );
        }
        self.leased[run] = Some((worker, self.now_ms + LEASE_MS));
        self.held[worker] = Some(Claim {
            claimed,
            run,
            must_stop: false,
        });
    }

    fn heartbeat(&mut self, connection: &Connection, worker: usize) {
        let is_current = self.is_current(worker);
        let until_ms = self.now_ms + LEASE_MS;
        let held = self.held[worker].as_mut().unwrap();
        let (run, token) = (held.claimed.run.id, held.claimed.token);
        match extend_run_txn(connection, run, token, until_ms).unwrap() {
            RunLease::Lost => {
                assert!(!is_current, "a lease that is held is lost");
                self.held[worker] = None;
            }
            found => {
                assert!(is_current, "two own a run");
                let was_cancelled = self.cancelled[held.run];
                held.must_stop = found == RunLease::CancelRequested;
                assert_eq!(held.must_stop, was_cancelled);
                self.leased[held.run] = Some((worker, until_ms));
            }
        }
    }

    fn commit(&mut self, connection: &Connection, worker: usize) {
        let is_current = self.is_current(worker);
        let held = self.held[worker].take().unwrap();
        let before = self.rows(connection);
        let answer = self.scene.answer(&held.claimed, self.room, "yes");
        match commit_reply_txn(connection, &answer).unwrap() {
            CommittedReply::Written { posts, .. } => {
                assert!(
                    is_current && !self.cancelled[held.run],
                    "a reply without a lease"
                );
                assert_eq!(posts.len(), 1);
                self.replies[held.run] += 1;
                self.leased[held.run] = None;
            }
            CommittedReply::Cancelled => {
                assert!(is_current && self.cancelled[held.run]);
                self.leased[held.run] = None;
            }
            CommittedReply::SourceGone => panic!("the run read no files"),
            CommittedReply::Reported => panic!("no run started it"),
            CommittedReply::Stale => {
                assert!(!is_current, "a lease that is held is stale");
                assert_eq!(
                    self.rows(connection),
                    before,
                    "a stale token wrote something"
                );
            }
        }
    }

    fn give_back(&mut self, connection: &Connection, worker: usize, counts: bool) {
        let is_current = self.is_current(worker);
        let held = self.held[worker].take().unwrap();
        let before = self.rows(connection);
        let requeue = Requeue {
            run: held.claimed.run.id,
            token: held.claimed.token,
            not_before_ms: self.now_ms + if counts { RETRY_MS } else { 0 },
            reason: "busy".to_owned(),
            kind: if counts {
                RequeueKind::Failed
            } else {
                RequeueKind::Returned
            },
            now_ms: self.now_ms,
        };
        match requeue_run_txn(connection, &requeue).unwrap() {
            LeaseOutcome::Written => {
                assert!(is_current, "two own a run");
                self.leased[held.run] = None;
            }
            LeaseOutcome::Stale => {
                assert!(!is_current);
                assert_eq!(
                    self.rows(connection),
                    before,
                    "a stale token wrote something"
                );
            }
        }
    }

    fn name(&self, connection: &Connection, run: usize) -> String {
        let mut statement = connection
            .prepare_cached("SELECT state FROM runs WHERE uuid = ?1")
            .unwrap();
        statement
            .query_row([self.ids[run]], |row| row.get(0))
            .unwrap()
    }

    /// All that is known of the runs.
    fn rows(&self, connection: &Connection) -> String {
        let tokens = [0, 1].map(|worker| self.held[worker].as_ref().map(|it| it.claimed.token));
        let mut statement = connection
            .prepare_cached(
                "SELECT state, attempt, token, coalesce(lease_until_ms, 0), not_before_ms,
                        stop_cause IS NOT NULL, reason
                 FROM runs ORDER BY id",
            )
            .unwrap();
        let mut rows = statement.query([]).unwrap();
        let mut told = String::new();
        while let Some(row) = rows.next().unwrap() {
            let state: String = row.get(0).unwrap();
            let token: Option<LeaseToken> = row.get(2).unwrap();
            let lease_ms = row.get::<_, i64>(3).unwrap() - self.now_ms;
            let due_ms = row.get::<_, i64>(4).unwrap() - self.now_ms;
            let attempt: i64 = row.get(1).unwrap();
            let is_cancelled: bool = row.get(5).unwrap();
            let _ = write!(
                told,
                "{state} {attempt} {} {} {} {is_cancelled};",
                holder(token, tokens),
                lease_ms.max(0),
                due_ms.max(0)
            );
        }
        told
    }
}

impl Machine for Runs<'_> {
    type Step = Step;

    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for worker in [0, 1] {
            let Some(held) = &self.held[worker] else {
                steps.push(Step::Claim(worker));
                continue;
            };
            steps.extend([Step::Heartbeat(worker), Step::GiveBack(worker, false)]);
            if !held.must_stop {
                steps.push(Step::Commit(worker));
            }
            if self.failures > 0 {
                steps.push(Step::GiveBack(worker, true));
            }
        }
        for run in [0, 1] {
            if !self.cancelled.contains(&true) {
                steps.push(Step::Cancel(run));
            }
        }
        if self.restarts > 0 {
            steps.push(Step::Restart);
        }
        if self.ticks > 0 {
            steps.extend([Step::LeaseEnds, Step::RetryIsDue]);
        }
        steps
    }

    fn take(&mut self, connection: &Connection, step: Step) {
        match step {
            Step::Claim(worker) => self.claim(connection, worker),
            Step::Heartbeat(worker) => self.heartbeat(connection, worker),
            Step::Commit(worker) => self.commit(connection, worker),
            Step::GiveBack(worker, counts) => {
                self.failures -= u8::from(counts);
                self.give_back(connection, worker, counts);
            }
            Step::Cancel(run) => {
                let is_open =
                    cancel_run_txn(connection, self.ids[run], &by_hand("by hand"), self.now_ms)
                        .unwrap();
                assert_eq!(
                    is_open,
                    self.replies[run] == 0,
                    "only what is unfinished is cancelled"
                );
                self.cancelled[run] = is_open;
            }
            // The workers of the process before may still write: they hold tokens of old leases.
            Step::Restart => {
                self.restarts -= 1;
                take_back_leases_txn(connection, self.now_ms).unwrap();
                self.leased = [None, None];
            }
            Step::LeaseEnds => {
                self.ticks -= 1;
                self.now_ms += LEASE_MS;
            }
            Step::RetryIsDue => {
                self.ticks -= 1;
                self.now_ms += RETRY_MS;
            }
        }
    }

    fn state(&self, connection: &Connection) -> String {
        let of = |worker: usize| {
            let held = self.held[worker].as_ref();
            let held = held.map(|it| (it.run, it.must_stop, self.is_current(worker)));
            format!("{held:?}")
        };
        let bounds = [self.restarts, self.ticks, self.failures];
        let written = format!("{} {bounds:?}", self.written(connection));
        of_either(&written, &of(0), &of(1))
    }

    fn written(&self, connection: &Connection) -> String {
        format!(
            "{} {:?} {:?}",
            self.rows(connection),
            self.replies,
            self.cancelled
        )
    }

    fn check(&self, connection: &Connection) {
        for run in [0, 1] {
            assert!(self.replies[run] <= 1, "two replies of one run");
            let is_done = self.name(connection, run) == "done";
            assert_eq!(is_done, self.replies[run] == 1, "done is what was answered");
        }
        let replies = number(
            connection,
            "SELECT count(*) FROM turns WHERE run_id IS NOT NULL",
        );
        let posts = number(connection, "SELECT count(*) FROM outbox");
        let counted = i64::from(self.replies[0] + self.replies[1]);
        assert_eq!(
            (replies, posts),
            (counted, counted),
            "a reply is a turn and a post"
        );
    }

    fn finish(mut self, connection: &Connection) {
        self.held = [None, None];
        for _ in 0..4 {
            self.now_ms += LEASE_MS + RETRY_MS;
            self.claim(connection, 0);
            if self.held[0].is_some() {
                self.commit(connection, 0);
            }
        }
        self.check(connection);
        for run in [0, 1] {
            let expected = if self.cancelled[run] {
                "cancelled"
            } else {
                "done"
            };
            assert_eq!(self.name(connection, run), expected, "a run is stuck");
        }
    }
}

#[tokio::test]
async fn two_workers_on_the_runs_of_a_conversation_in_every_order() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let (_, first) = scene.ask(&room, "one", 10).await;
    let (_, second) = scene.ask(&room, "two", 20).await;
    let store = scene.store.clone();
    let searched = store.write(move |connection| {
        let start = Runs::new(&scene, &room, [first, second]);
        Ok(explore(connection, &start))
    });
    let searched = searched.await.unwrap();
    assert!(searched.states > 100, "{searched:?}");
}
