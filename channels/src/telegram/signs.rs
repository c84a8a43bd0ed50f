//! Shows in Telegram that a run is working, and an answer while it is written.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use vocative_contract::channel::BoxFuture;
use vocative_contract::error::ChannelError;
use vocative_contract::handles::Signs;
use vocative_contract::live::{LiveForm, LivePost};
use vocative_contract::outbound::{Operation, Target};

use crate::rate::Rests;

use super::api::TelegramApi;
use super::outbound::{EDIT, TelegramRates, edit, target_parameters, text_parameters};

const DRAFT: &str = "sendMessageDraft";

/// Shows progress as one bot.
#[derive(Debug)]
pub(super) struct TelegramSigns {
    api: Arc<TelegramApi>,
    rates: Arc<TelegramRates>,
    /// The waits of signs that the platform refused.
    rests: Rests,
}

impl TelegramSigns {
    pub(super) fn new(api: Arc<TelegramApi>, rates: Arc<TelegramRates>) -> Self {
        Self {
            api,
            rates,
            rests: Rests::default(),
        }
    }

    /// Shows a preview. It does not count towards the rate of posts, and is left out where a post would have to wait.
    async fn preview(&self, live: &LivePost, id: i64) -> Result<(), ChannelError> {
        let chat = &live.target.chat;
        let call = format!("{DRAFT} {chat}");
        let now = Instant::now();
        let rest = self.rests.left(&call, now).unwrap_or_default();
        let wait = rest.max(self.rates.everywhere.wait(&self.rates.pace_of(chat), now));
        if !wait.is_zero() {
            return Err(ChannelError::must_wait(DRAFT, wait));
        }
        let mut parameters = target_parameters(&live.target);
        parameters.extend(text_parameters(chat, &live.part));
        parameters.remove("link_preview_options");
        parameters.insert("draft_id".to_owned(), json!(id));
        let shown: Result<bool, _> = self.api.call(DRAFT, &parameters).await;
        let shown = shown.map_err(|failure| failure.into_error(DRAFT));
        shown
            .inspect_err(|error| self.note_rest(&call, error))
            .map(drop)
    }

    /// Edits a post whose text is being written. It counts like a post.
    async fn edit_live(&self, live: &LivePost, message_id: &str) -> Result<(), ChannelError> {
        let chat = &live.target.chat;
        let wait = self.rates.take_or_wait(chat, Instant::now());
        if !wait.is_zero() {
            return Err(ChannelError::must_wait(EDIT, wait));
        }
        let edited = edit(&self.api, chat, message_id, &live.part).await;
        edited
            .inspect_err(|error| self.rates.learn(chat, error, Instant::now()))
            .map(drop)
    }

    /// Whether a sign may be shown now: it counts towards the same rate as an answer, so it is left out where a post
    /// would have to wait.
    fn may_show_working(&self, chat: &str, now: Instant) -> bool {
        let is_free = self
            .rates
            .everywhere
            .wait(&self.rates.pace_of(chat), now)
            .is_zero();
        is_free && self.rests.left(&sign_of(chat), now).is_none()
    }

    fn note_rest(&self, call: &str, error: &ChannelError) {
        if let ChannelError::RetryAfter { wait_ms, .. } = error {
            let wait = Duration::from_millis(*wait_ms);
            self.rests.note(call, Instant::now(), wait);
        }
    }
}

impl Signs for TelegramSigns {
    fn show_working<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if !self.may_show_working(&target.chat, Instant::now()) {
                return;
            }
            let mut parameters = target_parameters(target);
            parameters.insert("action".to_owned(), json!("typing"));
            if let Err(failure) = self.api.call_raw("sendChatAction", &parameters).await {
                let error = failure.into_error("sendChatAction");
                self.note_rest(&sign_of(&target.chat), &error);
                let reason = error.reason();
                tracing::debug!(reason, "The typing sign was not shown");
            }
        })
    }

    fn show_live<'a>(&'a self, live: &'a LivePost) -> BoxFuture<'a, Result<(), ChannelError>> {
        Box::pin(async move {
            match &live.form {
                LiveForm::Preview { id } => self.preview(live, *id).await,
                LiveForm::Post { message_id } => self.edit_live(live, message_id).await,
                LiveForm::Stream { .. } => Err(ChannelError::unsupported(&Operation::Post)),
            }
        })
    }
}

/// The name under which a chat's signs rest.
fn sign_of(chat: &str) -> String {
    format!("sendChatAction {chat}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::HttpTimeouts;

    #[tokio::test]
    async fn a_sign_gives_way_to_answers() {
        let token = "1:x".to_owned().into();
        let api = TelegramApi::new("http://127.0.0.1:9", token, HttpTimeouts::default());
        let signs = TelegramSigns::new(Arc::new(api), Arc::new(TelegramRates::new()));
        let now = Instant::now();
        assert!(signs.may_show_working("-1", now));
        let refused = ChannelError::RetryAfter {
            operation: "sendMessage",
            wait_ms: 30_000,
        };
        signs.rates.learn("-1", &refused, now);
        assert!(!signs.may_show_working("-1", now));
        assert!(signs.may_show_working("-2", now));
        assert!(signs.may_show_working("-1", now + Duration::from_secs(31)));
        while signs.rates.take_or_wait("-2", now).is_zero() {}
        assert!(!signs.may_show_working("-2", now));
    }
}
