//! Schedules, and what operators change about them.

use serde::{Deserialize, Serialize};

use super::{OperationError, OperationResult, Operations, json};
use crate::admin::view::ScheduleView;
use vocative_core::ids::AgentName;
use vocative_core::scheduling::{
    JITTER_MAX_MS, Missed, NewSchedule, ScheduleCounts, ScheduleOrder, StoredSchedule, may_add,
    read_order,
};
use vocative_core::wall_clock::Zone;
use vocative_store::contract::{OperatorSchedule, ScheduleChange, ScheduleFilter};

/// The most schedules that are listed.
const LISTED_MAX: usize = 1_000;
/// The most firings shown of one schedule.
const FIRINGS_MAX: usize = 20;

/// A schedule that an operator makes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AddedSchedule {
    /// The conversation, as elsewhere: `acme/#general`, or its id.
    pub conversation: String,
    /// When, as people write it in rooms.
    pub when: String,
    /// The time zone of `when`.
    pub zone: String,
    /// The agent that does the task; `None` = the task is posted as it is.
    pub agent: Option<String>,
    /// What is to be done or said.
    pub task: String,
    /// What is done about missed times: `once`, `skip`.
    pub missed: String,
    /// The longest delay of a start, in seconds.
    pub jitter_s: u32,
}

/// What an operator changes about a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangedSchedule {
    /// It stops until it is resumed.
    Pause,
    /// A paused one goes on with its next time.
    Resume,
    /// It starts now, besides its times.
    Run,
    /// It ends.
    Cancel,
}

impl From<ChangedSchedule> for ScheduleChange {
    fn from(change: ChangedSchedule) -> Self {
        match change {
            ChangedSchedule::Pause => Self::Pause,
            ChangedSchedule::Resume => Self::Resume,
            ChangedSchedule::Run => Self::Run,
            ChangedSchedule::Cancel => Self::Cancel,
        }
    }
}

impl Operations {
    pub(super) async fn schedules(&self, all: bool) -> OperationResult {
        let filter = match all {
            true => ScheduleFilter::All,
            false => ScheduleFilter::Open,
        };
        let mut views = Vec::new();
        for schedule in self.store.schedules(filter, LISTED_MAX).await? {
            let channel = self.channel_of(schedule.account).await?;
            views.push(ScheduleView::of(&schedule, channel, &[]));
        }
        Ok(json(&views))
    }

    pub(super) async fn schedule(&self, id: i64) -> OperationResult {
        match self.store.schedule(id).await? {
            Some(schedule) => self.shown_schedule(&schedule).await,
            None => Err(no_schedule(id)),
        }
    }

    pub(super) async fn change_schedule(
        &self,
        id: i64,
        change: ChangedSchedule,
    ) -> OperationResult {
        let now_ms = (self.clock)();
        let before = self.store.schedule(id).await?;
        let before = before.ok_or_else(|| no_schedule(id))?;
        if !before.state.is_open() {
            let what = format!("#{id} is over: it is {}", before.state.name());
            return Err(OperationError::Over(what));
        }
        let changed = self
            .store
            .change_schedule(id, change.into(), now_ms)
            .await?;
        let changed = changed.ok_or_else(|| no_schedule(id))?;
        self.shown_schedule(&changed).await
    }

    pub(super) async fn add_schedule(&self, added: AddedSchedule) -> OperationResult {
        let now_ms = (self.clock)();
        let wrong = OperationError::Wrong;
        let zone = Zone::read(&added.zone)
            .ok_or_else(|| wrong(format!("{:?} is no time zone", added.zone)))?;
        let missed = Missed::from_name(&added.missed)
            .ok_or_else(|| wrong(format!("{:?} is neither once nor skip", added.missed)))?;
        let jitter_ms = i64::from(added.jitter_s) * 1_000;
        if jitter_ms > JITTER_MAX_MS {
            return Err(wrong("it may be put off 60 seconds at most".to_owned()));
        }
        // As in a room, at least one word must follow the time; so the task is added.
        let order = read_order(&format!("{} {}", added.when, added.task), now_ms, zone);
        let (timing, task) = match order {
            Ok(ScheduleOrder::Add { timing, task }) => (timing, task),
            Ok(_) => return Err(wrong(format!("{:?} is no time", added.when))),
            Err(problem) => return Err(wrong(format!("{:?}: {problem}", added.when))),
        };
        let agent = added.agent.map(AgentName::new).transpose();
        let agent = agent.map_err(|name| wrong(format!("there is no agent {name:?}")))?;
        if let Some(agent) = &agent
            && self.registry.get(agent).is_none()
        {
            return Err(wrong(format!("there is no agent {agent}")));
        }
        let what = NewSchedule {
            timing,
            jitter_ms,
            missed,
            agent,
            task,
        };
        may_add(&what, ScheduleCounts::default()).map_err(|refused| wrong(refused.to_string()))?;
        let place = self.store.find_conversation(&added.conversation).await?;
        let new = OperatorSchedule {
            name: None,
            conversation: place.id,
            what,
            now_ms,
        };
        let id = self.store.add_schedule(new).await?;
        self.schedule(id).await
    }

    async fn shown_schedule(&self, schedule: &StoredSchedule) -> OperationResult {
        let channel = self.channel_of(schedule.account).await?;
        let firings = self.store.firings(schedule.id, FIRINGS_MAX).await?;
        Ok(json(&ScheduleView::of(schedule, channel, &firings)))
    }
}

fn no_schedule(id: i64) -> OperationError {
    OperationError::Missing(format!("there is no schedule #{id}"))
}
