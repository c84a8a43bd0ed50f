//! Documents of operators, which others may have written.

use vocative_core::knowledge::{CHUNK_MAX_CHARS, CHUNKS_MAX, Format, HEADING_MAX_CHARS, chunked};

use super::headed;
use super::texts::has_all_of;

pub(super) fn cut(input: &[u8]) {
    let (head, text) = headed(input);
    let text = String::from_utf8_lossy(text);
    let format = match head.first().copied().unwrap_or(0) % 4 {
        0 => Format::Markdown,
        1 => Format::Plain,
        2 => Format::Html,
        _ => Format::Pages,
    };
    let document = chunked(format, &text);
    assert_eq!(document, chunked(format, &text), "cut twice");
    assert!(document.chunks.len() <= CHUNKS_MAX, "too many pieces");
    let lines = u32::try_from(text.split('\n').count()).unwrap_or(u32::MAX);
    for chunk in &document.chunks {
        let chars = chunk.text.chars().count();
        assert!(chars <= CHUNK_MAX_CHARS, "a piece of {chars} characters");
        assert!(!chunk.text.trim().is_empty(), "an empty piece");
        assert!((1..=lines).contains(&chunk.line), "line {}", chunk.line);
        assert_eq!(chunk.page.is_some(), format == Format::Pages);
        let longest = chunk.headings.iter().map(|it| it.chars().count()).max();
        assert!(longest <= Some(HEADING_MAX_CHARS), "a long heading");
        assert!(chunk.headings.len() <= 6, "headings below a sixth");
    }
    if format == Format::Plain && !document.is_cut {
        let kept: String = document.chunks.into_iter().map(|it| it.text).collect();
        let bare = text.strip_prefix('\u{feff}').unwrap_or(&text);
        assert!(has_all_of(&kept, bare), "a cut lost words");
    }
}
