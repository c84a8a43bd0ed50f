use super::*;

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

async fn merge(fixture: &Fixture) {
    let store = &fixture.store;
    store
        .merge_chats(fixture.account, "old", "new", NOW_MS)
        .await
        .unwrap();
    let broken: Vec<String> = fixture
        .column("SELECT \"table\" FROM pragma_foreign_key_check")
        .await;
    assert_eq!(broken, [] as [String; 0]);
}

#[tokio::test]
async fn what_was_deleted_in_the_old_chat_does_not_come_back_in_the_new_one() {
    let fixture = Fixture::new().await;
    fixture.hear(old("1", "zebra")).await;
    let store = &fixture.store;
    for id in ["1", "2"] {
        let deleted = store.capture_delete(fixture.account, "old", id, NOW_MS);
        deleted.await.unwrap();
    }
    merge(&fixture).await;
    for id in ["1", "2"] {
        let again = Said {
            chat: "new",
            ..old(id, "zebra")
        };
        assert_eq!(fixture.hear(again).await, Captured::Tombstone);
    }
    assert!(fixture.is_nowhere("zebra").await);
    // Another message that only has the same number, after ids were counted anew.
    let other = fixture.hear(new("1", "lion")).await;
    assert!(matches!(other, Captured::New(_)), "{other:?}");
}

#[tokio::test]
async fn summaries_that_end_before_the_first_turn_that_moves_stand() {
    for (at_ms, expected) in [
        (100_000, "current current current"),
        (2_500, "current current stale"),
        (500, "stale stale stale"),
    ] {
        let fixture = Fixture::new().await;
        for id in ["1", "2", "3"] {
            fixture.hear(old(id, "text")).await;
        }
        fixture.execute(edits::SUMMARIES).await;
        let after = Said {
            at_ms: NOW_MS + at_ms,
            ..new("5", "moves")
        };
        fixture.hear(after).await;
        merge(&fixture).await;
        let states: String = fixture
            .value("SELECT group_concat(state, ' ' ORDER BY id) FROM summaries")
            .await;
        assert_eq!(states, expected, "{at_ms}");
    }
}

#[tokio::test]
async fn a_group_that_is_upgraded_is_introduced_to_once_and_keeps_what_it_was_told() {
    for old_first in [true, false] {
        let fixture = Fixture::new().await;
        let join = |chat: &str, at_ms| {
            let place = Place {
                chat: chat.to_owned(),
                kind: Some(ChatKind::Private),
                ..Place::default()
            };
            let (account, hello) = (fixture.account, Some("hello".to_owned()));
            let store = &fixture.store;
            store.record_membership(account, place, true, hello, at_ms)
        };
        if old_first {
            join("old", NOW_MS).await.unwrap();
        }
        let told = "UPDATE chats SET quiet_told_until_ms = 7, bot_exchanges = 2";
        fixture.execute(told).await;
        join("new", NOW_MS + 9).await.unwrap();
        merge(&fixture).await;
        join("new", NOW_MS + 99).await.unwrap();
        let waiting = "SELECT json_extract(target, '$.chat') FROM outbox WHERE state = 'pending'";
        let waiting: Vec<String> = fixture.column(waiting).await;
        assert_eq!(waiting, ["new"], "{old_first}");
        let kept = "SELECT coalesce(quiet_told_until_ms, 0) + bot_exchanges FROM chats
                    WHERE id = (SELECT chat_id FROM chat_ids WHERE platform_id = 'new')";
        let expected = if old_first { 9 } else { 0 };
        assert_eq!(fixture.value::<i64>(kept).await, expected);
    }
}
