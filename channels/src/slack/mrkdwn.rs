//! Slack's marks (`*bold*`, `_italic_`, `~strike~`, code) as CommonMark's.
//!
//! Only for texts without blocks, which would state the styles exactly: of apps, of webhooks, of `/me`. A mark counts
//! where Slack shows one: it touches what it marks, nothing that is part of a word stands outside of it, and it ends on
//! its line. Everything else stays as it was written.

use std::ops::Range;

use vocative_contract::work::looked_at;

/// A fence of preformatted text.
const FENCE: &str = "```";

/// The text with CommonMark's marks. What lies in `groups` (links, mentions) is never a mark.
pub(super) fn commonmark(text: &str, groups: &[Range<usize>]) -> String {
    let mut marks = MrkdwnMarks {
        text,
        groups,
        closers: closers(text, groups),
        passed: [0; MARKS.len()],
        line_end: 0,
        out: String::with_capacity(text.len()),
    };
    marks.blocks();
    marks.out
}

/// The marks, and CommonMark's for each.
const MARKS: [(char, &str); 4] = [('*', "**"), ('_', "_"), ('~', "~~"), ('`', "`")];

/// Byte positions in a text.
type TextPlaces = Vec<usize>;

/// Where each kind of mark may end a span: behind what it marks, and not inside a word.
fn closers(text: &str, groups: &[Range<usize>]) -> [TextPlaces; MARKS.len()] {
    looked_at(text.len());
    let mut closers: [TextPlaces; MARKS.len()] = Default::default();
    let mut before = None;
    let mut letters = text.char_indices().peekable();
    while let Some((at, mark)) = letters.next() {
        if let Some(kind) = kind_of(mark) {
            let after = letters.peek().map(|(_, c)| *c);
            let is_end = touches(before, mark) && !after.is_some_and(|c| is_word(c) || c == mark);
            if is_end && !is_in(groups, at) {
                closers[kind].push(at);
            }
        }
        before = Some(mark);
    }
    closers
}

struct MrkdwnMarks<'a> {
    text: &'a str,
    groups: &'a [Range<usize>],
    closers: [TextPlaces; MARKS.len()],
    /// How many closers of each kind have been passed. Spans open from left to right.
    passed: [usize; MARKS.len()],
    /// Where the line ends in which a span was opened last.
    line_end: usize,
    out: String,
}

impl MrkdwnMarks<'_> {
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

    /// Marked spans, and what stands between them. One of a kind is never inside another of that kind,
    /// which ends at the first mark that can end it.
    fn spans(&mut self, range: Range<usize>) {
        let text = self.text;
        let mut at = range.start;
        while let Some(found) = text[at..range.end].find(|c| kind_of(c).is_some()) {
            let open = at + found;
            looked_at(found + 1);
            let kind = text[open..].chars().next().and_then(kind_of);
            let close = kind.and_then(|kind| Some((kind, self.closing(kind, open, &range)?)));
            let Some((kind, close)) = close else {
                self.out.push_str(&text[at..=open]);
                at = open + 1;
                continue;
            };
            let (mark, wanted) = MARKS[kind];
            self.out.push_str(&text[at..open]);
            self.out.push_str(wanted);
            if mark == '`' {
                self.out.push_str(&text[open + 1..close]);
            } else {
                self.spans(open + 1..close);
            }
            self.out.push_str(wanted);
            at = close + 1;
        }
        looked_at(range.end - at);
        self.out.push_str(&text[at..range.end]);
    }

    /// Where the span ends that a mark opens; `None` if it opens none.
    fn closing(&mut self, kind: usize, open: usize, range: &Range<usize>) -> Option<usize> {
        let (mark, _) = MARKS[kind];
        let before = self.text[range.start..open].chars().next_back();
        if before.is_some_and(|c| is_word(c) || c == mark)
            || !touches(self.text[open + 1..range.end].chars().next(), mark)
            || is_in(self.groups, open)
        {
            return None;
        }
        let ahead = &self.closers[kind][self.passed[kind]..];
        let behind = ahead.iter().take_while(|close| **close <= open).count();
        looked_at(behind);
        self.passed[kind] += behind;
        if self.line_end <= open {
            let rest = &self.text[open..];
            let length = rest.find('\n').unwrap_or(rest.len());
            looked_at(length);
            self.line_end = open + length;
        }
        let close = *self.closers[kind].get(self.passed[kind])?;
        (close < range.end.min(self.line_end)).then_some(close)
    }

    fn find(&self, what: &str, range: Range<usize>) -> Option<usize> {
        let found = self.text[range.clone()].match_indices(what);
        let mut found = found.map(|(at, _)| range.start + at);
        let found = found.find(|at| !is_in(self.groups, *at));
        looked_at(found.unwrap_or(range.end) - range.start);
        found
    }
}

/// Whether a place lies in one of the groups, which are in order.
fn is_in(groups: &[Range<usize>], at: usize) -> bool {
    let next = groups.partition_point(|group| group.end <= at);
    groups.get(next).is_some_and(|group| group.contains(&at))
}

fn kind_of(mark: char) -> Option<usize> {
    MARKS.iter().position(|(it, _)| *it == mark)
}

/// Whether the character beside a mark, on its inner side, lets it count.
fn touches(inside: Option<char>, mark: char) -> bool {
    inside.is_some_and(|c| !c.is_whitespace() && c != mark)
}

/// Whether a character makes the mark beside it part of a word.
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
        let once = "`a `b *c _d".repeat(10_000);
        assert_eq!(commonmark(&once, &[]), once);
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
