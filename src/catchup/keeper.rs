//! Keeps watch over one account: opens a hole when the connection is lost, and has it read when there
//! is one again.
//!
//! It stands between adapter and intake. What is heard after a loss is captured only after the hole
//! was written down: a newer turn must never make an older hole look closed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, Notify};
use tokio_util::sync::CancellationToken;
use tracing::warn;
use vocative_channels::channel::{BoxFuture, ConnectionState, Intake, IntakeError};
use vocative_channels::envelope::{Envelope, Event};
use vocative_channels::history::History;

use super::asking::Unread;
use super::bounds::Bounds;
use super::pass::Pass;
use super::room::Reader;
use crate::capture::inbound::ChannelIntake;
use crate::domain::ids::AccountId;
use crate::store::contract::AccountReach;
use crate::store::{Store, StoreError};

/// Tells the time, in milliseconds since the Unix epoch.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// How far before the last sign of life is read again. A platform may tell of a message late: Slack
/// up to 8 minutes late when acknowledgements were missed.
const LEAD_MS: i64 = 600_000;
/// How often it is noted that the connection is there.
const NOTE_EVERY: Duration = Duration::from_secs(30);

/// Keeps watch over one account whose platform has a history.
pub struct Keeper {
    channel: String,
    account: AccountId,
    history: Arc<dyn History>,
    intake: Arc<ChannelIntake>,
    store: Store,
    bounds: Bounds,
    clock: Clock,
    is_connected: AtomicBool,
    /// The connection was lost, and that is not written down yet.
    is_lost: AtomicBool,
    /// There is something to read.
    is_behind: AtomicBool,
    opening: Mutex<Option<AccountReach>>,
    wake: Notify,
}

impl Keeper {
    /// Keeps watch from the start: until it is connected, it counts as lost.
    #[must_use]
    pub fn new(
        channel: String,
        account: AccountId,
        history: Arc<dyn History>,
        intake: Arc<ChannelIntake>,
        store: Store,
        bounds: Bounds,
        clock: Clock,
    ) -> Self {
        Self {
            channel,
            account,
            history,
            intake,
            store,
            bounds,
            clock,
            is_connected: AtomicBool::new(false),
            is_lost: AtomicBool::new(true),
            is_behind: AtomicBool::new(true),
            opening: Mutex::default(),
            wake: Notify::new(),
        }
    }

    /// Hears how the connection is doing. Never blocks.
    pub fn note_state(&self, state: &ConnectionState) {
        let is_connected = matches!(state, ConnectionState::Connected { .. });
        let was_connected = self.is_connected.swap(is_connected, Ordering::SeqCst);
        if was_connected && !is_connected {
            self.is_lost.store(true, Ordering::SeqCst);
            self.is_behind.store(true, Ordering::SeqCst);
        }
        if is_connected && !was_connected {
            self.wake.notify_one();
        }
    }

    /// Reads what is to be read whenever there is something, until cancelled.
    pub async fn run(self: Arc<Self>, cancel: CancellationToken) {
        let reader = Reader {
            channel: self.channel.clone(),
            account: self.account,
            history: Arc::clone(&self.history),
            intake: Arc::clone(&self.intake),
            store: self.store.clone(),
            clock: Arc::clone(&self.clock),
            cancel: cancel.clone(),
        };
        // Whatever was under way when this was started last may not have ended.
        self.is_behind.store(true, Ordering::SeqCst);
        loop {
            tokio::select! {
                () = self.wake.notified() => {}
                () = tokio::time::sleep(NOTE_EVERY) => {}
                () = cancel.cancelled() => return,
            }
            if !self.is_connected.load(Ordering::SeqCst) {
                continue;
            }
            match self.look(&reader).await {
                Err(Look::Stopped) => return,
                Err(Look::Store(cause)) => {
                    warn!(channel.id = %self.channel, error = %cause, "it could not be noted how far history is known; trying again");
                }
                Ok(()) => {}
            }
        }
    }

    async fn look(&self, reader: &Reader) -> Result<(), Look> {
        let reach = self.open().await?;
        if !self.is_behind.swap(false, Ordering::SeqCst) {
            return Ok(self.store.note_heard(self.account, (self.clock)()).await?);
        }
        let pass = Pass {
            reader,
            bounds: &self.bounds,
        };
        let Some(reach) = reach else { return Ok(()) };
        pass.run(reach).await.map_err(|_: Unread| Look::Stopped)?;
        let mut open = self.opening.lock().await;
        if let Some(open) = open.as_mut().filter(|open| open.epoch == reach.epoch) {
            open.unread_from_ms = None;
        }
        Ok(())
    }

    /// Writes a loss down, once.
    async fn open(&self) -> Result<Option<AccountReach>, StoreError> {
        let mut reach = self.opening.lock().await;
        if self.is_lost.load(Ordering::SeqCst) {
            // Lost again meanwhile, it is written down again.
            self.is_lost.store(false, Ordering::SeqCst);
            let opened = self.store.open_reach(self.account, LEAD_MS, (self.clock)());
            match opened.await {
                Ok(opened) => *reach = Some(opened),
                Err(cause) => {
                    self.is_lost.store(true, Ordering::SeqCst);
                    return Err(cause);
                }
            }
        }
        Ok(*reach)
    }

    /// A chat that the bot joins is to be read; that is written down before the joining is
    /// acknowledged.
    async fn note_joining(&self, envelope: &Envelope) -> Result<(), StoreError> {
        let Event::Membership {
            place,
            present: true,
        } = &envelope.event
        else {
            return Ok(());
        };
        if !self.bounds.backfills() || !self.intake.serves(place) {
            return Ok(());
        }
        let (chat, now_ms) = (place.chat.clone(), envelope.received_at_ms);
        self.store
            .request_backfill(self.account, chat, now_ms)
            .await?;
        self.is_behind.store(true, Ordering::SeqCst);
        self.wake.notify_one();
        Ok(())
    }
}

/// Why a look did not end well.
enum Look {
    Store(StoreError),
    Stopped,
}

impl From<StoreError> for Look {
    fn from(cause: StoreError) -> Self {
        Self::Store(cause)
    }
}

impl Intake for Keeper {
    fn accept(&self, envelope: Envelope) -> BoxFuture<'_, Result<(), IntakeError>> {
        Box::pin(async move {
            let prepared = async {
                // A loss between this look and the capture concerns what comes after it.
                if self.is_lost.load(Ordering::SeqCst) {
                    self.open().await?;
                }
                self.note_joining(&envelope).await
            };
            let refused = |cause: StoreError| IntakeError(Box::new(cause));
            prepared.await.map_err(refused)?;
            self.intake.accept(envelope).await
        })
    }
}
