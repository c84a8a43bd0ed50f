//! What agents remember: read, written by calls of tools, and changed by people.

use std::sync::Arc;

use vocative_core::ids::{
    AccountId, AgentName, ConversationId, LeaseToken, ParticipantId, RunId, ToolCallId,
};
use vocative_core::remembering::{
    MemoryId, MemoryKind, MemoryRef, MemoryRefusal, MemoryScope, StoredMemory,
};

/// Whether a person, by the platform's id, is served in the room of a run.
pub type IsServed = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Which entries are read: of those that may appear in a conversation, never another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryQuery {
    /// Where they are to appear.
    pub conversation: ConversationId,
    /// Whose they are.
    pub agent: AgentName,
    /// Whether those that something newer replaced are read, too.
    pub with_replaced: bool,
    /// Only these, as far as they are the same still; `None` = all.
    pub only: Option<Vec<MemoryRef>>,
}

/// Which entries operators see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryFilter {
    /// Of this account.
    pub account: Option<AccountId>,
    /// Of this agent.
    pub agent: Option<AgentName>,
    /// Said by this person or about them, by the platform's id.
    pub person: Option<String>,
    /// Also those that something newer replaced.
    pub with_replaced: bool,
    /// Only those with a lower number.
    pub before: Option<MemoryId>,
    /// Only this one.
    pub only: Option<MemoryId>,
    /// The most of them.
    pub limit: usize,
}

/// What an operator does to an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperatorChange {
    /// It goes.
    Forget,
    /// It says something else, if it is in this version still.
    Edit {
        /// What, within its limits.
        text: String,
        /// The version that was looked at; `None` = whichever.
        version: Option<u32>,
    },
    /// It may appear in other rooms of the account, or no longer.
    Share(MemoryScope),
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperatorChanged {
    /// It is done; the entry as it is, or as it was.
    Done(Box<StoredMemory>),
    /// There is no such entry.
    Missing,
    /// Another version is there.
    Changed,
    /// It can't be, and why.
    Refused(String),
}

/// Whom an entry is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryAbout {
    /// Who said it.
    Teller,
    /// The room.
    Room,
    /// Somebody.
    Person(ParticipantId),
}

/// An entry to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMemory {
    /// What kind.
    pub kind: MemoryKind,
    /// What is remembered, within its limits.
    pub text: String,
    /// Whom it is about.
    pub about: MemoryAbout,
    /// The words that say so, of a line of the conversation; `None` = those who ask say so.
    pub words: Option<String>,
    /// The entry whose place it takes.
    pub replaces: Option<MemoryRef>,
}

/// All that one call of a tool writes: all of it, or nothing.
#[derive(Clone)]
pub struct MemoryWrite {
    /// The run whose model asks for it.
    pub run: RunId,
    /// Its lease.
    pub token: LeaseToken,
    /// The call: made again, it writes nothing more.
    pub call: ToolCallId,
    /// What is written.
    pub new: Vec<NewMemory>,
    /// What goes.
    pub forget: Vec<MemoryRef>,
    /// Whose words count.
    pub is_served: IsServed,
    /// When, in milliseconds since the Unix epoch.
    pub now_ms: i64,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryWritten {
    /// It is written, by this call or when it was made before.
    Done(MemoryDone),
    /// Nothing is.
    Refused(MemoryRefusal),
    /// The run is somebody else's.
    Stale,
}

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryDone {
    /// The new entries, in order; one that says what an entry said already is that.
    pub written: Vec<MemoryRef>,
    /// Entries that new ones replaced.
    pub replaced: Vec<MemoryId>,
    /// Entries that are gone.
    pub forgotten: Vec<MemoryId>,
}
