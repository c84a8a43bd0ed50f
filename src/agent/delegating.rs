//! A call that gives another agent a task: the other agent's run is queued with the row that says that the call
//! waits, and its answer is the call's result.

use crate::agent::stepping::Stepping;
use crate::tools::{TaskWish, ToolOutcome};
use vocative_core::delegating::{StoredTask, TaskState, told_of_task};
use vocative_core::tool_call::{CallState, StoredCall};
use vocative_store::StoreError;
use vocative_store::contract::{NewTask, TaskGiven};

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

/// The result of a call that gave a task; `None` while the task is open.
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
