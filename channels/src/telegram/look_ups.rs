//! Asks Telegram about people and chats.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio::time::Instant;
use vocative_contract::channel::BoxFuture;
use vocative_contract::envelope::Place;
use vocative_contract::error::ChannelError;
use vocative_contract::handles::LookUps;

use crate::rate::Rests;

use super::api::{Parameters, TelegramApi};
use super::content::chat_title;
use super::outbound::chat_id;
use super::translate::chat_place;
use super::wire::Chat;

const GET_CHAT: &str = "getChat";
const GET_CHAT_MEMBER: &str = "getChatMember";

/// Asks as one bot. Bots have no method that reads a chat's history, so no post is read back.
#[derive(Debug)]
pub(super) struct TelegramLookUps {
    api: Arc<TelegramApi>,
    /// The waits of look-ups that the platform refused.
    rests: Rests,
}

impl TelegramLookUps {
    pub(super) fn new(api: Arc<TelegramApi>) -> Self {
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

    /// Whether somebody is in a chat, by `getChatMember`. A person who has left, was removed or never was there is not.
    async fn member(&self, chat: &str, person: &str) -> Result<Option<bool>, ChannelError> {
        let operation = GET_CHAT_MEMBER;
        if let Some(left) = self.rests.left(operation, Instant::now()) {
            let wait_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
            return Err(ChannelError::RetryAfter { operation, wait_ms });
        }
        let Ok(user) = person.parse::<i64>() else {
            return Ok(Some(false));
        };
        let mut parameters = Parameters::new();
        parameters.insert("chat_id".to_owned(), chat_id(chat));
        parameters.insert("user_id".to_owned(), user.into());
        let answer = self
            .api
            .call::<LookedUpMember>(operation, &parameters)
            .await;
        match answer.map_err(|failure| failure.into_error(operation)) {
            Ok(member) => Ok(Some(is_in(&member))),
            Err(ChannelError::Rejected { .. }) => Ok(Some(false)),
            Err(error) => {
                if let ChannelError::RetryAfter { wait_ms, .. } = &error {
                    let wait = Duration::from_millis(*wait_ms);
                    self.rests.note(operation, Instant::now(), wait);
                }
                Err(error)
            }
        }
    }

    fn note_rest(&self, error: &ChannelError) {
        if let ChannelError::RetryAfter { wait_ms, .. } = error {
            let wait = Duration::from_millis(*wait_ms);
            self.rests.note(GET_CHAT, Instant::now(), wait);
        }
    }
}

/// A member of a chat, as far as it matters. *Source:* Bot API, `ChatMember`.
#[derive(Debug, Deserialize)]
struct LookedUpMember {
    status: String,
    /// Only for restricted members: whether they are in the chat.
    #[serde(default)]
    is_member: bool,
}

fn is_in(member: &LookedUpMember) -> bool {
    match member.status.as_str() {
        "creator" | "administrator" | "member" => true,
        "restricted" => member.is_member,
        _ => false,
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

    fn is_member<'a>(
        &'a self,
        chat: &'a str,
        person: &'a str,
    ) -> BoxFuture<'a, Result<Option<bool>, ChannelError>> {
        Box::pin(self.member(chat, person))
    }

    fn chat_facts<'a>(&'a self, chat: &'a str) -> BoxFuture<'a, Result<Place, ChannelError>> {
        Box::pin(async move { Ok(chat_place(&self.chat(chat).await?)) })
    }
}
