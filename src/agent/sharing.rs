//! What a run may use, including all runs that it starts: its agent's budget, limited to its share if another run
//! started it.

use std::sync::Arc;

use crate::agent::registry::AgentSpec;
use vocative_core::delegating::StoredTask;
use vocative_core::running::budget::{RunBudget, RunUse};

/// How a run asks other agents.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delegating {
    /// The budget of the run, including all runs that it starts.
    pub(super) budget: RunBudget,
    /// Tool calls that it may make, including those of all runs that it starts.
    pub(super) calls_max: u32,
    /// Whether the agents that it asks are shown the room.
    pub(super) sees_room: bool,
}

/// What a run may use, including all runs that it starts: its agent's limits, within its share if another run started
/// it.
pub(super) fn whole_of(spec: &AgentSpec, task: Option<&StoredTask>) -> Delegating {
    let share = task.map(|task| task.share).unwrap_or_default();
    Delegating {
        budget: spec.budget.within(share.budget),
        calls_max: match task {
            Some(_) => spec.calls_per_run.min(share.calls),
            None => spec.calls_per_run,
        },
        sees_room: spec.settings().delegates_see_room(),
    }
}

/// The agent and its fallbacks, with the budget and calls that are left after the use of the runs that it started.
pub(super) fn with_what_is_left(
    spec: &Arc<AgentSpec>,
    whole: Delegating,
    (used, calls): (RunUse, u32),
) -> Arc<AgentSpec> {
    let budget = whole.budget.without(used);
    let calls_per_run = whole.calls_max.saturating_sub(calls);
    if budget == spec.budget && calls_per_run == spec.calls_per_run {
        return Arc::clone(spec);
    }
    let narrowed = |spec: &AgentSpec| AgentSpec {
        budget,
        calls_per_run,
        ..spec.clone()
    };
    let fallbacks = spec.fallbacks.iter();
    let fallbacks = fallbacks.map(|it| Arc::new(narrowed(it))).collect();
    Arc::new(AgentSpec {
        fallbacks,
        ..narrowed(spec)
    })
}
