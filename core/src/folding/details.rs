//! What a summary can lose without a reader's notice: numbers, dates, codes, addresses and links. Pure.
//!
//! A detail is compared letter by letter, so its loss is measured, in any language, without a model. Names and
//! decisions can be said in other words: the request for a summary asks for them, but their loss is not measured.

use std::collections::{BTreeMap, BTreeSet};

use crate::search::text::is_unspaced;

/// The most details that a summary is held to, the newest first: about as many as fit into one.
const DETAILS_MAX: usize = 40;
/// A line that occurs this often in one fold, its numbers aside, is a repeating report: no summary is held to its
/// numbers.
const REPORTS_MIN: usize = 3;
/// The length of a detail, in characters. A single digit stands in nearly every text.
const DETAIL_CHARS: std::ops::RangeInclusive<usize> = 2..=200;

/// How many of the details that it was to keep a summary lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// How many it was to keep.
    pub total: usize,
    /// Those that it does not hold, in the order in which they were said.
    pub lost: Vec<String>,
}

impl Loss {
    /// The loss of a summary that replaces `previous` and `turns`.
    #[must_use]
    pub fn of(summary: &str, previous: Option<&str>, turns: &str) -> Self {
        let wanted = wanted(previous.unwrap_or_default(), turns);
        let whole = summary.to_lowercase();
        let held: BTreeSet<String> = details(&whole).collect();
        let is_lost = |detail: &String| {
            let is_short = detail.chars().count() <= 2;
            !held.contains(detail) && (is_short || !whole.contains(detail.as_str()))
        };
        Self {
            total: wanted.len(),
            lost: wanted.into_iter().filter(is_lost).collect(),
        }
    }

    /// Whether the summary is to be asked for again: it lost more than it kept.
    #[must_use]
    pub fn is_grave(&self) -> bool {
        self.lost.len() > 1 && self.lost.len() * 2 > self.total
    }
}

/// The details that a summary is held to, in the order in which they were said.
fn wanted(previous: &str, turns: &str) -> Vec<String> {
    let lines: Vec<&str> = turns.lines().map(without_time).collect();
    let reports = Reports::among(&lines);
    let earlier = previous.lines().flat_map(details_of);
    let since = lines
        .iter()
        .filter(|line| !reports.hold(line))
        .flat_map(|line| details_of(line));
    let mut seen = BTreeSet::new();
    let all: Vec<String> = earlier
        .chain(since)
        .filter(|detail| seen.insert(detail.clone()))
        .collect();
    let skipped = all.len().saturating_sub(DETAILS_MAX);
    all.into_iter().skip(skipped).collect()
}

/// Whether a text has a detail in it.
pub(super) fn has_details(text: &str) -> bool {
    details_of(text).next().is_some()
}

fn details_of(text: &str) -> impl Iterator<Item = String> + use<> {
    let text = text.to_lowercase();
    details(&text).collect::<Vec<_>>().into_iter()
}

/// The details of a text in small letters.
fn details(text: &str) -> impl Iterator<Item = String> + '_ {
    let words = text.split(|c: char| c.is_whitespace() || is_unspaced(c));
    words.filter_map(|word| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        let is_address = word.contains("://") || word.contains('@') && word.contains('.');
        let is_detail = is_address || word.contains(char::is_numeric);
        (is_detail && DETAIL_CHARS.contains(&word.chars().count())).then(|| word.to_owned())
    })
}

/// A line of a record without the time that it begins with.
pub(super) fn without_time(line: &str) -> &str {
    line.strip_prefix('[')
        .and_then(|rest| rest.split_once("] "))
        .map_or(line, |(_, said)| said)
}

/// Lines that say the same again and again, with other numbers.
pub(super) struct Reports(BTreeMap<String, usize>);

impl Reports {
    pub(super) fn among(lines: &[&str]) -> Self {
        let mut times = BTreeMap::new();
        for line in lines {
            *times.entry(shape(line)).or_default() += 1;
        }
        Self(times)
    }

    /// Whether a line is one of them.
    pub(super) fn hold(&self, line: &str) -> bool {
        self.0
            .get(&shape(line))
            .is_some_and(|times| *times >= REPORTS_MIN)
    }
}

/// A line with a zero in place of each number.
fn shape(line: &str) -> String {
    let mut shape = String::with_capacity(line.len());
    for c in line.chars() {
        match c.is_numeric() {
            true if shape.ends_with('0') => {}
            true => shape.push('0'),
            false => shape.extend(c.to_lowercase()),
        }
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(summary: &str, turns: &str) -> Vec<String> {
        Loss::of(summary, None, turns).lost
    }

    #[test]
    fn numbers_codes_addresses_and_links_are_details_in_any_script() {
        let turns = "[2026-01-02 10:04] Ada: the code is Blue-Otter-77, ask ops@acme.example.\n\
                     [2026-01-02 10:05] Bob: see https://acme.example/plan on 14.03.\n\
                     [2026-01-02 10:06] Yuki: 会議は15:30からです";
        let all = [
            "blue-otter-77",
            "ops@acme.example",
            "https://acme.example/plan",
            "14.03",
            "15:30",
        ];
        assert_eq!(lost("", turns), all);
        assert_eq!(lost("Code BLUE-OTTER-77; 15:30会議", turns), all[1..4]);
    }

    #[test]
    fn a_short_number_is_a_word_of_its_own() {
        assert_eq!(lost("of 120 people", "Ada: we are 12"), ["12"]);
        assert_eq!(lost("they are 12.", "Ada: we are 12"), [""; 0]);
    }

    #[test]
    fn reports_that_repeat_and_single_digits_are_not_asked_for() {
        let turns =
            "Bot: latency is 120 ms\nBot: latency is 130 ms\nBot: latency is 90 ms\nAda: 5 minutes";
        assert_eq!(Loss::of("", None, turns), Loss::default());
    }

    #[test]
    fn what_the_summary_before_held_is_asked_for_too_and_the_newest_count() {
        let before = Loss::of("rate 40", Some("rate 40, room 17"), "Ada: tax 19");
        assert_eq!(
            (before.total, before.lost),
            (3, vec!["17".into(), "19".into()])
        );
        let many: String = (100..200)
            .map(|n| format!("Ada: {} n{n}\n", "so ".repeat(n)))
            .collect();
        let loss = Loss::of("", Some("very old 99"), &many);
        assert_eq!((loss.total, loss.lost.len()), (DETAILS_MAX, DETAILS_MAX));
        assert_eq!(loss.lost.last().map(String::as_str), Some("n199"));
    }

    #[test]
    fn a_loss_is_grave_where_more_is_lost_than_kept() {
        let loss = |total, lost: usize| Loss {
            total,
            lost: vec![String::new(); lost],
        };
        let grave = [loss(2, 2), loss(4, 3)];
        let bearable = [loss(1, 1), loss(4, 2), loss(0, 0)];
        assert!(grave.iter().all(Loss::is_grave) && !bearable.iter().any(Loss::is_grave));
    }

    #[test]
    fn a_text_of_one_mark_is_no_detail_and_is_read_once() {
        assert_eq!(lost("", &"٣".repeat(400_000)), [""; 0]);
        assert_eq!(lost("", &"!".repeat(400_000)), [""; 0]);
    }
}
