//! Titles that models make.

use vocative_core::ids::{AccountId, ConversationId, Seq};
use vocative_core::title::TitledText;

/// A turn as it was read; its text is unchanged as long as both fields are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadTurn {
    /// Its capture order.
    pub seq: Seq,
    /// How often it was changed before.
    pub revision: i64,
}

/// What a model reads of a conversation for its title.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TitleSource {
    /// The account.
    pub account: AccountId,
    /// The first texts, the oldest first.
    pub texts: Vec<TitledText>,
    /// The turns that hold them.
    pub read: Vec<ReadTurn>,
}

/// A title that a model made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeTitle {
    /// Of which conversation.
    pub conversation: ConversationId,
    /// The title, cleaned; `None` = there is none, and no model is asked again.
    pub title: Option<String>,
    /// What it was made of.
    pub read: Vec<ReadTurn>,
}
