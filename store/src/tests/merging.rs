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
async fn turns_move_with_new_seqs_and_unchanged_positions() {
    let fixture = Fixture::new().await;
    fixture.hear_for(&["helper"], old("1", "zebra")).await;
    fixture
        .hear(Said {
            reply_to: Some("1"),
            ..old("2", "two")
        })
        .await;
    fixture.hear(new("1", "after")).await;
    let before = fixture.turns().await;
    for _ in 0..2 {
        merge(&fixture).await;
    }
    let after = fixture.turns().await;
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
    let conversation: String = fixture
        .value("SELECT id || ' ' || chat_id || ' ' || turn_count || ' ' || last_seq FROM conversations")
        .await;
    assert_eq!(conversation, "1 2 3 4");
    assert_eq!(
        fixture.found("conversation:c1 AND content:after").await,
        [4]
    );
    assert_eq!(fixture.found("conversation:c2").await, [] as [i64; 0]);
    let run: String = fixture
        .value(
            "SELECT r.conversation_id || ' ' || r.chat_id || ' ' || g.turn_seq
             FROM runs r JOIN run_triggers g ON g.run_id = r.id",
        )
        .await;
    assert_eq!(run, "1 2 1");
    // The next turn is newer than all that moved, and comes to the same conversation.
    let next = turn_of(fixture.hear(new("9", "next")).await);
    assert_eq!((next.seq.0, next.conversation), (5, before[0].conversation));
}

#[tokio::test]
async fn a_smaller_old_conversation_moves_into_the_new_one() {
    let fixture = Fixture::new().await;
    fixture.hear_for(&["helper"], old("1", "zebra")).await;
    for id in ["1", "2"] {
        fixture.hear(new(id, "after")).await;
    }
    merge(&fixture).await;
    let turns: String = fixture
        .value("SELECT group_concat(seq || ' ' || content, ', ' ORDER BY seq) FROM turns")
        .await;
    assert_eq!(turns, "2 after, 3 after, 4 zebra");
    let run: String = fixture
        .value(
            "SELECT r.conversation_id || ' ' || r.chat_id || ' ' || g.turn_seq
             FROM runs r JOIN run_triggers g ON g.run_id = r.id",
        )
        .await;
    assert_eq!(run, "2 2 4");
}

#[tokio::test]
async fn a_platform_that_counts_anew_loses_no_message_and_doubles_none() {
    let fixture = Fixture::new().await;
    fixture.hear(old("1", "old one")).await;
    merge(&fixture).await;
    let fresh = fixture.hear(new("1", "new one")).await;
    assert!(matches!(fresh, Captured::New(_)));
    let redelivered = fixture.hear(old("1", "old one")).await;
    assert!(matches!(redelivered, Captured::Duplicate(_)));
    let edited = Said {
        edit_marker: Some("5"),
        ..old("1", "old one, edited")
    };
    assert!(matches!(fixture.hear(edited).await, Captured::Revised(_)));
    assert_eq!(fixture.contents().await, ["old one, edited", "new one"]);
}

#[tokio::test]
async fn a_platform_that_keeps_its_ids_knows_its_messages_under_the_new_chat() {
    let fixture = Fixture::new().await;
    let first = turn_of(fixture.hear(old("1", "one")).await);
    merge(&fixture).await;
    let same = Said {
        chat: "new",
        ..old("1", "one")
    };
    let again = turn_of(fixture.hear(same).await);
    assert_eq!(again.turn, first.turn);
    let store = &fixture.store;
    store
        .capture_delete(fixture.account, "new", "1", NOW_MS)
        .await
        .unwrap();
    assert_eq!(fixture.contents().await, [""]);
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
async fn an_unknown_old_chat_is_an_alias_from_then_on() {
    let fixture = Fixture::new().await;
    fixture.hear(new("1", "one")).await;
    merge(&fixture).await;
    fixture.hear(old("2", "late")).await;
    let turns = fixture.turns().await;
    assert_eq!(turns[0].conversation, turns[1].conversation);
    let chat: String = fixture
        .value(
            "SELECT DISTINCT c.platform_id FROM conversations v JOIN chats c ON c.id = v.chat_id",
        )
        .await;
    assert_eq!(chat, "new");
}

#[tokio::test]
async fn threads_move_below_the_new_chats_own_conversation() {
    let fixture = Fixture::new().await;
    fixture.hear(old("1", "root")).await;
    fixture
        .hear(Said {
            thread: Some("1"),
            ..old("2", "reply")
        })
        .await;
    fixture.hear(new("5", "after")).await;
    merge(&fixture).await;
    let thread: String = fixture
        .value(
            "SELECT format('%s %s %s', p.thread, p.chat_id, t.content) FROM conversations c
             JOIN conversations p ON p.id = c.parent_id
             JOIN turns t ON t.seq = c.root_turn_seq AND t.conversation_id = p.id
             WHERE c.thread = '1' AND c.chat_id = p.chat_id",
        )
        .await;
    assert_eq!(thread, " 2 root");
}

#[tokio::test]
async fn what_waits_to_be_sent_goes_to_the_new_chat() {
    let fixture = Fixture::new().await;
    for id in ["1", "2", "3"] {
        fixture.hear(old(id, "text")).await;
    }
    fixture
        .execute(
            r#"INSERT INTO outbox (uuid, account_id, chat_id, turn_seq, part, sort_key, target,
                                   payload, state, not_before_ms, created_at_ms)
               VALUES (x'01', 1, 1, 2, 0, 1, '{"chat":"old","reply_to":"1"}', '{}', 'pending', 0, 0),
                      (x'02', 1, 1, 2, 1, 2, '{"chat":"old","reply_to":"1"}', '{}', 'sent', 0, 0)"#,
        )
        .await;
    fixture.hear(new("5", "after")).await;
    merge(&fixture).await;
    let posts: Vec<String> = fixture
        .column("SELECT chat_id || ' ' || turn_seq || ' ' || target FROM outbox ORDER BY id")
        .await;
    let expected = [
        r#"2 2 {"chat":"new"}"#,
        r#"2 2 {"chat":"old","reply_to":"1"}"#,
    ];
    assert_eq!(posts, expected);
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
