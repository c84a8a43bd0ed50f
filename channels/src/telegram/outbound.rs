//! Sends posts, shows "typing", looks up names. Never decides and never retries.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::rate::{Everywhere, Pace, Paces, Rests};
use vocative_contract::channel::{BoxFuture, Outbound};
use vocative_contract::crash;
use vocative_contract::envelope::Place;
use vocative_contract::error::{ChannelError, Fallback};
use vocative_contract::live::{LiveForm, LivePost};
use vocative_contract::outbound::{Delivered, Operation, Part, PartFile, Post, ReadBack, Target};
use vocative_contract::people::People;
use vocative_contract::probe::{ProbeAnswer, Probed, Prober, Sequence};

use super::api::{Api, BotApiRefusal, CallFailure, Parameters};
use super::content::chat_title;
use super::numbers;
use super::render;
use super::translate::chat_place;
use super::wire::{Chat, SentMessage};

const EDIT: &str = "editMessageText";
const DELETE: &str = "deleteMessage";
const DRAFT: &str = "sendMessageDraft";
/// Asks about a message without changing it: the server fetches the message and judges by what it is, and
/// the bot never posts live locations. Source: tdlib/telegram-bot-api, `check_message`.
const PROBE: &str = "stopMessageLiveLocation";
/// The message could be edited by the bot: in the rooms that are asked about, only its own posts can.
const OURS: &str = "bad request: there is no live location in the message to edit";
/// The message is somebody else's, or a service message.
const NOT_OURS: &str = "bad request: message can't be edited";
/// The server knows no such message.
const NO_MESSAGE: &str = "bad request: message to edit not found";
/// The message has that very text.
const NOT_MODIFIED: &str = "message is not modified";
/// The message is gone.
const NOT_THERE: &str = "message to delete not found";

/// The General topic, which is addressed by naming no topic.
const GENERAL_TOPIC_ID: i64 = 1;

/// In a group the platform takes 20 posts a minute: 5 at once after a rest and 15 more in the minute
/// that follows never pass that. Source: the Bot FAQ.
const GROUP_BURST: u32 = 5;
const GROUP_EVERY_MS: u64 = 4_000;
/// In a private chat about one a second. Source: the Bot FAQ.
const PRIVATE_BURST: u32 = 2;
const PRIVATE_EVERY_MS: u64 = 1_000;
/// 30 posts a second in all, over whatever second. Source: the Bot FAQ.
const ALL_BURST: u32 = 10;
const ALL_EVERY_MS: u64 = 50;

/// Questions about messages go one a second in a chat, and five a second in all.
const PROBES_EVERY_MS: u64 = 1_000;
const ALL_PROBES_EVERY_MS: u64 = 200;
/// A `Date` header leaves out the milliseconds.
const DATE_RESOLUTION_MS: i64 = 1_000;

/// The outbound half of a Telegram channel.
#[derive(Debug)]
pub(super) struct TelegramOutbound {
    api: Arc<Api>,
    groups: Paces,
    privates: Paces,
    everywhere: Everywhere,
    /// Look-ups and signs that the platform refused.
    rests: Rests,
    probes: Paces,
    all_probes: Pace,
    /// Whether messages of the bot may be other people's, who had it write them.
    has_inline_mode: Arc<AtomicBool>,
}

impl TelegramOutbound {
    pub(super) fn new(api: Arc<Api>, has_inline_mode: Arc<AtomicBool>) -> Self {
        Self {
            api,
            groups: Paces::new(GROUP_BURST, GROUP_EVERY_MS),
            privates: Paces::new(PRIVATE_BURST, PRIVATE_EVERY_MS),
            everywhere: Everywhere::new(Pace::new(ALL_BURST, ALL_EVERY_MS)),
            rests: Rests::default(),
            probes: Paces::new(1, PROBES_EVERY_MS),
            all_probes: Pace::new(1, ALL_PROBES_EVERY_MS),
            has_inline_mode,
        }
    }

    fn pace_of(&self, chat: &str) -> Arc<Pace> {
        match is_group(chat) {
            true => self.groups.of(chat),
            false => self.privates.of(chat),
        }
    }

    fn take_or_wait(&self, chat: &str, now: Instant) -> Duration {
        self.everywhere.take_or_wait(&self.pace_of(chat), now)
    }

    /// What the platform says about its rate is kept to by the next posts there.
    fn learn(&self, chat: &str, error: &ChannelError, now: Instant) {
        if let ChannelError::RetryAfter { wait_ms, .. } = error {
            let wait = Duration::from_millis(*wait_ms);
            self.everywhere.refuse(chat, &self.pace_of(chat), now, wait);
        }
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

    /// Gives a message of ours another text; one that has it is as it should be.
    async fn edit(
        &self,
        chat: &str,
        message_id: &str,
        part: &Part,
    ) -> Result<Delivered, ChannelError> {
        let mut parameters = text_parameters(chat, part);
        parameters.insert("message_id".to_owned(), message_number(EDIT, message_id)?);
        let edited: Result<SentMessage, _> = self.api.call(EDIT, &parameters).await;
        let edited = edited.map_err(|failure| failure.into_error(EDIT));
        let sent_at_ms = match edited {
            Ok(edited) => edited.date.unwrap_or_default().saturating_mul(1_000),
            Err(ChannelError::Rejected { reason, .. }) if reason.contains(NOT_MODIFIED) => 0,
            Err(error) => return Err(error),
        };
        Ok(of_message(chat, message_id, sent_at_ms))
    }

    /// Takes a message of ours away; one that is gone is as it should be.
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

    /// Shows a preview. It takes nothing from the rate of posts and is left out where one would wait.
    async fn preview(&self, live: &LivePost, id: i64) -> Result<(), ChannelError> {
        let chat = &live.target.chat;
        let call = format!("{DRAFT} {chat}");
        let now = Instant::now();
        let rest = self.rests.left(&call, now).unwrap_or_default();
        let wait = rest.max(self.everywhere.wait(&self.pace_of(chat), now));
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
        let wait = self.take_or_wait(chat, Instant::now());
        if !wait.is_zero() {
            return Err(ChannelError::must_wait(EDIT, wait));
        }
        let edited = self.edit(chat, message_id, &live.part).await;
        edited
            .inspect_err(|error| self.learn(chat, error, Instant::now()))
            .map(drop)
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

    /// A sign takes from the same rate as an answer, so it is left out where a post would wait.
    fn may_show_working(&self, chat: &str, now: Instant) -> bool {
        let is_free = self.everywhere.wait(&self.pace_of(chat), now).is_zero();
        is_free && self.rests.left(&sign_of(chat), now).is_none()
    }

    /// A question that was refused for its rate says nothing of the pace of posts.
    fn rest_after(&self, chat: &str, error: &ChannelError) {
        if let ChannelError::RetryAfter { wait_ms, .. } = error {
            let wait = Duration::from_millis(*wait_ms);
            self.pace_of(chat).rest(Instant::now(), wait);
        }
    }

    async fn chat(&self, id: &str) -> Result<Chat, ChannelError> {
        let operation = "getChat";
        if let Some(left) = self.rests.left(operation, Instant::now()) {
            let wait_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
            return Err(ChannelError::RetryAfter { operation, wait_ms });
        }
        let mut parameters = Parameters::new();
        parameters.insert("chat_id".to_owned(), chat_id(id));
        let answer = self.api.call(operation, &parameters).await;
        answer
            .map_err(|failure| failure.into_error(operation))
            .inspect_err(|error| self.note_rest(operation, error))
    }

    fn note_rest(&self, call: &str, error: &ChannelError) {
        if let ChannelError::RetryAfter { wait_ms, .. } = error {
            let wait = Duration::from_millis(*wait_ms);
            self.rests.note(call, Instant::now(), wait);
        }
    }
}

impl Outbound for TelegramOutbound {
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
        self.take_or_wait(&target.chat, Instant::now())
    }

    fn deliver<'a>(&'a self, post: &'a Post) -> BoxFuture<'a, Result<Delivered, ChannelError>> {
        Box::pin(async move {
            let done = match &post.operation {
                Operation::Edit { message_id } => {
                    self.edit(&post.target.chat, message_id, &post.part).await
                }
                Operation::Delete { message_id } => {
                    self.delete(&post.target.chat, message_id).await
                }
                // The platform shows nothing to one person of a group alone.
                Operation::Post | Operation::Ephemeral { .. } => self.send(post).await,
                Operation::React { message_id } => {
                    let emoji = json!([{"type": "emoji", "emoji": post.part.text}]);
                    self.react(post, message_id, emoji).await
                }
                Operation::Unreact { message_id } => self.react(post, message_id, json!([])).await,
                Operation::Upload => match post.part.file.as_deref() {
                    Some(file) => self.send_document(post, file).await,
                    None => Err(ChannelError::unsupported(&post.operation)),
                },
            };
            done.inspect_err(|error| self.learn(&post.target.chat, error, Instant::now()))
        })
    }

    fn uploads(&self) -> bool {
        true
    }

    fn read_back<'a>(
        &'a self,
        _post: &'a Post,
        _since_ms: i64,
    ) -> BoxFuture<'a, Result<ReadBack, ChannelError>> {
        // Bots have no method that reads a chat's history.
        Box::pin(async { Ok(ReadBack::Unsupported) })
    }

    fn prober(&self) -> Option<&dyn Prober> {
        Some(self)
    }

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

impl Prober for TelegramOutbound {
    fn sequence(&self, chat: &str) -> Option<Sequence> {
        let is_only_ours = !self.has_inline_mode.load(Ordering::Relaxed);
        numbers::sequence(chat).filter(|_| is_only_ours)
    }

    fn wait_before_probe(&self, chat: &str) -> Duration {
        let now = Instant::now();
        let of_chat = self.probes.of(chat);
        // Where the platform wants no posts it wants no questions either.
        let resting = self.pace_of(chat).is_resting(now);
        let rest = self.pace_of(chat).wait(now);
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
                // It stopped a live location, which we never post.
                Ok(_) => Ok(Probed {
                    answer: ProbeAnswer::Unclear,
                    answered_by_ms: None,
                }),
                Err(failure) => match probed(&failure) {
                    Some(probed) => Ok(probed),
                    None => {
                        let error = failure.into_error(PROBE);
                        self.rest_after(chat, &error);
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

/// What the room shows, if the platform changed the text: it trims texts, and what else it does may
/// change. Entities that it adds by itself (links, commands) are no change.
fn shown(sent: SentMessage, part: &Part) -> Option<Box<Part>> {
    let text = sent.text.filter(|text| *text != part.text)?;
    Some(Box::new(Part::rendered(text, sent.entities, None)))
}

/// What may still be posts when it can't be a file.
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

/// Chat, text and entities.
fn text_parameters(chat: &str, part: &Part) -> Parameters {
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
    parameters
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

/// Chat and topic.
fn target_parameters(target: &Target) -> Parameters {
    let mut parameters = Parameters::new();
    parameters.insert("chat_id".to_owned(), chat_id(&target.chat));
    if let Some(topic) = number(target.topic.as_deref())
        && topic != GENERAL_TOPIC_ID
    {
        parameters.insert("message_thread_id".to_owned(), json!(topic));
    }
    parameters
}

fn of_message(chat: &str, message_id: &str, sent_at_ms: i64) -> Delivered {
    Delivered {
        chat: chat.to_owned(),
        message_id: message_id.to_owned(),
        sent_at_ms,
        shown: None,
    }
}

/// A message id as the platform counts.
fn message_number(operation: &'static str, id: &str) -> Result<Value, ChannelError> {
    let number = number(Some(id)).map(|id| json!(id));
    number.ok_or_else(|| ChannelError::Rejected {
        operation,
        reason: "the message's id is no number".to_owned(),
        fallback: Fallback::NewPost,
    })
}

/// What signs in a chat are called among the calls that rest.
fn sign_of(chat: &str) -> String {
    format!("sendChatAction {chat}")
}

/// Whether an id is a group's or a channel's: those are below zero.
fn is_group(chat: &str) -> bool {
    chat.starts_with('-')
}

/// A chat id as a number, or as it is (`@channelname`).
fn chat_id(id: &str) -> Value {
    number(Some(id)).map_or_else(|| json!(id), |id| json!(id))
}

fn number(id: Option<&str>) -> Option<i64> {
    id?.parse().ok()
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

    #[test]
    fn no_minute_has_more_posts_in_a_group_than_the_platform_takes() {
        let group = Paces::new(GROUP_BURST, GROUP_EVERY_MS).of("-1");
        let start = Instant::now();
        let mut went = Vec::new();
        // Somebody who always has something to say, after a rest and for five minutes.
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

    /// Somebody who always has something to say in a group, for so many minutes of a clock that is
    /// moved by hand; the platform takes so many posts a minute. When posts went, and when some were
    /// refused, in seconds.
    async fn talk(per_minute_max: usize, minutes: u64) -> (Vec<u64>, Vec<u64>) {
        // Another test may have installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let world = TelegramWorld::team();
        let server = TelegramServer::start(world, ([127, 0, 0, 1], 0).into(), WireLog::new())
            .await
            .unwrap();
        server.faults().limit_sends_per_minute(Some(per_minute_max));
        let token = server.token().into();
        let api = Api::new(&server.api_url(), token, HttpTimeouts::default());
        let outbound = TelegramOutbound::new(Arc::new(api), Arc::default());
        let group = Target {
            chat: TelegramWorld::SUPERGROUP.to_string(),
            ..target(None, None)
        };
        let post = post(group.clone(), Part::plain("hi"));
        let (start, mut seconds) = (Instant::now(), 0);
        let (mut went, mut refused) = (Vec::new(), Vec::new());
        while seconds < minutes * 60 {
            let now = start + Duration::from_secs(seconds);
            let wait = outbound.take_or_wait(&group.chat, now);
            if !wait.is_zero() {
                // The loopback platform's clock counts whole seconds.
                let step = wait.as_millis().div_ceil(1_000) as u64;
                server.advance_clock(i64::try_from(step).unwrap());
                seconds += step;
                continue;
            }
            match outbound.send(&post).await {
                Ok(_) => went.push(seconds),
                Err(error) => {
                    outbound.learn(&group.chat, &error, now);
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
        // Of the 960 that the platform would have taken.
        assert!(went.len() >= 600, "{} in two hours", went.len());
    }

    #[tokio::test]
    async fn a_sign_gives_way_to_answers() {
        let token = "1:x".to_owned().into();
        let api = Api::new("http://127.0.0.1:9", token, HttpTimeouts::default());
        let outbound = TelegramOutbound::new(Arc::new(api), Arc::default());
        let now = Instant::now();
        assert!(outbound.may_show_working("-1", now));
        let refused = ChannelError::RetryAfter {
            operation: "sendMessage",
            wait_ms: 30_000,
        };
        outbound.learn("-1", &refused, now);
        assert!(!outbound.may_show_working("-1", now));
        assert!(outbound.may_show_working("-2", now));
        assert!(outbound.may_show_working("-1", now + Duration::from_secs(31)));
        while outbound.take_or_wait("-2", now).is_zero() {}
        assert!(!outbound.may_show_working("-2", now));
    }

    #[tokio::test(start_paused = true)]
    async fn questions_about_messages_keep_a_pace_of_their_own() {
        let token = "1:x".to_owned().into();
        let api = Api::new("http://127.0.0.1:9", token, HttpTimeouts::default());
        let outbound = TelegramOutbound::new(Arc::new(api), Arc::default());
        let chats: Vec<String> = (1..=20_u32).map(|chat| chat.to_string()).collect();
        let mut asked = Vec::new();
        for _ in 0..300 {
            for chat in &chats {
                if outbound.wait_before_probe(chat).is_zero() {
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
            outbound.take_or_wait(&chats[0], Instant::now()),
            Duration::ZERO
        );
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
