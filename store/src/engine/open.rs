//! Opening and closing, and the two ways in: [`Store::write`] and [`Reader::read`].

use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::acts::erasure::settle_at_open;
use crate::acts::runs::take_back_leases_txn;
use crate::engine::damage::{DamageSign, look_again, look_through, refuse_emptied};
use crate::engine::faults::{not_opened, unusable, while_opening};
use crate::engine::lock::{self, WriteLock};
use crate::engine::reader::Readers;
use crate::engine::restore_traces::clear_traces;
use crate::engine::schema::{self, MIGRATIONS};
use crate::engine::sql;
use crate::engine::upgrade::upgrade;
use crate::engine::watch::{OpenPhase, OpenWatch};
use crate::engine::work::{StoreWork, WorkCounters};
use crate::engine::writer::Writer;
use crate::engine::writer::inline::Gate;
use crate::rows::contents;
use crate::rows::quarantine::release_of_other_versions_txn;
use crate::rows::search_text::{index_waiting_txn, prepare_indexing};
use crate::rows::stem_index;
use crate::{Reader, Store, StoreError};

/// Prepared statements kept per connection: more than all the store's statements.
const STATEMENTS_MAX: usize = 512;
/// How long a connection waits for another process that has the file locked.
pub(crate) const BUSY_TIMEOUT_MS: u64 = 5_000;
/// The write-ahead log is cut back to so many bytes after a checkpoint.
const LOG_BYTES_MAX: i64 = 64 << 20;

/// Where the database is and how it is opened.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The database file; `None` = a private database that is gone with the store.
    pub path: Option<PathBuf>,
    /// Read-only connections for snapshots; at least one is opened.
    pub readers: usize,
    /// Page cache per connection, in KiB.
    pub page_cache_kib: u32,
}

/// What opening did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenReport {
    /// What an upgrade did, with the copy it kept; nothing where there was none to do.
    pub migrations: Vec<String>,
    /// Leases of a predecessor that were taken back.
    pub leases_taken_back: u64,
    /// Sentences about a restore that was killed.
    pub restores: Vec<String>,
    /// Sentences about erasures that were finished, and what a person should know of the ledger.
    pub erasures: Vec<String>,
    /// Sentences about stored files that were removed or lost.
    pub files: Vec<String>,
}

/// What all clones of a store share.
pub(crate) struct Inner {
    readers: Readers,
    /// Dropped after the readers, so that its last checkpoint meets no reader.
    writer: Option<Writer>,
    /// The database file; `None` for a private one.
    database: Option<PathBuf>,
    /// Where the bytes of files are.
    files: PathBuf,
    damage: DamageSign,
}

/// Dropped in this order once the last connection is closed.
struct OpenParts {
    lock: WriteLock,
    _private: Option<PrivateFolder>,
}

/// A private folder for a database.
struct PrivateFolder(PathBuf);

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Store {
    /// Opens for writing: takes the lock, looks whether the database is whole, migrates, takes back a
    /// predecessor's leases (runs go back to queued; outbox entries whose send had started become
    /// unknown).
    ///
    /// # Errors
    /// `Locked` if another process has it open, `Newer` if a newer version wrote it, `Damaged` if it
    /// is damaged, in which case nothing was written; `Unusable` says what is in the way, and `Open`
    /// that it is not ours or can't be migrated.
    pub fn open(options: &StoreOptions, now_ms: i64) -> Result<(Self, OpenReport), StoreError> {
        Self::open_watched(options, now_ms, &OpenWatch::default())
    }

    /// Like [`Self::open`], for a caller that shows how far it is, or gives it up.
    ///
    /// # Errors
    /// As [`Self::open`]; `Stopped` if it was given up before the database was changed.
    pub fn open_watched(
        options: &StoreOptions,
        now_ms: i64,
        watch: &OpenWatch,
    ) -> Result<(Self, OpenReport), StoreError> {
        Self::open_for(options, now_ms, None, watch)
    }

    /// Like [`Self::open`], for a simulation: without threads of its own, every write a transaction
    /// of its own that is made where it is called, every access after passing the gate. Nothing is
    /// synced to disk.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_inline(
        options: &StoreOptions,
        now_ms: i64,
        gate: Gate,
    ) -> Result<(Self, OpenReport), StoreError> {
        Self::open_for(options, now_ms, Some(gate), &OpenWatch::default())
    }

    fn open_for(
        options: &StoreOptions,
        now_ms: i64,
        inline: Option<Gate>,
        watch: &OpenWatch,
    ) -> Result<(Self, OpenReport), StoreError> {
        let (path, private) = place_of(options)?;
        let held = OpenParts {
            lock: lock::take(&path)?,
            _private: private,
        };
        let is_durable = options.path.is_some() && inline.is_none();
        let restores = match is_durable {
            true => clear_traces(&path)?,
            false => Vec::new(),
        };
        let mut connection = open_whole(&path, options.page_cache_kib, is_durable)?;
        let mut report = OpenReport {
            migrations: upgrade(&mut connection, &path, MIGRATIONS, now_ms, watch)?,
            restores,
            ..OpenReport::default()
        };
        watch.enter(OpenPhase::Settling);
        let failed = |error| while_opening(&path, error);
        report.leases_taken_back = take_back_leases(&mut connection, now_ms).map_err(failed)?;
        if is_durable {
            report.erasures = settle_at_open(&mut connection, &path, now_ms).map_err(failed)?;
            let settled = contents::settle_at_open(&mut connection, &files_beside(&path), now_ms);
            report.files = settled.map_err(failed)?;
        }
        let connections = open_readers(&path, options.readers.max(1), options.page_cache_kib)?;
        let work = Arc::new(WorkCounters::default());
        let readers = Readers::new(connections, Arc::clone(&work), inline.clone());
        held.lock
            .note_used()
            .map_err(|error| unusable(&path, &error))?;
        checkpoint_at_close(&connection, true).map_err(|error| not_opened(&path, "", &error))?;
        let damage = DamageSign::new();
        let sign = damage.clone();
        let writer = match inline {
            Some(gate) => {
                Writer::without_thread(connection, index_waiting_txn, sign, work, held, gate)
            }
            None => Writer::start(connection, is_durable, index_waiting_txn, sign, work, held)
                .map_err(|error| unusable(&path, &error))?,
        };
        let database = options.path.clone();
        let files = files_beside(&path);
        let store = Self::with(readers, Some(writer), database, files, damage);
        Ok((store, report))
    }

    /// Opens read-only, without the lock, beside a running daemon.
    ///
    /// # Errors
    /// `Newer` if a newer version wrote it; `Damaged`, `Unusable`, or `Open` if it is not ours or has
    /// an older schema.
    pub fn open_read_only(path: &Path) -> Result<Self, StoreError> {
        const READERS: usize = 1;
        const PAGE_CACHE_KIB: u32 = 4_096;
        let connections = open_readers(path, READERS, PAGE_CACHE_KIB)?;
        let readers = Readers::new(connections, Arc::default(), None);
        let database = Some(path.to_owned());
        let files = files_beside(path);
        Ok(Self::with(
            readers,
            None,
            database,
            files,
            DamageSign::new(),
        ))
    }

    fn with(
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
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        job: impl FnOnce(&sql::Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.noted(self.writer()?.write(job).await)
    }

    /// Runs a job in the next write transaction; answers once it is committed and seen by all, which
    /// the death of the process does not undo. A power cut may, until the next [`Self::write`]: only
    /// for what a restart makes good, such as a lease.
    pub(crate) async fn write_riding<T: Send + 'static>(
        &self,
        job: impl FnOnce(&sql::Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.noted(self.writer()?.write_riding(job).await)
    }

    /// Like [`Self::write`], for a job that fails only where storage does, and that comes in floods:
    /// should it fail all the same, all that would have shared its commit fails with it, once.
    pub(crate) async fn write_shared<T: Send + 'static>(
        &self,
        job: impl FnOnce(&sql::Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.noted(self.writer()?.write_shared(job).await)
    }

    /// Like [`Self::write`], for a job that deletes what a person said: it goes from the
    /// write-ahead log too.
    pub(crate) async fn write_and_scrub<T: Send + 'static>(
        &self,
        job: impl FnOnce(&sql::Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.noted(self.writer()?.write_and_scrub(job).await)
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

    /// Waits for a sign of damage, and gives it. From then on nothing is written: what was not
    /// committed is to be had from the platforms again.
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
    fn noted<T>(&self, result: Result<T, StoreError>) -> Result<T, StoreError> {
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

    /// The age of the oldest write in work, in milliseconds: the watchdog's sign of life.
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
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        job: impl FnOnce(&sql::Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.noted(self.inner.readers.read(job).await)
    }

    /// What was done since it was opened, by readers and the writer.
    #[must_use]
    pub fn work(&self) -> StoreWork {
        self.inner.readers.work()
    }
}

/// The folder of files that belongs to a database.
pub(crate) fn files_beside(database: &Path) -> PathBuf {
    database.with_file_name(contents::FOLDER_NAME)
}

fn place_of(options: &StoreOptions) -> Result<(PathBuf, Option<PrivateFolder>), StoreError> {
    let (path, private) = match &options.path {
        Some(path) => (path.clone(), None),
        None => {
            let folder = std::env::temp_dir().join(format!("vocative-{}", uuid::Uuid::new_v4()));
            (
                folder.join("store.sqlite"),
                Some(PrivateFolder(folder.clone())),
            )
        }
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| unusable(&path, &error))?;
    }
    Ok((path, private))
}

/// Makes a new file readable by its owner only; SQLite gives its other files the same mode.
pub(crate) fn make_private(path: &Path) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

/// Opens the writer's connection, unless the database is damaged: then nothing is written onto it.
fn open_whole(
    path: &Path,
    page_cache_kib: u32,
    is_durable: bool,
) -> Result<Connection, StoreError> {
    let said = |error: rusqlite::Error| not_opened(path, "", &error);
    refuse_emptied(path)?;
    make_private(path).map_err(|error| unusable(path, &error))?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(said)?;
    checkpoint_at_close(&connection, false).map_err(said)?;
    configure(&connection, page_cache_kib).map_err(said)?;
    look_through(&connection, path)?;
    configure_writer(&connection, is_durable).map_err(said)?;
    Ok(connection)
}

/// Whether the log is brought into the database when the connection is closed.
pub(crate) fn checkpoint_at_close(connection: &Connection, is_on: bool) -> rusqlite::Result<()> {
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !is_on)
        .map(drop)
}

fn configure_writer(connection: &Connection, is_durable: bool) -> rusqlite::Result<()> {
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    // FULL syncs the log at every commit: what is acknowledged survives a power cut.
    let synchronous = if is_durable { "FULL" } else { "OFF" };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update_and_check(None, "journal_size_limit", LOG_BYTES_MAX, |_| Ok(()))?;
    connection.pragma_update_and_check(None, "secure_delete", "ON", |_| Ok(()))?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    prepare_indexing(&sql::Connection::of(connection))
}

fn configure(connection: &Connection, page_cache_kib: u32) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    // Without it SQLite plans a cached statement anew whenever a parameter's value might matter.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.busy_timeout(Duration::from_millis(BUSY_TIMEOUT_MS))?;
    connection.pragma_update(None, "cache_size", -i64::from(page_cache_kib))?;
    connection.pragma_update(None, "temp_store", "MEMORY")
}

fn open_readers(
    path: &Path,
    count: usize,
    page_cache_kib: u32,
) -> Result<Vec<Connection>, StoreError> {
    refuse_emptied(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || {
        let connection = Connection::open_with_flags(path, flags)?;
        configure(&connection, page_cache_kib)?;
        Ok(connection)
    };
    let connections: rusqlite::Result<Vec<_>> = (0..count).map(|_| open()).collect();
    let connections = connections.map_err(|error| not_opened(path, "", &error))?;
    if let Some(connection) = connections.first() {
        let found = schema::check(connection, path, MIGRATIONS)?;
        if (found as usize) < MIGRATIONS.len() {
            return Err(StoreError::Open {
                path: path.to_owned(),
                what: format!(
                    "it has schema {found}, older than this build's; start the daemon once to \
                     migrate it"
                ),
            });
        }
    }
    Ok(connections)
}

/// The lock says that every lease is of a process that is gone.
fn take_back_leases(connection: &mut Connection, now_ms: i64) -> Result<u64, StoreError> {
    let transaction = connection.transaction()?;
    let inside = sql::Connection::of(&transaction);
    let taken_back = take_back_leases_txn(&inside, now_ms)?;
    release_of_other_versions_txn(&inside, now_ms)?;
    stem_index::settle_at_open_txn(&inside, now_ms)?;
    transaction.commit()?;
    Ok(taken_back)
}
