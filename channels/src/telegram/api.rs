//! Calls of the Bot API, and what their failures mean.
//!
//! The token is part of every URL, so no URL leaves this module: errors lose theirs, and what the
//! server says is cleared of the token. Parameters are never `null`, because the server reads that
//! as the text `null`.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, RequestBuilder, Response};
use secrecy::{ExposeSecret as _, SecretString};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::download::DOWNLOAD_MAX;
use crate::http::{self, HttpTimeouts};
use crate::json_object::read_object;
use crate::multipart::Multipart;
use vocative_contract::clock::PlatformClock;
use vocative_contract::crash;
use vocative_contract::error::{ChannelError, Fallback, ServerFailed};
use vocative_contract::outbound::PartFile;

use super::wire::{ResponseParameters, TelegramAnswer};

/// The longest description that is kept of a refusal, in characters.
const DESCRIPTION_MAX_CHARS: usize = 200;

/// The parameters of one call.
pub(super) type Parameters = Map<String, Value>;

/// Calls methods of one bot.
pub(super) struct TelegramApi {
    api_url: String,
    token: SecretString,
    timeouts: HttpTimeouts,
    client: Mutex<Option<Client>>,
    clock: Arc<PlatformClock>,
}

impl fmt::Debug for TelegramApi {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TelegramApi")
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
    }
}

/// Why a call gave no result.
#[derive(Debug)]
pub(super) enum CallFailure {
    /// No answer of the Bot API came.
    Unanswered(ChannelError),
    /// The Bot API said no.
    Refused(BotApiRefusal),
}

/// What the Bot API said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BotApiRefusal {
    /// The error code; equal to the HTTP status.
    pub(super) code: u16,
    /// Its words, shortened and without the token.
    pub(super) description: String,
    /// The parameters of the refusal.
    pub(super) parameters: ResponseParameters,
    /// The wait by the `Retry-After` header, in milliseconds.
    pub(super) header_wait_ms: u64,
    /// The time of the answer by its `Date` header, which counts whole seconds, in milliseconds since the
    /// Unix epoch.
    pub(super) date_ms: Option<i64>,
}

impl CallFailure {
    /// The error for whoever called `operation`.
    pub(super) fn into_error(self, operation: &'static str) -> ChannelError {
        match self {
            Self::Unanswered(error) => error,
            Self::Refused(refusal) => refusal.into_error(operation),
        }
    }
}

impl TelegramApi {
    /// An API at `api_url` (`https://api.telegram.org`, or that of a local Bot API server).
    pub(super) fn new(api_url: &str, token: SecretString, timeouts: HttpTimeouts) -> Self {
        Self {
            api_url: api_url.trim_end_matches('/').to_owned(),
            token,
            timeouts,
            client: Mutex::new(None),
            clock: Arc::default(),
        }
    }

    /// The same with the clock of another API of the same channel.
    pub(super) fn timed_by(self, clock: &Arc<PlatformClock>) -> Self {
        Self {
            clock: Arc::clone(clock),
            ..self
        }
    }

    /// Telegram's time, as its answers tell it.
    pub(super) fn clock(&self) -> &Arc<PlatformClock> {
        &self.clock
    }

    /// Drops the client with its connections; the next call makes a new one.
    pub(super) fn drop_connections(&self) {
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Calls a method and reads its result.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        operation: &'static str,
        parameters: &Parameters,
    ) -> Result<T, CallFailure> {
        let result = self.call_raw(operation, parameters).await?;
        serde_json::from_str(result.get())
            .map_err(|_| unreadable(operation, "the result has an unknown shape"))
    }

    /// Calls a method that takes a file and reads its result.
    pub(super) async fn call_with_file<T: DeserializeOwned>(
        &self,
        operation: &'static str,
        parameters: &Parameters,
        field: &str,
        file: &PartFile,
    ) -> Result<T, CallFailure> {
        let mut parts = Multipart::new(file.bytes());
        for (name, value) in parameters {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            parts = parts.field(name, &text);
        }
        let (kind, body) = parts
            .file(field, &file.name, &file.mime_type, file.bytes())
            .finish();
        let request =
            |client: Client, url: String| client.post(url).header(CONTENT_TYPE, kind).body(body);
        let result = self.exchange(operation, request).await?;
        serde_json::from_str(result.get())
            .map_err(|_| unreadable(operation, "the result has an unknown shape"))
    }

    /// Calls a method and returns its result as it came.
    pub(super) async fn call_raw(
        &self,
        operation: &'static str,
        parameters: &Parameters,
    ) -> Result<Box<RawValue>, CallFailure> {
        debug_assert!(parameters.values().all(|value| !value.is_null()));
        self.exchange(operation, |client, url| client.post(url).json(parameters))
            .await
    }

    async fn exchange(
        &self,
        operation: &'static str,
        request: impl FnOnce(Client, String) -> RequestBuilder,
    ) -> Result<Box<RawValue>, CallFailure> {
        let client = self.client().map_err(CallFailure::Unanswered)?;
        let url = format!(
            "{}/bot{}/{operation}",
            self.api_url,
            self.token.expose_secret()
        );
        let asked = Instant::now();
        let response = request(client, url)
            .send()
            .await
            .map_err(|error| CallFailure::Unanswered(http::failed(operation, error)))?;
        crash::bytes_sent(operation);
        if response.status().is_success() {
            self.clock.note_date(response.headers(), asked);
        }
        let status = response.status().as_u16();
        let header_wait_ms = http::retry_after_ms(response.headers());
        let date_ms = http::date_ms(response.headers());
        let is_json = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .is_some_and(|kind| kind.trim_start().starts_with("application/json"));
        if !is_json {
            return Err(foreign_answer(operation, status, header_wait_ms));
        }
        let body = http::body(operation, response)
            .await
            .map_err(CallFailure::Unanswered)?;
        let answered = RawAnswer {
            operation,
            status,
            header_wait_ms,
            body: &body,
        };
        let read = read_answer(&answered, self.token.expose_secret());
        read.map_err(|failure| match failure {
            CallFailure::Refused(refusal) => {
                CallFailure::Refused(BotApiRefusal { date_ms, ..refusal })
            }
            unanswered @ CallFailure::Unanswered(_) => unanswered,
        })
    }

    /// Asks for a file by the path that `getFile` returned. The error is ours, or the HTTP client's without its
    /// address.
    pub(super) async fn download(
        &self,
        path: &str,
    ) -> Result<Response, Result<ChannelError, reqwest::Error>> {
        let client = self.client().map_err(Ok)?;
        let token = self.token.expose_secret();
        let url = format!("{}/file/bot{token}/{path}", self.api_url);
        // Without compression: the size is compared with what Telegram says.
        let asked = client
            .get(url)
            .timeout(DOWNLOAD_MAX)
            .header(::http::header::ACCEPT_ENCODING, "identity");
        asked.send().await.map_err(|error| Err(error.without_url()))
    }

    fn client(&self) -> Result<Client, ChannelError> {
        let mut kept = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = &*kept {
            return Ok(client.clone());
        }
        let client = http::client(self.timeouts)?;
        *kept = Some(client.clone());
        Ok(client)
    }
}

/// An answer in JSON, unread.
pub(super) struct RawAnswer<'a> {
    pub(super) operation: &'static str,
    pub(super) status: u16,
    pub(super) header_wait_ms: u64,
    pub(super) body: &'a [u8],
}

/// The result that an answer holds, as it came, or why there is none. Pure.
pub(super) fn read_answer(
    answered: &RawAnswer<'_>,
    token: &str,
) -> Result<Box<RawValue>, CallFailure> {
    let RawAnswer {
        operation,
        status,
        header_wait_ms,
        body,
    } = *answered;
    let body = String::from_utf8_lossy(body);
    let Ok(answer) = read_object::<TelegramAnswer<'_>>(&body) else {
        return Err(foreign_answer(operation, status, header_wait_ms));
    };
    if answer.ok {
        return answer
            .result
            .map(ToOwned::to_owned)
            .ok_or_else(|| unreadable(operation, "the answer has no result"));
    }
    let description = answer.description.as_deref().unwrap_or("no reason given");
    Err(CallFailure::Refused(BotApiRefusal {
        code: answer.error_code.unwrap_or(status),
        description: cleared(description, token),
        parameters: answer.parameters.unwrap_or_default(),
        header_wait_ms,
        date_ms: None,
    }))
}

/// A description without control characters and token, shortened. The characters are removed first: they could hide a
/// token by splitting it in two.
fn cleared(description: &str, token: &str) -> String {
    let mut told: String = description.chars().filter(|c| !c.is_control()).collect();
    let secret = token.split_once(':').map_or("", |(_, secret)| secret);
    for part in [token, secret] {
        if !part.is_empty() {
            told = told.replace(part, "<token>");
        }
    }
    told.chars().take(DESCRIPTION_MAX_CHARS).collect()
}

/// An answer that does not come from the Bot API, but from a gateway, a proxy or a wrong `api_url`.
fn foreign_answer(operation: &'static str, status: u16, header_wait_ms: u64) -> CallFailure {
    let cause = || match status {
        500.. => ServerFailed { status }.into(),
        _ => format!("HTTP {status} without an answer of the Bot API").into(),
    };
    match status {
        429 => CallFailure::Unanswered(ChannelError::RetryAfter {
            operation,
            wait_ms: header_wait_ms,
        }),
        // A 408 only says that the answering server did not want to wait.
        300..=407 | 409..=499 => CallFailure::Unanswered(ChannelError::NotSent {
            operation,
            cause: cause(),
        }),
        _ => CallFailure::Unanswered(ChannelError::OutcomeUnknown {
            operation,
            cause: cause(),
        }),
    }
}

fn unreadable(operation: &'static str, cause: &'static str) -> CallFailure {
    CallFailure::Unanswered(ChannelError::OutcomeUnknown {
        operation,
        cause: cause.into(),
    })
}

/// What a 400 means, by a part of its lower-cased description.
enum RefusalMeaning {
    ChatRefuses,
    Try(Fallback),
}

/// Source: Bot API server and tdlib, as collected in the error table of the protocol notes. The
/// first match counts.
///
/// A topic is a room of its own: one that is closed or gone says nothing of its chat. An answer to a closed topic has
/// no other place, so it is given up.
const BAD_REQUESTS: [(&str, RefusalMeaning); 32] = [
    (
        "message thread not found",
        RefusalMeaning::Try(Fallback::WithoutThread),
    ),
    (
        "topic_deleted",
        RefusalMeaning::Try(Fallback::WithoutThread),
    ),
    ("topic_closed", RefusalMeaning::Try(Fallback::None)),
    (
        "message to be replied not found",
        RefusalMeaning::Try(Fallback::WithoutReply),
    ),
    (
        "message to reply not found",
        RefusalMeaning::Try(Fallback::WithoutReply),
    ),
    (
        "message to edit not found",
        RefusalMeaning::Try(Fallback::NewPost),
    ),
    (
        "message can't be edited",
        RefusalMeaning::Try(Fallback::NewPost),
    ),
    ("message_id_invalid", RefusalMeaning::Try(Fallback::NewPost)),
    (
        "replied message not found",
        RefusalMeaning::Try(Fallback::WithoutReply),
    ),
    ("can't parse entities", RefusalMeaning::Try(Fallback::Plain)),
    (
        "can't parse messageentity",
        RefusalMeaning::Try(Fallback::Plain),
    ),
    ("bad request: entity ", RefusalMeaning::Try(Fallback::Plain)),
    (
        "receive an entity with incorrect",
        RefusalMeaning::Try(Fallback::Plain),
    ),
    (
        "unsupported parse_mode",
        RefusalMeaning::Try(Fallback::Plain),
    ),
    (
        "message is too long",
        RefusalMeaning::Try(Fallback::Resplit),
    ),
    ("text is too long", RefusalMeaning::Try(Fallback::Resplit)),
    ("message_too_long", RefusalMeaning::Try(Fallback::Resplit)),
    ("chat not found", RefusalMeaning::ChatRefuses),
    (
        "have no write access to the chat",
        RefusalMeaning::ChatRefuses,
    ),
    ("need administrator rights", RefusalMeaning::ChatRefuses),
    ("not enough rights", RefusalMeaning::ChatRefuses),
    ("chat_write_forbidden", RefusalMeaning::ChatRefuses),
    ("chat_send_plain_forbidden", RefusalMeaning::ChatRefuses),
    ("chat_restricted", RefusalMeaning::ChatRefuses),
    ("chat_admin_required", RefusalMeaning::ChatRefuses),
    ("user_is_blocked", RefusalMeaning::ChatRefuses),
    ("user_is_bot", RefusalMeaning::ChatRefuses),
    ("input_user_deactivated", RefusalMeaning::ChatRefuses),
    ("channel_private", RefusalMeaning::ChatRefuses),
    ("peer_id_invalid", RefusalMeaning::ChatRefuses),
    ("group chat was deactivated", RefusalMeaning::ChatRefuses),
    ("group chat was deleted", RefusalMeaning::ChatRefuses),
];

impl BotApiRefusal {
    /// What the caller of `operation` should do.
    pub(super) fn into_error(self, operation: &'static str) -> ChannelError {
        if let Some(to) = self.parameters.migrate_to_chat_id {
            let to_chat = to.to_string();
            return ChannelError::ChatMoved { operation, to_chat };
        }
        if self.code == 429 || self.parameters.retry_after.is_some() {
            let wait_ms = self.wait_ms();
            return ChannelError::RetryAfter { operation, wait_ms };
        }
        let reason = self.description;
        let words = reason.to_ascii_lowercase();
        match self.code {
            400 => bad_request(operation, reason, &words),
            401 | 421 => ChannelError::Unauthorized { operation, reason },
            404 => not_found(operation, reason, &words),
            403 => ChannelError::ChatRefused { operation, reason },
            409 => ChannelError::NotSent {
                operation,
                cause: reason.into(),
            },
            // The message was made and removed at once by something in the chat: do not send it again.
            500.. if words.contains("sent message was immediately deleted") => {
                rejected(operation, reason, Fallback::None)
            }
            code if code / 100 == 4 => rejected(operation, reason, Fallback::None),
            status @ 500.. => ChannelError::OutcomeUnknown {
                operation,
                cause: ServerFailed { status }.into(),
            },
            _ => ChannelError::OutcomeUnknown {
                operation,
                cause: reason.into(),
            },
        }
    }

    fn wait_ms(&self) -> u64 {
        self.parameters
            .retry_after
            .map_or(self.header_wait_ms, |seconds| seconds.saturating_mul(1_000))
            .max(http::RETRY_AFTER_MIN_MS)
    }
}

/// Methods that every server knows: a 404 for one of them means that the token is wrong.
const TELL_OF_TOKEN: [&str; 5] = [
    "getMe",
    "getUpdates",
    "setWebhook",
    "deleteWebhook",
    "getWebhookInfo",
];

/// A server that does not know a method refuses that method, not the account: an own Bot API server may
/// be older than the method, or a proxy may let only some pass.
fn not_found(operation: &'static str, reason: String, words: &str) -> ChannelError {
    if words.contains("method not found") {
        return rejected(operation, reason, Fallback::None);
    }
    if TELL_OF_TOKEN.contains(&operation) {
        return ChannelError::Unauthorized { operation, reason };
    }
    // Whether the token is lost is found out by the next poll; until then waiting posts are kept.
    ChannelError::NotSent {
        operation,
        cause: reason.into(),
    }
}

fn bad_request(operation: &'static str, reason: String, words: &str) -> ChannelError {
    let found = BAD_REQUESTS
        .iter()
        .find(|(part, _)| words.contains(part))
        .map(|(_, meaning)| meaning);
    match found {
        Some(RefusalMeaning::ChatRefuses) => ChannelError::ChatRefused { operation, reason },
        // The descriptions of these errors quote the text.
        Some(RefusalMeaning::Try(Fallback::Plain)) => rejected(
            operation,
            "the formatting was refused".to_owned(),
            Fallback::Plain,
        ),
        Some(RefusalMeaning::Try(fallback)) => rejected(operation, reason, *fallback),
        None => rejected(operation, reason, Fallback::None),
    }
}

fn rejected(operation: &'static str, reason: String, fallback: Fallback) -> ChannelError {
    ChannelError::Rejected {
        operation,
        reason,
        fallback,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(code: u16, description: &str) -> BotApiRefusal {
        BotApiRefusal {
            code,
            description: description.to_owned(),
            parameters: ResponseParameters::default(),
            header_wait_ms: 7_000,
            date_ms: None,
        }
    }

    fn class(code: u16, description: &str) -> String {
        match refusal(code, description).into_error("sendMessage") {
            ChannelError::NotSent { .. } => "not sent".to_owned(),
            ChannelError::RetryAfter { wait_ms, .. } => format!("wait {wait_ms}"),
            ChannelError::Unauthorized { .. } => "account".to_owned(),
            ChannelError::ChatRefused { .. } => "chat".to_owned(),
            ChannelError::ChatMoved { to_chat, .. } => format!("moved {to_chat}"),
            ChannelError::Rejected { fallback, .. } => format!("{fallback:?}"),
            ChannelError::OutcomeUnknown { .. } => "unknown".to_owned(),
        }
    }

    #[test]
    fn a_refusal_says_what_to_do_next() {
        let table = [
            (401, "Unauthorized", "account"),
            (401, "Unauthorized: invalid token specified", "account"),
            // A 404 of a single method: only getMe and getUpdates tell that the token is lost.
            (404, "Not Found", "not sent"),
            (404, "Not Found: method not found", "None"),
            (
                421,
                "Misdirected Request: unallowed token specified",
                "account",
            ),
            (403, "Forbidden: bot was blocked by the user", "chat"),
            (
                403,
                "Forbidden: bot was kicked from the supergroup chat",
                "chat",
            ),
            (400, "Bad Request: chat not found", "chat"),
            (
                400,
                "Bad Request: not enough rights to send text messages to the chat",
                "chat",
            ),
            (400, "Bad Request: TOPIC_CLOSED", "None"),
            (400, "Bad Request: TOPIC_DELETED", "WithoutThread"),
            (
                400,
                "Bad Request: message thread not found",
                "WithoutThread",
            ),
            (
                400,
                "Bad Request: message to be replied not found",
                "WithoutReply",
            ),
            (
                400,
                "Bad Request: can't parse entities: Unsupported start tag \"br\" at byte offset 0",
                "Plain",
            ),
            (
                400,
                "Bad Request: entity begins in a middle of a UTF-16 symbol at byte offset 5",
                "Plain",
            ),
            (
                400,
                "Bad Request: entity URL 'not a url' is invalid: Wrong HTTP URL",
                "Plain",
            ),
            (400, "Bad Request: message is too long", "Resplit"),
            (400, "Bad Request: MESSAGE_TOO_LONG", "Resplit"),
            (400, "Bad Request: message text is empty", "None"),
            (400, "Bad Request: something new", "None"),
            (406, "Not Acceptable", "None"),
            (413, "Request Entity Too Large", "None"),
            (
                409,
                "Conflict: terminated by other getUpdates request",
                "not sent",
            ),
            (429, "Too Many Requests: retry later", "wait 7000"),
            (500, "Internal Server Error: restart", "unknown"),
            (
                500,
                "Internal Server Error: sent message was immediately deleted and can't be returned",
                "None",
            ),
            (502, "Bad Gateway", "unknown"),
            (200, "no reason given", "unknown"),
        ];
        for (code, description, expected) in table {
            assert_eq!(class(code, description), expected, "{code} {description}");
        }
    }

    #[test]
    fn a_token_is_lost_where_a_method_is_not_found_that_every_server_knows() {
        for method in TELL_OF_TOKEN {
            let error = refusal(404, "Not Found").into_error(method);
            assert!(
                matches!(error, ChannelError::Unauthorized { .. }),
                "{method}"
            );
        }
        let error = refusal(404, "Not Found: method not found").into_error("setWebhook");
        assert!(matches!(error, ChannelError::Rejected { .. }));
    }

    #[test]
    fn an_answer_of_somebody_else_is_unknown_unless_it_is_a_refusal() {
        let table = [
            (302, "not sent"),
            (403, "not sent"),
            (408, "unknown"),
            (429, "wait 7000"),
            (502, "unknown"),
            (200, "unknown"),
        ];
        for (status, expected) in table {
            let error = foreign_answer("sendMessage", status, 7_000).into_error("sendMessage");
            let class = match error {
                ChannelError::NotSent { .. } => "not sent".to_owned(),
                ChannelError::RetryAfter { wait_ms, .. } => format!("wait {wait_ms}"),
                _ => "unknown".to_owned(),
            };
            assert_eq!(class, expected, "{status}");
        }
    }

    #[test]
    fn a_server_that_failed_is_told_from_a_broken_answer() {
        for (status, expected) in [(500, true), (502, true), (408, false), (200, false)] {
            let said = refusal(status, "Bad Gateway").into_error("sendMessage");
            let is_said = said.is_server_failure();
            assert_eq!(is_said, expected && status >= 500, "{status} of the API");
            let gateway = foreign_answer("sendMessage", status, 0).into_error("sendMessage");
            assert_eq!(
                gateway.is_server_failure(),
                expected,
                "{status} of a gateway"
            );
        }
    }

    #[test]
    fn a_list_is_no_answer() {
        let read = |body: &str| {
            let answered = RawAnswer {
                operation: "sendMessage",
                status: 200,
                header_wait_ms: 1_000,
                body: body.as_bytes(),
            };
            read_answer(&answered, "1:x").ok()
        };
        assert!(read(r#"{"ok":true,"result":1}"#).is_some());
        assert!(read("[true,1]").is_none());
    }

    #[test]
    fn parameters_come_before_words() {
        let with = |parameters| BotApiRefusal {
            parameters,
            ..refusal(
                400,
                "Bad Request: group chat was upgraded to a supergroup chat",
            )
        };
        let moved = with(ResponseParameters {
            migrate_to_chat_id: Some(-1_001),
            retry_after: None,
        });
        assert!(matches!(
            moved.into_error("sendMessage"),
            ChannelError::ChatMoved { to_chat, .. } if to_chat == "-1001"
        ));
        let wait = with(ResponseParameters {
            migrate_to_chat_id: None,
            retry_after: Some(17),
        });
        assert!(matches!(
            wait.into_error("sendMessage"),
            ChannelError::RetryAfter {
                wait_ms: 17_000,
                ..
            }
        ));
    }

    #[test]
    fn descriptions_and_debug_hold_no_token() {
        let token = SecretString::from("123:SECRET");
        let api = TelegramApi::new("http://127.0.0.1:1/", token, HttpTimeouts::default());
        let table = [
            ("no /bot123:SECRET/x\n", "no /bot<token>/x"),
            ("no 123:SEC\0\0RET", "no <token>"),
            ("no SECRET of 123", "no <token> of 123"),
        ];
        for (said, expected) in table {
            assert_eq!(cleared(said, "123:SECRET"), expected);
        }
        assert!(!format!("{api:?}").contains("SECRET"));
        let error = refusal(400, "Bad Request: entity URL 'private words' is invalid")
            .into_error("sendMessage");
        assert!(!error.reason().contains("private words"));
    }
}
