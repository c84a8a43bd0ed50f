//! The read-only connections. Each read is one deferred transaction, so all its statements see one
//! snapshot; readers never wait for the writer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tokio::sync::Semaphore;

use crate::StoreError;
use crate::contract::StoreWork;
use crate::engine::sql;
use crate::engine::untyped::{UntypedJob, UntypedResult};
use crate::engine::work::WorkCounters;
use crate::engine::writer::inline::{AccessGate, Moment};
use crate::engine::writer::panicked;

/// A pool of read-only connections. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Readers {
    permits: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Connection>>>,
    work: Arc<WorkCounters>,
    /// If set, reads run on the caller's task after passing this gate.
    inline: Option<AccessGate>,
}

impl Readers {
    /// `inline`: without other threads, for simulations.
    pub(crate) fn new(
        connections: Vec<Connection>,
        work: Arc<WorkCounters>,
        inline: Option<AccessGate>,
    ) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(connections.len())),
            idle: Arc::new(Mutex::new(connections)),
            work,
            inline,
        }
    }

    /// Runs a read on a snapshot, off the async threads.
    pub(crate) async fn read(&self, job: UntypedJob) -> UntypedResult {
        if let Some(gate) = &self.inline {
            gate(Moment::Read).await?;
            return self.read_now(job);
        }
        let permit = Arc::clone(&self.permits)
            .acquire_owned()
            .await
            .map_err(|_| StoreError::Closed)?;
        let readers = self.clone();
        let reading = tokio::task::spawn_blocking(move || {
            let result = readers.read_now(job);
            drop(permit);
            result
        });
        reading.await.map_err(|_| StoreError::Closed)?
    }

    fn read_now(&self, job: UntypedJob) -> UntypedResult {
        let connection = self.take()?;
        let reading = || self.work.reading(|| snapshot(&connection, job));
        let result = catch_unwind(AssertUnwindSafe(reading))
            .unwrap_or_else(|panic| Err(panicked(panic.as_ref())));
        self.lock().push(connection);
        result
    }

    /// The work done so far by these readers and the writer that shares their counters.
    pub(crate) fn work(&self) -> StoreWork {
        self.work.read()
    }

    /// Closes the connections; later reads are refused.
    pub(crate) fn close(&self) {
        self.permits.close();
        self.lock().clear();
    }

    fn take(&self) -> Result<Connection, StoreError> {
        self.lock().pop().ok_or(StoreError::Closed)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn snapshot(connection: &Connection, job: UntypedJob) -> UntypedResult {
    let transaction = connection.unchecked_transaction()?;
    let result = job(&sql::Connection::of(&transaction))?;
    transaction.commit()?;
    Ok(result)
}
