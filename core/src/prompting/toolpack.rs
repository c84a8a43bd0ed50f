//! The rules of another system, exactly as its recorded vectors show them.
//!
//! Filter after loading, replied-next by adjacency, a slice or a summary over the threshold, plain
//! labels, and a budget walk that stops at the first turn that does not fit. Nothing is cut.

use std::collections::HashSet;

use super::{
    AgentView, MessageCost, Omission, OmissionReason, Prompt, PromptMessage, PromptPart,
    PromptRole, TokenCounter,
};
use crate::history::{History, HistoryRole};
use crate::ids::TurnId;
use crate::options::AssemblerOptions;
use crate::turn::{Participant, ParticipantKind, Turn};

pub(super) fn assemble(
    history: &History,
    agent: &AgentView,
    options: &AssemblerOptions,
    counter: &dyn TokenCounter,
    summariser_output: Option<&str>,
) -> Prompt {
    let loaded: Vec<&Turn> = history
        .turns
        .iter()
        .filter(|entry| matches!(entry.role, HistoryRole::Kept | HistoryRole::Trigger))
        .map(|entry| &entry.turn)
        .collect();
    let mut omitted = Vec::new();
    let mut kept = loaded.clone();
    if options.addressed_only {
        let involved = involved(&loaded, agent, options);
        kept.retain(|turn| involved.contains(&turn.id));
        let others = loaded.iter().filter(|turn| !involved.contains(&turn.id));
        omitted.extend(others.map(|turn| omission(turn, OmissionReason::NotAddressed)));
    }
    let (folded, why, summary) = fold(&kept, options, summariser_output);
    omitted.extend(kept.drain(..folded).map(|turn| omission(turn, why)));

    let mut lines: Vec<ToolpackLine> = Vec::with_capacity(kept.len() + 1);
    let has_summary = summary.is_some();
    lines.extend(summary.map(|text| ToolpackLine::new(None, PromptRole::System, text, counter)));
    lines.extend(kept.into_iter().map(|turn| {
        let (role, text) = project(turn, agent);
        ToolpackLine::new(Some(turn), role, text, counter)
    }));
    let from = first_that_fits(&lines, options.token_budget);
    let left_out = lines.drain(..from).filter_map(|line| line.turn);
    omitted.extend(left_out.map(|turn| omission(turn, OmissionReason::OverBudget)));
    omitted.sort_by_key(|omission| omission.position);
    let newest = loaded.last().map(|turn| turn.id);
    Prompt {
        costs: lines.iter().map(|line| line.cost(newest)).collect(),
        tokens: lines.iter().map(|line| line.tokens).sum(),
        turns: lines
            .iter()
            .filter_map(|line| line.turn)
            .map(|turn| turn.id)
            .collect(),
        messages: lines.into_iter().map(|line| line.message).collect(),
        turns_loaded: loaded.len(),
        has_summary,
        has_older: history.has_older,
        omitted,
        ..Prompt::empty(counter)
    }
}

struct ToolpackLine<'a> {
    turn: Option<&'a Turn>,
    message: PromptMessage,
    tokens: usize,
}

impl<'a> ToolpackLine<'a> {
    fn new(
        turn: Option<&'a Turn>,
        role: PromptRole,
        content: String,
        counter: &dyn TokenCounter,
    ) -> Self {
        Self {
            turn,
            tokens: counter.cost(&content),
            message: PromptMessage { role, content },
        }
    }

    /// The newest turn is the trigger.
    fn cost(&self, newest: Option<TurnId>) -> MessageCost {
        let part = match self.turn {
            None => PromptPart::Summary,
            Some(turn) if Some(turn.id) == newest => PromptPart::Trigger,
            Some(_) => PromptPart::History,
        };
        MessageCost {
            part,
            seq: self.turn.map(Turn::seq),
            tokens: self.tokens,
        }
    }
}

/// Ids of the turns that concern the agent; turns with one id stand or fall together.
fn involved(loaded: &[&Turn], agent: &AgentView, options: &AssemblerOptions) -> HashSet<TurnId> {
    let is_mentioned = |turn: &Turn| {
        turn.addressed_to.iter().any(|name| {
            *name == agent.name
                || options
                    .agent_aliases
                    .iter()
                    .any(|alias| alias == name.as_str())
        })
    };
    let mut involved: HashSet<TurnId> = loaded
        .iter()
        .filter(|turn| turn.participant.platform_id == agent.name.as_str() || is_mentioned(turn))
        .map(|turn| turn.id)
        .collect();
    for turn in loaded
        .iter()
        .filter(|turn| is_own(&turn.participant, agent))
    {
        involved.extend(turn.reply_to);
    }
    // Replied-next: an answer that does not say what it answers counts as an answer to the turn before it.
    for pair in loaded.windows(2) {
        if is_own(&pair[1].participant, agent) && pair[1].reply_to.is_none() {
            involved.insert(pair[0].id);
        }
    }
    involved.extend(loaded.last().map(|turn| turn.id));
    involved
}

fn is_own(participant: &Participant, agent: &AgentView) -> bool {
    participant.kind == ParticipantKind::Agent && participant.platform_id == agent.name.as_str()
}

/// How many of the oldest turns go, why, and the summary in their place.
fn fold(
    kept: &[&Turn],
    options: &AssemblerOptions,
    summariser_output: Option<&str>,
) -> (usize, OmissionReason, Option<String>) {
    let threshold = options.rolling_summary_threshold;
    if kept.len() <= threshold {
        return (0, OmissionReason::OverThreshold, None);
    }
    if let Some(summary) = summariser_output.and_then(summary_text) {
        return (kept.len() / 2, OmissionReason::Summarized, Some(summary));
    }
    // Their slice of the last zero turns is all of them.
    let folded = if threshold == 0 {
        0
    } else {
        kept.len() - threshold
    };
    (folded, OmissionReason::OverThreshold, None)
}

/// The summary turn's text; `None` for an output that is not the JSON asked for.
fn summary_text(output: &str) -> Option<String> {
    let output: serde_json::Value = serde_json::from_str(output).ok()?;
    let turns = output.get("turnsSummarized")?.as_u64()?;
    let summary = output.get("summary")?.as_str()?;
    Some(format!("[Summary of {turns} earlier turns]: {summary}"))
}

fn project(turn: &Turn, agent: &AgentView) -> (PromptRole, String) {
    let content = turn.content.clone();
    let name = turn.participant.shown_name();
    match turn.participant.kind {
        ParticipantKind::System => (PromptRole::System, content),
        ParticipantKind::Agent if is_own(&turn.participant, agent) => {
            (PromptRole::Assistant, content)
        }
        ParticipantKind::Agent => (PromptRole::User, format!("{name} (agent): {content}")),
        ParticipantKind::User => (PromptRole::User, format!("{name}: {content}")),
    }
}

/// The last line always fits; equality fits; it stops at the first that does not.
fn first_that_fits(lines: &[ToolpackLine<'_>], token_budget: usize) -> usize {
    let mut tokens = 0;
    for (index, line) in lines.iter().enumerate().rev() {
        tokens += line.tokens;
        if tokens > token_budget && index + 1 < lines.len() {
            return index + 1;
        }
    }
    0
}

fn omission(turn: &Turn, why: OmissionReason) -> Omission {
    Omission {
        turn: turn.id,
        position: turn.position,
        speaker: turn.participant.shown_name().to_owned(),
        why,
    }
}
