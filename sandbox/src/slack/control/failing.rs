//! What goes wrong, over HTTP: faults of calls, events and sockets, and the knobs.

use axum::body::Bytes;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::deliveries::SocketCommand;
use super::super::faults::{CallFault, EventFault, RetryPlan, SlackKnobs};
use super::super::requests::{self, RequestUrls};
use super::super::socket;
use super::{Server, SlackControlAnswer, SlackControlRefusal, done, read};

pub(super) async fn fault(State(shared): Server, body: Bytes) -> SlackControlAnswer {
    let body: Value = read(&body)?;
    let (method, kind) = (text_of(&body, "method")?, text_of(&body, "kind")?);
    match (method.as_str(), kind.as_str()) {
        ("event", "reorder") => {
            let count = usize::try_from(number(&body, "count")?).unwrap_or(usize::MAX);
            shared.change(|core| core.deliveries.reorder_next(count));
        }
        ("event", _) => shared.faults.next_event(event_fault(&kind, &body)?),
        ("upgrade", _) => shared.faults.next_upgrade(status(&body)?),
        _ => shared.faults.next(&method, call_fault(&kind, &body)?),
    }
    done()
}

/// Removes every scripted fault and resets the knobs.
pub(super) async fn clear(State(shared): Server) -> SlackControlAnswer {
    shared.faults.clear();
    done()
}

fn event_fault(kind: &str, body: &Value) -> Result<EventFault, SlackControlRefusal> {
    let count = || number(body, "count").map(|it| u32::try_from(it).unwrap_or(u32::MAX));
    match kind {
        "drop" => Ok(EventFault::Drop),
        "duplicate" => Ok(EventFault::Duplicate(count()?)),
        "duplicate_event" => Ok(EventFault::DuplicateEvent(count()?)),
        "delay" => Ok(EventFault::Delay(number(body, "ms")?)),
        _ => Err(SlackControlRefusal(format!(
            "no event fault of kind {kind}"
        ))),
    }
}

fn call_fault(kind: &str, body: &Value) -> Result<CallFault, SlackControlRefusal> {
    Ok(match kind {
        "latency" => CallFault::Latency(number(body, "ms")?),
        "status" => CallFault::Status(status(body)?),
        "status_after_apply" => CallFault::StatusAfterApply(status(body)?),
        "rate_limited" => CallFault::RateLimited(number(body, "retry_after_s")?),
        "error" => CallFault::Error(text_of(body, "error")?),
        "error_after_apply" => CallFault::ErrorAfterApply(text_of(body, "error")?),
        "reset_before" => CallFault::ResetBefore,
        "reset_after" => CallFault::ResetAfter,
        "lose_response" => CallFault::LoseResponse,
        "html" => CallFault::Html,
        "redirect" => CallFault::Redirect(text_of(body, "to")?),
        _ => return Err(SlackControlRefusal(format!("no fault of kind {kind}"))),
    })
}

pub(super) async fn knobs(State(shared): Server, body: Bytes) -> SlackControlAnswer {
    let fields: Map<String, Value> = read(&body)?;
    let mut knobs = shared.faults.knobs();
    for (name, value) in &fields {
        if !turned(&mut knobs, name, value) {
            return Err(SlackControlRefusal(format!(
                "no knob {name} that takes {value}"
            )));
        }
    }
    shared.faults.set_knobs(|current| *current = knobs);
    done()
}

/// Turns one knob; false when there is no such knob or the value does not fit.
fn turned(knobs: &mut SlackKnobs, name: &str, value: &Value) -> bool {
    let (number, flag) = (value.as_u64(), value.as_bool());
    match name {
        "latency_ms" => put(&mut knobs.latency_ms, number),
        "visibility_delay_ms" => put(&mut knobs.visibility_delay_ms, number),
        "echo_own_posts" => put(&mut knobs.echo_own_posts, flag),
        "echo_before_response" => put(&mut knobs.echo_before_response, flag),
        "mention_on_edit" => put(&mut knobs.mention_on_edit, flag),
        "mention_first" => put(&mut knobs.mention_first, flag.map(Some)),
        "post_gap_ms" => put(&mut knobs.post_gap_ms, number),
        "tiers_enforced" => put(&mut knobs.tiers_enforced, flag),
        "history_gap_ms" => put(&mut knobs.history_gap_ms, number),
        "history_page_max" => put(&mut knobs.history_page_max, number),
        "stream_life_ms" => put(&mut knobs.stream_life_ms, number),
        "trigger_life_ms" => put(&mut knobs.trigger_life_ms, number),
        "ping_every_ms" => put(&mut knobs.ping_every_ms, number),
        "disconnect_grace_ms" => put(&mut knobs.disconnect_grace_ms, number),
        "sign_in_redirects" => put(&mut knobs.sign_in_redirects, flag),
        "shares_delay_ms" => put(&mut knobs.shares_delay_ms, number),
        "account_error" => {
            knobs.account_error = value.as_str().map(str::to_owned);
            value.is_string() || value.is_null()
        }
        "retry" => {
            let plan = retry_plan(&knobs.retry, value);
            put(&mut knobs.retry, plan)
        }
        _ => false,
    }
}

/// Changes some fields of the plan for retries.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Retries {
    after_ms: Option<Vec<u64>>,
    same_envelope_id: Option<bool>,
    reason: Option<String>,
    http_after_ms: Option<Vec<u64>>,
    disable_from: Option<usize>,
}

fn retry_plan(old: &RetryPlan, value: &Value) -> Option<RetryPlan> {
    let wanted: Retries = serde_json::from_value(value.clone()).ok()?;
    let old = old.clone();
    Some(RetryPlan {
        after_ms: wanted.after_ms.unwrap_or(old.after_ms),
        same_envelope_id: wanted.same_envelope_id.unwrap_or(old.same_envelope_id),
        reason: wanted.reason.unwrap_or(old.reason),
        http_after_ms: wanted.http_after_ms.unwrap_or(old.http_after_ms),
        disable_from: wanted.disable_from.unwrap_or(old.disable_from),
    })
}

fn put<T>(knob: &mut T, value: Option<T>) -> bool {
    let is_given = value.is_some();
    if let Some(value) = value {
        *knob = value;
    }
    is_given
}

pub(super) async fn disconnect(State(shared): Server, body: Bytes) -> SlackControlAnswer {
    const REASONS: [&str; 4] = [
        "warning",
        "refresh_requested",
        "link_disabled",
        "too_many_websockets",
    ];
    let body: Value = read(&body)?;
    let reason = text_of(&body, "reason")?;
    let end = |command: fn() -> SocketCommand| {
        shared.change(|core| {
            core.deliveries.tell_all(command);
        });
    };
    match reason.as_str() {
        "close" => end(|| SocketCommand::Close),
        "abort" => end(|| SocketCommand::Abort),
        "stall" => shared.change(|core| core.deliveries.stall_all()),
        reason if REASONS.contains(&reason) => socket::disconnect(&shared, reason),
        _ => {
            return Err(SlackControlRefusal(format!(
                "sockets do not end for the reason {reason}"
            )));
        }
    }
    done()
}

pub(super) async fn request_urls(State(shared): Server, body: Bytes) -> SlackControlAnswer {
    let body: Value = read(&body)?;
    let Some(base) = body["base"].as_str() else {
        shared.change(|core| core.deliveries.requests.set(None));
        return done();
    };
    let urls = RequestUrls::under(base);
    requests::verify(&shared, &urls.events).await?;
    shared.change(|core| core.deliveries.requests.set(Some(urls)));
    socket::disconnect(&shared, "link_disabled");
    done()
}

pub(super) async fn redeliver(State(shared): Server) -> SlackControlAnswer {
    let plan = shared.faults.knobs().retry;
    shared.change(|core| core.deliveries.redeliver_all(&plan));
    done()
}

fn text_of(body: &Value, name: &str) -> Result<String, SlackControlRefusal> {
    let text = body[name].as_str().map(str::to_owned);
    text.ok_or_else(|| SlackControlRefusal(format!("`{name}` must be given, as text")))
}

fn number(body: &Value, name: &str) -> Result<u64, SlackControlRefusal> {
    let number = body[name].as_u64();
    number.ok_or_else(|| SlackControlRefusal(format!("`{name}` must be given, as a whole number")))
}

fn status(body: &Value) -> Result<u16, SlackControlRefusal> {
    let status = u16::try_from(number(body, "status")?).ok();
    status
        .filter(|status| (100..=599).contains(status))
        .ok_or_else(|| SlackControlRefusal("`status` must be an HTTP status".to_owned()))
}
