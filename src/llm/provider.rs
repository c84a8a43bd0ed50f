//! OpenAI- and Anthropic-shaped models, through the client library. Nothing else touches it.
//!
//! Calls are streamed for who listens (`stream`). What the library leaves open is settled here: base
//! URLs (`base_url`), model names it would take apart, keys it would demand, failures whose text
//! would show the request, answers without text, and tool calls it gives up on (`salvage`).
//!
//! Reading order: this page, `salvage`, then `stream` (a call that is heard while it is answered),
//! `draft` (what it said so far), `openai` and `anthropic` (their events), `thoughts`.

mod anthropic;
mod draft;
mod openai;
mod salvage;
mod stream;
mod thoughts;

use std::error::Error as _;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use chrono::Utc;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use genai::adapter::AdapterKind;
use genai::chat::{
    Binary, ChatMessage, ChatOptions, ChatRequest, ChatResponse, ContentPart, MessageContent,
    ReasoningEffort, StopReason, Tool, ToolResponse,
};
use genai::resolver::{AuthData, Endpoint, ProviderConfig};
use genai::{Client, Headers, ModelIden, ModelSpec, ServiceTarget, webc};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use super::base_url::{endpoint, normalised, own_address};
use super::failure::{FailedStatus, of_answer, of_status};
use super::tool::settled;
use super::{
    Answer, BuildError, Exchange, Finish, Model, ModelError, ModelSettings, Provider, Request,
    ToolCall, ToolChoice,
};
use crate::domain::run::Usage;
use crate::prompt::files::PromptImage;
use crate::prompt::{ClassEstimate, PromptMessage, PromptRole, TokenCounter};

/// The version of [`Answer::raw_message`].
const RAW_MESSAGE_VERSION: u32 = 1;

/// What stands before an answer of ours at the start of a conversation, where a provider demands
/// that a person speaks first.
const BEGAN_EARLIER: &str = "(This conversation began earlier.)";

/// So many answers in a row that are no stream, where one was asked for, mean that a provider does not
/// stream. A single one may be a page of a gateway; each costs a second request.
const UNSTREAMED_MAX: u32 = 2;

/// A model of a provider over HTTP.
pub(super) struct Remote {
    name: String,
    provider: Provider,
    model: String,
    client: Client,
    target: ModelSpec,
    options: ChatOptions,
    timeout_ms: u64,
    max_output_tokens: u32,
    /// Whether it is to be asked for streams, and has not refused them.
    streams: AtomicBool,
    /// Successful answers in a row that were no stream although one was asked for.
    unstreamed: AtomicU32,
}

impl Remote {
    pub(super) fn new(settings: &ModelSettings, http: reqwest::Client) -> Result<Self, BuildError> {
        let kind = adapter_kind(&settings.provider)?;
        let builder = Client::builder().with_reqwest(http);
        let (builder, target) = match &settings.provider {
            Provider::Other(_) => (
                builder.append_provider_config(kind, provider_config(settings)?),
                ModelSpec::from_iden(ModelIden::new(kind, settings.model.as_str())),
            ),
            _ => (builder, ModelSpec::from_target(target(settings, kind)?)),
        };
        let client = builder.build().map_err(|error| BuildError::Client {
            what: error.to_string(),
        })?;
        Ok(Self {
            name: format!("{}/{}", settings.provider.name(), settings.model),
            provider: settings.provider.clone(),
            model: settings.model.clone(),
            client,
            target,
            options: chat_options(settings),
            timeout_ms: settings.timeout_ms,
            max_output_tokens: settings.max_output_tokens,
            streams: AtomicBool::new(settings.stream),
            unstreamed: AtomicU32::new(0),
        })
    }

    async fn ask(&self, request: &Request<'_>) -> Result<Answer, ModelError> {
        let Some(listener) = request.listener else {
            return self.ask_at_once(request).await;
        };
        if self.streams.load(Ordering::Relaxed) {
            let chat = chat_request(request, &self.provider);
            let options = self.options_for(request);
            if let Some(said) = self.listen(chat, options, listener).await? {
                return self.answer(said, request);
            }
        }
        let answer = self.ask_at_once(request).await?;
        if !answer.text.is_empty() {
            listener.text(&answer.text);
        }
        Ok(answer)
    }

    fn options_for(&self, request: &Request<'_>) -> ChatOptions {
        let options = self.options.clone();
        if !request.tools.is_empty() && request.tool_choice == ToolChoice::None {
            return options.with_tool_choice(genai::chat::ToolChoice::None);
        }
        options
    }

    /// From now on it is asked without streams.
    fn note_no_streams(&self) {
        if self.streams.swap(false, Ordering::Relaxed) {
            tracing::warn!(
                model = self.name,
                "the provider does not stream; it is asked without from now on (`stream = false` \
                 spares the first request)"
            );
        }
    }

    /// What came was no stream. Once may be a page of something between here and the provider.
    fn doubt_streams(&self) {
        let before = self.unstreamed.fetch_add(1, Ordering::Relaxed);
        if before.saturating_add(1) >= UNSTREAMED_MAX {
            self.note_no_streams();
        }
    }

    fn trust_streams(&self) {
        self.unstreamed.store(0, Ordering::Relaxed);
    }

    /// Asks without a stream.
    async fn ask_at_once(&self, request: &Request<'_>) -> Result<Answer, ModelError> {
        let chat = chat_request(request, &self.provider);
        let options = self.options_for(request);
        let call = self
            .client
            .exec_chat(self.target.clone(), chat, Some(&options));
        // Some answers make the library panic; it keeps nothing between two calls.
        let call = AssertUnwindSafe(call).catch_unwind();
        let response = tokio::time::timeout(Duration::from_millis(self.timeout_ms), call)
            .await
            .map_err(|_| ModelError::Unavailable {
                cause: format!("no answer within {} ms", self.timeout_ms),
            })?
            .map_err(|_| malformed("the client library fails on it"))?;
        let body = match &response {
            Ok(response) => response.captured_raw_body.as_ref(),
            Err(genai::Error::ChatResponseGeneration { response_body, .. }) => {
                Some(&**response_body)
            }
            Err(_) => None,
        };
        // Routers send what went wrong behind them with a status of success.
        if let Some(error) = body
            .and_then(|body| body.get("error"))
            .filter(|it| it.is_object())
        {
            return Err(of_answer(error));
        }
        let said = match response {
            Ok(response) => said(&response, &self.provider),
            Err(genai::Error::ChatResponseGeneration { response_body, .. })
                if self.provider == Provider::OpenAi && !request.tools.is_empty() =>
            {
                salvage::said(&response_body)
                    .ok_or_else(|| malformed("it is JSON of another shape"))?
            }
            Err(error) => return Err(model_error(&error)),
        };
        self.answer(said, request)
    }

    fn answer(&self, said: Said, request: &Request<'_>) -> Result<Answer, ModelError> {
        let text = said.text.trim().to_owned();
        // What nobody offered can't be called.
        let tool_calls = if request.tools.is_empty() {
            Vec::new()
        } else {
            settled(said.calls)
        };
        if text.is_empty() && tool_calls.is_empty() {
            return Err(match said.finish {
                Finish::Length => ModelError::Truncated,
                Finish::ContentFilter => ModelError::Refused {
                    reason: "its content filter stopped the answer".to_owned(),
                },
                Finish::Stop | Finish::Other => ModelError::Empty,
            });
        }
        Ok(Answer {
            usage: usage(said.usage, request, &text),
            reported_prompt_tokens: said.usage.0,
            raw_message: self.raw_message(&said.message),
            text,
            tool_calls,
            finish: said.finish,
        })
    }

    fn raw_message(&self, message: &Value) -> String {
        json!({
            "version": RAW_MESSAGE_VERSION,
            "provider": self.provider.name(),
            "model": self.model,
            "message": message,
        })
        .to_string()
    }
}

/// What a provider said, whoever read it.
#[derive(Debug)]
struct Said {
    text: String,
    calls: Vec<ToolCall>,
    finish: Finish,
    /// Tokens of prompt and answer, where it tells them.
    usage: (Option<u64>, Option<u64>),
    /// Its own message.
    message: Value,
}

fn said(response: &ChatResponse, provider: &Provider) -> Said {
    let path = match provider {
        Provider::OpenAi => "/choices/0/message",
        Provider::Anthropic => "/content",
        Provider::Offline | Provider::Other(_) => "",
    };
    let body = response.captured_raw_body.as_ref();
    let message = body.and_then(|body| body.pointer(path));
    let calls = response.tool_calls().into_iter().map(|call| ToolCall {
        id: call.call_id.clone(),
        name: call.fn_name.clone(),
        arguments: call.fn_arguments.clone(),
    });
    let reported = |tokens: Option<i32>| tokens.and_then(|tokens| u64::try_from(tokens).ok());
    Said {
        text: response.texts().concat(),
        calls: calls.collect(),
        finish: finish(response.stop_reason.as_ref()),
        usage: (
            reported(response.usage.prompt_tokens),
            reported(response.usage.completion_tokens),
        ),
        message: message.cloned().unwrap_or_default(),
    }
}

impl Model for Remote {
    fn name(&self) -> &str {
        &self.name
    }

    fn complete<'a>(
        &'a self,
        request: &'a Request<'a>,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(self.ask(request))
    }
}

fn adapter_kind(provider: &Provider) -> Result<AdapterKind, BuildError> {
    let unknown = || BuildError::UnknownProvider {
        name: provider.name().to_owned(),
    };
    match provider {
        Provider::OpenAi => Ok(AdapterKind::OpenAI),
        Provider::Anthropic => Ok(AdapterKind::Anthropic),
        Provider::Offline => Err(unknown()),
        // The library's own custom kinds read keys and addresses from the environment.
        Provider::Other(name) => AdapterKind::from_lower_str(name)
            .filter(|kind| !matches!(kind, AdapterKind::Custom(_)))
            .ok_or_else(unknown),
    }
}

fn target(settings: &ModelSettings, kind: AdapterKind) -> Result<ServiceTarget, BuildError> {
    let provider = &settings.provider;
    let configured = settings.base_url.as_deref();
    let base = normalised(
        provider,
        configured.or(own_address(provider)).unwrap_or_default(),
    )?;
    let auth = match &settings.api_key {
        Some(key) => AuthData::from_single(key.expose_secret()),
        None if configured.is_some() => without_key(provider, &base),
        None => {
            let provider = match provider {
                Provider::Anthropic => "anthropic",
                _ => "openai",
            };
            return Err(BuildError::NoKey { provider });
        }
    };
    Ok(ServiceTarget {
        endpoint: Endpoint::from_owned(base.as_str()),
        auth,
        model: ModelIden::new(kind, settings.model.as_str()),
    })
}

/// The library demands a key for these protocols; servers in one's own network often have none.
fn without_key(provider: &Provider, base: &reqwest::Url) -> AuthData {
    let mut url = base.clone();
    url.set_path(&format!("{}{}", base.path(), endpoint(provider)));
    let headers = match provider {
        Provider::Anthropic => Headers::from(("anthropic-version", "2023-06-01")),
        _ => Headers::default(),
    };
    AuthData::RequestOverride {
        url: url.into(),
        headers,
    }
}

fn provider_config(settings: &ModelSettings) -> Result<ProviderConfig, BuildError> {
    let key = settings.api_key.as_ref();
    let auth = key.map_or(AuthData::None, |key| {
        AuthData::from_single(key.expose_secret())
    });
    let config = ProviderConfig::from_auth(auth);
    Ok(match &settings.base_url {
        Some(url) => {
            let url = normalised(&settings.provider, url)?;
            config.with_endpoint(Endpoint::from_owned(url.as_str()))
        }
        None => config,
    })
}

fn chat_options(settings: &ModelSettings) -> ChatOptions {
    let mut options = ChatOptions::default()
        .with_max_tokens(settings.max_output_tokens)
        .with_capture_raw_body(true)
        .with_normalize_reasoning_content(true);
    options.temperature = settings.temperature;
    // The library takes `org::` and endings like `-high` off a model's name; the name in the body is
    // ours. For OpenAI a budget of reasoning is no field, so it also keeps `reasoning_effort` out.
    if settings.provider == Provider::OpenAi {
        options = options.with_reasoning_effort(ReasoningEffort::Budget(0));
    }
    if !matches!(settings.provider, Provider::Other(_)) {
        options = options.with_extra_body(json!({"model": settings.model}));
    }
    options
}

fn chat_request(request: &Request<'_>, provider: &Provider) -> ChatRequest {
    let messages = request.messages;
    let mut chat = Vec::with_capacity(messages.len() + 2 * request.exchanges.len() + 1);
    let mut has_spoken = false;
    for message in messages {
        let is_answer_first = !has_spoken && message.role == PromptRole::Assistant;
        if is_answer_first && *provider == Provider::Anthropic {
            chat.push(ChatMessage::user(BEGAN_EARLIER));
        }
        has_spoken |= message.role != PromptRole::System;
        chat.push(chat_message(message));
    }
    if let Some(last) = chat.last_mut() {
        last.content.extend(request.images.iter().map(image_part));
    }
    chat.extend(request.exchanges.iter().flat_map(exchange_messages));
    let chat = ChatRequest::new(chat);
    if request.tools.is_empty() {
        return chat;
    }
    chat.with_tools(request.tools.iter().map(|tool| {
        Tool::new(tool.name.as_str())
            .with_description(tool.description.as_str())
            .with_schema(tool.schema.clone())
    }))
}

fn chat_message(message: &PromptMessage) -> ChatMessage {
    let content = message.content.as_str();
    match message.role {
        PromptRole::System => ChatMessage::system(content),
        PromptRole::User => ChatMessage::user(content),
        PromptRole::Assistant => ChatMessage::assistant(content),
    }
}

/// A picture, as both protocols take it.
fn image_part(image: &PromptImage) -> ContentPart {
    ContentPart::Binary(Binary::from_base64(
        image.mime_type,
        base64(&image.bytes),
        None,
    ))
}

/// Base64 with padding. Source: RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let word = group
            .iter()
            .fold(0, |word, byte| word << 8 | u32::from(*byte));
        let word = word << (8 * (3 - group.len()));
        for n in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * n) & 63) as usize];
            out.push(if n <= group.len() {
                char::from(digit)
            } else {
                '='
            });
        }
    }
    out
}

/// An earlier answer with its calls, and their results right behind it.
fn exchange_messages(exchange: &Exchange) -> [ChatMessage; 2] {
    let mut said = MessageContent::default();
    if !exchange.text.is_empty() {
        said.push(ContentPart::from_text(exchange.text.as_str()));
    }
    for call in &exchange.calls {
        said.push(ContentPart::ToolCall(genai::chat::ToolCall {
            call_id: call.id.clone(),
            fn_name: call.name.clone(),
            // Both protocols want an object back; what was wrong with the call is in its result.
            fn_arguments: match &call.arguments {
                Value::Object(object) => Value::Object(object.clone()),
                _ => json!({}),
            },
            thought_signatures: None,
        }));
    }
    let names = exchange.calls.iter().map(|call| call.name.as_str());
    let results = exchange.results.iter().zip(names).map(|(result, name)| {
        let content = if result.is_error {
            format!("Error: {}", result.content)
        } else {
            result.content.clone()
        };
        ToolResponse::new(result.call_id.as_str(), content).with_fn_name(name)
    });
    let results = MessageContent::from_tool_responses(results.collect());
    [ChatMessage::assistant(said), ChatMessage::tool(results)]
}

fn finish(reason: Option<&StopReason>) -> Finish {
    match reason {
        Some(StopReason::Completed(_) | StopReason::StopSequence(_)) => Finish::Stop,
        Some(StopReason::MaxTokens(_)) => Finish::Length,
        Some(StopReason::ContentFilter(_)) => Finish::ContentFilter,
        Some(StopReason::ToolCall(_) | StopReason::Other(_)) | None => Finish::Other,
    }
}

/// Tokens as the provider counts them, estimated where it does not.
fn usage(reported: (Option<u64>, Option<u64>), request: &Request<'_>, text: &str) -> Usage {
    let (prompt_tokens, completion_tokens) = reported;
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
    Usage {
        prompt_tokens: prompt_tokens.unwrap_or_else(asked),
        completion_tokens: completion_tokens
            .unwrap_or_else(|| u64::from(ClassEstimate.count(text))),
    }
}

/// The library's errors show URLs, request and answer; nothing of their text is taken over.
fn model_error(error: &genai::Error) -> ModelError {
    use genai::Error;
    match error {
        Error::WebModelCall { webc_error, .. } | Error::WebAdapterCall { webc_error, .. } => {
            web_error(webc_error)
        }
        Error::ChatResponseGeneration { .. } | Error::InvalidJsonResponseElement { .. } => {
            malformed("it is JSON of another shape")
        }
        Error::NoChatResponse { .. } => ModelError::Empty,
        Error::RequiresApiKey { .. } | Error::NoAuthData { .. } | Error::Resolver { .. } => {
            ModelError::Refused {
                reason: "a key is needed; set the model's `api_key`".to_owned(),
            }
        }
        _ => ModelError::Refused {
            reason: "the request can't be made for this provider".to_owned(),
        },
    }
}

fn web_error(error: &webc::Error) -> ModelError {
    match error {
        webc::Error::ResponseFailedStatus {
            status,
            body,
            headers,
        } => {
            let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
            let failed = FailedStatus {
                status: status.as_u16(),
                retry_after: header("retry-after"),
                retry_after_ms: header("retry-after-ms"),
                body,
            };
            of_status(&failed, Utc::now())
        }
        webc::Error::ResponseFailedNotJson { .. } => malformed("its content type is not JSON"),
        webc::Error::ResponseFailedInvalidJson { .. } => malformed("it is not JSON"),
        webc::Error::JsonValueExt(_) => malformed("it is JSON of another shape"),
        webc::Error::Reqwest(error) => ModelError::Unavailable {
            cause: transport_cause(error),
        },
    }
}

fn malformed(what: &str) -> ModelError {
    ModelError::Malformed {
        what: what.to_owned(),
    }
}

/// What happened to the connection, in words without the URL.
fn transport_cause(error: &reqwest::Error) -> String {
    let what = if error.is_timeout() {
        "the connection timed out"
    } else if error.is_connect() {
        "no connection"
    } else if error.is_body() || error.is_decode() {
        "the connection broke in the middle of the answer"
    } else {
        "the connection broke"
    };
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(io) = cause.downcast_ref::<std::io::Error>() {
            return format!("{what} ({})", io.kind());
        }
        source = cause.source();
    }
    what.to_owned()
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_is_that_of_the_rfc() {
        let table = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ];
        for (text, expected) in table {
            assert_eq!(base64(text.as_bytes()), expected);
        }
        assert_eq!(base64(&[0xff, 0xfe, 0xfb]), "//77");
    }
}
