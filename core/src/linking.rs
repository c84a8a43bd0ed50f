//! Accounts of one person, linked by a code that they read with one account and say with the other. Pure.
//!
//! A link gives nobody a right: no account reads, decides, forgets or is admitted in the place of another. What is
//! limited for each person is limited for all their accounts together, and an operator's erasure names them all.

use crate::code::Code;
use crate::words::Language;

/// How long a code for linking is good, in milliseconds.
pub const LINK_CODE_LIFE_MS: i64 = 600_000;
/// The most accounts of one person.
pub const LINKED_MAX: u32 = 8;
/// The most wrong codes that somebody may say in [`WRONG_CODES_WITHIN_MS`].
pub const WRONG_CODES_MAX: u32 = 5;
/// How long wrong codes are counted, in milliseconds.
pub const WRONG_CODES_WITHIN_MS: i64 = 3_600_000;

/// What somebody says behind `link`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkOrder {
    /// They ask for a code, and which accounts are linked.
    Ask,
    /// This is the code of the other account.
    Say {
        /// The code.
        code: Code,
    },
    /// This account's link is removed.
    TakeAway,
    /// Anything else.
    Other,
}

impl LinkOrder {
    /// What that text asks for.
    #[must_use]
    pub fn read(text: &str) -> Self {
        match text.trim() {
            "" => Self::Ask,
            "-" | "–" | "—" => Self::TakeAway,
            text => Code::read(text).map_or(Self::Other, |code| Self::Say { code }),
        }
    }
}

/// What somebody wants of the accounts that are linked to theirs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkCommand {
    /// What they ask for.
    pub order: LinkOrder,
    /// In which language they are answered.
    pub language: Language,
}
