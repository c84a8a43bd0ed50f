//! The outbound half of a Telegram channel: the handles, the rates that they share, and the parameters of calls.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::rate::{Everywhere, Pace, Paces};
use vocative_contract::error::{ChannelError, Fallback};
use vocative_contract::handles::Outbound;
use vocative_contract::outbound::{Delivered, Part, Target};

use super::api::{Parameters, TelegramApi};
use super::card::keyboard;
use super::look_ups::TelegramLookUps;
use super::posting::TelegramPoster;
use super::probing::TelegramProber;
use super::render::TelegramRenderer;
use super::signs::TelegramSigns;
use super::wire::SentMessage;

pub(super) const EDIT: &str = "editMessageText";
/// Telegram's error where the message has that very text already.
const NOT_MODIFIED: &str = "message is not modified";

/// The General topic, which is addressed by naming no topic.
const GENERAL_TOPIC_ID: i64 = 1;

/// In a group the platform takes 20 posts a minute: 5 at once after a rest and 15 more in the minute
/// that follows never pass that. Source: the Bot FAQ.
const GROUP_BURST: u32 = 5;
const GROUP_EVERY_MS: u64 = 4_000;
/// In a private chat about one post a second. Source: the Bot FAQ.
const PRIVATE_BURST: u32 = 2;
const PRIVATE_EVERY_MS: u64 = 1_000;
/// 30 posts a second in all, over whatever second. Source: the Bot FAQ.
const ALL_BURST: u32 = 10;
const ALL_EVERY_MS: u64 = 50;

/// The handles of one bot. `has_inline_mode` says whether messages of the bot may have been written at other people's
/// request (inline mode).
pub(super) fn outbound(api: Arc<TelegramApi>, has_inline_mode: Arc<AtomicBool>) -> Outbound {
    let rates = Arc::new(TelegramRates::new());
    let prober = TelegramProber::new(Arc::clone(&api), Arc::clone(&rates), has_inline_mode);
    Outbound {
        renderer: Arc::new(TelegramRenderer),
        signs: Arc::new(TelegramSigns::new(Arc::clone(&api), Arc::clone(&rates))),
        look_ups: Arc::new(TelegramLookUps::new(Arc::clone(&api))),
        prober: Some(Arc::new(prober)),
        forms: None,
        poster: Arc::new(TelegramPoster::new(api, rates)),
    }
}

/// How fast Telegram takes posts and live previews.
#[derive(Debug)]
pub(super) struct TelegramRates {
    groups: Paces,
    privates: Paces,
    pub(super) everywhere: Everywhere,
}

impl TelegramRates {
    pub(super) fn new() -> Self {
        Self {
            groups: Paces::new(GROUP_BURST, GROUP_EVERY_MS),
            privates: Paces::new(PRIVATE_BURST, PRIVATE_EVERY_MS),
            everywhere: Everywhere::new(Pace::new(ALL_BURST, ALL_EVERY_MS)),
        }
    }

    pub(super) fn pace_of(&self, chat: &str) -> Arc<Pace> {
        match is_group(chat) {
            true => self.groups.of(chat),
            false => self.privates.of(chat),
        }
    }

    pub(super) fn take_or_wait(&self, chat: &str, now: Instant) -> Duration {
        self.everywhere.take_or_wait(&self.pace_of(chat), now)
    }

    /// Notes what the platform says about its rate, so that the next posts there keep to it.
    pub(super) fn learn(&self, chat: &str, error: &ChannelError, now: Instant) {
        if let ChannelError::RetryAfter { wait_ms, .. } = error {
            let wait = Duration::from_millis(*wait_ms);
            self.everywhere.refuse(chat, &self.pace_of(chat), now, wait);
        }
    }

    /// Rests after a refused probe, which says nothing of the pace of posts.
    pub(super) fn rest_after(&self, chat: &str, error: &ChannelError) {
        if let ChannelError::RetryAfter { wait_ms, .. } = error {
            let wait = Duration::from_millis(*wait_ms);
            self.pace_of(chat).rest(Instant::now(), wait);
        }
    }
}

/// Gives a message of ours another text; if it has that text already, that is a success.
pub(super) async fn edit(
    api: &TelegramApi,
    chat: &str,
    message_id: &str,
    part: &Part,
) -> Result<Delivered, ChannelError> {
    let mut parameters = text_parameters(chat, part);
    parameters.insert("message_id".to_owned(), message_number(EDIT, message_id)?);
    let edited: Result<SentMessage, _> = api.call(EDIT, &parameters).await;
    let edited = edited.map_err(|failure| failure.into_error(EDIT));
    let sent_at_ms = match edited {
        Ok(edited) => edited.date.unwrap_or_default().saturating_mul(1_000),
        Err(ChannelError::Rejected { reason, .. }) if reason.contains(NOT_MODIFIED) => 0,
        Err(error) => return Err(error),
    };
    Ok(of_message(chat, message_id, sent_at_ms))
}

/// Chat, text, entities and buttons.
pub(super) fn text_parameters(chat: &str, part: &Part) -> Parameters {
    let mut parameters = Parameters::new();
    parameters.insert("chat_id".to_owned(), chat_id(chat));
    parameters.insert("text".to_owned(), json!(part.text));
    parameters.insert(
        "link_preview_options".to_owned(),
        json!({"is_disabled": true}),
    );
    if let Some(entities) = &part.entities
        && entities.is_array()
    {
        parameters.insert("entities".to_owned(), entities.clone());
    }
    if let Some(keyboard) = keyboard(part) {
        parameters.insert("reply_markup".to_owned(), keyboard);
    }
    parameters
}

/// Chat and topic.
pub(super) fn target_parameters(target: &Target) -> Parameters {
    let mut parameters = Parameters::new();
    parameters.insert("chat_id".to_owned(), chat_id(&target.chat));
    if let Some(topic) = number(target.topic.as_deref())
        && topic != GENERAL_TOPIC_ID
    {
        parameters.insert("message_thread_id".to_owned(), json!(topic));
    }
    parameters
}

pub(super) fn of_message(chat: &str, message_id: &str, sent_at_ms: i64) -> Delivered {
    Delivered {
        chat: chat.to_owned(),
        message_id: message_id.to_owned(),
        sent_at_ms,
        shown: None,
    }
}

/// A message id as the number that the platform takes.
pub(super) fn message_number(operation: &'static str, id: &str) -> Result<Value, ChannelError> {
    let number = number(Some(id)).map(|id| json!(id));
    number.ok_or_else(|| ChannelError::Rejected {
        operation,
        reason: "the message's id is no number".to_owned(),
        fallback: Fallback::NewPost,
    })
}

/// Whether an id is a group's or a channel's: those are below zero.
fn is_group(chat: &str) -> bool {
    chat.starts_with('-')
}

/// A chat id as a number, or as it is (`@channelname`).
pub(super) fn chat_id(id: &str) -> Value {
    number(Some(id)).map_or_else(|| json!(id), |id| json!(id))
}

pub(super) fn number(id: Option<&str>) -> Option<i64> {
    id?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_minute_has_more_posts_in_a_group_than_the_platform_takes() {
        let group = Paces::new(GROUP_BURST, GROUP_EVERY_MS).of("-1");
        let start = Instant::now();
        let mut went = Vec::new();
        // A sender who posts as fast as allowed, after a rest and for five minutes.
        for tenth in 0..3_000_u64 {
            let now = start + Duration::from_millis(tenth * 100);
            if group.try_turn(now).is_ok() {
                went.push(now);
            }
        }
        let minute = Duration::from_secs(60);
        let busiest = went.iter().map(|from| {
            let within = |at: &&Instant| **at >= *from && **at < *from + minute;
            went.iter().filter(within).count()
        });
        let busiest = busiest.max();
        assert!(matches!(busiest, Some(15..=20)), "{busiest:?}");
        assert!(went.len() >= 75, "{} in five minutes", went.len());
    }
}
