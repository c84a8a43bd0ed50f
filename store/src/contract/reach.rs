//! How far conversations were read, and what is missing.

use vocative_contract::envelope::{ChatKind, Place};

use vocative_core::ids::AccountId;

/// Since when an account may lack messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountReach {
    /// In milliseconds since the Unix epoch; `None` if nothing is missing.
    pub unread_from_ms: Option<i64>,
    /// The number of this loss; ending an earlier loss does not end it.
    pub epoch: i64,
}

/// A chat that the bot is in, and how far it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatReach {
    /// The platform's id of it.
    pub chat: String,
    /// Its kind, where that was learnt.
    pub kind: Option<ChatKind>,
    /// Whether anything was heard there.
    pub is_heard: bool,
    /// Up to when what was missing has been read, in milliseconds since the Unix epoch.
    pub read_through_ms: Option<i64>,
    /// Since when the chat could not be read, in milliseconds since the Unix epoch.
    pub unread_from_ms: Option<i64>,
    /// Messages before this time are still to be read, in milliseconds since the Unix epoch.
    pub backfill_until_ms: Option<i64>,
}

impl ChatReach {
    /// What is known of its place.
    #[must_use]
    pub fn place(&self) -> Place {
        Place {
            chat: self.chat.clone(),
            kind: self.kind,
            ..Place::default()
        }
    }
}

/// A notice that something is missing in a chat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryGap {
    /// The account.
    pub account: AccountId,
    /// The chat.
    pub place: Place,
    /// Where in the timeline the notice stands, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// What the timeline says.
    pub text: String,
    /// Why, in short, for `status`.
    pub reason: String,
    /// Whether a later attempt may still read what is missing; then a later notice replaces this one.
    pub may_be_read_later: bool,
    /// Since when the chat is unread, if what is missing is not older than the bot's joining.
    pub unread_from_ms: Option<i64>,
    /// The time, in milliseconds since the Unix epoch.
    pub now_ms: i64,
}
