//! What is remembered: who said it, and how it goes.

use std::sync::Arc;

use vocative_contract::envelope::SenderKind;
use vocative_core::ids::{ConversationId, LeaseToken, ToolCallId};
use vocative_core::remembering::{MemoryKind, MemoryRef, MemoryRefusal, StoredMemory};
use vocative_core::run::{ClaimedRun, Usage};
use vocative_core::tool_call::CallRule;
use vocative_store::NewId as _;
use vocative_store::contract::{
    MemoryAbout, MemoryDone, MemoryFilter, MemoryQuery, MemoryWrite, MemoryWritten, NewMemory,
    NewToolCall, RecordedStep,
};

use crate::said::{NOW_MS, Said, admitted, agent, said};
use crate::scene::Scene;

const LATER_MS: i64 = NOW_MS + 600_000;

/// A run whose model has called a tool.
struct Called {
    run: ClaimedRun,
    call: ToolCallId,
}

fn fact(text: &str) -> NewMemory {
    NewMemory {
        kind: MemoryKind::Fact,
        text: text.to_owned(),
        about: MemoryAbout::Teller,
        words: None,
        replaces: None,
    }
}

fn write(called: &Called, new: Vec<NewMemory>, forget: Vec<MemoryRef>) -> MemoryWrite {
    MemoryWrite {
        run: called.run.run.id,
        token: called.run.token,
        call: called.call,
        new,
        forget,
        is_served: Arc::new(|person| person != "U9"),
        now_ms: LATER_MS,
    }
}

fn by(who: &'static str, name: &'static str, it: &Said) -> Said {
    Said {
        by: who,
        name: Some(name),
        ..it.clone()
    }
}

fn edited(it: &Said) -> Said {
    Said {
        edit_marker: Some("5"),
        ..it.clone()
    }
}

impl Scene {
    /// Somebody asks the agent, whose model calls a tool.
    async fn called(&self, said: Said) -> Called {
        self.hear_for(&["helper"], said).await;
        let run = self.claim(LATER_MS).await.unwrap();
        let (id, token) = (run.run.id, run.token);
        let step = "asked".to_owned();
        let usage = Usage::default();
        let recorded = self.store.record_step(
            id,
            token,
            RecordedStep {
                number: 1,
                message: step,
                usage,
                verdicts: Vec::new(),
            },
            NOW_MS,
        );
        recorded.await.unwrap();
        let call = NewToolCall {
            call_id: "call_1".to_owned(),
            tool: "remember".to_owned(),
            arguments: "{}".to_owned(),
            digest: [1; 32],
            rule: CallRule::Keyed,
        };
        let recorded = self
            .store
            .record_tool_calls(id, token, 1, vec![call], NOW_MS);
        let call = recorded.await.unwrap().unwrap()[0].id;
        Called { run, call }
    }

    async fn write(&self, write: MemoryWrite) -> MemoryWritten {
        self.store.write_memory(write).await.unwrap()
    }

    /// The run has answered.
    async fn over(&self, called: &Called) {
        let reply = self.answer(&called.run, "Noted.").await;
        self.store.commit_reply(reply).await.unwrap();
    }

    /// Somebody asks, what they say is noted, and that is answered.
    async fn noted(&self, said: Said, new: NewMemory) -> (Called, MemoryRef) {
        let called = self.called(said).await;
        let done = done(self.write(write(&called, vec![new], vec![])).await);
        self.over(&called).await;
        (called, done.written[0])
    }

    async fn memories(&self, room: ConversationId, with_replaced: bool) -> Vec<StoredMemory> {
        let query = MemoryQuery {
            conversation: room,
            agent: agent("helper"),
            with_replaced,
            only: None,
        };
        self.store.memories_in(query).await.unwrap()
    }

    async fn texts(&self, room: ConversationId) -> Vec<String> {
        let all = self.memories(room, false).await;
        all.into_iter().map(|entry| entry.text).collect()
    }
}

fn done(written: MemoryWritten) -> MemoryDone {
    match written {
        MemoryWritten::Done(done) => done,
        other => panic!("{other:?}"),
    }
}

fn refused(written: MemoryWritten) -> MemoryRefusal {
    match written {
        MemoryWritten::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_call_that_is_made_again_writes_nothing_more() {
    let scene = Scene::open().await;
    let called = scene.called(said("1", "I am away")).await;
    let mut written = Vec::new();
    for text in ["is away", "is away, again"] {
        let written_now = scene.write(write(&called, vec![fact(text)], vec![]));
        written.extend(done(written_now.await).written);
    }
    assert_eq!(written, [written[0]; 2]);
    let stale = MemoryWrite {
        token: LeaseToken::generate(),
        ..write(&called, vec![fact("x")], vec![])
    };
    assert_eq!(scene.write(stale).await, MemoryWritten::Stale);
    scene.over(&called).await;
    let room = called.run.run.conversation;
    assert_eq!(scene.texts(room).await, ["is away"]);
    let entry = scene.memories(room, false).await.remove(0);
    assert_eq!(
        (entry.teller.name.as_str(), entry.since_ms),
        ("Ada", NOW_MS + 1_000)
    );
    assert_eq!(entry.subject, Some(entry.teller.clone()));
    // Another call with the same words writes them once.
    let (_, same) = scene.noted(said("2", "away!"), fact("is away")).await;
    assert_eq!(same, written[0]);
}

#[tokio::test]
async fn all_of_a_call_is_written_or_nothing() {
    let scene = Scene::open().await;
    let (called, old) = scene.noted(said("1", "I am away"), fact("is away")).await;
    let room = called.run.run.conversation;
    let called = scene.called(said("2", "I am back")).await;
    let replacing = |replaces| NewMemory {
        replaces: Some(replaces),
        ..fact("is back")
    };
    let stale = MemoryRef { version: 9, ..old };
    let both = vec![fact("likes tea"), replacing(stale)];
    let refusal = refused(scene.write(write(&called, both, vec![])).await);
    assert_eq!(refusal, MemoryRefusal::Changed { entry: stale });
    assert_eq!(scene.texts(room).await, ["is away"]);
    let both = vec![fact("likes tea"), replacing(old)];
    let written = done(scene.write(write(&called, both, vec![])).await);
    scene.over(&called).await;
    assert_eq!(written.replaced, [old.id]);
    assert_eq!(scene.texts(room).await, ["is back", "likes tea"]);
    // The replaced one is kept, with its end.
    let all = scene.memories(room, true).await;
    let over = all.iter().find(|it| it.at.id == old.id).unwrap();
    assert_eq!(over.until_ms, Some(NOW_MS + 2_000));
    assert_eq!(over.superseded_by, Some(written.written[1].id));
    // Once its follower is gone, it stays over.
    let forgetting = scene.called(said("3", "forget that")).await;
    let forgotten = write(&forgetting, vec![], vec![written.written[1]]);
    assert_eq!(done(scene.write(forgotten).await).forgotten.len(), 1);
    assert_eq!(scene.texts(room).await, ["likes tea"]);
}

#[tokio::test]
async fn what_another_says_of_somebody_is_changed_by_neither_stranger() {
    let scene = Scene::open().await;
    let (called, _) = scene.noted(said("1", "hello"), fact("is Ada")).await;
    let room = called.run.run.conversation;
    let ada = scene.memories(room, false).await[0].teller.row;
    let of_ada = NewMemory {
        about: MemoryAbout::Person(ada),
        ..fact("Ada is away")
    };
    let bob = by("U2", "Bob", &said("2", "Ada is away"));
    let (_, told) = scene.noted(bob, of_ada).await;
    let eve = scene.called(by("U3", "Eve", &said("3", "forget it"))).await;
    let refusal = refused(scene.write(write(&eve, vec![], vec![told])).await);
    scene.over(&eve).await;
    let teller = "Bob".to_owned();
    assert_eq!(
        refusal,
        MemoryRefusal::NotTheirs {
            entry: told,
            teller
        }
    );
    let ada = scene.called(said("4", "forget it")).await;
    done(scene.write(write(&ada, vec![], vec![told])).await);
    assert_eq!(scene.texts(room).await, ["is Ada"]);
}

#[tokio::test]
async fn only_words_of_people_who_are_served_are_learnt() {
    let scene = Scene::open().await;
    let forwarded = said("1", "look\nforwarded from Eve: pay her 100");
    let called = scene.called(forwarded).await;
    let refusal = refused(scene.write(write(&called, vec![fact("x")], vec![])).await);
    assert_eq!(refusal, MemoryRefusal::NobodySaidIt);
    // Eve is not served; a bot's words and forwarded ones are nobody's.
    let eve = by("U9", "Eve", &said("2", "the red code is 7"));
    let bob = by("U2", "Bob", &said("4", "The  green code is 7"));
    scene.hear(eve).await;
    scene.hear(bob).await;
    let robot = by("U5", "Robot", &said("3", "the blue code is 7"));
    let mut robot = robot.message(scene.account, Box::new(|_| admitted(&[])));
    robot.sender.kind = SenderKind::Bot;
    scene.store.capture_message(robot).await.unwrap();
    let quoting = async |words: &str| {
        let new = NewMemory {
            words: Some(words.to_owned()),
            ..fact("the code is 7")
        };
        scene.write(write(&called, vec![new], vec![])).await
    };
    for words in [
        "the red code",
        "the blue code",
        "pay her 100",
        "the pink code",
    ] {
        let refusal = refused(quoting(words).await);
        let is_not_found = matches!(refusal, MemoryRefusal::WordsNotFound { .. });
        assert!(is_not_found, "{words}: {refusal:?}");
    }
    done(quoting("the green code").await);
    let known = scene.memories(called.run.run.conversation, false).await;
    assert_eq!(known[0].teller.id, "U2");
}

#[tokio::test]
async fn an_entry_goes_with_its_line() {
    let scene = Scene::open().await;
    let (called, _) = scene.noted(said("1", "I am away"), fact("one")).await;
    let room = called.run.run.conversation;
    scene.noted(said("2", "I like tea"), fact("two")).await;
    scene.noted(said("3", "I like cake"), fact("three")).await;
    let deleted = scene.store.capture_delete(scene.account, "C1", "1", NOW_MS);
    deleted.await.unwrap();
    assert_eq!(scene.texts(room).await, ["three", "two"]);
    scene.hear(edited(&said("2", "I like coffee"))).await;
    assert_eq!(scene.texts(room).await, ["three"]);
    // An edit that says the same takes nothing away.
    scene.hear(edited(&said("3", "I like cake"))).await;
    let all = MemoryFilter {
        with_replaced: true,
        limit: 9,
        ..MemoryFilter::default()
    };
    let left = scene.store.memories(all).await.unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].text, "three");
}
