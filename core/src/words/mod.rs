//! What the daemon itself says in rooms: notices, answers to commands, cards, a text for each in every language.
//! Nothing here decides when something is said; what models are told stands where it is decided.
//!
//! A text is a line in a `texts!`, which makes a method of [`Language`] of it, and an entry in each catalogue (`en.toml`,
//! `de.toml`). Texts of a command are declared in its file in `command/`, the others in `texts`. A text that is misspelt,
//! or is given other values than it has places, does not compile; that every catalogue has every text with these places
//! is a test. What a command says of itself is found by its word, `command_<word>`.
//!
//! Reading order: `language`, `declaring`, `texts`, `catalogue`.

mod catalogue;
mod declaring;
mod language;
mod texts;

#[cfg(test)]
pub(crate) use catalogue::check_text;
pub(crate) use catalogue::say;
pub(crate) use declaring::texts;
pub use language::Language;
