//! Which files are fetched, and what happens to a file after an attempt. Pure.

use vocative_contract::file::FileError;

use vocative_core::file::{FileKind, FileState, WantedFile};
use vocative_core::queueing::Outcome;

/// Files of a message that was read more than this after it was sent, in milliseconds, are only named: whole
/// histories are read back when the bot joins a room.
const LATE_MS: i64 = 24 * 3_600_000;
/// How long a file waits after the disk refused it, in milliseconds.
const DISK_WAIT_MS: i64 = 30_000;

/// Which files are fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilesPolicy {
    /// Whether any file is fetched.
    pub is_on: bool,
    /// The kinds that are fetched.
    pub kinds: Vec<FileKind>,
    /// The largest file that is fetched, in bytes.
    pub bytes_max: u64,
    /// The most bytes of all stored files together; at this limit nothing is fetched.
    pub total_bytes_max: u64,
}

impl FilesPolicy {
    /// Why a file is not even requested; `None` = it is, if there is room for it.
    #[must_use]
    pub fn refusal(&self, file: &WantedFile) -> Option<GivenUp> {
        let refused = |reason: String| Some(refused(reason));
        let kind = file.facts.content_kind();
        if !self.is_on {
            return refused("files.fetch is off".to_owned());
        }
        if !self.kinds.contains(&kind) {
            return refused(format!("files.kinds leaves {} out", kind.name()));
        }
        if file.captured_at_ms.saturating_sub(file.sent_at_ms) > LATE_MS {
            return refused("its message was read long after it was sent".to_owned());
        }
        let size_bytes = file.facts.size_bytes;
        if size_bytes.is_some_and(|size| size > self.bytes_max) {
            return Some(too_large(size_bytes, self.bytes_max));
        }
        None
    }

    /// The number of bytes for which a file needs room.
    #[must_use]
    pub fn bytes_of(&self, file: &WantedFile) -> u64 {
        file.facts.size_bytes.unwrap_or(self.bytes_max)
    }

    /// What happens to a file for which there is no room.
    #[must_use]
    pub fn no_room() -> GivenUp {
        refused("files.max_total_mib is reached".to_owned())
    }

    /// What happens to a file that was not fetched.
    #[must_use]
    pub fn after(&self, error: &FileError, now_ms: i64) -> AfterFetch {
        let given_up = |state, reason: &str| {
            AfterFetch::GivenUp(GivenUp {
                state,
                reason: reason.to_owned(),
            })
        };
        let later = |wait_ms: i64, why: String| {
            AfterFetch::Again(Outcome::Later {
                not_before_ms: now_ms.saturating_add(wait_ms),
                why,
            })
        };
        match error {
            FileError::TooLarge { size_bytes } => {
                AfterFetch::GivenUp(too_large(*size_bytes, self.bytes_max))
            }
            FileError::Gone { reason } => given_up(FileState::Gone, reason),
            FileError::Refused { reason } => given_up(FileState::Refused, reason),
            FileError::RetryAfter { wait_ms } => later(
                i64::try_from(*wait_ms).unwrap_or(i64::MAX),
                "the platform asks to wait".to_owned(),
            ),
            // The disk failed, not the file: it stays wanted.
            FileError::Sink(error) => later(
                DISK_WAIT_MS,
                format!("it can't be written to the disk: {error}"),
            ),
            error => AfterFetch::Again(Outcome::failed(error.to_string())),
        }
    }
}

/// A file that is not fetched, now or ever; it is only named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenUp {
    /// Its state.
    pub state: FileState,
    /// Why.
    pub reason: String,
}

/// What happens to a file that was not fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AfterFetch {
    /// It is given up.
    GivenUp(GivenUp),
    /// Its job goes on.
    Again(Outcome),
}

fn refused(reason: String) -> GivenUp {
    GivenUp {
        state: FileState::Refused,
        reason,
    }
}

fn too_large(size_bytes: Option<u64>, bytes_max: u64) -> GivenUp {
    let size = size_bytes.map_or_else(String::new, |size| format!("{size} bytes, "));
    GivenUp {
        state: FileState::TooLarge,
        reason: format!("{size}files.max_bytes is {bytes_max}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocative_core::file::FileFacts;
    use vocative_core::ids::{AccountId, FileId};

    fn policy() -> FilesPolicy {
        FilesPolicy {
            is_on: true,
            kinds: vec![FileKind::Text],
            bytes_max: 100,
            total_bytes_max: 1_000,
        }
    }

    fn due(name: &str, size_bytes: Option<u64>) -> WantedFile {
        WantedFile {
            id: FileId(1),
            account: AccountId(1),
            platform_id: "F1".to_owned(),
            facts: FileFacts {
                kind: "file".to_owned(),
                name: Some(name.to_owned()),
                mime_type: None,
                size_bytes,
            },
            sent_at_ms: 0,
            captured_at_ms: 5,
            content: None,
        }
    }

    fn said(given_up: Option<GivenUp>) -> String {
        match given_up {
            None => "fetched".to_owned(),
            Some(GivenUp { state, reason }) => format!("{}: {reason}", state.name()),
        }
    }

    #[test]
    fn what_is_not_wanted_is_not_asked_for() {
        let off = FilesPolicy {
            is_on: false,
            ..policy()
        };
        assert_eq!(
            said(off.refusal(&due("a.md", None))),
            "refused: files.fetch is off"
        );
        let table = [
            (due("a.md", Some(100)), "fetched"),
            (due("a.md", None), "fetched"),
            (
                due("a.md", Some(101)),
                "too_large: 101 bytes, files.max_bytes is 100",
            ),
            (
                due("a.pdf", Some(1)),
                "refused: files.kinds leaves other out",
            ),
        ];
        for (file, expected) in table {
            assert_eq!(said(policy().refusal(&file)), expected, "{file:?}");
        }
        assert_eq!(policy().bytes_of(&due("a.md", Some(7))), 7);
        assert_eq!(policy().bytes_of(&due("a.md", None)), 100);
        let late = WantedFile {
            captured_at_ms: LATE_MS + 1,
            ..due("a.md", None)
        };
        let expected = "refused: its message was read long after it was sent";
        assert_eq!(said(policy().refusal(&late)), expected);
    }

    #[test]
    fn failures_are_tried_again_and_what_is_gone_is_given_up() {
        let after = |error| match policy().after(&error, 1_000) {
            AfterFetch::GivenUp(given_up) => said(Some(given_up)),
            AfterFetch::Again(outcome) => format!("{outcome:?}"),
        };
        let reason = || "HTTP 503".to_owned();
        let table = [
            (
                FileError::Failed { reason: reason() },
                "Failed { why: \"the file could not be fetched: HTTP 503\", asked_wait_ms: None }",
            ),
            (
                FileError::RetryAfter { wait_ms: 9_000 },
                "Later { not_before_ms: 10000, why: \"the platform asks to wait\" }",
            ),
            (
                FileError::Sink(std::io::Error::other("full")),
                "Later { not_before_ms: 31000, why: \"it can't be written to the disk: full\" }",
            ),
            (FileError::Gone { reason: reason() }, "gone: HTTP 503"),
            (FileError::Refused { reason: reason() }, "refused: HTTP 503"),
            (
                FileError::TooLarge { size_bytes: None },
                "too_large: files.max_bytes is 100",
            ),
        ];
        for (error, expected) in table {
            assert_eq!(after(error), expected);
        }
    }
}
