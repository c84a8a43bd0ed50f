//! Asks Telegram about single messages: whether a post of unknown outcome is there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use vocative_contract::channel::BoxFuture;
use vocative_contract::error::ChannelError;
use vocative_contract::probe::{ProbeAnswer, Probed, Prober, Sequence};

use crate::rate::{Pace, Paces};

use super::api::{BotApiRefusal, CallFailure, Parameters, TelegramApi};
use super::numbers;
use super::outbound::{TelegramRates, chat_id};

/// Asks about a message without changing it: the error depends on what the message is, and the bot never posts live
/// locations. Source: tdlib/telegram-bot-api, `check_message`.
const PROBE: &str = "stopMessageLiveLocation";
/// The bot could edit the message: in the rooms that are probed, it can edit only its own posts.
const OURS: &str = "bad request: there is no live location in the message to edit";
/// The message is another sender's, or a service message.
const NOT_OURS: &str = "bad request: message can't be edited";
/// The server knows no such message.
const NO_MESSAGE: &str = "bad request: message to edit not found";

/// Questions about messages go one a second in a chat, and five a second in all.
const PROBES_EVERY_MS: u64 = 1_000;
const ALL_PROBES_EVERY_MS: u64 = 200;
/// A `Date` header leaves out the milliseconds.
const DATE_RESOLUTION_MS: i64 = 1_000;

/// Asks as one bot.
#[derive(Debug)]
pub(super) struct TelegramProber {
    api: Arc<TelegramApi>,
    rates: Arc<TelegramRates>,
    probes: Paces,
    all_probes: Pace,
    /// Whether messages of the bot may have been written at other people's request (inline mode).
    has_inline_mode: Arc<AtomicBool>,
}

impl TelegramProber {
    pub(super) fn new(
        api: Arc<TelegramApi>,
        rates: Arc<TelegramRates>,
        has_inline_mode: Arc<AtomicBool>,
    ) -> Self {
        Self {
            api,
            rates,
            probes: Paces::new(1, PROBES_EVERY_MS),
            all_probes: Pace::new(1, ALL_PROBES_EVERY_MS),
            has_inline_mode,
        }
    }
}

impl Prober for TelegramProber {
    fn sequence(&self, chat: &str) -> Option<Sequence> {
        let is_only_ours = !self.has_inline_mode.load(Ordering::Relaxed);
        numbers::sequence(chat).filter(|_| is_only_ours)
    }

    fn wait_before_probe(&self, chat: &str) -> Duration {
        let now = Instant::now();
        let of_chat = self.probes.of(chat);
        // A chat that rests from posts is not probed either.
        let resting = self.rates.pace_of(chat).is_resting(now);
        let rest = self.rates.pace_of(chat).wait(now);
        let wait = of_chat.wait(now).max(self.all_probes.wait(now));
        let wait = if resting { wait.max(rest) } else { wait };
        if wait.is_zero() {
            let _ = of_chat.try_turn(now);
            let _ = self.all_probes.try_turn(now);
        }
        wait
    }

    fn probe<'a>(
        &'a self,
        chat: &'a str,
        number: i64,
    ) -> BoxFuture<'a, Result<Probed, ChannelError>> {
        Box::pin(async move {
            let mut parameters = Parameters::new();
            parameters.insert("chat_id".to_owned(), chat_id(chat));
            parameters.insert("message_id".to_owned(), json!(number));
            match self.api.call_raw(PROBE, &parameters).await {
                // The call stopped a live location, which we never post.
                Ok(_) => Ok(Probed {
                    answer: ProbeAnswer::Unclear,
                    answered_by_ms: None,
                }),
                Err(failure) => match probed(&failure) {
                    Some(probed) => Ok(probed),
                    None => {
                        let error = failure.into_error(PROBE);
                        self.rates.rest_after(chat, &error);
                        Err(error)
                    }
                },
            }
        })
    }
}

/// What a refusal says of the message, if it is one of those that do.
fn probed(failure: &CallFailure) -> Option<Probed> {
    let CallFailure::Refused(BotApiRefusal {
        code: 400,
        description,
        date_ms,
        ..
    }) = failure
    else {
        return None;
    };
    let answer = match description.to_ascii_lowercase().as_str() {
        OURS => ProbeAnswer::Ours,
        NOT_OURS => ProbeAnswer::NotOurs,
        NO_MESSAGE => ProbeAnswer::NotThere,
        _ => return None,
    };
    Some(Probed {
        answer,
        answered_by_ms: date_ms.map(|date_ms| date_ms.saturating_add(DATE_RESOLUTION_MS)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::HttpTimeouts;

    #[tokio::test(start_paused = true)]
    async fn questions_about_messages_keep_a_pace_of_their_own() {
        let token = "1:x".to_owned().into();
        let api = TelegramApi::new("http://127.0.0.1:9", token, HttpTimeouts::default());
        let rates = Arc::new(TelegramRates::new());
        let prober = TelegramProber::new(Arc::new(api), Arc::clone(&rates), Arc::default());
        let chats: Vec<String> = (1..=20_u32).map(|chat| chat.to_string()).collect();
        let mut asked = Vec::new();
        for _ in 0..300 {
            for chat in &chats {
                if prober.wait_before_probe(chat).is_zero() {
                    asked.push((chat, Instant::now()));
                }
            }
            tokio::time::advance(Duration::from_millis(10)).await;
        }
        assert_eq!(asked.len(), 15, "five a second in all");
        let of_first = asked.iter().filter(|(chat, _)| *chat == &chats[0]);
        let of_first: Vec<Instant> = of_first.map(|(_, at)| *at).collect();
        let second = Duration::from_secs(1);
        assert!(of_first.windows(2).all(|two| two[1] - two[0] >= second));
        assert_eq!(
            rates.take_or_wait(&chats[0], Instant::now()),
            Duration::ZERO
        );
    }
}
