//! What becomes of a message that is heard.

use vocative_contract::envelope::ChatKind;
use vocative_core::addressing::{Access, Verdict};
use vocative_core::place::Scope;
use vocative_store::contract::{Captured, CapturedTurn};

use crate::said::{NOW_MS, Said, admitted, agent, said, turn_of};
use crate::scene::Scene;

#[tokio::test]
async fn a_message_becomes_a_turn_with_all_it_said() {
    let scene = Scene::open().await;
    let captured = scene
        .hear_for(
            &["helper"],
            Said {
                file: Some("cat"),
                ..said("1", "look")
            },
        )
        .await;
    let turn = scene.only_turn().await;
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
    assert_eq!(scene.found(turn.conversation, "look").await, ["look"]);
}

#[tokio::test]
async fn what_was_decided_comes_back_with_what_became_of_it() {
    let scene = Scene::open().await;
    let refused = Verdict {
        access: Access::Guest,
        ..Verdict::default()
    };
    for verdict in [admitted(&["helper"]), refused] {
        let decided = verdict.clone();
        let message = said("1", "hello").message(scene.account, Box::new(move |_| decided));
        let judged = scene.store.capture_judged(message).await.unwrap();
        assert_eq!(judged.verdict, Some(verdict));
    }
}

#[tokio::test]
async fn the_same_message_never_makes_a_second_turn_or_run() {
    let scene = Scene::open().await;
    let first = turn_of(scene.hear_for(&["helper"], said("1", "hello")).await);
    for _ in 0..3 {
        let again = scene.hear_for(&["helper"], said("1", "other text")).await;
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
    let again = turn_of(scene.hear_for(&["helper"], hours_later).await);
    assert_eq!((again.seq, again.new_runs), (first.seq, Vec::new()));
    assert_eq!(scene.contents().await, ["hello"]);
    let runs = scene.store.runs(first.conversation, 9).await.unwrap();
    assert_eq!(runs.len(), 1);
}

#[tokio::test]
async fn a_time_later_than_capture_is_ordered_at_capture() {
    let scene = Scene::open().await;
    let early = said("1", "from the future");
    scene
        .hear(Said {
            at_ms: NOW_MS + 900_000,
            ..early
        })
        .await;
    assert_eq!(
        scene.only_turn().await.position.sent_at_ms,
        NOW_MS + 500_000
    );
}

#[tokio::test]
async fn the_other_event_of_a_post_adds_what_the_first_did_not_know() {
    let scene = Scene::open().await;
    let bare = Said {
        kind: None,
        ..said("1", "hello")
    };
    scene.hear(bare.clone()).await;
    let twin = Said {
        title: Some("general"),
        kind: Some(ChatKind::Private),
        ..bare
    };
    let again = scene
        .judge(twin, |facts| {
            assert!(facts.addressed_before.is_empty() && facts.has_run_for.is_empty());
            admitted(&["helper"])
        })
        .await;

    assert!(matches!(again, Captured::Duplicate(turn) if turn.new_runs.len() == 1));
    assert_eq!(scene.only_turn().await.addressed_to, [agent("helper")]);
    let known = scene.store.find_conversation("acme/C1").await.unwrap();
    assert_eq!(
        (known.chat_kind, known.title.as_str()),
        (Some(ChatKind::Private), "general")
    );
}

#[tokio::test]
async fn the_scope_follows_the_kind_of_chat_once_it_is_learnt() {
    let scene = Scene::open().await;
    let unknown = |id, text| Said {
        kind: None,
        chat: "D1",
        ..said(id, text)
    };
    scene.hear(unknown("1", "first")).await;
    scene
        .hear(Said {
            kind: Some(ChatKind::Direct),
            ..unknown("2", "second")
        })
        .await;
    scene.hear(unknown("3", "third")).await;
    scene
        .hear(Said {
            thread: Some("3"),
            ..unknown("4", "below")
        })
        .await;
    let scopes: Vec<_> = scene.turns().await.iter().map(|t| t.scope).collect();
    assert_eq!(scopes, [Scope::Dm; 4]);
}

#[tokio::test]
async fn a_thread_is_a_conversation_below_its_chats_own() {
    let scene = Scene::open().await;
    // The reply comes first; the root, which Slack may mark with its own thread, later.
    let reply = turn_of(
        scene
            .hear(Said {
                thread: Some("1"),
                ..said("2", "reply")
            })
            .await,
    );
    let root = turn_of(
        scene
            .hear(Said {
                thread: Some("1"),
                ..said("1", "root")
            })
            .await,
    );
    assert_ne!(reply.conversation, root.conversation);
    let thread = scene.store.conversation(reply.conversation).await.unwrap();
    assert_eq!(
        (thread.parent, thread.root),
        (Some(root.conversation), Some(root.turn))
    );
    let late = turn_of(scene.hear(said("5", "another root")).await);
    let reply = Said {
        thread: Some("5"),
        ..said("6", "its reply")
    };
    let reply = turn_of(scene.hear(reply).await);
    let thread = scene.store.conversation(reply.conversation).await.unwrap();
    assert_eq!(thread.root, Some(late.turn));
}

#[tokio::test]
async fn a_topic_is_a_room_of_its_own() {
    let scene = Scene::open().await;
    scene
        .hear(Said {
            topic: Some("7"),
            ..said("1", "in the topic")
        })
        .await;
    scene.hear(said("2", "outside")).await;
    let turns = scene.turns().await;
    let topic = scene
        .store
        .conversation(turns[0].conversation)
        .await
        .unwrap();
    assert_eq!((topic.is_topic, topic.parent), (true, None));
    assert_ne!(turns[0].conversation, turns[1].conversation);
    assert_eq!(turns[0].scope, Scope::Channel);
}

#[tokio::test]
async fn a_reply_finds_its_target_whichever_comes_first() {
    let scene = Scene::open().await;
    scene
        .hear(Said {
            reply_to: Some("1"),
            ..said("2", "early")
        })
        .await;
    assert_eq!(scene.only_turn().await.reply_to, None);
    scene.hear(said("1", "target")).await;
    scene
        .hear(Said {
            reply_to: Some("1"),
            ..said("3", "late")
        })
        .await;
    let turns = scene.turns().await;
    assert_eq!(turns[0].reply_to, Some(turns[1].id));
    assert_eq!(turns[2].reply_to, Some(turns[1].id));
}

#[tokio::test]
async fn what_was_known_before_is_heard_and_not_captured_again() {
    let scene = Scene::open().await;
    scene.hear(said("1", "one")).await;
    let captured = async || {
        let status = scene.store.status(NOW_MS).await.unwrap();
        status.accounts[0].last_captured_ms
    };
    let first_ms = captured().await;
    assert!(first_ms.is_some());
    let told_again = Said {
        received_at_ms: NOW_MS + 900_000,
        ..said("1", "one")
    };
    assert!(matches!(
        scene.hear(told_again).await,
        Captured::Duplicate(_)
    ));
    assert_eq!(captured().await, first_ms);
}

#[tokio::test]
async fn a_name_is_kept_until_another_is_heard() {
    let scene = Scene::open().await;
    scene
        .hear(Said {
            name: None,
            ..said("1", "one")
        })
        .await;
    assert_eq!(scene.only_turn().await.participant.display_name, None);
    scene.hear(said("2", "two")).await;
    scene
        .hear(Said {
            name: None,
            ..said("3", "three")
        })
        .await;
    for turn in scene.turns().await {
        assert_eq!(turn.participant.display_name.as_deref(), Some("Ada"));
    }
}

#[tokio::test]
async fn content_of_any_shape_is_captured() {
    let scene = Scene::open().await;
    for (id, text) in [
        ("1", ""),
        ("2", "a\u{0}b \"' -- OR"),
        ("3", "\u{fff9}U1\u{fffb} 東京"),
    ] {
        scene.hear(said(id, text)).await;
    }
    assert_eq!(scene.turns().await.len(), 3);
    let conversation = scene.conversation("C1").await;
    assert_eq!(scene.found(conversation, "東京").await.len(), 1);
}
