//! What becomes of two chats that turn out to be one.

use vocative_contract::outbound::{Part, Target};
use vocative_core::ids::ConversationId;
use vocative_core::turn::Turn;
use vocative_store::StoreError;
use vocative_store::contract::Captured;

use crate::said::{NOW_MS, Said, agent, said, turn_of};
use crate::scene::{Scene, target};

fn old(id: &'static str, text: &'static str) -> Said {
    Said {
        chat: "old",
        ..said(id, text)
    }
}

fn new(id: &'static str, text: &'static str) -> Said {
    Said {
        chat: "new",
        at_ms: NOW_MS + 100_000,
        ..said(id, text)
    }
}

async fn merge(scene: &Scene) {
    let store = &scene.store;
    store
        .merge_chats(scene.account, "old", "new", NOW_MS)
        .await
        .unwrap();
}

/// The only run is of this conversation and answers this turn.
async fn is_run_of(scene: &Scene, room: ConversationId, turn: &Turn) {
    let runs = scene.store.all_runs_before(None, 9).await.unwrap();
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0].conversation, room);
    assert_eq!(runs[0].triggers, [turn.id]);
}

#[tokio::test]
async fn turns_move_with_new_seqs_and_unchanged_positions() {
    let scene = Scene::open().await;
    scene.hear_for(&["helper"], old("1", "zebra")).await;
    scene
        .hear(Said {
            reply_to: Some("1"),
            ..old("2", "two")
        })
        .await;
    scene.hear(new("1", "after")).await;
    let before = scene.turns().await;
    for _ in 0..2 {
        merge(&scene).await;
    }
    let after = scene.turns().await;
    let texts: Vec<_> = after.iter().map(|turn| turn.content.as_str()).collect();
    assert_eq!(texts, ["zebra", "two", "after"]);
    let seqs: Vec<_> = after.iter().map(|turn| turn.seq().0).collect();
    assert_eq!(seqs, [1, 2, 4], "the smaller conversation moves");
    assert!(
        after
            .iter()
            .all(|turn| turn.conversation == before[0].conversation)
    );
    let position = |turn: &Turn| (turn.id, turn.position.sent_at_ms, turn.position.ordinal);
    assert_eq!(position(&after[2]), position(&before[2]));
    assert_eq!(after[1].reply_to, Some(after[0].id));
    assert_eq!(after[0].addressed_to, [agent("helper")]);
    let room = before[0].conversation;
    let known = scene.store.conversation(room).await.unwrap();
    assert_eq!(known.platform_chat, "new");
    assert_eq!((known.turns, known.last_seq), (3, Some(after[2].seq())));
    assert_eq!(scene.found(room, "after").await, ["after"]);
    let gone = scene.store.conversation(before[2].conversation).await;
    assert!(matches!(gone, Err(StoreError::NotFound { .. })), "{gone:?}");
    is_run_of(&scene, room, &after[0]).await;
    // The next turn is newer than all that moved, and comes to the same conversation.
    let next = turn_of(scene.hear(new("9", "next")).await);
    assert_eq!((next.seq.0, next.conversation), (5, before[0].conversation));
}

#[tokio::test]
async fn a_smaller_old_conversation_moves_into_the_new_one() {
    let scene = Scene::open().await;
    scene.hear_for(&["helper"], old("1", "zebra")).await;
    for id in ["1", "2"] {
        scene.hear(new(id, "after")).await;
    }
    merge(&scene).await;
    let turns = scene.turns().await;
    let told = turns
        .iter()
        .map(|turn| (turn.seq().0, turn.content.as_str()));
    let told: Vec<_> = told.collect();
    assert_eq!(told, [(2, "after"), (3, "after"), (4, "zebra")]);
    let room = scene.conversation("new").await;
    assert!(turns.iter().all(|turn| turn.conversation == room));
    is_run_of(&scene, room, &turns[2]).await;
}

#[tokio::test]
async fn a_platform_that_counts_anew_loses_no_message_and_doubles_none() {
    let scene = Scene::open().await;
    scene.hear(old("1", "old one")).await;
    merge(&scene).await;
    let fresh = scene.hear(new("1", "new one")).await;
    assert!(matches!(fresh, Captured::New(_)));
    let redelivered = scene.hear(old("1", "old one")).await;
    assert!(matches!(redelivered, Captured::Duplicate(_)));
    let edited = Said {
        edit_marker: Some("5"),
        ..old("1", "old one, edited")
    };
    assert!(matches!(scene.hear(edited).await, Captured::Revised(_)));
    assert_eq!(scene.contents().await, ["old one, edited", "new one"]);
}

#[tokio::test]
async fn a_platform_that_keeps_its_ids_knows_its_messages_under_the_new_chat() {
    let scene = Scene::open().await;
    let first = turn_of(scene.hear(old("1", "one")).await);
    merge(&scene).await;
    let same = Said {
        chat: "new",
        ..old("1", "one")
    };
    let again = turn_of(scene.hear(same).await);
    assert_eq!(again.turn, first.turn);
    let store = &scene.store;
    store
        .capture_delete(scene.account, "new", "1", NOW_MS)
        .await
        .unwrap();
    assert_eq!(scene.contents().await, [""]);
}

#[tokio::test]
async fn an_unknown_old_chat_is_an_alias_from_then_on() {
    let scene = Scene::open().await;
    scene.hear(new("1", "one")).await;
    merge(&scene).await;
    scene.hear(old("2", "late")).await;
    let turns = scene.turns().await;
    assert_eq!(turns[0].conversation, turns[1].conversation);
    let known = scene.store.conversation(turns[0].conversation).await;
    assert_eq!(known.unwrap().platform_chat, "new");
}

#[tokio::test]
async fn threads_move_below_the_new_chats_own_conversation() {
    let scene = Scene::open().await;
    scene.hear(old("1", "root")).await;
    scene
        .hear(Said {
            thread: Some("1"),
            ..old("2", "reply")
        })
        .await;
    scene.hear(new("5", "after")).await;
    merge(&scene).await;
    let room = scene.conversation("new").await;
    let thread = scene.conversation("new/1").await;
    let thread = scene.store.conversation(thread).await.unwrap();
    let root = scene.store.turn(thread.root.unwrap()).await.unwrap();
    assert_eq!(thread.parent, Some(room));
    assert_eq!((root.conversation, root.content.as_str()), (room, "root"));
}

#[tokio::test]
async fn what_waits_to_be_sent_goes_to_the_new_chat() {
    let scene = Scene::open().await;
    for id in ["1", "2"] {
        scene.hear(old(id, "text")).await;
    }
    scene.hear_for(&["helper"], old("3", "text")).await;
    let run = scene.claim(NOW_MS + 600_000).await.unwrap();
    let mut answer = scene.answer(&run, "one two").await;
    answer.parts = ["one", "two"].map(Part::plain).to_vec();
    answer.target.reply_to = Some("1".to_owned());
    let before = answer.target.clone();
    scene.store.commit_reply(answer).await.unwrap();
    scene.send_one("8", NOW_MS + 600_002).await;
    scene.hear(new("5", "after")).await;
    merge(&scene).await;
    let posts = scene.posts().await;
    let targets: Vec<&Target> = posts.iter().map(|post| &post.target).collect();
    // Numbers of the old chat mean nothing in the new one.
    let moved = target("new");
    assert_eq!(targets, [&before, &moved]);
    let claimed = scene.claim_posts(NOW_MS + 600_003).await.remove(0).entry;
    assert_eq!((claimed.part.text.as_str(), claimed.target), ("two", moved));
}
