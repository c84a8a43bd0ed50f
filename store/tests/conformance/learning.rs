//! What is learnt of chats, topics and people besides what they say.

use vocative_contract::envelope::{ChatKind, Place, Sender, SenderKind};
use vocative_core::addressing::MessageFacts;
use vocative_core::ids::Seq;
use vocative_core::outbox::OutboxUpdate;
use vocative_store::contract::{Captured, NonMessage, RawStub};

use crate::said::{NOW_MS, Said, admitted, binding, said};
use crate::scene::Scene;

fn place(chat: &str) -> Place {
    Place {
        chat: chat.to_owned(),
        ..Place::default()
    }
}

/// Known topics: their chats, their ids and their names.
async fn topics(scene: &Scene) -> Vec<String> {
    let topics = scene.store.topics_of(scene.account).await.unwrap();
    let told = topics.into_iter().map(|(chat, topic, name)| {
        let name = name.unwrap_or_default();
        format!("{chat} {topic} {name}")
    });
    told.collect()
}

/// A chat that refuses a post, of which one waits.
async fn park(scene: &Scene) {
    scene.hear_for(&["helper"], said("1", "one")).await;
    let run = scene.claim(NOW_MS + 600_000).await.unwrap();
    let answer = scene.answer(&run, "yes").await;
    scene.store.commit_reply(answer).await.unwrap();
    let claim = scene.claim_posts(NOW_MS + 600_002).await.remove(0);
    let park = OutboxUpdate::ParkChat {
        not_before_ms: NOW_MS + 900_000,
        keep_ms: 86_400_000,
        reason: "kicked".to_owned(),
    };
    scene.update(&claim, park, NOW_MS + 600_003).await;
    assert_eq!(parked(scene).await, 1);
}

async fn parked(scene: &Scene) -> u64 {
    let status = scene.store.status(NOW_MS + 600_004).await.unwrap();
    status.accounts[0].parked_chats
}

#[tokio::test]
async fn a_renamed_channel_keeps_its_account_and_binding_lifts_a_hold() {
    let scene = Scene::open().await;
    scene.post("C1", &["yes"], 10).await;
    let claim = scene.claim_posts(20).await.remove(0);
    let reason = "token_revoked".to_owned();
    let hold = OutboxUpdate::HoldAccount { reason };
    scene.update(&claim, hold, 30).await;
    let held = async || {
        scene.store.status(40).await.unwrap().accounts[0]
            .held
            .clone()
    };
    assert_eq!(held().await.as_deref(), Some("token_revoked"));
    let again = scene
        .store
        .bind_account(binding("renamed"), NOW_MS)
        .await
        .unwrap();
    assert_eq!(again, scene.account);
    assert_eq!(held().await, None);
    let bindings = scene.store.bindings().await.unwrap();
    let mut channels: Vec<&str> = bindings.iter().map(|it| it.channel.as_str()).collect();
    channels.sort_unstable();
    assert_eq!(channels, ["acme", "renamed"]);
}

#[tokio::test]
async fn titles_kinds_and_topic_names_are_learnt_of_known_chats_only() {
    let scene = Scene::open().await;
    let learnt = |chat: &str| Place {
        kind: Some(ChatKind::Private),
        title: Some("general".to_owned()),
        topic: Some("7".to_owned()),
        topic_title: Some("releases".to_owned()),
        ..place(chat)
    };
    scene.hear(said("1", "hello")).await;
    for chat in ["C1", "C9"] {
        let store = &scene.store;
        store
            .learn_place(scene.account, learnt(chat), NOW_MS)
            .await
            .unwrap();
    }
    let known = scene.conversation("C1").await;
    let known = scene.store.overview(known).await.unwrap();
    assert_eq!(known.chat_kind, Some("private"));
    assert_eq!(known.chat_title.as_deref(), Some("general"));
    let unknown = scene.store.knows_chat(scene.account, "C9".to_owned());
    assert!(!unknown.await.unwrap());
    assert_eq!(topics(&scene).await, ["C1 7 releases"]);
}

#[tokio::test]
async fn a_message_names_a_topic_without_a_name_and_renames_none() {
    let scene = Scene::open().await;
    let called = |title: &str| Place {
        topic: Some("7".to_owned()),
        topic_title: Some(title.to_owned()),
        ..place("C1")
    };
    let hear = async |id, title: Option<&str>| {
        let judge = Box::new(|_: &MessageFacts| admitted(&[]));
        let mut message = said(id, "hello").message(scene.account, judge);
        message.place = Place {
            topic_title: title.map(str::to_owned),
            ..called("")
        };
        let captured = scene.store.capture_message(message).await.unwrap();
        assert!(matches!(captured, Captured::New(_)), "{captured:?}");
    };
    hear("1", None).await;
    hear("2", Some("Incident")).await;
    assert_eq!(topics(&scene).await, ["C1 7 Incident"]);
    let renamed = called("Incident (solved)");
    let learnt = scene.store.learn_place(scene.account, renamed, NOW_MS);
    learnt.await.unwrap();
    hear("3", Some("Incident")).await;
    assert_eq!(topics(&scene).await, ["C1 7 Incident (solved)"]);
}

#[tokio::test]
async fn joining_lifts_a_parked_chat_and_leaving_does_not() {
    let scene = Scene::open().await;
    park(&scene).await;
    for (is_present, expected) in [(false, 1), (true, 0)] {
        let store = &scene.store;
        store
            .record_membership(scene.account, place("C1"), is_present, None, NOW_MS)
            .await
            .unwrap();
        assert_eq!(parked(&scene).await, expected);
        let read = scene.store.chats_to_read(scene.account).await.unwrap();
        assert_eq!(read.len(), usize::from(is_present));
    }
}

#[tokio::test]
async fn the_unnamed_are_listed_newest_first_until_they_are_named() {
    let scene = Scene::open().await;
    for (id, chat, by) in [("1", "C1", "U1"), ("2", "C2", "U2")] {
        let at = NOW_MS + 500_000 + id.parse::<i64>().unwrap();
        let message = Said {
            chat,
            by,
            name: None,
            received_at_ms: at,
            ..said(id, "hello")
        };
        scene.hear(message).await;
    }
    let direct = Said {
        chat: "D1",
        kind: Some(ChatKind::Direct),
        by: "U1",
        name: None,
        ..said("3", "hi")
    };
    scene.hear(direct).await;
    let unnamed = || scene.store.unnamed(scene.account, 5);
    let (people, chats) = unnamed().await.unwrap();
    assert_eq!(people, ["U2", "U1"]);
    assert_eq!(chats, ["C2", "C1"]);
    let sender = Sender {
        id: "U2".to_owned(),
        display_name: Some("Grace".to_owned()),
        username: Some("grace".to_owned()),
        kind: SenderKind::Person,
        is_stranger: false,
    };
    scene
        .store
        .learn_person(scene.account, sender)
        .await
        .unwrap();
    assert_eq!(unnamed().await.unwrap().0, ["U1"]);
}

#[tokio::test]
async fn raw_envelopes_expire_and_untranslated_events_stay() {
    let scene = Scene::open().await;
    scene.hear(said("1", "hello")).await;
    let stub = RawStub {
        account: scene.account,
        reason: "no ts".to_owned(),
        raw: "{}".to_owned(),
        received_at_ms: NOW_MS,
    };
    scene.store.keep_raw(stub).await.unwrap();
    assert_eq!(
        scene.store.expire_raw(NOW_MS + 500_000, 9).await.unwrap(),
        0
    );
    assert_eq!(
        scene.store.expire_raw(NOW_MS + 500_001, 0).await.unwrap(),
        0
    );
    assert_eq!(
        scene.store.expire_raw(NOW_MS + 500_001, 9).await.unwrap(),
        1
    );
    let left = scene.store.status(NOW_MS).await.unwrap().raw_stubs;
    assert_eq!(left, 1);
}

#[tokio::test]
async fn a_command_is_kept_once() {
    let scene = Scene::open().await;
    let command = |kind| NonMessage {
        account: scene.account,
        id: "trigger-1".to_owned(),
        kind,
        sender_id: "U1".to_owned(),
        chat: None,
        text: "/ask".to_owned(),
        received_at_ms: NOW_MS,
    };
    let keep = |kind| scene.store.keep_non_message(command(kind));
    assert!(keep("command").await.unwrap());
    assert!(!keep("command").await.unwrap());
    assert!(keep("interaction").await.unwrap());
}

#[tokio::test]
async fn hearing_a_chat_lifts_its_park_and_counts_its_turns() {
    let scene = Scene::open().await;
    park(&scene).await;
    scene.hear(said("2", "two")).await;
    assert_eq!(parked(&scene).await, 0);
    let room = scene.conversation("C1").await;
    let room = scene.store.conversation(room).await.unwrap();
    // Both messages, and the answer that waits.
    assert_eq!((room.turns, room.last_seq), (3, Some(Seq(3))));
    let read = scene.store.chats_to_read(scene.account).await.unwrap();
    assert!(read[0].is_heard);
    let status = scene.store.status(NOW_MS).await.unwrap();
    let last_ms = status.accounts[0].last_captured_ms;
    assert_eq!(last_ms, Some(NOW_MS + 500_000));
}
