//! How each channel is doing, for `status`, `/readyz` and metrics.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use tracing::{error, info, warn};
use vocative_contract::channel::{ConnectionState, Reporter};
use vocative_core::timing::{BOUNDS_QUICK_MS, Histogram};

use crate::capture::clock::Clock;

/// The health of one channel. Written by its adapter and supervisor, read by anybody.
pub struct ChannelHealth {
    channel: String,
    clock: Clock,
    state: Mutex<ConnectionState>,
    last_heard_ms: AtomicI64,
    last_acknowledged_ms: AtomicI64,
    last_lag_ms: AtomicU64,
    lags: Mutex<Histogram>,
    malformed: AtomicU64,
    refused: AtomicU64,
    late: AtomicU64,
    restarts: AtomicU64,
    deaf: AtomicU64,
    other_connections: AtomicU64,
    warnings: Mutex<Vec<String>>,
}

/// A reading of a channel's health.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthReading {
    /// The configured channel's name.
    pub channel: String,
    /// The state of its connection.
    pub state: ConnectionState,
    /// When anything was last heard, in milliseconds since the Unix epoch; `None` = never.
    pub last_heard_ms: Option<i64>,
    /// When an event was last acknowledged.
    pub last_acknowledged_ms: Option<i64>,
    /// The time from receipt to acknowledgement of that event, in milliseconds.
    pub last_lag_ms: u64,
    /// These times of all events since the start.
    pub lags: Histogram,
    /// Frames or updates that could not be read at all.
    pub malformed: u64,
    /// Webhook requests that did not come from the platform, or came incomplete.
    pub refused: u64,
    /// Webhook requests that were not committed in the time the platform waits.
    pub late: u64,
    /// How often the supervisor started it again.
    pub restarts: u64,
    /// How often a connection was open but delivered nothing.
    pub deaf: u64,
    /// Connections of the same app that are not this daemon's, as the platform last reported.
    pub other_connections: u64,
    /// Warnings for the operator that were found at start.
    pub warnings: Vec<String>,
}

impl ChannelHealth {
    fn new(channel: &str, clock: Clock) -> Self {
        Self {
            channel: channel.to_owned(),
            clock,
            state: Mutex::new(ConnectionState::Connecting),
            last_heard_ms: AtomicI64::new(0),
            last_acknowledged_ms: AtomicI64::new(0),
            last_lag_ms: AtomicU64::new(0),
            lags: Mutex::new(Histogram::new(BOUNDS_QUICK_MS)),
            malformed: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            late: AtomicU64::new(0),
            restarts: AtomicU64::new(0),
            deaf: AtomicU64::new(0),
            other_connections: AtomicU64::new(0),
            warnings: Mutex::default(),
        }
    }

    /// Counts a start after a failure.
    pub fn restarted(&self) {
        self.restarts.fetch_add(1, Ordering::Relaxed);
    }

    /// Keeps what the platform said at start.
    pub fn set_warnings(&self, warnings: Vec<String>) {
        *self.warnings.lock().expect("no holder of this lock panics") = warnings;
    }

    /// The current values.
    #[must_use]
    pub fn reading(&self) -> HealthReading {
        let instant = |at: &AtomicI64| Some(at.load(Ordering::Relaxed)).filter(|ms| *ms > 0);
        HealthReading {
            channel: self.channel.clone(),
            state: self
                .state
                .lock()
                .expect("no holder of this lock panics")
                .clone(),
            last_heard_ms: instant(&self.last_heard_ms),
            last_acknowledged_ms: instant(&self.last_acknowledged_ms),
            last_lag_ms: self.last_lag_ms.load(Ordering::Relaxed),
            lags: self
                .lags
                .lock()
                .expect("no holder of this lock panics")
                .clone(),
            malformed: self.malformed.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            late: self.late.load(Ordering::Relaxed),
            restarts: self.restarts.load(Ordering::Relaxed),
            deaf: self.deaf.load(Ordering::Relaxed),
            other_connections: self.other_connections.load(Ordering::Relaxed),
            warnings: self
                .warnings
                .lock()
                .expect("no holder of this lock panics")
                .clone(),
        }
    }
}

impl Reporter for ChannelHealth {
    fn state(&self, state: ConnectionState) {
        let mut current = self.state.lock().expect("no holder of this lock panics");
        if *current == state {
            return;
        }
        let channel = &self.channel;
        match &state {
            ConnectionState::Connecting => {}
            ConnectionState::Connected { connections } => {
                info!(channel.id = %channel, connections, "connected");
            }
            ConnectionState::Retrying { reason, wait_ms } => {
                warn!(channel.id = %channel, reason, wait_ms, "disconnected; trying again");
            }
            ConnectionState::Alarm { reason } => {
                error!(channel.id = %channel, reason, "the channel needs a person");
            }
        }
        *current = state;
    }

    fn heard(&self) {
        self.last_heard_ms.store((self.clock)(), Ordering::Relaxed);
    }

    fn acknowledged(&self, lag_ms: u64) {
        self.last_acknowledged_ms
            .store((self.clock)(), Ordering::Relaxed);
        self.last_lag_ms.store(lag_ms, Ordering::Relaxed);
        self.lags
            .lock()
            .expect("no holder of this lock panics")
            .note(lag_ms);
    }

    fn malformed(&self) {
        self.malformed.fetch_add(1, Ordering::Relaxed);
    }

    fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    fn late(&self) {
        self.late.fetch_add(1, Ordering::Relaxed);
    }

    fn deaf(&self) {
        self.deaf.fetch_add(1, Ordering::Relaxed);
    }

    fn other_connections(&self, count: u64) {
        if self.other_connections.swap(count, Ordering::Relaxed) == 0 && count > 0 {
            warn!(
                channel.id = %self.channel, count,
                "the app has connections that are not ours; another program with its token takes events"
            );
        }
    }
}

/// How a listener is doing; the listener writes it, status and metrics read it.
#[derive(Debug, Default)]
pub struct ListenerHealth {
    address: String,
    connections_max: u64,
    connections: AtomicU64,
    streams: AtomicU64,
    refused: AtomicU64,
    sent_away: AtomicU64,
}

/// A reading of a listener.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListenerReading {
    /// What it is for: `webhooks` or `api`.
    pub name: &'static str,
    /// Where it listens.
    pub address: String,
    /// Connections that are open.
    pub connections: u64,
    /// The most connections that may be open.
    pub connections_max: u64,
    /// Open connections that read an event stream.
    pub streams: u64,
    /// Requests since the start that were answered with a refusal (4xx).
    pub refused: u64,
    /// Idle connections that were closed since the start to make room for waiting ones.
    pub sent_away: u64,
}

/// Raises a count by one for as long as this value lives.
#[derive(Debug)]
pub struct Counted(Arc<ListenerHealth>, fn(&ListenerHealth) -> &AtomicU64);

impl Counted {
    fn new(of: &Arc<ListenerHealth>, which: fn(&ListenerHealth) -> &AtomicU64) -> Self {
        which(of).fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(of), which)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        (self.1)(&self.0).fetch_sub(1, Ordering::Relaxed);
    }
}

impl ListenerHealth {
    /// Counts a connection as open until the result is dropped.
    #[must_use]
    pub fn connected(self: &Arc<Self>) -> Counted {
        Counted::new(self, |health| &health.connections)
    }

    /// Counts an event stream as open until the result is dropped.
    #[must_use]
    pub fn streaming(self: &Arc<Self>) -> Counted {
        Counted::new(self, |health| &health.streams)
    }

    /// Counts a request that was refused.
    pub fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an idle connection that was closed to make room for another.
    pub fn sent_away(&self) {
        self.sent_away.fetch_add(1, Ordering::Relaxed);
    }

    fn reading(&self, name: &'static str) -> ListenerReading {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        ListenerReading {
            name,
            address: self.address.clone(),
            connections: read(&self.connections),
            connections_max: self.connections_max,
            streams: read(&self.streams),
            refused: read(&self.refused),
            sent_away: read(&self.sent_away),
        }
    }
}

/// The health of all channels, by name, and of the listeners. Cloning shares it.
#[derive(Clone)]
pub struct Health {
    clock: Clock,
    channels: Arc<RwLock<BTreeMap<String, Arc<ChannelHealth>>>>,
    listeners: Arc<RwLock<BTreeMap<&'static str, Arc<ListenerHealth>>>>,
}

impl Health {
    /// No channels yet.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            channels: Arc::default(),
            listeners: Arc::default(),
        }
    }

    /// The health of a listener that is opened.
    #[must_use]
    pub fn listener(
        &self,
        name: &'static str,
        address: String,
        connections_max: usize,
    ) -> Arc<ListenerHealth> {
        let health = Arc::new(ListenerHealth {
            address,
            connections_max: u64::try_from(connections_max).unwrap_or(u64::MAX),
            ..ListenerHealth::default()
        });
        let mut listeners = self
            .listeners
            .write()
            .expect("no holder of this lock panics");
        listeners.insert(name, Arc::clone(&health));
        health
    }

    /// Readings of the open listeners, by name.
    #[must_use]
    pub fn listeners(&self) -> Vec<ListenerReading> {
        let listeners = self
            .listeners
            .read()
            .expect("no holder of this lock panics");
        let listeners = listeners.iter();
        listeners
            .map(|(name, health)| health.reading(name))
            .collect()
    }

    /// The health of a channel, made at its first mention.
    #[must_use]
    pub fn of(&self, channel: &str) -> Arc<ChannelHealth> {
        let mut channels = self
            .channels
            .write()
            .expect("no holder of this lock panics");
        let made = || Arc::new(ChannelHealth::new(channel, Arc::clone(&self.clock)));
        Arc::clone(channels.entry(channel.to_owned()).or_insert_with(made))
    }

    /// Readings of all channels, by name.
    #[must_use]
    pub fn readings(&self) -> Vec<HealthReading> {
        let channels = self.channels.read().expect("no holder of this lock panics");
        channels.values().map(|health| health.reading()).collect()
    }
}
