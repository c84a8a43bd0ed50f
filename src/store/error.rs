//! Why the store failed, named by what the caller does next.

use std::path::PathBuf;

/// Why the store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process has the database open for writing.
    #[error("another daemon has {path} open; stop it, or use its socket", path = path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// The database was written by a newer version.
    #[error(
        "the database has schema {found}, this build knows up to {known}; install the newer version or restore an older copy"
    )]
    Newer {
        /// Its version.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// The database can't be opened or migrated.
    #[error("can't open the database {path}: {what}", path = path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What failed.
        what: String,
    },
    /// Storage refuses for now (disk full, locked, I/O): nothing was written; try again.
    #[error("storage refuses: {what}")]
    Unavailable {
        /// What it says.
        what: String,
    },
    /// A backup could not be made, or one can't be restored: nothing has changed.
    #[error("{what}")]
    Backup {
        /// What is wrong and what to do.
        what: String,
    },
    /// What was asked for does not exist.
    #[error("{what} does not exist")]
    NotFound {
        /// What.
        what: String,
    },
    /// Several things have that name.
    #[error("{what} could be any of these: {meanings}; {advice}", meanings = meanings.join(", "))]
    Ambiguous {
        /// What was asked for.
        what: String,
        /// What it could mean.
        meanings: Vec<String>,
        /// How to name one.
        advice: &'static str,
    },
    /// The writer has stopped.
    #[error("the store is closed")]
    Closed,
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error {
            rusqlite::Error::QueryReturnedNoRows => Self::NotFound {
                what: "the row".to_owned(),
            },
            other => Self::Unavailable {
                what: other.to_string(),
            },
        }
    }
}

impl From<serde_json::Error> for StoreError {
    fn from(error: serde_json::Error) -> Self {
        Self::Unavailable {
            what: format!("a stored JSON value does not read: {error}"),
        }
    }
}
