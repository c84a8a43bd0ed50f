//! `ask_agent`: a task for another agent. The tool itself does nothing: the run that calls it waits for the other
//! agent's answer, which is the result.

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::{BuiltIn, CallContext, Tool, ToolError, ToolOutput};
use vocative_core::delegating::{CHILDREN_MAX, TASK_MAX_CHARS};
use vocative_core::ids::AgentName;
use vocative_core::tool_call::CallRule;

/// The tool's name.
pub const ASK_AGENT: &str = "ask_agent";

/// An agent or a network that may be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delegate {
    /// Its name.
    pub name: AgentName,
    /// What it is for, in words for the model that asks; empty = the model sees only its name.
    pub purpose: String,
    /// For a network: the agents that may be called for it.
    pub members: Vec<AgentName>,
}

/// What a model wants another agent to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskWish {
    /// The agent.
    pub agent: AgentName,
    /// For a network: the agents that may be called for it.
    pub members: Vec<AgentName>,
    /// The task.
    pub task: String,
}

/// The tool that asks another agent.
pub struct AskAgent {
    delegates: Vec<Delegate>,
    description: String,
}

impl AskAgent {
    /// Makes the tool for these agents and networks.
    #[must_use]
    pub fn new(delegates: Vec<Delegate>) -> Self {
        let line = |delegate: &Delegate| match delegate.purpose.is_empty() {
            true => format!("\n- {}", delegate.name),
            false => format!("\n- {}: {}", delegate.name, delegate.purpose),
        };
        let lines: String = delegates.iter().map(line).collect();
        let description = format!(
            "Gives another agent a task and waits for its answer, which comes back to you and not to the people here. It \
             does not see this conversation: say all that it needs. Ask several at once, in one answer, where their \
             tasks do not depend on each other; at most {CHILDREN_MAX} for one request. The agents:{lines}"
        );
        Self {
            delegates,
            description,
        }
    }

    fn wish(&self, arguments: &Value) -> Result<TaskWish, ToolError> {
        let text = |name: &str| arguments[name].as_str().unwrap_or_default().trim();
        let (agent, task) = (text("agent"), text("task"));
        let Some(delegate) = self
            .delegates
            .iter()
            .find(|delegate| delegate.name.as_str() == agent)
        else {
            let names: Vec<&str> = self.delegates.iter().map(|it| it.name.as_str()).collect();
            let what = format!("`agent` is one of {}", names.join(", "));
            return Err(ToolError::Arguments(what));
        };
        if task.is_empty() || task.chars().count() > TASK_MAX_CHARS {
            let what = format!("`task` has 1 to {TASK_MAX_CHARS} characters");
            return Err(ToolError::Arguments(what));
        }
        Ok(TaskWish {
            agent: delegate.name.clone(),
            members: delegate.members.clone(),
            task: task.to_owned(),
        })
    }
}

impl Tool for AskAgent {
    fn name(&self) -> &str {
        ASK_AGENT
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn schema(&self) -> Value {
        let names: Vec<&str> = self.delegates.iter().map(|it| it.name.as_str()).collect();
        json!({
            "type": "object",
            "properties": {
                "agent": {"type": "string", "enum": names, "description": "The agent."},
                "task": {
                    "type": "string",
                    "description": "What it is to do or to find out, with all that it needs to know."
                }
            },
            "required": ["agent", "task"],
            "additionalProperties": false
        })
    }

    fn rule(&self) -> CallRule {
        BuiltIn::AskAgent.rule()
    }

    /// An agent's answer is as trusted as what that agent has read: the store marks the run that asked accordingly.
    fn is_outside(&self) -> bool {
        false
    }

    fn task(&self, arguments: &Value) -> Option<Result<TaskWish, ToolError>> {
        Some(self.wish(arguments))
    }

    fn call(&self, _: Value, _: CallContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        Box::pin(async {
            let what = "agents are asked by runs alone";
            Err(ToolError::Failed(what.to_owned()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_can_not_be_given_says_what_to_mend() {
        let delegate = |name: &str, purpose: &str| Delegate {
            name: AgentName::trusted(name),
            purpose: purpose.to_owned(),
            members: Vec::new(),
        };
        let tool = AskAgent::new(vec![
            delegate("look", "finds documents"),
            delegate("pen", ""),
        ]);
        assert!(
            tool.description()
                .ends_with("The agents:\n- look: finds documents\n- pen")
        );
        let read = |arguments: Value| tool.wish(&arguments).map_err(|wrong| wrong.to_string());
        let expected = TaskWish {
            agent: AgentName::trusted("look"),
            members: Vec::new(),
            task: "Find it.".to_owned(),
        };
        assert_eq!(
            read(json!({"agent": "look", "task": " Find it. "})),
            Ok(expected)
        );
        let long = "x".repeat(TASK_MAX_CHARS + 1);
        for (arguments, words) in [
            (json!({"agent": "desk", "task": "?"}), "one of look, pen"),
            (json!({"agent": "look", "task": " "}), "1 to 8000"),
            (json!({"agent": "look", "task": long}), "1 to 8000"),
        ] {
            let told = read(arguments).err().unwrap_or_default();
            assert!(told.contains(words), "{words} in {told}");
        }
    }
}
