//! The lock that keeps a second daemon off the database. The kernel lets it go when the process
//! ends, however it ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use super::StoreError;

/// Held while the database is open for writing.
#[derive(Debug)]
pub(super) struct WriteLock {
    _file: File,
}

/// Takes the lock of a database.
///
/// # Errors
/// `Locked` if another process holds it; `Open` if the lock file can't be made.
pub(super) fn take(database: &Path) -> Result<WriteLock, StoreError> {
    let path = lock_path(database);
    let cannot = |error: std::io::Error| StoreError::Open {
        path: path.clone(),
        what: error.to_string(),
    };
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(cannot)?;
    match file.try_lock() {
        Ok(()) => Ok(WriteLock { _file: file }),
        Err(TryLockError::WouldBlock) => Err(StoreError::Locked { path }),
        Err(TryLockError::Error(error)) => Err(cannot(error)),
    }
}

/// The lock file of a database.
pub(super) fn lock_path(database: &Path) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(".lock");
    path.into()
}
