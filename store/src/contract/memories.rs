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

/// Which of the entries that may appear in a conversation are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryQuery {
    /// Where they are to appear.
    pub conversation: ConversationId,
    /// Whose they are.
    pub agent: AgentName,
    /// Whether replaced entries are read, too.
    pub with_replaced: bool,
    /// Only these, if they have not changed since; `None` = all.
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
    /// The entry is deleted.
    Forget,
    /// The entry gets another text, if it is still in this version.
    Edit {
        /// The new text, within its limits.
        text: String,
        /// The version that was looked at; `None` = any.
        version: Option<u32>,
    },
    /// It may appear in other rooms of the account, or no longer.
    Share(MemoryScope),
}

/// The outcome of an operator's change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperatorChanged {
    /// It is done; the entry as it is, or as it was.
    Done(Box<StoredMemory>),
    /// There is no such entry.
    Missing,
    /// The entry is in another version by now.
    Changed,
    /// The change can't be made, and why.
    Refused(String),
}

/// Whom an entry is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryAbout {
    /// Who said it.
    Teller,
    /// The room.
    Room,
    /// A person.
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
    /// The words in a line of the conversation that say so; `None` = the run's askers say so.
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
    /// The entries to delete.
    pub forget: Vec<MemoryRef>,
    /// Whose words count.
    pub is_served: IsServed,
    /// When, in milliseconds since the Unix epoch.
    pub now_ms: i64,
}

/// The outcome of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryWritten {
    /// It is written, now or when the same call was made before.
    Done(MemoryDone),
    /// Nothing is written.
    Refused(MemoryRefusal),
    /// The lease is no longer held: nothing is written.
    Stale,
}

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryDone {
    /// The new entries, in order; where an entry already says the same, that entry.
    pub written: Vec<MemoryRef>,
    /// Entries that new ones replaced.
    pub replaced: Vec<MemoryId>,
    /// Entries that are gone.
    pub forgotten: Vec<MemoryId>,
}
