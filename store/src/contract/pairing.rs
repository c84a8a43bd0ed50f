//! People who are let in by a code.

use vocative_core::ids::AccountId;

/// Somebody who was told a code, or was let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pairing {
    /// The account of the channel.
    pub account: AccountId,
    /// The platform's id of the person.
    pub person: String,
    /// Their name, if they wrote since they were let in.
    pub name: Option<String>,
    /// When they were told the code, in milliseconds since the Unix epoch.
    pub offered_at_ms: i64,
    /// When they were let in, in milliseconds since the Unix epoch, and by whom; `None` while they wait.
    pub approved: Option<(i64, String)>,
}

/// What became of a code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LetIn {
    /// This person was let in.
    Now(Pairing),
    /// The channel did not tell that code, or it was used, or it is too old.
    NoSuchCode,
    /// The channel has let in as many people as its limit allows.
    Full,
}

/// A code that an operator was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaidCode {
    /// The account of the channel.
    pub account: AccountId,
    /// The code.
    pub code: vocative_core::code::Code,
    /// Who lets its person in.
    pub by: String,
    /// When, in milliseconds since the Unix epoch.
    pub now_ms: i64,
}
