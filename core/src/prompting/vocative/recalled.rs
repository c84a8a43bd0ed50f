//! Lines that were found for the question, in the tail of its prompt.
//!
//! Each is a message of its own that begins with `(found`, when it was said and who said it; no later line of what
//! somebody said starts where that stands, so no text ends it. They have a budget besides the conversation's: the
//! history is the same with them and without.

use super::{LineState, PromptLine};
use crate::history::{History, HistoryRole};
use crate::options::AssemblerOptions;
use crate::prompting::project::Projector;
use crate::prompting::{
    FOUND_PREFACE, MessageCost, OmissionReason, Prompt, PromptMessage, PromptPart, PromptRole,
    TokenCounter,
};
use crate::search::bar::wording_of;
use crate::search::excerpt::excerpt;
use crate::search::query::Query;
use crate::search::scoring::{PreparedLine, Scorer};
use crate::turn::Visibility;

/// The length to which a line is cut around what was looked for, in characters.
const LINE_MAX_CHARS: usize = 600;

/// Takes what was found and is not in the prompt for another reason, the best first, as far as its tokens go.
pub(super) fn take_recalled(
    lines: &mut [PromptLine<'_>],
    history: &History,
    options: &AssemblerOptions,
    projector: &Projector<'_>,
    counter: &dyn TokenCounter,
) {
    if history.recalled.is_empty() {
        return;
    }
    let asked = QuestionScorers::of(lines);
    let mut left = options
        .recall_max_tokens
        .saturating_sub(counter.cost(FOUND_PREFACE));
    for id in &history.recalled {
        let line = lines.iter_mut().find(|line| line.turn.id == *id);
        let Some(line) = line.filter(|line| !line.is_in()) else {
            continue;
        };
        let is_readable = line.turn.visibility == Visibility::Room;
        if !is_readable || line.turn.content.trim().is_empty() {
            continue;
        }
        let content = projector.found(line.turn, |text| asked.excerpt(text));
        let tokens = counter.cost(&content);
        if tokens > left {
            line.state = LineState::Left(OmissionReason::OverRecallTokens);
            continue;
        }
        left -= tokens;
        line.role = HistoryRole::Recalled;
        line.state = LineState::Whole;
        line.tokens = tokens;
        line.comes_before = None;
        line.message = PromptMessage {
            role: PromptRole::User,
            content,
        };
    }
}

/// Puts a line that says where they come from before the found lines, if there are any.
pub(super) fn add_preface(prompt: &mut Prompt, counter: &dyn TokenCounter) {
    let is_recalled = |cost: &MessageCost| cost.part == PromptPart::Recalled;
    let Some(first) = prompt.costs.iter().position(is_recalled) else {
        return;
    };
    let cost = MessageCost {
        part: PromptPart::Recalled,
        seq: None,
        tokens: counter.cost(FOUND_PREFACE),
    };
    prompt.costs.insert(first, cost);
    let preface = PromptMessage {
        role: PromptRole::User,
        content: FOUND_PREFACE.to_owned(),
    };
    prompt.messages.insert(first, preface);
    let recalled = prompt.costs.iter().filter(|cost| is_recalled(cost));
    prompt.recalled_tokens = recalled.map(|cost| cost.tokens).sum();
    prompt.tokens -= prompt.recalled_tokens - cost.tokens;
}

/// What the questions look for.
struct QuestionScorers(Vec<Scorer>);

impl QuestionScorers {
    fn of(lines: &[PromptLine<'_>]) -> Self {
        let triggers = lines
            .iter()
            .filter(|line| line.role == HistoryRole::Trigger);
        let scorers = triggers.map(|line| {
            let query = Query::parse(&wording_of(&line.turn.content, &[]));
            Scorer::new(&query, &vec![1.0; query.wished.len()])
        });
        Self(scorers.collect())
    }

    /// The piece of a text around what is looked for.
    fn excerpt(&self, text: &str) -> String {
        if text.chars().nth(LINE_MAX_CHARS).is_none() {
            return text.to_owned();
        }
        let line = PreparedLine::of(text);
        let found = self.0.iter().map(|scorer| scorer.relevance(&line, 0));
        let best = found.max_by(|a, b| a.score.total_cmp(&b.score));
        excerpt(text, best.map_or(0, |best| best.at), LINE_MAX_CHARS)
    }
}
