//! Text without marks: paragraphs, with empty lines between them.

use super::block::{BlockKind, Blocks, DocumentBlock};

/// The blocks of a text.
pub(super) fn blocks(text: &str) -> Blocks {
    let mut blocks = Blocks::default();
    paragraphs(text, None, &mut blocks);
    blocks
}

/// The blocks of a text in pages.
pub(super) fn pages(text: &str) -> Blocks {
    let mut blocks = Blocks::default();
    for (page, text) in (1..).zip(text.split('\u{c}')) {
        paragraphs(text, Some(page), &mut blocks);
    }
    blocks
}

fn paragraphs(text: &str, page: Option<u32>, blocks: &mut Blocks) {
    let (mut paragraph, mut start) = (String::new(), 1);
    for (line, said) in (1..).zip(text.lines()) {
        if said.trim().is_empty() {
            flush(&mut paragraph, start, page, blocks);
            continue;
        }
        if paragraph.is_empty() {
            start = line;
        } else {
            paragraph.push('\n');
        }
        paragraph.push_str(said.trim_end());
    }
    flush(&mut paragraph, start, page, blocks);
}

fn flush(paragraph: &mut String, line: u32, page: Option<u32>, blocks: &mut Blocks) {
    blocks.add(DocumentBlock {
        kind: BlockKind::Text,
        text: std::mem::take(paragraph),
        line,
        page,
        has_own_lines: true,
    });
}
