//! What is learnt in the background from conversations that have settled.

use vocative_contract::envelope::ChatKind;
use vocative_core::ids::{AccountId, AgentName, ConversationId, ParticipantId, Seq, TurnId};
use vocative_core::remembering::extracting::ReadEntry;
use vocative_core::remembering::{MemoryId, MemoryRef, MemoryRefusal};

use super::IsServed;

/// A conversation that an agent has not read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueConversation {
    /// Which.
    pub conversation: ConversationId,
    /// Its account.
    pub account: AccountId,
}

/// Which turns of a conversation are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadQuery {
    /// Where.
    pub conversation: ConversationId,
    /// For whom.
    pub agent: AgentName,
    /// The most characters of turns at once; the last may go beyond.
    pub max_chars: usize,
    /// Now, in milliseconds since the Unix epoch.
    pub now_ms: i64,
}

/// How far a conversation was read when turns of it were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadMark {
    /// Turns up to here were read before.
    pub after: Seq,
    /// Turns up to here are read with this.
    pub through: Seq,
    /// The newest of them, in milliseconds since the Unix epoch.
    pub through_sent_at_ms: i64,
}

/// Turns that an agent has not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadTurns {
    /// The account.
    pub account: AccountId,
    /// The platform's id of the chat.
    pub chat: String,
    /// What kind of chat it is.
    pub kind: Option<ChatKind>,
    /// From where to where.
    pub mark: ReadMark,
    /// What people said, the oldest first.
    pub turns: Vec<UnreadTurn>,
    /// Turns that were taken and have no person's own words.
    pub silent: Vec<TurnId>,
    /// Whether there are more behind them.
    pub has_more: bool,
}

/// A turn that an agent has not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadTurn {
    /// The turn.
    pub id: TurnId,
    /// Who said it.
    pub said_by: ParticipantId,
    /// The platform's id of them.
    pub platform_id: String,
    /// Their best known name.
    pub name: String,
    /// What was said, mentions as tokens; it must be unchanged when an entry is written.
    pub content: String,
    /// The same with mentions as names.
    pub shown: String,
    /// When, in milliseconds since the Unix epoch.
    pub sent_at_ms: i64,
}

/// All that is learnt from one reading.
#[derive(Clone)]
pub struct Extraction {
    /// Where.
    pub conversation: ConversationId,
    /// Whose memory it is.
    pub agent: AgentName,
    /// What was read.
    pub mark: ReadMark,
    /// The turns that the model was shown, with what they said then.
    pub lines: Vec<(TurnId, String)>,
    /// Turns that were taken and not shown.
    pub passed_over: Vec<TurnId>,
    /// What is learnt; its lines are places in `lines`.
    pub entries: Vec<ReadEntry>,
    /// Tells which people are served: only their words count.
    pub is_served: IsServed,
    /// When, in milliseconds since the Unix epoch.
    pub now_ms: i64,
}

/// What became of a reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extracted {
    /// It is written down.
    Done(ExtractionDone),
    /// Another reading of the conversation came first, or it is gone: nothing is written.
    Outdated,
}

/// What a reading wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtractionDone {
    /// New entries.
    pub written: Vec<MemoryRef>,
    /// Entries that new ones replaced.
    pub replaced: Vec<MemoryId>,
    /// Entries whose lines are gone or say something else by now.
    pub gone: usize,
    /// Entries older than the existing ones that they would have replaced.
    pub older: usize,
    /// Entries for which there is no room.
    pub refused: Vec<MemoryRefusal>,
}
