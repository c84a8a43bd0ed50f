//! Why the store failed, named by what the caller does next.

use std::path::PathBuf;

use rusqlite::ErrorCode;

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
    /// The database can't be used where it is: permissions, disk space, a failing disk.
    #[error("can't use the database {path}: {what}", path = path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What failed.
        what: String,
        /// What to do.
        advice: &'static str,
    },
    /// The database is damaged: nothing more is written to it.
    #[error("the database{} is damaged: {what}", named(database.as_ref()))]
    Damaged {
        /// The file, where it is known.
        database: Option<PathBuf>,
        /// What is damaged.
        what: String,
    },
    /// The file to restore is not a whole backup: nothing has changed.
    #[error("the backup {path} can't be restored: {what}", path = path.display())]
    BadBackup {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
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
    /// Two conversations are being merged: a read of the whole conversation has to wait until that is done.
    #[error(
        "two chats are becoming one, and the turns of this conversation are moving; read it again in some minutes"
    )]
    Merging,
    /// A row holds what this build can't decode: it was written by another one, or changed by hand.
    #[error("a stored row can't be decoded: {what}")]
    Undecodable {
        /// Which column or value, without its contents.
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
    /// Opening was stopped on request: the database is as it was.
    #[error("opening the database was stopped; it is as it was")]
    Stopped,
    /// The writer has stopped.
    #[error("the store is closed")]
    Closed,
}

impl From<serde_json::Error> for StoreError {
    fn from(error: serde_json::Error) -> Self {
        Self::Undecodable {
            what: undecodable_json(&error),
        }
    }
}

/// Which part of a row can't be decoded, if that is what an error says. The error's own text may quote the row,
/// so it is not used.
pub(crate) fn undecodable(error: &rusqlite::Error) -> Option<String> {
    match error {
        rusqlite::Error::FromSqlConversionFailure(column, kind, cause) => {
            let cause = cause.downcast_ref::<serde_json::Error>();
            let how = cause.map(|cause| format!(": {}", undecodable_json(cause)));
            Some(format!(
                "column {column} ({kind}){}",
                how.unwrap_or_default()
            ))
        }
        rusqlite::Error::InvalidColumnType(_, name, kind) => Some(format!("{name} is {kind}")),
        rusqlite::Error::IntegralValueOutOfRange(column, _) => {
            Some(format!("column {column} is out of range"))
        }
        _ => None,
    }
}

fn undecodable_json(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        serde_json::error::Category::Data => "JSON of another shape",
        _ => "no JSON",
    };
    format!("{what} at line {}, column {}", error.line(), error.column())
}

/// Whether an error means that the database file is damaged.
pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    )
}

/// Says where a database is in the text of an error.
fn named(database: Option<&PathBuf>) -> String {
    database.map_or_else(String::new, |path| format!(" {}", path.display()))
}

/// A backup or a restore can't be made.
pub(crate) fn cannot(what: impl Into<String>) -> StoreError {
    StoreError::Backup { what: what.into() }
}
