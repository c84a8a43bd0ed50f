//! Agents, and the models they ask.

use serde::{Deserialize, Serialize};

use vocative_core::model_rest::ModelRest;
use vocative_store::contract::ThumbCounts;

/// An agent, and the state of its model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentView {
    /// Its name.
    pub name: String,
    /// The configured model that answers for it.
    pub model: String,
    /// Its questions that wait.
    pub queued: u64,
    /// What people thought of its answers in the last 30 days.
    #[serde(default)]
    pub thumbs: ThumbsView,
    /// Why its model is not asked, if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rest: Option<ModelRestView>,
}

/// Thumbs of people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThumbsView {
    /// People who found an answer good.
    pub up: u64,
    /// People who did not.
    pub down: u64,
}

impl ThumbsView {
    /// The view of counts.
    #[must_use]
    pub fn of(counts: ThumbCounts) -> Self {
        Self {
            up: counts.up,
            down: counts.down,
        }
    }

    /// Whether nobody said anything.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl std::fmt::Display for ThumbsView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_none() {
            return Ok(());
        }
        write!(f, "{} up, {} down", self.up, self.down)
    }
}

/// A model that is not asked at present.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelRestView {
    /// Its configured name.
    pub model: String,
    /// `held` (its account is refused) or `resting` (over its limit, or down).
    pub state: String,
    /// What the provider said.
    pub reason: String,
    /// Since when, in milliseconds since the Unix epoch.
    pub since_ms: i64,
    /// When one question tries the model again, in milliseconds since the Unix epoch.
    pub until_ms: i64,
    /// The agents that it answers for.
    pub agents: Vec<String>,
    /// Their questions that wait.
    pub queued: u64,
}

impl ModelRestView {
    /// The view of a rest, still without the agents and questions that it concerns.
    #[must_use]
    pub fn of(rest: &ModelRest) -> Self {
        Self {
            model: rest.model.clone(),
            state: if rest.is_held { "held" } else { "resting" }.to_owned(),
            reason: rest.reason.clone(),
            since_ms: rest.since_ms,
            until_ms: rest.until_ms,
            agents: Vec::new(),
            queued: 0,
        }
    }

    /// Whether its account is refused, so that a person must act.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.state == "held"
    }
}

/// What was asked to be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetriedView {
    /// Questions that are queued again.
    pub runs: u64,
    /// Posts that were refused for good; they were not queued again.
    pub posts_left: u64,
}

/// What was released.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleasedModelView {
    /// The model.
    pub model: String,
    /// Whether it was not asked until now.
    pub was_resting: bool,
}
