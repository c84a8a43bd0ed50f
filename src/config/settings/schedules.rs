//! Schedules by configuration.

use vocative_core::scheduling::NewSchedule;

/// A schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredSchedule {
    /// Its name.
    pub name: String,
    /// The conversation, as CHANNEL/CHAT.
    pub conversation: String,
    /// What it does, and when.
    pub what: NewSchedule,
}
