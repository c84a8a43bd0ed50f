//! Where what is remembered may appear, whatever rows say of where it is shared.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use vocative_contract::envelope::ChatKind;
use vocative_core::ids::{ConversationId, OwnerId, ParticipantId, ToolCallId};
use vocative_core::remembering::extracting::ReadEntry;
use vocative_core::remembering::{MemoryKind, StoredMemory};
use vocative_core::run::{ClaimedRun, Usage};
use vocative_core::tool_call::CallRule;

use crate::acts::erasure::ErasureTarget;
use crate::contract::{
    ClaimRequest, Extraction, MemoryAbout, MemoryQuery, MemoryWrite, MemoryWritten, NewMemory,
    NewToolCall, RecordedStep, UnreadQuery, UnreadTurn,
};
use crate::new_id::NewId as _;
use crate::tests::{Fixture, NOW_MS, Said, agent, said};

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

impl Fixture {
    /// Somebody asks the agent, whose model calls a tool.
    async fn called(&self, said: Said) -> Called {
        // The run before is over, so that this one is claimed.
        self.execute("UPDATE runs SET state = 'done', finished_at_ms = 1 WHERE state = 'leased'")
            .await;
        self.hear_for(&["helper"], said).await;
        let request = ClaimRequest {
            owner: OwnerId::generate(),
            lease_ms: 600_000_000,
            now_ms: NOW_MS + 600_000,
            accounts: vec![self.account],
        };
        let run = self.store.claim_run(request, Default::default()).await;
        let run = run.unwrap().unwrap();
        let (id, token) = (run.run.id, run.token);
        let step = "asked".to_owned();
        let recorded = self.store.record_step(
            id,
            token,
            RecordedStep {
                number: 1,
                message: step,
                usage: Usage::default(),
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
        let calls = self
            .store
            .record_tool_calls(id, token, 1, vec![call], NOW_MS);
        let calls = calls.await.unwrap().unwrap();
        let call = calls[0].id;
        Called { run, call }
    }

    async fn write(&self, called: &Called, new: NewMemory) -> MemoryWritten {
        let write = MemoryWrite {
            run: called.run.run.id,
            token: called.run.token,
            call: called.call,
            new: vec![new],
            forget: Vec::new(),
            is_served: Arc::new(|person| person != "U9"),
            now_ms: NOW_MS + 600_000,
        };
        self.store.write_memory(write).await.unwrap()
    }

    /// Somebody asks, and what they say is noted; where.
    async fn noted(&self, said: Said, text: &str) -> ConversationId {
        let called = self.called(said).await;
        let written = self.write(&called, fact(text)).await;
        assert!(matches!(written, MemoryWritten::Done(_)), "{written:?}");
        called.run.run.conversation
    }

    async fn memories(&self, conversation: ConversationId) -> Vec<StoredMemory> {
        let query = MemoryQuery {
            conversation,
            agent: agent("helper"),
            with_replaced: false,
            only: None,
        };
        self.store.memories_in(query).await.unwrap()
    }

    async fn texts(&self, conversation: ConversationId) -> Vec<String> {
        let all = self.memories(conversation).await;
        all.into_iter().map(|entry| entry.text).collect()
    }
}

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % n
    }
}

const ROOMS: [(&str, ChatKind); 5] = [
    ("D1", ChatKind::Direct),
    ("P1", ChatKind::Private),
    ("G1", ChatKind::GroupDirect),
    ("C1", ChatKind::Public),
    ("C2", ChatKind::Public),
];

/// What happens to a fixture at random.
struct Story {
    fixture: Fixture,
    dice: Dice,
    /// Where each room's entries are read.
    rooms: Vec<(&'static str, ConversationId)>,
    /// Who was erased.
    erased: Vec<&'static str>,
    is_merged: bool,
}

impl Story {
    async fn of(seed: u64) -> Self {
        Self {
            fixture: Fixture::new().await,
            dice: Dice(seed),
            rooms: Vec::new(),
            erased: Vec::new(),
            is_merged: false,
        }
    }

    /// Somebody says something, and an agent notes it by a call or learns it by reading the room.
    async fn say(&mut self, n: u64) -> Said {
        let (chat, kind) = ROOMS[self.dice.below(5) as usize];
        let person: &'static str = ["U1", "U2", "U3", "U9"][self.dice.below(4) as usize];
        // What somebody said before they were erased is not captured again.
        let person = if self.erased.contains(&person) {
            "U1"
        } else {
            person
        };
        let id: &'static str = (n + 1).to_string().leak();
        let text: &'static str = format!("{chat} {person} says {n}").leak();
        let it = Said {
            chat,
            kind: Some(kind),
            by: person,
            ..said(id, text)
        };
        let called = self.fixture.called(it.clone()).await;
        let room = called.run.run.conversation;
        if !self.rooms.iter().any(|(known, _)| *known == chat) {
            self.rooms.push((chat, room));
        }
        let about = match self.dice.below(3) {
            0 => MemoryAbout::Room,
            1 => MemoryAbout::Teller,
            _ => {
                let people = "SELECT id FROM participants WHERE kind = 'user'";
                let people: Vec<i64> = self.fixture.column(people).await;
                let n = self.dice.below(people.len() as u64) as usize;
                MemoryAbout::Person(ParticipantId(people[n]))
            }
        };
        if self.dice.below(2) == 0 {
            let new = NewMemory {
                about,
                ..fact(text)
            };
            let written = self.fixture.write(&called, new).await;
            // Who is not served is no source.
            assert_eq!(
                person == "U9",
                matches!(written, MemoryWritten::Refused(_)),
                "{written:?}"
            );
        } else {
            self.learn(room, about).await;
        }
        it
    }

    /// The room is read, and every line of it learnt: by a model that believes everything.
    async fn learn(&mut self, room: ConversationId, about: MemoryAbout) {
        let query = UnreadQuery {
            conversation: room,
            agent: agent("helper"),
            max_chars: 10_000,
            now_ms: NOW_MS + 600_000,
        };
        let unread = self.fixture.store.unread_turns(query).await.unwrap();
        let Some(unread) = unread else { return };
        let entry = |(n, turn): (usize, &UnreadTurn)| ReadEntry {
            text: turn.content.clone(),
            kind: MemoryKind::Fact,
            about: match about {
                MemoryAbout::Room => None,
                MemoryAbout::Teller => Some(turn.said_by),
                MemoryAbout::Person(person) => Some(person),
            },
            teller: turn.said_by,
            lines: vec![n],
            replaces: None,
        };
        let lines = unread.turns.iter().map(|it| (it.id, it.content.clone()));
        let extraction = Extraction {
            conversation: room,
            agent: agent("helper"),
            mark: unread.mark,
            lines: lines.collect(),
            passed_over: unread.silent.clone(),
            entries: {
                let turns = unread.turns.iter().enumerate();
                let said = turns.filter(|(_, turn)| turn.content.contains(" says "));
                said.map(entry).collect()
            },
            is_served: Arc::new(|person| person != "U9"),
            now_ms: NOW_MS + 600_000,
        };
        // Something may happen between the reading and the writing.
        if self.dice.below(3) == 0
            && let Some(turn) = unread.turns.last()
        {
            let id = turn.content.rsplit(' ').next().unwrap().parse::<u64>();
            if let Ok(n) = id {
                let (chat, id) = (turn.content.split(' ').next().unwrap(), (n + 1).to_string());
                let delete =
                    self.fixture
                        .store
                        .capture_delete(self.fixture.account, chat, &id, NOW_MS);
                delete.await.unwrap();
            }
        }
        let written = self.fixture.store.write_extraction(extraction).await;
        written.unwrap();
    }

    /// Something happens after a line was said.
    async fn happen(&mut self, it: Said) {
        match self.dice.below(12) {
            0 => {
                let delete =
                    self.fixture
                        .store
                        .capture_delete(self.fixture.account, it.chat, it.id, NOW_MS);
                delete.await.unwrap();
            }
            1 => {
                let edited = Said {
                    edit_marker: Some("5"),
                    text: "something else",
                    ..it
                };
                self.fixture.hear(edited).await;
            }
            2 | 3 => {
                let share = "UPDATE memories SET share = 'team' WHERE id % 2 = 0";
                self.fixture.execute(share).await;
            }
            4 => {
                let closed = "UPDATE chats SET kind = 'private' WHERE platform_id IN ('C2', 'C3')";
                self.fixture.execute(closed).await;
            }
            5 => {
                let opened =
                    "UPDATE chats SET kind = 'public' WHERE platform_id IN ('C2', 'C3', 'P1')";
                self.fixture.execute(opened).await;
            }
            6 if !self.is_merged => {
                // C2 becomes another chat; what is said in it from now on is said there.
                let merged =
                    self.fixture
                        .store
                        .merge_chats(self.fixture.account, "C2", "C3", NOW_MS);
                merged.await.unwrap();
                while self.fixture.store.continue_merges().await.unwrap() {}
                self.rooms.retain(|(room, _)| *room != "C2");
                self.is_merged = true;
            }
            7 if self.erased.is_empty() => self.erase("U3").await,
            _ => {}
        }
    }

    async fn erase(&mut self, person: &'static str) {
        let heard = "SELECT count(*) FROM participants WHERE platform_id = 'U3'";
        if self.fixture.value::<i64>(heard).await == 0 {
            return;
        }
        let store = &self.fixture.store;
        let target = ErasureTarget::Person(person.to_owned());
        let plan = store.plan_erasure(target, NOW_MS + 600_000).await.unwrap();
        let ids: Vec<_> = plan.entries.iter().map(|entry| entry.id).collect();
        store.begin_erasure(plan.entries).await.unwrap();
        // The clock goes on: an erasure waits for runs that are at work, for a bounded time.
        let clock = AtomicI64::new(NOW_MS + 600_001);
        let now = || clock.fetch_add(10_000, Ordering::Relaxed);
        let done = store.carry_out_all(&ids, true, now).await;
        let verified = done.unwrap().verification;
        let found = verified.map_or(0, |it| it.hits.len() + it.columns.len());
        assert_eq!(found, 0);
        self.erased.push(person);
        let of_person: Vec<String> = self.fixture.column("SELECT text FROM memories").await;
        assert!(
            !of_person.iter().any(|it| it.contains(person)),
            "{of_person:?}"
        );
    }

    /// All that each room reads may appear there, and is what its sources say, who are people who are served.
    async fn check(&self, seed: u64) {
        for (room, conversation) in &self.rooms {
            for entry in self.fixture.memories(*conversation).await {
                let was_in = entry.text.split(' ').next().unwrap();
                let is_open = was_in.starts_with('C') && entry.is_own_words();
                assert!(
                    was_in == *room || is_open,
                    "{entry:?} in {room}, seed {seed}"
                );
                assert!(!entry.sources.is_empty(), "{entry:?}");
                assert_ne!(entry.teller.id, "U9", "nobody serves them, seed {seed}");
                for source in &entry.sources {
                    let turn = self.fixture.store.turn(*source).await.unwrap();
                    assert_eq!(turn.content, entry.text, "its source says it, seed {seed}");
                    assert_eq!(turn.participant.platform_id, entry.teller.id, "seed {seed}");
                }
            }
        }
    }
}

/// Whatever is said, told of others, learnt, edited, deleted, erased, shared, renamed and merged: each entry that a
/// room reads was learnt there, or is a public, shared word about its speaker; its sources are there and say it, and
/// who said it is served.
#[tokio::test]
async fn nothing_is_recalled_outside_its_audience() {
    let (mut merged, mut erased) = (0, 0);
    for seed in 1..=8 {
        let mut story = Story::of(seed).await;
        for n in 0..60_u64 {
            let it = story.say(n).await;
            story.happen(it).await;
            story.check(seed).await;
        }
        let all: i64 = story.fixture.value("SELECT count(*) FROM memories").await;
        assert!(all > 5, "{all}");
        merged += usize::from(story.is_merged);
        erased += story.erased.len();
    }
    assert!(merged > 3 && erased > 3, "{merged} {erased}");
}

#[tokio::test]
async fn what_is_said_in_a_direct_chat_stays_there_also_when_it_is_shared() {
    let fixture = Fixture::new().await;
    let in_private = Said {
        chat: "D1",
        kind: Some(ChatKind::Direct),
        ..said("1", "I am away")
    };
    let direct = fixture.noted(in_private, "is away").await;
    let general = fixture.noted(said("2", "I like tea"), "likes tea").await;
    fixture.execute("UPDATE memories SET share = 'team'").await;
    assert_eq!(fixture.texts(general).await, ["likes tea"]);
    assert_eq!(fixture.texts(direct).await, ["likes tea", "is away"]);
    fixture.execute("UPDATE chats SET kind = 'public'").await;
    // It was said in private.
    assert_eq!(fixture.texts(general).await, ["likes tea"]);
}
