//! What is told where nobody is answered.

use vocative_contract::outbound::{Part, Target};
use vocative_core::addressing::{MessageFacts, Notice, NoticeKind, RunVerdict, Verdict};
use vocative_core::place::Scope;
use vocative_core::turn::{ParticipantKind, TurnKind};
use vocative_store::contract::Captured;

use crate::said::{NOW_MS, Said, admitted, said, turn_of};
use crate::scene::Scene;

const HEARD_MS: i64 = NOW_MS + 500_000;

fn notice(kind: NoticeKind) -> Option<Notice> {
    Some(Notice {
        kind,
        text: "a line".to_owned(),
        is_private: false,
    })
}

/// The only post that there is.
async fn only_post(scene: &Scene) -> (Target, Part) {
    let pending = scene.store.status(HEARD_MS).await.unwrap().posts_pending;
    assert_eq!(pending, 1);
    let claimed = scene.store.claim_posts(scene.request(HEARD_MS), 10).await;
    let entry = claimed.unwrap().remove(0).entry;
    (entry.target, entry.part)
}

#[tokio::test]
async fn of_a_message_outside_access_nothing_is_stored() {
    let scene = Scene::open().await;
    let captured = scene
        .judge(said("1", "secret"), |_| Verdict::default())
        .await;
    assert_eq!(captured, Captured::NotAdmitted { has_notice: false });
    assert_eq!(scene.turns().await, []);
    let (chat, message) = ("C1".to_owned(), "1".to_owned());
    let (store, account) = (&scene.store, scene.account);
    assert!(!store.knows_chat(account, chat.clone()).await.unwrap());
    assert!(!store.is_captured(account, chat, message).await.unwrap());
    assert_eq!(scene.name_of("U1").await, "@U1");
}

#[tokio::test]
async fn a_chat_that_is_not_served_is_told_with_its_ids_only() {
    let scene = Scene::open().await;
    let message = Said {
        title: Some("secret"),
        thread: Some("7"),
        ..said("1", "secret")
    };
    let captured = scene
        .judge(message.clone(), |_| Verdict {
            notice: notice(NoticeKind::NotServed),
            ..Verdict::default()
        })
        .await;
    assert_eq!(captured, Captured::NotAdmitted { has_notice: true });
    let target = Target {
        chat: "C1".to_owned(),
        thread: Some("7".to_owned()),
        topic: None,
        reply_to: None,
    };
    assert_eq!(only_post(&scene).await, (target, Part::plain("a line")));
    assert_eq!(scene.turns().await, []);
    assert_eq!(scene.name_of("U1").await, "@U1");
    let facts = scene.facts(message).await;
    assert_eq!(facts.refused_notice_at_ms, Some(HEARD_MS));
    // Served since, and nobody says what it is called.
    let later = Said {
        by: "U2",
        kind: None,
        ..said("2", "hello")
    };
    let place = turn_of(scene.hear(later).await).conversation;
    let known = scene.store.overview(place).await.unwrap();
    assert_eq!((known.chat_title, known.chat_kind), (None, None));
}

#[tokio::test]
async fn a_limit_is_told_where_the_answer_would_have_been() {
    let scene = Scene::open().await;
    let limited = |_: &MessageFacts| Verdict {
        runs: RunVerdict::LimitMet,
        opens_thread: true,
        notice: notice(NoticeKind::LimitMet),
        ..admitted(&["helper"])
    };
    let captured = turn_of(scene.judge(said("1", "question"), limited).await);
    assert_eq!(captured.new_runs, []);
    // The same message again tells it no second time.
    scene.judge(said("1", "question"), limited).await;
    let target = Target {
        chat: "C1".to_owned(),
        thread: Some("1".to_owned()),
        topic: None,
        reply_to: Some("1".to_owned()),
    };
    assert_eq!(only_post(&scene).await, (target, Part::plain("a line")));
    let thread = scene.conversation("C1/1").await;
    let mut turns = scene.turns().await;
    turns.retain(|turn| turn.conversation == thread);
    let told = &turns[0];
    assert_eq!(
        (told.kind, told.participant.kind, told.scope),
        (TurnKind::Notice, ParticipantKind::System, Scope::Thread)
    );
    assert_eq!((turns.len(), told.content.as_str()), (1, "a line"));
    let facts = scene.facts(said("2", "more")).await;
    assert_eq!(facts.limit_notice_at_ms, Some(HEARD_MS));
}
