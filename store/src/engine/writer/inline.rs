//! A writer without a thread, for simulations: a write runs on the caller's task, in a transaction of
//! its own, through the same code as the thread's batches.
//!
//! A simulation must be repeatable, so nothing may depend on how threads are scheduled; and a simulated clock,
//! which advances when all tasks wait, can't see a busy thread. Batches of many jobs are tested elsewhere.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::{
    BatchFinish, CommitMode, Gauges, JobBatch, SyncLevel, WriterDesk, close, leave, with_reply,
};
use crate::StoreError;
use crate::engine::damage::DamageSign;
use crate::engine::untyped::{UntypedJob, UntypedResult};

/// When a gate is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before a read.
    Read,
    /// Before a write.
    BeforeWrite,
    /// After its commit, before its caller hears of it.
    AfterWrite,
}

/// Awaited at every access. It may take time, never return (the process is dead), or refuse a read or
/// write, as a disk may.
pub type AccessGate =
    Arc<dyn Fn(Moment) -> BoxFuture<'static, Result<(), StoreError>> + Send + Sync>;

/// The writer.
pub(super) struct Inline {
    gate: AccessGate,
    finish: BatchFinish,
    sign: DamageSign,
    seat: Mutex<Option<InlineState>>,
}

/// The state that a writer thread would own; dropped in this order.
struct InlineState {
    connection: Connection,
    _keep: Box<dyn Any + Send>,
}

impl Inline {
    pub(super) fn new(
        connection: Connection,
        finish: BatchFinish,
        sign: DamageSign,
        keep: impl Any + Send,
        gate: AccessGate,
    ) -> Self {
        let seat = InlineState {
            connection,
            _keep: Box::new(keep),
        };
        Self {
            gate,
            finish,
            sign,
            seat: Mutex::new(Some(seat)),
        }
    }

    pub(super) async fn write(
        &self,
        mode: CommitMode,
        job: UntypedJob,
        gauges: &Gauges,
    ) -> UntypedResult {
        (self.gate)(Moment::BeforeWrite).await?;
        let (tx, mut answer) = oneshot::channel();
        let batch = JobBatch {
            jobs: vec![(mode, with_reply(job, tx))],
            must_sync: false,
        };
        self.commit(batch, gauges)?;
        // The commit is done, so a refusal of the gate changes nothing.
        let _ = (self.gate)(Moment::AfterWrite).await;
        answer.try_recv().unwrap_or_else(|_| {
            Err(StoreError::Unavailable {
                what: "a job went without an answer".to_owned(),
            })
        })
    }

    fn commit(&self, batch: JobBatch, gauges: &Gauges) -> Result<(), StoreError> {
        let seat = self.seat();
        let desk = WriterDesk {
            connection: &seat.as_ref().ok_or(StoreError::Closed)?.connection,
            finish: self.finish,
            sign: &self.sign,
            gauges,
        };
        desk.commit_batch(batch, &mut SyncLevel::new(false));
        desk.scrub_if_due();
        Ok(())
    }

    pub(super) fn close(&self) -> Result<(), StoreError> {
        let InlineState { connection, _keep } = self.seat().take().ok_or(StoreError::Closed)?;
        match self.sign.seen() {
            Some(what) => Err(leave(connection, &what)),
            None => close(connection),
        }
    }

    fn seat(&self) -> MutexGuard<'_, Option<InlineState>> {
        self.seat.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
