//! What the receivers of both platforms have in common.
//!
//! A [`Door`] is open while the inbound half runs, hands envelopes to the intake, and says whether they were
//! committed in time. A commit that takes longer goes on; the platform is answered that it should send again,
//! and capture knows the message then.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use http::HeaderMap;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use vocative_contract::channel::{Accepted, ConnectionState, Intake, IntakeError, Reporter};
use vocative_contract::crash;
use vocative_contract::envelope::Envelope;
use vocative_contract::webhook::WebhookResponse;

use crate::log_gate::LogGate;

/// How many requests of one channel may be on their way to the disk; more are answered 503.
pub(crate) const REQUESTS_MAX: usize = 256;
/// How many bytes of bodies one channel's requests on their way to the disk may hold together.
pub(crate) const REQUEST_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The value of a header that was sent exactly once; of several values none can be trusted.
pub(crate) fn only<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h http::HeaderValue> {
    let mut all = headers.get_all(name).iter();
    let value = all.next();
    value.filter(|_| all.next().is_none())
}

/// What a receiver uses to reach the daemon while the inbound half runs.
#[derive(Clone)]
struct OpenDoor {
    intake: Arc<dyn Intake>,
    reporter: Arc<dyn Reporter>,
    commits: TaskTracker,
}

/// What became of a request's envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EnvelopeTaken {
    /// The envelope is on disk.
    Committed(Accepted),
    /// The envelope is not on disk, or not yet: the platform is to send it again.
    NotNow,
}

impl EnvelopeTaken {
    /// What is wrong with a form that was sent.
    pub(crate) fn form_problem(&self) -> Option<&str> {
        match self {
            Self::Committed(accepted) => accepted.form_problem.as_deref(),
            Self::NotNow => None,
        }
    }

    /// The HTTP answer for this outcome.
    pub(crate) fn response(&self) -> WebhookResponse {
        WebhookResponse::of(match self {
            Self::Committed(_) => 200,
            Self::NotNow => 503,
        })
    }
}

/// The way from requests to the intake.
pub(crate) struct Door {
    channel: String,
    open: RwLock<Option<OpenDoor>>,
    in_flight: Arc<InFlight>,
    /// Whether something was committed and answered since the last request.
    has_answered: AtomicBool,
    refused_gate: LogGate,
    closed_gate: LogGate,
    late_gate: LogGate,
    storage_gate: LogGate,
}

impl std::fmt::Debug for Door {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let fields = &mut formatter.debug_struct("Door");
        fields
            .field("channel", &self.channel)
            .finish_non_exhaustive()
    }
}

impl Door {
    /// A closed door.
    pub(crate) fn new(channel: &str) -> Self {
        Self {
            channel: channel.to_owned(),
            open: RwLock::default(),
            in_flight: Arc::default(),
            has_answered: AtomicBool::new(false),
            refused_gate: LogGate::default(),
            closed_gate: LogGate::default(),
            late_gate: LogGate::default(),
            storage_gate: LogGate::default(),
        }
    }

    /// Lets requests in until the answer is closed or dropped.
    pub(crate) fn open(
        &self,
        intake: Arc<dyn Intake>,
        reporter: Arc<dyn Reporter>,
    ) -> DoorGuard<'_> {
        let commits = TaskTracker::new();
        let open = OpenDoor {
            intake,
            reporter,
            commits: commits.clone(),
        };
        self.set(Some(open));
        DoorGuard {
            door: self,
            commits,
        }
    }

    fn set(&self, open: Option<OpenDoor>) {
        *self.open.write().unwrap_or_else(PoisonError::into_inner) = open;
    }

    fn opened(&self) -> Option<OpenDoor> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        open.clone()
    }

    /// Counts a request that does not come from the platform, or not whole.
    pub(crate) fn refuse(&self, why: &'static str) {
        if let Some(open) = self.opened() {
            open.reporter.refused();
        }
        if let Some(others) = self.refused_gate.pass() {
            tracing::warn!(channel.id = %self.channel, why, others, "a webhook request was refused");
        }
    }

    /// Counts a body of the platform that could not be read at all.
    pub(crate) fn malformed(&self) {
        if let Some(open) = self.opened() {
            open.reporter.malformed();
        }
    }

    /// Commits an envelope of the platform, and waits for the commit at most `within`.
    pub(crate) async fn commit(
        &self,
        envelope: Envelope,
        bytes: usize,
        within: Duration,
    ) -> EnvelopeTaken {
        // The next request shows that the answer to an earlier one has left.
        if self.has_answered.swap(false, Ordering::Relaxed) {
            crash::point("ack.after");
        }
        let Some(open) = self.opened() else {
            if let Some(others) = self.closed_gate.pass() {
                tracing::info!(
                    channel.id = %self.channel, others,
                    "a webhook request came before the channel hears or after it stopped; it comes again"
                );
            }
            return EnvelopeTaken::NotNow;
        };
        open.reporter.heard();
        let Some(place) = self.in_flight.enter(bytes) else {
            self.late(&open, "too many requests are being stored");
            return EnvelopeTaken::NotNow;
        };
        let received = Instant::now();
        let intake = Arc::clone(&open.intake);
        // A task of its own: the platform may hang up, and what was begun is still committed.
        let commit = open.commits.spawn(async move {
            let _place = place;
            let stored = intake.accept(envelope).await;
            if stored.is_ok() {
                crash::point("ack.before");
            }
            stored
        });
        match timeout(within, commit).await {
            Ok(Ok(Ok(accepted))) => {
                let lag_ms = u64::try_from(received.elapsed().as_millis()).unwrap_or(u64::MAX);
                open.reporter.acknowledged(lag_ms);
                self.has_answered.store(true, Ordering::Relaxed);
                EnvelopeTaken::Committed(accepted)
            }
            Ok(Ok(Err(error))) => {
                self.not_stored(&error);
                EnvelopeTaken::NotNow
            }
            Ok(Err(_)) => {
                tracing::error!(channel.id = %self.channel, "storing an event panicked, which is a bug");
                EnvelopeTaken::NotNow
            }
            Err(_) => {
                self.late(&open, "it takes too long to store");
                EnvelopeTaken::NotNow
            }
        }
    }

    fn late(&self, open: &OpenDoor, why: &'static str) {
        open.reporter.late();
        if let Some(others) = self.late_gate.pass() {
            tracing::warn!(
                channel.id = %self.channel, why, others,
                "an event is not acknowledged in time; the platform sends it again"
            );
        }
    }

    fn not_stored(&self, error: &IntakeError) {
        if let Some(others) = self.storage_gate.pass() {
            let error = error as &dyn std::error::Error;
            tracing::error!(
                channel.id = %self.channel, error, others,
                "an event could not be stored and is not acknowledged; the platform sends it again"
            );
        }
    }
}

/// Keeps a door open; dropping it closes the door, whatever happened.
pub(crate) struct DoorGuard<'a> {
    door: &'a Door,
    commits: TaskTracker,
}

impl DoorGuard<'_> {
    /// Reports the channel as connected, waits to be cancelled, and closes.
    pub(crate) async fn until(self, cancel: CancellationToken) {
        if let Some(open) = self.door.opened() {
            open.reporter
                .state(ConnectionState::Connected { connections: 1 });
        }
        cancel.cancelled().await;
        self.close().await;
    }

    /// Lets nothing more in, and waits for what is being committed.
    pub(crate) async fn close(self) {
        self.door.set(None);
        self.commits.close();
        self.commits.wait().await;
    }
}

impl Drop for DoorGuard<'_> {
    fn drop(&mut self) {
        self.door.set(None);
    }
}

/// Requests on their way to the disk, and their bytes.
#[derive(Debug, Default)]
struct InFlight(Mutex<(usize, usize)>);

impl InFlight {
    /// A place for a request of `bytes`; `None` if the limits are reached. A single request always gets one.
    fn enter(self: &Arc<Self>, bytes: usize) -> Option<DoorSlot> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, total) = *held;
        if count >= REQUESTS_MAX || (count > 0 && total + bytes > REQUEST_BYTES_MAX) {
            return None;
        }
        *held = (count + 1, total + bytes);
        drop(held);
        Some(DoorSlot {
            held: Arc::clone(self),
            bytes,
        })
    }
}

/// One of these places; dropping it frees the place.
struct DoorSlot {
    held: Arc<InFlight>,
    bytes: usize,
}

impl Drop for DoorSlot {
    fn drop(&mut self) {
        let mut held = self.held.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.0 = held.0.saturating_sub(1);
        held.1 = held.1.saturating_sub(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_that_is_sent_twice_is_none() {
        let mut headers = HeaderMap::new();
        assert_eq!(only(&headers, "x-secret"), None);
        headers.append("x-secret", http::HeaderValue::from_static("a"));
        assert!(only(&headers, "X-Secret").is_some_and(|value| value == "a"));
        headers.append("x-secret", http::HeaderValue::from_static("a"));
        assert_eq!(only(&headers, "x-secret"), None);
    }

    #[test]
    fn places_are_bounded_by_number_and_by_bytes() {
        let room = Arc::<InFlight>::default();
        let many: Vec<_> = (0..REQUESTS_MAX).filter_map(|_| room.enter(1)).collect();
        assert_eq!(many.len(), REQUESTS_MAX);
        assert!(room.enter(1).is_none());
        drop(many);
        let large = room.enter(REQUEST_BYTES_MAX).expect("it is alone");
        assert!(room.enter(1).is_none());
        drop(large);
        assert_eq!(*room.0.lock().expect("no holder panics"), (0, 0));
        assert!(room.enter(REQUEST_BYTES_MAX + 1).is_some());
    }
}
