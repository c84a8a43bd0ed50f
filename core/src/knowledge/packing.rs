//! Blocks as chunks: what belongs together stays together as far as the bound allows.

use vocative_contract::work::looked_at;

use super::block::{BlockKind, Blocks, DocumentBlock};
use super::{CHUNK_MAX_CHARS, CHUNKS_MAX, Chunk, Chunked};

/// The separator between two blocks of a chunk.
const BETWEEN: &str = "\n\n";

/// The chunks of a document.
pub(super) fn packed(blocks: Blocks) -> Chunked {
    let mut packing = ChunkPacking::default();
    let first = blocks.all.iter().find(|it| is_heading(it));
    packing.chunked.title = blocks.title.or_else(|| first.map(|it| it.text.clone()));
    packing.chunked.is_cut = blocks.is_cut;
    for block in blocks.all {
        match block.kind {
            BlockKind::Heading(level) => packing.heading(level, &block),
            _ => packing.body(&block),
        }
    }
    packing.flush();
    packing.end_heading();
    packing.chunked
}

fn is_heading(block: &DocumentBlock) -> bool {
    matches!(block.kind, BlockKind::Heading(_))
}

#[derive(Default)]
struct ChunkPacking {
    chunked: Chunked,
    headings: Vec<(u8, String)>,
    /// A heading with nothing below it yet.
    bare: Option<(u8, u32, Option<u32>)>,
    text: String,
    chars: usize,
    line: u32,
    page: Option<u32>,
}

/// A part of a block that fits.
struct BlockPart {
    text: String,
    line: u32,
}

impl ChunkPacking {
    fn heading(&mut self, level: u8, block: &DocumentBlock) {
        self.flush();
        if self.bare.is_some_and(|(above, ..)| above >= level) {
            self.end_heading();
        }
        self.headings.retain(|(above, _)| *above < level);
        self.headings.push((level, block.text.clone()));
        self.bare = Some((level, block.line, block.page));
    }

    /// Makes a chunk of a heading that nothing stands under.
    fn end_heading(&mut self) {
        if let (Some((_, line, page)), Some((_, text))) = (self.bare.take(), self.headings.last()) {
            (self.line, self.page) = (line, page);
            self.text.clone_from(text);
            self.flush();
        }
    }

    fn body(&mut self, block: &DocumentBlock) {
        self.bare = None;
        if self.page != block.page {
            self.flush();
        }
        for piece in pieces(block) {
            let chars = piece.text.chars().count();
            let between = if self.text.is_empty() {
                0
            } else {
                BETWEEN.len()
            };
            if self.chars + between + chars > CHUNK_MAX_CHARS {
                self.flush();
            }
            if self.text.is_empty() {
                (self.line, self.page) = (piece.line, block.page);
            } else {
                self.text.push_str(BETWEEN);
                self.chars += BETWEEN.len();
            }
            self.text.push_str(&piece.text);
            self.chars += chars;
        }
    }

    fn flush(&mut self) {
        let text = std::mem::take(&mut self.text);
        self.chars = 0;
        if text.trim().is_empty() {
            return;
        }
        if self.chunked.chunks.len() >= CHUNKS_MAX {
            self.chunked.is_cut = true;
            return;
        }
        self.chunked.chunks.push(Chunk {
            headings: self.headings.iter().map(|(_, it)| it.clone()).collect(),
            line: self.line,
            page: self.page,
            text,
        });
    }
}

/// The parts of a block, each of which fits.
fn pieces(block: &DocumentBlock) -> Vec<BlockPart> {
    if block.text.len() <= CHUNK_MAX_CHARS || block.text.chars().count() <= CHUNK_MAX_CHARS {
        return vec![BlockPart {
            text: block.text.clone(),
            line: block.line,
        }];
    }
    let (head, tail) = match block.kind {
        BlockKind::Code => fences(&block.text),
        BlockKind::Table { has_head: true } => (first_lines(&block.text, 2), ""),
        BlockKind::Heading(_) | BlockKind::Text | BlockKind::Table { has_head: false } => ("", ""),
    };
    // A head or fence that is too long is not repeated in each part.
    let is_long = head.chars().count() + tail.chars().count() > CHUNK_MAX_CHARS / 4;
    let (head, tail) = if is_long { ("", "") } else { (head, tail) };
    let body = &block.text[head.len()..block.text.len() - tail.len()];
    let room = CHUNK_MAX_CHARS - head.chars().count() - tail.chars().count();
    let is_by_line = matches!(block.kind, BlockKind::Code | BlockKind::Table { .. });
    let mut line = block.line + lines_in(head);
    let mut pieces = Vec::new();
    for part in parts(body, room, is_by_line) {
        let first = if pieces.is_empty() { block.line } else { line };
        if part.contains(|c: char| !c.is_whitespace()) {
            let bare = part.trim_end();
            // A closing fence stands on a line of its own.
            let bare = bare.trim_start_matches('\n');
            pieces.push(BlockPart {
                text: format!("{head}{bare}{tail}"),
                line: if block.has_own_lines {
                    first
                } else {
                    block.line
                },
            });
        }
        line += lines_in(part);
    }
    pieces
}

fn lines_in(text: &str) -> u32 {
    u32::try_from(text.matches('\n').count()).unwrap_or(u32::MAX)
}

/// The first lines of a text, with the ends of them.
fn first_lines(text: &str, count: usize) -> &str {
    let ends = text.match_indices('\n');
    let end = ends.take(count).last().map_or(text.len(), |(at, _)| at + 1);
    &text[..end]
}

/// The lines around code: the mark with which it begins, and the one with which it ends.
fn fences(text: &str) -> (&str, &str) {
    let head = first_lines(text, 1);
    let last = text.rfind('\n').filter(|at| *at >= head.len());
    let tail = last.map_or("", |at| &text[at..]);
    let is_fence = |line: &str| line.trim().starts_with(['`', '~']);
    match is_fence(head) && is_fence(tail) {
        true => (head, tail),
        false => ("", ""),
    }
}

/// A text in parts of at most `max_chars`, cut at the ends of lines, sentences or words as far as there are any
/// in the second half of a part.
fn parts(text: &str, max_chars: usize, is_by_line: bool) -> Vec<&str> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some((end, _)) = rest.char_indices().nth(max_chars) {
        let window = &rest[..end];
        looked_at(window.len());
        let at = cut_at(window, is_by_line).unwrap_or(end);
        let (part, left) = rest.split_at(at);
        parts.push(part);
        rest = left;
    }
    parts.push(rest);
    parts
}

/// Where a window is cut: behind the last line, sentence or word that ends in its second half.
fn cut_at(window: &str, is_by_line: bool) -> Option<usize> {
    let is_late = |at: &usize| *at * 2 > window.len();
    let line = window.rfind('\n').map(|at| at + 1).filter(is_late);
    if is_by_line && line.is_some() {
        return line;
    }
    let mut sentence = None;
    let mut word = None;
    let mut before = None;
    for (at, c) in window.char_indices() {
        if c.is_whitespace() {
            word = Some(at + c.len_utf8());
            if matches!(before, Some('.' | '!' | '?' | ':' | '…')) {
                sentence = word;
            }
        }
        if matches!(c, '。' | '！' | '？' | '।') {
            sentence = Some(at + c.len_utf8());
        }
        before = Some(c);
    }
    let late = |at: Option<usize>| at.filter(is_late);
    late(sentence).or(line).or(late(word))
}
