//! Opens the connections of a database: the writer's under the lock, and those of readers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::StoreError;
use crate::engine::damage::{look_through, refuse_emptied};
use crate::engine::faults::{not_opened, unusable};
use crate::engine::lock::{self, BUSY_TIMEOUT_MS, WriteLock, make_private};
use crate::engine::schema::{self, MIGRATIONS};
use crate::engine::sql;

/// Prepared statements kept per connection: more than all the store's statements.
const STATEMENTS_MAX: usize = 512;

/// The bytes that the write-ahead log is truncated to after a checkpoint.
const LOG_BYTES_MAX: i64 = 64 << 20;

/// Where the database is and how it is opened.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The database file; `None` = a private database that is removed with the store.
    pub path: Option<PathBuf>,
    /// Read-only connections for snapshots; at least one is opened.
    pub readers: usize,
    /// Page cache per connection, in KiB.
    pub page_cache_kib: u32,
}

/// Dropped in this order once the last connection is closed.
pub(crate) struct OpenParts {
    pub(crate) lock: WriteLock,
    _private: Option<PrivateFolder>,
}

impl OpenParts {
    /// Finds the place of a database, and locks it.
    ///
    /// # Errors
    /// `Locked` if another process has it open; `Unusable` if there can be none.
    pub(crate) fn take(options: &StoreOptions) -> Result<(PathBuf, Self), StoreError> {
        let (path, private) = place_of(options)?;
        let lock = lock::take(&path)?;
        Ok((
            path,
            Self {
                lock,
                _private: private,
            },
        ))
    }
}

/// A private folder for a database.
struct PrivateFolder(PathBuf);

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
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

/// Opens the writer's connection, unless the database is damaged: then nothing is written to it.
pub(crate) fn open_whole(
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

/// Sets whether closing the connection writes the log into the database.
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
    connection.pragma_update(None, "foreign_keys", "ON")
}

fn configure(connection: &Connection, page_cache_kib: u32) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    // Keeps plans stable: SQLite would otherwise re-plan a cached statement when a parameter's value might matter.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.busy_timeout(Duration::from_millis(BUSY_TIMEOUT_MS))?;
    connection.pragma_update(None, "cache_size", -i64::from(page_cache_kib))?;
    connection.pragma_update(None, "temp_store", "MEMORY")
}

/// Opens read-only connections, each for one snapshot at a time.
pub(crate) fn open_readers(
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

/// Runs a job in a transaction of its own, while a store is opened.
pub(crate) fn in_transaction<T>(
    connection: &mut Connection,
    job: impl FnOnce(&sql::Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let transaction = connection.transaction()?;
    let done = job(&sql::Connection::of(&transaction))?;
    transaction.commit()?;
    Ok(done)
}
