//! What an agent remembers, as one prompt shows it: the core notes of the room and what is found for the question. It is
//! chosen once for a run; every later attempt has the same entries, as far as they are there.

use vocative_contract::envelope::Place;
use vocative_contract::markup::replace_mentions;

use crate::delivery::rooms::Rooms;
use vocative_core::history::{History, HistoryRole};
use vocative_core::ids::{AgentName, TurnId};
use vocative_core::remembering::{Chosen, MemoryRef, StoredMemory, choose, prompt_text};
use vocative_core::turn::{ParticipantKind, Turn};
use vocative_store::contract::MemoryQuery;
use vocative_store::{Reader, StoreError};

/// Whence a prompt gets what its agent remembers.
#[derive(Clone, Default)]
pub struct MemoryFrom {
    /// Who is served where; `None` = not asked: the prompt is made again as it was.
    pub rooms: Option<Rooms>,
    /// These entries; `None` = they are chosen.
    pub these: Option<ShownMemories>,
}

/// The entries of a prompt, as they were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShownMemories {
    /// Core notes.
    pub core: Vec<MemoryRef>,
    /// Those found for the question.
    pub found: Vec<MemoryRef>,
}

/// What a prompt shows of memory.
#[derive(Clone, Debug, Default)]
pub struct Remembered {
    /// As the prompt has it.
    pub text: Option<String>,
    /// Which.
    pub shown: ShownMemories,
    /// The turns that those were learnt from which were found for the question.
    pub sources: Vec<TurnId>,
    /// Whether somebody said one of them who does not ask.
    pub is_of_others: bool,
    /// Whether an entry that was to be shown is gone, or another.
    pub lacks_some: bool,
}

/// Reads and chooses.
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

/// What is asked, mentions as names.
fn question(history: &History) -> String {
    let name = |id: &str| history.names.get(id).cloned().unwrap_or_default();
    let texts = asked(history);
    let texts = texts
        .iter()
        .map(|turn| replace_mentions(&turn.content, name));
    texts.collect::<Vec<String>>().join("\n")
}

/// Whether who said an entry is among those who ask.
fn asks(history: &History, entry: &StoredMemory) -> bool {
    asked(history).iter().any(|turn| {
        let person = &turn.participant;
        person.kind == ParticipantKind::User && person.platform_id == entry.teller.id
    })
}
