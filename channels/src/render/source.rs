//! Prepares a text for the parser where people mean something that CommonMark reads otherwise.
//!
//! - Formulas (`\(…\)`, `\[…\]`, `$$…$$`, `$…$`) become code: their backslashes and marks are no escapes and no
//!   emphasis.
//! - What stands between `||` and `||` is covered (a tag of HTML stands for each), unless it is in a table.
//! - Marks inside a bare address (`https://e.org/__init__.py`) are part of it, and so are those around
//!   names of programs (`__init__`).
//! - `**注意：**内容` is bold: CommonMark wants a space beside a mark that touches punctuation, which
//!   many scripts don't write. A [`SEAM`] between the two makes the mark count.
//! - Definitions to which nothing refers (`[1]: https://e.org`) are text, not nothing.
//!
//! Code, HTML and addresses in angle brackets stay as they are.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use pulldown_cmark::{Event, LinkType, Parser, Tag};

use vocative_contract::work::looked_at;

use super::link;
use super::parse::{OPTIONS, is_parsable};

/// Neither a letter nor punctuation nor white space to the parser, and nothing to people: interlinear
/// annotation, like the marks of mentions. Taken out again by [`without_seams`].
pub(super) const SEAM: char = '\u{FFFA}';
/// The mark before and behind covered text (a spoiler).
pub(super) const COVER: &str = "||";
/// The HTML tags that are written in place of the marks.
const COVER_TAGS: (&str, &str) = ("<Spoiler>", "</Spoiler>");
/// Longer text is not covered.
const COVERED_MAX_BYTES: usize = 4_000;
/// The opening and closing marks of formulas.
const MARKS_OF_FORMULAS: [(&str, &str); 3] = [("\\(", "\\)"), ("\\[", "\\]"), ("$$", "$$")];
/// Indexes into [`MARKS_OF_FORMULAS`]: a formula within a line.
const INLINE: usize = 0;
const DOLLARS: usize = 2;
/// Python's names between double underscores, which are never meant to be bold.
const PYTHON_NAMES: [&str; 20] = [
    "all", "bases", "call", "class", "dict", "doc", "enter", "eq", "exit", "file", "hash", "init",
    "iter", "len", "main", "name", "new", "repr", "slots", "str",
];
/// A longer stretch between the marks is not taken for a formula.
const FORMULA_MAX_BYTES: usize = 4_000;
/// As [`FORMULA_MAX_BYTES`], for single dollars, which must stand on one line.
const DOLLARS_MAX_BYTES: usize = 300;
/// What closes a sentence or a quotation and is no opening mark.
const ASCII_CLOSING: &str = ".,:;!?\"'";
/// Punctuation of other scripts that opens something.
const OPENING: &str = "（「『【《〈〔［｛“‘„«‹¿¡";

/// How far the closing mark of a formula was searched for, and whether it was found.
#[derive(Clone, Copy, Default)]
struct FormulaEnd {
    until: usize,
    is_close: bool,
}

/// The results of searches so far, so that no text is searched twice.
#[derive(Default)]
struct AllSeen {
    /// One for each pair of marks.
    formulas: [FormulaEnd; MARKS_OF_FORMULAS.len()],
    cover: FormulaEnd,
    /// Where the covered text ends.
    uncovers: Option<usize>,
}

/// What is written instead of a piece of the text.
struct SourceEdit {
    range: Range<usize>,
    with: String,
}

/// The text with the edits that make the parser read it as it was meant.
pub(super) fn prepared(text: &str) -> Cow<'_, str> {
    let text = without_seams(text);
    if !is_parsable(&text) {
        return text;
    }
    let unused = unused_definitions(&text);
    // Most texts need nothing, and finding out is cheap.
    if unused.is_empty() && edits(&text, &[]).is_empty() {
        return text;
    }
    let (kept, tables) = kept(&text);
    let mut edits = edits(&text, &kept);
    edits.retain(|edit| !is_cover(&edit.with) || !is_in(&tables, edit.range.start));
    edits.extend(unused.into_iter().map(|at| SourceEdit {
        range: at..at,
        with: "\\".to_owned(),
    }));
    edits.sort_by_key(|edit| edit.range.start);
    let mut out = String::with_capacity(text.len() + 4 * edits.len());
    let mut done = 0;
    for SourceEdit { range, with } in edits {
        // A definition may begin inside a formula that was just replaced.
        if range.start < done {
            continue;
        }
        out.push_str(&text[done..range.start]);
        out.push_str(&with);
        done = range.end;
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

/// A text without the marks that [`prepared`] put into it.
pub(super) fn without_seams(text: &str) -> Cow<'_, str> {
    if text.contains(SEAM) {
        Cow::Owned(text.replace(SEAM, ""))
    } else {
        Cow::Borrowed(text)
    }
}

/// Where the link definitions begin that nothing refers to: most likely a list of sources.
fn unused_definitions(text: &str) -> Vec<usize> {
    if !text.contains("]:") {
        return Vec::new();
    }
    looked_at(text.len());
    let mut parser = Parser::new_ext(text, OPTIONS);
    let mut referred = HashSet::new();
    for event in parser.by_ref() {
        looked_at(1);
        if let Event::Start(Tag::Link { id, .. } | Tag::Image { id, .. }) = event {
            referred.insert(folded(&id));
        }
    }
    let definitions = parser.reference_definitions().iter();
    let unused = definitions.filter(|(label, definition)| {
        // `[//]: # (so)` is a way to write a comment.
        let is_comment = matches!(definition.dest.as_ref(), "" | "#");
        !is_comment && !referred.contains(&folded(label))
    });
    let starts =
        unused.filter_map(|(_, it)| Some(it.span.start + text[it.span.clone()].find('[')?));
    starts.collect()
}

/// A label in the form in which labels are compared.
fn folded(label: &str) -> String {
    let words: Vec<&str> = label.split_whitespace().collect();
    words.join(" ").to_lowercase()
}

/// Whether a place is in one of the ranges, which are in order.
fn is_in(ranges: &[Range<usize>], at: usize) -> bool {
    let next = ranges.partition_point(|range| range.end <= at);
    ranges.get(next).is_some_and(|range| range.contains(&at))
}

/// The ranges that stay as they are (code, HTML, addresses), and the tables, both in order.
fn kept(text: &str) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
    let mut tables: Vec<Range<usize>> = Vec::new();
    let mut kept: Vec<Range<usize>> = Vec::new();
    looked_at(text.len());
    for (event, range) in Parser::new_ext(text, OPTIONS).into_offset_iter() {
        looked_at(1);
        if matches!(event, Event::Start(Tag::Table(_))) {
            tables.push(range.clone());
        }
        let is_kept = match event {
            Event::Code(_)
            | Event::Html(_)
            | Event::InlineHtml(_)
            | Event::Start(Tag::CodeBlock(_) | Tag::HtmlBlock) => true,
            Event::Start(Tag::Link { link_type, .. }) => {
                matches!(link_type, LinkType::Autolink | LinkType::Email)
            }
            _ => false,
        };
        if is_kept && kept.last().is_none_or(|last| last.end <= range.start) {
            kept.push(range);
        }
    }
    (kept, tables)
}

/// The edits of a text, in order, outside of what stays as it is.
fn edits(text: &str, kept: &[Range<usize>]) -> Vec<SourceEdit> {
    looked_at(text.len());
    let mut edits = Vec::new();
    let mut kept = kept.iter().peekable();
    let mut seen = AllSeen::default();
    let mut at = 0;
    while let Some(found) = text[at..].find(['\\', '$', 'h', '*', '~', '_', '|']) {
        at += found;
        while kept.next_if(|range| range.end <= at).is_some() {}
        if let Some(range) = kept.peek().filter(|range| range.start <= at) {
            at = range.end;
            continue;
        }
        let end = kept.peek().map_or(text.len(), |range| range.start);
        let (edit, next) = edit_at(text, at, end, &mut seen);
        edits.extend(edit);
        at = next;
    }
    edits
}

/// The edit at one place, if any, and where to look on. Nothing reaches over `end`.
fn edit_at(text: &str, at: usize, end: usize, seen: &mut AllSeen) -> (Option<SourceEdit>, usize) {
    let rest = &text[at..end];
    let first = rest.as_bytes()[0];
    match first {
        b'\\' | b'$' => {
            if let Some(edit) = formula(text, at, end, seen) {
                let next = edit.range.end;
                return (Some(edit), next);
            }
            if let Some(edit) = dollars(text, at, end) {
                let next = edit.range.end;
                return (Some(edit), next);
            }
            // An escaped character begins nothing.
            let escaped = rest.chars().nth(1).filter(|_| first == b'\\');
            (None, at + 1 + escaped.map_or(0, char::len_utf8))
        }
        b'h' => {
            let seen = link::seen(text, at, end);
            match seen.address {
                Some(len) => (address(&rest[..len], at), at + len),
                None => (None, at + seen.scanned.max(1)),
            }
        }
        b'|' => {
            let len = rest.bytes().take_while(|byte| *byte == b'|').count();
            (cover(text, at, len, seen), at + len)
        }
        b'_' => {
            let len = rest.bytes().take_while(|byte| *byte == b'_').count();
            match name_len(text, at, end) {
                Some(len) => (address(&rest[..len], at), at + len),
                None => (None, at + len),
            }
        }
        mark => {
            let len = rest.bytes().take_while(|byte| *byte == mark).count();
            let seam = seam(text, at..at + len).filter(|_| len > 1 || mark == b'*');
            let edit = seam.map(|place| SourceEdit {
                range: place..place,
                with: SEAM.to_string(),
            });
            (edit, at + len)
        }
    }
}

/// The tag in place of a mark that begins or ends covered text. As in chats that know spoilers, the marks must touch
/// what they cover and must not stand inside a word.
fn cover(text: &str, at: usize, len: usize, seen: &mut AllSeen) -> Option<SourceEdit> {
    let tag = |with: &str| SourceEdit {
        range: at..at + len,
        with: with.to_owned(),
    };
    if seen.uncovers == Some(at) {
        seen.uncovers = None;
        return Some(tag(COVER_TAGS.1));
    }
    let inside = at + len;
    let is_word = |c: char| c.is_alphanumeric() || c == '\\';
    let opens = len == COVER.len()
        && seen.uncovers.is_none_or(|end| end < at)
        && !text[..at].ends_with(is_word)
        && !text[inside..].starts_with(char::is_whitespace);
    if !opens {
        return None;
    }
    if inside > seen.cover.until {
        let window = &text[inside..];
        let window = &window[..floor(window, COVERED_MAX_BYTES)];
        let mut marks = window.match_indices(COVER).map(|(found, _)| found);
        let end = marks.find(|found| uncovers(text, inside + found));
        let window = &window[..end.unwrap_or(window.len())];
        looked_at(window.len());
        let blank = window.find("\n\n");
        seen.cover = FormulaEnd {
            until: inside + blank.unwrap_or(window.len()),
            is_close: end.is_some() && blank.is_none(),
        };
    }
    (seen.cover.is_close && seen.cover.until > inside).then(|| {
        seen.uncovers = Some(seen.cover.until);
        tag(COVER_TAGS.0)
    })
}

/// Whether the marks at a place may end covered text.
fn uncovers(text: &str, at: usize) -> bool {
    let behind = &text[at + COVER.len()..];
    let is_inside = |c: char| c.is_whitespace() || matches!(c, '|' | '\\');
    !text[..at].ends_with(is_inside)
        && !behind.starts_with(|c: char| c.is_alphanumeric() || c == '|')
}

/// Whether HTML is a tag that stands for a cover.
pub(super) fn is_cover(html: &str) -> bool {
    html == COVER_TAGS.0 || html == COVER_TAGS.1
}

/// The length of a name between two underscores each, as programs have them: one of Python's, or a part
/// of a path.
fn name_len(text: &str, at: usize, end: usize) -> Option<usize> {
    let inside = text[at..end].strip_prefix("__")?;
    let len = inside.find(|c: char| !c.is_ascii_lowercase())?;
    looked_at(len);
    let name = &inside[..len];
    let after = inside[len..].strip_prefix("__")?;
    let before = text[..at].chars().next_back();
    let in_path = before.is_some_and(|c| matches!(c, '/' | '\\' | '.'))
        || after.starts_with(['/', '\\'])
        || after
            .strip_prefix('.')
            .is_some_and(|it| it.starts_with(|c: char| c.is_ascii_alphanumeric()));
    let is_name = !name.is_empty() && (in_path || PYTHON_NAMES.contains(&name));
    let is_free = !before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    (is_name && is_free).then_some(len + 4)
}

/// An edit that escapes the marks in an address or a name, so that they stay text.
fn address(url: &str, at: usize) -> Option<SourceEdit> {
    const MARKS: [char; 3] = ['*', '_', '~'];
    url.contains(MARKS).then(|| {
        let mut with = String::with_capacity(url.len() + 8);
        for c in url.chars() {
            if MARKS.contains(&c) {
                with.push('\\');
            }
            with.push(c);
        }
        SourceEdit {
            range: at..at + url.len(),
            with,
        }
    })
}

/// Where a seam must be put so that a run of marks between a letter and punctuation counts: as a closing mark behind
/// punctuation that closes, as an opening mark behind a letter of a script that writes no spaces.
fn seam(text: &str, run: Range<usize>) -> Option<usize> {
    let before = text[..run.start].chars().next_back()?;
    let after = text[run.end..].chars().next()?;
    let is_punctuation = |c: char| !c.is_alphanumeric() && !c.is_whitespace() && c != SEAM;
    let closes = if before.is_ascii() {
        // A single star between the two may be a product.
        run.len() > 1 && ASCII_CLOSING.contains(before) && after.is_alphabetic()
    } else {
        is_punctuation(before) && !OPENING.contains(before) && after.is_alphanumeric()
    };
    if closes {
        return Some(run.start);
    }
    let is_opening = "\"'([{".contains(after) || OPENING.contains(after);
    let opens = !before.is_ascii() && before.is_alphanumeric() && is_opening;
    opens.then_some(run.end)
}

/// The formula that begins at a place, as code: a block where its marks stand on lines of their own.
fn formula(text: &str, at: usize, end: usize, seen: &mut AllSeen) -> Option<SourceEdit> {
    let rest = &text[at..end];
    let kind = MARKS_OF_FORMULAS
        .iter()
        .position(|(open, _)| rest.starts_with(open))?;
    let (open, close) = MARKS_OF_FORMULAS[kind];
    let inside = at + open.len();
    if inside > seen.formulas[kind].until {
        let window = &text[inside..end];
        let window = &window[..floor(window, FORMULA_MAX_BYTES)];
        let found = window.find(close);
        let window = &window[..found.unwrap_or(window.len())];
        looked_at(window.len());
        // A formula does not reach over a blank line.
        let blank = window.find("\n\n");
        seen.formulas[kind] = FormulaEnd {
            until: inside + blank.unwrap_or(window.len()),
            is_close: found.is_some() && blank.is_none(),
        };
    }
    let content = text.get(inside..seen.formulas[kind].until.min(end))?;
    if !seen.formulas[kind].is_close {
        return None;
    }
    looked_at(content.len());
    let range = at..inside + content.len() + close.len();
    if kind != INLINE
        && let Some(with) = block_formula(text, &range, content)
    {
        return Some(SourceEdit { range, with });
    }
    let is_math = match kind {
        INLINE => content.contains(['\\', '^', '_', '=', '+', '<', '>']) || content.len() <= 3,
        DOLLARS => is_even(content) && content.contains(['\\', '^', '=']),
        _ => content.contains(['\\', '^', '_', '=']),
    };
    let content = content.trim();
    let ticks = content.split(|c| c != '`').map(str::len).max()? + 1;
    let ticks = "`".repeat(ticks);
    let space = if content.contains('`') { " " } else { "" };
    (is_math && !content.is_empty()).then(|| SourceEdit {
        range,
        with: format!("{ticks}{space}{content}{space}{ticks}"),
    })
}

/// The formula between two single dollars that begins at a place, as code. Prices and shell variables are none: no
/// white space stands inside the dollars, no letter or number outside, and it contains something that only a formula
/// does. *Source:* Pandoc's manual, `tex_math_dollars`.
fn dollars(text: &str, at: usize, end: usize) -> Option<SourceEdit> {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '$' | '\\');
    let inside = text[at..end].strip_prefix('$')?;
    let window = &inside[..floor(inside, DOLLARS_MAX_BYTES)];
    let length = window.find(['$', '\n']);
    looked_at(length.unwrap_or(window.len()));
    let content = &window[..length?];
    let after = inside[content.len()..].strip_prefix('$')?;
    let is_apart = !text[..at].ends_with(is_word) && !after.starts_with(is_word);
    let is_tight =
        !content.starts_with(char::is_whitespace) && !content.ends_with(char::is_whitespace);
    let is_letter = content.len() == 1 && content.starts_with(char::is_alphabetic);
    let is_math = is_letter || content.contains(['\\', '^', '_', '=', '<', '>', '+']);
    (is_apart && is_tight && is_math && !content.contains('`')).then(|| SourceEdit {
        range: at..at + content.len() + 2,
        with: format!("`{content}`"),
    })
}

/// Whether white space stands at both ends or at none: `$$` is also the number of a process.
fn is_even(content: &str) -> bool {
    content.starts_with(char::is_whitespace) == content.ends_with(char::is_whitespace)
}

/// A formula between lines that hold its marks alone: those become fences where they stand.
fn block_formula(text: &str, range: &Range<usize>, content: &str) -> Option<String> {
    let (first, lines) = content.split_once('\n')?;
    let (lines, last) = lines.rsplit_once('\n')?;
    let line = text[..range.start].rsplit('\n').next()?;
    let after = text[range.end..].split('\n').next()?;
    looked_at(line.len() + after.len());
    let is_alone = is_blank(first) && is_blank(after) && is_prefix(line) && is_prefix(last);
    let is_code = is_alone && !lines.contains("```") && !is_prefix(lines);
    is_code.then(|| format!("```latex\n{lines}\n{last}```"))
}

/// Whether a line holds only the prefix of a quotation's or an item's lines.
fn is_prefix(line: &str) -> bool {
    line.chars().all(|c| matches!(c, '>' | ' ' | '\t' | '\n'))
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

/// The last character boundary up to `at`.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        prepared(text).replace(SEAM, "+")
    }

    #[test]
    fn formulas_are_code() {
        let table = [
            (r"so \(x_1 * y\), and \(n\)", "so `x_1 * y`, and `n`"),
            (r"a \[ \frac{a}{b} \] b", r"a `\frac{a}{b}` b"),
            ("is $$E = mc^2$$.", "is `E = mc^2`."),
            (
                "\\[\nx = 1 \\\\\ny\n\\]\n",
                "```latex\nx = 1 \\\\\ny\n```\n",
            ),
            ("- a\n  $$\n  x\n  $$", "- a\n  ```latex\n  x\n  ```"),
            ("> \\[\n> x\n> \\]", "> ```latex\n> x\n> ```"),
            (r"\(a`b=c\)", "`` a`b=c ``"),
            (
                r"let $x_1 * y$ and $n$, \(m\)",
                "let `x_1 * y` and `n`, `m`",
            ),
            (
                "so ||he did|| (||a `x||y` b||).",
                "so <Spoiler>he did</Spoiler> (<Spoiler>a `x||y` b</Spoiler>).",
            ),
            (r"($\alpha = 2$)", r"(`\alpha = 2`)"),
        ];
        for (text, expected) in table {
            assert_eq!(shown(text), expected, "{text}");
        }
        for text in [
            r"\[1\] and \(see above\) and \[x\](y)",
            r"\\(x_1\\)",
            r"`\(x_1\)` and ```` \[x=1\] ````",
            "```\n\\(x_1\\)\n$$\ny\n$$\n```",
            "echo $$ _and_ kill $$ and a=$$ b=$$",
            "costs $5 and $10",
            "$5=$10 and US$x_1$ and $x_1$2",
            "$HOME/a_b:$PATH and $A = $B",
            "$ x = 1 $ and $x\n=$",
            r"\$x_1$ and $ab$",
            "a || b and c||d||e and || f ||",
            "`||a||` and ||||",
            "||a\n\nb||",
            "| a || b |\n|---|---|---|\n||x|| y|",
            "\\(x =\n\n1\\)",
            r"\(x_1",
            r"\(\)$$$$",
        ] {
            assert_eq!(shown(text), text);
        }
    }

    #[test]
    fn marks_in_an_address_are_none() {
        let table = [
            (
                "https://e.org/__init__.py and (https://e.org/a*b*c)",
                r"https://e.org/\_\_init\_\_.py and (https://e.org/a\*b\*c)",
            ),
            (
                "[**x**](https://e.org/_a_)**b** **https://e.org**",
                r"[**x**](https://e.org/\_a_)**b** **https://e.org**",
            ),
            ("https://e.org/a_b。**c**", r"https://e.org/a\_b。+**c**"),
        ];
        for (text, expected) in table {
            assert_eq!(shown(text), expected, "{text}");
        }
        for text in [
            "`https://e.org/_a_`",
            "<https://e.org/_a_>",
            "<a href=\"https://e.org/_a_\">",
            "xhttps://e.org/_a_",
            "http://localhost/_a_",
        ] {
            assert_eq!(shown(text), text);
        }
    }

    #[test]
    fn names_of_programs_are_not_bold() {
        for (text, expected) in [
            (
                "the __init__ of __init__.py",
                r"the \_\_init\_\_ of \_\_init\_\_.py",
            ),
            ("lib/__pycache__/x", r"lib/\_\_pycache\_\_/x"),
        ] {
            assert_eq!(shown(text), expected);
        }
        for text in [
            "__bold__ and __more words__.",
            "a__init__b",
            "`__init__`",
            "__",
            "___x___",
        ] {
            assert_eq!(shown(text), text);
        }
    }

    #[test]
    fn marks_beside_punctuation_count_without_a_space() {
        let table = [
            ("**注意：**内容", "**注意：+**内容"),
            ("这是**「重要」**的", "这是**+「重要」+**的"),
            ("~~（古い）~~新", "~~（古い）+~~新"),
            ("**Note:**text", "**Note:+**text"),
        ];
        for (text, expected) in table {
            assert_eq!(shown(text), expected, "{text}");
        }
        for text in [
            "f(x)*g(x)*h",
            "2**(3)**4 and x.*y",
            "**bold** *it*",
            "`**注意：**内容`",
            "（**重点**）和",
            "价格3~5天，6~8天",
        ] {
            assert_eq!(shown(text), text);
        }
    }

    #[test]
    fn definitions_that_nothing_refers_to_are_text() {
        let table = [
            (
                "[1]: https://e.org\n[2]: https://e.org/__x__ 'T'\n\n[a][B b]\n\n[b  B]: /u",
                "\\[1]: https://e.org\n\\[2]: https://e.org/\\_\\_x__ 'T'\n\n[a][B b]\n\n[b  B]: /u",
            ),
            ("> [1]: /u\n\nx", "> \\[1]: /u\n\nx"),
            ("# \\( a=\n[1]: /u \"\\)\"", "# `a=\n[1]: /u \"`\""),
        ];
        for (text, expected) in table {
            assert_eq!(shown(text), expected);
        }
        for text in ["[//]: # (no)\n\nx", "`[1]: /u`", "a[1]: b"] {
            assert_eq!(shown(text), text);
        }
    }

    #[test]
    fn nothing_to_prepare_costs_no_copy_and_seams_are_no_input() {
        assert!(matches!(prepared("**a** b"), Cow::Borrowed("**a** b")));
        assert_eq!(prepared("a\u{FFFA}b"), "ab");
    }
}
