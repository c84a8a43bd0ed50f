//! The outbound half of a Slack channel: the handles, the rates that they share, and changes of own messages.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::rate::{Everywhere, Pace, Paces};
use vocative_contract::error::{ChannelError, Fallback};
use vocative_contract::handles::Outbound;
use vocative_contract::identity::Identity;
use vocative_contract::outbound::{Delivered, Part};

use super::api::{Granted, SlackApi, Token};
use super::card::blocks_of;
use super::form::SlackForms;
use super::look_ups::SlackLookUps;
use super::names::NameMemory;
use super::posting::SlackPoster;
use super::render::{SlackRenderer, TEXT_MAX_CHARS};
use super::signs::SlackSigns;
use super::stream;
use super::translate::time_of;

/// In a channel about one post a second. Source: Slack's rate limit page.
const CHANNEL_BURST: u32 = 2;
const CHANNEL_EVERY_MS: u64 = 1_000;
/// "Several hundred" posts a minute in all, counted by the minute: 100 at once after a rest and 200 more
/// in the minute that follows, so 300 in whatever minute. Source: the same page.
const ALL_BURST: u32 = 100;
const ALL_EVERY_MS: u64 = 300;

/// `chat.update` is of tier 3, 50 a minute and more: live previews of answers get 40 of them, and five at once after a
/// rest. Source: the same page.
const LIVE_BURST: u32 = 5;
const LIVE_EVERY_MS: u64 = 1_500;
/// `chat.appendStream` is of tier 4, 100 a minute and more: 80 of them. Source: the same page.
const ADDING_BURST: u32 = 5;
const ADDING_EVERY_MS: u64 = 750;

pub(super) const UPDATE: &str = "chat.update";
const DELETE: &str = "chat.delete";

/// The handles of one identity.
pub(super) fn outbound(api: Arc<SlackApi>, names: Arc<NameMemory>, identity: Identity) -> Outbound {
    let rates = Arc::new(SlackRates::new());
    Outbound {
        renderer: Arc::new(SlackRenderer),
        signs: Arc::new(SlackSigns::new(Arc::clone(&api), Arc::clone(&rates))),
        look_ups: Arc::new(SlackLookUps::new(Arc::clone(&api), names, identity.clone())),
        prober: None,
        forms: Some(Arc::new(SlackForms::new(Arc::clone(&api)))),
        poster: Arc::new(SlackPoster::new(api, rates, identity)),
    }
}

/// How fast Slack takes posts and live previews.
#[derive(Debug)]
pub(super) struct SlackRates {
    pub(super) channels: Paces,
    pub(super) everywhere: Everywhere,
    /// Edits of texts that are being written.
    pub(super) live: Pace,
    /// Words added to texts that are being written.
    pub(super) adding: Pace,
}

impl SlackRates {
    fn new() -> Self {
        Self {
            channels: Paces::new(CHANNEL_BURST, CHANNEL_EVERY_MS),
            everywhere: Everywhere::new(Pace::new(ALL_BURST, ALL_EVERY_MS)),
            live: Pace::new(LIVE_BURST, LIVE_EVERY_MS),
            adding: Pace::new(ADDING_BURST, ADDING_EVERY_MS),
        }
    }

    /// A refused live edit slows live edits down, so that final ones have room.
    pub(super) fn learn_live(&self, error: &ChannelError) {
        if let ChannelError::RetryAfter { wait_ms, .. } = error {
            let wait = Duration::from_millis(*wait_ms);
            self.live.refuse(Instant::now(), wait);
        }
    }

    /// Takes a turn for a live preview, which has to wait wherever a post would.
    pub(super) fn take_live_turn(
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

    /// Notes what Slack says about its rate, so that the next posts there keep to it.
    pub(super) fn learn(&self, chat: &str, error: &ChannelError) {
        if let ChannelError::RetryAfter { wait_ms, .. } = error {
            let (now, wait) = (Instant::now(), Duration::from_millis(*wait_ms));
            self.everywhere
                .refuse(chat, &self.channels.of(chat), now, wait);
        }
    }
}

/// Gives a message of ours another text. Its metadata with the marker stays.
pub(super) async fn update(
    api: &SlackApi,
    chat: &str,
    message_id: &str,
    part: &Part,
) -> Result<Delivered, ChannelError> {
    let arguments = update_arguments(chat, message_id, part);
    call_closed(api, UPDATE, chat, message_id, &arguments).await?;
    of_message(UPDATE, chat, message_id)
}

/// Makes a call for a message of ours; if its stream is still open, stops that and calls again.
async fn call_closed(
    api: &SlackApi,
    method: &'static str,
    chat: &str,
    message_id: &str,
    arguments: &[(&str, String)],
) -> Result<Granted, ChannelError> {
    match api.call(method, Token::Bot, arguments).await {
        Err(error) if stream::is_open(&error) => {
            stream::stop(api, chat, message_id).await?;
            api.call(method, Token::Bot, arguments).await
        }
        outcome => outcome,
    }
}

/// Deletes a message of the bot. One that is not there any more counts as deleted.
pub(super) async fn delete(
    api: &SlackApi,
    chat: &str,
    message_id: &str,
) -> Result<Delivered, ChannelError> {
    let arguments = [("channel", chat.to_owned()), ("ts", message_id.to_owned())];
    let deleted = call_closed(api, DELETE, chat, message_id, &arguments).await;
    match deleted {
        Ok(_) => {}
        Err(ChannelError::Rejected { reason, .. }) if reason == "message_not_found" => {}
        Err(error) => return Err(error),
    }
    of_message(DELETE, chat, message_id)
}

/// The arguments of `chat.update`. A part without blocks removes those that the message had.
fn update_arguments(chat: &str, message_id: &str, part: &Part) -> Vec<(&'static str, String)> {
    // Beside blocks the text is what notifications say; an edit notifies nobody.
    let text = part.text.chars().take(TEXT_MAX_CHARS).collect();
    let mut arguments = vec![
        ("channel", chat.to_owned()),
        ("ts", message_id.to_owned()),
        ("text", text),
        // As for posts; by default an update would turn addresses into links.
        ("parse", "none".to_owned()),
    ];
    let blocks = blocks_of(part);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_become_ts() {
        assert_eq!(ts_of(1_763_712_000_123), "1763712000.123000");
        assert_eq!(ts_of(-5), "0.000000");
    }
}
