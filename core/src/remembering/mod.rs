//! What agents remember of what people told them: where an entry may appear, who may change it, what of it stands in a
//! prompt, and how it reads. Pure: the store reads the facts in the transaction, asks, and applies.
//!
//! An entry grants nothing: it is a note of what somebody said, with who said it, where and when.
//!
//! Reading order: `entry` (an entry as it stands), `audience` (where it may appear), `writing` (what may be written,
//! and by whom), `sources` (which words count), `choosing` (what stands in a prompt), `telling` (how it reads),
//! `ordering` (what people ask for by a command), `extracting` (what is learnt once a conversation has settled).

mod audience;
mod choosing;
mod entry;
pub mod extracting;
mod ordering;
mod sources;
mod telling;
mod writing;

pub use audience::{
    AskedRoom, ELSEWHERE, Elsewhere, LearntIn, MemoryScope, may_appear, share_refusal,
};
pub use choosing::{Chosen, choose, found, found_each};
pub use entry::{MemoryId, MemoryKind, MemoryOrigin, MemoryPerson, MemoryRef, StoredMemory};
pub use ordering::{MemoryCommand, MemoryOrder, MemorySeen};
pub use sources::{has_words, own_words};
pub use telling::{entry_line, prompt_text, refusal_text};
pub use writing::{
    MemoryChange, MemoryChangeFacts, MemoryRefusal, RoomUse, checked_text, judge_change,
    judge_room, room_use,
};

/// The most core notes that stand in a prompt, and that a room may have of one agent. *Source:* issue 16.
pub const CORE_NOTES_MAX: usize = 20;
/// Characters of these notes together. *Source:* issue 16.
pub const CORE_NOTES_MAX_CHARS: usize = 4_000;
/// The longest other entry, in characters. *Source:* issue 16.
pub const ENTRY_MAX_CHARS: usize = 8_000;
/// The most entries of one agent that were learnt in one room; those that were replaced are among them.
pub const ENTRIES_MAX_ROOM: usize = 1_000;
/// The most entries that one call writes, and the most that it takes away.
pub const CHANGES_MAX: usize = 10;
/// The most entries that are found for a question.
pub const FOUND_MAX: usize = 5;
/// Characters of one of these in a prompt; the tool shows all of it.
pub const FOUND_MAX_CHARS: usize = 600;
/// The most entries that the tool shows for one call.
pub const RECALLED_MAX: usize = 20;
/// How many of the newest turns of a conversation are searched for words that somebody is said to have said.
pub const SOURCE_TURNS_MAX: usize = 300;
/// The shortest words that name a line, in characters.
pub const WORDS_MIN_CHARS: usize = 6;
