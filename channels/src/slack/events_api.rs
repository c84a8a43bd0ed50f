//! The Events API over HTTP: what Slack posts to the app's request URLs.
//!
//! The life of a request: signature and age are checked over the raw bytes; the URL verification is
//! answered; everything else is translated as a socket's envelope would be, committed, and then
//! acknowledged (200). What is not committed within the time Slack waits is answered 503: Slack
//! sends it again, three times within about six minutes. What it gives up is read back (`catchup`).

use std::sync::Arc;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::door::Door;
use crate::json_object::read_object;
use vocative_contract::channel::{BoxFuture, Inbound, Intake, Reporter};
use vocative_contract::clock::PlatformClock;
use vocative_contract::error::ChannelError;
use vocative_contract::identity::Identity;
use vocative_contract::webhook::{Receiver, WebhookRequest, WebhookResponse};

use super::names::NameMemory;
use super::signature;
use super::socket::notice;
use super::translate::{SlackDelivery, translate};
use super::wire::Maybe;

/// How long a commit may take, in milliseconds. Slack waits 3 s for the whole exchange.
const ANSWER_WITHIN_MS: u64 = 2_500;

/// The ends of the paths, after `/slack/NAME`.
const EVENTS: &str = "/events";
const INTERACTIVITY: &str = "/interactivity";
const COMMANDS: &str = "/commands";

/// What the receiver and the inbound half of one channel share.
#[derive(Debug)]
pub(super) struct EventsApi {
    channel: String,
    signing_secret: SecretString,
    names: Arc<NameMemory>,
    clock: Arc<PlatformClock>,
    door: Door,
    /// Who we are; not known before the first run.
    identity: std::sync::OnceLock<Identity>,
}

impl EventsApi {
    pub(super) fn new(
        channel: &str,
        signing_secret: SecretString,
        names: Arc<NameMemory>,
        clock: Arc<PlatformClock>,
    ) -> Self {
        Self {
            channel: channel.to_owned(),
            signing_secret,
            names,
            clock,
            door: Door::new(channel),
            identity: std::sync::OnceLock::new(),
        }
    }

    async fn take(&self, request: WebhookRequest) -> WebhookResponse {
        let WebhookRequest {
            path,
            headers,
            body,
        } = request;
        let now_s = self.clock.now_ms() / 1_000;
        let secret = self.signing_secret.expose_secret();
        if let Err(why) = signature::check(secret, &headers, &body, now_s) {
            self.door.refuse(why);
            return WebhookResponse::of(401);
        }
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        if let Some(retry) = header("x-slack-retry-num") {
            let reason = header("x-slack-retry-reason").unwrap_or_default();
            tracing::debug!(channel.id = %self.channel, retry, reason, "Slack sends an event again");
        }
        match read(&path, &body) {
            SlackRequest::Challenge(challenge) => {
                tracing::info!(channel.id = %self.channel, "Slack verified the request URL");
                WebhookResponse {
                    body: challenge,
                    ..WebhookResponse::of(200)
                }
            }
            SlackRequest::Nothing => WebhookResponse::of(200),
            SlackRequest::Payload { kind, id, payload } => {
                if !is_json(&payload) {
                    self.door.malformed();
                }
                self.store(kind, &id, &payload, body.len()).await
            }
        }
    }

    async fn store(
        &self,
        kind: &'static str,
        id: &str,
        payload: &str,
        bytes: usize,
    ) -> WebhookResponse {
        let Some(identity) = self.identity.get() else {
            return WebhookResponse::of(503);
        };
        let delivery = SlackDelivery {
            channel: &self.channel,
            kind,
            envelope_id: id,
            payload,
            received_at_ms: self.clock.now_ms(),
        };
        let envelope = translate(&delivery, identity).heard_by(&self.clock);
        notice(&self.channel, &self.names, &envelope.event);
        let within = Duration::from_millis(ANSWER_WITHIN_MS);
        let taken = self.door.commit(envelope, bytes, within).await;
        match taken.form_problem() {
            Some(problem) => WebhookResponse {
                body: super::form::refusal(problem).to_string(),
                is_json: true,
                ..WebhookResponse::of(200)
            },
            None => taken.response(),
        }
    }
}

impl Receiver for EventsApi {
    fn paths(&self) -> Vec<String> {
        let path = |end: &str| format!("/slack/{}{end}", self.channel);
        [EVENTS, INTERACTIVITY, COMMANDS].map(path).to_vec()
    }

    fn is_stranger(&self, headers: &http::HeaderMap) -> bool {
        let claim = signature::claim(headers, self.clock.now_ms() / 1_000);
        claim.map_err(|why| self.door.refuse(why)).is_err()
    }

    /// Slack checks a command's address now and then, with a `GET` that holds nothing to store.
    fn is_certificate_check(&self, path: &str, query: &str) -> bool {
        path.ends_with(COMMANDS) && is_ssl_check(&form(query.as_bytes()))
    }

    fn receive(&self, request: WebhookRequest) -> BoxFuture<'_, WebhookResponse> {
        Box::pin(self.take(request))
    }

    fn turned_away(&self, why: &'static str) {
        self.door.refuse(why);
    }
}

/// What a request of Slack's says.
#[derive(Debug, PartialEq, Eq)]
enum SlackRequest {
    /// Slack verifies the URL and wants this back.
    Challenge(String),
    /// A check of whether the address works.
    Nothing,
    /// Something to store.
    Payload {
        kind: &'static str,
        id: String,
        payload: String,
    },
}

/// The fields of an Events API request that say what it is.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Outline {
    #[serde(rename = "type")]
    kind: Maybe<String>,
    challenge: Maybe<String>,
    event_id: Maybe<String>,
}

/// Reads a body by the path it came to. Pure and total: a body that is not understood is kept as it is.
fn read(path: &str, body: &[u8]) -> SlackRequest {
    if path.ends_with(EVENTS) {
        return read_event(body);
    }
    let fields = form(body);
    let field = |name: &str| fields.get(name).and_then(Value::as_str);
    if is_ssl_check(&fields) {
        return SlackRequest::Nothing;
    }
    if path.ends_with(COMMANDS) {
        let id = field("trigger_id").unwrap_or_default().to_owned();
        return SlackRequest::Payload {
            kind: "slash_commands",
            id,
            payload: Value::Object(fields).to_string(),
        };
    }
    SlackRequest::Payload {
        kind: "interactive",
        id: String::new(),
        payload: field("payload").unwrap_or_default().to_owned(),
    }
}

fn is_ssl_check(fields: &Map<String, Value>) -> bool {
    fields.get("ssl_check").and_then(Value::as_str) == Some("1")
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// The same for the fuzz targets (`fuzzing`).
pub(super) fn fuzzed(path: &str, body: &[u8]) -> Option<Result<String, (&'static str, String)>> {
    match read(path, body) {
        SlackRequest::Challenge(challenge) => Some(Ok(challenge)),
        SlackRequest::Nothing => None,
        SlackRequest::Payload { kind, payload, .. } => Some(Err((kind, payload))),
    }
}

fn read_event(body: &[u8]) -> SlackRequest {
    let payload = String::from_utf8_lossy(body).into_owned();
    let outline: Outline = read_object(&payload).unwrap_or_default();
    match (outline.kind.as_deref(), outline.challenge.0) {
        (Some("url_verification"), Some(challenge)) => SlackRequest::Challenge(challenge),
        _ => SlackRequest::Payload {
            kind: "events_api",
            id: outline.event_id.0.unwrap_or_default(),
            payload,
        },
    }
}

/// The fields of a form (`application/x-www-form-urlencoded`); of a name given twice, the first.
fn form(body: &[u8]) -> Map<String, Value> {
    let mut fields = Map::new();
    for pair in body.split(|byte| *byte == b'&').filter(|it| !it.is_empty()) {
        let at = pair.iter().position(|byte| *byte == b'=');
        let (name, value) = match at {
            Some(at) => (&pair[..at], &pair[at + 1..]),
            None => (pair, &[][..]),
        };
        fields
            .entry(decoded(name))
            .or_insert_with(|| Value::String(decoded(value)));
    }
    fields
}

/// A part of a form without its escapes; an invalid escape stays, invalid UTF-8 is replaced.
fn decoded(text: &[u8]) -> String {
    let digit = |at: usize| text.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let mut bytes = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        match (text[at], digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push(u8::try_from(high * 16 + low).unwrap_or_default());
                at += 3;
                continue;
            }
            (b'+', ..) => bytes.push(b' '),
            (byte, ..) => bytes.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The inbound half: the door is open while it runs.
pub(super) struct HttpInbound {
    pub(super) events_api: Arc<EventsApi>,
    pub(super) identity: Identity,
}

impl Inbound for HttpInbound {
    fn run<'a>(
        &'a mut self,
        intake: Arc<dyn Intake>,
        reporter: Arc<dyn Reporter>,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        Box::pin(async move {
            // Setting it twice is harmless: a channel is bound to its account, so its identity never changes.
            let _ = self.events_api.identity.set(self.identity.clone());
            let opened = self.events_api.door.open(intake, reporter);
            opened.until(cancel).await;
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use tokio::sync::Notify;

    use super::*;
    use vocative_contract::channel::{Accepted, ConnectionState, IntakeError};
    use vocative_contract::envelope::Envelope;
    use vocative_contract::identity::Platform;

    const SECRET: &str = "0123456789abcdef0123456789abcdef";
    const EVENT: &[u8] = br#"{"type":"event_callback","event_id":"Ev1","team_id":"T1","event":{}}"#;

    /// A request to the events' path, signed now.
    fn signed(body: &[u8]) -> WebhookRequest {
        let at_s = chrono::Utc::now().timestamp().to_string();
        let hash = crate::mac::hex(SECRET.as_bytes(), &[b"v0:", at_s.as_bytes(), b":", body]);
        let mut headers = http::HeaderMap::new();
        let value = |text: String| text.parse().expect("it is a header's value");
        headers.insert("x-slack-signature", value(format!("v0={hash}")));
        headers.insert("x-slack-request-timestamp", value(at_s));
        WebhookRequest {
            path: "/slack/acme/events".to_owned(),
            headers,
            body: body.to_vec(),
        }
    }

    fn events_api() -> EventsApi {
        let secret = SecretString::from(SECRET.to_owned());
        EventsApi::new("acme", secret, Arc::default(), Arc::default())
    }

    fn identity() -> Identity {
        Identity {
            platform: Platform::Slack,
            account: "T1".to_owned(),
            account_name: "Acme".to_owned(),
            user_id: "U1".to_owned(),
            other_ids: Vec::new(),
            username: None,
            display_name: "vocative".to_owned(),
            warnings: Vec::new(),
            organisation: None,
        }
    }

    /// A disk that blocks until it is released.
    #[derive(Default)]
    struct Disk {
        free: Notify,
        stored: AtomicU64,
        late: AtomicU64,
    }

    impl Intake for Disk {
        fn accept(&self, _envelope: Envelope) -> BoxFuture<'_, Result<Accepted, IntakeError>> {
            Box::pin(async {
                self.free.notified().await;
                self.stored.fetch_add(1, Ordering::Relaxed);
                Ok(Accepted::default())
            })
        }
    }

    impl Reporter for Disk {
        fn state(&self, _state: ConnectionState) {}
        fn heard(&self) {}
        fn acknowledged(&self, _lag_ms: u64) {}
        fn malformed(&self) {}
        fn late(&self) {
            self.late.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[tokio::test]
    async fn a_stuck_disk_is_answered_503_and_what_was_begun_is_stored() {
        const { assert!(ANSWER_WITHIN_MS < 3_000, "Slack hangs up after 3 s") };
        let (events_api, disk) = (events_api(), Arc::<Disk>::default());
        let (intake, reporter) = (Arc::clone(&disk) as _, Arc::clone(&disk) as _);
        let opened = events_api.door.open(intake, reporter);
        let delivery = SlackDelivery {
            channel: "acme",
            kind: "events_api",
            envelope_id: "Ev1",
            payload: std::str::from_utf8(EVENT).unwrap(),
            received_at_ms: 0,
        };
        let envelope = translate(&delivery, &identity());
        let within = Duration::from_millis(20);
        let taken = events_api.door.commit(envelope, EVENT.len(), within).await;
        assert_eq!(taken.response(), WebhookResponse::of(503));
        assert_eq!(disk.late.load(Ordering::Relaxed), 1);
        disk.free.notify_one();
        opened.close().await;
        assert_eq!(disk.stored.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn before_the_channel_hears_slack_may_verify_and_is_asked_to_send_the_rest_again() {
        let events_api = events_api();
        let challenge = br#"{"type":"url_verification","challenge":"abc"}"#;
        let answer = events_api.receive(signed(challenge)).await;
        assert_eq!((answer.status, answer.body.as_str()), (200, "abc"));
        assert_eq!(events_api.receive(signed(EVENT)).await.status, 503);
        let mut forged = signed(challenge);
        forged.body.push(b' ');
        let answer = events_api.receive(forged).await;
        assert_eq!((answer.status, answer.body.as_str()), (401, ""));
    }

    fn payload(kind: &'static str, id: &str, payload: &str) -> SlackRequest {
        SlackRequest::Payload {
            kind,
            id: id.to_owned(),
            payload: payload.to_owned(),
        }
    }

    #[test]
    fn a_request_is_read_by_its_path() {
        let challenge = br#"{"type":"url_verification","challenge":"abc"}"#;
        let event = r#"{"type":"event_callback","event_id":"Ev1","event":{}}"#;
        let command = r#"{"command":"/agent","text":"a b","trigger_id":"1.2"}"#;
        let cases: [(&str, &[u8], SlackRequest); 9] = [
            (
                "events",
                challenge,
                SlackRequest::Challenge("abc".to_owned()),
            ),
            (
                "events",
                event.as_bytes(),
                payload("events_api", "Ev1", event),
            ),
            ("events", b"no JSON", payload("events_api", "", "no JSON")),
            ("events", b"\xff", payload("events_api", "", "\u{fffd}")),
            (
                "interactivity",
                b"payload=%7B%22a%22%3A+1%7D",
                payload("interactive", "", "{\"a\": 1}"),
            ),
            ("interactivity", b"", payload("interactive", "", "")),
            ("commands", b"ssl_check=1&token=x", SlackRequest::Nothing),
            (
                "commands",
                b"command=%2Fagent&text=a+b&trigger_id=1.2",
                payload("slash_commands", "1.2", command),
            ),
            (
                "commands",
                challenge,
                payload(
                    "slash_commands",
                    "",
                    r#"{"{\"type\":\"url_verification\",\"challenge\":\"abc\"}":""}"#,
                ),
            ),
        ];
        for (path, body, wanted) in cases {
            let path = format!("/slack/acme/{path}");
            assert_eq!(read(&path, body), wanted, "{path} {body:?}");
        }
    }

    #[test]
    fn a_form_is_read_whatever_it_holds() {
        let cases: [(&[u8], &str); 7] = [
            (b"a=1&b=2", r#"{"a":"1","b":"2"}"#),
            (b"a=1&a=2", r#"{"a":"1"}"#),
            (b"&&a&=&", r#"{"":"","a":""}"#),
            (b"a=%4", r#"{"a":"%4"}"#),
            (b"a=%zz%41", r#"{"a":"%zzA"}"#),
            (b"a=%ff", "{\"a\":\"\u{fffd}\"}"),
            (b"a=b=c", r#"{"a":"b=c"}"#),
        ];
        for (body, wanted) in cases {
            // Compared as values: whether maps keep the order of keys depends on the build's features.
            let wanted: Value = serde_json::from_str(wanted).unwrap();
            assert_eq!(Value::Object(form(body)), wanted, "{body:?}");
        }
    }
}
