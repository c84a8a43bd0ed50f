//! The lock that keeps a second daemon off the database. The kernel lets it go when the process
//! ends, however it ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::StoreError;
use crate::engine::faults::unusable;

/// How long a connection waits for another process that has the file locked.
pub(crate) const BUSY_TIMEOUT_MS: u64 = 5_000;

/// Held while the database is open for writing.
#[derive(Debug)]
pub(crate) struct WriteLock {
    file: File,
}

impl WriteLock {
    /// Notes that the database exists, so that an empty file found later is known not to be a new database.
    pub(crate) fn note_used(&self) -> std::io::Result<()> {
        if self.file.metadata()?.len() == 0 {
            (&self.file).write_all(b"used\n")?;
        }
        Ok(())
    }
}

/// Takes the lock of a database.
///
/// # Errors
/// `Locked` if another process holds it; `Unusable` if the lock file can't be made.
pub(crate) fn take(database: &Path) -> Result<WriteLock, StoreError> {
    let path = lock_path(database);
    let cannot = |error: std::io::Error| unusable(&path, &error);
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(cannot)?;
    match file.try_lock() {
        Ok(()) => Ok(WriteLock { file }),
        Err(TryLockError::WouldBlock) => Err(StoreError::Locked { path }),
        Err(TryLockError::Error(error)) => Err(cannot(error)),
    }
}

/// Whether there ever was a database behind this lock.
pub(crate) fn was_used(database: &Path) -> bool {
    std::fs::metadata(lock_path(database)).is_ok_and(|lock| lock.len() > 0)
}

/// The lock file of a database.
pub(crate) fn lock_path(database: &Path) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(".lock");
    path.into()
}

/// Makes a new file readable by its owner only; SQLite gives its other files the same mode.
pub(crate) fn make_private(path: &Path) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}
