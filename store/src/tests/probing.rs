//! Numbers of messages: what is known of them when a post of unknown outcome is looked for.

use vocative_contract::outbound::Delivered;
use vocative_contract::probe::{Numbered, Sequence};

use crate::acts::probing::forget_own_message_txn;
use crate::contract::LeaseOutcome;
use crate::scene::{Room, Scene};
use vocative_core::outbox::ClaimedEntry;
use vocative_core::outbox::OutboxUpdate;
use vocative_core::probing::ProbeFacts;

const GROUP: &str = "-1001";

fn sequence() -> Sequence {
    Sequence {
        name: GROUP.to_owned(),
        is_of_one_chat: true,
    }
}

fn heard(number: i64, sent_at_ms: i64) -> Numbered {
    Numbered {
        sequence: sequence(),
        chat: GROUP.to_owned(),
        number: Some(number),
        sent_at_ms,
        own: Vec::new(),
    }
}

async fn hear(scene: &Scene, numbered: Numbered) {
    let heard = scene.store.hear_number(scene.account, numbered).await;
    heard.unwrap();
}

/// A post of an answer, claimed, whose bytes are on their way.
async fn sending(scene: &Scene, room: &Room, text: &str, now_ms: i64) -> ClaimedEntry {
    scene.post(room, &[text], now_ms).await;
    let claimed = scene.store.claim_posts(scene.request(now_ms), 10).await;
    let claimed = claimed.unwrap().pop().unwrap();
    let (id, token) = (claimed.entry.id, claimed.token);
    let started = scene
        .store
        .mark_send_started(id, token, Some(sequence()), now_ms);
    assert_eq!(started.await.unwrap(), LeaseOutcome::Written);
    claimed
}

async fn update(scene: &Scene, claim: &ClaimedEntry, update: OutboxUpdate, now_ms: i64) {
    let (id, token) = (claim.entry.id, claim.token);
    let outcome = scene.store.update_post(id, token, update, now_ms).await;
    assert_eq!(outcome.unwrap(), LeaseOutcome::Written);
}

fn sent(message_id: &str) -> OutboxUpdate {
    OutboxUpdate::Sent(Delivered {
        chat: GROUP.to_owned(),
        message_id: message_id.to_owned(),
        sent_at_ms: 0,
        shown: None,
    })
}

async fn facts(scene: &Scene, claim: &ClaimedEntry) -> Option<ProbeFacts> {
    let found = scene.store.probing(claim.entry.id).await.unwrap();
    found.map(|(_, facts)| facts)
}

#[tokio::test]
async fn numbers_far_below_the_newest_are_forgotten() {
    let scene = Scene::open().await;
    for number in [1, 2, 5_000] {
        hear(&scene, heard(number, number)).await;
    }
    let kept: i64 = scene.value("SELECT count(*) FROM numbers").await;
    assert_eq!(kept, 1);
}

#[tokio::test]
async fn a_post_that_is_taken_back_is_no_control_any_more() {
    let scene = Scene::open().await;
    let room = scene.room(GROUP).await;
    hear(&scene, heard(7, 1_000)).await;
    let first = sending(&scene, &room, "one", 10).await;
    update(&scene, &first, sent("8"), 11).await;
    let second = sending(&scene, &room, "two", 20).await;
    assert_eq!(facts(&scene, &second).await.unwrap().own, Some(8));
    scene
        .write(|connection| {
            let chat = connection.query_row("SELECT id FROM chats", [], |row| row.get(0))?;
            forget_own_message_txn(connection, chat, "8")
        })
        .await;
    assert_eq!(facts(&scene, &second).await.unwrap().own, None);
}
