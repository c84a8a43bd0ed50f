//! What models are told of tasks.

use serde_json::json;

use crate::delegating::{CHILDREN_MAX, DEPTH_MAX, NotDelegated, StoredTask, TaskState};

/// What a model is told of a task that its run gave, and whether that is an answer; `None` while it is open.
#[must_use]
pub fn told_of_task(task: &StoredTask) -> Option<(bool, String)> {
    let agent = task.agent.as_str();
    Some(match task.state {
        TaskState::Open => return None,
        TaskState::Answered => (
            true,
            json!({"agent": agent, "answer": task.result}).to_string(),
        ),
        TaskState::Failed if task.result.is_empty() => (false, format!("{agent} gave no answer")),
        TaskState::Failed => (false, format!("{agent} gave no answer: {}", task.result)),
        TaskState::Cancelled => (
            false,
            format!("{agent} was stopped before it had an answer. Go on without it"),
        ),
        TaskState::Forgotten => (
            false,
            format!(
                "{agent} answered, and what its answer was made from was deleted since. Go on without it"
            ),
        ),
    })
}

/// The task as it reads for the agent that is to work on it.
#[must_use]
pub fn task_text(task: &StoredTask) -> String {
    format!("{} (agent): {}", task.asked_by, task.task)
}

/// What a model is told whose run may not ask an agent.
#[must_use]
pub fn not_delegated_text(not: NotDelegated, agent: &str) -> String {
    let mend = "do it yourself, or answer with what you have";
    match not {
        NotDelegated::Cycle => {
            format!("not asked: {agent} itself waits for this answer; {mend}")
        }
        NotDelegated::MemberWaits => {
            format!("not asked: an agent of {agent} itself waits for this answer; {mend}")
        }
        NotDelegated::TooDeep => {
            format!("not asked: agents ask each other at most {DEPTH_MAX} times in a row; {mend}")
        }
        NotDelegated::TooMany => {
            format!("not asked: at most {CHILDREN_MAX} agents are asked for one request; {mend}")
        }
        NotDelegated::NothingLeft => {
            format!("not asked: what this request may use has nothing left for {agent}; {mend}")
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::delegating::Share;
    use crate::ids::AgentName;

    #[test]
    fn a_model_reads_what_became_of_its_task() {
        let id = "0198c5de-1234-7abc-8def-0123456789ab";
        let mut task = StoredTask {
            parent: id.parse().unwrap(),
            asked_by: AgentName::trusted("desk"),
            step: Some(1),
            child: id.parse().unwrap(),
            agent: AgentName::trusted("look"),
            task: "Find it.".to_owned(),
            sees_room: false,
            share: Share::default(),
            state: TaskState::Open,
            result: "it is \"here\"".to_owned(),
            sources: Vec::new(),
            asked_at_ms: 0,
            ended_at_ms: None,
        };
        let told = TaskState::ALL.map(|state| {
            task.state = state;
            told_of_task(&task).map(|(is_answer, text)| format!("{is_answer} {text}"))
        });
        let told: Vec<String> = told.into_iter().flatten().collect();
        insta::assert_snapshot!(told.join("\n"), @r#"
        true {"agent":"look","answer":"it is \"here\""}
        false look gave no answer: it is "here"
        false look was stopped before it had an answer. Go on without it
        false look answered, and what its answer was made from was deleted since. Go on without it
        "#);
        assert_eq!(task_text(&task), "desk (agent): Find it.");
    }
}
