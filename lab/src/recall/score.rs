//! What came of the questions, as a table.

use std::collections::BTreeMap;
use std::time::Duration;

use super::facts::{RecallQuestion, WordingKind};
use super::unasked::Unasked;
use super::{HITS, READ, RecallAnswer};
use crate::args::RecallArgs;

/// What each method found.
#[derive(Default)]
pub(super) struct Scores {
    /// By method, in the order of the first question.
    methods: Vec<(&'static str, RecallScore)>,
    /// What a prompt shows without being asked for.
    pub(super) unasked: Unasked,
}

#[derive(Default)]
struct RecallScore {
    asked: u32,
    read: u32,
    listed: u32,
    reciprocal_ranks: f64,
    tokens: usize,
    took: Vec<Duration>,
    /// Per kind: questions asked, and those answered among the first hits.
    kinds: BTreeMap<WordingKind, (u32, u32)>,
}

impl Scores {
    /// Counts an answer of which the first hits are read, and says whether they answer the question; questions whose
    /// answer was never said don't count.
    pub(super) fn add(
        &mut self,
        method: &'static str,
        question: &RecallQuestion,
        answer: &RecallAnswer,
    ) -> bool {
        self.count(method, question, answer, READ)
    }

    /// Counts an answer of which all hits are read.
    pub(super) fn add_all(
        &mut self,
        method: &'static str,
        question: &RecallQuestion,
        answer: &RecallAnswer,
    ) {
        self.count(method, question, answer, usize::MAX);
    }

    fn count(
        &mut self,
        method: &'static str,
        question: &RecallQuestion,
        answer: &RecallAnswer,
        read: usize,
    ) -> bool {
        let score = self.of(method);
        score.tokens += answer.tokens;
        score.took.push(answer.took);
        if question.kind == WordingKind::Unsaid {
            return true;
        }
        let rank_of = |wanted: &usize| answer.lines.iter().position(|line| line == wanted);
        // All lines are needed: the last one found counts.
        let ranks: Option<Vec<usize>> = question.answers.iter().map(rank_of).collect();
        let rank = ranks.and_then(|ranks| ranks.into_iter().max());
        let is_read = rank.is_some_and(|rank| rank < read);
        score.asked += 1;
        score.read += u32::from(is_read);
        score.listed +=
            u32::from(rank.is_some_and(|rank| rank < HITS.into() || read == usize::MAX));
        let place = rank.and_then(|rank| u32::try_from(rank + 1).ok());
        score.reciprocal_ranks += place.map_or(0.0, |place| 1.0 / f64::from(place));
        let (asked, found) = score.kinds.entry(question.kind).or_default();
        *asked += 1;
        *found += u32::from(is_read);
        is_read
    }

    fn of(&mut self, method: &'static str) -> &mut RecallScore {
        let known = self.methods.iter().position(|(name, _)| *name == method);
        let place = known.unwrap_or_else(|| {
            self.methods.push((method, RecallScore::default()));
            self.methods.len() - 1
        });
        &mut self.methods[place].1
    }

    /// The tables: what was found, and what it cost.
    pub(super) fn shown(&self, args: &RecallArgs) -> String {
        let mut out = format!(
            "{} rooms of {} lines from seed {}; an answer counts as found among the first {READ} hits.\n\n",
            args.rooms, args.lines, args.seed
        );
        let kinds = WordingKind::ALL
            .into_iter()
            .filter(|kind| *kind != WordingKind::Unsaid);
        let names: Vec<&str> = kinds.clone().map(WordingKind::name).collect();
        out += &format!(
            "| | {} | all | @{HITS} | reciprocal rank | tokens | ms p50 | p99 |\n",
            names.join(" | ")
        );
        out += &format!("|---|{}\n", "---|".repeat(names.len() + 6));
        for (method, score) in &self.methods {
            let found = kinds.clone().map(|kind| {
                let (asked, found) = score.kinds.get(&kind).copied().unwrap_or_default();
                format!("{found}/{asked}")
            });
            let share = |count: u32| 100.0 * f64::from(count) / f64::from(score.asked.max(1));
            out += &format!(
                "| {method} | {} | {:.0} % | {:.0} % | {:.2} | {} | {:.1} | {:.1} |\n",
                found.collect::<Vec<_>>().join(" | "),
                share(score.read),
                share(score.listed),
                score.reciprocal_ranks / f64::from(score.asked.max(1)),
                score.tokens / score.took.len().max(1),
                percentile_ms(&score.took, 50),
                percentile_ms(&score.took, 99),
            );
        }
        out
    }
}

fn percentile_ms(took: &[Duration], percent: usize) -> f64 {
    let mut sorted = took.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * percent).div_ceil(100).max(1) - 1;
    sorted.get(rank).copied().unwrap_or_default().as_secs_f64() * 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(kind: WordingKind, answers: &[usize]) -> RecallQuestion {
        RecallQuestion {
            kind,
            wordings: Vec::new(),
            answers: answers.to_vec(),
        }
    }

    fn answer(lines: &[usize]) -> RecallAnswer {
        RecallAnswer {
            lines: lines.to_vec(),
            tokens: 10,
            took: Duration::from_millis(2),
        }
    }

    #[test]
    fn an_answer_counts_where_all_its_lines_are_among_the_first_hits() {
        let cases = [
            (WordingKind::Question, vec![7], vec![1, 2, 3, 4, 7], true),
            (
                WordingKind::Question,
                vec![7],
                vec![1, 2, 3, 4, 5, 7],
                false,
            ),
            (WordingKind::Joined, vec![7, 8], vec![7, 8], true),
            (WordingKind::Joined, vec![7, 8], vec![7], false),
            (WordingKind::Unsaid, vec![], vec![1], true),
        ];
        let mut scores = Scores::default();
        for (kind, wanted, lines, is_found) in cases {
            let is_counted = scores.add("a method", &question(kind, &wanted), &answer(&lines));
            assert_eq!(is_counted, is_found, "{kind:?} {lines:?}");
        }
        let score = &scores.methods[0].1;
        assert_eq!((score.asked, score.read, score.listed), (4, 2, 3));
        assert_eq!(score.kinds[&WordingKind::Joined], (2, 1));
    }

    #[test]
    fn everything_that_is_read_counts_for_the_newest_lines() {
        let mut scores = Scores::default();
        let lines: Vec<usize> = (0..50).collect();
        scores.add_all(
            "newest",
            &question(WordingKind::Question, &[40]),
            &answer(&lines),
        );
        let score = &scores.methods[0].1;
        assert_eq!((score.asked, score.read, score.listed), (1, 1, 1));
    }
}
