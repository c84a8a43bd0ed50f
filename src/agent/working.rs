//! A claimed run while it is worked on, and how the work ended.

use std::sync::Arc;

use crate::agent::clocks::{Age, WorkClock};
use crate::agent::failing::{AttemptFailure, Misshapen};
use crate::agent::models::ModelSlot;
use crate::agent::prompting::InNetwork;
use crate::agent::sharing::Delegating;
use crate::agent::worker::AgentWorker;
use crate::config::Seconds;
use crate::delivery::live::SETTLE_MS;
use crate::delivery::rooms::Room;
use crate::llm::Answer;
use crate::tools::StateDesk;
use vocative_core::delegating::StoredTask;
use vocative_core::given::Given;
use vocative_core::judging::policy::{SpentUp, TooCostly};
use vocative_core::run::{ClaimedRun, Usage};
use vocative_core::running::budget::RunUsedUp;
use vocative_store::contract::ReplyRoute;

/// A run that was claimed, with its place at its model.
pub(super) struct Claim {
    pub(super) run: ClaimedRun,
    /// `None` if its agent is no longer configured.
    pub(super) place: Option<ModelSlot>,
    pub(super) age: Age,
}

/// A claimed run with where its answer goes.
#[derive(Clone, Copy)]
pub(super) struct Working<'a> {
    pub(super) worker: &'a AgentWorker,
    pub(super) claimed: &'a ClaimedRun,
    pub(super) place: &'a ModelSlot,
    pub(super) room: &'a Room,
    pub(super) route: &'a ReplyRoute,
    pub(super) clock: WorkClock,
    /// What a program gave along with its question.
    pub(super) given: &'a Given,
    /// Whether another model was asked before in this attempt.
    pub(super) is_fallback: bool,
    /// The agent call that is worked on, if the run is a network's.
    pub(super) seat: Option<&'a NetworkSeat>,
    /// The task that it works on, if another run started it.
    pub(super) task: Option<&'a StoredTask>,
    /// How it asks other agents.
    pub(super) delegating: Delegating,
}

/// An agent call of a network, as the work of its agent sees it.
pub(super) struct NetworkSeat {
    /// The network, and what the agent is sent of the run so far.
    pub(super) network: InNetwork,
    /// The number of steps of the run before it.
    pub(super) steps_before: u32,
    /// Whether no earlier attempt worked on the call.
    pub(super) is_fresh: bool,
    /// The values of the network's run.
    pub(super) desk: Arc<StateDesk>,
}

/// How a run's work ended.
pub(super) enum RunEnd {
    /// An answer to commit.
    Answered(Answer),
    /// Its steps are used up without an answer.
    UsedUp(Usage),
    /// None of its answers has the required form.
    Misshapen(Misshapen),
    /// A call of this tool failed, which ends the run.
    ToolFailed(String),
    /// The day's tokens were used up between two of its steps.
    SpentUp(SpentUp),
    /// Its next request could pass a cap of the day.
    TooCostly(TooCostly),
    /// It has used up its budget.
    RunUsedUp(RunUsedUp),
    /// A hook does not let it go on; the text is the reason, worded for the room.
    Refused(String),
    /// Its message was meant for somebody else.
    NotMeant,
    /// People are to decide about its calls, or agents to answer them.
    Waits,
    /// Its trigger is gone, or a person said stop.
    Cancelled,
    /// Another worker holds the run.
    LeaseLost,
    /// It gave no answer.
    Failed(AttemptFailure),
    /// It took longer than it may.
    TooLong { longest: Seconds },
}

/// How a run's work ended, and for how long its live view may still change in the room.
pub(super) struct FinishedRun {
    pub(super) work: RunEnd,
    /// How long an edit of its placeholder may still be on its way.
    pub(super) live_settle_ms: i64,
}

/// The result of work under the run's lease.
pub(super) enum UnderLease<T> {
    /// It was done.
    Done(T),
    /// It was broken off, and so is the run's work.
    BrokenOff(RunEnd),
}

impl From<RunEnd> for FinishedRun {
    fn from(work: RunEnd) -> Self {
        Self {
            work,
            live_settle_ms: SETTLE_MS,
        }
    }
}
