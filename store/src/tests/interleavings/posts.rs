//! Two workers on the two posts of one answer, and a platform that may take a post without saying so.

use std::fmt::Write as _;

use crate::engine::sql::{Connection, OptionalExtension as _};
use crate::new_id::NewId as _;
use vocative_contract::envelope::Place;
use vocative_contract::error::{ChannelError, Fallback};
use vocative_contract::outbound::{Delivered, Part, ReadBack};

use super::{Machine, explore, holder, of_either};
use crate::acts::confirm::confirm_txn;
use crate::acts::outbox::{
    claim_posts_txn, mark_send_started_txn, next_post_due_ms, release_post_txn, take_back_posts_txn,
};
use crate::acts::outcome::update_post_txn;
use crate::contract::{CommittedReply, LeaseOutcome, OwnPost};
use crate::scene::{LEASE_MS, Scene};
use vocative_core::ids::{LeaseToken, OutboxId};
use vocative_core::outbox::ClaimedEntry;
use vocative_core::outbox::OutboxUpdate;
use vocative_core::sending::after::{DeliveryPolicy, after_look, after_send, after_unknown};
use vocative_core::sending::policy::LivePolicy;
use vocative_core::sending::policy::{Live, OnUndecided, OnUnknown};
use vocative_core::words::Language;

/// The platform shows a post so much later. Less than `look_back_ms`, as the setting wants it.
const SHOWN_AFTER_MS: i64 = 190;
/// A rate limit asks to wait so long: longer than the look-back.
const LIMIT_MS: u64 = 5_000;

const POLICY: DeliveryPolicy = DeliveryPolicy {
    on_unknown: OnUnknown::Resend,
    on_undecided: OnUndecided::Hold,
    retry_first_ms: 100,
    retry_max_ms: 100,
    look_first_ms: 50,
    look_back_ms: 200,
    look_give_up_ms: 3_600_000,
    park_ms: 1_000,
    park_keep_ms: 86_400_000_000,
    max_parts: 5,
    mention_people: false,
    language: Language::English,
    live: LivePolicy {
        live: Live::Off,
        delay_ms: 0,
        interval_ms: 0,
    },
};

/// What the platform does with a request, and what the worker hears of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Taken,
    TakenUnsaid,
    LostUnsaid,
    Limited,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Claim(usize),
    Start(usize),
    Send(usize, Fate),
    Look(usize),
    Record(usize),
    Die(usize),
    Restart,
    Due,
    LeaseEnds,
    Echo,
    Release(bool),
}

#[derive(Clone)]
struct Posts<'a> {
    scene: &'a Scene,
    ids: [OutboxId; 2],
    can_read_back: bool,
    /// Breaks a promise on purpose: looks count from the first attempt, however long ago.
    forgets_attempts: bool,
    policy: DeliveryPolicy,
    now_ms: i64,
    workers: [Worker; 2],
    /// What is on the platform: which post, and since when.
    platform: Vec<(usize, i64)>,
    /// Releases by a person that allow one more of each.
    allowed: [usize; 2],
    bounds: Bounds,
}

/// How often something may still happen.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// Posts of the answer: one or two.
    parts: usize,
    /// Requests that don't just succeed.
    troubles: u8,
    /// Workers that forget what they do.
    deaths: u8,
    restarts: u8,
    /// Moves of the clock to what is due next.
    ticks: u8,
    /// Moves of the clock over the end of every lease.
    lease_ends: u8,
    /// Own posts that come back.
    echoes: u8,
    /// Decisions of a person.
    releases: u8,
}

/// A platform that lies, and a process that lives.
const TROUBLED: Bounds = Bounds {
    parts: 1,
    troubles: 2,
    deaths: 0,
    restarts: 0,
    ticks: 4,
    lease_ends: 1,
    echoes: 0,
    releases: 0,
};

/// A process that dies.
const MORTAL: Bounds = Bounds {
    parts: 2,
    troubles: 1,
    deaths: 1,
    restarts: 1,
    ticks: 1,
    lease_ends: 1,
    echoes: 0,
    releases: 0,
};

/// People who decide.
const DECIDED: Bounds = Bounds {
    parts: 2,
    troubles: 1,
    deaths: 0,
    restarts: 0,
    ticks: 1,
    lease_ends: 1,
    echoes: 1,
    releases: 1,
};

#[derive(Clone, Default)]
enum Worker {
    #[default]
    Idle,
    Claimed(ClaimedEntry),
    Started(ClaimedEntry),
    Decided(ClaimedEntry, OutboxUpdate),
}

impl Worker {
    fn claimed(&self) -> Option<&ClaimedEntry> {
        match self {
            Self::Idle => None,
            Self::Claimed(claimed) | Self::Started(claimed) | Self::Decided(claimed, _) => {
                Some(claimed)
            }
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::Idle => "idle".to_owned(),
            Self::Claimed(claimed) => format!("claimed {}", claimed.is_unknown),
            Self::Started(_) => "started".to_owned(),
            Self::Decided(_, update) => format!("{update:?}").chars().take(8).collect(),
        }
    }
}

impl<'a> Posts<'a> {
    fn new(
        scene: &'a Scene,
        ids: [OutboxId; 2],
        can_read_back: bool,
        on_unknown: OnUnknown,
        bounds: Bounds,
    ) -> Self {
        Self {
            scene,
            ids,
            can_read_back,
            forgets_attempts: false,
            policy: DeliveryPolicy {
                on_unknown,
                ..POLICY
            },
            now_ms: 1_000,
            workers: [Worker::Idle, Worker::Idle],
            platform: Vec::new(),
            allowed: [1, 1],
            bounds,
        }
    }

    fn number(&self, entry: OutboxId) -> usize {
        usize::from(entry == self.ids[1])
    }

    fn claim(&mut self, connection: &Connection, worker: usize) {
        let claimed = claim_posts_txn(connection, &self.scene.request(self.now_ms), 1).unwrap();
        if let Some(claimed) = claimed.into_iter().next() {
            self.workers[worker] = Worker::Claimed(claimed);
        }
    }

    fn start(&mut self, connection: &Connection, worker: usize) {
        let Worker::Claimed(claimed) = std::mem::take(&mut self.workers[worker]) else {
            return;
        };
        let (id, token) = (claimed.entry.id, claimed.token);
        let started = mark_send_started_txn(connection, id, token, None, self.now_ms).unwrap();
        if started == LeaseOutcome::Written {
            self.workers[worker] = Worker::Started(claimed);
        }
    }

    /// One request, while its lease lasts: the client gives up long before.
    fn send(&mut self, worker: usize, fate: Fate) {
        let Worker::Started(claimed) = std::mem::take(&mut self.workers[worker]) else {
            return;
        };
        let number = self.number(claimed.entry.id);
        if matches!(fate, Fate::Taken | Fate::TakenUnsaid) {
            self.platform.push((number, self.now_ms));
        }
        let outcome = match fate {
            Fate::Taken => Ok(self.delivered(number)),
            Fate::Limited => Err(ChannelError::RetryAfter {
                operation: "post",
                wait_ms: LIMIT_MS,
            }),
            Fate::TakenUnsaid | Fate::LostUnsaid => Err(ChannelError::OutcomeUnknown {
                operation: "post",
                cause: "reset".into(),
            }),
        };
        let mut attempted = claimed.entry.clone();
        attempted.attempts += 1;
        let no_fallback = |_: &Part, _: Fallback| Vec::new();
        let update = after_send(
            &attempted,
            outcome,
            self.can_read_back,
            &no_fallback,
            &self.policy,
            self.now_ms,
        );
        self.workers[worker] = Worker::Decided(claimed, update);
    }

    fn look(&mut self, worker: usize) {
        let Worker::Claimed(mut claimed) = std::mem::take(&mut self.workers[worker]) else {
            return;
        };
        if self.forgets_attempts {
            claimed.entry.last_attempt_ms = claimed.entry.first_attempt_ms;
        }
        let number = self.number(claimed.entry.id);
        let shown_ms = self.now_ms - SHOWN_AFTER_MS;
        let tried_ms = claimed.entry.last_attempt_ms.unwrap_or(0);
        let since_ms = self.now_ms - tried_ms;
        let is_shown = self
            .platform
            .iter()
            .any(|(of, at)| *of == number && *at <= shown_ms);
        let update = if !self.can_read_back {
            let reason = "the process ended".to_owned();
            after_unknown(&claimed.entry, false, &self.policy, reason, self.now_ms)
        } else if is_shown {
            let found = Ok(ReadBack::Found(self.delivered(number)));
            after_look(&claimed.entry, found, &self.policy, since_ms, self.now_ms)
        } else {
            after_look(
                &claimed.entry,
                Ok(ReadBack::NotFound),
                &self.policy,
                since_ms,
                self.now_ms,
            )
        };
        self.workers[worker] = Worker::Decided(claimed, update);
    }

    fn record(&mut self, connection: &Connection, worker: usize) {
        let Worker::Decided(claimed, update) = std::mem::take(&mut self.workers[worker]) else {
            return;
        };
        let is_resend = matches!(update, OutboxUpdate::Resend { .. });
        let (id, token) = (claimed.entry.id, claimed.token);
        let before = self.rows(connection);
        match update_post_txn(connection, id, token, &update, self.now_ms).unwrap() {
            // What can't be looked for may be sent once more, where the setting says so.
            LeaseOutcome::Written if is_resend && !self.can_read_back => {
                assert_eq!(self.policy.on_unknown, OnUnknown::Resend);
                self.allowed[self.number(id)] += 1;
            }
            LeaseOutcome::Written => {}
            LeaseOutcome::Stale => {
                assert_eq!(
                    self.rows(connection),
                    before,
                    "a stale token wrote something"
                );
            }
        }
    }

    fn delivered(&self, number: usize) -> Delivered {
        Delivered {
            chat: "C1".to_owned(),
            message_id: format!("p{number}"),
            sent_at_ms: self.now_ms,
            shown: None,
        }
    }

    fn echo(&self, connection: &Connection) {
        for number in [0, 1] {
            if self.platform.iter().any(|(of, _)| *of == number) {
                let seen = OwnPost {
                    account: self.scene.account,
                    place: Place {
                        chat: "C1".to_owned(),
                        ..Place::default()
                    },
                    message_id: format!("p{number}"),
                    marker: None,
                    now_ms: self.now_ms,
                    judge_follow_up: None,
                };
                confirm_txn(connection, &seen, self.ids[number]).unwrap();
            }
        }
    }

    fn release(&mut self, connection: &Connection, send: bool) {
        for number in [0, 1] {
            let released = release_post_txn(connection, self.ids[number], send, self.now_ms);
            self.allowed[number] += usize::from(released.is_ok() && send);
        }
    }

    /// A second part that there is not needs nothing more.
    fn states(&self, connection: &Connection) -> [String; 2] {
        let mut statement = connection
            .prepare_cached("SELECT state FROM outbox WHERE uuid = ?1")
            .unwrap();
        self.ids.map(|id| {
            let state = statement.query_row([id], |row| row.get(0)).optional();
            state.unwrap().unwrap_or_else(|| "dead".to_owned())
        })
    }

    /// All that is known of the posts.
    fn rows(&self, connection: &Connection) -> String {
        let tokens = [0, 1].map(|worker| self.workers[worker].claimed().map(|it| it.token));
        let mut statement = connection
            .prepare_cached(
                "SELECT state, send_started, attempts, looks, resends, token,
                        coalesce(lease_until_ms, 0), not_before_ms,
                        (SELECT max(coalesce(ended_at_ms, started_at_ms)) FROM outbox_attempts a
                         WHERE a.outbox_id = o.id),
                        (SELECT count(*) FROM outbox_attempts a
                         WHERE a.outbox_id = o.id AND a.ended_at_ms IS NULL)
                 FROM outbox o ORDER BY id",
            )
            .unwrap();
        let mut rows = statement.query([]).unwrap();
        let mut told = String::new();
        while let Some(row) = rows.next().unwrap() {
            let state: String = row.get(0).unwrap();
            let token: Option<LeaseToken> = row.get(5).unwrap();
            let counts: [i64; 3] = [1, 3, 4].map(|at| row.get(at).unwrap());
            let since_ms = row
                .get::<_, Option<i64>>(8)
                .unwrap()
                .map(|at| self.now_ms - at);
            let in_ms = [6, 7].map(|at| (row.get::<_, i64>(at).unwrap() - self.now_ms).max(0));
            let open: i64 = row.get(9).unwrap();
            let _ = write!(
                told,
                "{state} {counts:?} {} {in_ms:?} {:?} {open};",
                holder(token, tokens),
                since_ms.map(|ms| ms.min(POLICY.look_back_ms))
            );
        }
        told
    }
}

impl Machine for Posts<'_> {
    type Step = Step;

    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for (worker, at) in self.workers.iter().zip(0..) {
            match worker {
                Worker::Idle => steps.push(Step::Claim(at)),
                Worker::Claimed(claimed) if claimed.is_unknown => steps.push(Step::Look(at)),
                Worker::Claimed(_) => steps.push(Step::Start(at)),
                Worker::Started(_) => {
                    steps.push(Step::Send(at, Fate::Taken));
                    if self.bounds.troubles > 0 {
                        let troubles = [Fate::TakenUnsaid, Fate::LostUnsaid, Fate::Limited];
                        steps.extend(troubles.map(|fate| Step::Send(at, fate)));
                    }
                }
                Worker::Decided(..) => steps.push(Step::Record(at)),
            }
            if self.bounds.deaths > 0 && !matches!(worker, Worker::Idle) {
                steps.push(Step::Die(at));
            }
        }
        if self.bounds.restarts > 0 {
            steps.push(Step::Restart);
        }
        // A request is over before its lease is: no worker sleeps while it sends.
        let is_sending = self
            .workers
            .iter()
            .any(|it| matches!(it, Worker::Started(_)));
        if self.bounds.ticks > 0 && !is_sending {
            steps.push(Step::Due);
        }
        if self.bounds.lease_ends > 0 && !is_sending {
            steps.push(Step::LeaseEnds);
        }
        if self.bounds.echoes > 0 && !self.platform.is_empty() && self.can_read_back {
            steps.push(Step::Echo);
        }
        if self.bounds.releases > 0 {
            steps.extend([Step::Release(true), Step::Release(false)]);
        }
        steps
    }

    fn take(&mut self, connection: &Connection, step: Step) {
        match step {
            Step::Claim(worker) => self.claim(connection, worker),
            Step::Start(worker) => self.start(connection, worker),
            Step::Send(worker, fate) => {
                self.bounds.troubles -= u8::from(fate != Fate::Taken);
                self.send(worker, fate);
            }
            Step::Look(worker) => self.look(worker),
            Step::Record(worker) => self.record(connection, worker),
            Step::Die(worker) => {
                self.bounds.deaths -= 1;
                self.workers[worker] = Worker::Idle;
            }
            // The process is gone, and with it what its workers knew.
            Step::Restart => {
                self.bounds.restarts -= 1;
                self.workers = [Worker::Idle, Worker::Idle];
                take_back_posts_txn(connection, self.now_ms).unwrap();
            }
            Step::Due => {
                self.bounds.ticks -= 1;
                let due_ms = next_post_due_ms(connection).unwrap();
                self.now_ms = self.now_ms.max(due_ms.unwrap_or(0));
            }
            Step::LeaseEnds => {
                self.bounds.lease_ends -= 1;
                self.now_ms += LEASE_MS;
            }
            Step::Echo => {
                self.bounds.echoes -= 1;
                self.echo(connection);
            }
            Step::Release(send) => {
                self.bounds.releases -= 1;
                self.release(connection, send);
            }
        }
    }

    fn state(&self, connection: &Connection) -> String {
        let shown = |worker: &Worker| {
            let of = worker
                .claimed()
                .map(|claimed| self.number(claimed.entry.id));
            format!("{of:?} {}", worker.shown())
        };
        let written = format!("{} {:?}", self.written(connection), self.bounds);
        of_either(&written, &shown(&self.workers[0]), &shown(&self.workers[1]))
    }

    fn written(&self, connection: &Connection) -> String {
        let platform: Vec<(usize, i64)> = self
            .platform
            .iter()
            .map(|(of, at)| (*of, (self.now_ms - at).min(SHOWN_AFTER_MS)))
            .collect();
        format!("{} {platform:?} {:?}", self.rows(connection), self.allowed)
    }

    fn check(&self, connection: &Connection) {
        let states = self.states(connection);
        for number in [0, 1] {
            let there = self.platform.iter().filter(|(of, _)| *of == number).count();
            assert!(
                there <= self.allowed[number],
                "post {number} is there {there} times"
            );
            assert!(states[number] != "sent" || there > 0, "sent, and not there");
        }
        let first_on = self.platform.iter().position(|(of, _)| *of == 1);
        let is_behind = self
            .platform
            .iter()
            .take(first_on.unwrap_or(0))
            .any(|(of, _)| *of == 0);
        let is_settled = ["sent", "dead"].contains(&states[0].as_str());
        assert!(
            first_on.is_none() || is_behind || is_settled,
            "the second part came first"
        );
    }

    fn finish(mut self, connection: &Connection) {
        self.workers = [Worker::Idle, Worker::Idle];
        self.now_ms += LEASE_MS;
        for _ in 0..24 {
            let due_ms = next_post_due_ms(connection).unwrap();
            self.now_ms = self.now_ms.max(due_ms.unwrap_or(0));
            self.claim(connection, 0);
            match &self.workers[0] {
                Worker::Claimed(claimed) if claimed.is_unknown => self.look(0),
                Worker::Claimed(_) => {
                    self.start(connection, 0);
                    self.send(0, Fate::Taken);
                }
                _ => break,
            }
            self.record(connection, 0);
            self.check(connection);
        }
        let [first, second] = self.states(connection);
        let is_at_rest = |state: &str| ["sent", "dead", "held"].contains(&state);
        assert!(is_at_rest(&first), "a post is stuck: {first}");
        // A held part holds back the rest of its answer, visibly.
        assert!(
            is_at_rest(&second) || first == "held",
            "a post is stuck: {second}"
        );
    }
}

/// Searches from an answer that is committed and not yet posted.
async fn search(can_read_back: bool, on_unknown: OnUnknown, bounds: Bounds, forgets: bool) {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let parts = &["one", "two"][..bounds.parts];
    let CommittedReply::Written { posts, .. } = scene.post(&room, parts, 100).await else {
        panic!("an answer is committed");
    };
    let second = posts.get(1).copied();
    let ids = [posts[0], second.unwrap_or_else(OutboxId::generate)];
    let store = scene.store.clone();
    let searched = store.write(move |connection| {
        let mut start = Posts::new(&scene, ids, can_read_back, on_unknown, bounds);
        start.forgets_attempts = forgets;
        Ok(explore(connection, &start))
    });
    let searched = searched.await.unwrap();
    assert!(searched.states > 100, "{searched:?}");
}

async fn search_all(can_read_back: bool, on_unknown: OnUnknown) {
    for bounds in [TROUBLED, MORTAL, DECIDED] {
        search(can_read_back, on_unknown, bounds, false).await;
    }
}

#[tokio::test]
async fn posts_that_can_be_looked_for_are_never_there_twice_in_any_order() {
    search_all(true, OnUnknown::Resend).await;
}

#[tokio::test]
async fn posts_that_cannot_be_looked_for_are_resent_once_in_any_order() {
    search_all(false, OnUnknown::Resend).await;
}

#[tokio::test]
async fn posts_of_unknown_outcome_are_held_and_never_there_twice_in_any_order() {
    search_all(false, OnUnknown::Hold).await;
}

#[tokio::test]
#[should_panic(expected = "is there 2 times")]
async fn the_search_finds_a_post_that_is_looked_for_too_briefly() {
    search(true, OnUnknown::Resend, TROUBLED, true).await;
}
