//! What stands in a prompt without being asked for: how many questions have their answer there, and how often other
//! lines are shown.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use vocative_core::search::bar::{Candidate, asks_for_something, cleared, wording_of};
use vocative_store::contract::SearchHits;

use super::facts::{RecallQuestion, WordingKind};

/// The results of the questions of each kind.
#[derive(Default)]
pub(super) struct Unasked(BTreeMap<WordingKind, Count>);

#[derive(Default)]
struct Count {
    asked: u32,
    /// Questions whose answers are all among the lines.
    answered: u32,
    /// Questions for which any line is shown.
    shown: u32,
    lines: usize,
}

/// The question as the daemon searches for it; `None` where it searches for nothing.
pub(super) fn wording(question: &RecallQuestion) -> Option<String> {
    let wording = wording_of(question.wordings.first()?, &[]);
    asks_for_something(&wording).then_some(wording)
}

/// The hits that a prompt would show, by their places.
pub(super) fn shown(found: &SearchHits) -> Vec<usize> {
    let candidates: Vec<Candidate<'_>> = found
        .hits
        .iter()
        .map(|hit| Candidate {
            text: &hit.text,
            speaker: hit.turn.participant.shown_name(),
            nearness: hit.nearness,
        })
        .collect();
    cleared(&found.wordings, &candidates, found.near_usually)
}

impl Unasked {
    pub(super) fn add(&mut self, question: &RecallQuestion, lines: &[usize]) {
        let count = self.0.entry(question.kind).or_default();
        count.asked += 1;
        count.lines += lines.len();
        count.shown += u32::from(!lines.is_empty());
        let is_there = |line: &usize| lines.contains(line);
        let is_answered = !question.answers.is_empty() && question.answers.iter().all(is_there);
        count.answered += u32::from(is_answered);
    }

    /// The table.
    pub(super) fn told(&self) -> String {
        let mut out = "\nIn the prompt without being asked for:\n\n\
             | | questions | with their answer | with any line | lines |\n|---|---|---|---|---|\n"
            .to_owned();
        for (kind, count) in &self.0 {
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {} |",
                kind.name(),
                count.asked,
                count.answered,
                count.shown,
                count.lines
            );
        }
        out
    }
}
