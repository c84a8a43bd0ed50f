//! A summariser without a model: a sentence of each turn. Pure and deterministic, so that summaries work, and can
//! be tested, without a key.

use std::collections::BTreeSet;

use super::SUMMARY_MAX_TOKENS;
use super::details::{Reports, has_details, without_time};
use crate::prompting::TokenCounter;

/// The most characters of a turn in which a sentence is looked for.
const READ_MAX_CHARS: usize = 2_000;
/// The most characters that the offline summariser keeps of each turn.
const SENTENCE_MAX_CHARS: usize = 120;
/// The longest offline summary, in tokens.
const MAX_TOKENS: usize = SUMMARY_MAX_TOKENS;
/// The line in place of lines that were left out.
const GONE: &str = "(earlier lines left out)";

/// The share of the limit that lines with details get before all others.
const DETAILS_SHARE: usize = MAX_TOKENS * 2 / 3;
/// A line of fewer words than this, its speaker's name among them, says nothing that is missed.
const SHORT_WORDS: usize = 5;

/// The previous summary's lines, and the sentence of each line of turns that says most. What does not fit is left
/// out: first what says little, then the oldest; lines with a number, a code or a link stay longest.
pub fn summarise(previous: Option<&str>, turns: &str, counter: &dyn TokenCounter) -> String {
    let earlier = previous.unwrap_or_default().lines();
    // Lines that an earlier summary left out are not brought back.
    let was_cut = earlier.clone().any(|line| line == GONE);
    let mut lines: Vec<String> = earlier
        .filter(|line| *line != GONE)
        .map(str::to_owned)
        .collect();
    // Only a turn's first line is not indented.
    let said = turns.lines().filter(|line| !line.starts_with(' '));
    lines.extend(said.map(without_time).map(telling_sentence));
    let kept = kept(&lines, counter);
    let is_cut = was_cut || kept.len() < lines.len();
    let gone = is_cut.then_some(GONE);
    let lines = kept.into_iter().map(|at| lines[at].as_str());
    gone.into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}

/// Which lines stay, in their order.
fn kept(lines: &[String], counter: &dyn TokenCounter) -> BTreeSet<usize> {
    let shown: Vec<&str> = lines.iter().map(String::as_str).collect();
    let reports = Reports::among(&shown);
    let weigh = |line: &str| match () {
        () if reports.hold(line) || line.split_whitespace().count() < SHORT_WORDS => Weight::Little,
        () if has_details(line) => Weight::Details,
        () => Weight::Statement,
    };
    let weights: Vec<Weight> = shown.iter().map(|line| weigh(line)).collect();
    let rounds = [
        (Weight::Details, DETAILS_SHARE),
        (Weight::Statement, MAX_TOKENS),
        (Weight::Little, MAX_TOKENS),
    ];
    let mut kept = BTreeSet::new();
    let mut tokens = counter.count(GONE) as usize + 1;
    for (least, limit) in rounds {
        for at in (0..lines.len()).rev() {
            let is_next = weights[at] >= least && !kept.contains(&at);
            if !is_next {
                continue;
            }
            let cost = counter.count(&lines[at]) as usize + NEWLINE_TOKENS;
            if tokens + cost > limit && !kept.is_empty() {
                break;
            }
            tokens += cost;
            kept.insert(at);
        }
    }
    kept
}

/// How much a line says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    Little,
    Statement,
    Details,
}

/// What a line break costs, by the counter's own estimate.
const NEWLINE_TOKENS: usize = 2;

/// The first sentence of an entry that has a detail in it, or its first one, with who said it.
fn telling_sentence(said: &str) -> String {
    let read = said.char_indices().nth(READ_MAX_CHARS);
    let said = read.map_or(said, |(end, _)| &said[..end]);
    let speaker = said.find(": ").map_or(0, |at| at + 2);
    let (speaker, mut rest) = said.split_at(speaker);
    let mut telling = first_sentence(rest);
    while !rest.is_empty() {
        let sentence = first_sentence(rest);
        if has_details(sentence) {
            telling = sentence;
            break;
        }
        rest = rest[sentence.len()..].trim_start();
    }
    let mut line = format!("{speaker}{telling}");
    if let Some((end, _)) = line.char_indices().nth(SENTENCE_MAX_CHARS) {
        line.truncate(end);
        line.push('…');
    }
    line
}

/// A text up to the end of its first sentence.
fn first_sentence(text: &str) -> &str {
    let end = ["。", ". ", "! ", "? "]
        .iter()
        .filter_map(|mark| text.find(mark).map(|at| at + mark.trim_end().len()))
        .min()
        .unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompting::ClassEstimate;

    #[test]
    fn first_sentences_stay_with_their_speakers() {
        let turns = "[2026-01-02 10:04] Ada: We ship on Friday. Or not.\n  Mallory: forged\n\
                     [2026-01-02 10:05] Kael (you): Noted! I will tell Bob.";
        let first = summarise(None, turns, &ClassEstimate);
        assert_eq!(first, "Ada: We ship on Friday.\nKael (you): Noted!");
        let second = summarise(Some(&first), "[2026-01-03 09:00] Bob: ok", &ClassEstimate);
        assert_eq!(second, first + "\nBob: ok");
    }

    #[test]
    fn of_a_turn_the_sentence_with_the_number_stays() {
        let turns = "[2026-01-02 10:04] Ada: Good news. The rent is 1,250 a month! Bye.";
        let summary = summarise(None, turns, &ClassEstimate);
        assert_eq!(summary, "Ada: The rent is 1,250 a month!");
    }

    #[test]
    fn what_says_little_goes_before_what_has_a_number() {
        let mut turns = "Ada: the guest code is blue-otter-77\n".to_owned();
        for n in 0..200 {
            turns += &format!("Bob: ok {}\n", ["thanks", "fine", "yes"][n % 3]);
            turns += &format!("Bob: latency is {n} ms today\n");
        }
        let text = summarise(None, &turns, &ClassEstimate);
        let second = summarise(Some(&text), &turns[37..], &ClassEstimate);
        for text in [text, second] {
            assert!(text.contains("blue-otter-77"), "{text}");
            assert!(ClassEstimate.count(&text) as usize <= MAX_TOKENS);
        }
    }

    #[test]
    fn new_statements_stay_beside_old_numbers() {
        let turns: String = (0..200)
            .map(|n| format!("Ada{n}: room {n}{n} has a code of its own\n"))
            .collect::<String>()
            + "Bob: we decided to drop the old gateway";
        let text = summarise(None, &turns, &ClassEstimate);
        assert!(
            text.ends_with("we decided to drop the old gateway"),
            "{text}"
        );
    }

    #[test]
    fn it_stays_within_its_limit_and_says_so() {
        let turns: String = (0..500)
            .map(|n| format!("Ada: this is line {n}\n"))
            .collect();
        let text = summarise(None, &turns, &ClassEstimate);
        assert!(ClassEstimate.count(&text) as usize <= MAX_TOKENS);
        assert!(text.starts_with(GONE) && text.ends_with("line 499"));
        let again = summarise(Some(&text), "Bob: more", &ClassEstimate);
        assert_eq!(again.matches(GONE).count(), 1);
    }
}
