//! What becomes of a placeholder, wherever it stands when its run ends.

use crate::scene::by_hand;
use std::collections::BTreeMap;

use vocative_contract::outbound::{Delivered, Operation, Part, PartStream};

use crate::contract::{
    CommittedReply, LeaseOutcome, NewPlaceholder, OwnPost, Placed, Placeholder, ReplyCommit,
};
use crate::scene::{LEASE_MS, Room, Scene, target};
use vocative_core::ids::OutboxId;
use vocative_core::outbox::ClaimedEntry;
use vocative_core::outbox::OutboxUpdate;
use vocative_core::run::ClaimedRun;

/// What people see, and who posts there.
struct World {
    scene: Scene,
    room: Room,
    run: ClaimedRun,
    /// Texts by message id.
    shown: BTreeMap<String, String>,
    /// Message ids by marker.
    marked: BTreeMap<OutboxId, String>,
    now_ms: i64,
}

/// Where a placeholder stands when its run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Untouched,
    RateLimited,
    Claimed,
    InFlight,
    LostAndThere,
    LostAndNotThere,
    Shown,
    HeldAndThere,
    HeldAndNotThere,
    Dead,
    MadePlain,
    /// Refused as too long while its model writes.
    Resplit,
    /// The same when its answer is there.
    ResplitBehind,
}

const ALL: [At; 13] = [
    At::Untouched,
    At::RateLimited,
    At::Claimed,
    At::InFlight,
    At::LostAndThere,
    At::LostAndNotThere,
    At::Shown,
    At::HeldAndThere,
    At::HeldAndNotThere,
    At::Dead,
    At::MadePlain,
    At::Resplit,
    At::ResplitBehind,
];

impl World {
    /// A run at work, with a placeholder that nobody has looked at.
    async fn new() -> Self {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        scene.ask(&room, "when?", 10).await;
        let run = scene.claim(100).await.unwrap();
        let world = Self {
            scene,
            room,
            run,
            shown: BTreeMap::new(),
            marked: BTreeMap::new(),
            now_ms: 100,
        };
        assert_eq!(world.place("be …").await, Placed::Committed);
        world
    }

    async fn place(&self, text: &str) -> Placed {
        let placeholder = NewPlaceholder {
            run: self.run.run.id,
            token: self.run.token,
            target: target(&self.room),
            part: Part::plain(text),
            now_ms: self.now_ms,
        };
        self.scene
            .store
            .commit_placeholder(placeholder)
            .await
            .unwrap()
    }

    async fn placeholder(&self) -> Option<Placeholder> {
        let (run, token) = (self.run.run.id, self.run.token);
        self.scene.store.placeholder(run, token).await.unwrap()
    }

    async fn claim(&mut self) -> Vec<ClaimedEntry> {
        self.now_ms += 1;
        let request = self.scene.request(self.now_ms);
        self.scene.store.claim_posts(request, 10).await.unwrap()
    }

    async fn claim_one(&mut self) -> ClaimedEntry {
        self.claim().await.pop().expect("a post that may go")
    }

    async fn start(&self, claim: &ClaimedEntry) {
        let (id, token) = (claim.entry.id, claim.token);
        let started = self
            .scene
            .store
            .mark_send_started(id, token, self.now_ms)
            .await;
        assert_eq!(started.unwrap(), LeaseOutcome::Written);
    }

    async fn update(&self, claim: &ClaimedEntry, update: OutboxUpdate) {
        let (id, token) = (claim.entry.id, claim.token);
        let updated = self.scene.store.update_post(id, token, update, self.now_ms);
        assert_eq!(updated.await.unwrap(), LeaseOutcome::Written);
    }

    /// What the platform does with a request.
    fn apply(&mut self, claim: &ClaimedEntry) -> OutboxUpdate {
        let entry = &claim.entry;
        let text = entry.part.text.clone();
        let message_id = match &entry.operation {
            Operation::Edit { message_id } | Operation::Delete { message_id } => message_id.clone(),
            _ => format!("p{}", self.shown.len()),
        };
        match &entry.operation {
            Operation::Delete { .. } => {
                self.shown.remove(&message_id);
            }
            Operation::Edit { .. } if !self.shown.contains_key(&message_id) => {
                return OutboxUpdate::Replace {
                    parts: vec![entry.part.clone()],
                    target: entry.target.clone(),
                    operation: Operation::Post,
                    reason: "message_not_found".to_owned(),
                };
            }
            _ => {
                self.marked.insert(entry.id, message_id.clone());
                self.shown.insert(message_id.clone(), text);
            }
        }
        OutboxUpdate::Sent(Delivered {
            chat: entry.target.chat.clone(),
            message_id,
            sent_at_ms: self.now_ms,
            shown: None,
        })
    }

    async fn send(&mut self, claim: &ClaimedEntry) {
        self.start(claim).await;
        let update = self.apply(claim);
        self.update(claim, update).await;
    }

    /// Does all there is to do, as the delivery worker does; what was lost is looked for.
    async fn drain(&mut self) {
        for _ in 0..30 {
            for claim in self.claim().await {
                if !claim.is_unknown || claim.entry.operation.is_repeatable() {
                    self.send(&claim).await;
                    continue;
                }
                let update = match self.marked.get(&claim.entry.id) {
                    Some(message_id) => OutboxUpdate::Sent(Delivered {
                        chat: "C1".to_owned(),
                        message_id: message_id.clone(),
                        sent_at_ms: self.now_ms,
                        shown: None,
                    }),
                    None => OutboxUpdate::Resend {
                        reason: "not there".to_owned(),
                    },
                };
                self.update(&claim, update).await;
            }
            self.now_ms += LEASE_MS;
        }
    }

    /// Brings the placeholder there. Returns what is to happen once the run has ended.
    async fn bring(&mut self, at: At) -> Option<ClaimedEntry> {
        let reason = || at_reason(at);
        match at {
            At::Untouched => {}
            At::Claimed => return Some(self.claim_one().await),
            At::InFlight | At::ResplitBehind => {
                let claim = self.claim_one().await;
                self.start(&claim).await;
                return Some(claim);
            }
            At::RateLimited => {
                let claim = self.claim_one().await;
                self.start(&claim).await;
                let not_before_ms = self.now_ms + 1;
                let retry = OutboxUpdate::Retry {
                    not_before_ms,
                    reason: reason(),
                };
                self.update(&claim, retry).await;
            }
            At::LostAndThere | At::LostAndNotThere | At::HeldAndThere | At::HeldAndNotThere => {
                let claim = self.claim_one().await;
                self.start(&claim).await;
                if matches!(at, At::LostAndThere | At::HeldAndThere) {
                    self.apply(&claim);
                }
                let not_before_ms = self.now_ms;
                let update = match at {
                    At::LostAndThere | At::LostAndNotThere => OutboxUpdate::Look {
                        not_before_ms,
                        reason: reason(),
                    },
                    _ => OutboxUpdate::Hold { reason: reason() },
                };
                self.update(&claim, update).await;
            }
            At::Shown => {
                let claim = self.claim_one().await;
                self.send(&claim).await;
            }
            At::Dead => {
                let claim = self.claim_one().await;
                self.start(&claim).await;
                self.update(&claim, OutboxUpdate::Dead { reason: reason() })
                    .await;
            }
            At::MadePlain | At::Resplit => {
                let claim = self.claim_one().await;
                self.update(&claim, self.replaced(at)).await;
                let claim = self.claim_one().await;
                self.send(&claim).await;
            }
        }
        None
    }

    /// What comes in the place of a refused placeholder.
    fn replaced(&self, at: At) -> OutboxUpdate {
        let parts: &[&str] = match at {
            At::MadePlain => &["be"],
            _ => &["be", "gins …"],
        };
        OutboxUpdate::Replace {
            parts: parts.iter().map(|part| Part::plain(*part)).collect(),
            target: target(&self.room),
            operation: Operation::Post,
            reason: at_reason(at),
        }
    }

    fn answer(&self, parts: &[&str]) -> ReplyCommit {
        let mut answer = self.scene.answer(&self.run, &self.room, &parts.concat());
        answer.parts = parts.iter().map(|part| Part::plain(*part)).collect();
        answer.now_ms = self.now_ms;
        answer
    }

    async fn commit(&self, parts: &[&str]) -> CommittedReply {
        let answer = self.answer(parts);
        self.scene.store.commit_reply(answer).await.unwrap()
    }

    /// What was in flight arrives, and a person decides about what is held.
    async fn end(&mut self, at: At, in_flight: Option<ClaimedEntry>) {
        if let Some(claim) = in_flight {
            if at == At::Claimed {
                self.start(&claim).await;
            }
            let update = match at {
                At::ResplitBehind => self.replaced(at),
                _ => self.apply(&claim),
            };
            self.update(&claim, update).await;
        }
        self.drain().await;
        for held in self.scene.store.stuck_posts(9).await.unwrap() {
            let send = at == At::HeldAndNotThere;
            let released = self.scene.store.release_post(held.id, send, self.now_ms);
            released.await.unwrap();
        }
        self.drain().await;
    }

    fn texts(&self) -> Vec<&str> {
        self.shown.values().map(String::as_str).collect()
    }
}

fn at_reason(at: At) -> String {
    format!("{at:?}")
}

#[tokio::test]
async fn wherever_a_placeholder_stands_the_answer_is_there_once() {
    for at in ALL {
        let mut world = World::new().await;
        let in_flight = world.bring(at).await;
        let committed = world.commit(&["one", "two"]).await;
        let CommittedReply::Written { turn, posts } = committed else {
            panic!("{at:?}: {committed:?}");
        };
        assert_eq!(posts.len(), 2, "{at:?}");
        world.end(at, in_flight).await;
        // What a person said is not there, and was, stays: nobody can take it away.
        let mut expected = vec!["one", "two"];
        if at == At::HeldAndThere {
            expected.insert(0, "be …");
        }
        assert_eq!(world.texts(), expected, "{at:?}");
        let details = world.scene.store.turn_details(world.room.id, 9).await;
        let details = details.unwrap();
        let reply = details.iter().find(|it| it.turn.id == turn).unwrap();
        let ids = world.shown.iter();
        let ids = ids.filter(|(_, text)| !text.ends_with('…'));
        let ids: Vec<&str> = ids.map(|(id, _)| id.as_str()).collect();
        let mut known = reply.message_ids.clone();
        if at == At::ResplitBehind {
            // What comes in the place of a part has a number behind all others.
            known.sort();
        }
        assert_eq!(known, ids, "{at:?}");
        assert_eq!(
            world.scene.store.stuck_posts(9).await.unwrap(),
            [],
            "{at:?}"
        );
        let left = "SELECT count(*) FROM outbox
                    WHERE state NOT IN ('sent', 'replaced', 'dead') OR placeholder_of IS NOT NULL";
        assert_eq!(world.scene.value::<i64>(left).await, 0, "{at:?}");
    }
}

#[tokio::test]
async fn a_held_post_that_says_the_whole_first_part_and_is_found_is_not_posted_anew() {
    let mut world = World::new().await;
    let in_flight = world.bring(At::HeldAndThere).await;
    world.commit(&["be …", "two"]).await;
    world.end(At::HeldAndThere, in_flight).await;
    assert_eq!(world.texts(), ["be …", "two"]);
}

#[tokio::test]
async fn what_a_person_dropped_before_the_answer_is_said_again_only_if_the_answer_says_something_else()
 {
    for (first, expected) in [
        ("be …", vec!["be …", "two"]),
        ("one", vec!["be …", "one", "two"]),
    ] {
        let mut world = World::new().await;
        let in_flight = world.bring(At::HeldAndThere).await;
        world.end(At::HeldAndThere, in_flight).await;
        world.commit(&[first, "two"]).await;
        world.drain().await;
        assert_eq!(world.texts(), expected);
        assert_eq!(world.scene.store.stuck_posts(9).await.unwrap(), []);
    }
}

#[tokio::test]
async fn what_a_person_dropped_is_not_posted_again_as_the_beginning_of_an_answer_that_was_too_long()
{
    let mut world = World::new().await;
    world.bring(At::HeldAndThere).await;
    world.commit(&["be …gins", "two"]).await;
    let held = world.scene.store.stuck_posts(9).await.unwrap();
    let dropped = (world.scene.store).release_post(held[0].id, false, world.now_ms);
    dropped.await.unwrap();
    let answer = world.claim_one().await;
    world.start(&answer).await;
    let too_long = OutboxUpdate::Replace {
        parts: ["be …", "gins"].map(Part::plain).to_vec(),
        target: target(&world.room),
        operation: Operation::Post,
        reason: "too long".to_owned(),
    };
    world.update(&answer, too_long).await;
    world.drain().await;
    assert_eq!(world.texts(), ["be …", "gins", "two"]);
}

#[tokio::test]
async fn one_that_was_to_be_streamed_is_still_known_as_such_when_it_is_taken_back() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    scene.ask(&room, "when?", 10).await;
    let run = scene.claim(100).await.unwrap();
    let part = Part::plain("be …").streamed(PartStream {
        text: "be".to_owned(),
        person: Some("U1".to_owned()),
    });
    let placeholder = NewPlaceholder {
        run: run.run.id,
        token: run.token,
        target: target(&room),
        part,
        now_ms: 100,
    };
    let store = &scene.store;
    store.commit_placeholder(placeholder).await.unwrap();
    let claim = store.claim_posts(scene.request(101), 1).await.unwrap();
    let (id, token) = (claim[0].entry.id, claim[0].token);
    store.mark_send_started(id, token, 101).await.unwrap();
    let look = OutboxUpdate::Look {
        not_before_ms: 102,
        reason: "nobody knows".to_owned(),
    };
    store.update_post(id, token, look, 101).await.unwrap();
    let mut silent = scene.answer(&run, &room, "");
    silent.parts.clear();
    store.commit_reply(silent).await.unwrap();
    let claim = store.claim_posts(scene.request(103), 1).await.unwrap();
    assert!(claim[0].is_unknown);
    let part = &claim[0].entry.part;
    // It is looked for by how it stands; what it said is kept no longer.
    assert_eq!(
        (
            part.text.as_str(),
            part.stream.as_ref().unwrap().text.as_str()
        ),
        ("…", "")
    );
}

#[tokio::test]
async fn a_run_that_ends_without_a_word_takes_its_placeholder_back() {
    for at in ALL {
        for is_cancelled in [true, false] {
            let mut world = World::new().await;
            let in_flight = world.bring(at).await;
            if is_cancelled {
                let store = &world.scene.store;
                let run = world.run.run.id;
                store
                    .cancel_run(run, by_hand("a person"), world.now_ms)
                    .await
                    .unwrap();
                assert_eq!(world.commit(&["one"]).await, CommittedReply::Cancelled);
            } else {
                world.commit(&[]).await;
            }
            world.end(at, in_flight).await;
            // Nobody can say of a held one whether it is there.
            let expected: &[&str] = match at {
                At::HeldAndThere => &["be …"],
                _ => &[],
            };
            assert_eq!(world.texts(), expected, "{at:?}");
            // Nothing is posted only to be deleted.
            if matches!(
                at,
                At::RateLimited | At::LostAndNotThere | At::ResplitBehind
            ) {
                assert_eq!(world.marked.len(), 0, "{at:?}");
            }
            let texts = "SELECT group_concat(payload, ' ') FROM outbox";
            let texts = world.scene.value::<String>(texts).await;
            assert!(!texts.contains("be"), "{at:?}: {texts}");
        }
    }
}

#[tokio::test]
async fn another_attempt_finds_the_placeholder_of_the_one_before() {
    let mut world = World::new().await;
    world.bring(At::Shown).await;
    let (run, token) = (world.run.run.id, world.run.token);
    let store = world.scene.store.clone();
    let now_ms = world.now_ms;
    let requeued = store
        .requeue_run(run, token, now_ms, "failed", now_ms)
        .await;
    assert_eq!(requeued.unwrap(), LeaseOutcome::Written);
    assert_eq!(world.place("too late").await, Placed::Refused);
    assert_eq!(world.placeholder().await, None);

    world.run = world.scene.claim(now_ms).await.unwrap();
    assert_eq!(world.place("again …").await, Placed::Found);
    let shown = Placeholder::Shown {
        chat: "C1".to_owned(),
        message_id: "p0".to_owned(),
    };
    assert_eq!(world.placeholder().await, Some(shown));
    // An edit of the attempt before may be on its way for two seconds.
    let mut answer = world.answer(&["the answer"]);
    answer.live_settle_ms = 2_000;
    let due_ms = answer.now_ms + 2_000;
    store.commit_reply(answer).await.unwrap();
    assert_eq!(store.next_post_due_ms().await.unwrap(), Some(due_ms));
    world.now_ms = due_ms;
    world.drain().await;
    assert_eq!(world.texts(), ["the answer"]);
}

#[tokio::test]
async fn a_placeholder_is_not_made_for_a_run_that_is_to_stop() {
    let world = World::new().await;
    let run = world.run.run.id;
    let store = &world.scene.store;
    store
        .cancel_run(run, by_hand("a person"), 200)
        .await
        .unwrap();
    assert_eq!(world.place("be …").await, Placed::Refused);
    assert_eq!(world.placeholder().await, None);
}

#[tokio::test]
async fn an_answer_whose_message_is_gone_is_posted_and_known_by_the_new_one() {
    let mut world = World::new().await;
    world.bring(At::Shown).await;
    world.commit(&["the answer"]).await;
    world.shown.clear();
    world
        .shown
        .insert("other".to_owned(), "somebody".to_owned());
    world.drain().await;
    assert_eq!(world.texts(), ["somebody", "the answer"]);
    let details = world.scene.store.turn_details(world.room.id, 9).await;
    let reply = details.unwrap().pop().unwrap();
    assert_eq!(reply.message_ids, ["p1"]);
    let gone = "SELECT gone FROM messages WHERE platform_id = 'p0'";
    assert_eq!(world.scene.value::<String>(gone).await, "deleted");
}

#[tokio::test]
async fn the_echo_of_a_placeholder_confirms_it_before_and_after_the_answer() {
    for is_late in [false, true] {
        let mut world = World::new().await;
        let claim = world.claim_one().await;
        world.start(&claim).await;
        world.apply(&claim);
        let echo = OwnPost {
            account: world.scene.account,
            place: vocative_contract::envelope::Place {
                chat: "C1".to_owned(),
                ..Default::default()
            },
            message_id: "p0".to_owned(),
            marker: Some(claim.entry.id.to_string()),
            judge_follow_up: None,
            now_ms: world.now_ms,
        };
        let store = world.scene.store.clone();
        if is_late {
            world.commit(&["the answer"]).await;
            store.confirm_own_post(echo).await.unwrap();
        } else {
            store.confirm_own_post(echo).await.unwrap();
            world.commit(&["the answer"]).await;
        }
        world.drain().await;
        assert_eq!(world.texts(), ["the answer"], "{is_late}");
        let known = "SELECT count(*) FROM messages WHERE platform_id = 'p0' AND turn_seq =
                     (SELECT max(seq) FROM turns)";
        assert_eq!(world.scene.value::<i64>(known).await, 1, "{is_late}");
    }
}

#[tokio::test]
async fn a_post_is_looked_for_from_the_first_question_on_whatever_its_run_was_asked_later() {
    let mut world = World::new().await;
    let later = world.scene.say(&world.room, "and where?", 5_000).await;
    let joins = world.scene.write(move |connection| {
        let sql = "INSERT INTO run_triggers (run_id, turn_seq, agent, revision)
                   SELECT id, ?1, agent, 1 FROM runs";
        Ok(connection.execute(sql, [later.seq])?)
    });
    assert_eq!(joins.await, 1);
    assert_eq!(world.claim_one().await.entry.later_than_ms, Some(10));
}
