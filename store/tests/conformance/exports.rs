//! What a conversation is written out as.

use vocative_contract::markup::mention_token;
use vocative_store::contract::{ExportPage, ExportQuery};

use crate::scene::Scene;

async fn page(scene: &Scene, room: &str, query: ExportQuery) -> ExportPage {
    let id = scene.conversation(room).await;
    scene.store.export_page(id, query).await.unwrap()
}

fn after(page: &ExportPage) -> ExportQuery {
    ExportQuery {
        after: page.next,
        as_of: Some(page.as_of),
    }
}

#[tokio::test]
async fn pages_are_bounded_and_make_one_whole_while_more_is_captured() {
    let scene = Scene::open().await;
    let room = "C1";
    for number in 0..1_200 {
        scene.say(room, &format!("turn {number}"), number).await;
    }
    let mut all: Vec<String> = Vec::new();
    let mut query = ExportQuery::default();
    let mut pages = 0;
    loop {
        let found = page(&scene, room, query).await;
        assert!(found.turns.len() <= 500);
        all.extend(found.turns.iter().map(|turn| turn.text.clone()));
        pages += 1;
        // One that lands before what was read, and one behind everything.
        scene.say(room, "late", 3).await;
        scene.say(room, "new", 9_000).await;
        query = after(&found);
        if found.next.is_none() {
            break;
        }
    }
    let expected: Vec<String> = (0..1_200).map(|number| format!("turn {number}")).collect();
    assert_eq!((pages, all), (3, expected));
}

#[tokio::test]
async fn a_page_of_long_texts_ends_early() {
    let scene = Scene::open().await;
    let room = "C1";
    for at_ms in 0..4 {
        scene.say(room, &"x".repeat(600_000), at_ms).await;
    }
    let first = page(&scene, room, ExportQuery::default()).await;
    assert_eq!(first.turns.len(), 2);
    let second = page(&scene, room, after(&first)).await;
    assert_eq!(second.turns.len(), 2);
    let third = page(&scene, room, after(&second)).await;
    assert_eq!((third.turns.len(), third.next), (0, None));
}

#[tokio::test]
async fn a_thread_begins_with_its_root_and_a_turn_tells_what_it_replies_to() {
    let scene = Scene::open().await;
    let room = "C1";
    scene.say(room, "shall we?", 10).await;
    let thread = "C1/m0";
    let named = format!("yes, {} and {}", mention_token("U1"), mention_token("U9"));
    scene.reply(thread, &named, 20, "m0").await;
    scene.say(thread, "gone", 30).await;
    let deleted = scene.store.capture_delete(scene.account, "C1", "m2", 40);
    deleted.await.unwrap();
    let found = page(&scene, thread, ExportQuery::default()).await;
    let texts: Vec<_> = found.turns.iter().map(|turn| turn.text.as_str()).collect();
    assert_eq!(texts, ["shall we?", "yes, @Ada and @U9", ""]);
    assert_eq!(
        found.turns[0].turn.conversation,
        scene.conversation(room).await
    );
    let answer = &found.turns[1];
    assert_eq!(answer.names, [("U1".to_owned(), "Ada".to_owned())]);
    let replied_to = answer.replied_to.as_ref().unwrap();
    assert_eq!(
        (replied_to.speaker.as_str(), replied_to.text.as_str()),
        ("Ada", "shall we?")
    );
}
