//! How a search reads texts and queries, and what it holds to be a good answer. Pure: the store only reads what
//! these functions ask for.
//!
//! Reading order: `text` (a text as words), `language` (whose words they are), `stems` (what of a word is indexed),
//! `query` (what is asked for), `scoring` (how well a text answers), `asking` (whether a line only asks), `likeness`
//! (whether two lines say the same), `moment` (days and times of filters),
//! `fusion` (one list from several), `spelling` (words that were meant), `bar` (what is shown without being asked for),
//! `excerpt` (a piece of a text).

pub mod asking;
pub mod bar;
pub mod excerpt;
pub mod fusion;
pub mod language;
pub mod likeness;
pub mod moment;
pub mod query;
pub mod scoring;
pub mod spelling;
pub mod stems;
pub mod text;

use schemars::JsonSchema;
use serde::Deserialize;

/// Which conversations are searched from one of them; never one of another chat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchReach {
    /// The conversation alone.
    Conversation,
    /// It and, for a thread, the room that the thread is in.
    #[default]
    Parent,
    /// It, the room, and the room's threads.
    Threads,
}
