//! What a model is asked for when a conversation has settled, and what of its answer is an entry. Pure.
//!
//! The model is shown lines that people said, by number, and notes that hold, by number; it answers with numbers and
//! texts. It never sees or names an id, so it can't name somebody else's. Each of its entries is judged by itself: an
//! entry that fails is refused and counted, and the others stand.
//!
//! Reading order: `request` (what is asked), `answer` (what of the answer counts).

mod answer;
mod request;
#[cfg(test)]
mod tests;

pub use answer::{AnswerFault, EntryFault, ReadAnswer, ReadEntry, read_answer};
pub use request::{extraction_request, known_for, once_more};

use crate::ids::{ParticipantId, TurnId};

/// The most lines that one request shows.
pub const LINES_MAX: usize = 60;
/// The most characters of one line that are shown.
pub const LINE_MAX_CHARS: usize = 1_000;
/// The most characters of all lines that one request shows.
pub const LINES_MAX_CHARS: usize = 24_000;
/// The most notes that hold which one request shows.
pub const KNOWN_MAX: usize = 30;
/// The most characters of one of them.
pub const KNOWN_MAX_CHARS: usize = 300;
/// The most entries of one answer that are looked at; those behind them are refused.
pub const EXTRACTED_MAX: usize = 20;
/// The longest entry that is learnt from a conversation, in characters. *Source:* agents.md 5.5.
pub const EXTRACTED_MAX_CHARS: usize = 500;
/// The longest answer that is parsed, in bytes.
pub const ANSWER_MAX_BYTES: usize = 64 * 1_024;
/// Lines after which a conversation is read although it has not settled.
pub const READ_AT_LINES: usize = 40;
/// Lines older than this, in milliseconds, are not learnt from: imports and long gaps teach nothing.
pub const READ_BACK_MS: i64 = 7 * 86_400_000;

/// A line of a person who is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpokenLine {
    /// Its turn.
    pub turn: TurnId,
    /// Who said it.
    pub said_by: ParticipantId,
    /// Their name.
    pub name: String,
    /// When, in milliseconds since the Unix epoch.
    pub sent_at_ms: i64,
    /// Their own words, mentions as names.
    pub text: String,
}
