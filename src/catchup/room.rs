//! One chat: its messages of a span, the oldest first, and the threads in which something was said.
//!
//! A platform lists a chat the newest first, while turns must be captured in the room's order: an answer must find
//! what was said before its question. So a span is walked back to its start, its oldest part is held in memory and
//! captured, and the part that did not fit is walked again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tracing::warn;
use vocative_channels::backoff::Backoff;
use vocative_contract::crash;
use vocative_contract::envelope::{Event, Place};
use vocative_contract::history::{HistoryPage, HistoryReader, HistoryRequest, PastMessage};

use super::asking::{HistoryRefused, ask};
use crate::capture::clock::Clock;
use crate::capture::inbound::ChannelIntake;
use vocative_core::ids::AccountId;
use vocative_core::judging::origin::CaptureOrigin;
use vocative_store::{ReadingBack, Store};

/// The number of messages that one page asks for: the most that a platform gives. Source: Slack's limit.
const PAGE: usize = 999;
/// The most messages of a chat that are in memory at a time; the rest is read in another walk.
const KEPT_MAX: usize = 2_000;
/// The most threads of a chat that are read.
const THREADS_MAX: usize = 1_000;
/// The most messages that are being stored at the same time.
const AT_ONCE: usize = 64;
/// How many of the newest messages are compared when a connection is doubted.
const NEWEST: usize = 5;
/// Waits between attempts to store.
const STORE_RETRY_FIRST_MS: u64 = 500;
const STORE_RETRY_MAX_MS: u64 = 30_000;

/// Reads chats of one account.
pub struct ChatReader {
    /// The channel's name.
    pub channel: String,
    /// The account.
    pub account: AccountId,
    /// The platform's history.
    pub history: Arc<dyn HistoryReader>,
    /// Takes in what is read.
    pub intake: Arc<ChannelIntake>,
    /// How far was read.
    pub store: Store<ReadingBack>,
    /// The platform's time.
    pub clock: Clock,
}

/// The part of a chat that is read.
#[derive(Clone, Debug)]
pub(super) struct ReadSpan {
    pub(super) place: Place,
    /// The start of the messages, in milliseconds since the Unix epoch.
    pub(super) from_ms: i64,
    /// The end of the messages.
    pub(super) until_ms: i64,
    /// The start of the roots of threads; not after `from_ms`.
    pub(super) roots_from_ms: i64,
    /// The most pages of older messages that are searched for roots, besides those that come with the missed ones.
    pub(super) root_pages_max: usize,
    /// In the threads that are read, the start of the replies that are read again if they were edited since
    /// `from_ms`; not after it.
    pub(super) edited_from_ms: i64,
    /// Threads that may have new replies; if the search passed a thread's root, it is read only if the root says so.
    pub(super) threads: Vec<ThreadToRead>,
    /// The most messages that are read, the newest.
    pub(super) messages_max: usize,
    pub(super) origin: CaptureOrigin,
}

/// A thread that is known to the store.
#[derive(Clone, Debug)]
pub(super) struct ThreadToRead {
    /// Its root's message id.
    pub(super) root: String,
    /// When its root was posted, in milliseconds since the Unix epoch; `None` where the id does not say.
    pub(super) root_sent_at_ms: Option<i64>,
    /// Whether it is read even if its root shows nothing new: a reply in it may have been edited.
    pub(super) is_asked_in: bool,
}

/// The result of reading a chat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ChatRead {
    /// Messages that were handed to the intake, including known ones.
    pub(super) messages: usize,
    /// If older messages exist and were not read, the time before which they are.
    pub(super) cut_at_ms: Option<i64>,
}

/// The result of one walk back through a span.
#[derive(Default)]
struct HistoryWalk {
    /// The oldest messages of the span, the newest in front.
    kept: VecDeque<PastMessage>,
    /// Older messages that were changed since the span began.
    changed: Vec<PastMessage>,
    threads: Vec<String>,
    seen: usize,
    cut_at_ms: Option<i64>,
    /// Whether newer messages did not fit.
    is_more: bool,
    /// Every message from this time on was seen.
    seen_from_ms: i64,
}

impl ChatReader {
    /// Reads a span of a chat. Reading it again changes nothing.
    pub(super) async fn read(&self, span: &ReadSpan) -> Result<ChatRead, HistoryRefused> {
        let mut walk = self.walk(span, span.from_ms, span.roots_from_ms).await?;
        let seen_from_ms = walk.seen_from_ms;
        let mut read = ChatRead {
            messages: 0,
            cut_at_ms: walk.cut_at_ms,
        };
        let mut threads = std::mem::take(&mut walk.threads);
        let changed = std::mem::take(&mut walk.changed);
        self.take(changed.into_iter().rev(), span).await;
        loop {
            let newest_ms = walk.kept.front().map(|message| message.sent_at_ms);
            read.messages += walk.kept.len();
            self.take(std::mem::take(&mut walk.kept).into_iter().rev(), span)
                .await;
            match newest_ms.filter(|_| walk.is_more) {
                Some(newest_ms) => walk = self.walk(span, newest_ms, newest_ms).await?,
                None => break,
            }
        }
        for thread in &span.threads {
            let is_seen = thread
                .root_sent_at_ms
                .is_some_and(|at_ms| at_ms >= seen_from_ms);
            if (thread.is_asked_in || !is_seen) && !threads.contains(&thread.root) {
                threads.push(thread.root.clone());
            }
        }
        if threads.len() > THREADS_MAX {
            warn!(channel.id = %self.channel, chat.id = %span.place.chat, threads = threads.len(), "a chat has more active threads than are read");
            threads.truncate(THREADS_MAX);
        }
        for thread in threads {
            self.read_thread(span, thread, &mut read).await?;
        }
        Ok(read)
    }

    /// Whether there are messages in a span.
    pub(super) async fn is_anything(
        &self,
        place: &Place,
        from_ms: i64,
        until_ms: i64,
    ) -> Result<bool, HistoryRefused> {
        let mut request = request(place, from_ms, until_ms);
        request.limit = 1;
        let page = self.page(&request).await?;
        Ok(!page.messages.is_empty() || page.next_cursor.is_some())
    }

    /// The ids of the newest messages of others in a span; none if it can't be read.
    pub(super) async fn newest(&self, place: &Place, from_ms: i64, until_ms: i64) -> Vec<String> {
        let mut request = request(place, from_ms, until_ms);
        request.limit = NEWEST;
        let page = self.page(&request).await.unwrap_or_default();
        let is_said = |message: &PastMessage| matches!(message.envelope.event, Event::Posted(_));
        let messages = page.messages.into_iter().filter(is_said);
        messages.map(|message| message.message_id).collect()
    }

    async fn walk(
        &self,
        span: &ReadSpan,
        from_ms: i64,
        roots_from_ms: i64,
    ) -> Result<HistoryWalk, HistoryRefused> {
        let mut walk = HistoryWalk {
            seen_from_ms: span.until_ms,
            ..HistoryWalk::default()
        };
        let mut request = request(&span.place, roots_from_ms.min(from_ms), span.until_ms);
        let mut root_pages = 0;
        loop {
            let page = self.page(&request).await?;
            let oldest_ms = page.messages.last().map(|message| message.sent_at_ms);
            for message in page.messages {
                walk.note(message, from_ms, span);
            }
            if walk.cut_at_ms.is_some() {
                return Ok(walk);
            }
            walk.seen_from_ms = oldest_ms.unwrap_or(walk.seen_from_ms);
            let is_past_the_missed = oldest_ms.is_some_and(|oldest_ms| oldest_ms < from_ms);
            request.cursor = page.next_cursor;
            if request.cursor.is_none() {
                walk.seen_from_ms = request.from_ms;
                return Ok(walk);
            }
            if is_past_the_missed && root_pages == span.root_pages_max {
                return Ok(walk);
            }
            root_pages += usize::from(is_past_the_missed);
        }
    }

    /// Reads a thread. Its messages come the oldest first; the platform also sends its root if it is older, and
    /// replies that were edited since.
    async fn read_thread(
        &self,
        span: &ReadSpan,
        thread: String,
        read: &mut ChatRead,
    ) -> Result<(), HistoryRefused> {
        let is_root = |message: &PastMessage| message.message_id == thread;
        let is_since = |message: &PastMessage| {
            let changed_ms = message.edited_at_ms.unwrap_or(message.sent_at_ms);
            changed_ms.max(message.sent_at_ms) >= span.from_ms
        };
        let mut request = request(&span.place, span.edited_from_ms, span.until_ms);
        request.thread = Some(thread.clone());
        loop {
            let page = self.page(&request).await?;
            let mut messages = page.messages;
            messages.retain(|message| is_root(message) || is_since(message));
            let left = span.messages_max.saturating_sub(read.messages);
            if messages.len() > left {
                let cut = messages.get(left);
                read.cut_at_ms = read.cut_at_ms.or(cut.map(|message| message.sent_at_ms));
            }
            messages.truncate(left);
            read.messages += messages.len();
            self.take(messages.into_iter(), span).await;
            request.cursor = page.next_cursor;
            if request.cursor.is_none() || read.cut_at_ms.is_some() && left == 0 {
                return Ok(());
            }
        }
    }

    async fn page(&self, request: &HistoryRequest) -> Result<HistoryPage, HistoryRefused> {
        let page = ask(&self.channel, || self.history.page(request)).await;
        crash::point("catch-up.page-read");
        page
    }

    /// Hands messages to the intake in their order, many in parallel.
    async fn take(&self, messages: impl Iterator<Item = PastMessage>, span: &ReadSpan) {
        let mut messages = messages.peekable();
        while messages.peek().is_some() {
            let together: Vec<PastMessage> = messages.by_ref().take(AT_ONCE).collect();
            self.take_together(&together, span).await;
        }
    }

    async fn take_together(&self, messages: &[PastMessage], span: &ReadSpan) {
        let mut backoff = Backoff::new(STORE_RETRY_FIRST_MS, STORE_RETRY_MAX_MS);
        loop {
            let now_ms = (self.clock)();
            let taken = messages.iter().map(|message| {
                let mut envelope = message.envelope.clone();
                envelope.received_at_ms = now_ms.max(message.sent_at_ms);
                self.intake.take_back(envelope, origin_of(message, span))
            });
            let Some(cause) = join_all(taken).await.into_iter().find_map(Result::err) else {
                return;
            };
            let wait_ms = backoff.next_ms();
            warn!(channel.id = %self.channel, error = %cause, wait_ms, "what was read could not be stored; trying again");
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        }
    }
}

impl HistoryWalk {
    fn note(&mut self, message: PastMessage, from_ms: i64, span: &ReadSpan) {
        if self.cut_at_ms.is_some() {
            return;
        }
        let is_since = |at_ms: Option<i64>| at_ms.is_some_and(|at_ms| at_ms >= from_ms);
        if is_since(message.replied_at_ms) {
            self.threads.push(message.message_id.clone());
        }
        if message.sent_at_ms < from_ms {
            let is_gone = matches!(message.envelope.event, Event::Deleted { .. });
            if (is_gone || is_since(message.edited_at_ms)) && self.changed.len() < KEPT_MAX {
                self.changed.push(message);
            }
            return;
        }
        if self.seen == span.messages_max {
            self.cut_at_ms = Some(message.sent_at_ms);
            return;
        }
        self.seen += 1;
        self.kept.push_back(message);
        if self.kept.len() > KEPT_MAX {
            self.kept.pop_front();
            self.is_more = true;
        }
    }
}

fn request(place: &Place, from_ms: i64, until_ms: i64) -> HistoryRequest {
    HistoryRequest {
        place: place.clone(),
        thread: None,
        from_ms,
        until_ms,
        cursor: None,
        limit: PAGE,
    }
}

/// The origin of a message: the root of a thread may be older than the missed messages, and is stored for the thread.
fn origin_of(message: &PastMessage, span: &ReadSpan) -> CaptureOrigin {
    let changed_ms = message.edited_at_ms.unwrap_or(message.sent_at_ms);
    if message.sent_at_ms.max(changed_ms) < span.from_ms {
        CaptureOrigin::Backfill
    } else {
        span.origin
    }
}
