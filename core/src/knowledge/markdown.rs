//! Markdown, line by line: headings, fences, tables and paragraphs. Marks inside a line stay as they are.
//!
//! *Source:* CommonMark 0.31 for headings (both kinds) and fences, GitHub's extension for tables. Deeper structure
//! (lists in quotes) decides nothing about where a text may be cut, so it is not read.

use super::block::{BlockKind, Blocks, DocumentBlock, one_line};

/// The longest table of settings before a document, in lines.
const FRONT_LINES_MAX: usize = 200;

/// The blocks of a document.
pub(super) fn blocks(text: &str) -> Blocks {
    let mut reader = MarkdownReader::default();
    let front = front_matter(text, &mut reader.blocks);
    for (line, said) in (1..).zip(text.lines()).skip(front) {
        reader.read(line, said);
    }
    reader.flush();
    reader.blocks
}

#[derive(Default)]
struct MarkdownReader {
    blocks: Blocks,
    /// The lines of the block that is being read.
    text: String,
    start: u32,
    lines: u32,
    /// Whether the second line makes a table of it.
    is_table: bool,
    fence: Option<CodeFence>,
}

/// The mark that begins and ends a block of code.
struct CodeFence {
    mark: char,
    length: usize,
}

impl MarkdownReader {
    fn read(&mut self, line: u32, said: &str) {
        let bare = said.trim();
        if let Some(fence) = &self.fence {
            let ends = fence.is_ended_by(bare);
            self.push(line, said.trim_end());
            if ends {
                self.flush();
            }
            return;
        }
        if bare.is_empty() {
            self.flush();
        } else if let Some(fence) = CodeFence::begun_by(bare) {
            self.flush();
            self.push(line, bare);
            self.fence = Some(fence);
        } else if let Some((level, title)) = heading(bare) {
            self.flush();
            self.heading(line, level, title);
        } else if let Some(level) = underline(bare).filter(|_| self.lines == 1) {
            let (title, start) = (std::mem::take(&mut self.text), self.start);
            self.heading(start, level, &title);
            self.lines = 0;
        } else if is_break(bare) {
            self.flush();
        } else {
            self.push(line, said.trim_end());
            self.is_table |= self.lines == 2 && is_table_line(bare) && self.text.contains('|');
        }
    }

    fn push(&mut self, line: u32, said: &str) {
        if self.lines == 0 {
            self.start = line;
        } else {
            self.text.push('\n');
        }
        self.lines += 1;
        self.text.push_str(said);
    }

    fn heading(&mut self, line: u32, level: u8, title: &str) {
        self.add(BlockKind::Heading(level), one_line(title), line);
    }

    fn flush(&mut self) {
        let kind = match (self.fence.take(), self.is_table) {
            (Some(_), _) => BlockKind::Code,
            (None, true) => BlockKind::Table { has_head: true },
            (None, false) => BlockKind::Text,
        };
        let text = std::mem::take(&mut self.text);
        self.add(kind, text, self.start);
        (self.lines, self.is_table) = (0, false);
    }

    fn add(&mut self, kind: BlockKind, text: String, line: u32) {
        self.blocks.add(DocumentBlock {
            kind,
            text,
            line,
            page: None,
            has_own_lines: true,
        });
    }
}

impl CodeFence {
    fn begun_by(line: &str) -> Option<Self> {
        let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let length = line.chars().take_while(|c| *c == mark).count();
        // A line like ```this``` is text.
        let is_inline = mark == '`' && line[length..].contains('`');
        (length >= 3 && !is_inline).then_some(Self { mark, length })
    }

    fn is_ended_by(&self, line: &str) -> bool {
        line.len() >= self.length && line.chars().all(|c| c == self.mark)
    }
}

/// A heading that begins with `#` signs.
fn heading(line: &str) -> Option<(u8, &str)> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let rest = &line[level..];
    let is_heading = (1..=6).contains(&level) && (rest.is_empty() || rest.starts_with([' ', '\t']));
    let title = rest.trim();
    let bare = title.trim_end_matches('#');
    // `#` signs at its end close it, unless they are part of its last word: C#.
    let title = match bare.is_empty() || bare.ends_with([' ', '\t']) {
        true => bare.trim_end(),
        false => title,
    };
    is_heading.then_some((u8::try_from(level).unwrap_or(6), title))
}

/// A line that makes a heading of the one above it.
fn underline(line: &str) -> Option<u8> {
    let is_of = |mark: char| line.chars().all(|c| c == mark);
    match line {
        _ if is_of('=') => Some(1),
        _ if is_of('-') && line.len() >= 2 => Some(2),
        _ => None,
    }
}

/// Whether a line is a thematic break, as `---`.
fn is_break(line: &str) -> bool {
    let mut marks = line.chars().filter(|c| !c.is_whitespace());
    let Some(first) = marks.next().filter(|c| matches!(c, '-' | '*' | '_')) else {
        return false;
    };
    let mut count = 1;
    marks.all(|c| {
        count += 1;
        c == first
    }) && count >= 3
}

/// The line between a table's head and its rows.
fn is_table_line(line: &str) -> bool {
    line.contains('-')
        && line
            .chars()
            .all(|c| matches!(c, '|' | '-' | ':' | ' ' | '\t'))
}

/// How many lines of settings stand before a document (front matter). Takes the document's title from them.
fn front_matter(text: &str, blocks: &mut Blocks) -> usize {
    let mut lines = text.lines();
    if lines.next().map(str::trim_end) != Some("---") {
        return 0;
    }
    let mut title = None;
    for (count, line) in (2..=FRONT_LINES_MAX).zip(lines) {
        if matches!(line.trim_end(), "---" | "...") {
            blocks.title = title;
            return count;
        }
        if let Some(named) = line.strip_prefix("title:") {
            let named = one_line(named.trim().trim_matches(['"', '\'']));
            title = Some(named).filter(|it| !it.is_empty());
        }
    }
    0
}
