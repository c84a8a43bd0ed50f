//! Lines of posts: what holds back whom within a chat, and what becomes of posts in a chat that refuses
//! them.

use vocative_contract::outbound::{Delivered, Operation, Part, Target};

use crate::contract::LeaseOutcome;
use crate::rows::outbox_rows::{NewPosts, insert_posts_txn};
use crate::scene::{Room, Scene};
use vocative_core::ids::{OutboxId, Seq};
use vocative_core::outbox::ClaimedEntry;
use vocative_core::outbox::OutboxUpdate;

/// A chat with threads.
struct World {
    scene: Scene,
    room: Room,
    now_ms: i64,
}

impl World {
    async fn new() -> Self {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        Self {
            scene,
            room,
            now_ms: 1_000,
        }
    }

    /// Commits posts of a turn of their own into a thread; "" = the top of the chat.
    async fn post(&self, thread: &str, texts: &[&str]) -> Vec<OutboxId> {
        let turn = self.scene.say(&self.room, "an answer", 10).await;
        self.insert(thread, turn.seq, texts).await
    }

    async fn insert(&self, thread: &str, turn: Seq, texts: &[&str]) -> Vec<OutboxId> {
        let target = target(thread);
        let parts: Vec<Part> = texts.iter().map(|text| Part::plain(*text)).collect();
        let (account, chat, now_ms) = (self.scene.account, self.room.chat, self.now_ms);
        self.scene
            .write(move |connection| {
                let posts = NewPosts {
                    account,
                    chat,
                    turn: Some(turn),
                    run_row: None,
                    target: &target,
                    operation: &Operation::Post,
                    parts: &parts,
                    now_ms,
                };
                insert_posts_txn(connection, &posts)
            })
            .await
    }

    async fn claim(&mut self) -> Vec<ClaimedEntry> {
        self.now_ms += 1;
        let request = self.scene.request(self.now_ms);
        self.scene.store.claim_posts(request, 10).await.unwrap()
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
        let (id, token) = (claim.entry.id, claim.token);
        let store = &self.scene.store;
        let started = store.mark_send_started(id, token, None, self.now_ms).await;
        assert_eq!(started.unwrap(), LeaseOutcome::Written);
        let updated = store.update_post(id, token, update, self.now_ms).await;
        assert_eq!(updated.unwrap(), LeaseOutcome::Written);
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
async fn an_answer_to_a_press_waits_for_no_post_and_for_no_rest_of_its_chat() {
    let mut world = World::new().await;
    world.post("1.1", &["slow"]).await;
    let slow = world.claim_one("slow").await;
    let until_ms = world.now_ms + 60_000;
    let reason = "twenty a minute".to_owned();
    world
        .update(&slow, OutboxUpdate::Rest { until_ms, reason })
        .await;
    let (account, chat, now_ms) = (world.scene.account, world.room.chat, world.now_ms);
    world
        .scene
        .write(move |connection| {
            let posts = NewPosts {
                account,
                chat,
                turn: None,
                run_row: None,
                target: &target("1.1"),
                operation: &Operation::Answer {
                    interaction: "q1".to_owned(),
                    person: "U1".to_owned(),
                },
                parts: &[Part::plain("not yours")],
                now_ms,
            };
            insert_posts_txn(connection, &posts)
        })
        .await;
    let answer = world.claim_one("not yours").await;
    world.send(&answer).await;
    assert_eq!(world.claim().await, []);
    world.now_ms = until_ms;
    world.claim_one("slow").await;
}

#[tokio::test]
async fn what_is_done_to_a_message_waits_for_it_in_whatever_line_it_is() {
    let mut world = World::new().await;
    let first = world.post("1.1", &["a beginning"]).await;
    let behind = world.post("", &["the answer"]).await;
    let (first, behind) = (first[0], behind[0]);
    world
        .scene
        .write(move |connection| {
            connection.execute(
                "UPDATE outbox SET operation = 'edit',
                        edit_of = (SELECT id FROM outbox WHERE uuid = ?2) WHERE uuid = ?1",
                (behind, first),
            )?;
            Ok(())
        })
        .await;
    let lost = world.claim_one("a beginning").await;
    world.update(&lost, look(world.now_ms + 60_000)).await;
    assert!(world.claim().await.is_empty());
    world.now_ms += 60_000;
    assert_eq!(world.drain().await, ["a beginning", "the answer"]);
}
