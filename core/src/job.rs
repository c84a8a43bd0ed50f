//! Durable background work: what there is to do, and the limits of each kind.
//!
//! A new kind is a variant of [`JobKind`] and of [`Job`] here, with its limits and its payload, and a handler in the
//! daemon's `jobs/handlers.rs`. Which job is next and what follows an attempt: `queueing`.

use serde_json::{Value, json};

use crate::ids::{
    AccountId, ConversationId, ErasureId, FileId, InquiryId, JobId, LeaseToken, TellingId,
};

const SECOND_MS: i64 = 1_000;
const MINUTE_MS: i64 = 60 * SECOND_MS;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;
/// Failed attempts after which a conversation stays without a model's title.
pub const TITLE_ATTEMPTS_MAX: u32 = 4;

/// A piece of durable work. It names what it is about by ids, never by what anybody said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Job {
    /// A person's question to the daemon itself is answered.
    AnswerInquiry {
        /// Which.
        inquiry: InquiryId,
    },
    /// An attached file is fetched.
    FetchFile {
        /// Which.
        file: FileId,
    },
    /// A voice note is written down.
    TranscribeFile {
        /// The note.
        file: FileId,
    },
    /// An order to erase is carried out.
    Erase {
        /// The order.
        order: ErasureId,
    },
    /// Chats that are becoming one are merged, a bounded step at a time.
    MergeChats,
    /// Stored files that no message refers to any more are removed from the disk.
    RemoveContents,
    /// Turns get vectors.
    EmbedTurns,
    /// Turns that were captured are put into the index of stems.
    IndexTurns,
    /// What was deleted is overwritten in the unused bytes of the database file.
    CleanPages,
    /// Agents read a conversation that has settled for what is worth keeping.
    ExtractMemories {
        /// Which.
        conversation: ConversationId,
    },
    /// Older turns of a conversation are folded into summaries.
    SummarizeConversation {
        /// Which.
        conversation: ConversationId,
    },
    /// A model is asked for the title of a conversation that has none.
    TitleConversation {
        /// Which.
        conversation: ConversationId,
    },
    /// A hook is told something.
    TellHook {
        /// What.
        telling: TellingId,
    },
    /// What was missed in the chats of an account is read back.
    ReadBack {
        /// The account.
        account: AccountId,
    },
    /// Data that is older than it is to be kept is deleted.
    ExpireData {
        /// The account; `None` = raw events that are kept for debugging.
        account: Option<AccountId>,
    },
}

/// The row that a job leaves behind when it is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobSubject {
    /// A question to the daemon.
    Inquiry(InquiryId),
    /// An attached file.
    File(FileId),
    /// A voice note.
    VoiceNote(FileId),
    /// An event that a hook is told.
    Telling(TellingId),
    /// No row: what there is to do is found again, or the job says it all.
    Nothing,
}

crate::named! {
    /// A kind of job, with its name as it is stored and shown.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum JobKind {
        /// See [`Job::AnswerInquiry`].
        AnswerInquiry = "answer-inquiry",
        /// See [`Job::FetchFile`].
        FetchFile = "fetch-file",
        /// See [`Job::TranscribeFile`].
        TranscribeFile = "transcribe-file",
        /// See [`Job::Erase`].
        Erase = "erase",
        /// See [`Job::MergeChats`].
        MergeChats = "merge-chats",
        /// See [`Job::RemoveContents`].
        RemoveContents = "remove-contents",
        /// See [`Job::EmbedTurns`].
        EmbedTurns = "embed-turns",
        /// See [`Job::IndexTurns`].
        IndexTurns = "index-turns",
        /// See [`Job::CleanPages`].
        CleanPages = "clean-pages",
        /// See [`Job::ExtractMemories`].
        ExtractMemories = "extract-memories",
        /// See [`Job::SummarizeConversation`].
        SummarizeConversation = "summarize-conversation",
        /// See [`Job::TitleConversation`].
        TitleConversation = "title-conversation",
        /// See [`Job::TellHook`].
        TellHook = "tell-hook",
        /// See [`Job::ReadBack`].
        ReadBack = "read-back",
        /// See [`Job::ExpireData`].
        ExpireData = "expire-data",
    }
}

/// The limits of a kind of job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobLimits {
    /// The version in which its payload is written; later ones can't be decoded.
    pub version: u32,
    /// Jobs at work at once.
    pub slots: usize,
    /// Jobs of one account at work at once.
    pub slots_of_account: usize,
    /// Failed attempts after which a job is dead; `None` = it is tried until it is done.
    pub attempts_max: Option<u32>,
    /// The wait after the first failed attempt, in milliseconds; it doubles from there.
    pub wait_first_ms: i64,
    /// The longest such wait, in milliseconds.
    pub wait_max_ms: i64,
    /// The longest wait that is believed, in milliseconds: one beyond it was written under a wrong clock.
    pub later_max_ms: i64,
    /// How long one attempt may take, in milliseconds; then it has failed.
    pub work_max_ms: u64,
    /// A job that was asked for longer ago than this, in milliseconds, is of no use any more and is removed.
    pub age_max_ms: Option<i64>,
    /// Whether it waits until the channel of its account is connected.
    pub needs_channel: bool,
    /// Whether an operator may cancel it.
    pub is_cancellable: bool,
}

impl JobLimits {
    /// Work inside the daemon that has to be done, however often it fails, one job at a time.
    const HOUSEKEEPING: Self = Self {
        version: 1,
        slots: 1,
        slots_of_account: 1,
        attempts_max: None,
        wait_first_ms: SECOND_MS,
        wait_max_ms: 5 * MINUTE_MS,
        later_max_ms: HOUR_MS,
        work_max_ms: 24 * 3_600_000,
        age_max_ms: None,
        needs_channel: false,
        is_cancellable: false,
    };

    /// Deleting what is old, which rests for an hour.
    const BY_AGE: Self = Self {
        later_max_ms: 2 * HOUR_MS,
        ..Self::HOUSEKEEPING
    };

    /// What a model is asked about a conversation in the background.
    const BY_MODEL: Self = Self {
        wait_first_ms: MINUTE_MS,
        wait_max_ms: 30 * MINUTE_MS,
        // At the most until the next UTC day, when there are tokens again.
        later_max_ms: DAY_MS,
        work_max_ms: 1_800_000,
        needs_channel: true,
        ..Self::HOUSEKEEPING
    };
}

impl JobKind {
    /// The limits of its jobs.
    #[must_use]
    pub fn limits(self) -> JobLimits {
        let housekeeping = JobLimits::HOUSEKEEPING;
        match self {
            Self::AnswerInquiry => JobLimits {
                slots: 4,
                slots_of_account: 2,
                attempts_max: Some(5),
                wait_max_ms: MINUTE_MS,
                work_max_ms: 60_000,
                // The answer tells how things are now: a late one is of no use.
                age_max_ms: Some(15 * MINUTE_MS),
                needs_channel: true,
                is_cancellable: true,
                ..housekeeping
            },
            // With the growing waits, the attempts take about an hour and a half.
            Self::FetchFile => JobLimits {
                slots: 64,
                slots_of_account: 4,
                attempts_max: Some(10),
                wait_first_ms: 2 * SECOND_MS,
                wait_max_ms: 30 * MINUTE_MS,
                later_max_ms: 6 * HOUR_MS,
                work_max_ms: 300_000,
                needs_channel: true,
                is_cancellable: true,
                ..housekeeping
            },
            Self::TranscribeFile => JobLimits {
                slots: 2,
                slots_of_account: 2,
                attempts_max: Some(6),
                wait_first_ms: 2 * SECOND_MS,
                wait_max_ms: 30 * MINUTE_MS,
                // At the most until the next UTC day, when there are tokens again.
                later_max_ms: DAY_MS,
                work_max_ms: 600_000,
                needs_channel: true,
                is_cancellable: true,
                ..housekeeping
            },
            // A long erasure does not hold up the erasure of another account.
            Self::Erase => JobLimits {
                slots: 4,
                ..housekeeping
            },
            Self::EmbedTurns => JobLimits {
                // At the most until the next UTC day, when there are tokens again.
                later_max_ms: DAY_MS,
                ..housekeeping
            },
            // A provider that is down is waited for; what comes too late to be learnt from is passed over.
            Self::ExtractMemories => JobLimits {
                slots: 2,
                ..JobLimits::BY_MODEL
            },
            // The summary before it stands until there is a newer one, so a provider that is down is waited for.
            Self::SummarizeConversation => JobLimits {
                wait_first_ms: 30 * SECOND_MS,
                wait_max_ms: HOUR_MS,
                work_max_ms: 3_600_000,
                ..JobLimits::BY_MODEL
            },
            // A title is a nicety: it is given up soon, so that it does not hold up other work.
            Self::TitleConversation => JobLimits {
                attempts_max: Some(TITLE_ATTEMPTS_MAX),
                ..JobLimits::BY_MODEL
            },
            // With the growing waits 15 attempts take about four hours. A server that hangs takes at most four of the
            // slots.
            Self::TellHook => JobLimits {
                slots: 16,
                slots_of_account: 4,
                attempts_max: Some(15),
                wait_max_ms: HOUR_MS,
                later_max_ms: 2 * HOUR_MS,
                work_max_ms: 60_000,
                is_cancellable: true,
                ..housekeeping
            },
            // Every account is read at once: a slow platform holds up only its own. It may allow a page a minute, and a
            // pass that is cut off begins again with its first chat.
            Self::ReadBack => JobLimits {
                slots: 1_000,
                work_max_ms: 90 * 24 * 3_600_000,
                needs_channel: true,
                ..housekeeping
            },
            Self::ExpireData => JobLimits::BY_AGE,
            Self::MergeChats | Self::RemoveContents | Self::IndexTurns | Self::CleanPages => {
                housekeeping
            }
        }
    }
}

/// Why a stored job can't be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownJob {
    /// Another build knows its kind.
    #[error("{0:?} is no kind of job that this build knows")]
    Kind(String),
    /// Another build wrote its payload.
    #[error("a payload of version {0} is newer than this build")]
    Version(u32),
    /// Its payload is damaged.
    #[error("the payload of a job is damaged")]
    Payload,
}

impl Job {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> JobKind {
        match self {
            Self::AnswerInquiry { .. } => JobKind::AnswerInquiry,
            Self::FetchFile { .. } => JobKind::FetchFile,
            Self::TranscribeFile { .. } => JobKind::TranscribeFile,
            Self::Erase { .. } => JobKind::Erase,
            Self::MergeChats => JobKind::MergeChats,
            Self::RemoveContents => JobKind::RemoveContents,
            Self::EmbedTurns => JobKind::EmbedTurns,
            Self::IndexTurns => JobKind::IndexTurns,
            Self::CleanPages => JobKind::CleanPages,
            Self::ExtractMemories { .. } => JobKind::ExtractMemories,
            Self::SummarizeConversation { .. } => JobKind::SummarizeConversation,
            Self::TitleConversation { .. } => JobKind::TitleConversation,
            Self::TellHook { .. } => JobKind::TellHook,
            Self::ReadBack { .. } => JobKind::ReadBack,
            Self::ExpireData { .. } => JobKind::ExpireData,
        }
    }

    /// The row that is told when the job is given up, or taken away undone.
    #[must_use]
    pub fn subject(&self) -> JobSubject {
        match *self {
            Self::AnswerInquiry { inquiry } => JobSubject::Inquiry(inquiry),
            Self::FetchFile { file } => JobSubject::File(file),
            Self::TranscribeFile { file } => JobSubject::VoiceNote(file),
            Self::TellHook { telling } => JobSubject::Telling(telling),
            Self::Erase { .. }
            | Self::MergeChats
            | Self::RemoveContents
            | Self::EmbedTurns
            | Self::IndexTurns
            | Self::CleanPages
            | Self::ExtractMemories { .. }
            | Self::SummarizeConversation { .. }
            | Self::TitleConversation { .. }
            | Self::ReadBack { .. }
            | Self::ExpireData { .. } => JobSubject::Nothing,
        }
    }

    /// The key of what it is about. There is at most one job for a kind and a key.
    #[must_use]
    pub fn key(&self) -> String {
        match self {
            Self::AnswerInquiry { inquiry } => inquiry.to_string(),
            Self::FetchFile { file } | Self::TranscribeFile { file } => file.to_string(),
            Self::Erase { order } => order.to_string(),
            Self::ExtractMemories { conversation }
            | Self::SummarizeConversation { conversation }
            | Self::TitleConversation { conversation } => conversation.0.simple().to_string(),
            Self::TellHook { telling } => telling.to_string(),
            Self::ReadBack { account }
            | Self::ExpireData {
                account: Some(account),
            } => account.0.to_string(),
            Self::ExpireData { account: None }
            | Self::MergeChats
            | Self::RemoveContents
            | Self::EmbedTurns
            | Self::IndexTurns
            | Self::CleanPages => String::new(),
        }
    }

    /// The payload as JSON, in its kind's present version.
    #[must_use]
    pub fn payload(&self) -> String {
        let value = match self {
            Self::AnswerInquiry { inquiry } => json!({ "inquiry": inquiry.0 }),
            Self::FetchFile { file } | Self::TranscribeFile { file } => json!({ "file": file.0 }),
            Self::Erase { order } => json!({ "order": order.to_string() }),
            Self::ExtractMemories { conversation }
            | Self::SummarizeConversation { conversation }
            | Self::TitleConversation { conversation } => {
                json!({ "conversation": conversation.to_string() })
            }
            Self::TellHook { telling } => json!({ "telling": telling.to_string() }),
            Self::ReadBack { account } => json!({ "account": account.0 }),
            Self::ExpireData { account } => json!({ "account": account.map(|it| it.0) }),
            Self::MergeChats
            | Self::RemoveContents
            | Self::EmbedTurns
            | Self::IndexTurns
            | Self::CleanPages => json!({}),
        };
        value.to_string()
    }

    /// Reads a stored job.
    ///
    /// # Errors
    /// [`UnknownJob`]: another build wrote it, or it is damaged.
    pub fn decode(kind: &str, version: u32, payload: &str) -> Result<Self, UnknownJob> {
        let kind = JobKind::from_name(kind).ok_or_else(|| UnknownJob::Kind(kind.to_owned()))?;
        if version > kind.limits().version {
            return Err(UnknownJob::Version(version));
        }
        let value: Value = serde_json::from_str(payload).map_err(|_| UnknownJob::Payload)?;
        let number = |name: &str| value[name].as_i64().ok_or(UnknownJob::Payload);
        let uuid = |name: &str| {
            let text = value[name].as_str().ok_or(UnknownJob::Payload)?;
            text.parse().map_err(|_| UnknownJob::Payload)
        };
        let file = || number("file").map(FileId);
        Ok(match kind {
            JobKind::AnswerInquiry => Self::AnswerInquiry {
                inquiry: number("inquiry").map(InquiryId)?,
            },
            JobKind::FetchFile => Self::FetchFile { file: file()? },
            JobKind::TranscribeFile => Self::TranscribeFile { file: file()? },
            JobKind::Erase => Self::Erase {
                order: uuid("order").map(ErasureId)?,
            },
            JobKind::MergeChats => Self::MergeChats,
            JobKind::RemoveContents => Self::RemoveContents,
            JobKind::EmbedTurns => Self::EmbedTurns,
            JobKind::IndexTurns => Self::IndexTurns,
            JobKind::CleanPages => Self::CleanPages,
            JobKind::ExtractMemories => Self::ExtractMemories {
                conversation: uuid("conversation").map(ConversationId)?,
            },
            JobKind::SummarizeConversation => Self::SummarizeConversation {
                conversation: uuid("conversation").map(ConversationId)?,
            },
            JobKind::TitleConversation => Self::TitleConversation {
                conversation: uuid("conversation").map(ConversationId)?,
            },
            JobKind::TellHook => Self::TellHook {
                telling: uuid("telling").map(TellingId)?,
            },
            JobKind::ReadBack => Self::ReadBack {
                account: number("account").map(AccountId)?,
            },
            JobKind::ExpireData => Self::ExpireData {
                account: match &value["account"] {
                    Value::Null => None,
                    _ => Some(number("account").map(AccountId)?),
                },
            },
        })
    }
}

crate::named! {
    /// How a job stands. A job that is done has no row.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum JobState {
        /// To be done, not before its time.
        Pending = "pending",
        /// At work under a lease.
        Leased = "leased",
        /// It waits for something that happens, and holds no lease, no slot and no time.
        Waiting = "waiting",
        /// Given up for good, with a cause.
        Dead = "dead",
        /// It can't be decoded.
        Quarantined = "quarantined",
    }
}

/// The event that a job waits for, instead of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitsFor {
    /// A transcription server is configured.
    Transcription,
}

impl WaitsFor {
    /// Its name, as it is stored and shown.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Transcription => "transcription",
        }
    }
}

/// A job under a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimedJob {
    /// Its id.
    pub id: JobId,
    /// What there is to do.
    pub job: Job,
    /// For which account; `None` = for the daemon itself.
    pub account: Option<AccountId>,
    /// Attempts, with this one.
    pub attempts: u32,
    /// Its lease: a write with another token changes nothing.
    pub token: LeaseToken,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> [Job; 15] {
        let file = FileId(7);
        [
            Job::AnswerInquiry {
                inquiry: InquiryId(3),
            },
            Job::FetchFile { file },
            Job::TranscribeFile { file },
            Job::Erase {
                order: "01890000-0000-7000-8000-000000000001"
                    .parse()
                    .expect("an id"),
            },
            Job::MergeChats,
            Job::RemoveContents,
            Job::EmbedTurns,
            Job::IndexTurns,
            Job::CleanPages,
            Job::ExtractMemories {
                conversation: ConversationId(uuid::Uuid::from_u128(7)),
            },
            Job::SummarizeConversation {
                conversation: ConversationId(uuid::Uuid::from_u128(10)),
            },
            Job::TitleConversation {
                conversation: ConversationId(uuid::Uuid::from_u128(9)),
            },
            Job::TellHook {
                telling: TellingId(uuid::Uuid::from_u128(8)),
            },
            Job::ReadBack {
                account: AccountId(4),
            },
            Job::ExpireData {
                account: Some(AccountId(4)),
            },
        ]
    }

    #[test]
    fn the_data_of_no_account_has_a_key_of_its_own() {
        let job = Job::ExpireData { account: None };
        let decoded = Job::decode(job.kind().name(), 1, &job.payload());
        assert_eq!((decoded, job.key()), (Ok(job), String::new()));
    }

    #[test]
    fn every_kind_is_read_back_from_what_is_stored_of_it() {
        let kinds: Vec<_> = samples().iter().map(Job::kind).collect();
        assert_eq!(kinds, JobKind::ALL);
        for job in samples() {
            let limits = job.kind().limits();
            let decoded = Job::decode(job.kind().name(), limits.version, &job.payload());
            assert_eq!(decoded, Ok(job));
            assert!(limits.slots_of_account <= limits.slots, "{job:?}");
            assert!(limits.wait_max_ms <= limits.later_max_ms, "{job:?}");
        }
        for state in JobState::ALL {
            assert_eq!(JobState::from_name(state.name()), Some(state));
        }
    }

    #[test]
    fn what_another_build_wrote_is_told_apart_from_what_is_damaged() {
        let table = [
            ("paint", 1, "{}", UnknownJob::Kind("paint".to_owned())),
            ("erase", 2, "{}", UnknownJob::Version(2)),
            ("erase", 1, r#"{"order":"x"}"#, UnknownJob::Payload),
            ("fetch-file", 1, r#"{"file":"x"}"#, UnknownJob::Payload),
            ("fetch-file", 1, "x", UnknownJob::Payload),
            ("expire-data", 1, r#"{"account":"x"}"#, UnknownJob::Payload),
        ];
        for (kind, version, payload, expected) in table {
            assert_eq!(Job::decode(kind, version, payload), Err(expected));
        }
    }
}
