//! Hooks: who is asked, or told, at which point of a run, and what their word may change.
//!
//! A hook is asked once at a point; its verdict is stored with what it decides, and a resumed run reads it again.
//! Reading order: `point` (where, and what follows a failure), `verdict` (what one may say), `redacting` (words that
//! are taken out by pattern), `narrowing` (arguments that ask for less).

mod narrowing;
mod point;
mod redacting;
mod verdict;

pub use narrowing::is_narrower;
pub use point::HookPoint;
pub use redacting::{PATTERN_MAX_CHARS, PATTERNS_MAX, PatternError, Redacted, Redactor, Removed};
pub use verdict::{HookDecision, HookVerdict, Judged, NOTE_MAX_CHARS, REASON_MAX_CHARS, settle};
