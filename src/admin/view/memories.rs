//! What is remembered.

use serde::{Deserialize, Serialize};

use vocative_contract::envelope::ChatKind;
use vocative_core::remembering::{MemoryPerson, StoredMemory};

/// An entry of memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryView {
    /// Its number.
    pub id: i64,
    /// Its version; a change names the version that its author saw.
    pub version: u32,
    /// The agent that remembers it.
    pub agent: String,
    /// `core`, `fact` or `preference`.
    pub kind: String,
    /// The channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The platform's id of the chat where it was said.
    pub chat: String,
    /// The chat's name.
    pub chat_title: String,
    /// Who said it.
    pub teller: MemoryPersonView,
    /// Whom it is about; absent: the room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<MemoryPersonView>,
    /// What is remembered.
    pub text: String,
    /// When it was said, in milliseconds since the Unix epoch.
    pub since_ms: i64,
    /// When a newer entry replaced it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<i64>,
    /// The number of the newer entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<i64>,
    /// The messages that say it.
    pub sources: Vec<String>,
    /// `room` = it appears there only; `team` = in other rooms of the account, too.
    pub share: String,
    /// How it came to be: `call` (a model's tool), `conversation` (learnt in the background), `operator` (an operator's
    /// words).
    pub origin: String,
    /// When it was written or changed last, in milliseconds since the Unix epoch.
    pub written_at_ms: i64,
}

/// A person of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryPersonView {
    /// The platform's id.
    pub id: String,
    /// The best known name.
    pub name: String,
}

impl From<&MemoryPerson> for MemoryPersonView {
    fn from(person: &MemoryPerson) -> Self {
        Self {
            id: person.id.clone(),
            name: person.name.clone(),
        }
    }
}

impl MemoryView {
    /// The view of an entry in a channel.
    #[must_use]
    pub fn of(entry: &StoredMemory, channel: Option<String>) -> Self {
        Self {
            id: entry.at.id.0,
            version: entry.at.version,
            agent: entry.agent.to_string(),
            kind: entry.kind.name().to_owned(),
            channel,
            chat: entry.room.clone(),
            chat_title: entry.room_title.clone(),
            teller: (&entry.teller).into(),
            subject: entry.subject.as_ref().map(Into::into),
            text: entry.text.clone(),
            since_ms: entry.since_ms,
            until_ms: entry.until_ms,
            replaced_by: entry.superseded_by.map(|id| id.0),
            sources: entry.sources.iter().map(ToString::to_string).collect(),
            share: entry.share().name().to_owned(),
            origin: entry.origin.name().to_owned(),
            written_at_ms: entry.written_at_ms,
        }
    }
}

/// Something that an agent remembers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RememberedView {
    /// Its number.
    pub id: i64,
    /// The agent.
    pub agent: String,
    /// What kind of thing: a fact, a preference, ...
    pub kind: String,
    /// What is remembered.
    pub text: String,
    /// Whom it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Who said it.
    pub teller: String,
    /// The room in which it was said.
    pub room: String,
    /// Whether the room is, or was then, a direct chat.
    pub is_direct: bool,
    /// Since when it holds, in milliseconds since the Unix epoch.
    pub since_ms: i64,
    /// When it was written.
    pub written_at_ms: i64,
    /// Of how many messages it was made.
    pub sources: usize,
}

impl RememberedView {
    /// The view of an entry.
    #[must_use]
    pub fn of(memory: &StoredMemory) -> Self {
        let is_direct = |kind| matches!(kind, Some(ChatKind::Direct | ChatKind::GroupDirect));
        Self {
            id: memory.at.id.0,
            agent: memory.agent.to_string(),
            kind: memory.kind.name().to_owned(),
            text: memory.text.clone(),
            subject: memory.subject.as_ref().map(|it| it.name.clone()),
            teller: memory.teller.name.clone(),
            room: memory.room_title.clone(),
            is_direct: is_direct(memory.learnt.kind_then) || is_direct(memory.learnt.kind_now),
            since_ms: memory.since_ms,
            written_at_ms: memory.written_at_ms,
            sources: memory.sources.len(),
        }
    }
}
