//! What becomes of a document: pieces that a search finds and a person can be pointed to.
//!
//! Pure, and linear in the text: nothing here keeps a stack or goes back. Reading order: this page, `block` (a text as
//! headings, paragraphs, code and tables), `markdown`, `html` and `plain` (who make them), `packing` (blocks as
//! chunks).

mod block;
mod html;
mod markdown;
mod packing;
mod plain;

use vocative_contract::work::looked_at;

/// Changes whenever a document would give other chunks: documents that were cut by an older version are cut anew.
pub const CHUNKS_VERSION: u32 = 1;
/// The longest text of a chunk, in characters: about 400 tokens of English.
pub const CHUNK_MAX_CHARS: usize = 1_600;
/// The most chunks of one document; what is behind them is left out, and told.
pub const CHUNKS_MAX: usize = 2_000;
/// The longest heading and title that are kept, in characters.
pub const HEADING_MAX_CHARS: usize = 200;

/// How a document is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Markdown.
    Markdown,
    /// Text without marks.
    Plain,
    /// HTML.
    Html,
    /// Text in pages, a form feed between two, as programs write it that read PDF.
    Pages,
}

/// A piece of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// The headings that it stands under, the outermost first.
    pub headings: Vec<String>,
    /// The line of the document where it begins, from 1; in `Format::Pages`, of its page.
    pub line: u32,
    /// Its page, from 1, where the document has pages.
    pub page: Option<u32>,
    /// What it says, at most [`CHUNK_MAX_CHARS`] characters.
    pub text: String,
}

/// A document in pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunked {
    /// The title that the document gives itself, if any.
    pub title: Option<String>,
    /// Its pieces, in order.
    pub chunks: Vec<Chunk>,
    /// Whether it was longer than what is kept.
    pub is_cut: bool,
}

/// A document in pieces.
#[must_use]
pub fn chunked(format: Format, text: &str) -> Chunked {
    looked_at(text.len());
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    packing::packed(match format {
        Format::Markdown => markdown::blocks(text),
        Format::Plain => plain::blocks(text),
        Format::Html => html::blocks(text),
        Format::Pages => plain::pages(text),
    })
}

#[cfg(test)]
mod tests;
