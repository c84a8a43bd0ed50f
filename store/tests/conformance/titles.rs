//! Titles that people and models give conversations: told, given, taken away, and gone with whoever gave them.

use vocative_contract::envelope::{ChatKind, Place};
use vocative_contract::markup::mention_token;
use vocative_core::command::{CommandVerdict, Effect};
use vocative_core::ids::{AgentName, ConversationId, Seq};
use vocative_core::title::{TITLE_MAX_CHARS, TitleCommand, TitleOrder, TitledText};
use vocative_core::words::Language;
use vocative_store::ExpiryBounds;
use vocative_store::commands::CommandOutcome;
use vocative_store::contract::{MadeTitle, ReadTurn, TitleSource};
use vocative_store::erasure::{ErasureId, ErasureTarget};

use crate::said::{Said, admitted, agent, said};
use crate::scene::Scene;

const LATER_MS: i64 = 900_000;

fn effect(text: &str, is_admin: bool) -> CommandVerdict {
    let effect = Effect::Title(TitleCommand {
        order: TitleOrder::read(text),
        is_admin,
        language: Language::default(),
    });
    silent(effect)
}

fn silent(effect: Effect) -> CommandVerdict {
    CommandVerdict {
        effect,
        answer: None,
        ..CommandVerdict::told("")
    }
}

/// A room with a name, in which nothing that matters was said.
struct Room {
    scene: Scene,
    id: ConversationId,
}

impl Room {
    async fn new() -> Self {
        let scene = Scene::open().await;
        let hello = Said {
            at_ms: 10,
            ..said("1", "hello")
        };
        scene.hear(hello).await;
        let id = scene.conversation("C1").await;
        let room = Self { scene, id };
        room.learn(ChatKind::Public, "general").await;
        room
    }

    /// One of the agent and one person, after whom it is called.
    async fn direct() -> Self {
        let room = Self::new().await;
        room.learn(ChatKind::Direct, "Ann").await;
        room
    }

    async fn learn(&self, kind: ChatKind, title: &str) {
        let place = Place {
            chat: "C1".to_owned(),
            kind: Some(kind),
            title: Some(title.to_owned()),
            ..Place::default()
        };
        let store = &self.scene.store;
        let learnt = store.learn_place(self.scene.account, place, LATER_MS);
        learnt.await.unwrap();
    }

    /// What somebody is told who says that behind `title`.
    async fn title(&self, (id, person): (&str, &str), text: &str) -> String {
        let verdict = effect(text, person == "UADMIN");
        let given = self.scene.command_of(person, id, LATER_MS, verdict).await;
        assert!(given.is_new);
        let mut told = String::new();
        loop {
            let claimed = self.scene.claim_posts(LATER_MS).await;
            if claimed.is_empty() {
                return told;
            }
            for claim in claimed {
                let message_id = claim.entry.id.to_string();
                self.scene.send(&claim, &message_id, LATER_MS).await;
                told = claim.entry.part.text;
            }
        }
    }

    async fn forget(&self, id: &str, person: &str) {
        let verdict = silent(Effect::ForgetPerson);
        let outcome = self.scene.command_of(person, id, LATER_MS, verdict).await;
        carry_out(&self.scene, &outcome.erasures).await;
    }

    async fn shown(&self) -> String {
        self.scene.store.overview(self.id).await.unwrap().title
    }

    async fn own(&self) -> Option<String> {
        own(&self.scene, self.id).await
    }

    /// Asks the agent something and has it answer.
    async fn answered(&self, text: &str, at_ms: i64) {
        self.answered_in("C1", text, at_ms).await;
    }

    async fn answered_in(&self, chat: &str, text: &str, at_ms: i64) {
        let scene = &self.scene;
        let mut question = scene.next_message(chat, text, at_ms, admitted(&["helper"]));
        question.place.kind = None;
        scene.store.capture_message(question).await.unwrap();
        let run = scene.claim(at_ms + 1).await.unwrap();
        let reply = scene.answer(&run, &format!("It is {text}.")).await;
        scene.store.commit_reply(reply).await.unwrap();
    }

    async fn due_of(&self, agent: AgentName) -> Vec<ConversationId> {
        let found = self.scene.store.conversations_to_title(agent, 10_000).await;
        let ids = found.unwrap().into_iter().map(|due| due.conversation);
        ids.collect()
    }

    async fn due(&self) -> Vec<ConversationId> {
        self.due_of(agent("helper")).await
    }

    async fn source(&self) -> Option<TitleSource> {
        let source = self.scene.store.title_source(self.id, agent("helper"));
        source.await.unwrap()
    }

    /// A model made this title.
    async fn settle(&self, title: Option<&str>, read: Vec<ReadTurn>) -> bool {
        settle(&self.scene, self.id, title, read).await
    }
}

async fn own(scene: &Scene, id: ConversationId) -> Option<String> {
    scene.store.overview(id).await.unwrap().own_title
}

async fn settle(
    scene: &Scene,
    conversation: ConversationId,
    title: Option<&str>,
    read: Vec<ReadTurn>,
) -> bool {
    let made = MadeTitle {
        conversation,
        title: title.map(str::to_owned),
        read,
    };
    scene.store.settle_title(made).await.unwrap()
}

/// Whether no model gives it a title any more: there was one.
async fn is_marked(scene: &Scene, id: ConversationId) -> bool {
    assert!(settle(scene, id, Some("by a model"), vec![]).await);
    own(scene, id).await.is_none()
}

async fn carry_out(scene: &Scene, erasures: &[ErasureId]) {
    let clock = || LATER_MS + 1;
    let carried_out = scene.store.carry_out_all(erasures, false, clock).await;
    carried_out.unwrap();
}

#[tokio::test]
async fn a_person_is_told_gives_and_takes_away_the_title_of_where_they_are() {
    let room = Room::new().await;
    let told = room.title(("t1", "U1"), "").await;
    assert!(told.contains("listed as: general"), "{told}");
    let told = room.title(("t2", "U1"), "-").await;
    assert!(told.contains("has no title of its own."), "{told}");
    assert_eq!(room.own().await, None);
    let told = room.title(("t3", "U1"), "Release 4").await;
    // The words stand in one place, where an erasure finds them.
    assert!(told.contains("has that title now") && !told.contains("Release"));
    assert_eq!(room.shown().await, "Release 4");
    let told = room.title(("t4", "U2"), "").await;
    assert!(told.contains("is called: Release 4"), "{told}");
    room.title(("t5", "U2"), "Release 5").await;
    assert_eq!(room.shown().await, "Release 5");
    room.title(("t6", "U1"), "-").await;
    // No model makes another one.
    assert!(is_marked(&room.scene, room.id).await);
    assert_eq!(room.shown().await, "general");
}

#[tokio::test]
async fn a_title_is_one_harmless_line_with_names_in_place_of_mentions() {
    let room = Room::new().await;
    let text = format!(
        "# **Plan** of {}\n`now` \u{202E}x\u{2066}",
        mention_token("U1")
    );
    room.title(("t1", "U2"), &text).await;
    assert_eq!(room.shown().await, "Plan of @Ada now x");
    room.title(("t2", "U2"), &"zebra ".repeat(100)).await;
    let long = room.shown().await;
    assert!(
        long.chars().count() <= TITLE_MAX_CHARS && long.ends_with('…'),
        "{long}"
    );
    let told = room.title(("t3", "U2"), "** \u{200B}").await;
    assert!(told.contains("Nothing is left"), "{told}");
    assert_eq!(room.shown().await, long);
}

#[tokio::test]
async fn an_operators_title_is_changed_by_those_who_administer_and_by_operators() {
    let room = Room::new().await;
    let store = &room.scene.store;
    let set = async |title: Option<&str>| {
        let set = store.set_title(room.id, title.map(str::to_owned));
        set.await.unwrap();
    };
    set(Some("Operations")).await;
    for (id, text) in [("t1", "Mine"), ("t2", "-")] {
        let told = room.title((id, "U1"), text).await;
        assert!(told.contains("An operator gave"), "{told}");
    }
    assert_eq!(room.shown().await, "Operations");
    for (id, person, text) in [("t3", "UADMIN", "Ours"), ("t4", "U1", "Mine")] {
        room.title((id, person), text).await;
        assert_eq!(room.shown().await, text);
    }
    set(Some("Operations")).await;
    room.title(("t5", "U1"), "Mine").await;
    assert_eq!(room.shown().await, "Operations");
    set(None).await;
    assert_eq!(room.own().await, None);
    // An operator leaves no mark.
    assert!(!is_marked(&room.scene, room.id).await);
}

#[tokio::test]
async fn a_title_that_is_told_twice_is_given_once() {
    let room = Room::new().await;
    room.title(("t1", "U1"), "First").await;
    room.title(("t2", "U1"), "Second").await;
    let verdict = effect("First", false);
    let again = room.scene.command_of("U1", "t1", LATER_MS, verdict).await;
    assert_eq!(again, CommandOutcome::default());
    assert_eq!(room.shown().await, "Second");
}

#[tokio::test]
async fn a_persons_title_goes_with_them_and_stays_when_others_go() {
    let room = Room::new().await;
    room.title(("t1", "U1"), "zebra of Ann").await;
    room.title(("t2", "U3"), "zebra of Carl").await;
    for (id, other) in [("t3", "U1"), ("t4", "U2")] {
        room.forget(id, other).await;
        assert_eq!(room.own().await.as_deref(), Some("zebra of Carl"));
    }
    room.forget("t5", "U3").await;
    assert!(is_marked(&room.scene, room.id).await);
}

#[tokio::test]
async fn an_operator_who_erases_a_person_or_a_chat_erases_their_titles() {
    for target in [
        ErasureTarget::Person("U1".to_owned()),
        ErasureTarget::Conversation("acme/C1".to_owned()),
    ] {
        let room = Room::new().await;
        room.title(("t1", "U1"), "zebra").await;
        let store = &room.scene.store;
        let plan = store.plan_erasure(target, LATER_MS).await.unwrap();
        let ids: Vec<ErasureId> = plan.entries.iter().map(|entry| entry.id).collect();
        store.begin_erasure(plan.entries).await.unwrap();
        carry_out(&room.scene, &ids).await;
        assert!(is_marked(&room.scene, room.id).await);
    }
}

#[tokio::test]
async fn a_title_that_a_model_made_goes_with_a_message_or_with_age() {
    for by_age in [false, true] {
        let room = Room::new().await;
        room.scene.hear(said("2", "okapi")).await;
        let (store, account) = (&room.scene.store, room.scene.account);
        assert!(room.settle(Some("Zebras"), vec![]).await);
        assert_eq!(room.shown().await, "Zebras");
        if by_age {
            let bounds = ExpiryBounds {
                text_before_ms: Some(i64::MAX),
                ..ExpiryBounds::default()
            };
            let expired = store.expire(account, bounds, 100, LATER_MS).await;
            assert_eq!(expired.unwrap().text, 2);
        } else {
            let deleted = store.capture_delete(account, "C1", "2", LATER_MS);
            deleted.await.unwrap();
        }
        assert!(is_marked(&room.scene, room.id).await, "{by_age}");
    }
}

#[tokio::test]
async fn a_title_of_a_thread_that_a_model_made_goes_with_the_threads_root() {
    let scene = Scene::open().await;
    scene.say("C1", "zebra", 10).await;
    scene.say("C1/m0", "okapi", 20).await;
    let thread = scene.conversation("C1/m0").await;
    assert!(settle(&scene, thread, Some("Zebras"), vec![]).await);
    let deleted = scene
        .store
        .capture_delete(scene.account, "C1", "m0", LATER_MS);
    deleted.await.unwrap();
    assert!(is_marked(&scene, thread).await);
}

/// Whose the title of a chat is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Persons,
    Operators,
    /// There was one of a model's.
    Gone,
    Nobodys,
}

/// Gives the title of a chat.
async fn give(room: &Room, whose: Whose, title: &str) {
    match whose {
        Whose::Persons => drop(room.title(("t1", "U1"), title).await),
        Whose::Operators => {
            let set = room.scene.store.set_title(room.id, Some(title.to_owned()));
            set.await.unwrap();
        }
        Whose::Gone => assert!(room.settle(None, vec![]).await),
        Whose::Nobodys => {}
    }
}

#[tokio::test]
async fn a_merge_keeps_a_title_with_whose_it_is() {
    use Whose::{Gone, Nobodys, Operators, Persons};
    let cases = [
        (Persons, Nobodys, Persons),
        (Persons, Gone, Persons),
        (Persons, Operators, Operators),
        (Nobodys, Persons, Persons),
        (Gone, Nobodys, Gone),
        (Nobodys, Nobodys, Nobodys),
    ];
    for (old, new, expected) in cases {
        let case = format!("{old:?} into {new:?}");
        let mut room = Room::new().await;
        // Commands are given in C1: that is the one with the person's title.
        let (mine, other) = match new {
            Persons => (new, old),
            _ => (old, new),
        };
        give(&room, mine, "of C1").await;
        let elsewhere = Said {
            chat: "C2",
            ..said("1", "zebra")
        };
        room.scene.hear(elsewhere).await;
        let c1 = room.id;
        room.id = room.scene.conversation("C2").await;
        give(&room, other, "of C2").await;
        let (from, to) = match new {
            Persons => ("C2", "C1"),
            _ => ("C1", "C2"),
        };
        if new == Persons {
            room.id = c1;
        }
        let store = &room.scene.store;
        let merged = store.merge_chats(room.scene.account, from, to, LATER_MS);
        merged.await.unwrap();
        while store.continue_merges().await.unwrap() {}
        let title = room.own().await;
        room.forget("t2", "U1").await;
        match expected {
            Persons => {
                assert_eq!(title.as_deref(), Some("of C1"), "{case}");
                assert!(is_marked(&room.scene, room.id).await, "{case}");
            }
            Operators => {
                assert_eq!(title.as_deref(), Some("of C2"), "{case}");
                assert_eq!(room.own().await, title, "{case}");
                let told = room.title(("t3", "U2"), "Mine").await;
                assert!(told.contains("An operator gave"), "{case}: {told}");
            }
            Gone => {
                assert_eq!(title, None, "{case}");
                assert!(is_marked(&room.scene, room.id).await, "{case}");
            }
            Nobodys => {
                assert_eq!(title, None, "{case}");
                assert!(!is_marked(&room.scene, room.id).await, "{case}");
            }
        }
    }
}

#[tokio::test]
async fn a_conversation_without_a_name_is_titled_once_after_two_answers() {
    let room = Room::new().await;
    for (number, text) in [(1, "zebra"), (2, "okapi")] {
        assert_eq!((room.due().await, room.source().await), (vec![], None));
        room.answered(text, number * 100).await;
    }
    // A room with a name needs none.
    assert_eq!(room.due().await, []);
    room.learn(ChatKind::Direct, "Ann").await;
    assert_eq!(room.due().await, [room.id]);
    let store = &room.scene.store;
    let of_other = store.title_source(room.id, agent("other")).await;
    assert_eq!(of_other.unwrap(), None);
    assert_eq!(room.due_of(agent("other")).await, []);
    let source = room.source().await.unwrap();
    let texts = [
        (false, "zebra"),
        (true, "It is zebra."),
        (false, "okapi"),
        (true, "It is okapi."),
    ];
    let texts = texts.map(|(is_agents, text)| TitledText {
        is_agents,
        text: text.to_owned(),
    });
    assert_eq!(source.texts, texts);

    let read = source.read;
    assert!(room.settle(Some("Striped animals"), read.clone()).await);
    assert_eq!(room.due().await, []);
    // What is there already is not replaced.
    assert!(room.settle(Some("Others"), read).await);
    assert_eq!(room.shown().await, "Striped animals");
    // With a message it goes, and is not made again.
    let deleted = store.capture_delete(room.scene.account, "C1", "m0", LATER_MS);
    deleted.await.unwrap();
    assert_eq!(room.own().await, None);
    room.answered("gnu", 300).await;
    room.answered("emu", 400).await;
    assert_eq!(room.due().await, []);
}

#[tokio::test]
async fn many_conversations_that_want_no_title_hide_none_that_does() {
    let room = Room::direct().await;
    room.answered("zebra", 100).await;
    room.answered("okapi", 200).await;
    for n in 0..60 {
        room.answered_in(&format!("C9{n}"), "once", 300 + n).await;
    }
    assert_eq!(room.due().await, [room.id]);
}

#[tokio::test]
async fn a_title_of_what_changed_meanwhile_is_not_kept_and_a_persons_stays() {
    let room = Room::direct().await;
    room.answered("zebra", 100).await;
    room.answered("okapi", 200).await;
    let read = room.source().await.unwrap().read;
    let mut other = read.clone();
    other[0].revision += 1;
    let gone = ReadTurn {
        seq: Seq(999),
        revision: 1,
    };
    for stale in [other, vec![gone]] {
        assert!(!room.settle(Some("Stale"), stale).await);
    }
    assert_eq!(room.due().await, [room.id]);
    room.title(("t1", "U1"), "Mine").await;
    assert!(room.settle(Some("Late"), read).await);
    assert_eq!(room.shown().await, "Mine");
    // Taken away by a person, it is not made again; by an operator, it is.
    room.title(("t2", "U1"), "-").await;
    assert_eq!(room.due().await, []);
    room.scene.store.set_title(room.id, None).await.unwrap();
    assert_eq!(room.due().await, [room.id]);
    assert!(room.settle(None, vec![]).await);
    assert_eq!(room.due().await, []);
}
