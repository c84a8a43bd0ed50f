//! Slack's marks (`*bold*`, `_italic_`, `~strike~`, code) as CommonMark's.
//!
//! Only for texts without blocks that say it exactly: of apps, of webhooks, of `/me`. A mark counts
//! where Slack shows one: it touches what it marks, nothing that is part of a word stands outside of
//! it, and it ends on its line. Everything else stays as it was written.

use std::ops::Range;

/// A fence of preformatted text.
const FENCE: &str = "```";

/// The text with CommonMark's marks. What lies in `groups` (links, mentions) is never a mark.
pub(super) fn commonmark(text: &str, groups: &[Range<usize>]) -> String {
    let mut marks = Marks {
        text,
        groups,
        out: String::with_capacity(text.len()),
    };
    marks.blocks();
    marks.out
}

struct Marks<'a> {
    text: &'a str,
    groups: &'a [Range<usize>],
    out: String,
}

impl Marks<'_> {
    /// Preformatted blocks, and what stands between them.
    fn blocks(&mut self) {
        let mut at = 0;
        while let Some(open) = self.find(FENCE, at..self.text.len()) {
            let inside = open + FENCE.len();
            let Some(close) = self.find(FENCE, inside..self.text.len()) else {
                break;
            };
            let code = self.text[inside..close].trim_matches('\n');
            if code.trim().is_empty() {
                break;
            }
            self.spans(at..open);
            if !self.out.is_empty() && !self.out.ends_with('\n') {
                self.out.push('\n');
            }
            self.out.push_str(&format!("{FENCE}\n{code}\n{FENCE}"));
            at = close + FENCE.len();
            if at < self.text.len() && !self.text[at..].starts_with('\n') {
                self.out.push('\n');
            }
        }
        self.spans(at..self.text.len());
    }

    /// Marked spans, and what stands between them.
    fn spans(&mut self, range: Range<usize>) {
        let mut at = range.start;
        for (offset, mark) in self.text[range.clone()].char_indices() {
            let open = range.start + offset;
            let Some(wanted) = commonmark_of(mark).filter(|_| open >= at) else {
                continue;
            };
            let Some(close) = self.closing(mark, open, range.clone()) else {
                continue;
            };
            self.out.push_str(&self.text[at..open]);
            self.out.push_str(wanted);
            if mark == '`' {
                self.out.push_str(&self.text[open + 1..close]);
            } else {
                self.spans(open + 1..close);
            }
            self.out.push_str(wanted);
            at = close + 1;
        }
        self.out.push_str(&self.text[at..range.end]);
    }

    /// Where the span ends that a mark opens; `None` if it opens none.
    fn closing(&self, mark: char, open: usize, range: Range<usize>) -> Option<usize> {
        let before = self.text[range.start..open].chars().next_back();
        if self.is_in_group(open) || before.is_some_and(|c| is_word(c) || c == mark) {
            return None;
        }
        let inside = &self.text[open + 1..range.end];
        let touches = |c: Option<char>| c.is_some_and(|c| !c.is_whitespace() && c != mark);
        if !touches(inside.chars().next()) {
            return None;
        }
        let line = &inside[..inside.find('\n').unwrap_or(inside.len())];
        let mut candidates = line.match_indices(mark).map(|(at, _)| at);
        let close = candidates.find(|at| {
            let after = inside[at + 1..].chars().next();
            let is_end = touches(inside[..*at].chars().next_back())
                && !after.is_some_and(|c| is_word(c) || c == mark);
            is_end && !self.is_in_group(open + 1 + at)
        })?;
        Some(open + 1 + close)
    }

    fn find(&self, what: &str, range: Range<usize>) -> Option<usize> {
        let found = self.text[range.clone()].match_indices(what);
        let mut found = found.map(|(at, _)| range.start + at);
        found.find(|at| !self.is_in_group(*at))
    }

    fn is_in_group(&self, at: usize) -> bool {
        let next = self.groups.partition_point(|group| group.end <= at);
        self.groups
            .get(next)
            .is_some_and(|group| group.contains(&at))
    }
}

fn commonmark_of(mark: char) -> Option<&'static str> {
    match mark {
        '*' => Some("**"),
        '_' => Some("_"),
        '~' => Some("~~"),
        '`' => Some("`"),
        _ => None,
    }
}

/// Whether a mark beside it is part of a word.
fn is_word(c: char) -> bool {
    c.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn marks_become_commonmark_where_slack_shows_them() {
        let table = [
            ("*bold*", "**bold**"),
            (
                "so *bold*, _it_ and ~gone~!",
                "so **bold**, _it_ and ~~gone~~!",
            ),
            ("*_both_*", "**_both_**"),
            ("(*a b*)", "(**a b**)"),
            ("2*3*4 and snake_case_name", "2*3*4 and snake_case_name"),
            ("* no * and *no *", "* no * and *no *"),
            ("*one\ntwo*", "*one\ntwo*"),
            ("** and **** and __", "** and **** and __"),
            ("**twice**", "**twice**"),
            ("~/bin and ~/lib", "~/bin and ~/lib"),
            ("run `a *b* _c_` now", "run `a *b* _c_` now"),
            ("*unclosed", "*unclosed"),
            ("*a* *b*", "**a** **b**"),
            ("*ü*", "**ü**"),
            ("```let x;```", "```\nlet x;\n```"),
            (
                "see ```\na *b*\nc\n``` there",
                "see \n```\na *b*\nc\n```\n there",
            ),
            ("``` *a* unclosed", "``` **a** unclosed"),
            ("``````", "``````"),
        ];
        for (text, expected) in table {
            assert_eq!(commonmark(text, &[]), expected, "{text}");
        }
        assert_eq!(commonmark("a _b_ *c*", &[2..5, 6..9]), "a _b_ *c*");
    }

    proptest! {
        #[test]
        fn only_marks_are_added(text in "[*_~`a \n.]{0,40}|\\PC{0,30}") {
            let words = |text: &str| text.replace(['*', '~', '`', '\n'], "");
            let got = commonmark(&text, &[]);
            prop_assert_eq!(words(&got), words(&text));
        }
    }
}
