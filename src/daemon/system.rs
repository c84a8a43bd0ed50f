//! Signals, and reports to systemd.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sd_notify::NotifyState;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error};

use vocative_store::Reader;

/// The signals a daemon listens to.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalRequest {
    /// TERM or INT: stop.
    Stop,
    /// HUP: read agents and aliases again.
    Reload,
}

impl Signals {
    /// Starts to listen for signals.
    ///
    /// # Errors
    /// If the process can't register handlers.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// The next signal.
    pub async fn next(&mut self) -> SignalRequest {
        tokio::select! {
            _ = self.terminate.recv() => SignalRequest::Stop,
            _ = self.interrupt.recv() => SignalRequest::Stop,
            _ = self.hang_up.recv() => SignalRequest::Reload,
        }
    }
}

/// Tells systemd that the daemon serves. Does nothing outside systemd.
pub fn tell_ready() {
    tell(&[NotifyState::Ready, NotifyState::Status("")]);
}

/// Tells systemd that the daemon reads its configuration again; `tell_ready` ends it.
pub fn tell_reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(cause) => debug!(error = %cause, "no monotonic clock for systemd"),
    }
}

/// Asks systemd to wait for the start for `wait` from now, and reports the current step.
pub(super) fn tell_starting(doing: &str, wait: Duration) {
    let wait_usec = u32::try_from(wait.as_micros()).unwrap_or(u32::MAX);
    tell(&[
        NotifyState::ExtendTimeoutUsec(wait_usec),
        NotifyState::Status(doing),
    ]);
}

/// Tells systemd that the daemon stops.
pub fn tell_stopping() {
    tell(&[NotifyState::Stopping]);
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(cause) = sd_notify::notify(states) {
        debug!(error = %cause, "systemd was not told");
    }
}

/// Signs of life of the daemon's own workers, for the watchdog.
#[derive(Clone)]
pub struct Pulse {
    since: Instant,
    /// The last beat, in milliseconds after `since`.
    last_ms: Arc<AtomicU64>,
}

impl Default for Pulse {
    fn default() -> Self {
        Self {
            since: Instant::now(),
            last_ms: Arc::default(),
        }
    }
}

impl Pulse {
    /// Notes that a worker went round its loop.
    pub fn beat(&self) {
        self.last_ms.store(self.now_ms(), Ordering::Relaxed);
    }

    fn silent_ms(&self) -> u64 {
        let last_ms = self.last_ms.load(Ordering::Relaxed);
        self.now_ms().saturating_sub(last_ms)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Notifies the systemd watchdog while our own parts make progress: the runtime runs this task, timers fire, the
/// writer commits. Never depends on a remote side.
pub async fn keep_watchdog(store: Reader, pulse: Pulse, cancel: CancellationToken) {
    let Some(limit) = sd_notify::watchdog_enabled() else {
        return;
    };
    let every = (limit / 3).max(Duration::from_millis(100));
    let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
    loop {
        let writer_lag_ms = store.writer_lag_ms();
        let silent_ms = pulse.silent_ms();
        let is_alive = writer_lag_ms < limit_ms && silent_ms < limit_ms;
        if is_alive {
            tell(&[NotifyState::Watchdog]);
        } else {
            error!(
                writer_lag_ms,
                silent_ms, "the daemon makes no progress; systemd will restart it"
            );
        }
        tokio::select! {
            () = tokio::time::sleep(every) => {}
            () = cancel.cancelled() => return,
        }
    }
}
