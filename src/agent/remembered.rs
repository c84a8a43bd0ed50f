//! The memory that one prompt shows: the core notes of the room and the entries found for the question. They are
//! chosen once for a run; every later attempt shows the same entries, if they still exist.

use vocative_contract::envelope::Place;
use vocative_contract::markup::replace_mentions;

use crate::delivery::rooms::Rooms;
use vocative_core::history::{History, HistoryRole};
use vocative_core::ids::{AgentName, TurnId};
use vocative_core::remembering::{Chosen, MemoryRef, StoredMemory, choose, prompt_text};
use vocative_core::turn::{ParticipantKind, Turn};
use vocative_store::contract::MemoryQuery;
use vocative_store::{Reader, StoreError};

/// Where a prompt gets its memory from.
#[derive(Clone, Default)]
pub struct MemoryFrom {
    /// Who is served where; `None` = not checked: the prompt is rebuilt as it was.
    pub rooms: Option<Rooms>,
    /// The entries to show; `None` = they are chosen.
    pub these: Option<ShownMemories>,
}

/// The entries that a prompt showed, with their versions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShownMemories {
    /// Core notes.
    pub core: Vec<MemoryRef>,
    /// Those found for the question.
    pub found: Vec<MemoryRef>,
}

/// The memory in a prompt.
#[derive(Clone, Debug, Default)]
pub struct Remembered {
    /// Its text in the prompt.
    pub text: Option<String>,
    /// The entries that are shown.
    pub shown: ShownMemories,
    /// The turns from which the entries found for the question were learnt.
    pub sources: Vec<TurnId>,
    /// Whether one of the entries was said by somebody who does not ask.
    pub is_of_others: bool,
    /// Whether an entry that was to be shown is gone or has changed.
    pub lacks_some: bool,
}

/// Reads and chooses the entries.
///
/// # Errors
/// Storage refuses.
pub(super) async fn remembered(
    store: &Reader,
    agent: &AgentName,
    history: &History,
    from: &MemoryFrom,
) -> Result<Remembered, StoreError> {
    let only = from.these.as_ref().map(|these| {
        let both = these.core.iter().chain(&these.found);
        both.copied().collect::<Vec<MemoryRef>>()
    });
    let query = MemoryQuery {
        conversation: history.conversation.id,
        agent: agent.clone(),
        with_replaced: only.is_some(),
        only,
    };
    let mut entries = store.memories_in(query).await?;
    let conversation = &history.conversation;
    let place = Place {
        chat: conversation.platform_chat.clone(),
        kind: conversation.chat_kind,
        ..Place::default()
    };
    if let Some(rooms) = &from.rooms {
        entries.retain(|entry| {
            rooms.still_admits(conversation.account, &place, Some(entry.teller.id.as_str()))
        });
    }
    let chosen = match &from.these {
        Some(these) => {
            let place = |named: &MemoryRef| entries.iter().position(|it| it.at == *named);
            Chosen {
                core: these.core.iter().filter_map(place).collect(),
                found: these.found.iter().filter_map(place).collect(),
            }
        }
        None => choose(&entries, &question(history)),
    };
    let at = |places: &[usize]| places.iter().map(|it| &entries[*it]).collect::<Vec<_>>();
    let (core, found) = (at(&chosen.core), at(&chosen.found));
    let named = |list: &[&StoredMemory]| list.iter().map(|entry| entry.at).collect();
    let shown = ShownMemories {
        core: named(&core),
        found: named(&found),
    };
    Ok(Remembered {
        text: prompt_text(&core, &found, &conversation.platform_chat),
        lacks_some: from.these.as_ref().is_some_and(|these| *these != shown),
        sources: found.iter().flat_map(|it| it.sources.clone()).collect(),
        is_of_others: core.iter().chain(&found).any(|it| !asks(history, it)),
        shown,
    })
}

fn asked(history: &History) -> Vec<&Turn> {
    let turns = || history.turns.iter();
    let asked: Vec<&Turn> = turns()
        .filter(|read| read.role == HistoryRole::Trigger)
        .map(|read| &read.turn)
        .collect();
    if !asked.is_empty() {
        return asked;
    }
    let newest = turns().max_by_key(|read| read.turn.position);
    newest.map(|read| &read.turn).into_iter().collect()
}

/// The text of the question, with names for mentions.
fn question(history: &History) -> String {
    let name = |id: &str| history.names.get(id).cloned().unwrap_or_default();
    let texts = asked(history);
    let texts = texts
        .iter()
        .map(|turn| replace_mentions(&turn.content, name));
    texts.collect::<Vec<String>>().join("\n")
}

/// Whether the person who said an entry is among the askers.
fn asks(history: &History, entry: &StoredMemory) -> bool {
    asked(history).iter().any(|turn| {
        let person = &turn.participant;
        person.kind == ParticipantKind::User && person.platform_id == entry.teller.id
    })
}
