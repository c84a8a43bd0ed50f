//! Posts of ours that are seen on the platform before anybody says that they were sent.

use vocative_contract::envelope::Place;
use vocative_core::ids::OutboxId;
use vocative_core::outbox::{OutboxState, OutboxUpdate};
use vocative_store::NewId as _;
use vocative_store::contract::{CommittedReply, OwnPost, TurnDetail};

use crate::scene::Scene;

/// The third part of an answer, in a state.
async fn with_post(state: &str) -> (Scene, OutboxId) {
    let scene = Scene::open().await;
    let committed = scene.post("C1", &["one", "two", "three"], 10).await;
    let CommittedReply::Written { posts, .. } = committed else {
        panic!("{committed:?}");
    };
    scene.send_one("80", 20).await;
    scene.send_one("81", 21).await;
    if state != "pending" {
        let claim = scene.claim_posts(22).await.remove(0);
        scene.start(&claim, 22).await;
        let reason = "nobody knows".to_owned();
        let update = match state {
            "leased" => None,
            "unknown" => Some(OutboxUpdate::Look {
                not_before_ms: 9_000,
                reason,
            }),
            "held" => Some(OutboxUpdate::Hold { reason }),
            "dead" => Some(OutboxUpdate::Dead { reason }),
            other => panic!("{other}"),
        };
        if let Some(update) = update {
            scene.update(&claim, update, 23).await;
        }
    }
    assert_eq!(answer(&scene).await.posts[2].state.name(), state);
    (scene, posts[2])
}

/// The answer, with its posts and messages.
async fn answer(scene: &Scene) -> TurnDetail {
    let room = scene.conversation("C1").await;
    let details = scene.store.turn_details(room, 9).await.unwrap();
    let mut answers = details.into_iter().filter(|it| it.turn.run.is_some());
    answers.next().unwrap()
}

async fn see(scene: &Scene, message_id: &str, marker: Option<&str>) {
    let post = OwnPost {
        account: scene.account,
        place: Place {
            chat: "C1".to_owned(),
            ..Place::default()
        },
        message_id: message_id.to_owned(),
        marker: marker.map(str::to_owned),
        now_ms: 100,
        judge_follow_up: None,
    };
    scene.store.confirm_own_post(post).await.unwrap();
}

#[tokio::test]
async fn a_post_whose_outcome_is_open_is_sent_once_it_is_seen() {
    // A pending one was tried before: a marker gets nowhere but by a post.
    for state in ["pending", "leased", "unknown", "held"] {
        let (scene, id) = with_post(state).await;
        for _ in 0..2 {
            see(&scene, "90", Some(&id.to_string())).await;
        }
        let answer = answer(&scene).await;
        let sent = OutboxState::Sent {
            message_id: "90".to_owned(),
        };
        let post = &answer.posts[2];
        assert_eq!((post.id, &post.state), (id, &sent), "{state}");
        // It is the third part.
        assert_eq!(answer.message_ids, ["80", "81", "90"], "{state}");
    }
}

#[tokio::test]
async fn a_post_that_is_settled_or_not_ours_changes_nothing() {
    let (scene, id) = with_post("dead").await;
    for id in [id, answer(&scene).await.posts[1].id] {
        let before = answer(&scene).await;
        see(&scene, "90", Some(&id.to_string())).await;
        assert_eq!(answer(&scene).await, before);
    }
    let (scene, id) = with_post("unknown").await;
    let before = answer(&scene).await;
    let other = OutboxId::generate().to_string();
    for marker in [None, Some("no uuid"), Some(&*other)] {
        see(&scene, "90", marker).await;
    }
    // A message that is known already is not the lost one.
    see(&scene, "m0", Some(&id.to_string())).await;
    assert_eq!(answer(&scene).await, before);
}

#[tokio::test]
async fn a_reply_to_a_post_is_linked_once_the_post_is_seen() {
    let (scene, id) = with_post("unknown").await;
    let thanks = scene.reply("C1", "thanks", 50, "90").await;
    let replied_to = async || scene.store.turn(thanks.turn).await.unwrap().reply_to;
    assert_eq!(replied_to().await, None);
    see(&scene, "90", Some(&id.to_string())).await;
    assert_eq!(replied_to().await, Some(answer(&scene).await.turn.id));
}
