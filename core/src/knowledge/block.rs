//! A document as a row of blocks.

use super::{CHUNK_MAX_CHARS, CHUNKS_MAX, HEADING_MAX_CHARS};

/// The most blocks of a document that are kept. Further ones would give no chunk that is kept: a chunk holds at most as
/// many blocks as it has characters, and far fewer in documents that say something.
const BLOCKS_MAX: usize = CHUNKS_MAX * 64;
/// The longest text that is kept of a document, in bytes.
const TEXT_MAX_BYTES: usize = CHUNKS_MAX * CHUNK_MAX_CHARS * 4;

/// What a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockKind {
    /// A heading of that level, 1 the outermost.
    Heading(u8),
    /// A paragraph, a list, a quote.
    Text,
    /// Lines between fences.
    Code,
    /// Rows; the first two lines are its head where `has_head`.
    Table {
        /// Whether the first two lines are a head.
        has_head: bool,
    },
}

/// A part of a document that belongs together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DocumentBlock {
    pub(super) kind: BlockKind,
    pub(super) text: String,
    pub(super) line: u32,
    pub(super) page: Option<u32>,
    /// Whether the lines of the text are lines of the document.
    pub(super) has_own_lines: bool,
}

/// The blocks of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Blocks {
    pub(super) title: Option<String>,
    pub(super) all: Vec<DocumentBlock>,
    pub(super) is_cut: bool,
    bytes: usize,
}

impl Blocks {
    /// Adds a block, unless it says nothing or there are too many.
    pub(super) fn add(&mut self, block: DocumentBlock) {
        if !block.text.contains(|c: char| !c.is_whitespace()) {
            return;
        }
        if self.is_full() {
            self.is_cut = true;
            return;
        }
        self.bytes += block.text.len();
        self.all.push(block);
    }

    /// Whether there is room for no more.
    pub(super) fn is_full(&self) -> bool {
        self.all.len() >= BLOCKS_MAX || self.bytes >= TEXT_MAX_BYTES
    }
}

/// A heading or title in one line, cut.
pub(super) fn one_line(text: &str) -> String {
    let mut line = String::new();
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    for word in words.filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > 4 * HEADING_MAX_CHARS {
            break;
        }
    }
    line.chars().take(HEADING_MAX_CHARS).collect()
}
