//! Turns as a summarising model reads them: one entry for each, with time and speaker, in full.

use chrono::{DateTime, Utc};

use super::AgentView;
use super::project::Projector;
use crate::history::History;

/// What was said in a snapshot, one entry for each turn in its order; empty where a turn says
/// nothing.
///
/// Labels can't be forged, as in prompts: later lines of an entry are indented.
#[must_use]
pub fn record(history: &History, agent: &AgentView) -> Vec<String> {
    let projector = Projector::new(history, agent, None);
    let entry = |turn| {
        let said = projector.spoken(turn)?;
        let at = DateTime::<Utc>::from_timestamp_millis(turn.said_at_ms)
            .map_or_else(String::new, |at| at.format("[%Y-%m-%d %H:%M] ").to_string());
        Some(format!("{at}{said}"))
    };
    let turns = history.turns.iter();
    turns
        .map(|read| entry(&read.turn).unwrap_or_default())
        .collect()
}
