//! The part of a text in which names count: code and links are taken out.

use std::collections::HashMap;

use vocative_contract::markup::{MENTION_CLOSE, MENTION_OPEN};
use vocative_contract::work::looked_at;

/// The character in place of code or a link that was taken out. It is no letter, so that the words around it
/// stay apart, and no white space, so that the text behind it does not count as the beginning.
const TAKEN_OUT: char = '\u{FFFC}';
/// The beginnings of addresses.
const SCHEMES: [&str; 4] = ["http://", "https://", "mailto:", "tg://"];

/// The text without fenced code, inline code, and links.
#[must_use]
pub fn spoken_text(text: &str) -> String {
    without_urls(&without_code(text))
}

fn without_code(text: &str) -> String {
    let runs = tick_runs(text);
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    let mut n = 0;
    while let Some(open) = runs.get(n) {
        // Ticks without a partner are plain text.
        let Some(close) = open.partner else {
            n += 1;
            continue;
        };
        out.push_str(&text[done..open.start]);
        out.push(TAKEN_OUT);
        done = runs[close].start + runs[close].length;
        n = close + 1;
    }
    out + &text[done..]
}

/// Backticks without anything between them.
struct TickRun {
    start: usize,
    length: usize,
    /// The next run of the same length.
    partner: Option<usize>,
}

fn tick_runs(text: &str) -> Vec<TickRun> {
    looked_at(text.len());
    let mut runs: Vec<TickRun> = Vec::new();
    for (at, _) in text.match_indices('`') {
        match runs.last_mut() {
            Some(last) if last.start + last.length == at => last.length += 1,
            _ => runs.push(TickRun {
                start: at,
                length: 1,
                partner: None,
            }),
        }
    }
    let mut next_of_length = HashMap::new();
    for (n, run) in runs.iter_mut().enumerate().rev() {
        run.partner = next_of_length.insert(run.length, n);
    }
    runs
}

/// Drops every whitespace-free stretch that starts with a URL scheme, and the label of a link.
fn without_urls(text: &str) -> String {
    looked_at(text.len());
    let mut out = String::with_capacity(text.len());
    // Where in `out` brackets open.
    let mut brackets: Vec<usize> = Vec::new();
    let mut done = 0;
    for (at, _) in text.match_indices(['h', 'm', 't']) {
        if at < done || !SCHEMES.iter().any(|scheme| text[at..].starts_with(scheme)) {
            continue;
        }
        let before = &text[done..at];
        brackets.extend(
            before
                .match_indices('[')
                .map(|(found, _)| out.len() + found),
        );
        out.push_str(before);
        if let Some(label) = out.ends_with("](").then(|| brackets.pop()).flatten() {
            out.truncate(label);
        }
        out.push(TAKEN_OUT);
        let end = text[at..].find(|c: char| c.is_whitespace() || matches!(c, ')' | '>' | '"'));
        done = end.map_or(text.len(), |end| at + end);
        looked_at(done - at);
    }
    out + &text[done..]
}

/// The text behind mention tokens of the bot, white space and light punctuation at the start.
#[must_use]
pub fn without_leading_mentions<'a>(text: &'a str, is_bot: &dyn Fn(&str) -> bool) -> &'a str {
    let mut rest = text.trim_start();
    while let Some(after_open) = rest.strip_prefix(MENTION_OPEN) {
        let Some((id, after)) = after_open.split_once(MENTION_CLOSE) else {
            break;
        };
        if !is_bot(id) {
            break;
        }
        rest = after.trim_start_matches([' ', ',', ':', ';', '!', '-', '\n', '\t']);
    }
    rest
}

/// What is said behind the address at the start of a text: mentions of the bot, the command `/ask`, "hey", and one of
/// `names` where it is called by that.
#[must_use]
pub fn behind_address<'a>(
    text: &'a str,
    is_bot: &dyn Fn(&str) -> bool,
    names: &[String],
) -> &'a str {
    const PUNCTUATION: [char; 5] = [',', ':', ';', '!', '?'];
    let mut said = without_leading_mentions(text, is_bot);
    if let Some(behind) = said.strip_prefix("/ask") {
        let word = behind.find(char::is_whitespace).unwrap_or(behind.len());
        let (target, behind) = behind.split_at(word);
        if target.is_empty() || target.starts_with('@') {
            said = behind.trim_start();
        }
    }
    let hey = strip_word(said, "hey").map(|behind| behind.trim_start_matches([' ', ',', '\t']));
    let opening = hey.unwrap_or(said);
    let at = opening.strip_prefix('@');
    let bare = at.unwrap_or(opening);
    let behind = names.iter().filter_map(|name| strip_word(bare, name));
    // Of several matching names the longest is meant: it leaves the shortest rest.
    let Some(behind) = behind.min_by_key(|behind| behind.len()) else {
        return said;
    };
    let is_alone = behind.trim().is_empty() || behind.starts_with(PUNCTUATION);
    match hey.is_some() || at.is_some() || is_alone {
        true => behind.trim_start_matches(|c: char| c.is_whitespace() || PUNCTUATION.contains(&c)),
        false => said,
    }
}

/// Whether a text opens with `name`: as a whole word followed by one of `, : ; ! ?` or the end, or
/// right after `hey`.
#[must_use]
pub fn opens_with_name(text: &str, name: &str) -> bool {
    let text = text.trim_start();
    if let Some(after) = strip_word(text, name) {
        let after = after.trim_end();
        if after.is_empty() || after.starts_with([',', ':', ';', '!', '?']) {
            return true;
        }
    }
    let Some(after_hey) = strip_word(text, "hey") else {
        return false;
    };
    let after_hey = after_hey.trim_start_matches([' ', ',', '\t']);
    strip_word(after_hey.strip_prefix('@').unwrap_or(after_hey), name).is_some()
}

/// Whether `@name` stands anywhere as a whole word.
#[must_use]
pub fn calls_name(text: &str, name: &str) -> bool {
    looked_at(text.len());
    let mut before = None;
    for (at, c) in text.char_indices() {
        let is_free = before.is_none_or(|b: char| !b.is_alphanumeric() && b != '_');
        if c == '@' && is_free && strip_word(&text[at + 1..], name).is_some() {
            return true;
        }
        before = Some(c);
    }
    false
}

/// The rest of `text` behind `word`, compared without case, if the word ends there.
pub(super) fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let mut rest = text.chars();
    for expected in word.chars() {
        let found = rest.next()?;
        if !found.to_lowercase().eq(expected.to_lowercase()) {
            return None;
        }
    }
    let rest = rest.as_str();
    let continues = rest
        .chars()
        .next()
        .is_some_and(|c| c.is_alphanumeric() || c == '_');
    (!word.is_empty() && !continues).then_some(rest)
}

#[cfg(test)]
mod tests {
    use vocative_contract::markup::mention_token;

    use super::*;

    #[test]
    fn what_is_said_stands_behind_the_address() {
        let names = ["kael".to_owned(), "kael the great".to_owned()];
        let bot = mention_token("UBOT");
        let is_bot = |id: &str| id == "UBOT";
        let table = [
            (format!("{bot} hi"), "hi"),
            (format!("{bot}, kael: hi"), "hi"),
            (bot.clone(), ""),
            ("kael, hi".to_owned(), "hi"),
            ("Kael the great: hi".to_owned(), "hi"),
            ("hey @kael, hi".to_owned(), "hi"),
            ("@kael hi".to_owned(), "hi"),
            ("/ask@kael_bot kael: hi".to_owned(), "hi"),
            ("/asking hi".to_owned(), "/asking hi"),
            ("kael hi".to_owned(), "kael hi"),
            ("hi kael".to_owned(), "hi kael"),
            (format!("hi {bot}"), &format!("hi {bot}")),
        ];
        for (text, said) in table {
            assert_eq!(behind_address(&text, &is_bot, &names), said, "{text:?}");
        }
        let marks = mention_token("UBOT").repeat(100_000);
        assert_eq!(behind_address(&marks, &is_bot, &names), "");
    }

    #[test]
    fn names_count_where_they_address() {
        let table = [
            ("kael, hi", true),
            ("Kael: hi", true),
            ("kael", true),
            ("kael!", true),
            ("kael ?", false),
            ("hey kael hi", true),
            ("Hey, Kael what's up", true),
            ("hey @kael hi", true),
            ("kael hi", false),
            ("kaelin, hi", false),
            ("kael's bike", false),
            ("the kael, hi", false),
            ("heykael", false),
            ("", false),
        ];
        for (text, expected) in table {
            assert_eq!(opens_with_name(text, "kael"), expected, "{text:?}");
        }
        assert!(opens_with_name("Größe Ärger: x", "größe ärger"));
        assert!(opens_with_name(
            "客服：".replace('：', ":").as_str(),
            "客服"
        ));
    }

    #[test]
    fn at_names_count_anywhere_as_whole_words() {
        let table = [
            ("ask @kael please", true),
            ("@Kael", true),
            ("(@kael)", true),
            ("a@kael.com", false),
            ("@kaelin", false),
            ("@kael_bot", false),
            ("kael", false),
        ];
        for (text, expected) in table {
            assert_eq!(calls_name(text, "kael"), expected, "{text:?}");
        }
    }

    #[test]
    fn code_and_links_are_not_speech() {
        let table = [
            ("run `@kael` now", "run ~ now"),
            ("a ```\n@kael, x\n``` b", "a ~ b"),
            ("see https://x.y/@kael ok", "see ~ ok"),
            ("see [@kael](https://x.y/@kael)", "see ~)"),
            ("lone ` tick @kael", "lone ` tick @kael"),
            ("``a`b`` c", "~ c"),
            ("`a``b```c` d", "~ d"),
            ("``a `b` ``` `` c ```", "~ c ```"),
            ("[a [b](mailto:a@b.org) [c](tg://x)", "[a ~) ~)"),
            ("](http://x) thttp://y", "](~) t~"),
        ];
        for (text, expected) in table {
            let spoken = spoken_text(text).replace(TAKEN_OUT, "~");
            assert_eq!(spoken, expected, "{text:?}");
        }
    }

    #[test]
    fn leading_mentions_of_the_bot_are_skipped() {
        let text = format!(" {} , ops: restart", mention_token("UBOT"));
        assert_eq!(
            without_leading_mentions(&text, &|id| id == "UBOT"),
            "ops: restart"
        );
        let other = format!("{} hi", mention_token("U2"));
        assert_eq!(without_leading_mentions(&other, &|id| id == "UBOT"), other);
    }
}
