//! A conversation, read page by page.

use vocative_contract::envelope::Place;
use vocative_core::ids::{ConversationId, Seq};
use vocative_store::contract::{ConversationPage, HistoryGap, PageQuery};

use crate::scene::Scene;

async fn page(scene: &Scene, room: ConversationId, before: Option<Seq>) -> ConversationPage {
    let query = PageQuery {
        limit: 2,
        before,
        is_timeline: false,
    };
    scene.store.page(room, query).await.unwrap()
}

fn texts(page: &ConversationPage) -> Vec<&str> {
    let turns = page.turns.iter();
    turns.map(|detail| detail.turn.content.as_str()).collect()
}

/// Five turns, of which one came late, one is only for the timeline and one is deleted.
async fn room_of_five(scene: &Scene) -> ConversationId {
    let room = scene.say("C1", "b", 20).await.conversation;
    let gap = HistoryGap {
        account: scene.account,
        place: Place {
            chat: "C1".to_owned(),
            ..Place::default()
        },
        at_ms: 30,
        text: "something may be missing".to_owned(),
        reason: "missing_scope".to_owned(),
        may_be_read_later: true,
        unread_from_ms: Some(10),
        now_ms: 30,
    };
    scene.store.note_gap(gap).await.unwrap();
    for (text, at_ms) in [("gone", 40), ("c", 50), ("a", 10)] {
        scene.say("C1", text, at_ms).await;
    }
    let deleted = scene.store.capture_delete(scene.account, "C1", "m1", 60);
    deleted.await.unwrap();
    assert_eq!(scene.turns().await.len(), 5);
    room
}

#[tokio::test]
async fn pages_go_back_in_the_rooms_order_and_end() {
    let scene = Scene::open().await;
    let room = room_of_five(&scene).await;
    let newest = page(&scene, room, None).await;
    assert_eq!((texts(&newest), newest.has_older), (vec!["b", "c"], true));
    let first = newest.turns[0].turn.seq();
    let older = page(&scene, room, Some(first)).await;
    assert_eq!((texts(&older), older.has_older), (vec!["a"], false));
    // What is captured meanwhile does not move the next page.
    scene.say("C1", "late", 15).await;
    let older = page(&scene, room, Some(first)).await;
    assert_eq!(texts(&older), ["a", "late"]);

    let other = scene.say("C2", "elsewhere", 20).await.conversation;
    let elsewhere = PageQuery {
        limit: 2,
        before: Some(first),
        is_timeline: false,
    };
    assert!(scene.store.page(other, elsewhere).await.is_err());
}
