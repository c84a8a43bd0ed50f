//! Text that the program itself puts before or after the model's answer, without breaking its Markdown.

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};

use vocative_contract::work::looked_at;

/// How much of an answer is read to see how it begins, in bytes.
const BEGINNING_MAX_BYTES: usize = 400;

/// An answer with a few words before it: on its first line where that is text, else in a paragraph of their own, so
/// that a heading, a list or a fence keeps its meaning.
#[must_use]
pub fn prefixed(prefix: &str, text: &str) -> String {
    if prefix.is_empty() || begins_with_words(text) {
        format!("{prefix}{text}")
    } else {
        format!("{}\n\n{text}", prefix.trim_end())
    }
}

/// Whether a text begins with a paragraph. Only two lines are parsed: the second may turn the first into a heading or a
/// table.
fn begins_with_words(text: &str) -> bool {
    let mut lines = text.trim_start_matches('\n').split_inclusive('\n');
    let beginning: String = lines.by_ref().take(2).collect();
    let mut end = beginning.len().min(BEGINNING_MAX_BYTES);
    while !beginning.is_char_boundary(end) {
        end -= 1;
    }
    let options = super::parse::OPTIONS;
    let first = Parser::new_ext(&beginning[..end], options).next();
    matches!(first, None | Some(Event::Start(Tag::Paragraph)))
}

/// An answer with a note behind it, in a paragraph of its own; code that the answer leaves open ends
/// before it.
#[must_use]
pub fn noted(text: &str, note: &str) -> String {
    let text = text.trim_end();
    match open_fence(text) {
        Some(fence) => format!("{text}\n{fence}\n\n{note}"),
        None => format!("{text}\n\n{note}"),
    }
}

/// The rest of an answer after its beginning; code that the beginning leaves open is opened again.
#[must_use]
pub fn continued(text: &str, beginning: usize) -> String {
    let rest = text[beginning..].trim_start_matches('\n');
    match open_code(text[..beginning].trim_end()) {
        Some((line, _)) => format!("{line}\n{rest}"),
        None => rest.trim_start().to_owned(),
    }
}

/// The fence that would close code left open at the end of a text. In a quotation or a list the end of the container
/// closes it.
fn open_fence(text: &str) -> Option<String> {
    open_code(text).map(|(_, fence)| fence)
}

/// The line that opens such code, and the fence that would close it.
fn open_code(text: &str) -> Option<(&str, String)> {
    let mut depth = 0_usize;
    let mut last = None;
    if !super::parse::is_parsable(text) {
        return None;
    }
    looked_at(text.len());
    for (event, range) in Parser::new_ext(text, super::parse::OPTIONS).into_offset_iter() {
        looked_at(1);
        match event {
            Event::Start(Tag::BlockQuote(_) | Tag::List(_) | Tag::Item) => depth += 1,
            Event::End(TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::Item) => depth -= 1,
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) if depth == 0 => {
                last = Some(range);
            }
            _ => {}
        }
    }
    let code = &text[last.filter(|range| range.end == text.len())?];
    let code = code.trim_start();
    let mark = code.chars().next()?;
    let length = code.chars().take_while(|c| *c == mark).count();
    let fence = mark.to_string().repeat(length);
    let is_closed = code.lines().skip(1).last().is_some_and(|line| {
        let line = line.trim();
        line.starts_with(&fence) && line.chars().all(|c| c == mark)
    });
    let line = code.lines().next().unwrap_or_default();
    (!is_closed).then_some((line, fence))
}

#[cfg(test)]
mod tests {
    use super::super::parse::parsed;
    use super::super::samples::{generated, seeds};
    use super::super::tree::{Block, StyledRun};
    use super::*;
    use vocative_contract::people::People;

    #[test]
    fn a_prefix_leaves_the_first_block_what_it_is() {
        let table = [
            ("Yes.", "Kael: Yes."),
            ("**Yes**\nand no", "Kael: **Yes**\nand no"),
            ("#hash", "Kael: #hash"),
            ("", "Kael: "),
            ("# Plan", "Kael:\n\n# Plan"),
            ("Plan\n===\n", "Kael:\n\nPlan\n===\n"),
            ("- one\n- two", "Kael:\n\n- one\n- two"),
            ("7. seven", "Kael:\n\n7. seven"),
            ("> said", "Kael:\n\n> said"),
            ("```rust\nlet x;\n```", "Kael:\n\n```rust\nlet x;\n```"),
            ("|a|b|\n|-|-|\n|1|2|", "Kael:\n\n|a|b|\n|-|-|\n|1|2|"),
        ];
        for (text, expected) in table {
            assert_eq!(prefixed("Kael: ", text), expected);
            assert_eq!(prefixed("", text), text);
        }
    }

    #[test]
    fn a_note_is_a_paragraph_whatever_is_open() {
        let table = [
            ("So", "So\n\nNote."),
            ("```rust\nlet x", "```rust\nlet x\n```\n\nNote."),
            ("a\n~~~~\n```\n~~~", "a\n~~~~\n```\n~~~\n~~~~\n\nNote."),
            ("```\nx\n```", "```\nx\n```\n\nNote."),
            ("```\nx\n```\n", "```\nx\n```\n\nNote."),
            ("```", "```\n```\n\nNote."),
            ("- a\n  ```\n  x", "- a\n  ```\n  x\n\nNote."),
            ("> ```\n> x", "> ```\n> x\n\nNote."),
        ];
        for (text, expected) in table {
            assert_eq!(noted(text, "Note."), expected);
        }
        let note = Block::Paragraph(vec![StyledRun::plain("Note.")]);
        for seed in 0..seeds() {
            let text = generated(seed);
            let blocks = parsed(&noted(&text, "Note."), &People::nobody());
            // Unclosed HTML swallows the fence; the answer is still readable.
            let is_html = text.contains('<');
            assert!(
                is_html || blocks.last() == Some(&note),
                "{text}\n{blocks:?}"
            );
        }
    }
}
