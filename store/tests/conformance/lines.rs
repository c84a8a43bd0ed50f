//! Lines of posts: what holds back whom within a chat, and what becomes of posts in a chat that refuses
//! them.

use vocative_contract::envelope::Place;
use vocative_contract::outbound::{Delivered, Operation, Part, Target};
use vocative_core::outbox::{ClaimedEntry, OutboxUpdate};

use crate::scene::Scene;

const DAY_MS: i64 = 86_400_000;

/// A chat with threads, in which the agent was asked often enough.
struct World {
    scene: Scene,
    now_ms: i64,
}

impl World {
    async fn new() -> Self {
        let scene = Scene::open().await;
        for at_ms in 0..25 {
            scene.ask("C1", "please", at_ms).await;
        }
        Self {
            scene,
            now_ms: 1_000,
        }
    }

    /// Commits an answer in parts into a thread; "" = the top of the chat.
    async fn post(&self, thread: &str, texts: &[&str]) {
        let run = self.scene.claim(self.now_ms).await.unwrap();
        let mut answer = self.scene.answer(&run, &texts.concat()).await;
        answer.parts = texts.iter().map(|text| Part::plain(*text)).collect();
        answer.target = target(thread);
        answer.now_ms = self.now_ms;
        self.scene.store.commit_reply(answer).await.unwrap();
    }

    async fn claim(&mut self) -> Vec<ClaimedEntry> {
        self.now_ms += 1;
        self.scene.claim_posts(self.now_ms).await
    }

    async fn claim_one(&mut self, text: &str) -> ClaimedEntry {
        let claimed = self.claim().await;
        let texts: Vec<&str> = claimed
            .iter()
            .map(|it| it.entry.part.text.as_str())
            .collect();
        assert_eq!(texts, [text]);
        claimed.into_iter().next().unwrap()
    }

    async fn update(&self, claim: &ClaimedEntry, update: OutboxUpdate) {
        self.scene.start(claim, self.now_ms).await;
        self.scene.update(claim, update, self.now_ms).await;
    }

    async fn send(&self, claim: &ClaimedEntry) {
        let sent = OutboxUpdate::Sent(Delivered {
            chat: "C1".to_owned(),
            message_id: format!("p{}", claim.entry.id),
            sent_at_ms: self.now_ms,
            shown: None,
        });
        self.update(claim, sent).await;
    }

    /// Sends all that may go, and returns the texts in order.
    async fn drain(&mut self) -> Vec<String> {
        let mut sent = Vec::new();
        loop {
            let claimed = self.claim().await;
            assert!(claimed.len() <= 1, "one post of a chat is in flight");
            let Some(claim) = claimed.into_iter().next() else {
                return sent;
            };
            self.send(&claim).await;
            sent.push(claim.entry.part.text);
        }
    }

    fn park(&self) -> OutboxUpdate {
        OutboxUpdate::ParkChat {
            not_before_ms: self.now_ms + 3_600_000,
            keep_ms: DAY_MS,
            reason: "not_in_channel".to_owned(),
        }
    }

    async fn states(&self) -> String {
        let posts = self.scene.posts().await;
        let states: Vec<&str> = posts.iter().map(|post| post.state.name()).collect();
        states.join(",")
    }
}

fn target(thread: &str) -> Target {
    Target {
        chat: "C1".to_owned(),
        thread: Some(thread.to_owned()).filter(|thread| !thread.is_empty()),
        topic: None,
        reply_to: None,
    }
}

fn look(not_before_ms: i64) -> OutboxUpdate {
    OutboxUpdate::Look {
        not_before_ms,
        reason: "timed out".to_owned(),
    }
}

#[tokio::test]
async fn a_post_of_unknown_outcome_holds_back_only_its_thread() {
    let mut world = World::new().await;
    world.post("1.1", &["one", "two"]).await;
    world.post("2.2", &["three"]).await;
    world.post("", &["four"]).await;
    world.post("1.1", &["five"]).await;
    let lost = world.claim_one("one").await;
    world.update(&lost, look(world.now_ms + 60_000)).await;
    assert_eq!(world.drain().await, ["three", "four"]);
    assert_eq!(
        world.scene.store.next_post_due_ms().await.unwrap(),
        Some(61_001)
    );
    world.now_ms = 61_001;
    let found = world.claim_one("one").await;
    assert!(found.is_unknown);
    world.send(&found).await;
    assert_eq!(world.drain().await, ["two", "five"]);
}

#[tokio::test]
async fn a_chat_has_one_post_in_flight_and_its_lines_take_turns_by_age() {
    let mut world = World::new().await;
    for (thread, text) in [
        ("2.2", "one"),
        ("1.1", "two"),
        ("", "three"),
        ("1.1", "four"),
    ] {
        world.post(thread, &[text]).await;
    }
    let first = world.claim_one("one").await;
    assert!(world.claim().await.is_empty());
    world.send(&first).await;
    assert_eq!(world.drain().await, ["two", "three", "four"]);
}

#[tokio::test]
async fn what_the_platform_takes_later_holds_back_the_whole_chat_once() {
    let mut world = World::new().await;
    for number in 0..20 {
        world.post(&format!("{number}.1"), &["a post"]).await;
    }
    let refused = world.claim_one("a post").await;
    let rest = OutboxUpdate::Rest {
        until_ms: 60_000,
        reason: "429".to_owned(),
    };
    world.update(&refused, rest).await;
    assert!(world.claim().await.is_empty());
    let due_ms = world.scene.store.next_post_due_ms().await.unwrap();
    assert_eq!(due_ms, Some(60_000));
    world.now_ms = 60_000;
    assert_eq!(world.drain().await.len(), 20);
    let posts = world.scene.posts().await;
    let attempts: u32 = posts.iter().map(|post| post.attempts).sum();
    assert_eq!(attempts, 21);
}

#[tokio::test]
async fn parts_of_one_answer_keep_their_order_also_where_one_of_them_leaves_its_thread() {
    let mut world = World::new().await;
    world.post("1.1", &["one", "two"]).await;
    let refused = world.claim_one("one").await;
    let outside = OutboxUpdate::Replace {
        parts: vec![Part::plain("one, outside")],
        target: target(""),
        operation: Operation::Post,
        reason: "thread_not_found".to_owned(),
    };
    world.update(&refused, outside).await;
    let lost = world.claim_one("one, outside").await;
    world.update(&lost, look(world.now_ms + 60_000)).await;
    assert!(world.claim().await.is_empty());
    world.now_ms += 60_000;
    assert_eq!(world.drain().await, ["one, outside", "two"]);
}

/// How a chat that refused posts comes to take them again.
#[derive(Clone, Copy, Debug)]
enum Back {
    Invited,
    Heard,
    /// Nothing tells of it: the hourly attempt works.
    Unheard,
}

#[tokio::test]
async fn a_bot_that_is_invited_again_posts_what_waited_less_than_a_day() {
    for back in [Back::Invited, Back::Heard, Back::Unheard] {
        let mut world = World::new().await;
        world.post("", &["old"]).await;
        world.post("1.1", &["old, in a thread"]).await;
        let refused = world.claim_one("old").await;
        world.update(&refused, world.park()).await;
        assert!(world.claim().await.is_empty(), "{back:?}");
        world.now_ms += DAY_MS / 2;
        world.post("2.2", &["young"]).await;
        world.now_ms += DAY_MS / 2;
        let (account, now_ms) = (world.scene.account, world.now_ms);
        let place = Place {
            chat: "C1".to_owned(),
            ..Place::default()
        };
        match back {
            Back::Invited => {
                let store = &world.scene.store;
                let joined = store.record_membership(account, place, true, None, now_ms);
                joined.await.unwrap();
            }
            Back::Heard => {
                world.scene.say("C1", "back?", now_ms).await;
            }
            Back::Unheard => assert!(world.claim().await.is_empty()),
        }
        assert_eq!(world.drain().await, ["young"], "{back:?}");
        assert_eq!(world.states().await, "dead,dead,sent", "{back:?}");
        // From here on it is a chat like any other: what waits for something else does not grow old.
        world.post("", &["later"]).await;
        world.now_ms += 2 * DAY_MS;
        assert_eq!(world.drain().await, ["later"], "{back:?}");
    }
}

#[tokio::test]
async fn a_chat_that_goes_on_refusing_keeps_nothing_longer_than_a_day() {
    let mut world = World::new().await;
    world.post("", &["old"]).await;
    let refused = world.claim_one("old").await;
    world.update(&refused, world.park()).await;
    world.now_ms += DAY_MS;
    world.post("", &["young"]).await;
    assert!(world.claim().await.is_empty());
    let refused = world.claim_one("young").await;
    world.update(&refused, world.park()).await;
    assert_eq!(world.states().await, "dead,pending");
    let stuck = world.scene.store.stuck_posts(9).await.unwrap();
    assert_eq!(stuck.len(), 1);
}
