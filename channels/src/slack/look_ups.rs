//! Asks Slack about people, channels and posts of unknown outcome.

use std::sync::Arc;

use vocative_contract::channel::BoxFuture;
use vocative_contract::envelope::{Belonging, ChatKind, Place};
use vocative_contract::error::ChannelError;
use vocative_contract::handles::LookUps;
use vocative_contract::identity::Identity;
use vocative_contract::outbound::{Post, ReadBack};

use super::api::{SlackApi, Token};
use super::belonging::belonging_of;
use super::names::NameMemory;
use super::outbound::{delivered, ts_of};
use super::wire::{ChannelObject, IdOr, SlackAnswer, SlackEvent, UserObject};
use super::{stream, text, upload};

/// How long before the message that it answers a post is looked for: Slack's servers need not agree to the second.
const READ_BACK_LEAD_MS: i64 = 5_000;
/// How many messages a page of the look holds.
const READ_BACK_PAGE: usize = 200;
/// How many members of a channel a page holds. *Source:* `conversations.members`: under 1,000.
const MEMBER_PAGE: usize = 999;
/// How many pages of members are read; members on later pages are not found.
const MEMBER_PAGES_MAX: usize = 20;
/// How many pages are read before a look-up gives up for this time.
const READ_BACK_PAGES_MAX: usize = 20;

/// Asks about one workspace.
#[derive(Debug)]
pub(super) struct SlackLookUps {
    api: Arc<SlackApi>,
    names: Arc<NameMemory>,
    identity: Identity,
}

impl LookUps for SlackLookUps {
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

    fn is_member<'a>(
        &'a self,
        chat: &'a str,
        person: &'a str,
    ) -> BoxFuture<'a, Result<Option<bool>, ChannelError>> {
        Box::pin(self.look_up_member(chat, person))
    }

    fn chat_facts<'a>(&'a self, chat: &'a str) -> BoxFuture<'a, Result<Place, ChannelError>> {
        Box::pin(self.look_up_chat(chat))
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
}

impl SlackLookUps {
    pub(super) fn new(api: Arc<SlackApi>, names: Arc<NameMemory>, identity: Identity) -> Self {
        Self {
            api,
            names,
            identity,
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
    ) -> Result<SlackAnswer, ChannelError> {
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

    /// Whether a message is the given post of ours; others may copy our metadata.
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

    /// What `users.info` says of a person's belonging; the answer also brings their name.
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

    /// Reads who is in a channel, page by page. The result is never kept: a person who has left the channel must not
    /// decide anything any more.
    async fn look_up_member(&self, chat: &str, person: &str) -> Result<Option<bool>, ChannelError> {
        let mut cursor = None;
        for _ in 0..MEMBER_PAGES_MAX {
            let mut arguments = vec![
                ("channel", chat.to_owned()),
                ("limit", MEMBER_PAGE.to_string()),
            ];
            arguments.extend(cursor.take().map(|cursor| ("cursor", cursor)));
            let method = "conversations.members";
            let granted = self.api.call(method, Token::Bot, &arguments).await?;
            let members = &granted.answer.members.0;
            if members.iter().any(|id| id == person) {
                return Ok(Some(true));
            }
            cursor = next_cursor(&granted.answer);
            if cursor.is_none() {
                return Ok(Some(false));
            }
        }
        Ok(None)
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

fn next_cursor(answer: &SlackAnswer) -> Option<String> {
    let metadata = answer.response_metadata.as_ref()?;
    metadata
        .next_cursor
        .clone()
        .filter(|cursor| !cursor.is_empty())
}

/// Whether Slack says that a person does not exist, or not for us.
fn is_nobody(reason: &str) -> bool {
    matches!(
        reason,
        "user_not_found" | "users_not_found" | "user_not_visible" | "bot_not_found"
    )
}

fn person_of(answer: SlackAnswer) -> Option<String> {
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
