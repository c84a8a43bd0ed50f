//! What clients of OpenAI's API are told when something is wrong: `{"error": {"message", "type", "param", "code"}}`.

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::super::refusal::ApiRefusal;
use vocative_core::ids::RunId;

/// Tells OpenAI's own clients not to send a request again by themselves: as a new request it would be a new question.
const NO_RETRY: (HeaderName, HeaderValue) = (
    HeaderName::from_static("x-should-retry"),
    HeaderValue::from_static("false"),
);

/// A refusal or a failure in OpenAI's form.
#[derive(Debug)]
pub(super) struct CompletionFailure {
    status: StatusCode,
    message: String,
    kind: &'static str,
    /// The field that is wrong.
    param: Option<String>,
    code: Option<&'static str>,
}

const INVALID: &str = "invalid_request_error";
const SERVER: &str = "server_error";

impl CompletionFailure {
    /// A field has a value that can't be served.
    pub(super) fn field(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            message: message.into(),
            kind: INVALID,
            param: Some(param.into()),
            code: None,
        }
    }

    /// A field that is not served at all.
    pub(super) fn unsupported(param: &str) -> Self {
        Self {
            code: Some("unsupported_parameter"),
            ..Self::field(
                param,
                format!(
                    "{param} is not supported: the agent's own settings decide; leave it out (docs/API.md)"
                ),
            )
        }
    }

    pub(super) fn too_large(max_bytes: usize) -> Self {
        Self {
            status: StatusCode::PAYLOAD_TOO_LARGE,
            param: None,
            ..Self::field(
                "",
                format!("the body has more than {max_bytes} bytes, or did not come whole"),
            )
        }
    }

    /// The agent may not be asked.
    pub(super) fn no_model(refusal: ApiRefusal) -> Self {
        Self {
            param: Some("model".to_owned()),
            code: Some("model_not_found"),
            ..Self::refused(refusal)
        }
    }

    pub(super) fn limit(refusal: ApiRefusal) -> Self {
        Self {
            code: Some("rate_limit_exceeded"),
            kind: "rate_limit_error",
            ..Self::refused(refusal)
        }
    }

    /// The idempotency key was used before.
    pub(super) fn key(refusal: ApiRefusal) -> Self {
        Self {
            code: Some("idempotency_key_reused"),
            ..Self::refused(refusal)
        }
    }

    /// A refusal by the rest of the API, in this form.
    pub(super) fn refused(refusal: ApiRefusal) -> Self {
        let ApiRefusal {
            status,
            what,
            advice,
        } = refusal;
        let (kind, code) = match status {
            StatusCode::UNAUTHORIZED => (INVALID, Some("invalid_api_key")),
            StatusCode::FORBIDDEN => ("permission_error", None),
            status if status.is_server_error() => (SERVER, None),
            _ => (INVALID, None),
        };
        Self {
            status,
            message: format!("{what}; {advice}"),
            kind,
            param: None,
            code,
        }
    }

    fn of_run(status: StatusCode, code: &'static str, message: String) -> Self {
        Self {
            status,
            message,
            kind: SERVER,
            param: None,
            code: Some(code),
        }
    }

    /// The run was given up.
    pub(super) fn failed(run: RunId) -> Self {
        let told = format!(
            "the agent could not answer; operators see why with `vocative runs show {run}`"
        );
        Self::of_run(StatusCode::INTERNAL_SERVER_ERROR, "run_failed", told)
    }

    /// The run was stopped.
    pub(super) fn stopped(run: RunId) -> Self {
        let told = format!("the run {run} was stopped before it answered");
        Self::of_run(StatusCode::CONFLICT, "run_stopped", told)
    }

    /// Its answer takes longer than a request is kept open.
    pub(super) fn still_working(run: RunId) -> Self {
        let told = format!(
            "the run {run} is still being worked on; follow it with GET /v1/runs/{run}/events"
        );
        Self::of_run(StatusCode::GATEWAY_TIMEOUT, "run_not_finished", told)
    }

    /// The daemon stops; the run goes on with its next start.
    pub(super) fn stopping(run: RunId) -> Self {
        let told = format!(
            "the daemon stops; the run {run} is finished when it is started again: follow it with GET /v1/runs/{run}/events, or send the request again under the same Idempotency-Key"
        );
        Self::of_run(StatusCode::SERVICE_UNAVAILABLE, "stopping", told)
    }

    /// The JSON body.
    pub(super) fn body(&self) -> Value {
        json!({ "error": {
            "message": self.message,
            "type": self.kind,
            "param": self.param,
            "code": self.code,
        } })
    }
}

impl IntoResponse for CompletionFailure {
    fn into_response(self) -> Response {
        (self.status, [NO_RETRY], axum::Json(self.body())).into_response()
    }
}

/// Gives refusals that are made before the handlers of these paths OpenAI's form, too.
pub(in crate::http::api) async fn in_form(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_ours =
        path.starts_with("/v1/chat/") || path == "/v1/models" || path.starts_with("/v1/models/");
    let answer = next.run(request).await;
    match answer.extensions().get::<ApiRefusal>() {
        Some(refusal) if is_ours => CompletionFailure::refused(refusal.clone()).into_response(),
        _ => answer,
    }
}
