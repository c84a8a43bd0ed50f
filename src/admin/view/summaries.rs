//! Summaries of older turns.

use serde::{Deserialize, Serialize};

use super::conversations::ConversationView;
use vocative_core::summary::Summary;

/// The summaries of a conversation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SummariesView {
    /// The conversation.
    pub conversation: ConversationView,
    /// By agent, then as the chain grew.
    pub summaries: Vec<SummaryView>,
}

/// One summary.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SummaryView {
    /// Its number.
    pub id: i64,
    /// The agent.
    pub agent: String,
    /// `current`, `stale` or `void`.
    pub state: String,
    /// The number of the one it was made from.
    pub previous: Option<i64>,
    /// When the first turn folded into it was sent, in milliseconds since the Unix epoch.
    pub from_ms: i64,
    /// When the last was.
    pub through_ms: i64,
    /// Turns folded into it, without those of the one before.
    pub turns: u64,
    /// What it costs.
    pub tokens: u64,
    /// Who made it.
    pub model: String,
    /// When, in milliseconds since the Unix epoch.
    pub created_at_ms: i64,
    /// What it says; empty once void.
    pub text: String,
}

impl SummaryView {
    /// The view of a stored summary.
    #[must_use]
    pub fn of(summary: &Summary) -> Self {
        Self {
            id: summary.id.0,
            agent: summary.agent.to_string(),
            state: summary.state.name().to_owned(),
            previous: summary.previous.map(|id| id.0),
            from_ms: summary.from.sent_at_ms,
            through_ms: summary.through.sent_at_ms,
            turns: summary.turns,
            tokens: summary.tokens,
            model: summary.model.clone(),
            created_at_ms: summary.created_at_ms,
            text: summary.text.clone(),
        }
    }
}

/// What came of a request to rebuild summaries.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct RebuildView {
    /// Summaries set aside.
    pub set_aside: u64,
    /// Summaries left in use, because turns that they stand for have expired.
    #[serde(default)]
    pub stay: u64,
    /// Whether a daemon is there to make them again.
    pub has_daemon: bool,
}
