//! What an error of the disk or the file system means at open, and what a person does about it.
//!
//! An open store only refuses, and goes on by itself when the cause is gone. A start that can't open the
//! store ends, so its error says more.

use std::io::ErrorKind;
use std::path::Path;

use rusqlite::ErrorCode;

use crate::StoreError;
use crate::engine::error::{is_damage, undecodable};

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error {
            rusqlite::Error::QueryReturnedNoRows => Self::NotFound {
                what: "the row".to_owned(),
            },
            error if is_damage(&error) => Self::Damaged {
                database: None,
                what: error.to_string(),
            },
            error if undecodable(&error).is_some() => Self::Undecodable {
                what: undecodable(&error).unwrap_or_default(),
            },
            other => Self::Unavailable {
                what: while_open(&other),
            },
        }
    }
}

/// The kinds of trouble that a person fixes in different ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    Denied,
    ReadOnly,
    Full,
    Failing,
    NoFolder,
    NoFile,
    InUse,
    Unknown,
}

impl Trouble {
    fn advice(self) -> &'static str {
        match self {
            Self::Denied => {
                "the data folder and the files in it must belong to the user that runs this and be \
                 writable: `ls -la` there, then chown (under systemd the unit cares for that, and \
                 commands need root)"
            }
            Self::ReadOnly => {
                "the file system is read-only: look into `dmesg` for why, mount it read-write, then \
                 start again"
            }
            Self::Full => {
                "the disk is full: make room, then start again; don't delete the `-wal` file"
            }
            Self::Failing => {
                "the disk or its file system fails: look into `dmesg`, keep a copy of the data folder, \
                 and go on from a backup on another disk (`vocative restore FILE`)"
            }
            Self::NoFolder => {
                "daemon.data_dir must name a folder, and everything above it must be one"
            }
            Self::NoFile => "something that is no file has the database's name: move it away",
            Self::InUse => "another program has the database locked: end it, then start again",
            Self::Unknown => {
                "look whether the data folder is writable and the disk has room and no errors (`ls -la`, \
                 `df`, `dmesg`)"
            }
        }
    }

    fn of_file(error: &std::io::Error) -> Self {
        const EIO: i32 = 5;
        match error.kind() {
            ErrorKind::PermissionDenied => Self::Denied,
            ErrorKind::ReadOnlyFilesystem => Self::ReadOnly,
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::Full,
            ErrorKind::NotADirectory | ErrorKind::AlreadyExists => Self::NoFolder,
            ErrorKind::IsADirectory => Self::NoFile,
            _ if error.raw_os_error() == Some(EIO) => Self::Failing,
            _ => Self::Unknown,
        }
    }

    fn of_query(error: &rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                Self::Denied
            }
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::SystemIoFailure) => Self::Failing,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::InUse,
            _ => Self::Unknown,
        }
    }
}

/// What storage says while it refuses, and what to do; the daemon goes on by itself after that.
pub(crate) fn while_open(error: &rusqlite::Error) -> String {
    let advice = match Trouble::of_query(error) {
        Trouble::Full => "make room on the disk",
        Trouble::Failing => "look into `dmesg` for what the disk has",
        Trouble::Denied => "look whether the database may be written, and its folder",
        Trouble::InUse => "end the other program that has it locked",
        _ => return error.to_string(),
    };
    format!("{error}; {advice}, and it goes on by itself")
}

/// What to do when a folder or file can't be used.
#[must_use]
pub fn advice_on(error: &std::io::Error) -> &'static str {
    Trouble::of_file(error).advice()
}

/// A file that the store needs can't be used.
pub(crate) fn unusable(path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Unusable {
        path: path.to_owned(),
        what: error.to_string(),
        advice: advice_on(error),
    }
}

/// The disk under a database fails.
pub(crate) fn failing(path: &Path, what: String) -> StoreError {
    StoreError::Unusable {
        path: path.to_owned(),
        what,
        advice: Trouble::Failing.advice(),
    }
}

/// A database that is being opened can't be read or written. `doing` says during which step; it may be empty.
pub(crate) fn not_opened(path: &Path, doing: &str, error: &rusqlite::Error) -> StoreError {
    if is_damage(error) {
        return StoreError::Damaged {
            database: Some(path.to_owned()),
            what: format!("{doing}{error}"),
        };
    }
    StoreError::Unusable {
        path: path.to_owned(),
        what: format!("{doing}{error}"),
        advice: Trouble::of_query(error).advice(),
    }
}

/// Names the database in an error of a job that is a part of opening it.
pub(crate) fn while_opening(path: &Path, error: StoreError) -> StoreError {
    match error {
        StoreError::Damaged { what, .. } => StoreError::Damaged {
            database: Some(path.to_owned()),
            what,
        },
        StoreError::Unavailable { what } => StoreError::Unusable {
            path: path.to_owned(),
            what,
            advice: Trouble::Unknown.advice(),
        },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_to_do_where_something_can_be_done() {
        let said = |code: i32| {
            let error = rusqlite::ffi::Error::new(code);
            while_open(&rusqlite::Error::SqliteFailure(error, None))
        };
        let full = said(rusqlite::ffi::SQLITE_FULL);
        assert!(
            full.ends_with("; make room on the disk, and it goes on by itself"),
            "{full}"
        );
        let constraint = said(rusqlite::ffi::SQLITE_CONSTRAINT);
        assert!(!constraint.contains("goes on"), "{constraint}");
    }

    #[test]
    fn each_kind_of_trouble_has_its_own_way_out() {
        let cases = [
            (13, Trouble::Denied),
            (1, Trouble::Denied),
            (30, Trouble::ReadOnly),
            (28, Trouble::Full),
            (122, Trouble::Full),
            (5, Trouble::Failing),
            (20, Trouble::NoFolder),
            (17, Trouble::NoFolder),
            (21, Trouble::NoFile),
            (24, Trouble::Unknown),
        ];
        for (errno, expected) in cases {
            let error = std::io::Error::from_raw_os_error(errno);
            assert_eq!(Trouble::of_file(&error), expected, "{error}");
        }
        let cases = [
            (rusqlite::ffi::SQLITE_CANTOPEN, Trouble::Denied),
            (rusqlite::ffi::SQLITE_READONLY, Trouble::Denied),
            (rusqlite::ffi::SQLITE_FULL, Trouble::Full),
            (rusqlite::ffi::SQLITE_IOERR_READ, Trouble::Failing),
            (rusqlite::ffi::SQLITE_BUSY, Trouble::InUse),
            (rusqlite::ffi::SQLITE_NOMEM, Trouble::Unknown),
        ];
        for (code, expected) in cases {
            let error = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
            assert_eq!(Trouble::of_query(&error), expected, "{error}");
        }
    }
}
