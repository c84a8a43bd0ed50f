//! Watches one account: opens a hole when the connection is lost, and queues the job that reads it when there is a
//! connection again.
//!
//! It stands between adapter and intake. What is heard after a loss is captured only after the hole was stored: a
//! newer turn must never make an older hole look closed.
//!
//! An event that storage refused counts like a loss, because the platform stops sending it again (Slack after about
//! six minutes), however long the disk is full. The loss can't be stored while writes fail, so it is kept in memory
//! until the first write that works; until then nothing counts as heard, and a restart reads from there.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, Notify};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};
use vocative_contract::channel::{Accepted, BoxFuture, ConnectionState, Intake, IntakeError};
use vocative_contract::envelope::{Envelope, Event};

use super::bounds::CatchupBounds;
use super::pass::Pass;
use super::room::ChatReader;
use vocative_core::ids::AccountId;
use vocative_core::job::Job;
use vocative_core::queueing::Outcome;
use vocative_store::StoreError;
use vocative_store::contract::AccountReach;

/// How far before the last sign of life is read again. A platform may tell of a message late: Slack
/// up to 8 minutes late when acknowledgements were missed.
const LEAD_MS: i64 = 600_000;
/// How often the time of the last sign of life is stored, in milliseconds.
const NOTE_EVERY_MS: i64 = 30_000;
/// The wait before a loss that could not be stored is stored again, in milliseconds.
const WRITE_AGAIN_MS: i64 = 2_000;
/// How long a platform may take to tell of a message, and how far its clock may be from ours.
const TELLING_MS: i64 = 2_000;
/// A noted time more than this after the present, in milliseconds, is forgotten: a clock was ahead then.
const AHEAD_MS: i64 = 60_000;
/// How many chats are checked before a quiet connection is believed.
const DOUBTED_CHATS: usize = 3;

/// Watches one account whose platform has a history.
pub struct CatchupKeeper {
    reader: ChatReader,
    bounds: CatchupBounds,
    is_connected: AtomicBool,
    /// How often the connection was lost or storage refused an event, the start included; `written` is how many of
    /// those are stored.
    losses: AtomicU64,
    written: AtomicU64,
    /// When the platform last sent anything, in milliseconds since the Unix epoch.
    told_at_ms: AtomicI64,
    /// The horizon: the platform's time of the newest message heard, or up to which everything was read back.
    heard_ms: AtomicI64,
    /// The horizon as it is stored.
    noted_ms: AtomicI64,
    /// When the connection was last doubted and nothing was found.
    doubted_at_ms: AtomicI64,
    /// Notified when the connection is up but hears nothing.
    deaf: Notify,
    /// Whether there is something to read.
    is_behind: AtomicBool,
    opening: Mutex<Option<AccountReach>>,
    /// Notified when the job is queued.
    jobs: Arc<Notify>,
    /// How often storing a loss failed.
    failures: AtomicU64,
    wake: Notify,
}

impl CatchupKeeper {
    /// Watches from the start: until it is connected, the connection counts as lost.
    #[must_use]
    pub fn new(reader: ChatReader, bounds: CatchupBounds, jobs: Arc<Notify>) -> Self {
        Self {
            reader,
            bounds,
            is_connected: AtomicBool::new(false),
            losses: AtomicU64::new(1),
            written: AtomicU64::new(0),
            told_at_ms: AtomicI64::new(0),
            heard_ms: AtomicI64::new(0),
            noted_ms: AtomicI64::new(0),
            doubted_at_ms: AtomicI64::new(0),
            deaf: Notify::new(),
            is_behind: AtomicBool::new(true),
            opening: Mutex::default(),
            jobs,
            failures: AtomicU64::new(0),
            wake: Notify::new(),
        }
    }

    /// Stores, before there is a connection, that from here on messages may be missing. Otherwise a new daemon,
    /// killed between its first connection and its first message, would begin anew at the next start, and the
    /// messages that its platform gave up meanwhile would be lost.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn begin(&self) -> Result<(), StoreError> {
        self.open().await.map(drop)
    }

    /// Takes the state of the connection. Never blocks.
    pub fn note_state(&self, state: &ConnectionState) {
        let is_connected = matches!(state, ConnectionState::Connected { .. });
        let was_connected = self.is_connected.swap(is_connected, Ordering::SeqCst);
        if was_connected && !is_connected {
            self.note_loss();
        }
        if is_connected && !was_connected {
            self.wake.notify_one();
        }
    }

    /// Waits until the connection is found to be up but hearing nothing: it must be made anew.
    pub async fn is_deaf(&self) {
        self.deaf.notified().await;
    }

    fn note_loss(&self) {
        self.losses.fetch_add(1, Ordering::SeqCst);
        self.is_behind.store(true, Ordering::SeqCst);
    }

    fn is_lost(&self) -> bool {
        self.losses.load(Ordering::SeqCst) != self.written.load(Ordering::SeqCst)
    }

    /// Has missed messages read whenever there are some, until cancelled.
    pub async fn run(self: Arc<Self>, cancel: CancellationToken) {
        // After a panic, too: a loss may have been noted and its job not queued.
        self.is_behind.store(true, Ordering::SeqCst);
        cancel.run_until_cancelled(self.keep_looking()).await;
    }

    async fn keep_looking(&self) {
        let mut is_failing = false;
        loop {
            tokio::select! {
                biased;
                () = self.wake.notified() => {}
                () = tokio::time::sleep(self.note_every()) => {}
            }
            if !self.is_connected.load(Ordering::SeqCst) {
                continue;
            }
            match self.look().await {
                Err(cause) if is_failing => {
                    debug!(channel.id = %self.reader.channel, error = %cause, "it still could not be noted");
                }
                Err(cause) => {
                    is_failing = true;
                    warn!(channel.id = %self.reader.channel, error = %cause, "it could not be noted how far history is known; trying again");
                }
                Ok(()) => is_failing = false,
            }
        }
    }

    fn note_every(&self) -> Duration {
        let every_ms = match self.bounds.deaf_after_ms {
            _ if self.is_lost() => WRITE_AGAIN_MS,
            0 => NOTE_EVERY_MS,
            deaf_after_ms => deaf_after_ms.clamp(1_000, NOTE_EVERY_MS),
        };
        Duration::from_millis(every_ms.unsigned_abs())
    }

    async fn look(&self) -> Result<(), StoreError> {
        self.open().await?;
        let job = Job::ReadBack {
            account: self.reader.account,
        };
        if self.is_behind.swap(false, Ordering::SeqCst) {
            let queued = self
                .reader
                .store
                .request_read_back(self.reader.account, (self.reader.clock)());
            let note_behind = |_: &StoreError| self.is_behind.store(true, Ordering::SeqCst);
            queued.await.inspect_err(note_behind)?;
            self.jobs.notify_one();
            Ok(())
        } else if self.reader.store.is_queued(job).await? {
            // What the job has not read yet would look like something that the connection did not report.
            Ok(())
        } else {
            self.keep_listening().await
        }
    }

    /// The job: reads what was missed since the last loss. Killed anywhere and begun again, it makes the same turns.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn read_back(&self) -> Result<Outcome, StoreError> {
        // Without a connection the job goes; it is queued again once there is one.
        if !self.is_connected.load(Ordering::SeqCst) {
            return Ok(Outcome::Done);
        }
        let Some(reach) = self.open().await? else {
            return Ok(Outcome::Done);
        };
        let began_ms = (self.reader.clock)();
        let pass = Pass {
            reader: &self.reader,
            began_ms,
            bounds: &self.bounds,
            is_lost: &|| self.is_lost(),
        };
        pass.run(reach).await?;
        self.told_at_ms.store(began_ms, Ordering::SeqCst);
        self.heard_ms.fetch_max(began_ms, Ordering::SeqCst);
        let mut open = self.opening.lock().await;
        if let Some(open) = open.as_mut().filter(|open| open.epoch == reach.epoch) {
            open.unread_from_ms = None;
        }
        Ok(Outcome::Done)
    }

    /// While nothing is to be read: stores the horizon, and doubts the connection when it is quiet.
    ///
    /// Only events from the platform count as heard, not that a connection is up: it may be up and deaf.
    async fn keep_listening(&self) -> Result<(), StoreError> {
        let now_ms = (self.reader.clock)();
        let heard_ms = self.horizon_ms(now_ms);
        if self.noted_ms.load(Ordering::SeqCst) != heard_ms {
            self.reader
                .store
                .note_heard(self.reader.account, heard_ms)
                .await?;
            self.noted_ms.store(heard_ms, Ordering::SeqCst);
        }
        let deaf_after_ms = self.bounds.deaf_after_ms;
        let told_at_ms = past(&self.told_at_ms, now_ms);
        let quiet_since_ms = told_at_ms.max(past(&self.doubted_at_ms, now_ms));
        if deaf_after_ms == 0 || now_ms - quiet_since_ms < deaf_after_ms {
            return Ok(());
        }
        if !self.misses_something(told_at_ms, now_ms).await? {
            self.doubted_at_ms.store(now_ms, Ordering::SeqCst);
            return Ok(());
        }
        warn!(
            channel.id = %self.reader.channel, quiet_ms = now_ms - told_at_ms,
            "the connection is there and hears nothing of what is said; it is made anew"
        );
        self.note_loss();
        self.deaf.notify_one();
        Ok(())
    }

    /// The platform's time up to which everything is known. A clock that was ahead may have put it into the future;
    /// then nothing is known until the next message.
    fn horizon_ms(&self, now_ms: i64) -> i64 {
        past(&self.heard_ms, now_ms)
    }

    /// Whether something was said since in the most recently heard chats that the platform should have reported.
    async fn misses_something(&self, told_at_ms: i64, now_ms: i64) -> Result<bool, StoreError> {
        let chats = self.reader.store.chats_to_read(self.reader.account).await?;
        let places = chats.into_iter().map(|chat| chat.place());
        let served = places.filter(|place| self.reader.intake.serves(place));
        let (from_ms, until_ms) = (told_at_ms + TELLING_MS, now_ms - TELLING_MS);
        for place in served.take(DOUBTED_CHATS) {
            for said in self.reader.newest(&place, from_ms, until_ms).await {
                let (account, chat) = (self.reader.account, place.chat.clone());
                let is_known = self.reader.store.is_captured(account, chat, said);
                if !is_known.await? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Stores a loss, once.
    async fn open(&self) -> Result<Option<AccountReach>, StoreError> {
        let failures = self.failures.load(Ordering::SeqCst);
        let mut reach = self.opening.lock().await;
        let losses = self.losses.load(Ordering::SeqCst);
        if losses != self.written.load(Ordering::SeqCst) {
            // A reader that waited during the failure does not have to wait for it again.
            if self.failures.load(Ordering::SeqCst) != failures {
                return Err(StoreError::Unavailable {
                    what: "a loss could not be written down".to_owned(),
                });
            }
            let opened =
                self.reader
                    .store
                    .open_reach(self.reader.account, LEAD_MS, (self.reader.clock)());
            *reach = Some(opened.await.inspect_err(|_| {
                self.failures.fetch_add(1, Ordering::SeqCst);
            })?);
            // If the connection was lost again meanwhile, that loss is stored too.
            self.written.store(losses, Ordering::SeqCst);
            self.is_behind.store(true, Ordering::SeqCst);
        }
        Ok(*reach)
    }

    /// Stores that a chat which the bot joins is to be read, before the joining is acknowledged.
    async fn note_joining(&self, envelope: &Envelope) -> Result<(), StoreError> {
        let Event::Membership { place, standing } = &envelope.event else {
            return Ok(());
        };
        if !standing.is_present() || !self.bounds.backfills() || !self.reader.intake.serves(place) {
            return Ok(());
        }
        let (chat, now_ms) = (place.chat.clone(), envelope.received_at_ms);
        self.reader
            .store
            .request_backfill(self.reader.account, chat, now_ms)
            .await?;
        self.is_behind.store(true, Ordering::SeqCst);
        self.wake.notify_one();
        Ok(())
    }
}

/// The keepers of the accounts whose platform has a history, for the job that reads back. Cloning shares them.
#[derive(Clone, Default)]
pub struct Keepers(Arc<std::sync::Mutex<HashMap<AccountId, Arc<CatchupKeeper>>>>);

impl Keepers {
    /// Adds an account's keeper, or replaces it.
    pub fn set(&self, keeper: &Arc<CatchupKeeper>) {
        let mut keepers = self.0.lock().expect("no holder of this lock panics");
        keepers.insert(keeper.reader.account, Arc::clone(keeper));
    }

    /// An account's keeper.
    #[must_use]
    pub fn get(&self, account: AccountId) -> Option<Arc<CatchupKeeper>> {
        let keepers = self.0.lock().expect("no holder of this lock panics");
        keepers.get(&account).cloned()
    }
}

/// A noted time; 0 if it is in the future, because a clock was ahead then.
fn past(noted: &AtomicI64, now_ms: i64) -> i64 {
    let forget = |noted_ms: i64| (noted_ms > now_ms + AHEAD_MS).then_some(0);
    let forgotten = noted.fetch_update(Ordering::SeqCst, Ordering::SeqCst, forget);
    forgotten.map_or_else(|noted_ms| noted_ms, |_| 0)
}

impl Intake for CatchupKeeper {
    fn accept(&self, envelope: Envelope) -> BoxFuture<'_, Result<Accepted, IntakeError>> {
        Box::pin(async move {
            let prepared = async {
                // A loss between this check and the capture concerns later messages.
                if self.is_lost() {
                    self.open().await?;
                    self.wake.notify_one();
                }
                self.note_joining(&envelope).await
            };
            self.told_at_ms
                .store(envelope.received_at_ms, Ordering::SeqCst);
            if let Event::Posted(message) = &envelope.event {
                self.heard_ms
                    .fetch_max(message.sent_at_ms, Ordering::SeqCst);
            }
            let refused = |cause: StoreError| IntakeError(Box::new(cause));
            let stored = match prepared.await {
                Ok(()) => self.reader.intake.accept(envelope).await,
                Err(cause) => Err(refused(cause)),
            };
            if stored.is_err() {
                self.note_loss();
            }
            stored
        })
    }
}
