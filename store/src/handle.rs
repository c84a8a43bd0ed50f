//! The handles of a store, and the two ways in: [`Store::write`] and [`Reader::read`].

use std::marker::PhantomData;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::StoreError;
use crate::capability::{Capability, Everything};
use crate::contract::StoreWork;
use crate::engine::damage::{DamageSign, look_again};
use crate::engine::reader::Readers;
use crate::engine::sql;
use crate::engine::untyped::{Typed, UntypedJob, UntypedResult, untyped};
use crate::engine::writer::{CommitMode, Writer};

/// A handle on the store that may write what its [`Capability`] allows. Cloning shares the store.
pub struct Store<C = Everything> {
    reader: Reader,
    may: PhantomData<fn() -> C>,
}

/// A handle on the store that may only read. Cloning shares the store.
#[derive(Clone)]
pub struct Reader {
    inner: Arc<Inner>,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").finish_non_exhaustive()
    }
}

/// What all clones of a store share.
struct Inner {
    readers: Readers,
    /// Dropped after the readers, so that its last checkpoint meets no reader.
    writer: Option<Writer>,
    /// The database file; `None` for a private one.
    database: Option<PathBuf>,
    /// Where the bytes of files are.
    files: PathBuf,
    damage: DamageSign,
}

impl Store {
    /// A handle on the same store with only the capability `C`.
    #[must_use]
    pub fn only<C: Capability>(&self) -> Store<C> {
        Store {
            reader: self.reader.clone(),
            may: PhantomData,
        }
    }
}

impl<C> Store<C> {
    /// A handle on the same store that may only read.
    #[must_use]
    pub fn reader(&self) -> Reader {
        self.reader.clone()
    }
}

impl<C> Clone for Store<C> {
    fn clone(&self) -> Self {
        Self {
            reader: self.reader.clone(),
            may: PhantomData,
        }
    }
}

impl<C> Deref for Store<C> {
    type Target = Reader;

    fn deref(&self) -> &Reader {
        &self.reader
    }
}

impl<C> std::fmt::Debug for Store<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}

impl Store {
    /// A store over opened connections; without a writer it is read-only.
    pub(crate) fn with(
        readers: Readers,
        writer: Option<Writer>,
        database: Option<PathBuf>,
        files: PathBuf,
        damage: DamageSign,
    ) -> Self {
        let inner = Inner {
            readers,
            writer,
            database,
            files,
            damage,
        };
        let reader = Reader {
            inner: Arc::new(inner),
        };
        Self {
            reader,
            may: PhantomData,
        }
    }

    /// Commits what is pending, checkpoints, stops the writer, releases the lock.
    ///
    /// # Errors
    /// `Closed` if it is closed already; `Unavailable` if the checkpoint failed, in which case
    /// everything committed is still safe in the write-ahead log.
    pub async fn close(&self) -> Result<(), StoreError> {
        self.inner.readers.close();
        match &self.inner.writer {
            Some(writer) => writer.close().await,
            None => Ok(()),
        }
    }
}

impl<C> Store<C> {
    /// Runs a job in the next write transaction; answers once it is on disk. A job that fails
    /// leaves nothing behind.
    pub(crate) fn write<T: Send + 'static>(
        &self,
        job: impl FnOnce(&sql::Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Typed<'_, T> {
        Typed::of(Box::pin(
            self.reader.write_untyped(CommitMode::Alone, untyped(job)),
        ))
    }

    /// Runs a job in the next write transaction; answers once it is committed and visible to all readers. The
    /// commit survives the death of the process, but until the next [`Self::write`] a power cut may undo it:
    /// only for writes that a restart makes good, such as a lease.
    pub(crate) fn write_riding<T: Send + 'static>(
        &self,
        job: impl FnOnce(&sql::Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Typed<'_, T> {
        Typed::of(Box::pin(
            self.reader.write_untyped(CommitMode::Rides, untyped(job)),
        ))
    }

    /// Like [`Self::write`], for frequent jobs that fail only if storage fails: should such a job fail all the
    /// same, every job of its batch fails with it, once.
    pub(crate) fn write_shared<T: Send + 'static>(
        &self,
        job: impl FnOnce(&sql::Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Typed<'_, T> {
        Typed::of(Box::pin(
            self.reader.write_untyped(CommitMode::Shared, untyped(job)),
        ))
    }

    /// Like [`Self::write`], for a job that deletes what a person said: it goes from the
    /// write-ahead log too.
    pub(crate) fn write_and_scrub<T: Send + 'static>(
        &self,
        job: impl FnOnce(&sql::Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Typed<'_, T> {
        Typed::of(Box::pin(self.reader.scrub_untyped(untyped(job))))
    }
}

impl Reader {
    /// The database file; `None` for a private one.
    pub(crate) fn database_path(&self) -> Option<&Path> {
        self.inner.database.as_deref()
    }

    /// The folder of the bytes of files.
    pub(crate) fn files_folder(&self) -> &Path {
        &self.inner.files
    }

    /// Waits for a sign of damage, and returns it. From then on nothing is written: events that were not
    /// committed can be fetched from the platforms again.
    pub async fn damaged(&self) -> StoreError {
        let what = self.inner.damage.wait().await;
        StoreError::Damaged {
            database: self.inner.database.clone(),
            what,
        }
    }

    /// Reads everything again after a sign of damage, and says what it was: `Damaged`, or `Unusable`
    /// if it is the disk that fails or nothing is found.
    pub async fn examine(&self, sign: StoreError) -> StoreError {
        let StoreError::Damaged {
            database: Some(path),
            what,
        } = &sign
        else {
            return sign;
        };
        let (path, what) = (path.clone(), what.clone());
        let looking = tokio::task::spawn_blocking(move || look_again(&path, &what));
        looking.await.unwrap_or(sign)
    }

    /// Notes a sign of damage, and says which file it is about.
    fn noted(&self, result: UntypedResult) -> UntypedResult {
        result.map_err(|error| match error {
            StoreError::Damaged { what, .. } => {
                self.inner.damage.note(&what);
                StoreError::Damaged {
                    database: self.inner.database.clone(),
                    what,
                }
            }
            other => other,
        })
    }

    /// Waits until writing has come to an end, by [`Store::close`](crate::Store::close) or by a bug.
    pub async fn ended(&self) {
        match &self.inner.writer {
            Some(writer) => writer.ended().await,
            None => std::future::pending().await,
        }
    }

    /// The age of the oldest write in progress, in milliseconds: the watchdog's sign of life.
    #[must_use]
    pub fn writer_lag_ms(&self) -> u64 {
        self.inner.writer.as_ref().map_or(0, Writer::lag_ms)
    }

    /// Changes with every commit; `None` where this handle only reads.
    pub(crate) fn committed(&self) -> Option<tokio::sync::watch::Receiver<()>> {
        self.inner.writer.as_ref().map(Writer::committed)
    }

    fn writer(&self) -> Result<&Writer, StoreError> {
        let writer = self.inner.writer.as_ref();
        writer.ok_or_else(|| StoreError::Unavailable {
            what: "this handle only reads".to_owned(),
        })
    }

    /// Runs a job on a snapshot of all that is committed.
    pub(crate) fn read<T: Send + 'static>(
        &self,
        job: impl FnOnce(&sql::Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Typed<'_, T> {
        Typed::of(Box::pin(self.read_untyped(untyped(job))))
    }

    async fn write_untyped(&self, mode: CommitMode, job: UntypedJob) -> UntypedResult {
        self.noted(self.writer()?.write(mode, job).await)
    }

    async fn scrub_untyped(&self, job: UntypedJob) -> UntypedResult {
        let job = self.writer()?.scrubbing(job);
        self.write_untyped(CommitMode::Alone, job).await
    }

    async fn read_untyped(&self, job: UntypedJob) -> UntypedResult {
        self.noted(self.inner.readers.read(job).await)
    }

    /// The work that the readers and the writer have done since the store was opened.
    #[must_use]
    pub fn work(&self) -> StoreWork {
        self.inner.readers.work()
    }
}
