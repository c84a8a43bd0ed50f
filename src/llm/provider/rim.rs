//! The HTTP of all three wires: sends one request, and reads its answer whole or in pieces, within limits.
//!
//! It knows no wire form. Errors contain nothing of an address, a key or a body.

use std::error::Error as _;
use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::header::HeaderMap;
use reqwest::{Client, Response, Url};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};
use vocative_channels::http::body_within;

use super::malformed;
use crate::llm::ModelError;
use crate::llm::base_url::Wire;
use crate::llm::failure::FailedStatus;

/// The longest answer that is not streamed, in bytes.
pub(super) const BODY_BYTES_MAX: usize = 8 << 20;
/// How much of a failure's body is read, in bytes.
const FAILURE_BYTES_MAX: usize = 64 << 10;
/// The requested API version. Source: Anthropic's API, "Versions".
pub(in crate::llm) const ANTHROPIC_VERSION: &str = "2023-06-01";

/// The time limit of an answer.
#[derive(Clone, Copy)]
pub(super) struct Patience {
    until: Instant,
    wait_ms: u64,
}

impl Patience {
    pub(super) fn of(wait_ms: u64) -> Self {
        Self {
            until: Instant::now() + Duration::from_millis(wait_ms),
            wait_ms,
        }
    }

    fn late(self) -> ModelError {
        ModelError::Unavailable {
            cause: format!("no answer within {} ms", self.wait_ms),
        }
    }
}

/// The address of requests, and the key.
pub(super) struct Rim {
    pub(super) http: Client,
    pub(super) url: Url,
    pub(super) wire: Wire,
    pub(super) key: Option<SecretString>,
}

/// The response to a request.
pub(super) enum HttpReply {
    /// A success status; the body is not read yet.
    Success(Response),
    /// Another status.
    Failure(HttpFailure),
}

/// A response whose status is no success.
pub(super) struct HttpFailure {
    pub(super) status: u16,
    headers: HeaderMap,
    pub(super) body: String,
}

impl HttpFailure {
    /// The error for it. A date to wait for is compared with the server's own clock.
    pub(super) fn cause(&self) -> ModelError {
        let header = |name: &str| self.headers.get(name).and_then(|it| it.to_str().ok());
        let date = header("date").and_then(|date| DateTime::parse_from_rfc2822(date).ok());
        let failed = FailedStatus {
            status: self.status,
            retry_after: header("retry-after"),
            retry_after_ms: header("retry-after-ms"),
            body: &self.body,
        };
        let now = date.map_or_else(Utc::now, |date| date.with_timezone(&Utc));
        crate::llm::failure::of_status(&failed, now)
    }
}

impl Rim {
    /// Sends one request and waits for the head of its response.
    pub(super) async fn post(
        &self,
        body: &Value,
        patience: Patience,
    ) -> Result<HttpReply, ModelError> {
        let mut request = self.http.post(self.url.clone()).json(body);
        let key = self.key.as_ref().map(SecretString::expose_secret);
        if self.wire == Wire::Messages {
            request = request.header("anthropic-version", ANTHROPIC_VERSION);
        }
        request = match (key, self.wire) {
            (None, _) => request,
            (Some(key), Wire::Messages) => request.header("x-api-key", key),
            (Some(key), _) => request.bearer_auth(key),
        };
        let sent = timeout_at(patience.until, request.send()).await;
        let response = sent
            .map_err(|_| patience.late())?
            .map_err(|error| lost(&error))?;
        if response.status().is_success() {
            return Ok(HttpReply::Success(response));
        }
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let read = timeout_at(patience.until, body_within(response, FAILURE_BYTES_MAX)).await;
        // An empty body has a meaning; a body that can't be read has none.
        let body = match read {
            Ok(Ok(Some(body))) => body,
            _ => b"?".to_vec(),
        };
        Ok(HttpReply::Failure(HttpFailure {
            status,
            headers,
            body: String::from_utf8_lossy(&body).into_owned(),
        }))
    }
}

/// Reads a whole response.
pub(super) async fn whole(response: Response, patience: Patience) -> Result<Vec<u8>, ModelError> {
    let read = timeout_at(patience.until, body_within(response, BODY_BYTES_MAX)).await;
    let read = read
        .map_err(|_| patience.late())?
        .map_err(|error| lost(&error))?;
    read.ok_or_else(|| malformed("it is too long"))
}

/// The next piece of a response.
pub(super) async fn piece(response: &mut Response, until: Instant) -> BodyPiece {
    match timeout_at(until, response.chunk()).await {
        Err(_) => BodyPiece::Late,
        Ok(Err(error)) => BodyPiece::Lost(lost(&error)),
        Ok(Ok(Some(bytes))) => BodyPiece::Bytes(bytes.to_vec()),
        Ok(Ok(None)) => BodyPiece::End,
    }
}

/// The next piece of a response, or why there is none.
pub(super) enum BodyPiece {
    Bytes(Vec<u8>),
    End,
    /// Nothing came within the time limit.
    Late,
    Lost(ModelError),
}

/// The error for a lost connection, without the URL.
fn lost(error: &reqwest::Error) -> ModelError {
    let what = if error.is_timeout() {
        "the connection timed out"
    } else if error.is_connect() {
        "no connection"
    } else if error.is_body() || error.is_decode() {
        "the connection broke in the middle of the answer"
    } else {
        "the connection broke"
    };
    let mut cause = what.to_owned();
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            cause = format!("{what} ({})", io.kind());
            break;
        }
        source = error.source();
    }
    ModelError::Unavailable { cause }
}
