//! The one writer. Takes what is pending, up to [`BATCH_JOBS_MAX`] jobs, into one transaction with
//! one sync to disk, each job in a savepoint of its own; replies only after the commit.
//!
//! There is no timer: a lone write commits at once, and while it syncs the next batch gathers. A batch that
//! holds only [`CommitMode::Rides`] jobs is committed without a sync: it survives the death of the process,
//! but a power cut before the next sync undoes it. A job that fails or panics is rolled back alone; a failing
//! [`CommitMode::Shared`] job takes its batch with it. If the commit fails, every job of the batch is told so
//! and nothing of it was applied. After the first sign of damage every job is refused and nothing is written
//! any more. The writer knows nothing of what the jobs write. `inline` is a writer without a thread, for
//! simulations.

pub(crate) mod inline;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot, watch};
use vocative_contract::crash::{self, Sabotage};

use crate::StoreError;
use crate::engine::damage::DamageSign;
use crate::engine::error::is_damage;
use crate::engine::faults::while_open;
use crate::engine::lock::BUSY_TIMEOUT_MS;
use crate::engine::open::checkpoint_at_close;
use crate::engine::sql;
use crate::engine::untyped::{UntypedJob, UntypedResult};
use crate::engine::work::WorkCounters;
use inline::{AccessGate, Inline};

/// The most jobs that share a commit.
const BATCH_JOBS_MAX: usize = 512;
/// For this many batches after a job made its whole batch fail, each job can be rolled back alone, so that
/// another failure harms only its own job.
const CAREFUL_BATCHES: u32 = 64;
/// The most jobs in the writer's queue; further callers wait to enter it.
const QUEUE_JOBS_MAX: usize = 4_096;

/// A job, called with the connection, or with the reason why it can't run.
type WriteJob = Box<dyn FnOnce(Result<&sql::Connection, &BatchRefusal>) -> WriteDone + Send>;
/// A step that runs once for all jobs of a batch, before it is committed.
type BatchFinish = fn(&sql::Connection) -> Result<(), StoreError>;
type Completion = Box<dyn FnOnce(Result<(), &BatchRefusal>) + Send>;

/// Why a batch can't be run or committed.
#[derive(Clone, Debug)]
struct BatchRefusal {
    what: String,
    is_damage: bool,
}

impl BatchRefusal {
    fn passing(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            is_damage: false,
        }
    }

    fn damage(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            is_damage: true,
        }
    }
}

impl From<rusqlite::Error> for BatchRefusal {
    fn from(error: rusqlite::Error) -> Self {
        Self {
            is_damage: is_damage(&error),
            what: while_open(&error),
        }
    }
}

impl From<StoreError> for BatchRefusal {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Damaged { what, .. } => Self::damage(what),
            StoreError::Unavailable { what } => Self::passing(what),
            other => Self::passing(other.to_string()),
        }
    }
}

impl From<&BatchRefusal> for StoreError {
    fn from(refusal: &BatchRefusal) -> Self {
        let what = refusal.what.clone();
        match refusal.is_damage {
            true => Self::Damaged {
                database: None,
                what,
            },
            false => Self::Unavailable { what },
        }
    }
}

/// The result of a job that ran: whether its writes stay, and how to reply to its caller.
struct WriteDone {
    is_ok: bool,
    /// The damage that the job found, if any.
    damage: Option<String>,
    reply: Completion,
}

enum WriterMessage {
    Job {
        queued_at: Instant,
        mode: CommitMode,
        job: WriteJob,
    },
    Close(oneshot::Sender<Result<(), StoreError>>),
}

/// How a job is committed and undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommitMode {
    /// The commit is synced; a failing job is rolled back alone.
    Alone,
    /// Needs no sync; a failing job is rolled back alone.
    Rides,
    /// The commit is synced; a failing job is rolled back with its batch.
    Shared,
}

/// Jobs that share a commit.
#[derive(Default)]
struct JobBatch {
    jobs: Vec<(CommitMode, WriteJob)>,
    /// Whether a job needs the commit to be synced.
    must_sync: bool,
}

impl JobBatch {
    fn undo_each_alone(&mut self) {
        for (mode, _) in &mut self.jobs {
            if *mode == CommitMode::Shared {
                *mode = CommitMode::Alone;
            }
        }
    }
}

/// The state that the writer shares with its handles.
#[derive(Debug, Default)]
struct Gauges {
    /// When the oldest job of the current batch was queued.
    oldest: Mutex<Option<Instant>>,
    work: Arc<WorkCounters>,
    /// Told of every commit.
    committed: watch::Sender<()>,
    /// Whether something was deleted that the write-ahead log still holds.
    must_scrub: AtomicBool,
}

impl Gauges {
    fn of(work: Arc<WorkCounters>) -> Self {
        Self {
            work,
            ..Self::default()
        }
    }
}

/// The handle of the writer thread. Dropping it commits what is pending and ends the thread.
pub(crate) struct Writer {
    queue: Option<mpsc::Sender<WriterMessage>>,
    /// The writer without a thread, if there is no `thread`.
    inline: Option<Inline>,
    gauges: Arc<Gauges>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread. Unless `is_durable`, nothing is ever synced. `finish` runs at the end of
    /// every transaction, outside any savepoint. After a sign of damage nothing is written. `keep`, which
    /// holds the lock, is dropped only after the connection is closed.
    pub(crate) fn start(
        connection: Connection,
        is_durable: bool,
        finish: BatchFinish,
        sign: DamageSign,
        work: Arc<WorkCounters>,
        keep: impl Any + Send,
    ) -> Result<Self, std::io::Error> {
        let (queue, inbox) = mpsc::channel(QUEUE_JOBS_MAX);
        let gauges = Arc::new(Gauges::of(work));
        let shared = Arc::clone(&gauges);
        let thread = std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || {
                let desk = WriterDesk {
                    connection: &connection,
                    finish,
                    sign: &sign,
                    gauges: &shared,
                };
                let end = desk.work(is_durable, inbox);
                let closed = match sign.seen() {
                    Some(what) => Err(leave(connection, &what)),
                    None => close(connection),
                };
                drop(keep);
                if let Some(reply) = end {
                    let _ = reply.send(closed);
                }
            })?;
        Ok(Self {
            queue: Some(queue),
            inline: None,
            gauges,
            thread: Some(thread),
        })
    }

    /// A writer without a thread: see [`Inline`]. Nothing is ever synced.
    pub(crate) fn without_thread(
        connection: Connection,
        finish: BatchFinish,
        sign: DamageSign,
        work: Arc<WorkCounters>,
        keep: impl Any + Send,
        gate: AccessGate,
    ) -> Self {
        Self {
            queue: None,
            inline: Some(Inline::new(connection, finish, sign, keep, gate)),
            gauges: Arc::new(Gauges::of(work)),
            thread: None,
        }
    }

    /// Waits until the writer's thread has ended; for ever if the store has no such thread.
    pub(crate) async fn ended(&self) {
        match &self.queue {
            Some(queue) => queue.closed().await,
            None => std::future::pending().await,
        }
    }

    /// Runs a job in the next transaction, and answers as its mode says.
    pub(crate) async fn write(&self, mode: CommitMode, job: UntypedJob) -> UntypedResult {
        if let Some(inline) = &self.inline {
            return inline.write(mode, job, &self.gauges).await;
        }
        let queue = self.queue.as_ref().ok_or(StoreError::Closed)?;
        let (tx, rx) = oneshot::channel();
        let message = WriterMessage::Job {
            queued_at: Instant::now(),
            mode,
            job: with_reply(job, tx),
        };
        queue.send(message).await.map_err(|_| StoreError::Closed)?;
        rx.await.map_err(|_| StoreError::Closed)?
    }

    /// Marks a job as one that deletes: after its batch, the write-ahead log is emptied too.
    pub(crate) fn scrubbing(&self, job: UntypedJob) -> UntypedJob {
        let gauges = Arc::clone(&self.gauges);
        Box::new(move |connection| {
            gauges.must_scrub.store(true, Ordering::Relaxed);
            job(connection)
        })
    }

    /// Commits what is pending, checkpoints, and ends the thread.
    pub(crate) async fn close(&self) -> Result<(), StoreError> {
        if let Some(inline) = &self.inline {
            return inline.close();
        }
        let queue = self.queue.as_ref().ok_or(StoreError::Closed)?;
        let (tx, rx) = oneshot::channel();
        queue
            .send(WriterMessage::Close(tx))
            .await
            .map_err(|_| StoreError::Closed)?;
        rx.await.map_err(|_| StoreError::Closed)?
    }

    /// Changes with every commit.
    pub(crate) fn committed(&self) -> watch::Receiver<()> {
        self.gauges.committed.subscribe()
    }

    /// The age of the oldest write in progress, in milliseconds.
    pub(crate) fn lag_ms(&self) -> u64 {
        let oldest = *self
            .gauges
            .oldest
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        oldest.map_or(0, |at| {
            u64::try_from(at.elapsed().as_millis()).unwrap_or(u64::MAX)
        })
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue = None;
        let Some(thread) = self.thread.take() else {
            return;
        };
        // The last handle may be inside a job; a thread can't wait for itself.
        if thread.thread().id() != std::thread::current().id() {
            let _ = thread.join();
        }
    }
}

/// The job as the thread runs it: its panic is caught, and its caller is told once it is committed.
fn with_reply(job: UntypedJob, tx: oneshot::Sender<UntypedResult>) -> WriteJob {
    Box::new(move |connection| {
        let result = connection.map_err(StoreError::from).and_then(|connection| {
            catch_unwind(AssertUnwindSafe(|| job(connection)))
                .unwrap_or_else(|panic| Err(panicked(panic.as_ref())))
        });
        let damage = match &result {
            Err(StoreError::Damaged { what, .. }) => Some(what.clone()),
            _ => None,
        };
        WriteDone {
            is_ok: result.is_ok(),
            damage,
            reply: Box::new(move |committed| {
                let answer = match committed {
                    Ok(()) => result,
                    Err(refusal) => result.and_then(|_| Err(refusal.into())),
                };
                // A caller that went away does not undo its write.
                let _ = tx.send(answer);
            }),
        }
    })
}

pub(crate) fn panicked(panic: &(dyn Any + Send)) -> StoreError {
    let what = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    StoreError::Unavailable {
        what: format!("a query panicked, which is a bug: {what}"),
    }
}

/// The state that the writer thread works with.
struct WriterDesk<'a> {
    connection: &'a Connection,
    finish: BatchFinish,
    sign: &'a DamageSign,
    gauges: &'a Gauges,
}

impl WriterDesk<'_> {
    /// Works until it is told to close or every handle is gone.
    fn work(
        &self,
        is_durable: bool,
        mut inbox: mpsc::Receiver<WriterMessage>,
    ) -> Option<oneshot::Sender<Result<(), StoreError>>> {
        let mut end = None;
        let mut batch = JobBatch::default();
        let mut sync = SyncLevel::new(is_durable);
        let mut careful_batches = 0_u32;
        while let Some(message) = inbox.blocking_recv() {
            let mut next = Some(message);
            while let Some(message) = next {
                match message {
                    WriterMessage::Job {
                        queued_at,
                        mode,
                        job,
                    } => {
                        if batch.jobs.is_empty() {
                            set_oldest(self.gauges, Some(queued_at));
                        }
                        batch.jobs.push((mode, job));
                        batch.must_sync |= mode != CommitMode::Rides;
                    }
                    WriterMessage::Close(reply) => {
                        inbox.close();
                        end = Some(reply);
                    }
                }
                next = (batch.jobs.len() < BATCH_JOBS_MAX)
                    .then(|| inbox.try_recv().ok())
                    .flatten();
            }
            let mut batch = std::mem::take(&mut batch);
            if careful_batches > 0 {
                careful_batches -= 1;
                batch.undo_each_alone();
            }
            if !self.commit_batch(batch, &mut sync) {
                careful_batches = CAREFUL_BATCHES;
            }
            set_oldest(self.gauges, None);
            self.scrub_if_due();
        }
        end
    }

    /// Runs and commits a batch and answers its callers; whether it was committed.
    fn commit_batch(&self, batch: JobBatch, sync: &mut SyncLevel) -> bool {
        let JobBatch { jobs, must_sync } = batch;
        if jobs.is_empty() {
            return true;
        }
        let mut replies = Vec::with_capacity(jobs.len());
        let work = &self.gauges.work;
        let rows_before = self.connection.total_changes();
        let committed = work.writing(jobs.len(), || {
            let begun = self.begin(must_sync, sync);
            run_batch(self.connection, begun, jobs, self.finish, &mut replies)
        });
        match &committed {
            Ok(()) => {
                work.note_commit(self.connection.total_changes() - rows_before, must_sync);
                self.gauges.committed.send_replace(());
            }
            Err(refusal) => {
                if refusal.is_damage {
                    self.sign.note(&refusal.what);
                }
                if !self.connection.is_autocommit() {
                    let _ = self.connection.execute_batch("ROLLBACK");
                }
            }
        }
        for reply in replies {
            reply(committed.as_ref().copied());
        }
        committed.is_ok()
    }

    fn begin(&self, must_sync: bool, sync: &mut SyncLevel) -> Result<(), BatchRefusal> {
        if let Some(what) = self.sign.seen() {
            return Err(BatchRefusal::damage(what));
        }
        sync.set(self.connection, must_sync)?;
        Ok(execute(self.connection, "BEGIN IMMEDIATE")?)
    }

    fn scrub_if_due(&self) {
        let must_scrub = &self.gauges.must_scrub;
        if must_scrub.load(Ordering::Relaxed) && self.sign.seen().is_none() {
            let is_scrubbed = scrub(self.connection).unwrap_or(false);
            must_scrub.store(!is_scrubbed, Ordering::Relaxed);
        }
    }
}

/// Empties the write-ahead log into the database; returns `false` if a reader still needs the log, and
/// then the next batch tries again.
fn scrub(connection: &Connection) -> rusqlite::Result<bool> {
    connection.busy_timeout(Duration::ZERO)?;
    let is_busy: rusqlite::Result<bool> =
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
    connection.busy_timeout(Duration::from_millis(BUSY_TIMEOUT_MS))?;
    is_busy.map(|is_busy| !is_busy)
}

fn set_oldest(gauges: &Gauges, at: Option<Instant>) {
    *gauges.oldest.lock().unwrap_or_else(PoisonError::into_inner) = at;
}

/// Whether commits of the connection wait for the disk.
struct SyncLevel {
    is_durable: bool,
    is_on: bool,
}

impl SyncLevel {
    /// The level that [`crate::engine::open`] set on the connection.
    fn new(is_durable: bool) -> Self {
        Self {
            is_durable,
            is_on: is_durable,
        }
    }

    /// Sets the level; allowed between transactions only.
    fn set(&mut self, connection: &Connection, is_on: bool) -> rusqlite::Result<()> {
        if !self.is_durable || self.is_on == is_on {
            return Ok(());
        }
        // At either level the log is synced before a checkpoint copies it, so the file stays whole.
        let level = if is_on { "FULL" } else { "NORMAL" };
        connection.pragma_update(None, "synchronous", level)?;
        self.is_on = is_on;
        Ok(())
    }
}

/// Runs the jobs in the transaction that `begun` says is open, and commits it.
fn run_batch(
    connection: &Connection,
    begun: Result<(), BatchRefusal>,
    jobs: Vec<(CommitMode, WriteJob)>,
    finish: BatchFinish,
    replies: &mut Vec<Completion>,
) -> Result<(), BatchRefusal> {
    let mut state = begun;
    let is_capture = jobs.iter().any(|(mode, _)| *mode == CommitMode::Shared);
    for (mode, job) in jobs {
        let is_shared = mode == CommitMode::Shared;
        if state.is_ok() && !is_shared {
            state = execute(connection, "SAVEPOINT job").map_err(BatchRefusal::from);
        }
        let inside = sql::Connection::of(connection);
        let done = job(state.as_ref().map(|()| &inside));
        replies.push(done.reply);
        if state.is_ok() {
            state = match done.damage {
                Some(what) => Err(BatchRefusal::damage(what)),
                None => settle(connection, done.is_ok, is_shared),
            };
        }
    }
    state?;
    finish(&sql::Connection::of(connection))?;
    if is_capture && crash::is_sabotaged(Sabotage::AckBeforeCommit) {
        replies.drain(..).for_each(|reply| reply(Ok(())));
        std::thread::park_timeout(Duration::from_millis(500));
    }
    Ok(execute(connection, "COMMIT")?)
}

/// Keeps or undoes one job. A full disk may have ended the whole transaction under it.
fn settle(connection: &Connection, is_ok: bool, is_shared: bool) -> Result<(), BatchRefusal> {
    if connection.is_autocommit() {
        let ended = "the database ended the transaction (disk full or an I/O error)";
        return Err(BatchRefusal::passing(ended));
    }
    if is_shared {
        let failed = "a write that shared its commit failed, and this one with it";
        return is_ok
            .then_some(())
            .ok_or_else(|| BatchRefusal::passing(failed));
    }
    if !is_ok {
        execute(connection, "ROLLBACK TO job")?;
    }
    Ok(execute(connection, "RELEASE job")?)
}

fn execute(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(|_| ())
}

/// Closes the connection to a damaged database without a checkpoint: its files stay as they are.
fn leave(connection: Connection, what: &str) -> StoreError {
    // This could fail only for a connection that is not open.
    let _ = checkpoint_at_close(&connection, false);
    let _ = connection.close();
    StoreError::from(&BatchRefusal::damage(what))
}

fn close(connection: Connection) -> Result<(), StoreError> {
    // Updates the planner's statistics if tables have grown much; a failure does no harm.
    let _ = connection.execute_batch("PRAGMA optimize");
    let truncated = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    let closed = connection.close().map_err(|(_, error)| error);
    truncated.and(closed).map_err(StoreError::from)
}
