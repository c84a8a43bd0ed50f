//! What is asked of the store about schedules, and answered.

use vocative_contract::outbound::Part;
use vocative_core::ids::{ConversationId, RunId, ToolCallId};
use vocative_core::scheduling::{FiringOutcome, NewSchedule, StoredSchedule};

/// Which schedules are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleFilter {
    /// Those that are not over.
    Open,
    /// All that are kept.
    All,
}

/// Schedules whose time has come.
#[derive(Clone, Debug, Default)]
pub struct DueSchedules {
    /// The first of them.
    pub due: Vec<StoredSchedule>,
    /// Numbers of rows that can't be decoded.
    pub broken: Vec<i64>,
}

/// A due schedule, with what the daemon found out about it.
#[derive(Clone, Debug)]
pub struct NewFiring {
    /// Its number.
    pub id: i64,
    /// The due time when the schedule was read; nothing happens if it has changed since.
    pub at_ms: Option<i64>,
    /// Whether its owner and its place are served now, and its agent is there.
    pub is_allowed: bool,
    /// What is posted if it is a reminder.
    pub reminder: Option<Reminder>,
    /// The time.
    pub now_ms: i64,
}

/// What a reminder says.
#[derive(Clone, Debug)]
pub struct Reminder {
    /// As text.
    pub text: String,
    /// As it is posted.
    pub parts: Vec<Part>,
}

/// What became of a due schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fired {
    /// That time was decided about before, or the schedule was changed.
    Stale,
    /// Its time was worked out anew, under another clock; nothing started.
    Renewed,
    /// What was decided about the time, and the run if one was started.
    Decided(FiringOutcome, Option<RunId>),
}

/// A schedule of an operator.
#[derive(Clone, Debug)]
pub struct OperatorSchedule {
    /// Its name in the configuration, if it is from there.
    pub name: Option<String>,
    /// Where.
    pub conversation: ConversationId,
    /// What is scheduled.
    pub what: NewSchedule,
    /// The time.
    pub now_ms: i64,
}

/// What a call of an agent's tool plans.
#[derive(Clone, Debug)]
pub struct PlanOfCall {
    /// The call.
    pub call: ToolCallId,
    /// What is scheduled.
    pub what: NewSchedule,
    /// The time.
    pub now_ms: i64,
}

/// What became of a plan, in words for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Planned {
    /// It is made.
    Made(String),
    /// It is not.
    Refused(String),
}

/// What is changed about a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleChange {
    /// It stops until it is resumed.
    Pause,
    /// A paused one goes on with its next time.
    Resume,
    /// It starts now, besides its times.
    Run,
    /// It ends.
    Cancel,
}
