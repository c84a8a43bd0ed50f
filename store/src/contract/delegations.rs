//! Tasks that runs give other agents.

use vocative_core::delegating::NotDelegated;
use vocative_core::ids::{AgentName, LeaseToken, RunId, ToolCallId};
use vocative_core::running::budget::RunBudget;

/// A run asks another agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTask {
    /// The run.
    pub run: RunId,
    /// Its lease.
    pub token: LeaseToken,
    /// The call.
    pub call: ToolCallId,
    /// The agent that asks: the run's, or one of its network.
    pub asked_by: AgentName,
    /// Whom it asks.
    pub agent: AgentName,
    /// If the asked agent is a network: the agents that may be called for it.
    pub members: Vec<AgentName>,
    /// What is to be done.
    pub task: String,
    /// Whether the agent is shown the room.
    pub sees_room: bool,
    /// What the run may use, what it has used already included.
    pub budget: RunBudget,
    /// Tool calls that it may make.
    pub calls_max: u32,
    /// The time, in milliseconds since the Unix epoch.
    pub now_ms: i64,
}

/// The outcome of asking another agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskGiven {
    /// The run waits for the agent's answer.
    Waits,
    /// The agent is not asked: nothing was written.
    Not(NotDelegated),
    /// The lease is no longer held: nothing was written.
    Stale,
    /// Its step was forgotten with something that it was made from: nothing was written.
    SourceGone,
}
