//! Posts to Slack.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use vocative_contract::channel::BoxFuture;
use vocative_contract::crash;
use vocative_contract::error::ChannelError;
use vocative_contract::handles::Poster;
use vocative_contract::identity::Identity;
use vocative_contract::outbound::{Delivered, Operation, Part, Post, Target};

use super::api::{Granted, POST_MESSAGE, SlackApi, Token};
use super::aside::{self, Reacting};
use super::card::blocks_of;
use super::outbound::{SlackRates, delete, delivered, update};
use super::render::escaped;
use super::wire::IdOr;
use super::{METADATA_EVENT_TYPE, stream, upload};

/// Posts in one workspace.
#[derive(Debug)]
pub(super) struct SlackPoster {
    api: Arc<SlackApi>,
    rates: Arc<SlackRates>,
    identity: Identity,
    /// Whether Slack refused the app a streamed message; then none is tried again.
    lacks_streams: AtomicBool,
    /// Whether the app was refused its last post under an agent's name.
    lacks_names: AtomicBool,
}

impl Poster for SlackPoster {
    fn wait_before(&self, target: &Target) -> Duration {
        let channel = self.rates.channels.of(&target.chat);
        self.rates.everywhere.take_or_wait(&channel, Instant::now())
    }

    fn deliver<'a>(&'a self, post: &'a Post) -> BoxFuture<'a, Result<Delivered, ChannelError>> {
        Box::pin(async move {
            let done = match &post.operation {
                Operation::Post => self.post_message(post).await,
                Operation::Edit { message_id } => {
                    let post = self.change_as_allowed(post);
                    let edited = update(&self.api, &post.target.chat, message_id, &post.part).await;
                    edited.inspect_err(|error| self.rates.learn_live(error))
                }
                Operation::Delete { message_id } => {
                    delete(&self.api, &post.target.chat, message_id).await
                }
                Operation::Ephemeral { person } => aside::tell(&self.api, post, person).await,
                Operation::Answer { person, .. } => aside::answer(&self.api, post, person).await,
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
            done.inspect_err(|error| self.rates.learn(&post.target.chat, error))
        })
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
}

impl SlackPoster {
    pub(super) fn new(api: Arc<SlackApi>, rates: Arc<SlackRates>, identity: Identity) -> Self {
        Self {
            api,
            rates,
            identity,
            lacks_streams: AtomicBool::new(false),
            lacks_names: AtomicBool::new(false),
        }
    }

    /// Posts a message, as a streamed one where that is wanted and Slack allows it.
    async fn post_message(&self, post: &Post) -> Result<Delivered, ChannelError> {
        let method = POST_MESSAGE;
        let granted = match self.start_stream(post).await? {
            Some(granted) => granted,
            None => self.post_as_told(post).await?,
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

    /// Posts under the speaker's name; where the app may not, under the app's name, with the speaker's before the text.
    async fn post_as_told(&self, post: &Post) -> Result<Granted, ChannelError> {
        let told = arguments(post);
        let posted = self.api.call(POST_MESSAGE, Token::Bot, &told).await;
        if post.part.speaker.is_none() {
            return posted;
        }
        let refusal = posted.as_ref().err().filter(|error| lacks_scope(error));
        self.lacks_names.store(refusal.is_some(), Ordering::Relaxed);
        let Some(error) = refusal else {
            return posted;
        };
        tracing::warn!(
            reason = error.reason(),
            "the app may not post under names of agents (custom_names); the name stands in the text"
        );
        let told = arguments(&with_name_in_text(post));
        self.api.call(POST_MESSAGE, Token::Bot, &told).await
    }

    /// The change to make: where the post could not be made under the speaker's name, the text holds the name.
    fn change_as_allowed<'a>(&self, post: &'a Post) -> Cow<'a, Post> {
        match post.part.speaker.is_some() && self.lacks_names.load(Ordering::Relaxed) {
            true => Cow::Owned(with_name_in_text(post)),
            false => Cow::Borrowed(post),
        }
    }

    /// `None` where no stream was started: the message is posted as an ordinary one.
    async fn start_stream(&self, post: &Post) -> Result<Option<Granted>, ChannelError> {
        if self.lacks_streams.load(Ordering::Relaxed) {
            return Ok(None);
        }
        match stream::start(&self.api, &self.identity, post).await {
            None => Ok(None),
            Some(Ok(granted)) => Ok(Some(granted)),
            // It is posted as an ordinary message with the name in its text.
            Some(Err(error)) if post.part.speaker.is_some() && lacks_scope(&error) => Ok(None),
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
}

fn lacks_scope(error: &ChannelError) -> bool {
    matches!(error, ChannelError::Unauthorized { reason, .. } if reason.starts_with("missing_scope"))
}

/// The same post with the speaker's name before what it says.
pub(super) fn with_name_in_text(post: &Post) -> Post {
    let Some(speaker) = post.part.speaker.as_deref() else {
        return post.clone();
    };
    let name = escaped(&speaker.name);
    let said = |text: &str| match text.is_empty() {
        true => name.clone(),
        false => format!("{name}: {text}"),
    };
    let part = &post.part;
    let blocks = part.blocks.as_ref().and_then(Value::as_array).map(|own| {
        let name = json!({"type": "context", "elements": [{"type": "mrkdwn", "text": name}]});
        Value::Array(std::iter::once(name).chain(own.iter().cloned()).collect())
    });
    Post {
        part: Part {
            text: said(&part.text),
            blocks,
            speaker: None,
            ..part.clone()
        },
        ..post.clone()
    }
}

/// The arguments for the name and picture under which a message appears.
pub(super) fn speaker(part: &Part) -> impl Iterator<Item = (&'static str, String)> {
    let speaker = part.speaker.as_deref();
    let icon = speaker.and_then(|it| it.icon.clone()).map(|icon| {
        let is_emoji = icon.starts_with(':');
        (if is_emoji { "icon_emoji" } else { "icon_url" }, icon)
    });
    let name = speaker.map(|it| ("username", it.name.clone()));
    name.into_iter().chain(icon)
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
    let blocks = blocks_of(&post.part);
    arguments.extend(blocks.map(|blocks| ("blocks", blocks.to_string())));
    arguments.extend(speaker(&post.part));
    arguments.extend(
        post.target
            .thread
            .clone()
            .map(|thread| ("thread_ts", thread)),
    );
    arguments
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use vocative_contract::outbound::Part;

    use super::*;

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
        let metadata: Value = serde_json::from_str(&arguments.remove(2).1).unwrap();
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
