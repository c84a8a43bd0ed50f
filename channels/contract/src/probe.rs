//! Asking a platform that shows bots no history about single messages, without changing any.
//!
//! Such a platform numbers its messages: what was sent later has a higher number. Whether a post of unknown
//! outcome arrived follows from asking about the numbers that it may have got. What follows from the
//! answers is not decided here.

use std::time::Duration;

use crate::channel::BoxFuture;
use crate::error::ChannelError;

/// How a platform numbers the messages of a chat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// Its name: equal names are one sequence of an account.
    pub name: String,
    /// Whether the sequence belongs to one chat alone. Then the chat may turn out to be a broadcast channel, where the
    /// posts of others look like ours.
    pub is_of_one_chat: bool,
}

/// The number of a message that an event contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbered {
    /// How its chat is numbered.
    pub sequence: Sequence,
    /// The platform's id of its chat.
    pub chat: String,
    /// Its number; `None` where the event shows only messages of the bot itself.
    pub number: Option<i64>,
    /// When it was sent by the platform's time, in milliseconds since the Unix epoch.
    pub sent_at_ms: i64,
    /// Messages of the bot that the event shows (what it replies to, a pressed button's).
    pub own: Vec<OwnNumber>,
}

/// A message of the bot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnNumber {
    /// Its number.
    pub number: i64,
    /// When it was sent by the platform's time, in milliseconds since the Unix epoch.
    pub sent_at_ms: i64,
}

/// What the platform says of one number in a chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeAnswer {
    /// A post of ours.
    Ours,
    /// A message that is no post of ours.
    NotOurs,
    /// No message; or one that the platform's server has not heard of yet.
    NotThere,
    /// Nothing that decides between them.
    Unclear,
}

/// An answer, and when it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probed {
    /// The answer.
    pub answer: ProbeAnswer,
    /// The platform's time when it answered, at the latest, in milliseconds since the Unix epoch; `None`
    /// where it does not say.
    pub answered_by_ms: Option<i64>,
}

/// Asks about single messages.
pub trait Prober: Send + Sync {
    /// How the messages of a chat are numbered; `None` where a probe can't tell whose message it is.
    fn sequence(&self, chat: &str) -> Option<Sequence>;

    /// How long to wait before a question about that chat may be put. Zero reserves the turn.
    fn wait_before_probe(&self, chat: &str) -> Duration;

    /// Asks about one number with one request that changes nothing.
    ///
    /// # Errors
    /// A [`ChannelError`]: nothing was learnt.
    fn probe<'a>(
        &'a self,
        chat: &'a str,
        number: i64,
    ) -> BoxFuture<'a, Result<Probed, ChannelError>>;
}
