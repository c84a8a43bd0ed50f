//! How far what was said is known, and what is missing.

use vocative_contract::envelope::{ChatKind, Place};

use vocative_core::ids::AccountId;

/// Since when an account may lack messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountReach {
    /// Since then, in milliseconds since the Unix epoch; `None` if nothing is missing.
    pub unread_from_ms: Option<i64>,
    /// Which loss this is; ending an earlier one ends nothing.
    pub epoch: i64,
}

/// A chat that the bot is in, and how far what was said there is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatReach {
    /// The platform's id of it.
    pub chat: String,
    /// Its kind, where that was learnt.
    pub kind: Option<ChatKind>,
    /// Whether anything was heard there.
    pub is_heard: bool,
    /// What was unread before this was read, in milliseconds since the Unix epoch.
    pub read_through_ms: Option<i64>,
    /// It could not be read since then.
    pub unread_from_ms: Option<i64>,
    /// What was said before this is still to be read.
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

/// Something is missing in a chat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryGap {
    /// The account.
    pub account: AccountId,
    /// The chat.
    pub place: Place,
    /// Where in the timeline it is said, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// What the timeline says.
    pub text: String,
    /// Why, in short, for `status`.
    pub reason: String,
    /// Whether another attempt may still read it; then a later notice takes this one's place.
    pub may_be_read_later: bool,
    /// Since when the chat is unread, where what is missing is not older than the bot's joining.
    pub unread_from_ms: Option<i64>,
    /// The time, in milliseconds since the Unix epoch.
    pub now_ms: i64,
}
