//! An entry as it stands.

use std::fmt;

use crate::ids::{AccountId, AgentName, ChatId, ParticipantId, TurnId};
use crate::remembering::{LearntIn, MemoryChangeFacts, MemoryScope};

/// An entry's number, by which people and operators call it; never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemoryId(pub i64);

impl fmt::Display for MemoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An entry as somebody saw it: its number and its version, `12.1`. A change that names another version than the
/// present one is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemoryRef {
    /// Which.
    pub id: MemoryId,
    /// Its version then, from 1.
    pub version: u32,
}

impl fmt::Display for MemoryRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.id, self.version)
    }
}

impl MemoryRef {
    /// Reads `12.1`, also with the brackets or the `#` around it that it is shown with.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let text = text.trim().trim_matches(['[', ']', '#']);
        let (id, version) = text.split_once('.')?;
        let (id, version) = (id.parse().ok()?, version.parse().ok()?);
        (id > 0 && version > 0).then_some(Self {
            id: MemoryId(id),
            version,
        })
    }
}

/// What kind of entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemoryKind {
    /// Stands in every prompt of its room.
    Core,
    /// Something that is so.
    Fact,
    /// How somebody likes something done.
    Preference,
}

impl MemoryKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Core, Self::Fact, Self::Preference];

    /// The stored and shown name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Fact => "fact",
            Self::Preference => "preference",
        }
    }

    /// The kind of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// How an entry came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemoryOrigin {
    /// A model noted it by a call of its tool.
    Call,
    /// It was learnt once a conversation had settled.
    Conversation,
    /// Its text is an operator's.
    Operator,
}

impl MemoryOrigin {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Call, Self::Conversation, Self::Operator];

    /// The stored and shown name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Conversation => "conversation",
            Self::Operator => "operator",
        }
    }

    /// The origin of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|origin| origin.name() == name)
    }
}

/// A person of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryPerson {
    /// Their row.
    pub row: ParticipantId,
    /// The platform's id.
    pub id: String,
    /// The best name there is.
    pub name: String,
}

/// An entry as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMemory {
    /// Its number and version.
    pub at: MemoryRef,
    /// The account in which it was learnt.
    pub account: AccountId,
    /// Whose it is.
    pub agent: AgentName,
    /// What kind.
    pub kind: MemoryKind,
    /// Where it was learnt.
    pub learnt: LearntIn,
    /// The platform's id of that room.
    pub room: String,
    /// The room's name for people.
    pub room_title: String,
    /// Who said it.
    pub teller: MemoryPerson,
    /// Whom it is about; `None` = the room itself.
    pub subject: Option<MemoryPerson>,
    /// What is remembered.
    pub text: String,
    /// When it was said, in milliseconds since the Unix epoch.
    pub since_ms: i64,
    /// When something newer took its place.
    pub until_ms: Option<i64>,
    /// The entry that did, while there is one.
    pub superseded_by: Option<MemoryId>,
    /// The turns that it was learnt from.
    pub sources: Vec<TurnId>,
    /// When it was written or changed last, in milliseconds since the Unix epoch.
    pub written_at_ms: i64,
    /// How it came to be.
    pub origin: MemoryOrigin,
}

impl StoredMemory {
    /// Whether somebody said it of themselves, or of nobody.
    #[must_use]
    pub fn is_own_words(&self) -> bool {
        let of_other = |subject: &MemoryPerson| subject.row != self.teller.row;
        !self.subject.as_ref().is_some_and(of_other)
    }

    /// Where it may appear besides its room.
    #[must_use]
    pub fn share(&self) -> MemoryScope {
        self.learnt.share
    }

    /// Its room.
    #[must_use]
    pub fn chat(&self) -> ChatId {
        self.learnt.chat
    }

    /// The facts by which a change of it, asked for by these people in a room, is judged.
    #[must_use]
    pub fn change_facts<'a>(
        &'a self,
        named: MemoryRef,
        room: ChatId,
        askers: &'a [ParticipantId],
    ) -> MemoryChangeFacts<'a> {
        MemoryChangeFacts {
            named,
            version: Some(self.at.version),
            is_over: self.until_ms.is_some(),
            teller: self.teller.row,
            teller_name: &self.teller.name,
            subject: self.subject.as_ref().map(|it| it.row),
            is_of_room: self.chat() == room,
            askers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_called_by_its_number_and_version() {
        let entry = MemoryRef {
            id: MemoryId(12),
            version: 3,
        };
        for text in ["12.3", "[12.3]", " #12.3 "] {
            assert_eq!(MemoryRef::read(text), Some(entry), "{text}");
        }
        assert_eq!(entry.to_string(), "12.3");
        for text in [
            "12",
            "12.",
            "0.1",
            "1.0",
            "-1.1",
            "a.b",
            "99999999999999999999.1",
        ] {
            assert_eq!(MemoryRef::read(text), None, "{text}");
        }
        for kind in MemoryKind::ALL {
            assert_eq!(MemoryKind::from_name(kind.name()), Some(kind));
        }
    }
}
