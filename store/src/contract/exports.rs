//! Conversations that leave as a file.

use super::reading::RepliedTo;
use vocative_core::file::TurnFile;
use vocative_core::ids::Seq;
use vocative_core::turn::{Position, Turn};

/// Which page of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportQuery {
    /// Only turns behind this position; `None` = from the first turn.
    pub after: Option<Position>,
    /// Nothing captured after this; `None` = everything captured by now.
    pub as_of: Option<Seq>,
}

/// A page of an export.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportPage {
    /// Turns, ascending by position; deleted ones without what they said.
    pub turns: Vec<ExportTurn>,
    /// The bound for all further pages.
    pub as_of: Seq,
    /// Where the next page begins; `None` = this was the last.
    pub next: Option<Position>,
}

/// A turn as it is exported.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportTurn {
    /// The turn.
    pub turn: Turn,
    /// What it says, mentions as names.
    pub text: String,
    /// The passage it quotes, mentions as names.
    pub quote: Option<String>,
    /// What it replies to.
    pub replied_to: Option<RepliedTo>,
    /// Names for its mention tokens: id and name.
    pub names: Vec<(String, String)>,
    /// The ids of its mention tokens that mean the bot itself.
    pub bot_ids: Vec<String>,
    /// What became of its attached files.
    pub files: Vec<TurnFile>,
}
