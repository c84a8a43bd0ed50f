//! What a platform sends over HTTP, on its way to the adapter that understands it.
//!
//! The daemon, which has the HTTP server, hands each request of a platform, unread, to the [`Receiver`] of its
//! channel, and writes the answer back. The adapter keeps the protocol: who may call, what a body
//! means, what to answer.

use http::HeaderMap;

use crate::channel::BoxFuture;

/// A request as it came: nothing was read of its body.
#[derive(Clone, Debug)]
pub struct WebhookRequest {
    /// One of the receiver's paths.
    pub path: String,
    /// All headers.
    pub headers: HeaderMap,
    /// The body's bytes; a signature is over exactly these.
    pub body: Vec<u8>,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookResponse {
    /// The HTTP status; 503 asks the platform to send again.
    pub status: u16,
    /// The body; empty for most.
    pub body: String,
    /// Whether the body is JSON; else it is plain text.
    pub is_json: bool,
}

impl WebhookResponse {
    /// An answer without a body.
    #[must_use]
    pub fn of(status: u16) -> Self {
        Self {
            status,
            body: String::new(),
            is_json: false,
        }
    }
}

/// Takes what a platform sends to one channel over HTTP.
pub trait Receiver: Send + Sync + 'static {
    /// Where the platform calls: paths with a slash in front, of this channel alone.
    fn paths(&self) -> Vec<String>;

    /// Whether these headers alone show that a request is to be refused. Asked before anything of a body is read, so
    /// that strangers use no memory; a request that passes is not yet known to be genuine.
    fn is_stranger(&self, _headers: &HeaderMap) -> bool {
        false
    }

    /// Whether a request without a body only checks whether the address and its certificate work.
    fn is_certificate_check(&self, _path: &str, _query: &str) -> bool {
        false
    }

    /// Takes one request. A 2xx answer is given only after the commit. Many calls run at once. A commit that has begun
    /// is finished even if nobody waits for the answer any more.
    fn receive(&self, request: WebhookRequest) -> BoxFuture<'_, WebhookResponse>;

    /// Notes a request that was rejected before it was complete: too large, too slow, too many.
    fn turned_away(&self, why: &'static str);
}
