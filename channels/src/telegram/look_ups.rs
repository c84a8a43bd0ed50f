//! Asks Telegram about people and chats.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use vocative_contract::channel::BoxFuture;
use vocative_contract::envelope::Place;
use vocative_contract::error::ChannelError;
use vocative_contract::handles::LookUps;

use crate::rate::Rests;

use super::api::{Api, Parameters};
use super::content::chat_title;
use super::outbound::chat_id;
use super::translate::chat_place;
use super::wire::Chat;

const GET_CHAT: &str = "getChat";

/// Asks as one bot. Bots have no method that reads a chat's history, so no post is read back.
#[derive(Debug)]
pub(super) struct TelegramLookUps {
    api: Arc<Api>,
    /// Look-ups that the platform refused.
    rests: Rests,
}

impl TelegramLookUps {
    pub(super) fn new(api: Arc<Api>) -> Self {
        Self {
            api,
            rests: Rests::default(),
        }
    }

    async fn chat(&self, id: &str) -> Result<Chat, ChannelError> {
        let operation = GET_CHAT;
        if let Some(left) = self.rests.left(operation, Instant::now()) {
            let wait_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
            return Err(ChannelError::RetryAfter { operation, wait_ms });
        }
        let mut parameters = Parameters::new();
        parameters.insert("chat_id".to_owned(), chat_id(id));
        let answer = self.api.call(operation, &parameters).await;
        answer
            .map_err(|failure| failure.into_error(operation))
            .inspect_err(|error| self.note_rest(error))
    }

    fn note_rest(&self, error: &ChannelError) {
        if let ChannelError::RetryAfter { wait_ms, .. } = error {
            let wait = Duration::from_millis(*wait_ms);
            self.rests.note(GET_CHAT, Instant::now(), wait);
        }
    }
}

impl LookUps for TelegramLookUps {
    fn person_name<'a>(
        &'a self,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, ChannelError>> {
        Box::pin(async move {
            let chat = id.strip_prefix("chat:").unwrap_or(id);
            match self.chat(chat).await {
                Ok(chat) => Ok(chat_title(&chat)),
                Err(ChannelError::ChatRefused { .. }) => Ok(None),
                Err(error) => Err(error),
            }
        })
    }

    fn chat_facts<'a>(&'a self, chat: &'a str) -> BoxFuture<'a, Result<Place, ChannelError>> {
        Box::pin(async move { Ok(chat_place(&self.chat(chat).await?)) })
    }
}
