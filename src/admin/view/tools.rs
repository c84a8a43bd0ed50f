//! Tool calls, counted.

use serde::{Deserialize, Serialize};
use vocative_store::ToolCounts;

/// What came of the calls of a tool today (UTC).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCountsView {
    /// The tool.
    pub tool: String,
    /// Calls that were begun, each once.
    pub begun: u64,
    /// Calls that gave a result.
    pub done: u64,
    /// Calls that gave an error.
    pub failed: u64,
    /// Calls of which it is not known whether they acted.
    pub unknown: u64,
    /// Calls that were not made.
    pub denied: u64,
}

impl From<&ToolCounts> for ToolCountsView {
    fn from(counts: &ToolCounts) -> Self {
        Self {
            tool: counts.tool.clone(),
            begun: counts.begun,
            done: counts.done,
            failed: counts.failed,
            unknown: counts.unknown,
            denied: counts.denied,
        }
    }
}
