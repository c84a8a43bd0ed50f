//! What is folded, and in how many requests. Pure.

use std::collections::HashSet;

use crate::history::HistoryTurn;
use crate::prompting::TokenCounter;
use crate::turn::{Position, TurnKind};

/// A step stands for at most this many turns, so that a change to one of them costs no more than
/// that many when the summaries behind it are made again.
const STEP_TURNS_MAX: usize = 50;

/// One request's share of what is folded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoldStep {
    /// What was said, in full.
    pub text: String,
    /// How many turns, from the first, this step and those before it hold in full, and nothing of any
    /// other; `None` while a turn that goes over several requests is not complete.
    pub completes: Option<usize>,
}

/// How many of the turns, oldest first, are folded: those before a position, but no tool call
/// without its result.
pub fn foldable(turns: &[HistoryTurn], before: Position) -> usize {
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

/// Entries, one a turn, packed into requests of at most `max_tokens` each. An entry that is larger
/// goes over several, the first of which holds nothing else: the step before it ends at a whole turn.
pub fn steps(entries: &[String], max_tokens: usize, counter: &dyn TokenCounter) -> Vec<FoldStep> {
    let mut packing = FoldPacking::default();
    for (index, entry) in entries.iter().enumerate() {
        let mut pieces = pieces(entry, max_tokens, counter);
        let Some(last) = pieces.pop() else {
            continue;
        };
        let tokens = counter.cost(last);
        if !pieces.is_empty() || !packing.has_room(tokens, max_tokens) {
            packing.close(Some(index));
        }
        for piece in pieces {
            packing.add(piece, 0);
            packing.close(None);
        }
        packing.add(last, tokens);
    }
    let mut steps = packing.steps;
    steps.push(FoldStep {
        text: packing.text,
        completes: Some(entries.len()),
    });
    steps
}

/// Steps being packed.
#[derive(Default)]
struct FoldPacking {
    steps: Vec<FoldStep>,
    text: String,
    tokens: usize,
    turns: usize,
}

impl FoldPacking {
    fn has_room(&self, tokens: usize, max_tokens: usize) -> bool {
        self.turns < STEP_TURNS_MAX && self.tokens + tokens <= max_tokens
    }

    fn add(&mut self, piece: &str, tokens: usize) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(piece);
        self.tokens += tokens;
        self.turns += 1;
    }

    fn close(&mut self, completes: Option<usize>) {
        if !self.text.is_empty() {
            let text = std::mem::take(&mut self.text);
            self.steps.push(FoldStep { text, completes });
        }
        (self.tokens, self.turns) = (0, 0);
    }
}

/// Splits a text into pieces of at most that many tokens (or of one character).
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
