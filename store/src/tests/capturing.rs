use super::*;
use vocative_core::judging::access::Access;
use vocative_core::place::Scope;

#[tokio::test]
async fn a_message_becomes_a_turn_with_all_it_said() {
    let fixture = Fixture::new().await;
    let captured = fixture
        .hear_for(
            &["helper"],
            Said {
                file: Some("cat"),
                ..said("1", "look")
            },
        )
        .await;
    let turn = fixture.only_turn().await;
    let Captured::New(report) = captured else {
        panic!("{captured:?}")
    };
    assert_eq!(
        (
            report.turn,
            report.conversation,
            report.seq,
            report.new_runs.len()
        ),
        (turn.id, turn.conversation, turn.seq(), 1)
    );
    assert_eq!(turn.content, "look");
    assert_eq!(turn.attachments[0].name.as_deref(), Some("cat"));
    assert_eq!(turn.addressed_to, [agent("helper")]);
    assert_eq!(turn.participant.display_name.as_deref(), Some("Ada"));
    assert_eq!(turn.scope, Scope::Channel);
    assert_eq!(turn.position.sent_at_ms, NOW_MS + 1_000);
    assert_eq!(
        fixture.found("conversation:c1 AND content:(look)").await,
        [turn.seq().0]
    );
}

#[tokio::test]
async fn what_was_decided_comes_back_with_what_became_of_it() {
    let fixture = Fixture::new().await;
    let refused = Verdict {
        access: Access::Guest,
        ..Verdict::default()
    };
    for verdict in [admitted(&["helper"]), refused] {
        let decided = verdict.clone();
        let message = said("1", "hello").message(fixture.account, Box::new(move |_| decided));
        let judged = fixture.store.capture_judged(message).await.unwrap();
        assert_eq!(judged.verdict, Some(verdict));
    }
}

#[tokio::test]
async fn the_same_message_never_makes_a_second_turn_or_run() {
    let fixture = Fixture::new().await;
    let first = turn_of(fixture.hear_for(&["helper"], said("1", "hello")).await);
    for _ in 0..3 {
        let again = fixture.hear_for(&["helper"], said("1", "other text")).await;
        assert_eq!(
            again,
            Captured::Duplicate(CapturedTurn {
                new_runs: Vec::new(),
                ..first.clone()
            })
        );
    }
    // Hours later, which is no reason either.
    let hours_later = Said {
        received_at_ms: NOW_MS + 500_000 + 30 * 3_600_000,
        ..said("1", "hello")
    };
    let again = turn_of(fixture.hear_for(&["helper"], hours_later).await);
    assert_eq!((again.seq, again.new_runs), (first.seq, Vec::new()));
    assert_eq!(fixture.contents().await, ["hello"]);
    assert_eq!(fixture.value::<i64>("SELECT count(*) FROM runs").await, 1);
}

#[tokio::test]
async fn a_time_later_than_capture_is_ordered_at_capture() {
    let fixture = Fixture::new().await;
    let early = said("1", "from the future");
    fixture
        .hear(Said {
            at_ms: NOW_MS + 900_000,
            ..early
        })
        .await;
    assert_eq!(
        fixture.only_turn().await.position.sent_at_ms,
        NOW_MS + 500_000
    );
}

#[tokio::test]
async fn the_other_event_of_a_post_adds_what_the_first_did_not_know() {
    let fixture = Fixture::new().await;
    let bare = Said {
        kind: None,
        ..said("1", "hello")
    };
    fixture.hear(bare.clone()).await;
    let twin = Said {
        title: Some("general"),
        kind: Some(ChatKind::Private),
        ..bare
    };
    let again = fixture
        .judge(twin, |facts| {
            assert!(facts.addressed_before.is_empty() && facts.has_run_for.is_empty());
            admitted(&["helper"])
        })
        .await;

    assert!(matches!(again, Captured::Duplicate(turn) if turn.new_runs.len() == 1));
    assert_eq!(fixture.only_turn().await.addressed_to, [agent("helper")]);
    let chat: String = fixture
        .value("SELECT kind || ' ' || title FROM chats")
        .await;
    assert_eq!(chat, "private general");
}

#[tokio::test]
async fn the_scope_follows_the_kind_of_chat_once_it_is_learnt() {
    let fixture = Fixture::new().await;
    let unknown = |id, text| Said {
        kind: None,
        chat: "D1",
        ..said(id, text)
    };
    fixture.hear(unknown("1", "first")).await;
    fixture
        .hear(Said {
            kind: Some(ChatKind::Direct),
            ..unknown("2", "second")
        })
        .await;
    fixture.hear(unknown("3", "third")).await;
    fixture
        .hear(Said {
            thread: Some("3"),
            ..unknown("4", "below")
        })
        .await;
    let scopes: Vec<_> = fixture.turns().await.iter().map(|t| t.scope).collect();
    assert_eq!(scopes, [Scope::Dm; 4]);
}

#[tokio::test]
async fn a_thread_is_a_conversation_below_its_chats_own() {
    let fixture = Fixture::new().await;
    // The reply comes first; the root, which Slack may mark with its own thread, later.
    let reply = turn_of(
        fixture
            .hear(Said {
                thread: Some("1"),
                ..said("2", "reply")
            })
            .await,
    );
    let root = turn_of(
        fixture
            .hear(Said {
                thread: Some("1"),
                ..said("1", "root")
            })
            .await,
    );
    assert_ne!(reply.conversation, root.conversation);
    let link: String = fixture
        .value(
            "SELECT t.content FROM conversations c JOIN turns t ON t.seq = c.root_turn_seq
             JOIN conversations p ON p.id = c.parent_id AND p.id = t.conversation_id
             WHERE c.thread = '1'",
        )
        .await;
    assert_eq!(link, "root");
    let late = turn_of(fixture.hear(said("5", "another root")).await);
    fixture
        .hear(Said {
            thread: Some("5"),
            ..said("6", "its reply")
        })
        .await;
    let root_seq: i64 = fixture
        .value("SELECT root_turn_seq FROM conversations WHERE thread = '5'")
        .await;
    assert_eq!(root_seq, late.seq.0);
}

#[tokio::test]
async fn a_topic_is_a_room_of_its_own() {
    let fixture = Fixture::new().await;
    fixture
        .hear(Said {
            topic: Some("7"),
            ..said("1", "in the topic")
        })
        .await;
    fixture.hear(said("2", "outside")).await;
    let topics: Vec<i64> = fixture
        .column("SELECT is_topic FROM conversations WHERE thread = '7' AND parent_id IS NULL")
        .await;
    assert_eq!(topics, [1]);
    let turns = fixture.turns().await;
    assert_ne!(turns[0].conversation, turns[1].conversation);
    assert_eq!(turns[0].scope, Scope::Channel);
}

#[tokio::test]
async fn a_reply_finds_its_target_whichever_comes_first() {
    let fixture = Fixture::new().await;
    fixture
        .hear(Said {
            reply_to: Some("1"),
            ..said("2", "early")
        })
        .await;
    assert_eq!(fixture.only_turn().await.reply_to, None);
    fixture.hear(said("1", "target")).await;
    fixture
        .hear(Said {
            reply_to: Some("1"),
            ..said("3", "late")
        })
        .await;
    let turns = fixture.turns().await;
    assert_eq!(turns[0].reply_to, Some(turns[1].id));
    assert_eq!(turns[2].reply_to, Some(turns[1].id));
}

#[tokio::test]
async fn hearing_a_chat_lifts_its_park_and_counts_its_turns() {
    let fixture = Fixture::new().await;
    fixture.hear(said("1", "one")).await;
    fixture
        .execute("UPDATE chats SET parked_until_ms = 9, parked_reason = 'kicked'")
        .await;
    fixture.hear(said("2", "two")).await;
    let row: String = fixture
        .value(
            "SELECT format('%s %s %s %s %s', c.turn_count, c.last_seq, c.last_activity_ms,
                           h.last_heard_ms, a.last_captured_ms)
             FROM conversations c JOIN chats h ON h.id = c.chat_id
             JOIN accounts a ON a.id = h.account_id
             WHERE h.parked_until_ms IS NULL AND h.parked_reason IS NULL",
        )
        .await;
    let heard_ms = NOW_MS + 500_000;
    assert_eq!(row, format!("2 2 {} {heard_ms} {heard_ms}", NOW_MS + 2_000));
}

#[tokio::test]
async fn what_was_known_before_is_heard_and_not_captured_again() {
    let fixture = Fixture::new().await;
    fixture.hear(said("1", "one")).await;
    let captured = "SELECT max(last_captured_ms) FROM accounts";
    let first_ms: i64 = fixture.value(captured).await;
    let told_again = Said {
        received_at_ms: NOW_MS + 900_000,
        ..said("1", "one")
    };
    assert!(matches!(
        fixture.hear(told_again).await,
        Captured::Duplicate(_)
    ));
    assert_eq!(fixture.value::<i64>(captured).await, first_ms);
}

#[tokio::test]
async fn a_name_is_kept_until_another_is_heard() {
    let fixture = Fixture::new().await;
    fixture
        .hear(Said {
            name: None,
            ..said("1", "one")
        })
        .await;
    assert_eq!(fixture.only_turn().await.participant.display_name, None);
    fixture.hear(said("2", "two")).await;
    fixture
        .hear(Said {
            name: None,
            ..said("3", "three")
        })
        .await;
    let names: Vec<String> = fixture
        .column("SELECT display_name FROM participants")
        .await;
    assert_eq!(names, ["Ada"]);
}

#[tokio::test]
async fn content_of_any_shape_is_captured() {
    let fixture = Fixture::new().await;
    for (id, text) in [
        ("1", ""),
        ("2", "a\u{0}b \"' -- OR"),
        ("3", "\u{fff9}U1\u{fffb} 東京"),
    ] {
        fixture.hear(said(id, text)).await;
    }
    assert_eq!(fixture.turns().await.len(), 3);
    assert_eq!(fixture.found("content:\"東\"").await, [3]);
}
