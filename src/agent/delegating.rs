//! A call that gives another agent a task: that one's run is queued with the row that says that the call waits, and what
//! it says is the result. Also what a run may use that shares with others.

use std::sync::Arc;

use crate::agent::registry::AgentSpec;
use crate::agent::stepping::Stepping;
use crate::tools::{TaskWish, ToolOutcome};
use vocative_core::delegating::{StoredTask, TaskState, told_of_task};
use vocative_core::running::budget::{RunBudget, RunUse};
use vocative_core::tool_call::{CallState, StoredCall};
use vocative_store::StoreError;
use vocative_store::contract::{NewTask, TaskGiven};

/// How a run asks other agents.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delegating {
    /// What the run may use, with all that it starts.
    pub(super) budget: RunBudget,
    /// Tool calls that it may make, with all that it starts.
    pub(super) calls_max: u32,
    /// Whether who it asks is shown the room.
    pub(super) sees_room: bool,
}

impl Stepping<'_> {
    /// Gives another agent a task.
    pub(super) async fn give_task(
        &self,
        call: &StoredCall,
        wish: TaskWish,
    ) -> Result<TaskGiven, StoreError> {
        let new = NewTask {
            run: self.claimed.run.id,
            token: self.claimed.token,
            call: call.id,
            asked_by: self.agent.clone(),
            agent: wish.agent,
            members: wish.members,
            task: wish.task,
            sees_room: self.delegating.sees_room,
            budget: self.delegating.budget,
            calls_max: self.delegating.calls_max,
            now_ms: (self.clock)(),
        };
        self.store.give_task(new).await
    }
}

/// What a call comes to that gave a task; `None` while it is open.
pub(super) fn outcome_of_task(task: &StoredTask) -> Option<ToolOutcome> {
    let (is_answer, content) = told_of_task(task)?;
    Some(match is_answer {
        true => ToolOutcome {
            state: CallState::Done,
            content,
            sources: task.sources.clone(),
            files: Vec::new(),
            input: None,
        },
        false => ToolOutcome {
            sources: match task.state {
                TaskState::Failed => task.sources.clone(),
                _ => Vec::new(),
            },
            ..ToolOutcome::failed(content)
        },
    })
}

/// What a run may use with all that it starts: what its agent may, within its share where another run started it.
pub(super) fn whole_of(spec: &AgentSpec, task: Option<&StoredTask>) -> Delegating {
    let share = task.map(|task| task.share).unwrap_or_default();
    Delegating {
        budget: spec.budget.within(share.budget),
        calls_max: match task {
            Some(_) => spec.calls_per_run.min(share.calls),
            None => spec.calls_per_run,
        },
        sees_room: spec.delegates_see_room,
    }
}

/// The agent with what is left for a run itself once those that it started used something, whichever model it asks.
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
