//! Keeps what a model thinks aloud in its text from being shown.
//!
//! Local models write their reasoning into the answer, as `<think>…</think>`. An answer that is not
//! streamed has its first such block taken out by the client library; here the same is done piece by
//! piece. A block that is never closed is text.

use std::ops::Range;

const OPENING: &str = "<think>";
const CLOSING: &str = "</think>";

/// How far a text that grows has been read.
#[derive(Debug)]
pub(super) struct Thoughts {
    phase: Phase,
    /// Everything before it was shown or is hidden.
    shown_to: usize,
    hidden: Option<Range<usize>>,
}

#[derive(Debug)]
enum Phase {
    /// No block began so far.
    Looking,
    /// Within a block; its end is looked for from there on.
    Thinking { from: usize, searched_to: usize },
    /// Behind a block, in the white space that goes with it.
    Leaving,
    /// All the rest is text.
    Through,
}

impl Thoughts {
    /// `has_thoughts` is false where thoughts are never part of the text.
    pub(super) fn new(has_thoughts: bool) -> Self {
        Self {
            phase: match has_thoughts {
                true => Phase::Looking,
                false => Phase::Through,
            },
            shown_to: 0,
            hidden: None,
        }
    }

    /// The model thinks elsewhere, so what looks like thoughts from here on is text.
    pub(super) fn are_elsewhere(&mut self) {
        if matches!(self.phase, Phase::Looking) {
            self.phase = Phase::Through;
        }
    }

    /// The next piece of `text` that can be shown; empty when there is none for now. Nothing more
    /// comes when it `is_over`.
    pub(super) fn next(&mut self, text: &str, is_over: bool) -> Range<usize> {
        loop {
            let rest = &text[self.shown_to..];
            match self.phase {
                Phase::Looking => {
                    if let Some(at) = rest.find(OPENING) {
                        let from = self.shown_to + at;
                        self.phase = Phase::Thinking {
                            from,
                            searched_to: from + OPENING.len(),
                        };
                        if at > 0 {
                            return self.show_to(from);
                        }
                        continue;
                    }
                    let held = if is_over { 0 } else { begun(rest) };
                    return self.show_to(text.len() - held);
                }
                Phase::Thinking { from, searched_to } => {
                    if let Some(at) = text[searched_to..].find(CLOSING) {
                        self.shown_to = searched_to + at + CLOSING.len();
                        self.hidden = Some(from..self.shown_to);
                        self.phase = Phase::Leaving;
                        continue;
                    }
                    if is_over {
                        self.phase = Phase::Through;
                        continue;
                    }
                    // The mark may have begun at the very end.
                    let mut back = text.len().saturating_sub(CLOSING.len()).max(searched_to);
                    while !text.is_char_boundary(back) {
                        back -= 1;
                    }
                    self.phase = Phase::Thinking {
                        from,
                        searched_to: back,
                    };
                    return self.shown_to..self.shown_to;
                }
                Phase::Leaving => {
                    self.shown_to = text.len() - rest.trim_start().len();
                    if let Some(hidden) = &mut self.hidden {
                        hidden.end = self.shown_to;
                    }
                    if self.shown_to < text.len() {
                        self.phase = Phase::Through;
                        continue;
                    }
                    return self.shown_to..self.shown_to;
                }
                Phase::Through => return self.show_to(text.len()),
            }
        }
    }

    /// What of a whole `text` is no thought.
    pub(super) fn shown(&self, text: &str) -> String {
        match &self.hidden {
            Some(hidden) => [&text[..hidden.start], &text[hidden.end..]].concat(),
            None => text.to_owned(),
        }
    }

    fn show_to(&mut self, to: usize) -> Range<usize> {
        let from = self.shown_to;
        self.shown_to = to.max(from);
        from..self.shown_to
    }
}

/// How many bytes at the end of `text` may be the beginning of a block's mark.
fn begun(text: &str) -> usize {
    (1..OPENING.len())
        .rev()
        .find(|length| text.ends_with(&OPENING[..*length]))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The library's rule for a text that is there as a whole.
    fn whole(text: &str) -> String {
        let Some((before, rest)) = text.split_once(OPENING) else {
            return text.to_owned();
        };
        match rest.split_once(CLOSING) {
            Some((_, after)) => format!("{before}{}", after.trim_start()),
            None => text.to_owned(),
        }
    }

    /// What is shown of a text that comes in these pieces: by and by, and in the end.
    fn shown(pieces: &[&str]) -> (String, String) {
        let (mut text, mut by_and_by) = (String::new(), String::new());
        let mut thoughts = Thoughts::new(true);
        let pieces = pieces.iter().map(|piece| (*piece, false));
        for (piece, is_over) in pieces.chain([("", true)]) {
            text.push_str(piece);
            loop {
                let range = thoughts.next(&text, is_over);
                if range.is_empty() {
                    break;
                }
                by_and_by.push_str(&text[range]);
            }
        }
        (by_and_by, thoughts.shown(&text))
    }

    #[test]
    fn thoughts_are_left_out_and_what_only_looks_like_them_is_not() {
        let cases: [(&[&str], &str); 8] = [
            (&["Hello ", "there"], "Hello there"),
            (&["<think>hmm</think>\n", "\nYes."], "Yes."),
            (&["<th", "ink>hm", "m</th", "ink>", "  ", "Yes."], "Yes."),
            (&["Well. <think>a</think> b"], "Well. b"),
            (&["1 <", " 2 <t", "r>"], "1 < 2 <tr>"),
            (&["<think>never closed"], "<think>never closed"),
            (&["<think>ä</think>x<think>y</think>"], "x<think>y</think>"),
            (&["ends with <thi"], "ends with <thi"),
        ];
        for (pieces, expected) in cases {
            let expected = (expected.to_owned(), expected.to_owned());
            assert_eq!(shown(pieces), expected, "{pieces:?}");
        }
    }

    #[test]
    fn text_is_not_held_back() {
        let mut thoughts = Thoughts::new(true);
        assert_eq!(thoughts.next("Hello", false), 0..5);
        assert_eq!(thoughts.next("Hello <", false), 5..6);
        let mut elsewhere = Thoughts::new(true);
        elsewhere.are_elsewhere();
        assert_eq!(elsewhere.next("<think>", false), 0..7);
    }

    proptest! {
        #[test]
        fn pieces_show_what_the_whole_shows(
            pieces in proptest::collection::vec("(<think>|</think>|<|th|ink>|/| |\n|ä|a){0,4}", 0..12)
        ) {
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            let expected = whole(&pieces.concat());
            prop_assert_eq!(shown(&pieces), (expected.clone(), expected));
        }
    }
}
