//! A text while it is being written, as people see it grow.
//!
//! This is only a preview: whatever becomes of it, the finished text is posted through the outbox. Nothing here is
//! stored, looked for or retried.

use crate::outbound::{Part, Target};
use crate::work::looked_at;

/// The longest beginning of a text that is shown while it is written, in characters: every platform
/// takes it, rendered and in an edit.
pub const LIVE_MAX_CHARS: usize = 3_000;
/// The marker behind a text of which more will come.
const MORE: &str = " …";
/// A last word that may still grow is left out until it is whole, unless it is longer than this, in characters.
const WORD_MAX_CHARS: usize = 40;

/// A state of a text that is being written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivePost {
    /// Where.
    pub target: Target,
    /// In which form.
    pub form: LiveForm,
    /// The text so far, rendered.
    pub part: Part,
}

/// How a text that is being written shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiveForm {
    /// In a post of ours, which is edited.
    Post {
        /// The platform's id of it.
        message_id: String,
    },
    /// In a preview that disappears by itself.
    Preview {
        /// Never 0; all states of one text have the same id.
        id: i64,
    },
    /// At the end of a streamed post of ours; the part is empty. After any error other than
    /// [`ChannelError::RetryAfter`](crate::error::ChannelError::RetryAfter), nothing more is to be added. Where a
    /// person has stopped the stream, the error is that the chat refuses: then nothing more is to be shown at all.
    Stream {
        /// The platform's id of it.
        message_id: String,
        /// The new words of the text, CommonMark.
        added: String,
    },
}

/// What is shown of an unfinished text: its beginning, up to a whole word, and a sign that more comes. Marks that are
/// open there are closed, and a link whose address is incomplete is left out, so that no marks show. `None` while there
/// is nothing to see.
#[must_use]
pub fn so_far(text: &str) -> Option<String> {
    let mended = mended(whole_words(text)?);
    (!mended.is_empty()).then(|| format!("{mended}{MORE}"))
}

/// A beginning with the marks closed that its last line leaves open.
fn mended(text: &str) -> String {
    let fences = text
        .lines()
        .filter(|line| line.trim_start().starts_with("```"));
    if fences.count() % 2 == 1 {
        return text.to_owned();
    }
    let line_start = text.rfind('\n').map_or(0, |at| at + 1);
    let (before, line) = text.split_at(line_start);
    let (mut open, link) = left_open(line);
    let mut line = line[..link.unwrap_or(line.len())].trim_end();
    // A mark at the end of the text may still become something else.
    while let Some((at, _)) = open.pop_if(|(at, mark)| *at + mark.len() >= line.len()) {
        line = line[..at.min(line.len())].trim_end();
    }
    let mut mended = format!("{before}{line}");
    mended.truncate(mended.trim_end().len());
    let closing = open.iter().rev().map(|(_, mark)| *mark);
    mended.extend(closing);
    mended
}

/// The marks that a line leaves open with their places, and where a link begins whose address is incomplete.
fn left_open(line: &str) -> (Vec<(usize, &str)>, Option<usize>) {
    let mut open: Vec<(usize, &str)> = Vec::new();
    let (mut label, mut link) = (None, None);
    let mut at = 0;
    while let Some(c) = line[at..].chars().next() {
        let run = match c {
            '`' | '*' | '~' => line[at..].len() - line[at..].trim_start_matches(c).len(),
            c => c.len_utf8(),
        };
        looked_at(run);
        let mark = &line[at..at + run];
        let code = open.last().filter(|(_, mark)| mark.starts_with('`'));
        let is_closing = open.last().is_some_and(|(_, it)| *it == mark);
        let opens = !line[at + run..].starts_with(char::is_whitespace);
        at += match c {
            '`' | '*' | '~' if is_closing => {
                open.pop();
                run
            }
            _ if code.is_some() => run,
            '`' => {
                open.push((at, mark));
                run
            }
            '*' | '~' if run == 2 && opens => {
                open.push((at, mark));
                run
            }
            '*' | '~' => run,
            '\\' => 1 + line[at + 1..].chars().next().map_or(0, char::len_utf8),
            '[' => {
                label = Some(at);
                1
            }
            ']' if line[at..].starts_with("](") => {
                link = label;
                2
            }
            ')' => {
                link = None;
                1
            }
            c => c.len_utf8(),
        };
    }
    (open, link)
}

/// The beginning of an unfinished text, up to a whole word. The result for a longer version of the text begins with
/// this one, as long as nothing is put before it.
#[must_use]
pub fn whole_words(text: &str) -> Option<&str> {
    let text = text.trim_start();
    looked_at(text.len().min(LIVE_MAX_CHARS));
    let end = text
        .char_indices()
        .nth(LIVE_MAX_CHARS)
        .map_or(text.len(), |(at, _)| at);
    let beginning = &text[..end];
    let whole = match beginning.rfind(char::is_whitespace) {
        Some(at) if beginning[at..].chars().count() <= WORD_MAX_CHARS => &beginning[..at],
        _ => beginning,
    };
    let whole = whole.trim_end();
    (!whole.is_empty()).then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_ends_with_a_whole_word_and_says_that_more_comes() {
        let table = [
            ("", None),
            (" \n", None),
            ("Tom", Some("Tom …")),
            ("Tomorrow at ni", Some("Tomorrow at …")),
            ("Tomorrow at nine. ", Some("Tomorrow at nine. …")),
            ("Tomorrow\n\n* at", Some("Tomorrow\n\n* …")),
        ];
        for (text, expected) in table {
            assert_eq!(so_far(text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn nobody_sees_marks_that_are_not_closed_yet() {
        let table = [
            (
                "It is **very important that x",
                "It is **very important that** …",
            ),
            (
                "- **One**: a\n- **Two words x",
                "- **One**: a\n- **Two words** …",
            ),
            ("Run `cargo test --all x", "Run `cargo test --all` …"),
            ("Run `a ** b` and **c x", "Run `a ** b` and **c** …"),
            ("~~old **and new x", "~~old **and new**~~ …"),
            ("2 ** 3 and x", "2 ** 3 and …"),
            ("so \\`is it x", "so \\`is it …"),
            ("see [the docs](https://e.org/a x", "see …"),
            ("see **[the docs](https://e.org/a \"so x", "see …"),
            ("and so ** x", "and so …"),
            (
                "see [it](https://e.org/a) and x",
                "see [it](https://e.org/a) and …",
            ),
            ("```sh\necho **a b x", "```sh\necho **a b …"),
            (
                "```sh\nls\n```\nand **so on x",
                "```sh\nls\n```\nand **so on** …",
            ),
        ];
        for (text, expected) in table {
            assert_eq!(so_far(text).as_deref(), Some(expected), "{text:?}");
        }
        assert_eq!(so_far("[the docs](https://e.org/a x"), None);
    }

    #[test]
    fn what_is_shown_of_a_longer_text_begins_with_what_was_shown() {
        let text = "  Tomorrow\n\nat `nine` \u{e9}t\u{e9} and so on. ".repeat(200);
        let mut before = "";
        for (end, _) in text.char_indices() {
            let shown = whole_words(&text[..end]).unwrap_or_default();
            assert!(shown.starts_with(before), "{before:?} then {shown:?}");
            before = shown;
        }
        assert!(before.chars().count() >= 2_900);
    }

    #[test]
    fn what_is_shown_is_bounded_also_without_a_space() {
        for text in ["word ".repeat(100_000), "é".repeat(500_000)] {
            let shown = so_far(&text).unwrap_or_default();
            let count = shown.chars().count();
            assert!((2_900..=LIVE_MAX_CHARS + 2).contains(&count), "{count}");
        }
    }
}
