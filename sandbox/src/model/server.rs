//! The scripted model server: HTTP in, the script's next reply out.
//!
//! Owns the script, the record of requests, and the hold that keeps calls pending. Checks and wire
//! forms are in `openai` and `anthropic`.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, DefaultBodyLimit, Multipart, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::stream;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::cache::PromptCache;
use super::embeddings::{Embedding, embeddings};
use super::openai::{OpenAiAnswer, OpenAiRefusal, has_looked_up, last_user_text, unanswered_text};
use super::reply::{ModelAct, ModelPace, ModelReply, ModelToolCall, ModelUsage, counted};
use super::{anthropic, control, openai, responses};
use crate::socket::{RequestConnection, Serving};
use crate::wire::{WireKind, WireLog, WirePeer, now_ms};

/// The most bytes of a request body, as with the hosted APIs.
const BODY_BYTES_MAX: usize = 32 << 20;
/// The size of the pieces in which an endless event is sent, in bytes.
const ENDLESS_PIECE_BYTES: usize = 4 << 10;
/// The names that `GET /v1/models` lists.
const MODELS: [&str; 2] = ["loopback-small", "loopback-large"];

/// A request as it came.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelRequest {
    /// Path, for example `/v1/chat/completions`.
    pub path: String,
    /// Headers by lower-case name; of keys only the last four characters.
    pub headers: Vec<(String, String)>,
    /// The body; a body that is no JSON is a string.
    pub body: Value,
    /// The status of its immediate answer; `None` while it waits, or when its script cut the connection.
    pub status: Option<u16>,
}

#[derive(Debug, Default)]
pub(super) struct ReplyScript {
    pub(super) next: VecDeque<ModelReply>,
    pub(super) requests: Vec<ModelRequest>,
    answered: u64,
    pub(super) transcripts: VecDeque<Result<String, u16>>,
    pub(super) voice_notes: Vec<Value>,
    pub(super) embedding: Embedding,
    pub(super) echoes_all: bool,
    /// How fast an answer without a script is streamed.
    pub(super) pace: Option<ModelPace>,
    pub(super) refuses_streams: bool,
    /// How long prompts may be, in tokens of four characters; `None` = no limit.
    pub(super) context_tokens: Option<u32>,
    /// What the provider's cache keeps; `None` = no cache is reported.
    cache: Option<PromptCache>,
    /// How far the cache's clock is ahead, in milliseconds.
    ahead_ms: i64,
    /// Whether fields about caches are refused, as by servers that don't know them.
    refuses_cache_fields: bool,
    /// A word, and the calls that an unscripted answer to a message with it asks for first.
    pub(super) looks_up: Option<(String, Vec<ModelToolCall>)>,
}

#[derive(Debug)]
struct ModelInner {
    script: Mutex<ReplyScript>,
    seen: watch::Sender<usize>,
    /// How many calls may still pass; `None` lets all pass.
    passes: watch::Sender<Option<usize>>,
    /// Bytes that went out in streams.
    streamed_bytes: AtomicU64,
    wire: WireLog,
}

#[derive(Clone, Debug)]
pub(super) struct SharedModel(Arc<ModelInner>);

impl SharedModel {
    pub(super) fn wire(&self) -> &WireLog {
        &self.0.wire
    }

    /// How many calls may still pass; `None` lets all pass.
    pub(super) fn passes(&self) -> &watch::Sender<Option<usize>> {
        &self.0.passes
    }

    pub(super) fn script<R>(&self, act: impl FnOnce(&mut ReplyScript) -> R) -> R {
        act(&mut self.0.script.lock().expect("no holder of this lock panics"))
    }
}

/// A model server that does what its script says.
#[derive(Debug)]
pub struct ModelServer {
    shared: SharedModel,
    serving: Serving,
}

impl ModelServer {
    /// Starts serving on `addr`; port 0 takes a free one.
    ///
    /// # Errors
    /// When the address can't be bound.
    pub async fn start(addr: SocketAddr, wire: WireLog) -> io::Result<Self> {
        let shared = SharedModel(Arc::new(ModelInner {
            script: Mutex::default(),
            seen: watch::channel(0).0,
            passes: watch::channel(None).0,
            streamed_bytes: AtomicU64::new(0),
            wire,
        }));
        let router = Router::new()
            .route("/v1/chat/completions", post(chat_completions))
            .route("/v1/responses", post(new_response))
            .route("/v1/messages", post(messages))
            .route("/v1/models", get(models))
            .route("/v1/audio/transcriptions", post(transcriptions))
            .route("/v1/embeddings", post(embeddings))
            .nest("/control", control::routes())
            .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
            .with_state(shared.clone());
        let serving = Serving::start(addr, router).await?;
        Ok(Self { shared, serving })
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.serving.addr()
    }

    /// The base URL for an OpenAI-compatible client; ends with `/v1/`.
    #[must_use]
    pub fn openai_url(&self) -> String {
        format!("http://{}/v1/", self.addr())
    }

    /// The base URL for an Anthropic client; ends with `/v1/`.
    #[must_use]
    pub fn anthropic_url(&self) -> String {
        self.openai_url()
    }

    /// Adds a reply to the end of the script.
    pub fn enqueue(&self, reply: ModelReply) {
        self.shared.script(|script| script.next.push_back(reply));
    }

    /// From now on an answer without a script repeats all that was said since the last answer, not only the last
    /// message: used where several questions are answered together.
    pub fn echo_all(&self) {
        self.shared.script(|script| script.echoes_all = true);
    }

    /// From now on an answer without a script is streamed in so many pieces, with a wait before each.
    pub fn pace_all(&self, deltas: usize, every: Duration) {
        let pace = Some(ModelPace { deltas, every });
        self.shared.script(|script| script.pace = pace);
    }

    /// From now on requests for a stream are refused, as by servers that don't stream. They take no
    /// reply from the script.
    pub fn refuse_streams(&self) {
        self.shared.script(|script| script.refuses_streams = true);
    }

    /// From now on longer prompts are refused, in tokens of four characters.
    pub fn limit_context(&self, tokens: u32) {
        self.shared
            .script(|script| script.context_tokens = Some(tokens));
    }

    /// From now on answers report the tokens read from and written to the provider's cache, by its rules.
    pub fn count_cache(&self) {
        self.shared
            .script(|script| script.cache = Some(PromptCache::default()));
    }

    /// Lets so much time pass for the provider's cache.
    pub fn pass_time(&self, time: Duration) {
        let ahead_ms = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        self.shared.script(|script| script.ahead_ms += ahead_ms);
    }

    /// From now on fields about caches are refused, as by servers that don't know them.
    pub fn refuse_cache_fields(&self) {
        self.shared
            .script(|script| script.refuses_cache_fields = true);
    }

    /// How many bytes of streams were taken from this server so far.
    #[must_use]
    pub fn streamed_bytes(&self) -> u64 {
        self.shared.0.streamed_bytes.load(Ordering::Relaxed)
    }

    /// From now on an unscripted answer to a message that contains `word` calls this tool first, once.
    pub fn look_up(&self, word: &str, name: &str, arguments: Value) {
        let call = ModelToolCall {
            id: String::new(),
            name: name.to_owned(),
            arguments,
        };
        self.shared
            .script(|script| script.looks_up = Some((word.to_owned(), vec![call])));
    }

    /// From now on an unscripted answer to a message that contains `word` asks for these calls first, all in one
    /// answer, once. A value `"{said}"` stands for the message.
    pub fn call_tools(&self, word: &str, calls: &[(&str, Value)]) {
        let call = |(name, arguments): &(&str, Value)| ModelToolCall {
            id: String::new(),
            name: (*name).to_owned(),
            arguments: arguments.clone(),
        };
        let calls = calls.iter().map(call).collect();
        self.shared
            .script(|script| script.looks_up = Some((word.to_owned(), calls)));
    }

    /// Adds the transcript of the next voice note; without one the answer gives the note's length. A number is a
    /// status.
    pub fn enqueue_transcript(&self, transcript: Result<&str, u16>) {
        let transcript = transcript.map(str::to_owned);
        self.shared
            .script(|script| script.transcripts.push_back(transcript));
    }

    /// Voice notes that were sent: their fields (of the file its name, type and size).
    #[must_use]
    pub fn voice_notes(&self) -> Vec<Value> {
        self.shared.script(|script| script.voice_notes.clone())
    }

    /// From now on these words are synonyms in embeddings.
    pub fn mean_the_same(&self, words: &[&str]) {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        self.shared
            .script(|script| script.embedding.alike.push(words));
    }

    /// From now on requests for embeddings whose texts have `word` in them (all, for an empty one) get a status;
    /// `None` = no longer.
    pub fn refuse_embeddings(&self, refuses: Option<(u16, &str)>) {
        let refuses = refuses.map(|(status, word)| (status, word.to_owned()));
        self.shared
            .script(|script| script.embedding.refuses = refuses);
    }

    /// Whether requests for embeddings are never answered from now on.
    pub fn hang_embeddings(&self, hangs: bool) {
        self.shared.script(|script| script.embedding.hangs = hangs);
    }

    /// From now on vectors have this many numbers, as after a change of the model.
    pub fn exchange_embedding_model(&self, dimensions: usize) {
        self.shared
            .script(|script| script.embedding.dimensions = Some(dimensions));
    }

    /// The texts of every request for embeddings that was answered, oldest first.
    #[must_use]
    pub fn embedded_texts(&self) -> Vec<Vec<String>> {
        self.shared
            .script(|script| script.embedding.requests.clone())
    }

    /// How many replies of the script are left.
    #[must_use]
    pub fn replies_left(&self) -> usize {
        self.shared.script(|script| script.next.len())
    }

    /// Every request to a model so far, refused ones too, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.shared.script(|script| script.requests.clone())
    }

    /// Waits until there were `count` requests. False when the time is over.
    pub async fn wait_for_requests(&self, count: usize, timeout: Duration) -> bool {
        let mut seen = self.shared.0.seen.subscribe();
        let enough = seen.wait_for(|&seen| seen >= count);
        tokio::time::timeout(timeout, enough).await.is_ok()
    }

    /// Keeps every call that comes from now on pending, until [`Self::release`]. A held call is
    /// already among the requests; it takes its reply from the script when it goes on.
    pub fn hold(&self) {
        self.shared.0.passes.send_replace(Some(0));
    }

    /// Lets one held call go on, or the next one that comes.
    pub fn release_one(&self) {
        self.shared.0.passes.send_modify(|passes| {
            *passes = passes.map(|left| left + 1);
        });
    }

    /// Lets all calls go on.
    pub fn release(&self) {
        self.shared.0.passes.send_replace(None);
    }

    /// Stops at once: every open connection is reset.
    pub async fn stop(self) {
        self.serving.stop().await;
    }
}

/// The provider whose API a call uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallShape {
    OpenAi,
    Responses,
    Anthropic,
}

impl CallShape {
    fn path(self) -> &'static str {
        match self {
            Self::OpenAi => "/v1/chat/completions",
            Self::Responses => "/v1/responses",
            Self::Anthropic => "/v1/messages",
        }
    }

    fn log_name(self) -> &'static str {
        match self {
            Self::OpenAi => "chat.completions",
            Self::Responses => "responses",
            Self::Anthropic => "messages",
        }
    }

    fn check(self, headers: &HeaderMap, body: &[u8]) -> Result<Value, OpenAiRefusal> {
        check_key(self, headers)?;
        match self {
            Self::OpenAi => openai::check(body),
            Self::Responses => responses::check(body),
            Self::Anthropic if !headers.contains_key("anthropic-version") => {
                Err(anthropic::no_version())
            }
            Self::Anthropic => anthropic::check(body),
        }
    }

    fn no_streams(self) -> OpenAiRefusal {
        match self {
            Self::OpenAi | Self::Responses => openai::no_streams(),
            Self::Anthropic => anthropic::no_streams(),
        }
    }

    fn unknown_field(self, name: &str) -> OpenAiRefusal {
        match self {
            Self::OpenAi | Self::Responses => openai::unknown_field_refused(name),
            Self::Anthropic => anthropic::unknown_field_refused(name),
        }
    }

    fn too_long(self, limit: u32, asked: u32) -> OpenAiRefusal {
        match self {
            Self::OpenAi | Self::Responses => openai::too_long(limit, asked),
            Self::Anthropic => anthropic::too_long(limit, asked),
        }
    }

    /// The messages of a request, in the form of Chat Completions.
    fn messages(self, body: &Value) -> Value {
        match self {
            Self::Responses => responses::as_messages(&body["input"]),
            Self::OpenAi | Self::Anthropic => body["messages"].clone(),
        }
    }

    fn status_body(self, status: u16) -> Value {
        match self {
            Self::OpenAi | Self::Responses => openai::status_body(status),
            Self::Anthropic => anthropic::status_body(status),
        }
    }
}

pub(super) fn check_key(provider: CallShape, headers: &HeaderMap) -> Result<(), OpenAiRefusal> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text("authorization").and_then(|value| value.strip_prefix("Bearer "));
    let (key, refused) = match provider {
        CallShape::OpenAi | CallShape::Responses => (bearer, openai::no_key()),
        CallShape::Anthropic => (text("x-api-key").or(bearer), anthropic::no_key()),
    };
    match key.map(str::trim) {
        Some(key) if !key.is_empty() => Ok(()),
        _ => Err(refused),
    }
}

async fn chat_completions(
    State(shared): State<SharedModel>,
    ConnectInfo(connection): ConnectInfo<RequestConnection>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    answer(&shared, &connection, CallShape::OpenAi, &headers, &body).await
}

async fn new_response(
    State(shared): State<SharedModel>,
    ConnectInfo(connection): ConnectInfo<RequestConnection>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    answer(&shared, &connection, CallShape::Responses, &headers, &body).await
}

async fn messages(
    State(shared): State<SharedModel>,
    ConnectInfo(connection): ConnectInfo<RequestConnection>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    answer(&shared, &connection, CallShape::Anthropic, &headers, &body).await
}

async fn models(headers: HeaderMap) -> Response {
    let provider = match headers.contains_key("anthropic-version") {
        true => CallShape::Anthropic,
        false => CallShape::OpenAi,
    };
    if let Err(refused) = check_key(provider, &headers) {
        return json_response(refused.status, &refused.body);
    }
    let list: Vec<Value> = MODELS
        .iter()
        .map(|id| match provider {
            CallShape::OpenAi | CallShape::Responses => {
                json!({"id": id, "object": "model", "created": 1_790_000_000, "owned_by": "loopback"})
            }
            CallShape::Anthropic => {
                json!({"type": "model", "id": id, "display_name": id, "created_at": "2026-01-01T00:00:00Z"})
            }
        })
        .collect();
    let body = match provider {
        CallShape::OpenAi | CallShape::Responses => json!({"object": "list", "data": list}),
        CallShape::Anthropic => {
            json!({"data": list, "has_more": false, "first_id": MODELS[0], "last_id": MODELS[1]})
        }
    };
    json_response(200, &body)
}

/// The file endings that the hosted API accepts.
const AUDIO_ENDINGS: [&str; 10] = [
    "flac", "m4a", "mp3", "mp4", "mpeg", "mpga", "oga", "ogg", "wav", "webm",
];

/// `POST /v1/audio/transcriptions`: a form with `file` and `model`.
async fn transcriptions(
    State(shared): State<SharedModel>,
    headers: HeaderMap,
    mut form: Multipart,
) -> Response {
    if let Err(refused) = check_key(CallShape::OpenAi, &headers) {
        return json_response(refused.status, &refused.body);
    }
    let mut note = serde_json::Map::new();
    while let Ok(Some(part)) = form.next_field().await {
        let name = part.name().unwrap_or_default().to_owned();
        let file = part.file_name().map(str::to_owned);
        let kind = part.content_type().map(str::to_owned);
        let Ok(bytes) = part.bytes().await else {
            break;
        };
        let value = match file {
            Some(file) => json!({"name": file, "type": kind, "bytes": bytes.len()}),
            None => json!(String::from_utf8_lossy(&bytes)),
        };
        note.insert(name, value);
    }
    let note = Value::Object(note);
    let ending = note["file"]["name"]
        .as_str()
        .and_then(|name| name.rsplit('.').next());
    let is_audio = ending.is_some_and(|ending| AUDIO_ENDINGS.contains(&ending));
    let is_empty = note["file"]["bytes"].as_u64().unwrap_or(0) == 0;
    if note["model"].as_str().is_none_or(str::is_empty) || !is_audio || is_empty {
        let body =
            json!({"error": {"message": "Invalid file format.", "type": "invalid_request_error"}});
        return json_response(400, &body);
    }
    let shown = format!("{} bytes of speech", note["file"]["bytes"]);
    let next = shared.script(|script| {
        script.voice_notes.push(note);
        script.transcripts.pop_front()
    });
    match next.unwrap_or(Ok(shown)) {
        Ok(text) => json_response(200, &json!({"text": text})),
        Err(status) => json_response(status, &openai::status_body(status)),
    }
}

async fn answer(
    shared: &SharedModel,
    connection: &RequestConnection,
    provider: CallShape,
    headers: &HeaderMap,
    raw: &[u8],
) -> Response {
    let number = record(shared, provider, headers, raw);
    let body = match provider.check(headers, raw) {
        Ok(body) => body,
        Err(refused) => {
            settle(shared, provider, number, refused.status, &refused.body);
            return json_response(refused.status, &refused.body);
        }
    };
    if let Some(refused) = shared.script(|script| refusal(script, provider, &body)) {
        settle(shared, provider, number, refused.status, &refused.body);
        return json_response(refused.status, &refused.body);
    }
    pass(shared).await;
    let (reply, serial) = shared.script(|script| {
        script.answered += 1;
        let reply = script.next.pop_front();
        (
            reply.unwrap_or_else(|| unscripted(script, provider, &body)),
            script.answered,
        )
    });
    let reply = shared.script(|script| with_cache(script, provider, &body, reply));
    tokio::time::sleep(reply.latency).await;
    let played = play(provider, &body, &reply, serial);
    match played {
        Played::Whole {
            status,
            headers,
            text,
        } => {
            let shown = serde_json::from_str(&text).unwrap_or_else(|_| json!(text));
            settle(shared, provider, number, status, &shown);
            whole(status, &headers, text)
        }
        Played::Stream(streaming) => {
            let log = streaming.events.concat();
            settle(shared, provider, number, 200, &json!(log));
            streamed(streaming, shared.clone())
        }
        Played::Hang => std::future::pending().await,
        Played::Reset => {
            connection.cut();
            StatusCode::OK.into_response()
        }
    }
}

/// The refusal of a request that this server refuses, though other servers would take it.
fn refusal(script: &ReplyScript, provider: CallShape, body: &Value) -> Option<OpenAiRefusal> {
    if body["stream"] == true && script.refuses_streams {
        return Some(provider.no_streams());
    }
    if script.refuses_cache_fields
        && let Some(name) = cache_field(body)
    {
        return Some(provider.unknown_field(name));
    }
    let limit = script.context_tokens?;
    let said = [
        &body["system"],
        &body["messages"],
        &body["input"],
        &body["tools"],
    ];
    let asked: u32 = said.iter().map(|said| counted(&said.to_string())).sum();
    (asked > limit).then(|| provider.too_long(limit, asked))
}

/// The name of a field about caches, wherever it is in the body.
fn cache_field(body: &Value) -> Option<&'static str> {
    let text = body.to_string();
    let names = [
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_breakpoint",
        "cache_control",
    ];
    names
        .into_iter()
        .find(|name| text.contains(&format!("\"{name}\":")))
}

/// The answer without a script.
fn unscripted(script: &ReplyScript, provider: CallShape, body: &Value) -> ModelReply {
    let messages = provider.messages(body);
    let heard = if script.echoes_all {
        unanswered_text(&messages)
    } else {
        last_user_text(&messages)
    };
    match &script.looks_up {
        Some((word, calls)) if heard.contains(word.as_str()) && !has_looked_up(&messages) => {
            let said = |(n, call): (usize, &ModelToolCall)| ModelToolCall {
                id: format!("call_{}_{n}", script.answered),
                name: call.name.clone(),
                arguments: with_said(&call.arguments, &heard),
            };
            ModelReply::tool_calls(calls.iter().enumerate().map(said).collect())
        }
        _ => ModelReply {
            pace: script.pace,
            ..ModelReply::text(&format!("echo: {heard}"))
        },
    }
}

/// Arguments with `"{said}"` replaced by the message.
fn with_said(arguments: &Value, heard: &str) -> Value {
    let mut arguments = arguments.clone();
    for value in arguments
        .as_object_mut()
        .into_iter()
        .flat_map(|it| it.values_mut())
    {
        if value == "{said}" {
            *value = Value::from(heard);
        }
    }
    arguments
}

/// The reply with its cache tokens, where these are counted.
fn with_cache(
    script: &mut ReplyScript,
    provider: CallShape,
    body: &Value,
    mut reply: ModelReply,
) -> ModelReply {
    let at_ms = now_ms() + script.ahead_ms;
    let Some(cache) = &mut script.cache else {
        return reply;
    };
    let used = match provider {
        CallShape::Anthropic => cache.messages(body, at_ms),
        CallShape::Responses => cache.openai(body, &body["input"], at_ms),
        CallShape::OpenAi => cache.openai(body, &body["messages"], at_ms),
    };
    let output = match (&reply.usage, &reply.act) {
        (Some(usage), _) => usage.output,
        (None, ModelAct::Answer { text, .. }) => counted(text),
        (None, _) => 0,
    };
    reply.usage = Some(ModelUsage {
        input: used.prompt,
        cache_read: used.read,
        cache_write: used.written,
        output,
    });
    reply
}

/// Records a request and wakes those who wait for it; returns its place.
fn record(shared: &SharedModel, provider: CallShape, headers: &HeaderMap, raw: &[u8]) -> usize {
    let body = serde_json::from_slice(raw)
        .unwrap_or_else(|_| json!(String::from_utf8_lossy(raw).into_owned()));
    shared.0.wire.append(
        WirePeer::Model,
        WireKind::Request,
        provider.log_name(),
        None,
        body.clone(),
    );
    let request = ModelRequest {
        path: provider.path().to_owned(),
        headers: redacted(headers),
        body,
        status: None,
    };
    let count = shared.script(|script| {
        script.requests.push(request);
        script.requests.len()
    });
    shared.0.seen.send_replace(count);
    count - 1
}

fn settle(shared: &SharedModel, provider: CallShape, number: usize, status: u16, body: &Value) {
    // After a reset the request may be gone.
    shared.script(|script| {
        if let Some(request) = script.requests.get_mut(number) {
            request.status = Some(status);
        }
    });
    shared.0.wire.append(
        WirePeer::Model,
        WireKind::Response,
        provider.log_name(),
        Some(status),
        body.clone(),
    );
}

fn redacted(headers: &HeaderMap) -> Vec<(String, String)> {
    headers
        .iter()
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            let shown = match name.as_str() {
                "authorization" | "x-api-key" | "api-key" | "cookie" => last_four(&value),
                _ => value,
            };
            (name.as_str().to_owned(), shown)
        })
        .collect()
}

fn last_four(secret: &str) -> String {
    let count = secret.chars().count();
    let tail: String = secret.chars().skip(count.saturating_sub(4)).collect();
    match count {
        0..=8 => "****".to_owned(),
        _ => format!("****{tail}"),
    }
}

/// Waits until the hold lets this call go on.
async fn pass(shared: &SharedModel) {
    let mut passes = shared.0.passes.subscribe();
    loop {
        let mut goes = false;
        shared.0.passes.send_if_modified(|passes| match passes {
            None => {
                goes = true;
                false
            }
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                goes = true;
                true
            }
        });
        if goes {
            return;
        }
        if passes.changed().await.is_err() {
            return;
        }
    }
}

/// What is sent for one reply.
enum Played {
    Whole {
        status: u16,
        headers: Vec<(String, String)>,
        text: String,
    },
    Stream(Streaming),
    Hang,
    Reset,
}

/// A body that is sent piece by piece.
struct Streaming {
    is_events: bool,
    events: Vec<String>,
    /// The wait before each event.
    every: Duration,
    then: Then,
}

/// What happens after the last piece.
#[derive(Clone, Debug)]
enum Then {
    End,
    /// The connection breaks.
    Break,
    /// Nothing, on an open connection.
    Silence,
    /// This text is sent again and again.
    Repeat(String),
}

fn play(provider: CallShape, body: &Value, reply: &ModelReply, serial: u64) -> Played {
    let streaming = body["stream"] == true;
    let tool = match &reply.act {
        ModelAct::ToolCallWithoutIndex(call) => vec![call.clone()],
        _ => Vec::new(),
    };
    let (text, tool_calls, cut): (&str, &[ModelToolCall], bool) = match &reply.act {
        ModelAct::Answer { text, tool_calls } => (text, tool_calls, false),
        ModelAct::Cut { text } => (text, &[], true),
        ModelAct::Truncated { text }
        | ModelAct::StreamError { text, .. }
        | ModelAct::Stalled { text }
        | ModelAct::BrokenOff { text }
        | ModelAct::Unmarked { text }
        | ModelAct::Endless { text } => (text, &[], false),
        ModelAct::EndlessEvent | ModelAct::Stream(_) => ("", &[], false),
        ModelAct::ToolCallWithoutIndex(_) => ("", &tool, false),
        ModelAct::Status {
            status,
            headers,
            body,
        } => {
            let own = || provider.status_body(*status).to_string();
            return Played::Whole {
                status: *status,
                headers: headers.clone(),
                text: body.clone().unwrap_or_else(own),
            };
        }
        ModelAct::Hang => return Played::Hang,
        ModelAct::Reset => return Played::Reset,
        ModelAct::Malformed if streaming => {
            return Played::events(vec!["data: {\"choices\": [\n\n".to_owned()]);
        }
        ModelAct::Malformed => return Played::ok("{\"choices\": [".to_owned()),
    };
    let answer = OpenAiAnswer {
        id: match provider {
            CallShape::OpenAi => format!("chatcmpl-loopback{serial:08}"),
            CallShape::Responses => format!("resp_{serial:08}"),
            CallShape::Anthropic => format!("msg_loopback{serial:08}"),
        },
        model: body["model"].as_str().unwrap_or(""),
        created_s: now_ms() / 1_000,
        text,
        tool_calls,
        cut,
        usage: reply.usage.unwrap_or_else(|| ModelUsage {
            input: counted(&provider.messages(body).to_string()),
            output: counted(text),
            ..ModelUsage::default()
        }),
        pace: reply.pace,
        thinking: reply.thinking.as_deref(),
    };
    match streaming {
        true => Played::Stream(play_stream(provider, body, &reply.act, &answer)),
        false => play_whole(provider, body, &reply.act, &answer),
    }
}

impl Played {
    fn ok(text: String) -> Self {
        Self::Whole {
            status: 200,
            headers: Vec::new(),
            text,
        }
    }

    fn events(events: Vec<String>) -> Self {
        Self::Stream(Streaming {
            is_events: true,
            events,
            every: Duration::ZERO,
            then: Then::End,
        })
    }
}

fn play_whole(provider: CallShape, body: &Value, act: &ModelAct, answer: &OpenAiAnswer) -> Played {
    let answered = match provider {
        CallShape::OpenAi => answer.body(),
        CallShape::Responses => responses::body(answer, body),
        CallShape::Anthropic => anthropic::body(answer, body),
    };
    let text = answered.to_string();
    match act {
        ModelAct::Truncated { .. } | ModelAct::BrokenOff { .. } => Played::Stream(Streaming {
            is_events: false,
            events: vec![openai::halves(&text).0.to_owned()],
            every: Duration::ZERO,
            then: Then::Break,
        }),
        ModelAct::Stalled { .. } | ModelAct::EndlessEvent => Played::Hang,
        ModelAct::StreamError { .. } | ModelAct::Stream(_) => Played::Whole {
            status: 500,
            headers: Vec::new(),
            text: provider.status_body(500).to_string(),
        },
        _ => Played::ok(text),
    }
}

fn play_stream(
    provider: CallShape,
    body: &Value,
    act: &ModelAct,
    answer: &OpenAiAnswer,
) -> Streaming {
    let has_index = !matches!(act, ModelAct::ToolCallWithoutIndex(_));
    let has_usage = body["stream_options"]["include_usage"] == true;
    let opening = || match provider {
        CallShape::OpenAi => answer.opening(),
        CallShape::Responses => responses::opening(answer),
        CallShape::Anthropic => anthropic::opening(answer, body),
    };
    let whole = || match provider {
        CallShape::OpenAi => answer.stream(has_usage, has_index),
        CallShape::Responses => responses::stream(answer, body),
        CallShape::Anthropic => anthropic::stream(answer, body, has_index),
    };
    let (events, then) = match act {
        ModelAct::Truncated { .. } => (opening(), Then::End),
        ModelAct::BrokenOff { .. } => (opening(), Then::Break),
        ModelAct::Stalled { .. } => (opening(), Then::Silence),
        ModelAct::Endless { .. } => {
            let mut events = opening();
            let last = events.pop().unwrap_or_default();
            (events, Then::Repeat(last))
        }
        ModelAct::EndlessEvent => (
            vec!["data: {\"".to_owned()],
            Then::Repeat("x".repeat(ENDLESS_PIECE_BYTES)),
        ),
        ModelAct::Stream(bytes) => (vec![bytes.clone()], Then::End),
        ModelAct::Unmarked { .. } => {
            let mut events = whole();
            events.pop();
            (events, Then::End)
        }
        ModelAct::StreamError { message, .. } => {
            let mut events = opening();
            events.push(match provider {
                CallShape::OpenAi => openai::event(&json!({"error": {
                    "message": message, "type": "server_error", "param": null, "code": null,
                }})),
                CallShape::Responses => responses::error_event(message),
                CallShape::Anthropic => {
                    openai::event_named(&anthropic::error_body("overloaded_error", message))
                }
            });
            (events, Then::End)
        }
        _ => (whole(), Then::End),
    };
    Streaming {
        is_events: true,
        events,
        every: answer.pace.map_or(Duration::ZERO, |pace| pace.every),
        then,
    }
}

fn whole(status: u16, headers: &[(String, String)], text: String) -> Response {
    let mut response = Response::builder()
        .status(status)
        .header(CONTENT_TYPE, "application/json");
    for (name, value) in headers {
        response = response.header(name, value);
    }
    response
        .body(Body::from(text))
        .unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

pub(super) fn json_response(status: u16, body: &Value) -> Response {
    whole(status, &[], body.to_string())
}

/// Sends a stream piece by piece, at its pace.
fn streamed(streaming: Streaming, shared: SharedModel) -> Response {
    let content_type = match streaming.is_events {
        true => "text/event-stream; charset=utf-8",
        false => "application/json",
    };
    let (every, then) = (streaming.every, streaming.then);
    let events = streaming.events.into_iter();
    let paced = stream::unfold(Some(events), move |events| {
        let (shared, then) = (shared.clone(), then.clone());
        async move {
            let mut events = events?;
            // Gives each event a write of its own.
            match every.is_zero() {
                true => tokio::task::yield_now().await,
                false => tokio::time::sleep(every).await,
            }
            let piece = match (events.next(), then) {
                (Some(piece), _) | (None, Then::Repeat(piece)) => piece,
                (None, Then::End) => return None,
                (None, Then::Silence) => std::future::pending().await,
                (None, Then::Break) => {
                    let broken = io::Error::other("the stream breaks off on purpose");
                    return Some((Err(broken), None));
                }
            };
            let bytes = piece.len() as u64;
            shared.0.streamed_bytes.fetch_add(bytes, Ordering::Relaxed);
            Some((Ok(piece), Some(events)))
        }
    });
    Response::builder()
        .header(CONTENT_TYPE, content_type)
        .body(Body::from_stream(paced))
        .unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}
