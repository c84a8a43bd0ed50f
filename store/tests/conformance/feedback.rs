//! Thumbs on answers: whose they are, which holds, and what goes with them.

use vocative_contract::envelope::{Place, Sender, SenderKind};
use vocative_contract::feedback::{Thumb, ThumbChange};
use vocative_core::ids::RunId;
use vocative_store::contract::{Deleted, ThumbCounts};

use crate::said::agent;
use crate::scene::Scene;

/// An answer that the platform knows as `a1`.
async fn answered(scene: &Scene) -> RunId {
    let (_, run) = scene.ask("C1", "is it?", 10).await;
    let claimed = scene.claim(100).await.unwrap();
    let reply = scene.answer(&claimed, "It is.").await;
    scene.store.commit_reply(reply).await.unwrap();
    scene.send_one("a1", 110).await;
    run
}

fn thumb(who: &str, thumb: Thumb, is_given: bool, at_ms: i64) -> ThumbChange {
    ThumbChange {
        place: Place {
            chat: "C1".to_owned(),
            ..Place::default()
        },
        message_id: "a1".to_owned(),
        sender: Sender {
            id: who.to_owned(),
            display_name: None,
            username: None,
            kind: SenderKind::Person,
            is_stranger: false,
        },
        thumbs: vec![(thumb, is_given)],
        at_ms,
    }
}

async fn thumbs(scene: &Scene, run: RunId) -> (u64, u64) {
    let ThumbCounts { up, down } = scene.store.run_story(run).await.unwrap().thumbs;
    (up, down)
}

#[tokio::test]
async fn what_a_person_thinks_does_not_depend_on_the_order_in_which_changes_come() {
    // Slack lets a person have both thumbs: the later one that is there holds.
    let changes = [
        (Thumb::Up, true, 1),
        (Thumb::Down, true, 2),
        (Thumb::Up, false, 3),
        (Thumb::Up, true, 4),
        (Thumb::Up, false, 5),
        (Thumb::Down, false, 6),
    ];
    let expected = [(1, 0), (0, 1), (0, 1), (1, 0), (0, 1), (0, 0)];
    for (n, expected) in expected.into_iter().enumerate() {
        // From each change on, forwards and backwards.
        let turned = |order: Vec<usize>| {
            (0..=n).map(move |at| {
                let mut order = order.clone();
                order.rotate_left(at);
                order
            })
        };
        for order in turned((0..=n).collect()).chain(turned((0..=n).rev().collect())) {
            let scene = Scene::open().await;
            let run = answered(&scene).await;
            // Everything comes twice.
            for at in order.iter().chain(&order) {
                let (kind, is_given, at_ms) = changes[*at];
                let change = thumb("U2", kind, is_given, at_ms);
                let taken = scene.store.capture_thumb(scene.account, change, 1_000);
                assert!(taken.await.unwrap());
            }
            assert_eq!(thumbs(&scene, run).await, expected, "{order:?}");
        }
    }
}

#[tokio::test]
async fn a_thumb_is_counted_on_an_answer_that_is_there_and_by_its_agent() {
    let scene = Scene::open().await;
    let run = answered(&scene).await;
    let take = |change: ThumbChange| scene.store.capture_thumb(scene.account, change, 1_000);
    assert!(take(thumb("U2", Thumb::Up, true, 1)).await.unwrap());
    assert!(take(thumb("U3", Thumb::Down, true, 1)).await.unwrap());
    // What people said is no answer, and other rooms have none of it.
    for (message_id, chat) in [("m0", "C1"), ("a2", "C1"), ("a1", "C2")] {
        let mut change = thumb("U4", Thumb::Up, true, 1);
        change.message_id = message_id.to_owned();
        change.place.chat = chat.to_owned();
        assert!(!take(change).await.unwrap(), "{message_id} in {chat}");
    }
    assert_eq!(thumbs(&scene, run).await, (1, 1));
    let all = scene.store.thumbs_by_agent(1_000).await.unwrap();
    assert_eq!(all, [(agent("helper"), ThumbCounts { up: 1, down: 1 })]);
    assert_eq!(scene.store.thumbs_by_agent(1_001).await.unwrap(), []);

    let deleted = scene.store.capture_delete(scene.account, "C1", "a1", 2_000);
    let deleted = deleted.await.unwrap();
    assert!(matches!(deleted, Deleted::Blanked { .. }), "{deleted:?}");
    assert!(!take(thumb("U4", Thumb::Up, true, 1)).await.unwrap());
}
