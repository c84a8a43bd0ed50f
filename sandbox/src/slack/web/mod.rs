//! The Web API: one HTTP call from its bytes to its answer.
//!
//! Reading order: `call` (bytes to arguments), this file (faults, token, scope, tier, then the
//! method), `methods` (the table), `chat`, `conversations`, `directory`, `files`
//! (what the methods do).

mod call;
mod chat;
mod conversations;
mod directory;
pub(super) mod files;
mod methods;
mod stream;
mod surface;
mod views;

pub(super) use directory::domain;
pub(super) use views::check_view;

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{ConnectInfo, Path, RawQuery, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use self::call::MethodCall;
use self::methods::{Method, TokenKind};
use super::cut::ConnectionCut;
use super::events::EventObject;
use super::faults::{CallFault, SlackKnobs};
use super::state::{SharedSlack, SlackCore};
use crate::wire::{WireKind, WirePeer};

/// How long a call waits at most for its echo to be acknowledged, in milliseconds, if it is to wait at all.
const ECHO_WAIT_MS_MAX: u64 = 1_000;
/// How long after its call an echo is sent, in milliseconds, when it comes after.
const ECHO_AFTER_MS: u64 = 5;

/// Why a call is refused.
#[derive(Debug)]
pub(super) struct ApiError {
    code: String,
    extra: Map<String, Value>,
    retry_after_s: Option<u64>,
}

impl ApiError {
    fn new(code: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            extra: Map::new(),
            retry_after_s: None,
        }
    }

    /// Adds the sentence that `response_metadata.messages` carries.
    fn because(mut self, sentence: &str) -> Self {
        let messages = json!({"messages": [format!("[ERROR] {sentence}")]});
        self.extra.insert("response_metadata".into(), messages);
        self
    }

    fn with(mut self, name: &str, value: Value) -> Self {
        self.extra.insert(name.to_owned(), value);
        self
    }

    fn missing_scope(core: &SlackCore, needed: &str) -> Self {
        Self::new("missing_scope")
            .with("needed", json!(needed))
            .with("provided", json!(core.world.scopes.join(",")))
    }

    fn rate_limited(retry_after_s: u64) -> Self {
        Self {
            retry_after_s: Some(retry_after_s.max(1)),
            ..Self::new("ratelimited")
        }
    }

    fn into_answer(self) -> WebAnswer {
        let mut body = json!({"ok": false, "error": self.code});
        if let Some(fields) = body.as_object_mut() {
            fields.extend(self.extra);
        }
        WebAnswer {
            status: match self.retry_after_s {
                Some(_) => StatusCode::TOO_MANY_REQUESTS,
                None => StatusCode::OK,
            },
            retry_after_s: self.retry_after_s,
            body,
        }
    }
}

impl From<(&'static str, String)> for ApiError {
    fn from((code, sentence): (&'static str, String)) -> Self {
        Self::new(code).because(&sentence)
    }
}

/// The result of a method that succeeded.
#[derive(Default)]
pub(super) struct MethodReply {
    fields: Map<String, Value>,
    warnings: Vec<&'static str>,
    events: Vec<EventObject>,
}

impl MethodReply {
    fn of(fields: Value) -> Self {
        let fields = match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        Self {
            fields,
            ..Self::default()
        }
    }

    fn with_events(mut self, events: Vec<EventObject>) -> Self {
        self.events = events;
        self
    }
}

/// The result of one method.
type MethodOutcome = Result<MethodReply, ApiError>;

struct WebAnswer {
    status: StatusCode,
    retry_after_s: Option<u64>,
    body: Value,
}

/// `POST /api/<method>`.
pub(super) async fn api(
    State(shared): State<Arc<SharedSlack>>,
    ConnectInfo(cut): ConnectInfo<ConnectionCut>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let takes_json = methods::takes_json(&name);
    let call = MethodCall::read(&headers, query.as_deref(), body, takes_json).await;
    log(&shared, WireKind::Request, &name, None, call.logged());
    let latency_ms = shared.faults.knobs().latency_ms;
    pause(latency_ms).await;
    let fault = shared.faults.take(&name);
    if let Some(response) = fail_before(&shared, &cut, &name, fault.as_ref()) {
        return response;
    }
    let (answer, events) = apply(&shared, &name, &call);
    echo(&shared, events).await;
    finish(&shared, &cut, &name, fault, answer).await
}

/// Faults that keep the call from being applied.
fn fail_before(
    shared: &SharedSlack,
    cut: &ConnectionCut,
    name: &str,
    fault: Option<&CallFault>,
) -> Option<Response> {
    match fault? {
        CallFault::Status(status) => Some(bare(shared, name, *status)),
        CallFault::RateLimited(seconds) => {
            let answer = ApiError::rate_limited(*seconds).into_answer();
            Some(respond(shared, name, answer))
        }
        CallFault::Error(code) => {
            let answer = ApiError::new(code.as_str()).into_answer();
            Some(respond(shared, name, answer))
        }
        CallFault::ResetBefore => {
            cut.cut();
            Some(StatusCode::OK.into_response())
        }
        CallFault::Html => {
            let page = "<!DOCTYPE html><html><body>Sign in to Slack</body></html>";
            log(shared, WireKind::Response, name, Some(200), json!(page));
            let kind = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
            Some((kind, page).into_response())
        }
        _ => None,
    }
}

/// Faults that strike after the call was applied, and the plain answer.
async fn finish(
    shared: &SharedSlack,
    cut: &ConnectionCut,
    name: &str,
    fault: Option<CallFault>,
    answer: WebAnswer,
) -> Response {
    match fault {
        Some(CallFault::StatusAfterApply(status)) => bare(shared, name, status),
        Some(CallFault::ErrorAfterApply(code)) => {
            respond(shared, name, ApiError::new(code).into_answer())
        }
        Some(CallFault::ResetAfter) => {
            cut.cut();
            StatusCode::OK.into_response()
        }
        Some(CallFault::LoseResponse) => {
            shared.stop.cancelled().await;
            StatusCode::OK.into_response()
        }
        Some(CallFault::Latency(latency_ms)) => {
            pause(latency_ms).await;
            respond(shared, name, answer)
        }
        _ => respond(shared, name, answer),
    }
}

/// Runs the method under the lock, after everything that Slack checks first.
fn apply(shared: &SharedSlack, name: &str, call: &MethodCall) -> (WebAnswer, Vec<EventObject>) {
    let knobs = shared.faults.knobs();
    let outcome = shared.change(|core| {
        let method = checked(core, &knobs, name, call)?;
        (method.run)(core, call, &knobs)
    });
    match outcome {
        Ok(reply) => {
            let mut body = reply.fields;
            body.insert("ok".into(), json!(true));
            if !reply.warnings.is_empty() {
                body.insert("warning".into(), json!(reply.warnings.join(",")));
                let metadata = body.entry("response_metadata").or_insert(json!({}));
                metadata["warnings"] = json!(reply.warnings);
            }
            let answer = WebAnswer {
                status: StatusCode::OK,
                retry_after_s: None,
                body: Value::Object(body),
            };
            (answer, reply.events)
        }
        Err(error) => (error.into_answer(), Vec::new()),
    }
}

/// The method, when it exists and this call may use it now.
fn checked(
    core: &mut SlackCore,
    knobs: &SlackKnobs,
    name: &str,
    call: &MethodCall,
) -> Result<&'static Method, ApiError> {
    let method = methods::find(name)
        .ok_or_else(|| ApiError::new("unknown_method").with("req_method", json!(name)))?;
    if let Some(problem) = &call.problem {
        return Err(ApiError::new(*problem));
    }
    check_token(core, knobs, method, call)?;
    let is_granted = |scope: &&str| core.world.has_scope(scope);
    if !method.scopes.is_empty() && !method.scopes.iter().any(is_granted) {
        return Err(ApiError::missing_scope(core, &method.scopes.join(",")));
    }
    methods::count_call(core, method, knobs)?;
    Ok(method)
}

fn check_token(
    core: &SlackCore,
    knobs: &SlackKnobs,
    method: &Method,
    call: &MethodCall,
) -> Result<(), ApiError> {
    if method.token == TokenKind::None {
        return Ok(());
    }
    let token = call
        .token
        .as_deref()
        .ok_or_else(|| ApiError::new("not_authed"))?;
    let kind = if token == core.world.bot_token {
        TokenKind::Bot
    } else if token == core.world.app_token {
        TokenKind::App
    } else {
        return Err(ApiError::new("invalid_auth"));
    };
    if let Some(error) = &knobs.account_error {
        return Err(ApiError::new(error.as_str()));
    }
    if kind != method.token {
        return Err(ApiError::new("not_allowed_token_type"));
    }
    if kind == TokenKind::App && !call.token_in_header {
        return Err(ApiError::new("not_authed"));
    }
    Ok(())
}

/// Sends the events of a call: before its answer, waiting for the acknowledgement, or shortly after it.
async fn echo(shared: &Arc<SharedSlack>, events: Vec<EventObject>) {
    let knobs = shared.faults.knobs();
    if events.is_empty() || !knobs.echo_own_posts {
        return;
    }
    if !knobs.echo_before_response {
        let shared = shared.clone();
        tokio::spawn(async move {
            pause(ECHO_AFTER_MS).await;
            shared.change(|core| shared.emit(core, events));
        });
        return;
    }
    shared.change(|core| shared.emit(core, events));
    let wait = Duration::from_millis(ECHO_WAIT_MS_MAX);
    let is_heard =
        |shared: &SharedSlack| shared.read(|core| (core.deliveries.unacked() == 0).then_some(()));
    let _ = shared.wait_for(wait, is_heard).await;
}

fn bare(shared: &SharedSlack, name: &str, status: u16) -> Response {
    log(shared, WireKind::Response, name, Some(status), Value::Null);
    StatusCode::from_u16(status)
        .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
        .into_response()
}

fn respond(shared: &SharedSlack, name: &str, answer: WebAnswer) -> Response {
    let status = answer.status.as_u16();
    let logged = call::redacted(answer.body.clone());
    log(shared, WireKind::Response, name, Some(status), logged);
    let mut response = (answer.status, Json(answer.body)).into_response();
    let headers = response.headers_mut();
    let scopes = shared.read(|core| core.world.scopes.join(","));
    let mut put = |name: &'static str, value: String| {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    };
    put("x-oauth-scopes", scopes);
    if let Some(method) = methods::find(name) {
        put("x-accepted-oauth-scopes", method.scopes.join(","));
    }
    if let Some(seconds) = answer.retry_after_s {
        put("retry-after", seconds.to_string());
    }
    response
}

fn log(shared: &SharedSlack, kind: WireKind, name: &str, status: Option<u16>, body: Value) {
    let wire = &shared.wire;
    wire.append(WirePeer::Slack, kind, name, status, body);
}

async fn pause(pause_ms: u64) {
    if pause_ms > 0 {
        tokio::time::sleep(Duration::from_millis(pause_ms)).await;
    }
}
