//! Posts to Telegram.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use vocative_contract::channel::BoxFuture;
use vocative_contract::crash;
use vocative_contract::error::{ChannelError, Fallback};
use vocative_contract::handles::Poster;
use vocative_contract::outbound::{Delivered, Operation, Part, PartFile, Post, Target};

use super::api::{Parameters, TelegramApi};
use super::outbound::{
    TelegramRates, chat_id, edit, message_number, number, of_message, target_parameters,
    text_parameters,
};
use super::wire::SentMessage;

const DELETE: &str = "deleteMessage";
pub(super) const ANSWER: &str = "answerCallbackQuery";
/// The longest answer to a press. *Source:* Bot API, `answerCallbackQuery`.
const ANSWER_MAX_CHARS: usize = 200;
/// Telegram's error where the press was answered already, or is too old.
const TOO_OLD: &str = "query is too old";
/// Telegram's error where the message to delete is gone.
const NOT_THERE: &str = "message to delete not found";

/// Posts as one bot.
#[derive(Debug)]
pub(super) struct TelegramPoster {
    api: Arc<TelegramApi>,
    rates: Arc<TelegramRates>,
}

impl TelegramPoster {
    pub(super) fn new(api: Arc<TelegramApi>, rates: Arc<TelegramRates>) -> Self {
        Self { api, rates }
    }

    /// Sets our reactions to a message: one at most, so setting none takes ours away.
    async fn react(
        &self,
        post: &Post,
        message_id: &str,
        reactions: Value,
    ) -> Result<Delivered, ChannelError> {
        let method = "setMessageReaction";
        let mut parameters = Parameters::new();
        parameters.insert("chat_id".to_owned(), chat_id(&post.target.chat));
        parameters.insert("message_id".to_owned(), json!(number(Some(message_id))));
        parameters.insert("reaction".to_owned(), reactions);
        let done = self.api.call_raw(method, &parameters).await;
        done.map_err(|failure| failure.into_error(method))?;
        Ok(Delivered {
            chat: post.target.chat.clone(),
            message_id: message_id.to_owned(),
            sent_at_ms: 0,
            shown: None,
        })
    }

    /// Answers a press. The platform forgets presses after minutes; after that nobody waits for an answer, so it counts
    /// as given.
    async fn answer(&self, post: &Post, id: &str) -> Result<Delivered, ChannelError> {
        let done = of_message(&post.target.chat, "", 0);
        let answered = self
            .api
            .call_raw(ANSWER, &answer_parameters(post, id))
            .await;
        match answered.map_err(|failure| failure.into_error(ANSWER)) {
            Ok(_) => Ok(done),
            Err(ChannelError::Rejected { reason, .. }) if reason.contains(TOO_OLD) => Ok(done),
            Err(error) => Err(error),
        }
    }

    async fn send(&self, post: &Post) -> Result<Delivered, ChannelError> {
        let sent: SentMessage = self
            .api
            .call("sendMessage", &message_parameters(post))
            .await
            .map_err(|failure| failure.into_error("sendMessage"))?;
        crash::point("send.response-read");
        Ok(Delivered {
            chat: sent.chat.id.to_string(),
            message_id: sent.message_id.to_string(),
            sent_at_ms: sent.date.unwrap_or_default().saturating_mul(1_000),
            shown: shown(sent, &post.part),
        })
    }

    /// Deletes a message of the bot. One that is not there any more counts as deleted.
    async fn delete(&self, chat: &str, message_id: &str) -> Result<Delivered, ChannelError> {
        let mut parameters = Parameters::new();
        parameters.insert("chat_id".to_owned(), chat_id(chat));
        parameters.insert("message_id".to_owned(), message_number(DELETE, message_id)?);
        let deleted: Result<bool, _> = self.api.call(DELETE, &parameters).await;
        match deleted.map_err(|failure| failure.into_error(DELETE)) {
            Ok(_) => Ok(of_message(chat, message_id, 0)),
            Err(ChannelError::Rejected { reason, .. }) if reason.contains(NOT_THERE) => {
                Ok(of_message(chat, message_id, 0))
            }
            Err(error) => Err(error),
        }
    }

    /// Sends a file. Where a chat takes messages and no files, the file is refused, not the chat.
    async fn send_document(&self, post: &Post, file: &PartFile) -> Result<Delivered, ChannelError> {
        let operation = "sendDocument";
        let mut parameters = message_parameters(post);
        parameters.remove("link_preview_options");
        if let Some(text) = parameters.remove("text").filter(|text| *text != json!("")) {
            parameters.insert("caption".to_owned(), text);
        }
        let sent: SentMessage = self
            .api
            .call_with_file(operation, &parameters, "document", file)
            .await
            .map_err(|failure| file_refused(failure.into_error(operation)))?;
        crash::point("send.response-read");
        Ok(Delivered {
            chat: sent.chat.id.to_string(),
            message_id: sent.message_id.to_string(),
            sent_at_ms: sent.date.unwrap_or_default().saturating_mul(1_000),
            shown: None,
        })
    }
}

impl Poster for TelegramPoster {
    fn wait_before(&self, target: &Target) -> Duration {
        self.rates.take_or_wait(&target.chat, Instant::now())
    }

    fn deliver<'a>(&'a self, post: &'a Post) -> BoxFuture<'a, Result<Delivered, ChannelError>> {
        Box::pin(async move {
            let done = match &post.operation {
                Operation::Edit { message_id } => {
                    edit(&self.api, &post.target.chat, message_id, &post.part).await
                }
                Operation::Delete { message_id } => {
                    self.delete(&post.target.chat, message_id).await
                }
                // Telegram can't show a message to one person of a group alone.
                Operation::Post | Operation::Ephemeral { .. } => self.send(post).await,
                Operation::React { message_id } => {
                    let emoji = json!([{"type": "emoji", "emoji": post.part.text}]);
                    self.react(post, message_id, emoji).await
                }
                Operation::Unreact { message_id } => self.react(post, message_id, json!([])).await,
                // Telegram has no rate limit for answers, and a refused one says nothing of the chat.
                Operation::Answer { interaction, .. } => {
                    return self.answer(post, interaction).await;
                }
                Operation::Upload => match post.part.file.as_deref() {
                    Some(file) => self.send_document(post, file).await,
                    None => Err(ChannelError::unsupported(&post.operation)),
                },
            };
            done.inspect_err(|error| self.rates.learn(&post.target.chat, error, Instant::now()))
        })
    }
}

/// The parameters of `answerCallbackQuery`. The text is shown in a box that the person has to close.
fn answer_parameters(post: &Post, id: &str) -> Parameters {
    let mut parameters = Parameters::new();
    parameters.insert("callback_query_id".to_owned(), json!(id));
    let text = &post.part.text;
    if !text.is_empty() {
        let is_whole = text.chars().count() <= ANSWER_MAX_CHARS;
        let text = match is_whole {
            true => text.clone(),
            false => text
                .chars()
                .take(ANSWER_MAX_CHARS - 1)
                .chain(['…'])
                .collect(),
        };
        parameters.insert("text".to_owned(), json!(text));
        parameters.insert("show_alert".to_owned(), json!(true));
    }
    parameters
}

/// What the room shows, if the platform changed the text: it trims texts and may do more in the future. Entities that
/// it adds by itself (links, commands) are no change.
fn shown(sent: SentMessage, part: &Part) -> Option<Box<Part>> {
    let text = sent.text.filter(|text| *text != part.text)?;
    Some(Box::new(Part::rendered(text, sent.entities, None)))
}

/// What a refusal of a file means: the file may still be sent as posts.
fn file_refused(error: ChannelError) -> ChannelError {
    match error {
        ChannelError::ChatRefused { operation, reason }
            if reason.to_ascii_lowercase().contains("document") =>
        {
            ChannelError::Rejected {
                operation,
                reason,
                fallback: Fallback::Plain,
            }
        }
        ChannelError::Rejected {
            operation,
            reason,
            fallback: Fallback::None,
        } => ChannelError::Rejected {
            operation,
            reason,
            fallback: Fallback::Plain,
        },
        other => other,
    }
}

/// The parameters of `sendMessage`.
fn message_parameters(post: &Post) -> Parameters {
    let mut parameters = target_parameters(&post.target);
    parameters.extend(text_parameters(&post.target.chat, &post.part));
    if let Some(message_id) = number(post.target.reply_to.as_deref()) {
        // People delete messages while an answer is made; it is still worth sending.
        parameters.insert(
            "reply_parameters".to_owned(),
            json!({"message_id": message_id, "allow_sending_without_reply": true}),
        );
    }
    parameters
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use vocative_sandbox::telegram::{TelegramServer, TelegramWorld};
    use vocative_sandbox::wire::WireLog;

    use super::*;
    use crate::http::HttpTimeouts;

    fn post(target: Target, part: Part) -> Post {
        Post {
            marker: "m".to_owned(),
            target,
            operation: Operation::Post,
            part,
        }
    }

    fn target(topic: Option<&str>, reply_to: Option<&str>) -> Target {
        Target {
            chat: "-1001234567890".to_owned(),
            thread: None,
            topic: topic.map(str::to_owned),
            reply_to: reply_to.map(str::to_owned),
        }
    }

    /// A sender who posts as fast as allowed in a group, for `minutes` of a clock that is moved by hand; the platform
    /// takes `per_minute_max` posts a minute. Returns when posts went, and when some were refused, in seconds.
    async fn talk(per_minute_max: usize, minutes: u64) -> (Vec<u64>, Vec<u64>) {
        // Another test may have installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let world = TelegramWorld::team();
        let server = TelegramServer::start(world, ([127, 0, 0, 1], 0).into(), WireLog::new())
            .await
            .unwrap();
        server.faults().limit_sends_per_minute(Some(per_minute_max));
        let token = server.token().into();
        let api = TelegramApi::new(&server.api_url(), token, HttpTimeouts::default());
        let poster = TelegramPoster::new(Arc::new(api), Arc::new(TelegramRates::new()));
        let group = Target {
            chat: TelegramWorld::SUPERGROUP.to_string(),
            ..target(None, None)
        };
        let post = post(group.clone(), Part::plain("hi"));
        let (start, mut seconds) = (Instant::now(), 0);
        let (mut went, mut refused) = (Vec::new(), Vec::new());
        while seconds < minutes * 60 {
            let now = start + Duration::from_secs(seconds);
            let wait = poster.rates.take_or_wait(&group.chat, now);
            if !wait.is_zero() {
                // The loopback platform's clock counts whole seconds.
                let step = wait.as_millis().div_ceil(1_000) as u64;
                server.advance_clock(i64::try_from(step).unwrap());
                seconds += step;
                continue;
            }
            match poster.send(&post).await {
                Ok(_) => went.push(seconds),
                Err(error) => {
                    poster.rates.learn(&group.chat, &error, now);
                    refused.push(seconds);
                }
            }
        }
        (went, refused)
    }

    #[tokio::test]
    async fn the_usual_limit_is_never_met_and_a_lower_one_is_learnt() {
        let (went, refused) = talk(20, 60).await;
        assert_eq!(refused, [0; 0]);
        assert!(went.len() >= 900, "{} in an hour", went.len());

        let (went, refused) = talk(8, 120).await;
        let later = refused.iter().filter(|at| **at >= 600).count();
        assert!(
            !refused.is_empty() && refused.len() - later <= 8,
            "{refused:?}"
        );
        // A probe in ten minutes.
        assert!(later <= 14, "{refused:?}");
        // Of the 960 posts that the platform would have taken.
        assert!(went.len() >= 600, "{} in two hours", went.len());
    }

    #[test]
    fn a_post_names_only_what_it_needs() {
        let plain = post(target(None, None), Part::plain("hi"));
        assert_eq!(
            Value::Object(message_parameters(&plain)),
            json!({"chat_id": -1_001_234_567_890_i64, "text": "hi", "link_preview_options": {"is_disabled": true}})
        );
        let entities = json!([{"type": "bold", "offset": 0, "length": 2}]);
        let part = Part {
            entities: Some(entities.clone()),
            ..Part::plain("hi")
        };
        let full = post(target(Some("163"), Some("187")), part);
        assert_eq!(
            Value::Object(message_parameters(&full)),
            json!({
                "chat_id": -1_001_234_567_890_i64, "message_thread_id": 163, "text": "hi",
                "entities": entities, "link_preview_options": {"is_disabled": true},
                "reply_parameters": {"message_id": 187, "allow_sending_without_reply": true},
            })
        );
    }

    #[test]
    fn the_general_topic_and_unreadable_ids_are_left_out() {
        let part = Part {
            entities: Some(Value::Null),
            ..Part::plain("hi")
        };
        let odd = message_parameters(&post(target(Some("1"), Some("x")), part));
        let mut names: Vec<&str> = odd.keys().map(String::as_str).collect();
        // Whether a map keeps its order depends on which crates are built together.
        names.sort_unstable();
        assert_eq!(names, ["chat_id", "link_preview_options", "text"]);
    }
}
