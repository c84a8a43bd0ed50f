//! Delivery over HTTP: request URLs, signatures, retries, and when Slack disables an app.
//!
//! Owns where requests go and their recent outcomes; which delivery is tried when is decided in `deliveries`. Written
//! from slack.md §2. Only loopback addresses are called, without TLS.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::time::{Instant, timeout};

use super::deliveries::EnvelopeKind;
use super::interactions;
use super::state::SharedSlack;
use crate::probe::{self, RawHttpAnswer};
use crate::wire::{WireKind, WirePeer, now_ms};

/// How long the app may take to answer (slack.md §2.5).
const ANSWER_WAIT: Duration = Duration::from_secs(3);
/// How many redirects are followed.
const REDIRECTS_MAX: usize = 2;
/// The time over which outcomes are counted before an app is disabled.
const WINDOW: Duration = Duration::from_secs(60 * 60);
/// The share of failures, in per cent, above which an app is disabled.
const FAILURES_MAX_PERCENT: usize = 95;

/// Where an app without Socket Mode is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestUrls {
    /// For event subscriptions.
    pub events: String,
    /// For interactivity.
    pub interactivity: String,
    /// For every slash command.
    pub commands: String,
}

impl RequestUrls {
    /// The three addresses under one, ending in `/events`, `/interactivity` and `/commands`.
    #[must_use]
    pub fn under(base: &str) -> Self {
        let at = |end: &str| format!("{}/{end}", base.trim_end_matches('/'));
        Self {
            events: at("events"),
            interactivity: at("interactivity"),
            commands: at("commands"),
        }
    }

    fn of(&self, kind: EnvelopeKind) -> &str {
        match kind {
            EnvelopeKind::EventsApi => &self.events,
            EnvelopeKind::Interactive => &self.interactivity,
            EnvelopeKind::SlashCommands => &self.commands,
        }
    }
}

/// One attempt that is to be made.
#[derive(Clone, Debug)]
pub(super) struct DeliveryAttempt {
    pub(super) delivery: u64,
    pub(super) kind: EnvelopeKind,
    pub(super) payload: Value,
    /// Retries made before this one, and why.
    pub(super) retry: u32,
    pub(super) reason: String,
    url: String,
}

/// The outcome of an attempt.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum AttemptOutcome {
    /// 2xx in time, with what the body holds.
    Acknowledged(Option<Value>),
    /// Anything else, by its name in the retry header.
    Failed {
        reason: &'static str,
        /// The app asked not to be sent this again.
        no_retry: bool,
    },
}

/// Where an app is called, which attempts wait to be sent, and their recent outcomes.
#[derive(Default)]
pub(super) struct Requests {
    urls: Option<RequestUrls>,
    is_disabled: bool,
    to_send: Vec<DeliveryAttempt>,
    outcomes: VecDeque<(Instant, bool)>,
}

impl Requests {
    /// Whether Socket Mode is off.
    pub(super) fn is_on(&self) -> bool {
        self.urls.is_some()
    }

    pub(super) fn is_disabled(&self) -> bool {
        self.is_disabled
    }

    /// Switches to request URLs, or to sockets.
    pub(super) fn set(&mut self, urls: Option<RequestUrls>) {
        self.urls = urls;
        self.is_disabled = false;
        self.outcomes.clear();
    }

    /// Notes an attempt to be made; false if the app was disabled.
    pub(super) fn push(
        &mut self,
        (delivery, kind): (u64, EnvelopeKind),
        payload: Value,
        (retry, reason): (u32, String),
    ) -> bool {
        let Some(urls) = &self.urls else { return false };
        if self.is_disabled && kind == EnvelopeKind::EventsApi {
            return false;
        }
        self.to_send.push(DeliveryAttempt {
            delivery,
            kind,
            payload,
            retry,
            reason,
            url: urls.of(kind).to_owned(),
        });
        true
    }

    pub(super) fn take(&mut self) -> Vec<DeliveryAttempt> {
        std::mem::take(&mut self.to_send)
    }

    /// Counts an outcome; too many failures of an app with many requests switch its events off.
    pub(super) fn note(&mut self, is_acknowledged: bool, busy_from: usize) {
        let now = Instant::now();
        self.outcomes.push_back((now, is_acknowledged));
        while self
            .outcomes
            .front()
            .is_some_and(|(at, _)| now - *at > WINDOW)
        {
            self.outcomes.pop_front();
        }
        let count = self.outcomes.len();
        let failed = self.outcomes.iter().filter(|(_, ok)| !ok).count();
        if count >= busy_from.max(1) && failed * 100 > count * FAILURES_MAX_PERCENT {
            self.is_disabled = true;
        }
    }
}

/// Makes the attempts as they come, until the server stops.
pub(super) async fn run(shared: Arc<SharedSlack>) {
    loop {
        let attempts = shared.take_attempts();
        for attempt in attempts {
            let shared = Arc::clone(&shared);
            tokio::spawn(async move {
                let outcome = make(&shared, &attempt).await;
                let plan = shared.faults.knobs().retry;
                shared.change(|core| {
                    core.deliveries.note_outcome(&attempt, outcome, &plan);
                    interactions::take_answers(&shared, core);
                });
            });
        }
        tokio::select! {
            () = shared.stop.cancelled() => return,
            () = shared.send_hint.notified() => {}
        }
    }
}

async fn make(shared: &SharedSlack, attempt: &DeliveryAttempt) -> AttemptOutcome {
    let (content_type, body) = encoded(attempt);
    let mut headers = signed(shared, content_type, body.as_bytes());
    if attempt.retry > 0 {
        headers.push(("X-Slack-Retry-Num", attempt.retry.to_string()));
        headers.push(("X-Slack-Retry-Reason", attempt.reason.clone()));
    }
    let (wire, name) = (&shared.wire, attempt.kind.name());
    let log = |kind, status, body| wire.append(WirePeer::Slack, kind, name, status, body);
    log(WireKind::FrameOut, None, attempt.payload.clone());
    let answer = tokio::select! {
        () = shared.stop.cancelled() => Err("connection_failed"),
        answer = timeout(ANSWER_WAIT, post(&attempt.url, &headers, body.as_bytes())) => {
            answer.unwrap_or(Err("http_timeout"))
        }
    };
    let (status, response_headers, body) = match answer {
        Ok(answer) => answer,
        Err(reason) => {
            log(WireKind::FrameIn, None, json!(reason));
            let no_retry = false;
            return AttemptOutcome::Failed { reason, no_retry };
        }
    };
    let said = String::from_utf8_lossy(&body).into_owned();
    log(WireKind::FrameIn, Some(status), json!(said));
    if (200..300).contains(&status) {
        // A command is answered with JSON or with bare words.
        let words = || (attempt.kind == EnvelopeKind::SlashCommands).then(|| json!({"text": said}));
        let answer = serde_json::from_str(&said).ok().or_else(words);
        return AttemptOutcome::Acknowledged(answer.filter(|_| !said.trim().is_empty()));
    }
    let asked = |(name, value): &(String, String)| name == "x-slack-no-retry" && value == "1";
    AttemptOutcome::Failed {
        reason: "http_error",
        no_retry: response_headers.iter().any(asked),
    }
}

/// Asks the app to prove that an address is its own (slack.md §2.1).
pub(super) async fn verify(shared: &SharedSlack, url: &str) -> Result<(), String> {
    if address_of(url).is_none() {
        return Err("a request URL must be https (here: http on a loopback address)".to_owned());
    }
    let challenge = uuid::Uuid::new_v4().simple().to_string();
    let body = json!({"token": "legacy", "type": "url_verification", "challenge": challenge});
    let body = body.to_string();
    let headers = signed(shared, "application/json", body.as_bytes());
    let answer = timeout(ANSWER_WAIT, post(url, &headers, body.as_bytes())).await;
    let (status, _, body) = answer
        .unwrap_or(Err("http_timeout"))
        .map_err(|reason| format!("the URL did not answer: {reason}"))?;
    let said = String::from_utf8_lossy(&body);
    let json: Value = serde_json::from_str(&said).unwrap_or_default();
    let is_told = said.trim() == challenge
        || json["challenge"] == challenge.as_str()
        || said.trim() == format!("challenge={challenge}");
    match (status, is_told) {
        (200, true) => Ok(()),
        (200, false) => Err("the URL did not answer with the challenge".to_owned()),
        _ => Err(format!("the URL answered {status}")),
    }
}

/// Posts a body and follows redirects.
async fn post(
    url: &str,
    headers: &[(&'static str, String)],
    body: &[u8],
) -> Result<RawHttpAnswer, &'static str> {
    let mut url = url.to_owned();
    for _ in 0..=REDIRECTS_MAX {
        let (addr, path) = address_of(&url).ok_or("connection_failed")?;
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let answer = probe::http(addr, "POST", &path, &headers, body).await;
        let answer = answer.map_err(|_| "connection_failed")?;
        let location = answer.1.iter().find(|(name, _)| name == "location");
        match (answer.0, location) {
            (301 | 302, Some((_, to))) => url.clone_from(to),
            _ => return Ok(answer),
        }
    }
    Err("too_many_redirects")
}

/// The headers of a body that Slack signs.
fn signed(shared: &SharedSlack, content_type: &str, body: &[u8]) -> Vec<(&'static str, String)> {
    let secret = shared.read(|core| core.world.signing_secret.clone());
    let at_s = (now_ms() / 1_000).to_string();
    let signature = signature(&secret, &at_s, body);
    vec![
        ("Content-Type", content_type.to_owned()),
        (
            "User-Agent",
            "Slackbot 1.0 (+https://api.slack.com/robots)".to_owned(),
        ),
        ("X-Slack-Request-Timestamp", at_s),
        ("X-Slack-Signature", signature),
    ]
}

/// The signature of a body at a time in Unix seconds (slack.md §2.4).
#[must_use]
pub fn signature(signing_secret: &str, at_s: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(signing_secret.as_bytes())
        .expect("a key of any length will do");
    for part in [b"v0:", at_s.as_bytes(), b":", body] {
        mac.update(part);
    }
    let hash = mac.finalize().into_bytes();
    let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("v0={digits}")
}

/// The body in which a payload travels.
fn encoded(attempt: &DeliveryAttempt) -> (&'static str, String) {
    const FORM: &str = "application/x-www-form-urlencoded";
    let payload = &attempt.payload;
    match attempt.kind {
        EnvelopeKind::EventsApi => ("application/json", payload.to_string()),
        EnvelopeKind::Interactive => {
            let body = format!("payload={}", percent_encoded(&payload.to_string()));
            (FORM, body)
        }
        EnvelopeKind::SlashCommands => {
            let fields = payload.as_object().into_iter().flatten();
            let pairs = fields.map(|(name, value)| {
                let value = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                format!("{name}={}", percent_encoded(&value))
            });
            (FORM, pairs.collect::<Vec<_>>().join("&"))
        }
    }
}

fn percent_encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'.' | b'_' => {
                encoded.push(char::from(byte));
            }
            b' ' => encoded.push('+'),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
        encoded
    })
}

/// Where a URL without TLS on a loopback address leads.
fn address_of(url: &str) -> Option<(SocketAddr, String)> {
    let rest = url.strip_prefix("http://")?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let addr: SocketAddr = authority.parse().ok()?;
    let path = if path.is_empty() { "/" } else { path };
    addr.ip().is_loopback().then(|| (addr, path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_signed_as_slack_signs_it() {
        let body = br#"{"type":"url_verification","challenge":"abc"}"#;
        assert_eq!(
            signature("0123456789abcdef0123456789abcdef", "1763712000", body),
            "v0=cab6e9435282db55b6e5a0339a34e4219e640997efef39afc372195269d322eb"
        );
    }

    #[test]
    fn a_busy_app_that_fails_is_given_up_and_a_quiet_one_is_not() {
        let mut busy = Requests::default();
        busy.note(true, 25);
        for _ in 0..23 {
            busy.note(false, 25);
        }
        assert!(!busy.is_disabled());
        busy.note(false, 25);
        assert!(busy.is_disabled());
        busy.set(None);
        assert!(!busy.is_disabled());
    }
}
