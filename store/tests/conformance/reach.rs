//! How far what was said is known: holes, and the notices of what is missing.

use vocative_contract::envelope::Place;
use vocative_core::turn::Visibility;
use vocative_store::contract::{AccountReach, ChatReach, HistoryGap, TurnFilter};

use crate::scene::Scene;

const LEAD_MS: i64 = 100;

async fn opened(scene: &Scene, now_ms: i64) -> AccountReach {
    let opened = scene.store.open_reach(scene.account, LEAD_MS, now_ms).await;
    opened.unwrap()
}

async fn chats(scene: &Scene) -> Vec<ChatReach> {
    scene.store.chats_to_read(scene.account).await.unwrap()
}

#[tokio::test]
async fn nothing_is_missing_to_an_account_that_never_heard_anything() {
    let scene = Scene::open().await;
    assert_eq!(opened(&scene, 1_000).await.unread_from_ms, None);
    scene.store.note_heard(scene.account, 2_000).await.unwrap();
    assert_eq!(opened(&scene, 9_000).await.unread_from_ms, Some(1_900));
}

#[tokio::test]
async fn a_hole_stays_open_while_newer_turns_come_and_until_its_last_loss_is_closed() {
    let scene = Scene::open().await;
    let room = "C1";
    assert_eq!(opened(&scene, 500).await.unread_from_ms, None);
    scene.store.note_heard(scene.account, 1_000).await.unwrap();
    let first = opened(&scene, 5_000).await;
    assert_eq!(first.unread_from_ms, Some(900));
    scene.say(room, "live", 6_000).await;
    scene.store.note_heard(scene.account, 6_000).await.unwrap();
    let second = opened(&scene, 7_000).await;
    assert_eq!(second.unread_from_ms, Some(900));
    let close = |epoch| scene.store.close_reach(scene.account, epoch, 7_500);
    assert!(!close(first.epoch).await.unwrap());
    let third = opened(&scene, 8_000).await;
    assert_eq!(third.unread_from_ms, Some(900));
    assert!(close(third.epoch).await.unwrap());
    assert_eq!(opened(&scene, 9_000).await.unread_from_ms, Some(7_400));
}

#[tokio::test]
async fn a_chat_is_backfilled_when_nothing_was_captured_there_and_when_it_is_joined() {
    let scene = Scene::open().await;
    let room = "C1";
    scene.say(room, "known", 1_000).await;
    let listed = vec!["C1".to_owned(), "C2".to_owned()];
    let noted = scene.store.note_chats(scene.account, listed, Some(5_000));
    noted.await.unwrap();
    let due = |chats: Vec<ChatReach>| -> Vec<(String, Option<i64>)> {
        let due = chats
            .into_iter()
            .map(|chat| (chat.chat, chat.backfill_until_ms));
        due.collect()
    };
    let expected = [("C1".to_owned(), None), ("C2".to_owned(), Some(5_000))];
    assert_eq!(due(chats(&scene).await), expected);
    let done = scene.store.note_backfilled(scene.account, "C2".to_owned());
    done.await.unwrap();
    // A joining that is told twice is read once.
    for (until_ms, expected) in [(100_000, Some(100_000)), (100_500, None)] {
        let joined = scene
            .store
            .request_backfill(scene.account, "C2".to_owned(), until_ms);
        joined.await.unwrap();
        let expected = [("C1".to_owned(), None), ("C2".to_owned(), expected)];
        assert_eq!(due(chats(&scene).await), expected);
        let done = scene.store.note_backfilled(scene.account, "C2".to_owned());
        done.await.unwrap();
    }
}

#[tokio::test]
async fn a_notice_of_what_is_missing_is_no_speech_and_goes_when_it_was_read() {
    let scene = Scene::open().await;
    let room = scene.say("C1", "said", 1_000).await.conversation;
    let gap = |now_ms| HistoryGap {
        account: scene.account,
        place: Place {
            chat: "C1".to_owned(),
            ..Place::default()
        },
        at_ms: now_ms,
        text: "zebraword may be missing".to_owned(),
        reason: "missing_scope".to_owned(),
        may_be_read_later: true,
        unread_from_ms: Some(900),
        now_ms,
    };
    scene.store.note_gap(gap(2_000)).await.unwrap();
    scene.store.note_gap(gap(3_000)).await.unwrap();
    let shown = async || {
        let filter = TurnFilter {
            with_hidden: true,
            ..TurnFilter::default()
        };
        let turns = scene.store.turns(room, filter).await.unwrap();
        let notices = turns
            .into_iter()
            .filter(|turn| turn.visibility == Visibility::Timeline);
        let times: Vec<i64> = notices.map(|turn| turn.position.sent_at_ms).collect();
        times
    };
    assert_eq!(shown().await, [3_000]);
    let counted = scene.store.conversation(room).await.unwrap();
    assert_eq!(counted.turns, 1);
    assert_eq!(scene.found(room, "zebraword").await, [""; 0]);
    assert_eq!(scene.found(room, "said").await, ["said"]);
    assert_eq!(chats(&scene).await[0].unread_from_ms, Some(900));
    let status = scene.store.status(3_000).await.unwrap();
    assert_eq!(status.accounts[0].history_gaps, 1);
    let gap = status.accounts[0].history_gap.as_deref();
    assert_eq!(gap, Some("C1: missing_scope"));

    let read = scene.store.note_read(scene.account, "C1".to_owned(), 4_000);
    read.await.unwrap();
    assert_eq!(shown().await, Vec::<i64>::new());
    let chat = chats(&scene).await.remove(0);
    assert_eq!(
        (chat.unread_from_ms, chat.read_through_ms),
        (None, Some(4_000))
    );
    let status = scene.store.status(4_000).await.unwrap();
    assert_eq!(status.accounts[0].history_gaps, 0);
}

#[tokio::test]
async fn a_horizon_in_the_future_is_a_gap_since_what_was_said_last() {
    const HOUR_MS: i64 = 3_600_000;
    let scene = Scene::open().await;
    let room = "C1";
    opened(&scene, 500).await;
    scene.say(room, "live", 6_000).await;
    // The clock was two hours ahead for a while.
    scene
        .store
        .note_heard(scene.account, 2 * HOUR_MS)
        .await
        .unwrap();
    let reach = opened(&scene, 9_000).await;
    assert_eq!(reach.unread_from_ms, Some(6_000 - LEAD_MS));
    let store = &scene.store;
    assert!(
        store
            .close_reach(scene.account, reach.epoch, 10_000)
            .await
            .unwrap()
    );
    assert_eq!(
        opened(&scene, 11_000).await.unread_from_ms,
        Some(10_000 - LEAD_MS)
    );
}

#[tokio::test]
async fn a_hole_that_was_opened_in_the_future_is_read_from_what_was_said_last() {
    const HOUR_MS: i64 = 3_600_000;
    let scene = Scene::open().await;
    let room = "C1";
    opened(&scene, 500).await;
    scene.say(room, "live", 6_000).await;
    scene
        .store
        .note_heard(scene.account, 2 * HOUR_MS)
        .await
        .unwrap();
    opened(&scene, 2 * HOUR_MS + 1).await;
    let reach = opened(&scene, 9_000).await;
    assert_eq!(reach.unread_from_ms, Some(6_000 - LEAD_MS));
    // What was read under that clock is read again.
    let (account, chat) = (scene.account, "C1".to_owned());
    scene
        .store
        .note_read(account, chat.clone(), 3 * HOUR_MS)
        .await
        .unwrap();
    scene.store.note_read(account, chat, 9_000).await.unwrap();
    assert_eq!(chats(&scene).await[0].read_through_ms, Some(9_000));
}
