//! The items of an album are one turn.

use vocative_core::addressing::{MessageFacts, Verdict};
use vocative_core::run::RunState;
use vocative_store::contract::Captured;

use crate::said::{NOW_MS, Said, admitted, agent, said, turn_of};
use crate::scene::Scene;

fn item(id: &'static str, text: &'static str) -> Said {
    Said {
        album: Some("A"),
        file: Some(id),
        ..said(id, text)
    }
}

fn waiting(agents: &'static [&'static str], ms: i64) -> impl FnOnce(&MessageFacts) -> Verdict {
    move |_| Verdict {
        not_before_ms: ms,
        ..admitted(agents)
    }
}

#[tokio::test]
async fn the_items_of_an_album_are_one_turn_in_message_order() {
    let scene = Scene::open().await;
    let first = turn_of(scene.hear(item("10", "ten")).await);
    let second = scene.hear(item("9", "nine")).await;
    scene.hear(item("11", "ten")).await;
    assert_eq!(second, Captured::Revised(first));
    let turn = scene.only_turn().await;
    assert_eq!(turn.content, "nine\nten");
    let names: Vec<_> = turn
        .attachments
        .iter()
        .map(|a| a.name.clone().unwrap())
        .collect();
    assert_eq!(names, ["10", "9", "11"]);
    let again = scene.hear(item("9", "nine")).await;
    assert!(matches!(again, Captured::Duplicate(_)));
    assert_eq!(scene.only_turn().await, turn);
}

#[tokio::test]
async fn each_item_lets_the_albums_run_wait_for_the_next() {
    let scene = Scene::open().await;
    scene.judge(item("1", ""), waiting(&[], 50)).await;
    let addressed = scene
        .judge(item("2", "helper?"), waiting(&["helper"], 70))
        .await;
    assert_eq!(turn_of(addressed).new_runs.len(), 1);
    let last = scene.judge(item("3", ""), waiting(&["helper"], 60)).await;
    assert_eq!(turn_of(last).new_runs, []);
    scene.judge(item("4", "more"), waiting(&[], 90)).await;
    assert_eq!(scene.store.next_run_due_ms(0).await.unwrap(), Some(90));
    assert_eq!(scene.only_turn().await.content, "helper?\nmore");
}

#[tokio::test]
async fn an_edited_item_changes_its_own_text_only() {
    let scene = Scene::open().await;
    scene.hear_for(&["helper"], item("1", "helper?")).await;
    scene.hear(item("2", "two")).await;
    let edited = Said {
        edit_marker: Some("5"),
        ..item("2", "TWO")
    };
    let edited = scene.hear(edited).await;
    assert!(matches!(&edited, Captured::Revised(turn) if turn.cancelled_runs.is_empty()));
    let turn = scene.only_turn().await;
    assert_eq!(turn.content, "helper?\nTWO");
    assert_eq!(turn.attachments.len(), 2);
    assert_eq!(turn.addressed_to, [agent("helper")]);
}

#[tokio::test]
async fn albums_of_two_topics_are_two_turns() {
    let scene = Scene::open().await;
    scene.hear(item("1", "one")).await;
    scene
        .hear(Said {
            topic: Some("7"),
            ..item("2", "two")
        })
        .await;
    assert_eq!(scene.contents().await, ["one", "two"]);
}

#[tokio::test]
async fn a_deleted_item_leaves_the_others() {
    let scene = Scene::open().await;
    let asked = turn_of(scene.hear_for(&["helper"], item("1", "zebra")).await);
    let state = async || scene.store.run(asked.new_runs[0]).await.unwrap().state;
    scene.hear(item("2", "lion")).await;
    let delete = |id| scene.store.capture_delete(scene.account, "C1", id, NOW_MS);
    delete("1").await.unwrap();
    assert_eq!(scene.only_turn().await.content, "lion");
    assert_eq!(scene.hear(item("1", "zebra")).await, Captured::Tombstone);
    assert!(matches!(state().await, RunState::Queued { .. }));
    delete("2").await.unwrap();
    assert_eq!(scene.only_turn().await.content, "");
    assert_eq!(state().await, RunState::Cancelled);
}
