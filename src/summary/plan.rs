//! What is folded, and in how many requests. Pure.

use std::collections::HashSet;

use crate::domain::history::HistoryTurn;
use crate::domain::turn::{Position, TurnKind};
use crate::prompt::TokenCounter;

/// One request's share of what is folded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// What was said, in full.
    pub(super) text: String,
    /// How many turns, from the first, are complete with this step.
    pub(super) turns_done: usize,
}

/// How many of the turns, oldest first, are folded: those before a position, but no tool call
/// without its result.
pub(super) fn foldable(turns: &[HistoryTurn], before: Position) -> usize {
    let mut count = turns.partition_point(|read| read.turn.position < before);
    while let Some(parted) = first_parted(turns, count) {
        count = parted;
    }
    count
}

/// The first folded turn whose tool call's other half is not folded with it. One that is the oldest
/// of all is let go: its other half is gone, and it must not hold up the rest for ever.
fn first_parted(turns: &[HistoryTurn], count: usize) -> Option<usize> {
    let (folded, rest) = turns.split_at(count);
    let answered: HashSet<&str> = folded
        .iter()
        .filter(|read| read.turn.kind == TurnKind::ToolResult)
        .filter_map(|read| read.turn.call_id.as_deref())
        .collect();
    let later: HashSet<&str> = rest
        .iter()
        .filter_map(|read| read.turn.call_id.as_deref())
        .collect();
    folded.iter().enumerate().skip(1).find_map(|(index, read)| {
        let call = read.turn.call_id.as_deref()?;
        let is_open = read.turn.kind == TurnKind::ToolCall && !answered.contains(call);
        (is_open || later.contains(call)).then_some(index)
    })
}

/// Entries, one a turn, packed into requests of at most so many tokens each. An entry that is larger
/// goes over several.
pub(super) fn steps(
    entries: &[String],
    max_tokens: usize,
    counter: &dyn TokenCounter,
) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut text = String::new();
    let mut tokens = 0;
    for (index, entry) in entries.iter().enumerate() {
        for piece in pieces(entry, max_tokens, counter) {
            let piece_tokens = counter.cost(piece);
            if !text.is_empty() && tokens + piece_tokens > max_tokens {
                steps.push(Step {
                    text: std::mem::take(&mut text),
                    turns_done: index,
                });
                tokens = 0;
            }
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(piece);
            tokens += piece_tokens;
        }
    }
    steps.push(Step {
        text,
        turns_done: entries.len(),
    });
    steps
}

/// A text in pieces of at most so many tokens (or of one character).
fn pieces<'a>(text: &'a str, max_tokens: usize, counter: &dyn TokenCounter) -> Vec<&'a str> {
    if text.is_empty() {
        return Vec::new();
    }
    let middle = (0..=text.len() / 2)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0);
    if counter.cost(text) <= max_tokens || middle == 0 {
        return vec![text];
    }
    // At a space if there is one near.
    let at = text[..middle]
        .rfind(char::is_whitespace)
        .filter(|at| *at > middle / 2)
        .unwrap_or(middle);
    let (first, second) = text.split_at(at);
    let mut pieces_of_both = pieces(first, max_tokens, counter);
    pieces_of_both.extend(pieces(second, max_tokens, counter));
    pieces_of_both
}
