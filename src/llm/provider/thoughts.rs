//! Keeps a model's thoughts out of its answer.
//!
//! Servers that do not separate a model's reasoning send it as text: `<think>…</think>`, or without the opening tag,
//! which their template wrote. Thoughts are: a block between tags; everything before a closing tag that has no opening
//! tag; and a block that never closes. Tags in code (a fenced block, a code span) are text. The text is read piece by
//! piece; text that may still turn out to be thoughts is held back.

use std::ops::Range;

use vocative_contract::work::looked_at;

/// The tags that open and close thoughts.
const TAGS: [(&str, &str); 3] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("[think]", "[/think]"),
];

/// Marks at the beginning of a line that open a fenced block.
const FENCES: [&str; 2] = ["```", "~~~"];

/// What is expected of a model's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aloud {
    /// Thoughts are never in the text.
    Never,
    /// Thoughts may be in the text.
    Maybe,
    /// Thoughts are in the text, perhaps without an opening tag: nothing is passed on before they are over.
    Expected,
}

/// How a text ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextEnd {
    /// The model ended it.
    Whole,
    /// A limit cut it off.
    Cut,
}

/// Reads a text that grows, and separates the thoughts in it.
#[derive(Debug)]
pub(super) struct Thoughts {
    aloud: Aloud,
    read_to: usize,
    /// The text so far without thoughts.
    visible: String,
    told_to: usize,
    /// Whether text that was passed on turned out to be thoughts, and the listener does not know yet.
    is_void: bool,
    thinking: Option<Thinking>,
    /// Whether white space behind thoughts is being skipped.
    is_leaving: bool,
    line: StreamLine,
    /// Up to here, no line ends and no code span begins or ends, as far as was searched.
    searched_to: usize,
    fence: Option<ThoughtFence>,
    has_closed: bool,
    is_headless: bool,
    is_unclosed: bool,
}

/// A block of thoughts that is open.
#[derive(Clone, Copy, Debug)]
struct Thinking {
    tags: usize,
    from: usize,
    /// Whether other text stands before it on its line.
    is_inline: bool,
}

/// The line that is being read.
#[derive(Clone, Copy, Debug, Default)]
struct StreamLine {
    has_text: bool,
    backticks: usize,
}

/// A fenced block that is open.
#[derive(Clone, Copy, Debug)]
struct ThoughtFence {
    mark: &'static str,
    /// Whether it contains an opening tag.
    has_opening: bool,
}

/// What begins at a place of the text.
enum Sign {
    Opening(usize),
    Closing(usize),
    Fence(&'static str),
    /// The beginning of a tag or fence, possibly.
    Begun,
    None,
}

impl Thoughts {
    pub(super) fn new(aloud: Aloud) -> Self {
        Self {
            aloud,
            read_to: 0,
            visible: String::new(),
            told_to: 0,
            is_void: false,
            thinking: None,
            is_leaving: false,
            line: StreamLine::default(),
            searched_to: 0,
            fence: None,
            has_closed: false,
            is_headless: false,
            is_unclosed: false,
        }
    }

    /// Thoughts come in a field of their own, so the text contains none.
    pub(super) fn are_elsewhere(&mut self) {
        if !self.has_closed && self.thinking.is_none() {
            self.aloud = Aloud::Never;
        }
    }

    /// Reads what is new in `text`; `end` is set if nothing follows.
    pub(super) fn read(&mut self, text: &str, end: Option<TextEnd>) {
        if self.aloud == Aloud::Never {
            self.visible.push_str(&text[self.read_to..]);
            self.read_to = text.len();
            return;
        }
        while let Some(mark) = text[self.read_to..].chars().next() {
            if !self.step(text, mark, end.is_some()) {
                break;
            }
        }
        if let Some(end) = end
            && let Some(thinking) = self.thinking.take()
        {
            // Text about a tag may end without a closing tag; thoughts that were cut off may not.
            if thinking.is_inline && end == TextEnd::Whole {
                self.visible.push_str(&text[thinking.from..]);
            } else {
                self.is_unclosed = true;
            }
        }
    }

    /// Reads one character or tag. Returns false if more text is needed to decide what it is.
    fn step(&mut self, text: &str, mark: char, is_over: bool) -> bool {
        let rest = &text[self.read_to..];
        let sign = match mark {
            '<' | '[' | '`' | '~' => self.sign(rest, is_over),
            _ => Sign::None,
        };
        match sign {
            Sign::Begun => return false,
            Sign::Opening(tags) if self.thinking.is_none() && !self.is_quoted() => {
                self.thinking = Some(Thinking {
                    tags,
                    from: self.read_to,
                    is_inline: self.line.has_text,
                });
                self.read_to += TAGS[tags].0.len();
            }
            Sign::Opening(tags) => {
                if let Some(fence) = &mut self.fence {
                    fence.has_opening = true;
                }
                self.keep(text, TAGS[tags].0.len());
            }
            Sign::Closing(tags) => {
                let length = TAGS[tags].1.len();
                match self.closes(tags, text, self.read_to + length, is_over) {
                    None => return false,
                    Some(false) => self.keep(text, length),
                    Some(true) => self.close(length),
                }
            }
            Sign::Fence(mark) => {
                let length = mark.len();
                match self.fence {
                    Some(fence) if fence.mark == mark => self.fence = None,
                    Some(_) => {}
                    None => {
                        self.fence = Some(ThoughtFence {
                            mark,
                            has_opening: false,
                        });
                    }
                }
                self.keep(text, length);
            }
            Sign::None => self.keep(text, mark.len_utf8()),
        }
        true
    }

    /// What begins at the start of `rest`.
    fn sign(&self, rest: &str, is_over: bool) -> Sign {
        if !self.line.has_text && self.thinking.is_none() {
            for fence in FENCES {
                if rest.starts_with(fence) {
                    return Sign::Fence(fence);
                }
                if fence.starts_with(rest) && !is_over {
                    return Sign::Begun;
                }
            }
        }
        for (tags, (opening, closing)) in TAGS.iter().enumerate() {
            for (tag, sign) in [
                (*opening, Sign::Opening(tags)),
                (*closing, Sign::Closing(tags)),
            ] {
                let shared = rest.len().min(tag.len());
                let is_same =
                    rest.as_bytes()[..shared].eq_ignore_ascii_case(&tag.as_bytes()[..shared]);
                if is_same && shared == tag.len() {
                    return sign;
                }
                if is_same && !is_over {
                    return Sign::Begun;
                }
            }
        }
        Sign::None
    }

    /// Whether this place is in code, as far as is known.
    fn is_quoted(&self) -> bool {
        self.fence.is_some() || !self.line.backticks.is_multiple_of(2)
    }

    /// Whether a closing tag ends thoughts. This depends on the text behind it, from `at` on; `None` if more text is
    /// needed.
    fn closes(&mut self, tags: usize, text: &str, at: usize, is_over: bool) -> Option<bool> {
        if let Some(thinking) = self.thinking
            && thinking.tags != tags
        {
            return Some(false);
        }
        if self.thinking.is_none() && self.fence.is_some_and(|fence| fence.has_opening) {
            return Some(false);
        }
        // A code span ends on its line; a lone backtick in a thought opens no span.
        if self.line.backticks.is_multiple_of(2) {
            return Some(true);
        }
        // Text that was searched for an earlier tag is not searched again.
        let from = self.searched_to.max(at);
        let found = text[from..].find(['`', '\n']);
        self.searched_to = found.map_or(text.len(), |found| from + found);
        looked_at(self.searched_to - from);
        match found {
            Some(_) => Some(text.as_bytes()[self.searched_to] == b'\n'),
            None if is_over => Some(true),
            None => None,
        }
    }

    fn close(&mut self, length: usize) {
        self.read_to += length;
        if self.thinking.take().is_none() {
            self.visible.clear();
            self.is_void |= self.told_to > 0;
            self.told_to = 0;
            self.is_headless = true;
        }
        self.has_closed = true;
        self.is_leaving = true;
        self.fence = None;
        self.line = StreamLine::default();
    }

    /// Moves on by `length` bytes, which belong to the text or to the current thoughts.
    fn keep(&mut self, text: &str, length: usize) {
        looked_at(length);
        let kept = &text[self.read_to..self.read_to + length];
        self.read_to += length;
        for mark in kept.chars() {
            match mark {
                '\n' => self.line = StreamLine::default(),
                '`' => {
                    self.line.backticks += 1;
                    self.line.has_text = true;
                }
                mark => self.line.has_text |= !mark.is_whitespace(),
            }
        }
        let is_blank = kept.trim().is_empty();
        if self.thinking.is_some() || self.is_leaving && is_blank {
            return;
        }
        self.is_leaving = false;
        self.visible.push_str(kept);
    }

    /// The text that can be passed on next, and whether all text passed on before is void.
    pub(super) fn news(&mut self, is_over: bool) -> (bool, Range<usize>) {
        let is_void = std::mem::take(&mut self.is_void);
        let may_tell = self.aloud != Aloud::Expected || self.has_closed || is_over;
        let from = self.told_to;
        if may_tell {
            self.told_to = self.visible.len();
        }
        (is_void, from..self.told_to)
    }

    /// The text without thoughts, as far as it was read.
    pub(super) fn visible(&self) -> &str {
        &self.visible
    }

    /// Whether thoughts came without an opening tag: this model's next ones will, too.
    pub(super) fn is_headless(&self) -> bool {
        self.is_headless
    }

    /// Whether the text ended within a thought.
    pub(super) fn is_unclosed(&self) -> bool {
        self.is_unclosed
    }
}

/// A text without its thoughts, read in pieces of `piece_bytes` bytes.
pub(in crate::llm) fn visible_of(text: &str, piece_bytes: usize) -> String {
    let mut thoughts = Thoughts::new(Aloud::Maybe);
    let mut end = 0;
    while end < text.len() {
        end = (end + piece_bytes.max(1)).min(text.len());
        while !text.is_char_boundary(end) {
            end += 1;
        }
        thoughts.read(&text[..end], None);
    }
    thoughts.read(text, Some(TextEnd::Whole));
    thoughts.visible().to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What is shown of a text that comes in these pieces: the text that was passed on and is not void, the whole text,
    /// and whether it ended within a thought.
    fn read(aloud: Aloud, pieces: &[&str], end: TextEnd) -> (String, String, bool) {
        let (mut text, mut told) = (String::new(), String::new());
        let mut thoughts = Thoughts::new(aloud);
        let pieces = pieces.iter().map(|piece| (*piece, None));
        for (piece, end) in pieces.chain([("", Some(end))]) {
            text.push_str(piece);
            thoughts.read(&text, end);
            let (is_void, range) = thoughts.news(end.is_some());
            if is_void {
                told.clear();
            }
            told.push_str(&thoughts.visible()[range]);
        }
        let visible = thoughts.visible().to_owned();
        (told, visible, thoughts.is_unclosed())
    }

    fn shown(pieces: &[&str]) -> String {
        let (told, visible, is_unclosed) = read(Aloud::Maybe, pieces, TextEnd::Whole);
        assert_eq!(told, visible, "{pieces:?}");
        assert!(!is_unclosed, "{pieces:?}");
        visible
    }

    #[test]
    fn thoughts_are_left_out_and_what_only_looks_like_them_is_not() {
        let cases: [(&[&str], &str); 20] = [
            (&["Hello ", "there"], "Hello there"),
            (&["<think>hmm</think>\n", "\nYes."], "Yes."),
            (&["<th", "ink>hm", "m</th", "ink>", "  ", "Yes."], "Yes."),
            (&["Well. <think>a</think> b"], "Well. b"),
            (&["<THINK>a</Think> b"], "b"),
            (&["[THINK]a[/THINK]b"], "b"),
            (&["<thinking>a <think> b</thinking>c"], "c"),
            (&["1 <", " 2 <t", "r>"], "1 < 2 <tr>"),
            (&["<think>ä</think>x\n<think>y</think>z"], "x\nz"),
            (&["ends with <thi"], "ends with <thi"),
            // Without an opening tag.
            (
                &["Okay, they ask", " why.\n</thi", "nk>\n\nBecause."],
                "Because.",
            ),
            (&["a ` b\n```\nc</think>Yes."], "Yes."),
            (&["<think>I write </think> here</think>Yes."], "Yes."),
            // In code.
            (
                &["Put it in `<think>`", " and `</th", "ink>`, always."],
                "Put it in `<think>` and `</think>`, always.",
            ),
            (
                &["```xml\n<think>\nhm\n</think>\n```\nSo."],
                "```xml\n<think>\nhm\n</think>\n```\nSo.",
            ),
            (&["~~~\n<think>\n~~~\nSo."], "~~~\n<think>\n~~~\nSo."),
            (&["<think>`</think>` is the end</think>Yes."], "Yes."),
            (
                &["``", "`\n<think>\n``", "`\nSo."],
                "```\n<think>\n```\nSo.",
            ),
            // Text about a tag.
            (&["The tag <think> opens it."], "The tag <think> opens it."),
            (&["`<think>` and\n<think>a</think>\nb"], "`<think>` and\nb"),
        ];
        for (pieces, expected) in cases {
            assert_eq!(shown(pieces), expected, "{pieces:?}");
        }
    }

    #[test]
    fn a_thought_that_never_ends_is_no_text() {
        let table = [
            ("<think>never closed", TextEnd::Whole, ""),
            ("<think>never closed", TextEnd::Cut, ""),
            ("Yes.\n<think>never closed </thi", TextEnd::Whole, "Yes.\n"),
            ("Yes. <think>never closed", TextEnd::Cut, "Yes. "),
        ];
        for (text, end, expected) in table {
            let (told, visible, is_unclosed) = read(Aloud::Maybe, &[text], end);
            assert_eq!((told.as_str(), visible.as_str()), (expected, expected));
            assert!(is_unclosed, "{text}");
        }
    }

    #[test]
    fn text_is_not_held_back_unless_thoughts_are_expected() {
        let told = |aloud, text: &str| {
            let mut thoughts = Thoughts::new(aloud);
            thoughts.read(text, None);
            let (_, range) = thoughts.news(false);
            thoughts.visible()[range].to_owned()
        };
        assert_eq!(told(Aloud::Maybe, "Hello <"), "Hello ");
        assert_eq!(told(Aloud::Maybe, "Hello `</think>"), "Hello `");
        assert_eq!(told(Aloud::Expected, "Hello"), "");
        assert_eq!(told(Aloud::Expected, "Hm</think>Hello"), "Hello");
        assert_eq!(told(Aloud::Expected, "<think>Hm</think>Hello"), "Hello");
        assert_eq!(told(Aloud::Never, "<think>"), "<think>");
        let mut elsewhere = Thoughts::new(Aloud::Expected);
        elsewhere.are_elsewhere();
        elsewhere.read("<think>", None);
        assert_eq!(elsewhere.news(false), (false, 0..7));
    }

    #[test]
    fn what_was_told_of_a_thought_is_void() {
        let mut thoughts = Thoughts::new(Aloud::Maybe);
        thoughts.read("They ask", None);
        assert_eq!(thoughts.news(false), (false, 0..8));
        thoughts.read("They ask why.</think>Because.", None);
        assert_eq!(thoughts.news(false), (true, 0..8));
        assert_eq!(thoughts.visible(), "Because.");
        assert!(thoughts.is_headless());
    }

    proptest! {
        #[test]
        fn pieces_show_what_the_whole_shows(
            pieces in proptest::collection::vec("(<think>|</think>|[/think]|```|`|~|<|th|ink>|/| |\n|ä|a){0,4}", 0..12),
            is_cut in any::<bool>(),
        ) {
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            let end = if is_cut { TextEnd::Cut } else { TextEnd::Whole };
            let whole = pieces.concat();
            for aloud in [Aloud::Never, Aloud::Maybe, Aloud::Expected] {
                let by_and_by = read(aloud, &pieces, end);
                prop_assert_eq!(&by_and_by, &read(aloud, &[&whole], end));
                prop_assert_eq!(&by_and_by.0, &by_and_by.1);
            }
        }
    }
}
