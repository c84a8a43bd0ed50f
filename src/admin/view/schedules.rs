//! Schedules.

use serde::{Deserialize, Serialize};

use vocative_core::scheduling::{StoredFiring, StoredSchedule, shown_timing};
use vocative_core::words::Language;

/// A schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleView {
    /// Its number.
    pub id: i64,
    /// Its name in the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How it stands: `active`, `paused`, `done`, `cancelled`.
    pub state: String,
    /// Why it is paused or over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The platform's id of the chat.
    pub chat: String,
    /// The conversation.
    pub conversation: String,
    /// The platform's id of its owner; absent: the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The owner's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner_name: Option<String>,
    /// The agent that does the task; absent: the task is posted as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// When it starts, for people.
    pub when: String,
    /// What is done about missed times: `once`, `skip`.
    pub missed_rule: String,
    /// What is to be done or said.
    pub task: String,
    /// Its next time, in milliseconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_at_ms: Option<i64>,
    /// How often it started.
    pub fired: u64,
    /// How many of its times were missed.
    pub missed: u64,
    /// What became of its newest times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub firings: Vec<FiringView>,
}

/// What became of one time of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FiringView {
    /// The time by the schedule, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// When it was decided about.
    pub decided_at_ms: i64,
    /// What became of it: `fired`, `missed`, `overlapped`, `refused`.
    pub outcome: String,
    /// How many times before it were missed.
    pub missed_before: u32,
    /// The run that it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

impl ScheduleView {
    /// The view of a schedule in a channel.
    #[must_use]
    pub fn of(
        schedule: &StoredSchedule,
        channel: Option<String>,
        firings: &[StoredFiring],
    ) -> Self {
        let what = &schedule.what;
        Self {
            id: schedule.id,
            name: schedule.name.clone(),
            state: schedule.state.name().to_owned(),
            reason: schedule.reason.clone(),
            channel,
            chat: schedule.platform_chat.clone(),
            conversation: schedule.conversation.to_string(),
            owner: schedule.owner.as_ref().map(|it| it.id.clone()),
            owner_name: schedule.owner.as_ref().map(|it| it.name.clone()),
            agent: what.agent.as_ref().map(ToString::to_string),
            when: shown_timing(&what.timing, Language::English),
            missed_rule: what.missed.name().to_owned(),
            task: what.task.clone(),
            next_at_ms: schedule.at_ms.filter(|_| schedule.state.is_open()),
            fired: schedule.fired,
            missed: schedule.missed,
            firings: firings.iter().map(FiringView::of).collect(),
        }
    }
}

impl FiringView {
    fn of(firing: &StoredFiring) -> Self {
        Self {
            at_ms: firing.at_ms,
            decided_at_ms: firing.decided_at_ms,
            outcome: firing.outcome.name().to_owned(),
            missed_before: firing.missed_before,
            run: firing.run.map(|run| run.to_string()),
        }
    }
}
