//! Posts to Slack, looks for posts of unknown outcome, and looks up names.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::rate::{Everywhere, Pace, Paces};
use vocative_contract::channel::{BoxFuture, Outbound};
use vocative_contract::crash;
use vocative_contract::envelope::{Belonging, ChatKind, Place};
use vocative_contract::error::{ChannelError, Fallback};
use vocative_contract::identity::Identity;
use vocative_contract::live::{LiveForm, LivePost};
use vocative_contract::outbound::{Delivered, Dressing, Operation, Part, Post, ReadBack, Target};
use vocative_contract::people::People;

use super::agent_view;
use super::api::{Api, Granted, POST_MESSAGE, Token};
use super::aside::{self, Reacting};
use super::belonging::belonging_of;
use super::names::NameMemory;
use super::translate::time_of;
use super::wire::{Answer, ChannelObject, IdOr, SlackEvent, UserObject};
use super::{METADATA_EVENT_TYPE, render, stream, text, upload};

/// How far before what it answers a post is looked for: Slack's servers need not agree to the second.
const READ_BACK_LEAD_MS: i64 = 5_000;
/// How many messages a page of the look holds.
const READ_BACK_PAGE: usize = 200;
/// How many pages are read before the look gives up for this time.
const READ_BACK_PAGES_MAX: usize = 20;

/// In a channel about one post a second. Source: Slack's rate limit page.
const CHANNEL_BURST: u32 = 2;
const CHANNEL_EVERY_MS: u64 = 1_000;
/// "Several hundred" posts a minute in all, counted by the minute: 100 at once after a rest and 200 more
/// in the minute that follows, so 300 in whatever minute. Source: the same page.
const ALL_BURST: u32 = 100;
const ALL_EVERY_MS: u64 = 300;

/// `chat.update` is of tier 3, 50 a minute and more: what is only shown while it is written gets 40 of
/// them, and five at once after a rest. Source: the same page.
const LIVE_BURST: u32 = 5;
const LIVE_EVERY_MS: u64 = 1_500;
/// `chat.appendStream` is of tier 4, 100 a minute and more: 80 of them. Source: the same page.
const ADDING_BURST: u32 = 5;
const ADDING_EVERY_MS: u64 = 750;

const UPDATE: &str = "chat.update";
const APPEND: &str = "chat.appendStream";
const DELETE: &str = "chat.delete";
const SET_STATUS: &str = "assistant.threads.setStatus";
/// What stands behind the app's name while it works.
const WORKING: &str = "is thinking…";

/// The outbound half.
#[derive(Debug)]
pub(super) struct SlackOutbound {
    api: Arc<Api>,
    names: Arc<NameMemory>,
    identity: Identity,
    channels: Paces,
    everywhere: Everywhere,
    /// Edits of texts that are being written.
    live: Pace,
    /// Words added to texts that are being written.
    adding: Pace,
    /// Whether the app was refused a status line: then it is not asked for another one.
    lacks_status: AtomicBool,
    /// Whether the app was refused a message that takes words at its end: then it asks for no other one.
    lacks_streams: AtomicBool,
}

impl Outbound for SlackOutbound {
    fn render(&self, text: &str, people: &People) -> Vec<Part> {
        render(text, people)
    }

    fn render_fallback(&self, part: &Part, fallback: Fallback) -> Vec<Part> {
        match (&part.file, fallback) {
            // What can't be a file is posts.
            (Some(file), Fallback::Plain | Fallback::Resplit) => {
                let (text, people) = file.instead();
                render(text, &people)
            }
            _ => render::render_fallback(part, fallback),
        }
    }

    fn wait_before(&self, target: &Target) -> Duration {
        let channel = self.channels.of(&target.chat);
        self.everywhere.take_or_wait(&channel, Instant::now())
    }

    fn deliver<'a>(&'a self, post: &'a Post) -> BoxFuture<'a, Result<Delivered, ChannelError>> {
        Box::pin(async move {
            let done = match &post.operation {
                Operation::Post => self.post_message(post).await,
                Operation::Edit { message_id } => {
                    let edited = self.update(&post.target.chat, message_id, &post.part).await;
                    edited.inspect_err(|error| self.learn_live(error))
                }
                Operation::Delete { message_id } => {
                    self.delete(&post.target.chat, message_id).await
                }
                Operation::Ephemeral { person } => aside::tell(&self.api, post, person).await,
                Operation::React { message_id } => {
                    aside::react(&self.api, post, message_id, Reacting::Adds).await
                }
                Operation::Unreact { message_id } => {
                    aside::react(&self.api, post, message_id, Reacting::Removes).await
                }
                Operation::Upload => match post.part.file.as_deref() {
                    Some(file) => upload::share(&self.api, post, file).await,
                    None => Err(ChannelError::unsupported(&post.operation)),
                },
            };
            done.inspect_err(|error| self.learn(&post.target.chat, error))
        })
    }

    fn uploads(&self) -> bool {
        true
    }

    fn prepare<'a>(
        &'a self,
        post: &'a Post,
    ) -> BoxFuture<'a, Result<Option<String>, ChannelError>> {
        Box::pin(async move {
            match post.part.file.as_deref() {
                Some(file) => upload::prepare(&self.api, file).await,
                None => Ok(None),
            }
        })
    }

    fn read_back<'a>(
        &'a self,
        post: &'a Post,
        since_ms: i64,
    ) -> BoxFuture<'a, Result<ReadBack, ChannelError>> {
        Box::pin(async move {
            match post.part.file.as_deref() {
                Some(file) => upload::find(&self.api, post, file).await,
                None => self.find(post, since_ms).await,
            }
        })
    }

    /// The status line of a thread, where Slack lets the app have one: a bot has no typing sign. It goes
    /// with the app's next message there.
    fn show_working<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, ()> {
        Box::pin(self.set_status(target, WORKING))
    }

    fn show_idle<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, ()> {
        Box::pin(self.set_status(target, ""))
    }

    fn show_live<'a>(&'a self, live: &'a LivePost) -> BoxFuture<'a, Result<(), ChannelError>> {
        Box::pin(async move {
            let chat = &live.target.chat;
            match &live.form {
                LiveForm::Preview { .. } => Err(ChannelError::unsupported(&Operation::Post)),
                LiveForm::Post { message_id } => {
                    self.take_live_turn(chat, UPDATE, &self.live)?;
                    let shown = self.update(chat, message_id, &live.part).await;
                    shown.inspect_err(|error| self.learn_live(error)).map(drop)
                }
                LiveForm::Stream { message_id, added } => {
                    self.take_live_turn(chat, APPEND, &self.adding)?;
                    stream::append(&self.api, chat, message_id, added).await
                }
            }
        })
    }

    fn dress<'a>(&'a self, target: &'a Target, dressing: &'a Dressing) -> BoxFuture<'a, ()> {
        Box::pin(agent_view::dress(&self.api, target, dressing))
    }

    fn person_name<'a>(
        &'a self,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, ChannelError>> {
        Box::pin(self.look_up_person(id))
    }

    fn belonging<'a>(
        &'a self,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<Belonging>, ChannelError>> {
        Box::pin(self.look_up_belonging(id))
    }

    fn chat_facts<'a>(&'a self, chat: &'a str) -> BoxFuture<'a, Result<Place, ChannelError>> {
        Box::pin(self.look_up_chat(chat))
    }
}

impl SlackOutbound {
    pub(super) fn new(api: Arc<Api>, names: Arc<NameMemory>, identity: Identity) -> Self {
        Self {
            api,
            names,
            identity,
            channels: Paces::new(CHANNEL_BURST, CHANNEL_EVERY_MS),
            everywhere: Everywhere::new(Pace::new(ALL_BURST, ALL_EVERY_MS)),
            live: Pace::new(LIVE_BURST, LIVE_EVERY_MS),
            adding: Pace::new(ADDING_BURST, ADDING_EVERY_MS),
            lacks_status: AtomicBool::new(false),
            lacks_streams: AtomicBool::new(false),
        }
    }

    /// Edits that are refused for their rate make room for final ones.
    fn learn_live(&self, error: &ChannelError) {
        if let ChannelError::RetryAfter { wait_ms, .. } = error {
            let wait = Duration::from_millis(*wait_ms);
            self.live.refuse(Instant::now(), wait);
        }
    }

    /// What only shows waits where a post would.
    fn take_live_turn(
        &self,
        chat: &str,
        method: &'static str,
        pace: &Pace,
    ) -> Result<(), ChannelError> {
        let now = Instant::now();
        let channel = self.channels.of(chat);
        let wait = match channel.is_resting(now) {
            true => Err(channel.wait(now)),
            false => pace.try_turn(now),
        };
        wait.map_err(|wait| ChannelError::must_wait(method, wait))
    }

    /// Gives a message of ours another text. Its metadata stays, and with it its marker.
    async fn update(
        &self,
        chat: &str,
        message_id: &str,
        part: &Part,
    ) -> Result<Delivered, ChannelError> {
        let arguments = update_arguments(chat, message_id, part);
        self.call_closed(UPDATE, chat, message_id, &arguments)
            .await?;
        of_message(UPDATE, chat, message_id)
    }

    /// Makes a call for a message of ours, and once more if that had to be stopped before.
    async fn call_closed(
        &self,
        method: &'static str,
        chat: &str,
        message_id: &str,
        arguments: &[(&str, String)],
    ) -> Result<Granted, ChannelError> {
        match self.api.call(method, Token::Bot, arguments).await {
            Err(error) if stream::is_open(&error) => {
                stream::stop(&self.api, chat, message_id).await?;
                self.api.call(method, Token::Bot, arguments).await
            }
            outcome => outcome,
        }
    }

    /// Takes a message of ours away; one that is gone is as it should be.
    async fn delete(&self, chat: &str, message_id: &str) -> Result<Delivered, ChannelError> {
        let arguments = [("channel", chat.to_owned()), ("ts", message_id.to_owned())];
        let deleted = self.call_closed(DELETE, chat, message_id, &arguments).await;
        match deleted {
            Ok(_) => {}
            Err(ChannelError::Rejected { reason, .. }) if reason == "message_not_found" => {}
            Err(error) => return Err(error),
        }
        of_message(DELETE, chat, message_id)
    }

    async fn set_status(&self, target: &Target, status: &str) {
        let Some(thread) = &target.thread else {
            return;
        };
        if self.lacks_status.load(Ordering::Relaxed) {
            return;
        }
        let arguments = [
            ("channel_id", target.chat.clone()),
            ("thread_ts", thread.clone()),
            ("status", status.to_owned()),
        ];
        let Err(error) = self.api.call(SET_STATUS, Token::Bot, &arguments).await else {
            return;
        };
        let reason = error.reason();
        tracing::debug!(reason, "The status line was not shown");
        if is_for_others(&error) {
            self.lacks_status.store(true, Ordering::Relaxed);
        }
    }

    /// What Slack says about its rate is kept to by the next posts there.
    fn learn(&self, chat: &str, error: &ChannelError) {
        if let ChannelError::RetryAfter { wait_ms, .. } = error {
            let (now, wait) = (Instant::now(), Duration::from_millis(*wait_ms));
            self.everywhere
                .refuse(chat, &self.channels.of(chat), now, wait);
        }
    }

    /// Posts a message, as one that takes words at its end where it is to be one and Slack lets it.
    async fn post_message(&self, post: &Post) -> Result<Delivered, ChannelError> {
        let method = POST_MESSAGE;
        let granted = match self.start_stream(post).await? {
            Some(granted) => granted,
            None => self.api.call(method, Token::Bot, &arguments(post)).await?,
        };
        crash::point("send.response-read");
        let unknown = |cause: &'static str| ChannelError::OutcomeUnknown {
            operation: method,
            cause: cause.into(),
        };
        let ts = granted.answer.ts.clone();
        let message_id = ts.ok_or_else(|| unknown("the answer names no ts"))?;
        let chat = match granted.answer.channel.0 {
            Some(IdOr::Id(chat)) => chat,
            _ => post.target.chat.clone(),
        };
        delivered(chat, message_id).ok_or_else(|| unknown("the answer's ts cannot be read"))
    }

    /// `None` where nothing was started: the post is an ordinary one.
    async fn start_stream(&self, post: &Post) -> Result<Option<Granted>, ChannelError> {
        if self.lacks_streams.load(Ordering::Relaxed) {
            return Ok(None);
        }
        match stream::start(&self.api, &self.identity, post).await {
            None => Ok(None),
            Some(Ok(granted)) => Ok(Some(granted)),
            Some(Err(error)) if stream::ends_attempt(&error) => Err(error),
            Some(Err(error)) => {
                let reason = error.reason();
                tracing::debug!(
                    reason,
                    "Slack starts no stream here; an ordinary post is made"
                );
                if stream::is_for_others(&error) {
                    self.lacks_streams.store(true, Ordering::Relaxed);
                }
                Ok(None)
            }
        }
    }

    async fn find(&self, post: &Post, since_ms: i64) -> Result<ReadBack, ChannelError> {
        let mut cursor = None;
        for _ in 0..READ_BACK_PAGES_MAX {
            let answer = match self.page(post, since_ms, cursor.take()).await {
                Err(ChannelError::Rejected { reason, .. }) if reason == "thread_not_found" => {
                    return Ok(ReadBack::NotFound);
                }
                page => page?,
            };
            if let Some(found) = answer.messages.iter().find(|it| self.is_post(it, post)) {
                let message_id = found.ts.clone().unwrap_or_default();
                if let Some(found) = delivered(post.target.chat.clone(), message_id) {
                    return Ok(ReadBack::Found(found));
                }
            }
            cursor = next_cursor(&answer);
            if cursor.is_none() {
                return Ok(ReadBack::NotFound);
            }
        }
        Err(ChannelError::OutcomeUnknown {
            operation: "read back",
            cause: "more messages came since than are read".into(),
        })
    }

    async fn page(
        &self,
        post: &Post,
        since_ms: i64,
        cursor: Option<String>,
    ) -> Result<Answer, ChannelError> {
        let mut arguments = vec![
            ("channel", post.target.chat.clone()),
            ("oldest", ts_of(since_ms.saturating_sub(READ_BACK_LEAD_MS))),
            ("inclusive", "true".to_owned()),
            ("include_all_metadata", "true".to_owned()),
            ("limit", READ_BACK_PAGE.to_string()),
        ];
        arguments.extend(cursor.map(|cursor| ("cursor", cursor)));
        let method = match &post.target.thread {
            Some(thread) => {
                arguments.push(("ts", thread.clone()));
                "conversations.replies"
            }
            None => "conversations.history",
        };
        let granted = self.api.call(method, Token::Bot, &arguments).await?;
        Ok(granted.answer)
    }

    /// Whether a message is that post of ours; others may copy our metadata.
    fn is_post(&self, message: &SlackEvent, post: &Post) -> bool {
        let authors = [message.user_id(), message.bot_id.as_deref()];
        let is_own = authors
            .into_iter()
            .flatten()
            .any(|id| self.identity.is_self(id));
        let is_started = || {
            let stream = post.part.stream.as_deref();
            let stream = stream.filter(|_| post.target.thread.is_some());
            stream.is_some_and(|stream| stream::is_unclaimed(message, stream))
        };
        is_own && (message.marker() == Some(post.marker.as_str()) || is_started())
    }

    async fn look_up_person(&self, id: &str) -> Result<Option<String>, ChannelError> {
        if let Some(known) = self.names.person(id) {
            return Ok(known);
        }
        let (method, argument) = if id.starts_with('B') {
            ("bots.info", "bot")
        } else {
            ("users.info", "user")
        };
        let name = match self
            .api
            .call(method, Token::Bot, &[(argument, id.to_owned())])
            .await
        {
            Ok(granted) => person_of(granted.answer),
            Err(ChannelError::Rejected { reason, .. }) if is_nobody(&reason) => None,
            Err(error) => return Err(error),
        };
        self.names.keep_person(id, name.clone());
        Ok(name)
    }

    /// What `users.info` says of a person; it also brings their name.
    async fn look_up_belonging(&self, id: &str) -> Result<Option<Belonging>, ChannelError> {
        if let Some(known) = self.names.belonging(id) {
            return Ok(known);
        }
        let arguments = [("user", id.to_owned())];
        let belonging = match self.api.call("users.info", Token::Bot, &arguments).await {
            Ok(granted) => match &granted.answer.user.0 {
                Some(IdOr::Object(user)) => {
                    let told = belonging_of(user, &self.identity);
                    self.names.keep_person(id, user.display_name());
                    Some(told)
                }
                _ => None,
            },
            Err(ChannelError::Rejected { reason, .. }) if is_nobody(&reason) => None,
            Err(error) => return Err(error),
        };
        self.names.keep_belonging(id, belonging);
        Ok(belonging)
    }

    async fn look_up_chat(&self, chat: &str) -> Result<Place, ChannelError> {
        if let Some(known) = self.names.chat(chat) {
            return Ok(known);
        }
        let method = "conversations.info";
        let granted = self
            .api
            .call(method, Token::Bot, &[("channel", chat.to_owned())])
            .await?;
        let Some(IdOr::Object(channel)) = granted.answer.channel.0 else {
            return Err(ChannelError::OutcomeUnknown {
                operation: method,
                cause: "the answer names no channel".into(),
            });
        };
        let place = place_of(chat, &channel);
        self.names.keep_chat(chat, place.clone());
        Ok(place)
    }
}

fn arguments(post: &Post) -> Vec<(&'static str, String)> {
    let metadata = serde_json::json!({
        "event_type": METADATA_EVENT_TYPE,
        "event_payload": { "outbox_id": post.marker },
    });
    let mut arguments = vec![
        ("channel", post.target.chat.clone()),
        ("text", post.part.text.clone()),
        ("metadata", metadata.to_string()),
        ("unfurl_links", "false".to_owned()),
        ("unfurl_media", "false".to_owned()),
    ];
    let blocks = post.part.blocks.as_ref();
    arguments.extend(blocks.map(|blocks| ("blocks", blocks.to_string())));
    arguments.extend(
        post.target
            .thread
            .clone()
            .map(|thread| ("thread_ts", thread)),
    );
    arguments
}

/// The arguments of `chat.update`. Without blocks, those that a message had are taken off it.
fn update_arguments(chat: &str, message_id: &str, part: &Part) -> Vec<(&'static str, String)> {
    // Beside blocks the text is what notifications say; an edit notifies nobody.
    let text = part.text.chars().take(render::TEXT_MAX_CHARS).collect();
    let mut arguments = vec![
        ("channel", chat.to_owned()),
        ("ts", message_id.to_owned()),
        ("text", text),
        // As posts are read; an update would look for addresses.
        ("parse", "none".to_owned()),
    ];
    let blocks = part.blocks.as_ref();
    arguments.extend(blocks.map(|blocks| ("blocks", blocks.to_string())));
    arguments
}

fn of_message(
    operation: &'static str,
    chat: &str,
    message_id: &str,
) -> Result<Delivered, ChannelError> {
    delivered(chat.to_owned(), message_id.to_owned()).ok_or_else(|| ChannelError::Rejected {
        operation,
        reason: "the message's ts cannot be read".to_owned(),
        fallback: Fallback::NewPost,
    })
}

/// Whether an app like this one has no status line at all.
fn is_for_others(error: &ChannelError) -> bool {
    const SURFACE: [&str; 3] = ["unknown_method", "feature_not_enabled", "method_deprecated"];
    match error {
        ChannelError::Unauthorized { .. } => true,
        ChannelError::Rejected { reason, .. } => SURFACE.contains(&reason.as_str()),
        _ => false,
    }
}

pub(super) fn delivered(chat: String, message_id: String) -> Option<Delivered> {
    let (sent_at_ms, _) = time_of(&message_id)?;
    Some(Delivered {
        chat,
        message_id,
        sent_at_ms,
        shown: None,
    })
}

/// Milliseconds as a Slack `ts`.
pub(super) fn ts_of(time_ms: i64) -> String {
    let time_ms = time_ms.max(0);
    format!("{}.{:06}", time_ms / 1_000, time_ms % 1_000 * 1_000)
}

fn next_cursor(answer: &Answer) -> Option<String> {
    let metadata = answer.response_metadata.as_ref()?;
    metadata
        .next_cursor
        .clone()
        .filter(|cursor| !cursor.is_empty())
}

/// Slack's words for somebody who is not there, or not for us.
fn is_nobody(reason: &str) -> bool {
    matches!(
        reason,
        "user_not_found" | "users_not_found" | "user_not_visible" | "bot_not_found"
    )
}

fn person_of(answer: Answer) -> Option<String> {
    match answer.user.0 {
        Some(IdOr::Object(user)) => UserObject::display_name(&user),
        _ => text::name(answer.bot.as_ref()?.name.as_deref()),
    }
}

pub(super) fn place_of(chat: &str, channel: &ChannelObject) -> Place {
    let is = |flag: Option<bool>| flag == Some(true);
    let kind = if is(*channel.is_im) {
        ChatKind::Direct
    } else if is(*channel.is_mpim) {
        ChatKind::GroupDirect
    } else if is(*channel.is_private) || is(*channel.is_group) {
        ChatKind::Private
    } else {
        ChatKind::Public
    };
    Place {
        chat: chat.to_owned(),
        kind: Some(kind),
        title: text::channel_title(channel.name.as_deref()),
        is_shared: is(*channel.is_ext_shared),
        ..Place::default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn times_become_ts() {
        assert_eq!(ts_of(1_763_712_000_123), "1763712000.123000");
        assert_eq!(ts_of(-5), "0.000000");
    }

    #[test]
    fn a_post_carries_its_thread_and_its_marker_and_previews_nothing() {
        let post = Post {
            marker: "o1".to_owned(),
            target: Target {
                chat: "C1".to_owned(),
                thread: Some("1.000100".to_owned()),
                topic: None,
                reply_to: None,
            },
            operation: Operation::Post,
            part: Part::plain("hi"),
        };
        let mut arguments = arguments(&post);
        let metadata: serde_json::Value = serde_json::from_str(&arguments.remove(2).1).unwrap();
        let expected = serde_json::json!({"event_type": "vocative_reply", "event_payload": {"outbox_id": "o1"}});
        assert_eq!(metadata, expected);
        let expected = [
            ("channel", "C1"),
            ("text", "hi"),
            ("unfurl_links", "false"),
            ("unfurl_media", "false"),
            ("thread_ts", "1.000100"),
        ];
        assert_eq!(
            arguments,
            expected.map(|(name, value)| (name, value.to_owned()))
        );
    }
}
