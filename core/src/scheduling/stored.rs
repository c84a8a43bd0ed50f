//! A schedule as it is stored, and the limits on the number of schedules.

use super::firing::{FiringOutcome, Missed};
use super::timing::Timing;
use crate::ids::{AccountId, AgentName, ChatId, ConversationId, ParticipantId, RunId};

/// The most schedules that are not over, of one person in an account.
pub(super) const OF_PERSON_MAX: u32 = 10;
/// The most schedules that are not over, in one chat.
pub(super) const OF_CHAT_MAX: u32 = 20;
/// The longest task, in characters.
pub(super) const TASK_MAX_CHARS: usize = 1_000;

/// How a schedule stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleState {
    /// It fires when it is due.
    Active,
    /// It does not fire until somebody resumes it.
    Paused,
    /// Its last time is over.
    Done,
    /// Somebody ended it.
    Cancelled,
}

impl ScheduleState {
    const ALL: [Self; 4] = [Self::Active, Self::Paused, Self::Done, Self::Cancelled];

    /// The stored and shown name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Done => "done",
            Self::Cancelled => "cancelled",
        }
    }

    /// The state of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// Whether it may fire again.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, Self::Active | Self::Paused)
    }
}

/// A schedule to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSchedule {
    /// When it starts.
    pub timing: Timing,
    /// How long it may be put off, in milliseconds.
    pub jitter_ms: i64,
    /// What becomes of missed times.
    pub missed: Missed,
    /// Who does it; `None` = the text is posted as it is, without a model.
    pub agent: Option<AgentName>,
    /// What is to be done or said.
    pub task: String,
}

/// Whose a schedule is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    /// The person's row.
    pub participant: ParticipantId,
    /// The platform's id of them.
    pub id: String,
    /// The name that people see.
    pub name: String,
}

/// A stored schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSchedule {
    /// Its number, by which people call it.
    pub id: i64,
    /// Its name in the configuration, if it is from there.
    pub name: Option<String>,
    /// Through which account.
    pub account: AccountId,
    /// In which chat.
    pub chat: ChatId,
    /// The platform's id of the chat.
    pub platform_chat: String,
    /// In which conversation.
    pub conversation: ConversationId,
    /// Whose it is; `None` = the operator's.
    pub owner: Option<Owned>,
    /// What it is.
    pub what: NewSchedule,
    /// How it stands.
    pub state: ScheduleState,
    /// Why it is paused or over.
    pub reason: Option<String>,
    /// The time that is due next, in milliseconds since the Unix epoch.
    pub at_ms: Option<i64>,
    /// When that was worked out; `None` = in a database that a backup has replaced.
    pub set_at_ms: Option<i64>,
    /// How often it fired.
    pub fired: u64,
    /// How many of its times were missed.
    pub missed: u64,
    /// Whether what it started last still works or waits.
    pub is_last_open: bool,
    /// When it was made.
    pub created_at_ms: i64,
}

/// A stored firing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFiring {
    /// Its time by the schedule, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// When it was decided about.
    pub decided_at_ms: i64,
    /// What became of it.
    pub outcome: FiringOutcome,
    /// How many times before it were missed.
    pub missed_before: u32,
    /// The run that it started.
    pub run: Option<RunId>,
}

/// How many schedules there are that are not over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScheduleCounts {
    /// Of the person.
    pub of_person: u32,
    /// In the chat.
    pub of_chat: u32,
}

/// Why a schedule is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleRefused {
    /// The person has as many as one may have.
    #[error("you have {OF_PERSON_MAX} already, which is the most; cancel one first")]
    Person,
    /// The chat has as many as one may have.
    #[error("this chat has {OF_CHAT_MAX} already, which is the most; cancel one first")]
    Chat,
    /// Nothing is to be said.
    #[error("it does not say what is to be done or said")]
    Empty,
    /// The task is too long.
    #[error("its text has more than {TASK_MAX_CHARS} characters")]
    TooLong,
}

/// Whether one more may be made.
///
/// # Errors
/// [`ScheduleRefused`] says why not.
pub fn may_add(new: &NewSchedule, counts: ScheduleCounts) -> Result<(), ScheduleRefused> {
    match () {
        () if new.task.trim().is_empty() => Err(ScheduleRefused::Empty),
        () if new.task.chars().count() > TASK_MAX_CHARS => Err(ScheduleRefused::TooLong),
        () if counts.of_person >= OF_PERSON_MAX => Err(ScheduleRefused::Person),
        () if counts.of_chat >= OF_CHAT_MAX => Err(ScheduleRefused::Chat),
        () => Ok(()),
    }
}
