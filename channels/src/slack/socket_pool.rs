//! One to ten sockets, each replaced without a gap.
//!
//! Every slot keeps one session. When it will end, the slot opens the next one first; when it has ended, the slot waits
//! as `reopening` says. A refusal that a person must resolve is retried slowly, for ever.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::log_gate::LogGate;
use vocative_contract::channel::{BoxFuture, ConnectionState, Inbound, Intake, Reporter};
use vocative_contract::error::ChannelError;
use vocative_contract::identity::Identity;

use super::SOCKETS_MAX;
use super::api::SlackApi;
use super::names::NameMemory;
use super::reopening::Reopening;
use super::socket::{
    self, ConnectFailure, Controls, Outgoing, SessionEvent, SocketTimings, run_session,
};

/// How many sessions of one slot may still be acknowledging; beyond that the next one waits.
const SESSIONS_MAX: usize = 8;

/// The inbound half.
#[derive(Debug)]
pub(super) struct SlackInbound {
    pub(super) channel: String,
    pub(super) sockets: usize,
    pub(super) timings: SocketTimings,
    pub(super) identity: Identity,
    pub(super) api: Arc<SlackApi>,
    pub(super) names: Arc<NameMemory>,
}

impl Inbound for SlackInbound {
    fn run<'a>(
        &'a mut self,
        intake: Arc<dyn Intake>,
        reporter: Arc<dyn Reporter>,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        let shared = Arc::new(SocketShared {
            channel: self.channel.clone(),
            identity: self.identity.clone(),
            timings: self.timings,
            api: Arc::clone(&self.api),
            names: Arc::clone(&self.names),
            intake,
            reporter,
            acks: Acks::default(),
            live: Mutex::new(0),
            next_id: AtomicU64::new(0),
            storage_gate: LogGate::default(),
            malformed_gate: LogGate::default(),
            slow_gate: LogGate::default(),
        });
        // At Slack's limit of ten sockets there is no room for a replacement beside the old one.
        let can_overlap = self.sockets < SOCKETS_MAX;
        let slots = (0..self.sockets).map(|index| {
            let slot = Slot::new(Arc::clone(&shared), can_overlap);
            slot.run(index, cancel.clone())
        });
        let slots: Vec<_> = slots.collect();
        Box::pin(async move {
            shared.reporter.state(ConnectionState::Connecting);
            join_all(slots).await;
            Ok(())
        })
    }
}

/// What all sockets of a channel share.
pub(super) struct SocketShared {
    pub(super) channel: String,
    pub(super) identity: Identity,
    pub(super) timings: SocketTimings,
    pub(super) api: Arc<SlackApi>,
    pub(super) names: Arc<NameMemory>,
    pub(super) intake: Arc<dyn Intake>,
    pub(super) reporter: Arc<dyn Reporter>,
    pub(super) acks: Acks,
    live: Mutex<usize>,
    next_id: AtomicU64,
    pub(super) storage_gate: LogGate,
    pub(super) malformed_gate: LogGate,
    pub(super) slow_gate: LogGate,
}

impl SocketShared {
    /// Counts a session as connected from here on, and lets it acknowledge until the returned guard is dropped.
    pub(super) fn enter(self: &Arc<Self>, outgoing: mpsc::Sender<Outgoing>) -> SocketSession {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        self.acks.register(id, outgoing);
        self.count(1);
        SocketSession {
            id,
            shared: Arc::clone(self),
            hears: CancellationToken::new(),
        }
    }

    fn count(&self, change: isize) {
        let mut live = lock(&self.live);
        *live = live.saturating_add_signed(change);
        self.reporter.state(match *live {
            0 => ConnectionState::Connecting,
            connections => ConnectionState::Connected { connections },
        });
    }

    /// Compares Slack's count of sockets with ours: those connected, and the one that just said hello.
    fn compare(&self, counted: Option<u64>) {
        let own = *lock(&self.live) as u64 + 1;
        if let Some(counted) = counted {
            self.reporter.other_connections(counted.saturating_sub(own));
        }
    }

    /// Reports a slot without a connection, unless another slot has one. Returns whether it did, so that the caller
    /// logs it.
    fn disconnected(&self, state: ConnectionState) -> bool {
        let live = lock(&self.live);
        let is_told = *live == 0 || matches!(state, ConnectionState::Alarm { .. });
        if is_told {
            self.reporter.state(state);
        }
        is_told
    }
}

/// A session that is counted and can acknowledge; dropping it ends both, whatever happened.
pub(super) struct SocketSession {
    pub(super) id: u64,
    shared: Arc<SocketShared>,
    hears: CancellationToken,
}

impl SocketSession {
    /// It receives nothing any more, but may still acknowledge.
    pub(super) fn leave(&self) {
        if !self.hears.is_cancelled() {
            self.hears.cancel();
            self.shared.count(-1);
        }
    }

    /// Acknowledgements written to it would not arrive: they go elsewhere.
    pub(super) fn mute(&self) {
        self.shared.acks.remove(self.id);
    }
}

impl Drop for SocketSession {
    fn drop(&mut self) {
        self.leave();
        self.mute();
    }
}

/// Where acknowledgements can be written.
#[derive(Debug, Default)]
pub(super) struct Acks {
    writers: Mutex<Vec<(u64, mpsc::Sender<Outgoing>)>>,
    changed: Notify,
}

impl Acks {
    fn register(&self, id: u64, outgoing: mpsc::Sender<Outgoing>) {
        lock(&self.writers).push((id, outgoing));
        self.changed.notify_waiters();
    }

    fn remove(&self, id: u64) {
        lock(&self.writers).retain(|(it, _)| *it != id);
    }

    /// Writes an acknowledgement on its own socket or, if that is gone, on the newest that works;
    /// waits up to `wait` for one to come. False if none did: Slack sends the envelope again.
    pub(super) async fn send(&self, own: u64, frame: &str, wait: Duration) -> bool {
        let until = Instant::now() + wait;
        let mut tried = Vec::new();
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let Some((id, outgoing)) = self.pick(own, &tried) else {
                if timeout_at(until, changed).await.is_err() {
                    return false;
                }
                continue;
            };
            tried.push(id);
            let (written, is_written) = oneshot::channel();
            let ack = Outgoing::Ack {
                frame: frame.to_owned(),
                written,
            };
            if outgoing.send(ack).await.is_ok() && is_written.await.is_ok() {
                return true;
            }
        }
    }

    fn pick(&self, own: u64, tried: &[u64]) -> Option<(u64, mpsc::Sender<Outgoing>)> {
        let writers = lock(&self.writers);
        let open = || writers.iter().rev().filter(|(id, _)| !tried.contains(id));
        open()
            .find(|(id, _)| *id == own)
            .or_else(|| open().next())
            .cloned()
    }
}

/// The data behind the lock is consistent between any two statements, so a poisoned lock is usable.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One place for a connection.
struct Slot {
    shared: Arc<SocketShared>,
    can_overlap: bool,
    reopening: Reopening,
    sessions: JoinSet<()>,
    closer: CancellationToken,
    current: Option<Current>,
}

/// The connection a slot relies on.
struct Current {
    events: mpsc::Receiver<SessionEvent>,
    controls: Controls,
}

impl Slot {
    fn new(shared: Arc<SocketShared>, can_overlap: bool) -> Self {
        Self {
            reopening: Reopening::new(&shared.timings),
            shared,
            can_overlap,
            sessions: JoinSet::new(),
            closer: CancellationToken::new(),
            current: None,
        }
    }

    async fn run(mut self, index: usize, cancel: CancellationToken) {
        let stagger = self.shared.timings.stagger_ms.saturating_mul(index as u64);
        let _ = cancel
            .run_until_cancelled(async {
                sleep(Duration::from_millis(stagger)).await;
                loop {
                    self.connect().await;
                    self.watch().await;
                }
            })
            .await;
        self.close_all().await;
    }

    /// Opens a connection, however long that takes, and retires the one before it.
    async fn connect(&mut self) {
        let shared = Arc::clone(&self.shared);
        loop {
            while self.sessions.len() >= SESSIONS_MAX {
                let _ = self.sessions.join_next().await;
            }
            // Boxed: a TLS handshake makes a large future.
            match Box::pin(socket::open(&shared.api, &shared.timings)).await {
                Ok(opened) => return self.start(opened),
                Err(failure) => {
                    let wait_ms = self.reopening.after_failure_ms();
                    self.recover(failure, wait_ms).await;
                }
            }
        }
    }

    fn start(&mut self, opened: socket::OpenedSocket) {
        while self.sessions.try_join_next().is_some() {}
        let connections = opened.hello.connections;
        tracing::debug!(channel.id = %self.shared.channel, connections, "a Slack socket says hello");
        self.shared.compare(connections);
        // Two events at most: a wish to be replaced, and the end.
        let (events, receiver) = mpsc::channel(2);
        let controls = Controls {
            close: self.closer.child_token(),
            retire: CancellationToken::new(),
        };
        let session = run_session(Arc::clone(&self.shared), opened, controls.clone(), events);
        self.sessions.spawn(session);
        let current = Current {
            events: receiver,
            controls,
        };
        if let Some(old) = self.current.replace(current) {
            old.controls.retire.cancel();
        }
    }

    /// Waits until the connection must be replaced or has ended, then for the wait that this asks for.
    async fn watch(&mut self) {
        let Some(current) = self.current.as_mut() else {
            return;
        };
        match current.events.recv().await {
            Some(SessionEvent::Replace) => {
                if !self.can_overlap {
                    self.close_all().await;
                }
                let wait_ms = self.reopening.before_refresh_ms(Instant::now());
                sleep(Duration::from_millis(wait_ms)).await;
            }
            Some(SessionEvent::Ended(failure)) => self.ended(failure).await,
            None => {
                let lost = ConnectFailure::Lost("the session ended by itself".to_owned());
                self.ended(lost).await;
            }
        }
    }

    /// The connection is gone: one that broke is opened again soon, one that Slack refuses is not.
    async fn ended(&mut self, failure: ConnectFailure) {
        self.current = None;
        let wait_ms = match failure {
            ConnectFailure::Lost(_) => self.reopening.after_loss_ms(Instant::now()),
            _ => self.reopening.after_failure_ms(),
        };
        self.recover(failure, wait_ms).await;
    }

    /// Reports what is wrong, and waits for the back-off, or longer where Slack asks for it.
    async fn recover(&mut self, failure: ConnectFailure, backoff_ms: u64) {
        if matches!(failure, ConnectFailure::TooMany) {
            self.close_all().await;
        }
        let (state, wait_ms) = self.verdict(&failure, backoff_ms);
        if !self.shared.disconnected(state) {
            tracing::warn!(
                channel.id = %self.shared.channel, reason = %failure, wait_ms,
                "one of several Slack sockets is lost and will be opened again"
            );
        }
        sleep(Duration::from_millis(wait_ms)).await;
    }

    /// What to report, and how long to wait.
    fn verdict(&self, failure: &ConnectFailure, backoff_ms: u64) -> (ConnectionState, u64) {
        let timings = self.shared.timings;
        let alarm = |reason: String| (ConnectionState::Alarm { reason }, timings.alarm_ms);
        let wait_ms = match failure {
            ConnectFailure::SwitchedOff => {
                return alarm(format!("{failure}; switch it on under Socket Mode"));
            }
            ConnectFailure::Refused(ChannelError::Unauthorized { reason, .. }) => {
                return alarm(format!(
                    "Slack refuses app_token: {reason}; it must be an app-level token (xapp-) with the \
                     scope connections:write"
                ));
            }
            ConnectFailure::Refused(ChannelError::RetryAfter { wait_ms, .. }) => {
                backoff_ms.max(*wait_ms)
            }
            ConnectFailure::TooMany => backoff_ms.max(timings.too_many_ms),
            ConnectFailure::Refused(_) | ConnectFailure::Lost(_) => backoff_ms,
        };
        let reason = failure.to_string();
        (ConnectionState::Retrying { reason, wait_ms }, wait_ms)
    }

    /// Closes every session of this slot, after their acknowledgements.
    async fn close_all(&mut self) {
        self.current = None;
        std::mem::take(&mut self.closer).cancel();
        while self.sessions.join_next().await.is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(5);

    /// Writes what comes, and returns it.
    async fn written(frames: &mut mpsc::Receiver<Outgoing>) -> Option<String> {
        match frames.recv().await? {
            Outgoing::Ack { frame, written } => {
                let _ = written.send(());
                Some(frame)
            }
            Outgoing::Close => None,
        }
    }

    #[tokio::test]
    async fn an_acknowledgement_takes_its_own_socket_first() {
        let acks = Acks::default();
        let (own, mut own_frames) = mpsc::channel(1);
        let (new, _new_frames) = mpsc::channel(1);
        acks.register(1, own);
        acks.register(2, new);
        let (is_sent, frame) = tokio::join!(acks.send(1, "e1", WAIT), written(&mut own_frames));
        assert!(is_sent);
        assert_eq!(frame.as_deref(), Some("e1"));
    }

    #[tokio::test]
    async fn an_acknowledgement_takes_the_newest_socket_when_its_own_is_gone() {
        let acks = Acks::default();
        let (own, own_frames) = mpsc::channel(1);
        let (new, mut new_frames) = mpsc::channel(1);
        acks.register(1, own);
        acks.register(2, new);
        drop(own_frames);
        let (is_sent, frame) = tokio::join!(acks.send(1, "e1", WAIT), written(&mut new_frames));
        assert!(is_sent);
        assert_eq!(frame.as_deref(), Some("e1"));
    }

    #[tokio::test]
    async fn an_acknowledgement_waits_for_a_newer_socket_but_not_for_ever() {
        let acks = Acks::default();
        assert!(!acks.send(1, "e1", Duration::from_millis(1)).await);
        let (new, mut new_frames) = mpsc::channel(1);
        let later = async {
            tokio::task::yield_now().await;
            acks.register(2, new);
            written(&mut new_frames).await
        };
        let (is_sent, frame) = tokio::join!(acks.send(1, "e1", WAIT), later);
        assert!(is_sent);
        assert_eq!(frame.as_deref(), Some("e1"));
    }
}
