//! A task that one run gave another one, as it stands.

use crate::delegating::Share;
use crate::ids::{AgentName, RunId, TurnId};

/// How a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaskState {
    /// It is being worked on.
    Open,
    /// The agent answered.
    Answered,
    /// The agent gave no answer; the result says why.
    Failed,
    /// One of the two runs was ended.
    Cancelled,
    /// What the answer was made from was deleted, and the answer with it.
    Forgotten,
}

impl TaskState {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Open,
        Self::Answered,
        Self::Failed,
        Self::Cancelled,
        Self::Forgotten,
    ];

    /// The stored and shown name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Answered => "answered",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Forgotten => "forgotten",
        }
    }

    /// The state of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// A task that one run gave another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTask {
    /// The run that gave it, and waits.
    pub parent: RunId,
    /// The agent that gave it.
    pub asked_by: AgentName,
    /// The step of that run whose call gave it; `None` once the call was forgotten.
    pub step: Option<u32>,
    /// The run that works on it.
    pub child: RunId,
    /// The agent that works on it.
    pub agent: AgentName,
    /// What is to be done; empty once it was forgotten.
    pub task: String,
    /// Whether the agent that works on it is shown the room.
    pub sees_room: bool,
    /// What it may use.
    pub share: Share,
    /// How it stands.
    pub state: TaskState,
    /// What came of it, for the run that gave it.
    pub result: String,
    /// The turns that the result was made from for certain.
    pub sources: Vec<TurnId>,
    /// When it was given, in milliseconds since the Unix epoch.
    pub asked_at_ms: i64,
    /// When it was over, in milliseconds since the Unix epoch.
    pub ended_at_ms: Option<i64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_back() {
        for state in TaskState::ALL {
            assert_eq!(TaskState::from_name(state.name()), Some(state));
        }
    }
}
