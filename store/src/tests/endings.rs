//! However a run ends, and whatever state it is in, no beginning of an answer stays in the room.

use crate::scene::by_hand;
use std::collections::BTreeMap;

use vocative_contract::outbound::{Delivered, Operation, Part, Target};

use super::*;
use crate::contract::{ClaimRequest, NewPlaceholder, Placed, ReplyCommit, RunEnding};
use crate::new_id::NewId as _;
use vocative_core::addressing::{Overlap, RunVerdict};
use vocative_core::ids::{OwnerId, RunId};
use vocative_core::outbox::ClaimedEntry;
use vocative_core::outbox::OutboxUpdate;
use vocative_core::run::{ClaimedRun, Usage};
use vocative_core::turn::TurnKind;

/// Who ends the run, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Operator,
    Delete,
    Unmention,
    StopWord,
    Interrupt,
    /// The question is edited while it is answered.
    Edit,
    /// Its worker gives up and has nothing to say.
    GivingUp,
    /// It was given up, and an operator drops it.
    DroppingDead,
}

const ENDINGS: [By; 8] = [
    By::Operator,
    By::Delete,
    By::Unmention,
    By::StopWord,
    By::Interrupt,
    By::Edit,
    By::GivingUp,
    By::DroppingDead,
];

/// What the run is at when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    NextAttempt,
    Leased,
    /// Its worker is killed after it was told to stop; the next start ends it.
    LeasedAndKilled,
    Waiting,
    Held,
}

const STATES: [State; 5] = [
    State::NextAttempt,
    State::Leased,
    State::LeasedAndKilled,
    State::Waiting,
    State::Held,
];

/// Where its placeholder stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Nowhere,
    Untouched,
    InFlight,
    Shown,
}

const PLACEHOLDERS: [At; 4] = [At::Nowhere, At::Untouched, At::InFlight, At::Shown];

struct World {
    fixture: Fixture,
    run: ClaimedRun,
    in_flight: Option<ClaimedEntry>,
    shown: BTreeMap<String, String>,
    now_ms: i64,
}

fn with_overlap(overlap: Overlap) -> Verdict {
    Verdict {
        overlaps: [(agent("helper"), overlap)].into(),
        edit_answer_within_ms: 3_600_000,
        ..admitted(&["helper"])
    }
}

fn target() -> Target {
    Target {
        chat: "C1".to_owned(),
        thread: None,
        topic: None,
        reply_to: None,
    }
}

impl World {
    async fn new(state: State, at: At) -> Self {
        let fixture = Fixture::new().await;
        let asked = fixture.judge(said("1", "helper?"), |_| with_overlap(Overlap::Queue));
        turn_of(asked.await);
        let now_ms = NOW_MS + 600_000;
        let claimed = fixture
            .store
            .claim_run(request(&fixture, now_ms), Default::default())
            .await;
        let mut world = Self {
            run: claimed.unwrap().unwrap(),
            fixture,
            in_flight: None,
            shown: BTreeMap::new(),
            now_ms,
        };
        world.place(at).await;
        world.bring(state).await;
        world
    }

    async fn place(&mut self, at: At) {
        if at == At::Nowhere {
            return;
        }
        let placeholder = NewPlaceholder {
            run: self.run.run.id,
            token: self.run.token,
            target: target(),
            part: Part::plain("the beginning …"),
            now_ms: self.now_ms,
        };
        let placed = self.fixture.store.commit_placeholder(placeholder).await;
        assert_eq!(placed.unwrap(), Placed::Committed);
        if at == At::Untouched {
            return;
        }
        let claim = self.claim_posts().await.pop().unwrap();
        self.start(&claim).await;
        match at {
            At::Shown => self.arrive(&claim).await,
            _ => self.in_flight = Some(claim),
        }
    }

    async fn bring(&self, state: State) {
        let (run, token) = (self.run.run.id, self.run.token);
        match state {
            State::NextAttempt => {
                let later_ms = self.now_ms + 60_000;
                let given_back =
                    self.fixture
                        .store
                        .requeue_run(run, token, later_ms, "busy", self.now_ms);
                given_back.await.unwrap();
            }
            State::Leased | State::LeasedAndKilled => {}
            State::Waiting => {
                let sql = "UPDATE runs SET state = 'waiting', owner = NULL, token = NULL";
                self.fixture.execute(sql).await;
            }
            State::Held => {
                let sql = "UPDATE runs SET state = 'held', owner = NULL, token = NULL";
                self.fixture.execute(sql).await;
            }
        }
    }

    async fn claim_posts(&mut self) -> Vec<ClaimedEntry> {
        self.now_ms += 1;
        let request = request(&self.fixture, self.now_ms);
        self.fixture.store.claim_posts(request, 9).await.unwrap()
    }

    async fn start(&self, claim: &ClaimedEntry) {
        let (id, token) = (claim.entry.id, claim.token);
        let store = &self.fixture.store;
        store
            .mark_send_started(id, token, None, self.now_ms)
            .await
            .unwrap();
    }

    /// The platform does what a request says, once.
    async fn arrive(&mut self, claim: &ClaimedEntry) {
        let message_id = match &claim.entry.operation {
            Operation::Edit { message_id } | Operation::Delete { message_id } => message_id.clone(),
            // One that is looked for is found under its id.
            _ => format!("p{}", claim.entry.id),
        };
        let text = claim.entry.part.text.clone();
        match &claim.entry.operation {
            Operation::Delete { .. } => {
                self.shown.remove(&message_id);
            }
            _ => {
                self.shown.insert(message_id.clone(), text);
            }
        }
        let sent = OutboxUpdate::Sent(Delivered {
            chat: "C1".to_owned(),
            message_id,
            sent_at_ms: self.now_ms,
            shown: None,
        });
        let (id, token) = (claim.entry.id, claim.token);
        let update = self.fixture.store.update_post(id, token, sent, self.now_ms);
        update.await.unwrap();
    }

    /// Ends the run; `None` where that ending is none of a run in this state.
    async fn end(&self, by: By, state: State) -> Option<()> {
        let is_leased = matches!(state, State::Leased | State::LeasedAndKilled);
        let (store, run) = (&self.fixture.store, self.run.run.id);
        match by {
            By::Operator => {
                assert!(
                    store
                        .cancel_run(run, by_hand("by hand"), self.now_ms)
                        .await
                        .unwrap()
                );
            }
            By::Delete => {
                let (account, now_ms) = (self.fixture.account, self.now_ms);
                let deleted = store.capture_delete(account, "C1", "1", now_ms).await;
                deleted.unwrap();
            }
            // What is being answered stays.
            By::Unmention if is_leased => return None,
            By::Unmention => {
                let edit = Said {
                    edit_marker: Some("10"),
                    ..said("1", "never mind")
                };
                self.fixture.hear(edit).await;
            }
            // An operator decides about a held run; no message meets it.
            By::StopWord | By::Interrupt if state == State::Held => return None,
            By::StopWord => {
                let stop = |_: &MessageFacts| Verdict {
                    runs: RunVerdict::Stop {
                        of_everybody: false,
                    },
                    ..admitted(&["helper"])
                };
                self.fixture.judge(said("2", "stop"), stop).await;
            }
            By::Interrupt => {
                let more = |_: &MessageFacts| with_overlap(Overlap::Interrupt);
                self.fixture.judge(said("2", "helper, and?"), more).await;
            }
            // One that waits reads the newest text by itself.
            By::Edit if !is_leased => return None,
            By::Edit => {
                let edit = Said {
                    edit_marker: Some("1700000001"),
                    ..said("1", "helper, why?")
                };
                let again = |_: &MessageFacts| with_overlap(Overlap::Queue);
                self.fixture.judge(edit, again).await;
            }
            By::GivingUp | By::DroppingDead if state != State::Leased => return None,
            By::GivingUp => self.give_up().await,
            By::DroppingDead => {
                self.give_up().await;
                store.revive_run(run, false, self.now_ms).await.unwrap();
            }
        }
        Some(())
    }

    async fn give_up(&self) {
        let ending = RunEnding::Dead {
            reason: "no credit".to_owned(),
        };
        let reply = ReplyCommit {
            verdicts: Vec::new(),
            run: self.run.run.id,
            token: self.run.token,
            agent: agent("helper"),
            speaker: agent("helper"),
            speaker_display_name: "Helper".to_owned(),
            before: Vec::new(),
            values: None,
            text: "Sorry".to_owned(),
            kind: TurnKind::Notice,
            ending,
            parts: Vec::new(),
            target: target(),
            live_settle_ms: 0,
            tokens: None,
            usage: Usage::default(),
            now_ms: self.now_ms,
        };
        self.fixture.store.commit_reply(reply).await.unwrap();
    }

    /// What was asked to stop stops, what is in flight arrives, and all there is to send is sent.
    async fn settle(&mut self, state: State) {
        let (run, token) = (self.run.run.id, self.run.token);
        if state == State::LeasedAndKilled {
            let now_ms = self.now_ms;
            let take_back = move |connection: &Connection| {
                crate::acts::runs::take_back_leases_txn(connection, now_ms)
            };
            self.fixture.store.write(take_back).await.unwrap();
        } else {
            // A stale lease writes nothing.
            let store = &self.fixture.store;
            let given_back = store.requeue_run(run, token, self.now_ms, "it stopped", self.now_ms);
            given_back.await.unwrap();
        }
        if let Some(claim) = self.in_flight.take() {
            self.arrive(&claim).await;
        }
        loop {
            let claimed = self.claim_posts().await;
            if claimed.is_empty() {
                return;
            }
            for claim in claimed {
                self.start(&claim).await;
                self.arrive(&claim).await;
            }
        }
    }

    async fn state_of(&self, run: RunId) -> String {
        let read = self.fixture.read(move |connection| {
            let sql = "SELECT state FROM runs WHERE uuid = ?1";
            Ok(connection.query_row(sql, [run], |row| row.get(0))?)
        });
        read.await
    }
}

fn request(fixture: &Fixture, now_ms: i64) -> ClaimRequest {
    ClaimRequest {
        owner: OwnerId::generate(),
        lease_ms: 1_000_000,
        now_ms,
        accounts: vec![fixture.account],
    }
}

#[tokio::test]
async fn no_ending_in_any_state_leaves_the_beginning_of_an_answer() {
    let mut played = 0;
    for by in ENDINGS {
        for state in STATES {
            for at in PLACEHOLDERS {
                let case = format!("{by:?}, {state:?}, {at:?}");
                let mut world = World::new(state, at).await;
                if world.end(by, state).await.is_none() {
                    continue;
                }
                played += 1;
                world.settle(state).await;
                assert_eq!(world.shown, BTreeMap::new(), "{case}");
                let ended = world.state_of(world.run.run.id).await;
                let expected = match by {
                    By::GivingUp => "dead",
                    _ => "cancelled",
                };
                assert_eq!(ended, expected, "{case}");
                let left = "SELECT count(*) FROM outbox
                            WHERE state NOT IN ('sent', 'replaced') OR placeholder_of IS NOT NULL
                               OR instr(payload, 'beginning')";
                assert_eq!(world.fixture.value::<i64>(left).await, 0, "{case}");
            }
        }
    }
    assert_eq!(played, 4 * (5 + 5 + 3 + 4 + 4 + 2 + 1 + 1));
}

#[tokio::test]
async fn a_question_that_is_mentioned_again_is_answered_with_a_placeholder_of_its_own() {
    let mut world = World::new(State::NextAttempt, At::Shown).await;
    world.end(By::Unmention, State::NextAttempt).await;
    world.settle(State::NextAttempt).await;
    let back = Said {
        edit_marker: Some("11"),
        ..said("1", "helper!")
    };
    let again = world.fixture.hear_for(&["helper"], back).await;
    assert_eq!(turn_of(again).new_runs, [world.run.run.id]);
    world.now_ms += 3_600_000;
    let claimed = world
        .fixture
        .store
        .claim_run(request(&world.fixture, world.now_ms), Default::default());
    world.run = claimed.await.unwrap().unwrap();
    world.place(At::Shown).await;
    let shown: Vec<&str> = world.shown.values().map(String::as_str).collect();
    assert_eq!(shown, ["the beginning …"]);
}
