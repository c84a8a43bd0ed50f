//! Schedules by configuration.

use vocative_core::scheduling::NewSchedule;

/// Something that starts again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredSchedule {
    /// Its name.
    pub name: String,
    /// Where, as CHANNEL/CHAT.
    pub conversation: String,
    /// What it is.
    pub what: NewSchedule,
}
