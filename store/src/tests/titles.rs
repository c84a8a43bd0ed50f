//! Titles that people give conversations: told, given, taken away, and gone with whoever gave them.

use super::*;
use crate::acts::commands::{CommandOutcome, NewCommand};
use crate::acts::erasure::ErasureTarget;
use crate::contract::{MadeTitle, NonMessage, ReadTurn};
use crate::scene::{self, Room, Scene};
use vocative_contract::markup::mention_token;
use vocative_core::command::{CommandVerdict, Effect};
use vocative_core::ids::{ConversationId, Seq};
use vocative_core::title::{TITLE_MAX_CHARS, TitleCommand, TitleOrder, TitledText};
use vocative_core::words::Language;

const LATER_MS: i64 = NOW_MS + 900_000;
const OWN: &str = "SELECT coalesce(own_title, '-') || ' ' || coalesce(own_title_from, '-') || ' ' ||
                          coalesce((SELECT platform_id FROM participants WHERE id = own_title_participant_id), '-')
                   FROM conversations ORDER BY id LIMIT 1";

fn command(account: AccountId, (id, person): (&str, &str), effect: Effect) -> NewCommand {
    let verdict = CommandVerdict {
        effect,
        answer: None,
        ..CommandVerdict::told("")
    };
    NewCommand {
        event: NonMessage {
            account,
            id: id.to_owned(),
            kind: "command",
            sender_id: person.to_owned(),
            chat: Some("C1".to_owned()),
            text: "/vocative".to_owned(),
            received_at_ms: LATER_MS,
        },
        place: Place {
            chat: "C1".to_owned(),
            ..Place::default()
        },
        sender: Sender {
            id: person.to_owned(),
            display_name: None,
            username: None,
            kind: SenderKind::Person,
            is_stranger: false,
        },
        judge: Box::new(move |_| Some(verdict)),
    }
}

async fn give(scene: &Scene, who: (&str, &str), effect: Effect) -> CommandOutcome {
    let command = command(scene.account, who, effect);
    scene.store.capture_command(command).await.unwrap()
}

/// What somebody is told who says that behind `title`.
async fn title(scene: &Scene, (id, person): (&str, &str), text: &str) -> String {
    let effect = Effect::Title(TitleCommand {
        order: TitleOrder::read(text),
        is_admin: person == "UADMIN",
        language: Language::default(),
    });
    assert!(give(scene, (id, person), effect).await.is_new);
    scene
        .value("SELECT payload FROM outbox ORDER BY id DESC LIMIT 1")
        .await
}

async fn carry_out(scene: &Scene, outcome: &CommandOutcome) {
    let clock = || LATER_MS + 1;
    let carried_out = scene
        .store
        .carry_out_all(&outcome.erasures, false, clock)
        .await;
    carried_out.unwrap();
}

async fn a_room() -> (Scene, Room) {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    (scene, room)
}

async fn shown(scene: &Scene, room: &Room) -> String {
    scene.store.overview(room.id).await.unwrap().title
}

#[tokio::test]
async fn a_person_is_told_gives_and_takes_away_the_title_of_where_they_are() {
    let (scene, room) = a_room().await;
    let told = title(&scene, ("t1", "U1"), "").await;
    assert!(told.contains("listed as: c1"), "{told}");
    let told = title(&scene, ("t2", "U1"), "-").await;
    assert!(told.contains("has no title of its own."), "{told}");
    assert_eq!(scene.value::<String>(OWN).await, "- - -");
    let told = title(&scene, ("t3", "U1"), "Release 4").await;
    // The words stand in one place, where an erasure finds them.
    assert!(told.contains("has that title now") && !told.contains("Release"));
    assert_eq!(scene.value::<String>(OWN).await, "Release 4 person U1");
    assert_eq!(shown(&scene, &room).await, "Release 4");
    let told = title(&scene, ("t4", "U2"), "").await;
    assert!(told.contains("is called: Release 4"), "{told}");
    title(&scene, ("t5", "U2"), "Release 5").await;
    assert_eq!(scene.value::<String>(OWN).await, "Release 5 person U2");
    title(&scene, ("t6", "U1"), "-").await;
    // The title is nobody's any more; it is marked, so that no model makes another one.
    assert_eq!(scene.value::<String>(OWN).await, "- person -");
    assert_eq!(shown(&scene, &room).await, "c1");
}

#[tokio::test]
async fn a_title_is_one_harmless_line_with_names_in_place_of_mentions() {
    let (scene, room) = a_room().await;
    scene.say(&room, "hello", 10).await;
    let ann = "UPDATE participants SET display_name = 'Ann' WHERE kind = 'user'";
    scene
        .write(move |connection| Ok(connection.execute(ann, [])?))
        .await;
    let person: String = scene
        .value("SELECT platform_id FROM participants WHERE kind = 'user'")
        .await;
    let text = format!(
        "# **Plan** of {}\n`now` \u{202E}x\u{2066}",
        mention_token(&person)
    );
    title(&scene, ("t1", "U2"), &text).await;
    assert_eq!(shown(&scene, &room).await, "Plan of @Ann now x");
    title(&scene, ("t2", "U2"), &"zebra ".repeat(100)).await;
    let long = shown(&scene, &room).await;
    assert!(
        long.chars().count() <= TITLE_MAX_CHARS && long.ends_with('…'),
        "{long}"
    );
    let told = title(&scene, ("t3", "U2"), "** \u{200B}").await;
    assert!(told.contains("Nothing is left"), "{told}");
    assert_eq!(shown(&scene, &room).await, long);
}

#[tokio::test]
async fn an_operators_title_is_changed_by_those_who_administer_and_by_operators() {
    let (scene, room) = a_room().await;
    let set = |title: Option<&str>| scene.store.set_title(room.id, title.map(str::to_owned));
    set(Some("Operations")).await.unwrap();
    for (id, text) in [("t1", "Mine"), ("t2", "-")] {
        let told = title(&scene, (id, "U1"), text).await;
        assert!(told.contains("An operator gave"), "{told}");
    }
    assert_eq!(scene.value::<String>(OWN).await, "Operations - -");
    title(&scene, ("t3", "UADMIN"), "Ours").await;
    assert_eq!(scene.value::<String>(OWN).await, "Ours person UADMIN");
    title(&scene, ("t4", "U1"), "Mine").await;
    assert_eq!(scene.value::<String>(OWN).await, "Mine person U1");
    set(Some("Operations")).await.unwrap();
    assert_eq!(scene.value::<String>(OWN).await, "Operations - -");
    set(None).await.unwrap();
    assert_eq!(scene.value::<String>(OWN).await, "- - -");
}

#[tokio::test]
async fn a_title_that_is_told_twice_is_given_once() {
    let (scene, room) = a_room().await;
    title(&scene, ("t1", "U1"), "First").await;
    title(&scene, ("t2", "U1"), "Second").await;
    let again = Effect::Title(TitleCommand {
        order: TitleOrder::read("First"),
        is_admin: false,
        language: Language::default(),
    });
    let outcome = give(&scene, ("t1", "U1"), again).await;
    assert_eq!(outcome, CommandOutcome::default());
    assert_eq!(shown(&scene, &room).await, "Second");
}

#[tokio::test]
async fn a_persons_title_goes_with_them_and_stays_when_others_go() {
    let (scene, _) = a_room().await;
    title(&scene, ("t1", "U1"), "zebra of Ann").await;
    let of_other = give(&scene, ("t2", "U2"), Effect::ForgetPerson).await;
    carry_out(&scene, &of_other).await;
    let kept = scene.value::<String>(OWN).await;
    assert_eq!(kept, "zebra of Ann person U1");
    let own = give(&scene, ("t3", "U1"), Effect::ForgetPerson).await;
    carry_out(&scene, &own).await;
    assert_eq!(scene.value::<String>(OWN).await, "- person -");
}

#[tokio::test]
async fn an_operator_who_erases_a_person_or_a_chat_erases_their_titles() {
    for is_person in [true, false] {
        let (scene, room) = a_room().await;
        scene.say(&room, "hello", 10).await;
        title(&scene, ("t1", "U1"), "zebra").await;
        let target = match is_person {
            true => ErasureTarget::Person("U1".to_owned()),
            false => ErasureTarget::Conversation("acme/C1".to_owned()),
        };
        let plan = scene.store.plan_erasure(target, LATER_MS).await.unwrap();
        let ids: Vec<_> = plan.entries.iter().map(|entry| entry.id).collect();
        scene.store.begin_erasure(plan.entries).await.unwrap();
        let clock = || LATER_MS + 1;
        scene.store.carry_out_all(&ids, true, clock).await.unwrap();
        assert_eq!(scene.value::<String>(OWN).await, "- person -");
    }
}

#[tokio::test]
async fn a_title_that_a_model_made_goes_with_a_message_or_with_age() {
    for by_age in [false, true] {
        let fixture = Fixture::new().await;
        fixture.hear(said("1", "zebra")).await;
        fixture.hear(said("2", "okapi")).await;
        let made = "UPDATE conversations SET own_title = 'Zebras', own_title_from = 'model'";
        fixture.execute(made).await;
        match by_age {
            false => {
                let deleted = fixture
                    .store
                    .capture_delete(fixture.account, "C1", "2", LATER_MS);
                deleted.await.unwrap();
            }
            true => {
                let bounds = crate::ExpiryBounds {
                    text_before_ms: Some(LATER_MS),
                    ..Default::default()
                };
                let expired = fixture
                    .store
                    .expire(fixture.account, bounds, 100, LATER_MS)
                    .await;
                assert_eq!(expired.unwrap().text, 2);
            }
        }
        assert_eq!(fixture.value::<String>(OWN).await, "- model -", "{by_age}");
    }
}

#[tokio::test]
async fn a_title_of_a_thread_that_a_model_made_goes_with_the_threads_root() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let root = scene.say(&room, "zebra", 10).await;
    let thread = scene.thread(&room, root).await;
    scene.say(&thread, "okapi", 20).await;
    let made = "UPDATE conversations SET own_title = 'Zebras', own_title_from = 'model' WHERE thread <> ''";
    scene
        .write(move |connection| Ok(connection.execute(made, [])?))
        .await;
    let message = format!("m{}", root.seq);
    let deleted = scene
        .store
        .capture_delete(scene.account, "C1", &message, LATER_MS);
    deleted.await.unwrap();
    let own: String = scene
        .value("SELECT coalesce(own_title, '-') FROM conversations WHERE thread <> ''")
        .await;
    assert_eq!(own, "-");
}

#[tokio::test]
async fn a_merge_keeps_a_title_with_whose_it_is() {
    let (of_old, of_new) = ("'Old', 'person', 1", "'New', NULL, NULL");
    let none = "NULL, NULL, NULL";
    let gone = "NULL, 'model', NULL";
    let cases = [
        (of_old, none, "Old person 1"),
        (of_old, gone, "Old person 1"),
        (of_old, of_new, "New - -"),
        (none, of_old, "Old person 1"),
        (gone, none, "- model -"),
        (none, none, "- - -"),
    ];
    for (old, new, expected) in cases {
        let fixture = Fixture::new().await;
        for (chat, own) in [("old", old), ("new", new)] {
            let heard = Said {
                chat,
                ..said("1", "zebra")
            };
            fixture.hear(heard).await;
            let sql = format!(
                "UPDATE conversations SET (own_title, own_title_from, own_title_participant_id) = ({own})
                 WHERE chat_id = (SELECT chat_id FROM chat_ids WHERE platform_id = '{chat}')"
            );
            let written = fixture
                .store
                .write(move |connection| Ok(connection.execute(&sql, [])?));
            assert_eq!(written.await.unwrap(), 1);
        }
        let merged = fixture
            .store
            .merge_chats(fixture.account, "old", "new", NOW_MS);
        merged.await.unwrap();
        while fixture.store.continue_merges().await.unwrap() {}
        let kept: Vec<String> = fixture
            .column(
                "SELECT coalesce(own_title, '-') || ' ' || coalesce(own_title_from, '-') || ' ' ||
                        coalesce(own_title_participant_id, '-') FROM conversations",
            )
            .await;
        assert_eq!(kept, [expected], "{old} into {new}");
    }
}

/// Asks the agent something and has it answer.
async fn answered(scene: &Scene, room: &Room, text: &str, at_ms: i64) {
    scene.ask(room, text, at_ms).await;
    let run = scene.claim(at_ms + 1).await.unwrap();
    let reply = scene.answer(&run, room, &format!("It is {text}."));
    scene.store.commit_reply(reply).await.unwrap();
}

/// Makes the chat one of the agent and one person, after whom it is called.
async fn make_direct(scene: &Scene) {
    let sql = "UPDATE chats SET title = 'Ann', kind = 'direct'";
    scene
        .write(move |connection| Ok(connection.execute(sql, [])?))
        .await;
}

async fn due(scene: &Scene) -> Vec<ConversationId> {
    let found = scene
        .store
        .conversations_to_title(scene::agent(), 10_000)
        .await;
    let ids = found.unwrap().into_iter().map(|due| due.conversation);
    ids.collect()
}

fn made(room: &Room, title: Option<&str>, read: Vec<ReadTurn>) -> MadeTitle {
    MadeTitle {
        conversation: room.id,
        title: title.map(str::to_owned),
        read,
    }
}

#[tokio::test]
async fn a_conversation_without_a_name_is_titled_once_after_two_answers() {
    let (scene, room) = a_room().await;
    for (number, text) in [(1, "zebra"), (2, "okapi")] {
        let source = scene.store.title_source(room.id, scene::agent()).await;
        assert_eq!((due(&scene).await, source.unwrap()), (vec![], None));
        scene.say(&room, "overheard", number * 100 - 50).await;
        answered(&scene, &room, text, number * 100).await;
    }
    // A room with a name needs none.
    assert_eq!(due(&scene).await, []);
    make_direct(&scene).await;
    assert_eq!(due(&scene).await, [room.id]);
    let other = AgentName::trusted("other");
    let of_other = scene.store.title_source(room.id, other.clone()).await;
    assert_eq!(of_other.unwrap(), None);
    let other = scene.store.conversations_to_title(other, 10_000).await;
    assert_eq!(other.unwrap(), []);
    let source = scene.store.title_source(room.id, scene::agent()).await;
    let source = source.unwrap().unwrap();
    let text = |is_agents, text: &str| TitledText {
        is_agents,
        text: text.to_owned(),
    };
    let texts = [
        text(false, "zebra"),
        text(true, "It is zebra."),
        text(false, "okapi"),
        text(true, "It is okapi."),
    ];
    assert_eq!(source.texts, texts);

    let settle = |made| scene.store.settle_title(made);
    let given = made(&room, Some("Striped animals"), source.read.clone());
    assert!(settle(given).await.unwrap());
    assert_eq!(scene.value::<String>(OWN).await, "Striped animals model -");
    assert_eq!(due(&scene).await, []);
    // What is there already is not replaced.
    let again = made(&room, Some("Others"), source.read.clone());
    assert!(settle(again).await.unwrap());
    assert_eq!(shown(&scene, &room).await, "Striped animals");
    // With a message it goes, and is not made again.
    let message = format!("m{}", source.read[0].seq);
    let deleted = scene
        .store
        .capture_delete(scene.account, "C1", &message, LATER_MS);
    deleted.await.unwrap();
    assert_eq!(scene.value::<String>(OWN).await, "- model -");
    answered(&scene, &room, "gnu", 300).await;
    answered(&scene, &room, "emu", 400).await;
    assert_eq!(due(&scene).await, []);
}

#[tokio::test]
async fn many_conversations_that_want_no_title_hide_none_that_does() {
    let (scene, room) = a_room().await;
    answered(&scene, &room, "zebra", 100).await;
    answered(&scene, &room, "okapi", 200).await;
    for n in 0..60 {
        let newer = scene.room(&format!("C9{n}")).await;
        answered(&scene, &newer, "once", 300 + n).await;
    }
    make_direct(&scene).await;
    assert_eq!(due(&scene).await, [room.id]);
}

#[tokio::test]
async fn a_title_of_what_changed_meanwhile_is_not_kept_and_a_persons_stays() {
    let (scene, room) = a_room().await;
    make_direct(&scene).await;
    answered(&scene, &room, "zebra", 100).await;
    answered(&scene, &room, "okapi", 200).await;
    let source = scene.store.title_source(room.id, scene::agent()).await;
    let read = source.unwrap().unwrap().read;
    let mut other = read.clone();
    other[0].revision += 1;
    let gone = ReadTurn {
        seq: Seq(999),
        revision: 1,
    };
    for stale in [other, vec![gone]] {
        let settled = scene
            .store
            .settle_title(made(&room, Some("Stale"), stale))
            .await;
        assert!(!settled.unwrap());
    }
    assert_eq!(due(&scene).await, [room.id]);
    title(&scene, ("t1", "U1"), "Mine").await;
    let late = scene
        .store
        .settle_title(made(&room, Some("Late"), read))
        .await;
    assert!(late.unwrap());
    assert_eq!(scene.value::<String>(OWN).await, "Mine person U1");
    // Taken away by a person, it is not made again; by an operator, it is.
    title(&scene, ("t2", "U1"), "-").await;
    assert_eq!(due(&scene).await, []);
    scene.store.set_title(room.id, None).await.unwrap();
    assert_eq!(due(&scene).await, [room.id]);
    let none = scene.store.settle_title(made(&room, None, vec![])).await;
    assert!(none.unwrap());
    assert_eq!(due(&scene).await, []);
}
