//! What the fuzz targets call of this adapter and other crates may not.
//!
//! Hidden and not part of the stable API: thin wrappers of the pure parts, which can so stay private. See
//! `fuzz/README.md`.

use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Map, Value};

use vocative_contract::card::{Card, CardMisfit};
use vocative_contract::envelope::{Envelope, Place};
use vocative_contract::error::{ChannelError, Fallback};
use vocative_contract::history::PastMessage;
use vocative_contract::identity::Identity;
use vocative_contract::outbound::Part;
use vocative_contract::people::People;

use super::socket::{FrameContent, said};
use super::translate::{SlackDelivery, translate};

/// What a text frame of a socket becomes; `None` if it is nothing to acknowledge.
#[must_use]
pub fn frame(text: &str, identity: &Identity, received_at_ms: i64) -> Option<Envelope> {
    let FrameContent::Envelope {
        kind, id, payload, ..
    } = said(text)
    else {
        return None;
    };
    let delivery = SlackDelivery {
        channel: "acme",
        kind: &kind,
        envelope_id: &id,
        payload,
        received_at_ms,
    };
    Some(translate(&delivery, identity))
}

/// Whether a request's timestamp and signature are right, for a body that came at `now_s`.
#[must_use]
pub fn is_signed(secret: &str, timestamp: &str, signature: &str, body: &[u8], now_s: i64) -> bool {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("x-slack-request-timestamp", timestamp),
        ("x-slack-signature", signature),
    ] {
        if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
            headers.insert(name, value);
        }
    }
    super::signature::check(secret, &headers, body, now_s).is_ok()
}

/// The signature that Slack gives a body.
#[must_use]
pub fn signature(secret: &str, timestamp: &str, body: &[u8]) -> String {
    let parts: [&[u8]; 4] = [b"v0:", timestamp.as_bytes(), b":", body];
    format!("v0={}", crate::mac::hex(secret.as_bytes(), &parts))
}

/// What a request to one of our paths becomes: what Slack wants back, or the kind and the payload of an envelope;
/// `None` if it only checks whether the address works.
#[must_use]
pub fn request(path: &str, body: &[u8]) -> Option<Result<String, (&'static str, String)>> {
    super::events_api::fuzzed(path, body)
}

/// What a message of `conversations.history` becomes.
#[must_use]
pub fn past_message(
    place: &Place,
    message: Map<String, Value>,
    identity: &Identity,
    received_at_ms: i64,
) -> Option<PastMessage> {
    super::history::past_message("acme", place, message, identity, received_at_ms)
}

/// What an answer of the Web API means.
///
/// # Errors
/// As a caller of the API gets them.
pub fn answer(status: u16, retry_after: Option<&str>, body: &[u8]) -> Result<(), ChannelError> {
    let mut headers = HeaderMap::new();
    if let Some(value) = retry_after.and_then(|it| HeaderValue::from_str(it).ok()) {
        headers.insert(http::header::RETRY_AFTER, value);
    }
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    super::api::judge("chat.postMessage", status, &headers, body).map(drop)
}

/// The neutral form of an escaped text, with marks and without.
#[must_use]
pub fn neutral(text: &str) -> (String, String) {
    (
        super::text::neutral(text),
        super::text::neutral_unmarked(text),
    )
}

/// A text as posts.
#[must_use]
pub fn render(text: &str) -> Vec<Part> {
    super::render::render(text, &People::nobody())
}

/// A refused post as smaller or plainer ones.
#[must_use]
pub fn render_fallback(part: &Part, fallback: Fallback) -> Vec<Part> {
    super::render::render_fallback(part, fallback)
}

/// The text of a post as people read it.
#[must_use]
pub fn shown(part: &Part) -> String {
    super::text::unescaped(&part.text)
}

/// A card as a post.
///
/// # Errors
/// Why it can't be shown as one.
pub fn render_card(card: &Card) -> Result<Part, CardMisfit> {
    super::card::render_card(card)
}
