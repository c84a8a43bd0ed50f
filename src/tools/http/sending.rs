//! One request, its hops, and what its outcome means.

use std::time::{Duration, Instant};

use reqwest::header::{HeaderName, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Method, Response, Url};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use vocative_channels::http::{HttpTimeouts, body_within, retry_after_ms};
use vocative_channels::internet::{direct_client, leads_elsewhere};

use super::{HttpTool, WHOLE};
use crate::tools::outside::{fenced, without_secrets};
use crate::tools::{CallContext, ToolError, ToolOutput};
use vocative_core::ids::ToolCallId;
use vocative_core::tool_call::CallRule;
use vocative_store::NewId as _;

/// The most redirects that are followed.
const HOPS_MAX: usize = 3;
/// How much of an error answer is shown, in characters.
const ERROR_MAX_CHARS: usize = 2_000;
/// How long a connection may take to be made, in milliseconds.
const CONNECT_MS: u64 = 10_000;

/// Makes the request.
pub(super) async fn send(
    tool: &HttpTool,
    arguments: &Value,
    context: &CallContext,
) -> Result<ToolOutput, ToolError> {
    let response = answered(tool, arguments, context).await?;
    read(tool, response).await
}

/// The answer. The request is repeated once if the server put it off.
async fn answered(
    tool: &HttpTool,
    arguments: &Value,
    context: &CallContext,
) -> Result<Response, ToolError> {
    let begun = Instant::now();
    let first = tool.settings.url.fill(arguments);
    let first = first.map_err(ToolError::Arguments)?;
    let body = tool.settings.body.as_ref().map(|body| body.fill(arguments));
    let body = body.transpose().map_err(ToolError::Arguments)?;
    let response = follow(tool, first.clone(), body.as_ref(), context).await?;
    let Some(wait) = worth_waiting(tool, &response, context, begun.elapsed()) else {
        return Ok(response);
    };
    tokio::time::sleep(wait).await;
    follow(tool, first, body.as_ref(), context).await
}

/// Sends one JSON value and returns the JSON value of the answer. Never takes longer than the tool's time limit.
pub(super) async fn ask_whole(tool: &HttpTool, event: &Value) -> Result<Value, String> {
    let reading = async |response| {
        let bytes = body_within(response, tool.settings.answer_bytes_max)
            .await
            .map_err(|error| outcome(&error))?;
        let bytes = bytes.ok_or_else(|| failed("the answer is too long"))?;
        serde_json::from_slice(&bytes).map_err(|_| failed("the answer is no JSON"))
    };
    in_time(tool, event, reading).await
}

/// Sends one JSON value; only the status of the answer counts. Never takes longer than the tool's time limit.
pub(super) async fn tell_whole(tool: &HttpTool, event: &Value) -> Result<(), String> {
    in_time(tool, event, async |_| Ok(())).await
}

/// Makes the request within the time limit and reads an answer that has a success status.
async fn in_time<T>(
    tool: &HttpTool,
    event: &Value,
    reading: impl AsyncFnOnce(Response) -> Result<T, ToolError>,
) -> Result<T, String> {
    let limit_ms = tool.settings.timeout_ms;
    let context = CallContext {
        limit_ms: Some(limit_ms),
        ..CallContext::of(ToolCallId::generate())
    };
    let arguments = json!({ WHOLE: event });
    let asking = async {
        let response = answered(tool, &arguments, &context).await?;
        let status = response.status().as_u16();
        if !response.status().is_success() {
            return Err(failed(format!("the server answered {status}")));
        }
        reading(response).await
    };
    match tokio::time::timeout(Duration::from_millis(limit_ms), asking).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(
            ToolError::Arguments(what) | ToolError::Failed(what) | ToolError::Unknown(what),
        )) => Err(what),
        Ok(Err(wanted @ ToolError::InputRequired(_))) => Err(wanted.to_string()),
        Err(_) => Err(format!("the server did not answer within {limit_ms} ms")),
    }
}

/// Makes the request and follows redirects; returns the last answer.
async fn follow(
    tool: &HttpTool,
    mut url: Url,
    body: Option<&Value>,
    context: &CallContext,
) -> Result<Response, ToolError> {
    for _ in 0..=HOPS_MAX {
        let response = ask(tool, &url, body, context).await?;
        if !response.status().is_redirection() {
            return Ok(response);
        }
        url = next(tool, &url, &response)?;
    }
    Err(failed(format!("more than {HOPS_MAX} redirects")))
}

/// How long to wait before a request that the server put off is repeated. `None` if it may not be made again, or if the
/// wait is longer than half of the time that is left.
fn worth_waiting(
    tool: &HttpTool,
    response: &Response,
    context: &CallContext,
    elapsed: Duration,
) -> Option<Duration> {
    let is_put_off = matches!(response.status().as_u16(), 429 | 503);
    if !is_put_off || tool.settings.rule == CallRule::Once {
        return None;
    }
    // Without this header the server does not invite a second request.
    response.headers().get(RETRY_AFTER)?;
    let wait = Duration::from_millis(retry_after_ms(response.headers()));
    let limit = Duration::from_millis(context.limit_ms?.min(tool.settings.timeout_ms));
    (wait <= limit.saturating_sub(elapsed) / 2).then_some(wait)
}

fn failed(what: impl Into<String>) -> ToolError {
    ToolError::Failed(what.into())
}

/// Whether a host is one of the operator's own that the tool may reach.
fn is_allowed_private(tool: &HttpTool, url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or_default();
    let address = format!("{host}:{port}");
    let allowed = &tool.settings.allow_private;
    allowed
        .iter()
        .any(|allowed| allowed.eq_ignore_ascii_case(&address))
}

/// Makes the request of one hop.
async fn ask(
    tool: &HttpTool,
    url: &Url,
    body: Option<&Value>,
    context: &CallContext,
) -> Result<Response, ToolError> {
    let admits_own = is_allowed_private(tool, url);
    if url.scheme() != "https" && !admits_own {
        return Err(failed(
            "only https is asked, but for hosts of allow_private",
        ));
    }
    let timeouts = HttpTimeouts {
        connect_ms: CONNECT_MS.min(tool.settings.timeout_ms),
        read_ms: tool.settings.timeout_ms,
        total_ms: tool.settings.timeout_ms,
    };
    let client = direct_client(timeouts, url, admits_own)
        .map_err(|_| failed("its address is none of the internet, and not in allow_private"))?;
    let mut request = client.request(tool.settings.method.clone(), url.clone());
    for (name, value) in &tool.settings.headers {
        request = request.header(name, value);
    }
    // Secrets go only to the origin that they were configured for.
    if url.origin() == tool.settings.url.base().origin() {
        for (name, value) in &tool.secret_headers {
            request = request.header(header_name(name)?, secret_value(value.expose_secret())?);
        }
    }
    if let Some(header) = &tool.settings.idempotency_header {
        request = request.header(header, context.call.to_string());
    }
    if let Some(body) = body {
        request = request.json(body);
    }
    request.send().await.map_err(|error| outcome(&error))
}

fn header_name(name: &str) -> Result<HeaderName, ToolError> {
    name.parse()
        .map_err(|_| failed("a header has no valid name"))
}

fn secret_value(value: &str) -> Result<HeaderValue, ToolError> {
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| failed("a secret header holds characters that no header may have"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// The error for a request that broke off. It does not contain the address.
fn outcome(error: &reqwest::Error) -> ToolError {
    if leads_elsewhere(error) {
        return failed("its name leads to no address of the internet, and is not in allow_private");
    }
    if error.is_builder() || error.is_connect() {
        return failed("no connection to the server");
    }
    ToolError::Unknown(match error.is_timeout() {
        true => "the server did not answer in time".to_owned(),
        false => "the connection broke before the answer was read".to_owned(),
    })
}

/// The target of a redirect. Only GET and HEAD requests are followed, since these may be made twice.
fn next(tool: &HttpTool, from: &Url, response: &Response) -> Result<Url, ToolError> {
    if !matches!(tool.settings.method, Method::GET | Method::HEAD) {
        let status = response.status().as_u16();
        return Err(ToolError::Unknown(format!(
            "the server answered {status} and sends the request elsewhere, which is not followed"
        )));
    }
    let location = response.headers().get(LOCATION);
    let location = location.and_then(|location| location.to_str().ok());
    let next = location.and_then(|location| from.join(location).ok());
    let next = next.ok_or_else(|| failed("the server redirects to no address"))?;
    if !next.username().is_empty() || next.password().is_some() {
        return Err(failed("the server redirects to an address with a password"));
    }
    if from.scheme() == "https" && next.scheme() != "https" {
        return Err(failed("the server redirects from https to http"));
    }
    Ok(next)
}

async fn read(tool: &HttpTool, response: Response) -> Result<ToolOutput, ToolError> {
    let status = response.status();
    let bytes = body_within(response, tool.settings.answer_bytes_max)
        .await
        .map_err(|error| outcome(&error))?;
    let text = bytes.as_ref().map(|bytes| {
        let text = String::from_utf8_lossy(bytes);
        without_secrets(&text, tool.secret_headers.iter().map(|it| &it.1))
    });
    if !status.is_success() {
        let said = text.unwrap_or_default();
        let said: String = said.chars().take(ERROR_MAX_CHARS).collect();
        let told = outside(status.as_u16(), &Value::String(said));
        // A server that broke down, or one behind it, may have acted first.
        return Err(match status.as_u16() {
            ..=499 | 501 | 503 | 505 => failed(told),
            _ => ToolError::Unknown(told),
        });
    }
    let Some(text) = text else {
        // The server answered with success: it has acted.
        let told = format!(
            "(longer than {} bytes, and left out)",
            tool.settings.answer_bytes_max
        );
        return Ok(output(outside(status.as_u16(), &Value::String(told))));
    };
    let data = serde_json::from_str(&text).unwrap_or(Value::String(text));
    let data = match tool.settings.result.as_str() {
        "" => data,
        pointer => data.pointer(pointer).cloned().unwrap_or(Value::Null),
    };
    Ok(output(outside(status.as_u16(), &data)))
}

fn output(content: String) -> ToolOutput {
    ToolOutput {
        content,
        sources: Vec::new(),
        files: Vec::new(),
    }
}

/// The server's answer, fenced.
fn outside(status: u16, data: &Value) -> String {
    fenced([("status", status.into()), ("data", data.clone())])
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
