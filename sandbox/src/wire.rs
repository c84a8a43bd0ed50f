//! The wire log: every frame and request the loopback platforms saw, as it was on the wire.
//!
//! Owns one append-only record list and its live subscribers. Knows nothing of the platforms' rules.

use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use tokio::sync::broadcast;

/// Which loopback server saw the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WirePeer {
    /// The loopback Slack.
    Slack,
    /// The loopback Telegram.
    Telegram,
    /// The scripted model server.
    Model,
}

/// What kind of bytes a record holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WireKind {
    /// An HTTP request that a client sent.
    Request,
    /// The HTTP response that the client got (absent when a fault cut the connection).
    Response,
    /// A WebSocket frame from the client.
    FrameIn,
    /// A WebSocket frame to the client.
    FrameOut,
}

/// One frame or request. Tokens are replaced by their last four characters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WireRecord {
    /// Position in the log, from 1.
    pub n: u64,
    /// Milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// Which server.
    pub peer: WirePeer,
    /// Which kind of bytes.
    pub kind: WireKind,
    /// Method name for HTTP (`chat.postMessage`, `sendMessage`), frame type for a socket
    /// (`events_api`, `hello`, `ack`, `ping`).
    pub name: String,
    /// HTTP status of a response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The body as JSON; form fields as an object; anything else as a string.
    pub body: serde_json::Value,
}

/// The shared log. Cloning shares it.
#[derive(Clone, Debug)]
pub struct WireLog {
    records: Arc<Mutex<Vec<WireRecord>>>,
    live: broadcast::Sender<WireRecord>,
}

impl Default for WireLog {
    fn default() -> Self {
        Self::new()
    }
}

impl WireLog {
    /// Makes an empty log.
    #[must_use]
    pub fn new() -> Self {
        let (live, _) = broadcast::channel(16_384);
        Self {
            records: Arc::default(),
            live,
        }
    }

    /// Appends one record and tells the subscribers.
    pub fn append(
        &self,
        peer: WirePeer,
        kind: WireKind,
        name: &str,
        status: Option<u16>,
        body: serde_json::Value,
    ) {
        let mut records = self.records.lock().expect("no holder of this lock panics");
        let record = WireRecord {
            n: records.len() as u64 + 1,
            at_ms: now_ms(),
            peer,
            kind,
            name: name.to_owned(),
            status,
            body,
        };
        records.push(record.clone());
        // Without a subscriber there is nobody to tell.
        let _ = self.live.send(record);
    }

    /// Everything so far, oldest first.
    #[must_use]
    pub fn records(&self) -> Vec<WireRecord> {
        self.records
            .lock()
            .expect("no holder of this lock panics")
            .clone()
    }

    /// What came after the record with this number, oldest first.
    #[must_use]
    pub fn records_after(&self, n: u64) -> Vec<WireRecord> {
        let records = self.records.lock().expect("no holder of this lock panics");
        let skipped = usize::try_from(n).unwrap_or(usize::MAX).min(records.len());
        records[skipped..].to_vec()
    }

    /// Records from now on.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<WireRecord> {
        self.live.subscribe()
    }
}

/// Milliseconds since the Unix epoch by this machine's clock.
pub(crate) fn now_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| {
            i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
        })
}
