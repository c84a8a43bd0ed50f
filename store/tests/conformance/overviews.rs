//! What people are told of a conversation: its title, who speaks in it, and who is at work.

use vocative_contract::envelope::{ChatKind, Place, Sender, SenderKind};
use vocative_contract::identity::{Identity, Platform};
use vocative_contract::markup::mention_token;
use vocative_store::contract::{ConversationFilter, ConversationOverview};

use crate::said::{Said, said};
use crate::scene::Scene;

fn bot() -> Identity {
    Identity {
        platform: Platform::Slack,
        account: "T1".to_owned(),
        account_name: "Acme".to_owned(),
        user_id: "U0BOT".to_owned(),
        other_ids: vec!["B0BOT".to_owned()],
        username: Some("vocative_bot".to_owned()),
        display_name: "Vocative".to_owned(),
        warnings: Vec::new(),
        organisation: None,
    }
}

async fn overview(scene: &Scene, room: &str) -> ConversationOverview {
    let id = scene.conversation(room).await;
    scene.store.overview(id).await.unwrap()
}

async fn title(scene: &Scene, room: &str) -> String {
    overview(scene, room).await.title
}

#[tokio::test]
async fn a_room_has_its_chats_title_and_a_thread_its_roots_first_words() {
    let scene = Scene::open().await;
    scene.learn_bot(&bot()).await;
    let room = "C1";
    let asked = format!(
        "{} when is the **deploy** of the new release?",
        mention_token("U0BOT")
    );
    scene.say(room, &asked, 10).await;
    let thread = "C1/m0";
    scene.say(thread, "at nine", 20).await;
    let named = Place {
        chat: room.to_owned(),
        title: Some("general".to_owned()),
        ..Place::default()
    };
    let learnt = scene.store.learn_place(scene.account, named, 30);
    learnt.await.unwrap();
    assert_eq!(title(&scene, room).await, "general");
    let words = "@Vocative when is the deploy of the new release?";
    assert_eq!(title(&scene, thread).await, words);

    let given = Some("Release".to_owned());
    let id = scene.conversation(thread).await;
    let store = &scene.store;
    store.set_title(id, given.clone()).await.unwrap();
    let found = overview(&scene, thread).await;
    assert_eq!((found.title.as_str(), found.own_title), ("Release", given));
    store.set_title(id, None).await.unwrap();
    assert_eq!(title(&scene, thread).await, words);
}

#[tokio::test]
async fn a_chat_without_a_title_is_called_after_what_was_said_first_in_it() {
    let scene = Scene::open().await;
    let room = "D1";
    let direct = |id, text| Said {
        chat: room,
        kind: Some(ChatKind::Direct),
        ..said(id, text)
    };
    scene.hear(direct("1", "```\n```")).await;
    assert_eq!(title(&scene, room).await, "D1");
    scene.hear(direct("3", "third")).await;
    scene.hear(direct("2", "second")).await;
    assert_eq!(title(&scene, room).await, "second");
    assert_eq!(overview(&scene, room).await.chat_kind, Some("direct"));
}

#[tokio::test]
async fn an_archived_conversation_leaves_the_list_until_something_new_is_said() {
    let scene = Scene::open().await;
    let (one, two) = ("C1", "C2");
    scene.say(one, "hello", 10).await;
    scene.say(two, "hello", 20).await;
    let listed = async |with_archived| {
        let filter = ConversationFilter {
            with_archived,
            ..ConversationFilter::default()
        };
        let found = scene.store.conversations(filter).await.unwrap();
        found.iter().map(|one| one.id).collect::<Vec<_>>()
    };
    let (one_id, two_id) = (scene.conversation(one).await, scene.conversation(two).await);
    let archive = |at_ms| scene.store.set_archived(two_id, at_ms);
    assert!(archive(Some(30)).await.unwrap());
    assert!(!archive(Some(40)).await.unwrap(), "it was already");
    assert_eq!(listed(false).await, [one_id]);
    assert_eq!(listed(true).await, [two_id, one_id]);
    assert_eq!(overview(&scene, two).await.archived_at_ms, Some(30));
    scene.say(two, "again", 50).await;
    assert_eq!(listed(false).await, [two_id, one_id]);
    assert!(archive(Some(60)).await.unwrap());
    assert!(archive(None).await.unwrap());
    assert_eq!(listed(false).await, [two_id, one_id]);
}

#[tokio::test]
async fn the_run_at_work_is_named_and_speakers_are_counted() {
    let scene = Scene::open().await;
    let (room, other) = ("C1", "C2");
    scene.post(room, &["yes"], 10).await;
    assert_eq!(overview(&scene, room).await.active_run, None);
    let (_, first) = scene.ask(room, "one", 20).await;
    scene.ask(room, "two", 30).await;
    scene.say(other, "elsewhere", 40).await;
    let active = overview(&scene, room).await.active_run.unwrap();
    assert_eq!(active.id, first);
    let speakers = scene.store.speakers(active.conversation, 1).await.unwrap();
    assert_eq!(speakers.total, 2);
    let shown: Vec<_> = speakers
        .shown
        .iter()
        .map(|one| (one.participant.shown_name(), one.turns))
        .collect();
    assert_eq!(shown, [("Ada", 3)]);
}

#[tokio::test]
async fn the_bot_is_named_as_last_learnt_and_people_as_they_were_heard() {
    let scene = Scene::open().await;
    scene.say("C1", "hello", 10).await;
    let ada = Sender {
        id: "U1".to_owned(),
        display_name: None,
        username: Some("ada".to_owned()),
        kind: SenderKind::Person,
        is_stranger: false,
    };
    scene.store.learn_person(scene.account, ada).await.unwrap();
    assert_eq!(scene.store.identity(scene.account).await.unwrap(), None);
    let text: String = ["U0BOT", "B0BOT", "@vocative_bot", "U1", "@ada", "U404"]
        .map(mention_token)
        .join(" ");
    let named = async || {
        let named = scene.store.named(scene.account, vec![text.clone()]).await;
        named.unwrap().concat()
    };
    assert_eq!(named().await, "@U0BOT @B0BOT @vocative_bot @Ada @Ada @U404");
    scene.learn_bot(&bot()).await;
    let found = scene.store.identity(scene.account).await.unwrap();
    assert_eq!(found, Some(bot()));
    let all = "@Vocative @Vocative @Vocative @Ada @Ada @U404";
    assert_eq!(named().await, all);
}
