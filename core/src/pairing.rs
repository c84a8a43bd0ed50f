//! People who are let in to direct chats by a code that an operator was told.

/// How long a code is good, in milliseconds; then another one is told.
pub const PAIRING_CODE_LIFE_MS: i64 = 3_600_000;
/// The most codes of a channel that are good at a time: beyond that people are only told that they are not served.
pub const OPEN_CODES_MAX: u32 = 50;
/// The most people who are let in to a channel so, and who are listed.
pub const PAIRED_MAX: u32 = 1_000;
