//! What is fetched, and what becomes of a file after an attempt. Pure.

use vocative_contract::file::FileError;

use vocative_core::file::{DueFile, FileKind, FileOutcome, FileState};

/// Attempts before a file is given up: over the growing waits about an hour and a half.
pub const ATTEMPTS_MAX: u32 = 10;
/// The waits between attempts.
const RETRY_FIRST_MS: i64 = 2_000;
const RETRY_MAX_MS: i64 = 1_800_000;
/// The longest wait that is believed of a platform or a transcription server, in milliseconds.
const ASKED_WAIT_MAX_MS: i64 = 6 * 3_600_000;
/// Files of a message that was read later than this after it was sent, in milliseconds, are only named: whole
/// histories are read back when the bot joins a room.
const LATE_MS: i64 = 24 * 3_600_000;

/// What is fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilesPolicy {
    /// Whether anything is.
    pub is_on: bool,
    /// Which kinds are.
    pub kinds: Vec<FileKind>,
    /// The largest file that is fetched, in bytes.
    pub bytes_max: u64,
    /// The most bytes of all stored files together; at this limit nothing is fetched.
    pub total_bytes_max: u64,
}

impl FilesPolicy {
    /// Why a file is not even asked for; `None` = it is, if there is room for it.
    #[must_use]
    pub fn refusal(&self, file: &DueFile) -> Option<FileOutcome> {
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

    /// For how many bytes a file needs room.
    #[must_use]
    pub fn bytes_of(&self, file: &DueFile) -> u64 {
        file.facts.size_bytes.unwrap_or(self.bytes_max)
    }

    /// What becomes of a file that there is no room for.
    #[must_use]
    pub fn no_room() -> FileOutcome {
        refused("files.max_total_mib is reached".to_owned())
    }

    /// What becomes of a file that was not fetched; `attempts` were made before this one.
    #[must_use]
    pub fn after(&self, error: &FileError, attempts: u32, now_ms: i64) -> FileOutcome {
        let given_up = |state, reason: &str| FileOutcome::GivenUp {
            state,
            reason: reason.to_owned(),
        };
        match error {
            FileError::TooLarge { size_bytes } => too_large(*size_bytes, self.bytes_max),
            FileError::Gone { reason } => given_up(FileState::Gone, reason),
            FileError::Refused { reason } => given_up(FileState::Refused, reason),
            FileError::RetryAfter { wait_ms } => FileOutcome::Again {
                not_before_ms: now_ms.saturating_add(asked_wait_ms(*wait_ms)),
                counts: false,
                reason: "the platform asks to wait".to_owned(),
            },
            error if attempts + 1 >= ATTEMPTS_MAX => {
                given_up(FileState::Failed, &error.to_string())
            }
            error => FileOutcome::Again {
                not_before_ms: now_ms.saturating_add(retry_wait_ms(attempts)),
                counts: true,
                reason: error.to_string(),
            },
        }
    }
}

fn refused(reason: String) -> FileOutcome {
    FileOutcome::GivenUp {
        state: FileState::Refused,
        reason,
    }
}

/// How long a file waits that somebody asks to wait for: a wait of years is a mistake.
#[must_use]
pub fn asked_wait_ms(wait_ms: u64) -> i64 {
    i64::try_from(wait_ms).map_or(ASKED_WAIT_MAX_MS, |wait_ms| wait_ms.min(ASKED_WAIT_MAX_MS))
}

fn too_large(size_bytes: Option<u64>, bytes_max: u64) -> FileOutcome {
    let size = size_bytes.map_or_else(String::new, |size| format!("{size} bytes, "));
    FileOutcome::GivenUp {
        state: FileState::TooLarge,
        reason: format!("{size}files.max_bytes is {bytes_max}"),
    }
}

/// How long a file that was not fetched so many times waits.
#[must_use]
pub fn retry_wait_ms(attempts: u32) -> i64 {
    (RETRY_FIRST_MS << attempts.min(20)).min(RETRY_MAX_MS)
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

    fn due(name: &str, size_bytes: Option<u64>) -> DueFile {
        DueFile {
            id: FileId(1),
            account: AccountId(1),
            platform_id: "F1".to_owned(),
            facts: FileFacts {
                kind: "file".to_owned(),
                name: Some(name.to_owned()),
                mime_type: None,
                size_bytes,
            },
            attempts: 0,
            sent_at_ms: 0,
            captured_at_ms: 5,
            content: None,
        }
    }

    fn said(outcome: Option<FileOutcome>) -> String {
        match outcome {
            None => "fetched".to_owned(),
            Some(FileOutcome::GivenUp { state, reason }) => format!("{}: {reason}", state.name()),
            Some(FileOutcome::Again {
                not_before_ms,
                reason,
                ..
            }) => format!("{not_before_ms}: {reason}"),
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
        let late = DueFile {
            captured_at_ms: LATE_MS + 1,
            ..due("a.md", None)
        };
        let expected = "refused: its message was read long after it was sent";
        assert_eq!(said(policy().refusal(&late)), expected);
    }

    #[test]
    fn failures_are_tried_again_and_given_up_in_the_end() {
        let failed = || FileError::Failed {
            reason: "HTTP 503".to_owned(),
        };
        let after = |error, attempts| said(Some(policy().after(&error, attempts, 1_000)));
        assert_eq!(
            after(failed(), 0),
            "3000: the file could not be fetched: HTTP 503"
        );
        assert_eq!(
            after(failed(), 3),
            "17000: the file could not be fetched: HTTP 503"
        );
        assert_eq!(
            after(failed(), 9),
            "failed: the file could not be fetched: HTTP 503"
        );
        let wait = || FileError::RetryAfter { wait_ms: 9_000 };
        assert_eq!(after(wait(), 50), "10000: the platform asks to wait");
        let for_ever = FileError::RetryAfter { wait_ms: u64::MAX };
        assert_eq!(after(for_ever, 0), "21601000: the platform asks to wait");
        let gone = FileError::Gone {
            reason: "file_deleted".to_owned(),
        };
        assert_eq!(after(gone, 0), "gone: file_deleted");
        let large = FileError::TooLarge { size_bytes: None };
        assert_eq!(after(large, 0), "too_large: files.max_bytes is 100");
        let total: i64 = (0..ATTEMPTS_MAX - 1).map(retry_wait_ms).sum();
        assert!((900_000..10_000_000).contains(&total), "{total}");
    }
}
