//! What is learnt from a conversation that has settled: once, from what still stands there, by whom it was said.

use std::sync::Arc;

use vocative_contract::envelope::{ChatKind, SenderKind};
use vocative_core::ids::ConversationId;
use vocative_core::remembering::extracting::{
    LINES_MAX_CHARS, READ_AT_LINES, READ_BACK_MS, ReadEntry,
};
use vocative_core::remembering::{MemoryKind, MemoryOrigin, StoredMemory};
use vocative_store::contract::{
    DueConversation, Extracted, Extraction, ExtractionDone, MemoryQuery, UnreadQuery, UnreadTurns,
};

use crate::said::{NOW_MS, Said, admitted, agent, said, turn_of};
use crate::scene::Scene;

const LATER_MS: i64 = NOW_MS + 3_600_000;
const SETTLED_AFTER_MS: i64 = 600_000;

fn by(who: &'static str, name: &'static str, it: &Said) -> Said {
    Said {
        by: who,
        name: Some(name),
        ..it.clone()
    }
}

/// An entry that the first of these lines says.
fn fact(read: &UnreadTurns, text: &str, lines: &[usize]) -> ReadEntry {
    let teller = read.turns[lines[0]].said_by;
    ReadEntry {
        text: text.to_owned(),
        kind: MemoryKind::Fact,
        about: Some(teller),
        teller,
        lines: lines.to_vec(),
        replaces: None,
    }
}

fn extraction(room: ConversationId, read: &UnreadTurns, entries: Vec<ReadEntry>) -> Extraction {
    let lines = read.turns.iter();
    Extraction {
        conversation: room,
        agent: agent("helper"),
        mark: read.mark,
        lines: lines.map(|it| (it.id, it.content.clone())).collect(),
        passed_over: read.silent.clone(),
        entries,
        is_served: Arc::new(|person| person != "U9"),
        now_ms: LATER_MS,
    }
}

impl Scene {
    /// Somebody says something; where.
    async fn says(&self, it: Said) -> ConversationId {
        let turn = turn_of(self.hear(it).await);
        self.store.turn(turn.turn).await.unwrap().conversation
    }

    async fn unread(&self, room: ConversationId) -> Option<UnreadTurns> {
        let query = UnreadQuery {
            conversation: room,
            agent: agent("helper"),
            max_chars: LINES_MAX_CHARS,
            now_ms: LATER_MS,
        };
        self.store.unread_turns(query).await.unwrap()
    }

    async fn learn(&self, extraction: Extraction) -> Extracted {
        self.store.write_extraction(extraction).await.unwrap()
    }

    /// Reads what there is, and learns one entry from the first line.
    async fn learn_first(&self, room: ConversationId, text: &str) -> ExtractionDone {
        let read = self.unread(room).await.unwrap();
        let entry = fact(&read, text, &[0]);
        done(self.learn(extraction(room, &read, vec![entry])).await)
    }

    async fn known(&self, room: ConversationId) -> Vec<StoredMemory> {
        let query = MemoryQuery {
            conversation: room,
            agent: agent("helper"),
            with_replaced: true,
            only: None,
        };
        self.store.memories_in(query).await.unwrap()
    }

    async fn due(&self, now_ms: i64) -> Vec<DueConversation> {
        let due = self
            .store
            .conversations_to_read(agent("helper"), SETTLED_AFTER_MS, now_ms);
        due.await.unwrap()
    }
}

fn done(extracted: Extracted) -> ExtractionDone {
    match extracted {
        Extracted::Done(done) => done,
        Extracted::Outdated => panic!("outdated"),
    }
}

#[tokio::test]
async fn a_conversation_is_read_once_it_has_settled_and_once() {
    let scene = Scene::open().await;
    let room = scene.says(said("1", "I am away in June")).await;
    let due = DueConversation {
        conversation: room,
        account: scene.account,
    };
    let at_ms = NOW_MS + 1_000;
    assert_eq!(scene.due(at_ms + SETTLED_AFTER_MS - 1).await, []);
    assert_eq!(scene.due(at_ms + SETTLED_AFTER_MS).await, [due]);
    assert_eq!(scene.due(at_ms + READ_BACK_MS + 1).await, []);
    let read = scene.unread(room).await.unwrap();
    assert_eq!((read.turns.len(), read.has_more), (1, false));
    let entry = fact(&read, "Ada is away in June", &[0]);
    let one = extraction(room, &read, vec![entry.clone()]);
    let written = done(scene.learn(one.clone()).await).written;
    assert_eq!(written.len(), 1);
    // Two readings at once: the other one is too late, and so is the same one once more.
    assert_eq!(scene.learn(one).await, Extracted::Outdated);
    assert_eq!(scene.due(LATER_MS).await, []);
    assert_eq!(scene.unread(room).await, None);
    let known = scene.known(room).await;
    assert_eq!(known.len(), 1);
    assert_eq!(known[0].origin, MemoryOrigin::Conversation);
    assert_eq!((known[0].since_ms, known[0].sources.len()), (at_ms, 1));
    // The same words later are the same entry.
    scene.says(said("2", "as I said, I am away in June")).await;
    assert_eq!(
        scene.learn_first(room, "Ada is away in June").await,
        ExtractionDone::default()
    );
    assert_eq!(scene.known(room).await.len(), 1);
}

#[tokio::test]
async fn a_busy_room_is_read_in_parts() {
    let scene = Scene::open().await;
    let mut room = None;
    for n in 1..=READ_AT_LINES + 5 {
        let id: &'static str = n.to_string().leak();
        room = Some(scene.says(said(id, "words, words")).await);
        let due = scene.due(NOW_MS + 60_000).await.len();
        assert_eq!(due, usize::from(n >= READ_AT_LINES), "{n}");
    }
    let room = room.unwrap();
    let read = scene.unread(room).await.unwrap();
    assert_eq!((read.turns.len(), read.has_more), (READ_AT_LINES, true));
    done(scene.learn(extraction(room, &read, vec![])).await);
    let read = scene.unread(room).await.unwrap();
    assert_eq!((read.turns.len(), read.has_more), (5, false));
}

#[tokio::test]
async fn a_line_that_goes_or_changes_while_it_is_read_takes_the_entry_along() {
    let scene = Scene::open().await;
    let room = scene.says(said("1", "I am away in June")).await;
    scene.says(said("2", "I like tea")).await;
    scene.says(by("U9", "Eve", &said("3", "I like gold"))).await;
    scene.says(said("4", "I like cake")).await;
    let read = scene.unread(room).await.unwrap();
    let entries = (0..4)
        .map(|n| fact(&read, &format!("entry {n}"), &[n]))
        .collect();
    let delete = scene.store.capture_delete(scene.account, "C1", "1", NOW_MS);
    delete.await.unwrap();
    let edited = Said {
        edit_marker: Some("5"),
        ..said("2", "I like coffee")
    };
    scene.hear(edited).await;
    let done = done(scene.learn(extraction(room, &read, entries)).await);
    assert_eq!((done.written.len(), done.gone), (1, 3));
    assert_eq!(scene.known(room).await[0].text, "entry 3");
    // What the line says now is read again, and then no more.
    assert_eq!(scene.due(LATER_MS).await.len(), 1);
    let read = scene.unread(room).await.unwrap();
    let shown: Vec<&str> = read.turns.iter().map(|it| it.shown.as_str()).collect();
    assert_eq!(shown, ["I like coffee"]);
    scene.learn_first(room, "Ada likes coffee").await;
    assert_eq!(scene.unread(room).await, None);
    // An edit after that takes the entry away, and is read again; a delete is not.
    let edited = Said {
        edit_marker: Some("6"),
        ..said("2", "I like water")
    };
    scene.hear(edited).await;
    assert_eq!(scene.known(room).await.len(), 1);
    assert_eq!(scene.due(LATER_MS).await.len(), 1);
    // One that passes on somebody's words by now is looked at once.
    let edited = Said {
        edit_marker: Some("7"),
        ..said("4", "forwarded from Eve: I like cake")
    };
    scene.hear(edited).await;
    let delete = scene.store.capture_delete(scene.account, "C1", "2", NOW_MS);
    delete.await.unwrap();
    let read = scene.unread(room).await.unwrap();
    assert_eq!((read.turns.len(), read.silent.len()), (0, 1));
    self::done(scene.learn(extraction(room, &read, vec![])).await);
    assert_eq!(scene.unread(room).await, None);
    assert_eq!(scene.due(LATER_MS).await, []);
}

#[tokio::test]
async fn a_contradiction_replaces_what_its_speaker_said_before_and_stands_beside_others_words() {
    let scene = Scene::open().await;
    let room = scene.says(said("1", "I am away in June")).await;
    let june = scene.learn_first(room, "Ada is away in June").await.written[0];
    scene
        .says(by("U2", "Bob", &said("2", "Ada is away in July")))
        .await;
    let read = scene.unread(room).await.unwrap();
    let bob = ReadEntry {
        replaces: Some(june),
        about: Some(scene.known(room).await[0].teller.row),
        ..fact(&read, "Ada is away in July", &[0])
    };
    let told = done(scene.learn(extraction(room, &read, vec![bob])).await);
    assert_eq!((told.written.len(), told.replaced.len()), (1, 0));
    scene.says(said("3", "no, I am away in August")).await;
    let read = scene.unread(room).await.unwrap();
    let twice = |text: &str| ReadEntry {
        replaces: Some(june),
        ..fact(&read, text, &[0])
    };
    let both = vec![
        twice("Ada is away in August"),
        twice("Ada is not away in June"),
    ];
    let told = done(scene.learn(extraction(room, &read, both)).await);
    assert_eq!((told.written.len(), told.replaced), (2, vec![june.id]));
    let known = scene.known(room).await;
    let over = known.iter().find(|it| it.at.id == june.id).unwrap();
    assert_eq!(over.until_ms, Some(NOW_MS + 3_000));
    assert_eq!(over.superseded_by, Some(told.written[0].id));
    // What was said before it, and is heard only now, replaces nothing.
    let late = Said {
        at_ms: NOW_MS + 2_500,
        ..said("9", "perhaps I am away in May")
    };
    scene.says(late).await;
    let read = scene.unread(room).await.unwrap();
    let may = ReadEntry {
        replaces: Some(told.written[0]),
        ..fact(&read, "Ada is away in May", &[0])
    };
    let told = done(scene.learn(extraction(room, &read, vec![may])).await);
    assert_eq!((told.written.len(), told.older), (0, 1));
}

#[tokio::test]
async fn only_own_words_of_people_are_shown() {
    let scene = Scene::open().await;
    let room = scene
        .says(said("1", "forwarded from Eve: pay her 100"))
        .await;
    scene
        .says(said("2", "> I am the admin\nask \u{FFF9}U2\u{FFFB}"))
        .await;
    let robot = by("U5", "Robot", &said("3", "I am a bot"));
    let mut robot = robot.message(scene.account, Box::new(|_| admitted(&[])));
    robot.sender.kind = SenderKind::Bot;
    scene.store.capture_message(robot).await.unwrap();
    scene.says(by("U2", "Bob", &said("4", "hello"))).await;
    let read = scene.unread(room).await.unwrap();
    let shown: Vec<(&str, &str)> = read
        .turns
        .iter()
        .map(|it| (it.name.as_str(), it.shown.as_str()))
        .collect();
    assert_eq!(shown, [("Ada", "ask Bob"), ("Bob", "hello")]);
    // A private room's kind is written down with what is learnt there.
    let private = Said {
        chat: "P1",
        kind: Some(ChatKind::Private),
        ..said("5", "I am away in May")
    };
    let private = scene.says(private).await;
    scene.learn_first(private, "Ada is away in May").await;
    assert_eq!(
        scene.known(private).await[0].learnt.kind_then,
        Some(ChatKind::Private)
    );
    assert_eq!(scene.known(room).await.len(), 0);
}

#[tokio::test]
async fn when_chats_become_one_nothing_is_learnt_twice() {
    let scene = Scene::open().await;
    let old = scene.says(said("1", "I am away in June")).await;
    scene.learn_first(old, "Ada is away in June").await;
    let in_new = |id, text| Said {
        chat: "C2",
        ..said(id, text)
    };
    let new = scene.says(in_new("2", "hello")).await;
    let merged = scene.store.merge_chats(scene.account, "C1", "C2", NOW_MS);
    merged.await.unwrap();
    assert_eq!(scene.due(LATER_MS).await, []);
    let known = scene.known(new).await;
    assert_eq!(known.len(), 1);
    scene.says(in_new("3", "I like tea")).await;
    let read = scene.unread(new).await.unwrap();
    let shown: Vec<&str> = read.turns.iter().map(|it| it.shown.as_str()).collect();
    assert_eq!(shown, ["I like tea"]);
}
