//! A summariser without a model: the first sentence of each turn. Pure and deterministic, so that
//! summaries work, and can be tested, without a key.

use crate::prompting::TokenCounter;

/// The most characters that the offline summariser keeps of each turn.
const SENTENCE_MAX_CHARS: usize = 120;
/// The longest offline summary, in tokens; its oldest lines are left out first.
const MAX_TOKENS: usize = 500;
/// The line in place of lines that were left out.
const GONE: &str = "(earlier lines left out)";

/// The previous summary's lines, and the first sentence of each line of turns.
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
    lines.extend(said.map(first_sentence));
    let mut kept = 0;
    let mut tokens = counter.count(GONE) as usize + 1;
    for line in lines.iter().rev() {
        tokens += counter.count(line) as usize + NEWLINE_TOKENS;
        if tokens > MAX_TOKENS && kept > 0 {
            break;
        }
        kept += 1;
    }
    let first = lines.len() - kept;
    let gone = (first > 0 || was_cut).then_some(GONE);
    let lines = gone
        .into_iter()
        .chain(lines[first..].iter().map(String::as_str));
    lines.collect::<Vec<_>>().join("\n")
}

/// What a line break costs, by the counter's own estimate.
const NEWLINE_TOKENS: usize = 2;

/// An entry up to the end of its first sentence, without its time.
fn first_sentence(entry: &str) -> String {
    let said = entry
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("] "))
        .map_or(entry, |(_, said)| said);
    let end = ["。", ". ", "! ", "? "]
        .iter()
        .filter_map(|mark| said.find(mark).map(|at| at + mark.trim_end().len()))
        .min()
        .unwrap_or(said.len());
    let sentence = &said[..end];
    if sentence.chars().count() <= SENTENCE_MAX_CHARS {
        return sentence.to_owned();
    }
    sentence
        .chars()
        .take(SENTENCE_MAX_CHARS)
        .collect::<String>()
        + "…"
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
