//! The webhook: set and removed as the platform does it, and called in its order.
//!
//! Owns where updates are delivered and with what result. Each chat's messages form a sub-queue that is strictly in
//! order with one in flight; sub-queues run in parallel up to `max_connections` (telegram.md §4). Only loopback
//! addresses are called, and only when a knob lets them be set.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::failure::ApiFailure;
use super::methods::{self, Success};
use super::params::MethodParams;
use super::polling::allowed_kinds;
use super::queue::UpdateQueue;
use super::rooms::TelegramRooms;
use super::server::{self, SharedTelegram};
use crate::probe;
use crate::wire::{WireKind, WirePeer};

/// The ports that Telegram's own servers allow for a webhook.
const PORTS: [&str; 4] = ["443", "80", "88", "8443"];
/// The longest secret.
const SECRET_MAX_CHARS: usize = 256;
/// How many chats are delivered at the same time by default.
const CONNECTIONS_DEFAULT: i64 = 40;
/// The longest wait that a `Retry-After` of the webhook may ask for, in seconds.
const RETRY_AFTER_MAX_S: u64 = 3_600;
/// The least time between two calls of setWebhook.
const SET_AGAIN: Duration = Duration::from_secs(1);

/// Where updates go, and how deliveries went.
#[derive(Debug, Default)]
pub(super) struct RegisteredWebhook {
    url: String,
    secret: String,
    max_connections: i64,
    last_error: Option<(i64, String)>,
    set_at: Option<Instant>,
    /// Sub-queues with an update in flight.
    in_flight: HashSet<String>,
    /// Updates that failed: how often, and when they are due again.
    failed: HashMap<i64, (u32, Instant)>,
}

/// An update in flight.
#[derive(Debug)]
struct WebhookCall {
    update: i64,
    line: String,
    url: String,
    secret: String,
    body: Value,
}

impl RegisteredWebhook {
    pub(super) fn is_set(&self) -> bool {
        !self.url.is_empty()
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Takes the updates that can be sent now; also returns when the next one is due.
    fn start(&mut self, queue: &UpdateQueue) -> (Vec<WebhookCall>, Option<Instant>) {
        let (mut calls, mut next) = (Vec::new(), None::<Instant>);
        if !self.is_set() {
            return (calls, next);
        }
        let now = Instant::now();
        let most = usize::try_from(self.max_connections).unwrap_or(1);
        let mut held: HashSet<String> = self.in_flight.clone();
        for (id, body) in queue.iter() {
            let line = line_of(id, body);
            if held.contains(&line) {
                continue;
            }
            let due = self.failed.get(&id).map_or(now, |(_, due)| *due);
            if due > now || self.in_flight.len() >= most {
                if due > now {
                    next = Some(next.map_or(due, |next| next.min(due)));
                }
                held.insert(line);
                continue;
            }
            held.insert(line.clone());
            self.in_flight.insert(line.clone());
            calls.push(WebhookCall {
                update: id,
                line,
                url: self.url.clone(),
                secret: self.secret.clone(),
                body: body.clone(),
            });
        }
        (calls, next)
    }

    /// Notes that a call came back; waits are in "seconds" of that many milliseconds.
    fn end(&mut self, call: &WebhookCall, failure: Option<Failure>, now_s: i64, second_ms: u64) {
        self.in_flight.remove(&call.line);
        let Some(failure) = failure else {
            self.failed.remove(&call.update);
            return;
        };
        self.last_error = Some((now_s, failure.message));
        let entry = self.failed.entry(call.update);
        let (count, due) = entry.or_insert((0, Instant::now()));
        *count += 1;
        // At once, then 2, 4, 8 … seconds up to a minute or two.
        let wait_s = failure.retry_after_s.unwrap_or(match *count {
            1 => 0,
            count => (1_u64 << (count - 1).min(7)).min(rand::random_range(60..=120)),
        });
        *due = Instant::now() + Duration::from_millis(wait_s * second_ms);
    }
}

/// Why an update was not accepted.
#[derive(Debug)]
struct Failure {
    message: String,
    retry_after_s: Option<u64>,
}

/// The sub-queue of an update.
fn line_of(id: i64, body: &Value) -> String {
    let fields = body.as_object().into_iter().flatten();
    let member = fields.into_iter().find(|(name, _)| *name != "update_id");
    let Some((kind, object)) = member else {
        return format!("update {id}");
    };
    match kind.as_str() {
        "message" | "edited_message" | "channel_post" | "edited_channel_post" => {
            format!("chat {}", object["chat"]["id"])
        }
        "callback_query" => format!("callback {}", object["from"]["id"]),
        "message_reaction" => format!("reaction {}", object["chat"]["id"]),
        kind => format!("{kind} {}", object["chat"]["id"]),
    }
}

/// Delivers waiting updates while a webhook is set, until the server stops.
pub(super) async fn run(shared: SharedTelegram) {
    let mut changes = shared.changes();
    loop {
        let (calls, next) = shared.peek(|rooms| {
            let now_s = rooms.now_s();
            rooms.queue.expire(now_s);
            rooms.webhook.start(&rooms.queue)
        });
        for call in calls {
            let shared = shared.clone();
            tokio::spawn(async move {
                let failure = deliver(&shared, &call).await.err();
                let second_ms = shared.faults().webhook_second_ms();
                shared.act(|rooms| {
                    let now_s = rooms.now_s();
                    if failure.is_none() {
                        rooms.queue.remove(call.update);
                    }
                    rooms.webhook.end(&call, failure, now_s, second_ms);
                });
            });
        }
        let far = Instant::now() + Duration::from_secs(3_600);
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = tokio::time::sleep_until(next.unwrap_or(far)) => {}
        }
    }
}

async fn deliver(shared: &SharedTelegram, call: &WebhookCall) -> Result<(), Failure> {
    let failure = |message: &str| Failure {
        message: message.to_owned(),
        retry_after_s: None,
    };
    let Some((addr, path)) = address_of(&call.url) else {
        return Err(failure("Connection refused"));
    };
    let mut headers = vec![("Content-Type", "application/json")];
    if !call.secret.is_empty() {
        headers.push(("X-Telegram-Bot-Api-Secret-Token", &call.secret));
    }
    let log = |kind, status, body| {
        shared
            .wire()
            .append(WirePeer::Telegram, kind, "webhook", status, body);
    };
    log(WireKind::FrameOut, None, call.body.clone());
    let body = call.body.to_string();
    let answer = probe::http(addr, "POST", &path, &headers, body.as_bytes()).await;
    let (status, headers, body) = answer.map_err(|error| match error.kind() {
        std::io::ErrorKind::TimedOut => failure("Read timeout expired"),
        std::io::ErrorKind::ConnectionRefused => failure("Connection refused"),
        _ => failure("Connection closed"),
    })?;
    let said = String::from_utf8_lossy(&body).into_owned();
    log(WireKind::FrameIn, Some(status), json!(said));
    if (200..300).contains(&status) {
        answer_in_response(shared, &said).await;
        return Ok(());
    }
    let retry_after = headers.iter().find(|(name, _)| name == "retry-after");
    let seconds = retry_after.and_then(|(_, value)| value.parse::<u64>().ok());
    let reason = axum::http::StatusCode::from_u16(status).ok();
    let reason = reason.and_then(|status| status.canonical_reason());
    Err(Failure {
        message: format!(
            "Wrong response from the webhook: {status} {}",
            reason.unwrap_or_default()
        ),
        retry_after_s: seconds.map(|seconds| seconds.min(RETRY_AFTER_MAX_S)),
    })
}

/// Carries out the method that a webhook answered with. Its bot never learns the result.
async fn answer_in_response(shared: &SharedTelegram, said: &str) {
    let Ok(Value::Object(call)) = serde_json::from_str(said) else {
        return;
    };
    let Some(method) = call.get("method").and_then(Value::as_str) else {
        return;
    };
    let method = method.to_owned();
    let name = methods::spelled(&method);
    let params = MethodParams::of_json(call);
    let log = |kind, status, body| {
        let wire = shared.wire();
        wire.append(WirePeer::Telegram, kind, &name, status, body);
    };
    log(WireKind::Request, None, params.for_log());
    let lower = method.to_ascii_lowercase();
    let is_barred = lower.starts_with("get")
        || ["setwebhook", "deletewebhook", "close", "logout"].contains(&lower.as_str());
    if is_barred {
        log(
            WireKind::Response,
            None,
            json!("not carried out: no method for a webhook's answer"),
        );
        return;
    }
    // The future is large, and this one waits in every delivery.
    match Box::pin(server::call(shared, &method, &params, None)).await {
        Ok(success) => log(WireKind::Response, Some(200), success.body()),
        Err(failure) => log(WireKind::Response, Some(failure.code), failure.body()),
    }
}

/// Where a URL without TLS on a loopback address leads.
fn address_of(url: &str) -> Option<(SocketAddr, String)> {
    let rest = url.strip_prefix("http://")?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let addr: SocketAddr = authority.parse().ok()?;
    let path = if path.is_empty() { "/" } else { path };
    addr.ip().is_loopback().then(|| (addr, path.to_owned()))
}

/// `setWebhook`. `is_local`: loopback addresses without TLS are accepted, as by a self-hosted server.
pub(super) fn set(
    rooms: &mut TelegramRooms,
    params: &MethodParams,
    is_local: bool,
) -> Result<Success, ApiFailure> {
    let url = params.text("url");
    if url.is_empty() {
        return Ok(delete(rooms, params));
    }
    let secret = params.text("secret_token");
    check_secret(secret)?;
    if !(is_local && address_of(url).is_some()) {
        check_url(url)?;
    }
    let is_early = |at: &Instant| at.elapsed() < SET_AGAIN;
    if rooms.webhook.set_at.as_ref().is_some_and(is_early) {
        return Err(ApiFailure::flood(1));
    }
    let max_connections = match params.integer("max_connections") {
        0 => CONNECTIONS_DEFAULT,
        asked => asked.clamp(1, 100),
    };
    let allowed = allowed_kinds(params.text("allowed_updates"));
    let kept = allowed.unwrap_or_else(|| rooms.allowed.clone());
    let webhook = &rooms.webhook;
    let is_same = (webhook.url.as_str(), webhook.secret.as_str()) == (url, secret)
        && webhook.max_connections == max_connections
        && rooms.allowed == kept;
    rooms.allowed = kept;
    if params.boolean("drop_pending_updates") {
        rooms.queue.clear();
    }
    if is_same {
        return Ok(Success::described("Webhook is already set"));
    }
    rooms.webhook = RegisteredWebhook {
        url: url.to_owned(),
        secret: secret.to_owned(),
        max_connections,
        last_error: None,
        set_at: Some(Instant::now()),
        in_flight: std::mem::take(&mut rooms.webhook.in_flight),
        failed: HashMap::new(),
    };
    Ok(Success::described("Webhook was set"))
}

fn check_secret(secret: &str) -> Result<(), ApiFailure> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    if secret.len() > SECRET_MAX_CHARS {
        return Err(ApiFailure::bad("secret token is too long"));
    }
    if !secret.bytes().all(plain) {
        return Err(ApiFailure::bad(
            "secret token contains unallowed characters",
        ));
    }
    Ok(())
}

fn check_url(url: &str) -> Result<(), ApiFailure> {
    let Some(rest) = url.strip_prefix("https://") else {
        return Err(ApiFailure::bad(
            "bad webhook: An HTTPS URL must be provided for webhook",
        ));
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    match authority.rsplit_once(':') {
        Some((_, port)) if !PORTS.contains(&port) => Err(ApiFailure::bad(
            "bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443",
        )),
        _ => Ok(()),
    }
}

/// `deleteWebhook`.
pub(super) fn delete(rooms: &mut TelegramRooms, params: &MethodParams) -> Success {
    if params.boolean("drop_pending_updates") {
        rooms.queue.clear();
    }
    let was_set = rooms.webhook.is_set();
    rooms.webhook = RegisteredWebhook {
        in_flight: std::mem::take(&mut rooms.webhook.in_flight),
        ..RegisteredWebhook::default()
    };
    Success::described(match was_set {
        true => "Webhook was deleted",
        false => "Webhook is already deleted",
    })
}

/// `getWebhookInfo`.
pub(super) fn info(rooms: &mut TelegramRooms) -> Success {
    let now_s = rooms.now_s();
    rooms.queue.expire(now_s);
    let webhook = &rooms.webhook;
    let mut info = json!({
        "url": webhook.url, "has_custom_certificate": false,
        "pending_update_count": rooms.queue.len(),
    });
    if webhook.is_set() {
        info["max_connections"] = json!(webhook.max_connections);
        info["ip_address"] = json!("203.0.113.10");
    }
    if let Some((date_s, message)) = &webhook.last_error {
        info["last_error_date"] = json!(date_s);
        info["last_error_message"] = json!(message);
    }
    if let Some(kinds) = &rooms.allowed {
        info["allowed_updates"] = json!(kinds);
    }
    info.into()
}
