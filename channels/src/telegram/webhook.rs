//! The inbound half over HTTP: what Telegram posts to the bot's webhook.
//!
//! The life of an update: its secret is compared before anything of the body is read; it is translated as a poll's
//! would be, committed, and then answered 200. Anything else is answered 503, and Telegram sends it again, for a day.
//! Telegram sends one update of a chat at a time and the next one only after a 200, so the order of a chat is that of
//! the answers; different chats come in parallel, as many as `max_connections`. An answer never carries a Bot API call:
//! a message posted like that would have no message id.
//!
//! The secret is the configured one or derived from the token, so it is the same after every start and what waited at
//! Telegram meanwhile is not refused. Telegram never returns the secret it was given; therefore the URL carries a
//! fingerprint of it, keyed with the token, and a changed secret is a changed URL (`registration`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use tokio_util::sync::CancellationToken;

use crate::door::{Door, only};
use crate::mac;
use vocative_contract::channel::{BoxFuture, Inbound, Intake, Reporter};
use vocative_contract::clock::PlatformClock;
use vocative_contract::error::ChannelError;
use vocative_contract::identity::Identity;
use vocative_contract::webhook::{Receiver, WebhookRequest, WebhookResponse};

use super::registration::Registration;
use super::translate::{translate, update_id};

/// How long a commit may take, in milliseconds; Telegram itself waits longer.
const ANSWER_WITHIN_MS: u64 = 10_000;

/// The header that carries the secret.
const SECRET_HEADER: &str = "x-telegram-bot-api-secret-token";

/// The secret that Telegram must send with every update, and its fingerprint.
#[derive(Clone, Debug)]
pub(super) struct WebhookSecret {
    pub(super) secret: SecretString,
    /// Eight hexadecimal digits; they tell nothing without the token.
    pub(super) fingerprint: String,
}

impl WebhookSecret {
    /// The configured secret, or one that follows from the token.
    pub(super) fn new(token: &SecretString, configured: Option<&SecretString>) -> Self {
        let key = token.expose_secret().as_bytes();
        let derived = || SecretString::from(mac::hex(key, &[b"vocative webhook secret 1"]));
        let secret = configured.cloned().unwrap_or_else(derived);
        let parts: [&[u8]; 2] = [
            b"vocative webhook fingerprint 1",
            secret.expose_secret().as_bytes(),
        ];
        let mut fingerprint = mac::hex(key, &parts);
        fingerprint.truncate(8);
        Self {
            secret,
            fingerprint,
        }
    }
}

/// What the receiver and the inbound half of one channel share.
#[derive(Debug)]
pub(super) struct Webhook {
    channel: String,
    secret: SecretString,
    clock: Arc<PlatformClock>,
    door: Door,
    /// Who we are; not known before the first run.
    identity: std::sync::OnceLock<Identity>,
    /// Updates that were committed since the start.
    committed: AtomicU64,
}

impl Webhook {
    pub(super) fn new(channel: &str, secret: SecretString, clock: Arc<PlatformClock>) -> Self {
        Self {
            channel: channel.to_owned(),
            secret,
            clock,
            door: Door::new(channel),
            identity: std::sync::OnceLock::new(),
            committed: AtomicU64::new(0),
        }
    }

    /// The path of a channel's webhook.
    pub(super) fn path(channel: &str) -> String {
        format!("/telegram/{channel}")
    }

    /// How many updates were committed since the start.
    pub(super) fn committed(&self) -> u64 {
        self.committed.load(Ordering::Relaxed)
    }

    async fn take(&self, request: WebhookRequest) -> WebhookResponse {
        if self.is_stranger(&request.headers) {
            return WebhookResponse::of(401);
        }
        let Some(identity) = self.identity.get() else {
            return WebhookResponse::of(503);
        };
        let raw = String::from_utf8_lossy(&request.body);
        if update_id(&raw).is_none() {
            self.door.malformed();
        }
        let now_ms = self.clock.now_ms();
        let envelope = translate(&self.channel, identity, &raw, now_ms).heard_by(&self.clock);
        let within = Duration::from_millis(ANSWER_WITHIN_MS);
        let response = self
            .door
            .commit(envelope, request.body.len(), within)
            .await
            .response();
        if response.status == 200 {
            self.committed.fetch_add(1, Ordering::Relaxed);
        }
        response
    }
}

impl Receiver for Webhook {
    fn paths(&self) -> Vec<String> {
        vec![Self::path(&self.channel)]
    }

    fn is_stranger(&self, headers: &http::HeaderMap) -> bool {
        let claimed = only(headers, SECRET_HEADER).map_or(&b""[..], http::HeaderValue::as_bytes);
        let is_known = mac::is_same(self.secret.expose_secret().as_bytes(), claimed);
        if !is_known {
            self.door.refuse("its secret is missing or wrong");
        }
        !is_known
    }

    fn receive(&self, request: WebhookRequest) -> BoxFuture<'_, WebhookResponse> {
        Box::pin(self.take(request))
    }

    fn turned_away(&self, why: &'static str) {
        self.door.refuse(why);
    }
}

/// The inbound half: while it runs the door is open, and the webhook is kept registered.
pub(super) struct WebhookInbound {
    pub(super) webhook: Arc<Webhook>,
    pub(super) identity: Identity,
    pub(super) registration: Registration,
}

impl Inbound for WebhookInbound {
    fn run<'a>(
        &'a mut self,
        intake: Arc<dyn Intake>,
        reporter: Arc<dyn Reporter>,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        Box::pin(async move {
            // Setting it twice is harmless: a channel is bound to its account, so its identity never changes.
            let _ = self.webhook.identity.set(self.identity.clone());
            let opened = self.webhook.door.open(intake, Arc::clone(&reporter));
            self.registration
                .keep(&self.webhook, &*reporter, &cancel)
                .await;
            opened.close().await;
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(token: &str, configured: Option<&str>) -> (String, String) {
        let text = |it: &str| SecretString::from(it.to_owned());
        let made = WebhookSecret::new(&text(token), configured.map(text).as_ref());
        (made.secret.expose_secret().to_owned(), made.fingerprint)
    }

    #[test]
    fn a_secret_follows_from_the_token_or_is_the_configured_one() {
        let (derived, fingerprint) = secret("1:a", None);
        assert!(derived.len() == 64 && derived.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_eq!(secret("1:a", None), (derived.clone(), fingerprint.clone()));
        assert_ne!(secret("1:b", None).0, derived);
        let (configured, other) = secret("1:a", Some("my-secret"));
        assert_eq!(configured, "my-secret");
        assert_ne!(other, fingerprint);
        assert_eq!(other.len(), 8);
        // Without the token a fingerprint says nothing of a secret.
        assert_ne!(secret("1:b", Some("my-secret")).1, other);
    }
}
