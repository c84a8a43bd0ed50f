//! Models of OpenAI's and Anthropic's wire forms over HTTP, with our own clients.
//!
//! Answers are streamed if there is a listener. An answer without a stream is read by the same code, so both give the
//! same answer. If a provider refuses a part of a request's form, the client learns to leave it out (`habits`).
//!
//! Reading order: this page, `asking` (the parts of a request), `replay` (earlier answers), then the wires:
//! `responses`, `chat`, `messages`; `reader` over all three, `draft` (the answer so far), `thoughts`, `events` and
//! `rim` (HTTP).

mod asking;
mod caching;
mod chat;
mod draft;
mod events;
mod habits;
mod halves;
mod messages;
mod reader;
mod replay;
mod responses;
mod rim;
mod thoughts;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use reqwest::{Client, Response};
use serde_json::Value;
use tokio::time::Instant;

use self::asking::ProviderRequest;
use self::draft::{Draft, ReportedUsage, garbled};
use self::events::{SseReader, Unreadable};
use self::habits::{Habits, RefusedRequest};
use self::reader::{ProviderAnswer, ProviderReader, Reason, StreamResult};
use self::replay::ReplayOrigin;
pub(super) use self::rim::ANTHROPIC_VERSION;
use self::rim::{BodyPiece, HttpReply, Patience, Rim, piece, whole};
use self::thoughts::Aloud;
pub(super) use self::thoughts::visible_of;
use super::base_url::{Address, Wire};
use super::failure::{error_in, of_answer, refuses_streams};
use super::tool::settled;
use super::{
    Answer, BuildError, Effort, Listener, Model, ModelError, ModelSettings, Provider, Request,
    ToolChoice,
};
use vocative_core::prompting::{ClassEstimate, TokenCounter};
use vocative_core::run::Usage;

/// If this many answers in a row are no stream although one was asked for, the provider counts as one that does not
/// stream. A single one may be a page of a gateway.
const UNSTREAMED_MAX: u32 = 2;

/// How long a stream may be silent; before its first event, the model's whole `timeout_s`.
const GAP_MAX: Duration = Duration::from_secs(60);

/// The most bytes of text for each allowed token. A token has four bytes on average; a longer text does not come from a
/// model that keeps to its limit.
const TEXT_BYTES_PER_TOKEN: usize = 64;
const TEXT_MIN_BYTES: usize = 64 << 10;
const TEXT_MAX_BYTES: usize = 4 << 20;

/// If an answer is cut before any text, it is asked for again with this many times the tokens, and at least
/// [`RAISED_MIN_TOKENS`]: reasoning models may use thousands of tokens before their first word.
const RAISED_TIMES: u32 = 4;
const RAISED_MIN_TOKENS: u32 = 16_384;

/// How often the form of one request may be changed after refusals.
const ADAPTIONS_MAX: usize = 4;

/// Models that are known to write their thoughts into the text, without an opening tag.
const THINK_ALOUD: [&str; 7] = [
    "-r1",
    "deepseek-r",
    "qwq",
    "thinking",
    "reasoning",
    "magistral",
    "nemotron",
];

/// A model of a provider over HTTP.
pub(super) struct Remote {
    name: String,
    provider: Provider,
    model: String,
    rim: Rim,
    temperature: Option<f64>,
    effort: Option<Effort>,
    timeout_ms: u64,
    max_output_tokens: u32,
    context_limit: Option<u64>,
    /// The size of its context that was learnt, in tokens; `usize::MAX` = nothing was learnt.
    learnt_limit: AtomicUsize,
    habits: Mutex<Habits>,
    /// Whether its text may contain thoughts.
    may_think_aloud: bool,
    /// Whether thoughts without an opening tag are expected.
    is_headless: AtomicBool,
    /// Whether streams are configured, and the provider has not refused them.
    streams: AtomicBool,
    /// Successful answers in a row that were no stream although one was asked for.
    unstreamed: AtomicU32,
}

impl Remote {
    pub(super) fn new(
        settings: &ModelSettings,
        address: &Address,
        http: Client,
    ) -> Result<Self, BuildError> {
        let provider = settings.provider;
        if settings.api_key.is_none() && settings.base_url.is_none() {
            let provider = provider.name();
            return Err(BuildError::NoKey { provider });
        }
        let lower = settings.model.to_lowercase();
        let may_think_aloud = address.wire == Wire::Chat && !address.is_openai;
        let thinks = THINK_ALOUD.iter().any(|name| lower.contains(name));
        Ok(Self {
            name: format!("{}/{}", provider.name(), settings.model),
            provider,
            model: settings.model.clone(),
            rim: Rim {
                http,
                url: address.url(address.wire.endpoint()),
                wire: address.wire,
                key: settings.api_key.clone(),
            },
            temperature: settings.temperature,
            effort: settings.reasoning_effort,
            timeout_ms: settings.timeout_ms,
            max_output_tokens: settings.max_output_tokens,
            context_limit: settings.context_limit.map(|limit| limit as u64),
            learnt_limit: AtomicUsize::new(usize::MAX),
            habits: Mutex::new(Habits::of(settings, address.wire, address.is_openai)),
            may_think_aloud,
            is_headless: AtomicBool::new(thinks),
            streams: AtomicBool::new(settings.stream),
            unstreamed: AtomicU32::new(0),
        })
    }

    /// Makes the request; once more with a higher limit if the answer was cut before any text.
    async fn ask(&self, request: &Request<'_>) -> Result<Answer, ModelError> {
        let limit = request.max_output_tokens.unwrap_or(self.max_output_tokens);
        let outcome = self.ask_within(request, limit).await;
        if outcome != Err(ModelError::Truncated) {
            return outcome;
        }
        let raised = self.raised(limit);
        if raised <= limit {
            return outcome;
        }
        tracing::warn!(
            model = self.name,
            limit,
            raised,
            "the answer reached the token limit before any text; asking again with a higher one"
        );
        if let Some(listener) = request.listener {
            listener.restart();
        }
        match self.ask_within(request, raised).await {
            // The model does not accept a higher limit.
            Err(ModelError::Refused { .. } | ModelError::ContextTooLong { .. }) => outcome,
            again => again,
        }
    }

    /// A higher limit, at most half of the model's context.
    fn raised(&self, limit: u32) -> u32 {
        let raised = limit.saturating_mul(RAISED_TIMES).max(RAISED_MIN_TOKENS);
        match self.context_limit {
            Some(context) => raised.min(u32::try_from(context / 2).unwrap_or(u32::MAX)),
            None => raised,
        }
    }

    async fn ask_within(&self, request: &Request<'_>, limit: u32) -> Result<Answer, ModelError> {
        let Some(listener) = request.listener else {
            return self.ask_at_once(request, limit).await;
        };
        if self.streams.load(Ordering::Relaxed)
            && let Some(said) = self.listen(request, limit, listener).await?
        {
            return self.answer(said, request);
        }
        let answer = self.ask_at_once(request, limit).await?;
        if !answer.text.is_empty() {
            listener.text(&answer.text);
        }
        Ok(answer)
    }

    /// Makes the request without a stream.
    async fn ask_at_once(&self, request: &Request<'_>, limit: u32) -> Result<Answer, ModelError> {
        let patience = Patience::of(self.timeout_ms);
        let posted = self.post(request, limit, false, patience).await?;
        let Posted::Answered(response) = posted else {
            return Err(malformed("it is no answer"));
        };
        let body = whole(response, patience).await?;
        let said = self.read_whole(&body, self.reader(limit))?;
        self.answer(said, request)
    }

    /// Makes the request with a stream, and passes its text to the listener. `None`: the request must be made without a
    /// stream.
    async fn listen(
        &self,
        request: &Request<'_>,
        limit: u32,
        listener: &dyn Listener,
    ) -> Result<Option<ProviderAnswer>, ModelError> {
        let patience = Patience::of(self.timeout_ms);
        let posted = self.post(request, limit, true, patience).await?;
        let Posted::Answered(response) = posted else {
            self.note_no_streams();
            return Ok(None);
        };
        let mut reader = self.reader(limit);
        let came = self.read_stream(response, &mut reader, listener).await;
        if let Ok(Came::Document(body)) = &came {
            return self.read_document(body, listener);
        }
        reader.draft.close();
        reader.draft.tell(listener);
        match (reader.conclude(), came) {
            (StreamResult::Said(said), _) => {
                self.unstreamed.store(0, Ordering::Relaxed);
                Ok(Some(said))
            }
            (StreamResult::Failed(cause), _)
            | (StreamResult::Broken | StreamResult::NoStream, Err(cause)) => Err(cause),
            (StreamResult::LostCalls, _) => {
                tracing::warn!(
                    model = self.name,
                    "the stream lost its tool calls; asking again without one"
                );
                listener.restart();
                Ok(None)
            }
            (StreamResult::NoStream, Ok(_)) => {
                self.doubt_streams();
                Ok(None)
            }
            (StreamResult::Garbled, _) => {
                tracing::warn!(
                    model = self.name,
                    "an event of the stream is not JSON; asking again without one"
                );
                self.doubt_streams();
                listener.restart();
                Ok(None)
            }
            (StreamResult::Broken, Ok(_)) => Err(ModelError::Unavailable {
                cause: "the stream ended in the middle of the answer".to_owned(),
            }),
        }
    }

    /// Makes the request, and changes its form if the provider refuses it.
    async fn post(
        &self,
        request: &Request<'_>,
        limit: u32,
        is_streamed: bool,
        patience: Patience,
    ) -> Result<Posted, ModelError> {
        let mut habits = *self.lock_habits();
        for _ in 0..=ADAPTIONS_MAX {
            let asking = ProviderRequest {
                request,
                origin: self.origin(),
                max_output_tokens: limit,
                temperature: self.temperature,
                effort: self.effort,
                habits,
                is_streamed,
            };
            let body = match self.rim.wire {
                Wire::Responses => responses::request(&asking),
                Wire::Chat => chat::request(&asking),
                Wire::Messages => messages::request(&asking),
            };
            let failed = match self.rim.post(&body, patience).await? {
                HttpReply::Success(response) => return Ok(Posted::Answered(response)),
                HttpReply::Failure(failed) => failed,
            };
            if is_streamed && refuses_streams(failed.status, &failed.body) {
                return Ok(Posted::RefusesStreams);
            }
            let cause = failed.cause();
            let error: Value = serde_json::from_str(&failed.body).unwrap_or_default();
            let refused = RefusedRequest {
                body: &body,
                has_replayed: asking.replays(),
                has_wanted_tool: asking.request.tool_choice == ToolChoice::Wanted
                    && asking.forced_tool().is_some(),
                error: error_in(&error),
            };
            match habits.after(&refused) {
                Some(next) if matches!(cause, ModelError::Refused { .. }) => {
                    self.learn(habits, next);
                    habits = next;
                }
                _ => return Err(cause),
            }
        }
        Err(ModelError::Refused {
            reason: "however it is asked".to_owned(),
        })
    }

    fn lock_habits(&self) -> std::sync::MutexGuard<'_, Habits> {
        self.habits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn learn(&self, before: Habits, next: Habits) {
        let setting = if next.is_neutral != before.is_neutral {
            tracing::warn!(
                model = self.name,
                "the provider does not take its earlier thoughts back; asking again without them"
            );
            return;
        } else if next.no_temperature != before.no_temperature {
            "temperature"
        } else if next.cache != before.cache {
            "what is said to its cache"
        } else if next.effort != before.effort {
            "reasoning_effort"
        } else {
            "another optional parameter"
        };
        tracing::warn!(
            model = self.name,
            setting,
            "the provider refuses a setting as it is sent; it is asked otherwise from now on"
        );
        *self.lock_habits() = Habits {
            is_neutral: false,
            ..next
        };
    }

    fn origin(&self) -> ReplayOrigin<'_> {
        ReplayOrigin {
            provider: self.provider,
            wire: self.rim.wire,
            model: &self.model,
        }
    }

    /// Uses no streams for this model from now on.
    fn note_no_streams(&self) {
        if self.streams.swap(false, Ordering::Relaxed) {
            tracing::warn!(
                model = self.name,
                "the provider does not stream; it is asked without from now on (`stream = false` \
                 spares the first request)"
            );
        }
    }

    /// Counts an answer that was no stream. A single one may be a page of a server between here and the provider.
    fn doubt_streams(&self) {
        let before = self.unstreamed.fetch_add(1, Ordering::Relaxed);
        if before.saturating_add(1) >= UNSTREAMED_MAX {
            self.note_no_streams();
        }
    }

    fn reader(&self, limit: u32) -> ProviderReader {
        let aloud = match (
            self.may_think_aloud,
            self.is_headless.load(Ordering::Relaxed),
        ) {
            (false, _) => Aloud::Never,
            (true, true) => Aloud::Expected,
            (true, false) => Aloud::Maybe,
        };
        ProviderReader::new(self.rim.wire, Draft::new(text_max_bytes(limit), aloud))
    }

    /// Reads to the end of the stream, or to the end of the answer in it.
    async fn read_stream(
        &self,
        mut response: Response,
        reader: &mut ProviderReader,
        listener: &dyn Listener,
    ) -> Result<Came, ModelError> {
        let mut events = SseReader::default();
        let (mut document, mut heard) = (Vec::new(), 0);
        let mut wait = Duration::from_millis(self.timeout_ms);
        let mut until = Instant::now() + wait;
        loop {
            let bytes = match piece(&mut response, until).await {
                BodyPiece::Bytes(bytes) => bytes,
                BodyPiece::End => break,
                BodyPiece::Late => return Err(silent(wait, heard > 0)),
                BodyPiece::Lost(cause) => return Err(cause),
            };
            let read = events.read(&bytes, |event| reader.read(&event));
            reader.draft.tell(listener);
            if reader.draft.is_over() {
                return Ok(Came::Stream);
            }
            read.map_err(unreadable)?;
            if events.is_document() {
                document.extend_from_slice(&bytes);
            }
            if std::mem::replace(&mut heard, reader.events) != reader.events {
                wait = wait.min(GAP_MAX);
                until = Instant::now() + wait;
            }
        }
        if events.is_document() {
            return Ok(Came::Document(document));
        }
        if let Some(event) = events.close().map_err(unreadable)? {
            reader.read(&event);
        }
        Ok(Came::Stream)
    }

    /// Reads a body that came instead of a stream: a whole answer, an error, or a page.
    fn read_document(
        &self,
        body: &[u8],
        listener: &dyn Listener,
    ) -> Result<Option<ProviderAnswer>, ModelError> {
        if json(body).is_none() {
            self.doubt_streams();
            return Ok(None);
        }
        let reader = self.reader(self.max_output_tokens);
        let said = self.read_whole(body, reader)?;
        if !said.text.trim().is_empty() {
            listener.text(said.text.trim());
        }
        Ok(Some(said))
    }

    fn read_whole(
        &self,
        body: &[u8],
        mut reader: ProviderReader,
    ) -> Result<ProviderAnswer, ModelError> {
        let Some(body) = json(body) else {
            return Err(malformed("it is not JSON"));
        };
        // Routers send errors of the servers behind them with a success status.
        if let Some(error) = body.get("error")
            && (error.is_object() || error.is_string())
        {
            return Err(of_answer(error));
        }
        if !reader.read_whole(&body) {
            return Err(malformed("it is JSON of another shape"));
        }
        match reader.conclude() {
            StreamResult::Said(said) => Ok(said),
            StreamResult::LostCalls => Err(ModelError::Empty),
            StreamResult::Failed(cause) => Err(cause),
            StreamResult::Broken | StreamResult::Garbled | StreamResult::NoStream => {
                Err(malformed("it has no end"))
            }
        }
    }

    fn answer(&self, said: ProviderAnswer, request: &Request<'_>) -> Result<Answer, ModelError> {
        if said.is_headless && !self.is_headless.swap(true, Ordering::Relaxed) {
            tracing::info!(
                model = self.name,
                "the model thinks aloud without an opening tag; its answers show when that is over"
            );
        }
        let text = said.text.trim().to_owned();
        // If no tools were offered, none can be called.
        let tool_calls = match request.tools.is_empty() {
            true => Vec::new(),
            false => settled(said.calls),
        };
        let is_blank = text.is_empty() && tool_calls.is_empty();
        match said.reason {
            // A tool call that was cut off can't be made.
            Reason::Length if said.is_unclosed || is_blank || !tool_calls.is_empty() => {
                return Err(self.cut(said.usage));
            }
            Reason::Full if is_blank || !tool_calls.is_empty() => {
                return Err(ModelError::ContextTooLong {
                    limit: None,
                    asked: None,
                });
            }
            Reason::Filter if is_blank || !tool_calls.is_empty() => {
                return Err(ModelError::Refused {
                    reason: "its content filter stopped the answer".to_owned(),
                });
            }
            _ if said.is_unclosed && tool_calls.is_empty() => return Err(ModelError::Truncated),
            _ if is_blank => return Err(ModelError::Empty),
            _ => {}
        }
        Ok(Answer {
            usage: usage(said.usage, request, &text),
            reported_prompt_tokens: said.usage.prompt,
            raw_message: replay::stored(self.origin(), &said.message),
            text,
            tool_calls,
            finish: said.reason.finish(),
        })
    }

    /// The error for an answer without text that reached a limit: its own limit, or the context's if the prompt fills
    /// it. Source: Xiaomi's MiMo cuts prompts to the context and then has no room to answer.
    fn cut(&self, usage: ReportedUsage) -> ModelError {
        match self.context_limit.zip(usage.prompt) {
            Some((limit, prompt)) if prompt >= limit - limit / 100 => ModelError::ContextTooLong {
                limit: Some(limit),
                asked: None,
            },
            _ => ModelError::Truncated,
        }
    }
}

impl Model for Remote {
    fn name(&self) -> &str {
        &self.name
    }

    fn context_limit(&self) -> Option<usize> {
        let learnt = self.learnt_limit.load(Ordering::Relaxed);
        (learnt < usize::MAX).then_some(learnt)
    }

    fn learn_context_limit(&self, tokens: usize) {
        let before = self.learnt_limit.fetch_min(tokens, Ordering::Relaxed);
        if tokens < before {
            tracing::warn!(
                model = self.name,
                tokens,
                "prompts are kept within what the model's context was found to hold (`context_limit` says it \
                 from the start)"
            );
        }
    }

    fn complete<'a>(
        &'a self,
        request: &'a Request<'a>,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(self.ask(request))
    }
}

/// The outcome of a request.
enum Posted {
    /// The request succeeded; the body is not read yet.
    Answered(Response),
    /// The provider does not stream.
    RefusesStreams,
}

/// What a body was that should have been a stream.
enum Came {
    /// A stream, which the reader has read.
    Stream,
    /// A document, which is read as a whole.
    Document(Vec<u8>),
}

/// The most bytes of text for an answer of at most `max_output_tokens`.
fn text_max_bytes(max_output_tokens: u32) -> usize {
    (max_output_tokens as usize)
        .saturating_mul(TEXT_BYTES_PER_TOKEN)
        .clamp(TEXT_MIN_BYTES, TEXT_MAX_BYTES)
}

/// A body as JSON; `None` if it is not JSON.
fn json(body: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(body).ok()?;
    serde_json::from_str(&halves::whole(text)).ok()
}

fn unreadable(why: Unreadable) -> ModelError {
    match why {
        Unreadable::Endless => malformed("an event of its stream does not end"),
        Unreadable::NoText => garbled("its stream is not text"),
    }
}

fn silent(wait: Duration, has_begun: bool) -> ModelError {
    let wait_ms = wait.as_millis();
    ModelError::Unavailable {
        cause: if has_begun {
            format!("its stream stood still for {wait_ms} ms")
        } else {
            format!("no answer within {wait_ms} ms")
        },
    }
}

/// Tokens as the provider counts them, estimated if it does not.
fn usage(reported: ReportedUsage, request: &Request<'_>, text: &str) -> Usage {
    let asked = || {
        let messages = request.messages.iter().map(|m| m.content.as_str());
        let results = request
            .exchanges
            .iter()
            .flat_map(|exchange| &exchange.results);
        let contents = messages.chain(results.map(|result| result.content.as_str()));
        contents
            .map(|content| ClassEstimate.cost(content))
            .sum::<usize>() as u64
    };
    let prompt_tokens = reported.prompt.unwrap_or_else(asked);
    // Some servers report more cached tokens than tokens of the prompt.
    let cache_read_tokens = reported.cache_read.min(prompt_tokens);
    Usage {
        prompt_tokens,
        cache_read_tokens,
        cache_write_tokens: reported.cache_write.min(prompt_tokens - cache_read_tokens),
        completion_tokens: reported
            .completion
            .unwrap_or_else(|| u64::from(ClassEstimate.count(text))),
    }
}

fn malformed(what: &str) -> ModelError {
    ModelError::Malformed {
        what: what.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::text_max_bytes;

    #[test]
    fn a_text_has_room_for_every_answer_of_a_model_and_no_more() {
        let bounds = [1, 1_024, 4_096, 32_768, u32::MAX].map(text_max_bytes);
        assert_eq!(bounds, [65_536, 65_536, 262_144, 2_097_152, 4_194_304]);
    }
}
