//! Servers of tools and what they offer.

use serde::{Deserialize, Serialize};
use vocative_store::contract::PinnedTool;

use crate::tools::mcp::{McpHealth, pin_digest, told};

/// A server of tools at a glance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpHealthView {
    /// Its name.
    pub name: String,
    /// In a word: starting, ready, waiting, parked.
    pub state: String,
    /// Why it is not ready.
    pub cause: Option<String>,
    /// Tools that it offers and that were approved.
    pub tools: usize,
    /// The last of what it logged.
    pub log: Vec<String>,
}

/// A tool of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpToolView {
    /// The server.
    pub server: String,
    /// The server's name for it.
    pub tool: String,
    /// In a word: approved, new, changed, gone.
    pub state: String,
    /// The hash of what the server says of it now.
    pub digest: String,
    /// What it says, in a line.
    pub told: String,
    /// What it said before, where that was approved and is another one.
    pub told_before: Option<String>,
}

impl From<&McpHealth> for McpHealthView {
    fn from(health: &McpHealth) -> Self {
        Self {
            name: health.name.clone(),
            state: health.state.to_owned(),
            cause: health.cause.clone(),
            tools: health.tools,
            log: health.log.clone(),
        }
    }
}

impl From<&PinnedTool> for McpToolView {
    fn from(pinned: &PinnedTool) -> Self {
        let state = match (pinned.is_listed, &pinned.approved, &pinned.waiting) {
            (false, _, _) => "gone",
            (true, None, _) => "new",
            (true, Some(_), Some(_)) => "changed",
            (true, Some(_), None) => "approved",
        };
        let now = pinned.waiting.as_ref().or(pinned.approved.as_ref());
        let now = now.map_or("", String::as_str);
        let before = pinned.approved.as_deref().filter(|it| *it != now);
        Self {
            server: pinned.server.clone(),
            tool: pinned.tool.clone(),
            state: state.to_owned(),
            digest: pin_digest(now),
            told: told(now),
            told_before: before.map(told),
        }
    }
}
