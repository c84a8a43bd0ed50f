//! What becomes of a placeholder, wherever it stands when its run ends.

use vocative_contract::envelope::Place;
use vocative_contract::outbound::{Operation, Part, PartStream};
use vocative_core::addressing::{Overlap, Verdict};
use vocative_core::outbox::{ClaimedEntry, OutboxUpdate};
use vocative_core::run::ClaimedRun;
use vocative_store::contract::{
    Captured, CommittedReply, LeaseOutcome, NewPlaceholder, OwnPost, Placed, Placeholder,
};

use crate::said::{admitted, agent};
use crate::scene::{by_hand, target};
use crate::world::World;

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

/// A run at work, and the room that it answers in.
struct AtWork {
    world: World,
    run: ClaimedRun,
}

impl AtWork {
    /// A run whose placeholder nobody has looked at yet.
    async fn new() -> Self {
        Self::with(Part::plain("be …")).await
    }

    async fn with(placeholder: Part) -> Self {
        let world = World::at(100).await;
        world.scene.ask("C1", "when?", 10).await;
        let run = world.scene.claim(100).await.unwrap();
        let it = Self { world, run };
        assert_eq!(it.place(placeholder).await, Placed::Committed);
        it
    }

    /// The same, with its placeholder brought somewhere.
    async fn brought(at: At) -> Self {
        let mut it = Self::new().await;
        it.bring(at).await;
        it
    }

    async fn place(&self, part: Part) -> Placed {
        let placeholder = NewPlaceholder {
            run: self.run.run.id,
            token: self.run.token,
            target: target("C1"),
            part,
            now_ms: self.world.now_ms,
        };
        let placed = self.world.scene.store.commit_placeholder(placeholder);
        placed.await.unwrap()
    }

    async fn placeholder(&self) -> Option<Placeholder> {
        let (run, token) = (self.run.run.id, self.run.token);
        let store = &self.world.scene.store;
        store.placeholder(run, token).await.unwrap()
    }

    async fn cancel(&self) {
        let (run, now_ms) = (self.run.run.id, self.world.now_ms);
        let store = &self.world.scene.store;
        let cancelled = store.cancel_run(run, by_hand("a person"), now_ms);
        cancelled.await.unwrap();
    }

    async fn commit(&self, parts: &[&str]) -> CommittedReply {
        self.world.commit(&self.run, parts).await
    }

    /// Brings the placeholder there. Returns what is to happen once the run has ended.
    async fn bring(&mut self, at: At) -> Option<ClaimedEntry> {
        if at == At::Untouched {
            return None;
        }
        let world = &mut self.world;
        let claim = world.claim_post().await;
        match at {
            At::Claimed => return Some(claim),
            At::MadePlain | At::Resplit => {
                world.update(&claim, replaced(at)).await;
                let claim = world.claim_post().await;
                world.send(&claim).await;
                return None;
            }
            _ => world.start(&claim).await,
        }
        let (reason, not_before_ms) = (format!("{at:?}"), world.now_ms);
        let update = match at {
            At::InFlight | At::ResplitBehind => return Some(claim),
            At::RateLimited => OutboxUpdate::Retry {
                not_before_ms: not_before_ms + 1,
                reason,
            },
            At::LostAndThere | At::LostAndNotThere => OutboxUpdate::Look {
                not_before_ms,
                reason,
            },
            At::HeldAndThere | At::HeldAndNotThere => OutboxUpdate::Hold { reason },
            At::Dead => OutboxUpdate::Dead { reason },
            _ => world.apply(&claim),
        };
        if matches!(at, At::LostAndThere | At::HeldAndThere) {
            world.apply(&claim);
        }
        world.update(&claim, update).await;
        None
    }

    /// What was in flight arrives, and a person decides about what is held.
    async fn end(&mut self, at: At, in_flight: Option<ClaimedEntry>) {
        let world = &mut self.world;
        match in_flight {
            None => {}
            Some(claim) if at == At::ResplitBehind => world.update(&claim, replaced(at)).await,
            Some(claim) if at == At::Claimed => world.send(&claim).await,
            Some(claim) => world.arrive(&claim).await,
        }
        world.drain().await;
        let store = world.scene.store.clone();
        for held in store.stuck_posts(9).await.unwrap() {
            let send = at == At::HeldAndNotThere;
            let released = store.release_post(held.id, send, world.now_ms);
            released.await.unwrap();
        }
        world.drain().await;
        assert_eq!(store.stuck_posts(9).await.unwrap(), [], "{at:?}");
    }
}

/// What comes in the place of a refused placeholder.
fn replaced(at: At) -> OutboxUpdate {
    let parts: &[&str] = match at {
        At::MadePlain => &["be"],
        _ => &["be", "gins …"],
    };
    OutboxUpdate::Replace {
        parts: parts.iter().map(|part| Part::plain(*part)).collect(),
        target: target("C1"),
        operation: Operation::Post,
        reason: format!("{at:?}"),
    }
}

#[tokio::test]
async fn wherever_a_placeholder_stands_the_answer_is_there_once() {
    for at in ALL {
        let mut it = AtWork::new().await;
        let in_flight = it.bring(at).await;
        let committed = it.commit(&["one", "two"]).await;
        let CommittedReply::Written { turn, posts } = committed else {
            panic!("{at:?}: {committed:?}");
        };
        assert_eq!(posts.len(), 2, "{at:?}");
        it.end(at, in_flight).await;
        // What a person said is not there, and was, stays: nobody can take it away.
        let mut expected = vec!["one", "two"];
        if at == At::HeldAndThere {
            expected.insert(0, "be …");
        }
        assert_eq!(it.world.texts(), expected, "{at:?}");
        let room = it.run.run.conversation;
        let details = it.world.scene.store.turn_details(room, 9).await.unwrap();
        let mut reply = details.into_iter().find(|it| it.turn.id == turn).unwrap();
        let ids = it.world.shown.iter();
        let ids = ids.filter(|(_, text)| !text.ends_with('…'));
        let ids: Vec<&String> = ids.map(|(id, _)| id).collect();
        if at == At::ResplitBehind {
            // What comes in the place of a part has a number behind all others.
            reply.message_ids.sort();
        }
        assert!(reply.message_ids.iter().eq(ids), "{at:?}: {reply:?}");
    }
}

#[tokio::test]
async fn a_held_post_that_says_the_whole_first_part_and_is_found_is_not_posted_anew() {
    let mut it = AtWork::brought(At::HeldAndThere).await;
    it.commit(&["be …", "two"]).await;
    it.end(At::HeldAndThere, None).await;
    assert_eq!(it.world.texts(), ["be …", "two"]);
}

#[tokio::test]
async fn what_a_person_dropped_before_the_answer_is_said_again_only_if_the_answer_says_something_else()
 {
    for (first, expected) in [
        ("be …", vec!["be …", "two"]),
        ("one", vec!["be …", "one", "two"]),
    ] {
        let mut it = AtWork::brought(At::HeldAndThere).await;
        it.end(At::HeldAndThere, None).await;
        it.commit(&[first, "two"]).await;
        it.end(At::HeldAndThere, None).await;
        assert_eq!(it.world.texts(), expected);
    }
}

#[tokio::test]
async fn what_a_person_dropped_is_not_posted_again_as_the_beginning_of_an_answer_that_was_too_long()
{
    let mut it = AtWork::brought(At::HeldAndThere).await;
    it.commit(&["be … gins", "two"]).await;
    let store = it.world.scene.store.clone();
    let held = store.stuck_posts(9).await.unwrap();
    let dropped = store.release_post(held[0].id, false, it.world.now_ms);
    dropped.await.unwrap();
    let answer = it.world.claim_post().await;
    it.world.start(&answer).await;
    let too_long = OutboxUpdate::Replace {
        parts: ["be …", "gins"].map(Part::plain).to_vec(),
        target: target("C1"),
        operation: Operation::Post,
        reason: "too long".to_owned(),
    };
    it.world.update(&answer, too_long).await;
    it.world.drain().await;
    assert_eq!(it.world.texts(), ["be …", "gins", "two"]);
}

#[tokio::test]
async fn one_that_was_to_be_streamed_is_still_known_as_such_when_it_is_taken_back() {
    let stream = PartStream {
        text: "be".to_owned(),
        person: Some("U1".to_owned()),
    };
    let mut it = AtWork::with(Part::plain("be …").streamed(stream)).await;
    it.bring(At::LostAndNotThere).await;
    it.commit(&[]).await;
    let claim = it.world.claim_post().await;
    assert!(claim.is_unknown);
    // It is looked for by how it stands; what it said is kept no longer.
    let part = claim.entry.part;
    assert_eq!(part.text, "…");
    assert_eq!(part.stream.unwrap().text, "");
}

#[tokio::test]
async fn a_run_that_ends_without_a_word_takes_its_placeholder_back() {
    for at in ALL {
        for is_cancelled in [true, false] {
            let mut it = AtWork::new().await;
            let in_flight = it.bring(at).await;
            if is_cancelled {
                it.cancel().await;
                assert_eq!(it.commit(&["one"]).await, CommittedReply::Cancelled);
            } else {
                it.commit(&[]).await;
            }
            it.end(at, in_flight).await;
            // Nobody can say of a held one whether it is there.
            let expected: &[&str] = match at {
                At::HeldAndThere => &["be …"],
                _ => &[],
            };
            assert_eq!(it.world.texts(), expected, "{at:?}");
            // Nothing is posted only to be deleted.
            if matches!(
                at,
                At::RateLimited | At::LostAndNotThere | At::ResplitBehind
            ) {
                assert_eq!(it.world.posted, 0, "{at:?}");
            }
        }
    }
}

#[tokio::test]
async fn another_attempt_finds_the_placeholder_of_the_one_before() {
    let mut it = AtWork::brought(At::Shown).await;
    let (run, token, now_ms) = (it.run.run.id, it.run.token, it.world.now_ms);
    let store = it.world.scene.store.clone();
    let requeued = store.requeue_run(run, token, now_ms, "failed", now_ms);
    assert_eq!(requeued.await.unwrap(), LeaseOutcome::Written);
    assert_eq!(it.place(Part::plain("too late")).await, Placed::Refused);
    assert_eq!(it.placeholder().await, None);

    it.run = it.world.scene.claim(now_ms).await.unwrap();
    assert_eq!(it.place(Part::plain("again …")).await, Placed::Found);
    let shown = Placeholder::Shown {
        chat: "C1".to_owned(),
        message_id: "p0".to_owned(),
    };
    assert_eq!(it.placeholder().await, Some(shown));
    // An edit of the attempt before may be on its way for two seconds.
    let mut answer = it.world.answer(&it.run, &["the answer"]).await;
    answer.live_settle_ms = 2_000;
    let due_ms = answer.now_ms + 2_000;
    store.commit_reply(answer).await.unwrap();
    assert_eq!(store.next_post_due_ms().await.unwrap(), Some(due_ms));
    it.world.now_ms = due_ms;
    it.world.drain().await;
    assert_eq!(it.world.texts(), ["the answer"]);
}

#[tokio::test]
async fn a_placeholder_is_not_made_for_a_run_that_is_to_stop() {
    let it = AtWork::new().await;
    it.cancel().await;
    assert_eq!(it.place(Part::plain("be …")).await, Placed::Refused);
    assert_eq!(it.placeholder().await, None);
}

#[tokio::test]
async fn an_answer_whose_message_is_gone_is_posted_and_known_by_the_new_one() {
    let mut it = AtWork::brought(At::Shown).await;
    it.commit(&["the answer"]).await;
    it.world.shown.clear();
    it.world.drain().await;
    assert_eq!(it.world.texts(), ["the answer"]);
    let scene = &it.world.scene;
    let details = scene.store.turn_details(it.run.run.conversation, 9).await;
    let reply = details.unwrap().pop().unwrap();
    assert_eq!(reply.message_ids, ["p1"]);
    // What is told of the old one later is told of nothing.
    let mut late = scene.next_message("C1", "be …", 50, admitted(&[]));
    late.message_id = "p0".to_owned();
    let late = scene.store.capture_message(late).await.unwrap();
    assert_eq!(late, Captured::Tombstone);
}

#[tokio::test]
async fn the_echo_of_a_placeholder_confirms_it_before_and_after_the_answer() {
    for is_late in [false, true] {
        let mut it = AtWork::new().await;
        let claim = it.world.claim_post().await;
        it.world.start(&claim).await;
        it.world.apply(&claim);
        let echo = OwnPost {
            account: it.world.scene.account,
            place: Place {
                chat: "C1".to_owned(),
                ..Place::default()
            },
            message_id: "p0".to_owned(),
            marker: Some(claim.entry.id.to_string()),
            judge_follow_up: None,
            now_ms: it.world.now_ms,
        };
        let store = it.world.scene.store.clone();
        if is_late {
            it.commit(&["the answer"]).await;
            store.confirm_own_post(echo).await.unwrap();
        } else {
            store.confirm_own_post(echo).await.unwrap();
            it.commit(&["the answer"]).await;
        }
        it.world.drain().await;
        assert_eq!(it.world.texts(), ["the answer"], "{is_late}");
        let details = store.turn_details(it.run.run.conversation, 9).await;
        let reply = details.unwrap().pop().unwrap();
        assert_eq!(reply.message_ids, ["p0"], "{is_late}");
    }
}

#[tokio::test]
async fn a_post_is_looked_for_from_the_first_question_on_whatever_its_run_was_asked_later() {
    let mut world = World::at(6_000).await;
    for (text, at_ms) in [("when?", 10), ("and where?", 5_000)] {
        let verdict = Verdict {
            overlaps: [(agent("helper"), Overlap::Collect)].into(),
            ..admitted(&["helper"])
        };
        world.scene.say_with("C1", text, at_ms, verdict).await;
    }
    let run = world.scene.claim(6_000).await.unwrap();
    assert_eq!(run.run.triggers.len(), 2);
    world.commit(&run, &["at noon"]).await;
    assert_eq!(world.claim_post().await.entry.later_than_ms, Some(10));
}
