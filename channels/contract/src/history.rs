//! Reading messages that were sent while the bot was not connected: the optional history half of a channel.
//!
//! A platform that lets a bot read a room offers it ([`crate::capability::Capabilities`] says so);
//! Telegram does not: it keeps updates for a day and nothing before. A page is only read here, in the
//! platform's order and as the same envelopes that live events become. Which chats and times are
//! read, and what is done with the envelopes, is the caller's to decide. Nothing here retries.

use crate::channel::BoxFuture;
use crate::envelope::{Envelope, Place};
use crate::error::ChannelError;

/// A request for one page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryRequest {
    /// The chat, with all that is known about it.
    pub place: Place,
    /// A thread of the chat; `None` for messages outside of threads.
    pub thread: Option<String>,
    /// Nothing older is wanted, in milliseconds since the Unix epoch. A thread's root is returned anyway.
    pub from_ms: i64,
    /// The latest time of a message that is wanted, in milliseconds since the Unix epoch.
    pub until_ms: i64,
    /// The cursor of the previous page; the rest of the request stays the same.
    pub cursor: Option<String>,
    /// The most messages that a page holds; fewer may come although there are more.
    pub limit: usize,
}

/// A page of messages: of a chat the newest first, of a thread the oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistoryPage {
    /// The messages that people see there; joins, topics and other service messages are left out.
    pub messages: Vec<PastMessage>,
    /// The cursor of the next page; `None` at the end.
    pub next_cursor: Option<String>,
}

/// A message that was read back.
#[derive(Clone, Debug, PartialEq)]
pub struct PastMessage {
    /// Its platform message id.
    pub message_id: String,
    /// When it was posted, in milliseconds since the Unix epoch.
    pub sent_at_ms: i64,
    /// When it was last edited.
    pub edited_at_ms: Option<i64>,
    /// When its thread was last replied in, if it is the root of one.
    pub replied_at_ms: Option<i64>,
    /// The envelope that its live event would have become.
    pub envelope: Envelope,
}

/// The history half: reads what a platform keeps.
pub trait HistoryReader: Send + Sync + 'static {
    /// The chats the bot is in, as far as it may list them.
    ///
    /// # Errors
    /// A [`ChannelError`] by what the caller should do next.
    fn chats(&self) -> BoxFuture<'_, Result<Vec<Place>, ChannelError>>;

    /// One page; waits before the request so as to keep within the platform's rate.
    ///
    /// # Errors
    /// [`ChannelError::ChatRefused`] where this chat may not be read, also for a missing scope; other errors as for
    /// every call.
    fn page<'a>(
        &'a self,
        request: &'a HistoryRequest,
    ) -> BoxFuture<'a, Result<HistoryPage, ChannelError>>;
}
