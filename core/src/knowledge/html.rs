//! HTML as text: one pass over the tags, which keeps nothing open.
//!
//! It is written by anybody, so nothing in it is trusted to end: what is not closed goes to the end of the document, as
//! in browsers. Scripts, styles and navigation are left out. No address in it is fetched.
//!
//! *Source:* WHATWG HTML, "Tokenization", for where tags, comments and raw texts end.

use vocative_contract::work::looked_at;

use super::block::{BlockKind, Blocks, DocumentBlock, one_line};

/// Elements whose content is no text of the document: skipped up to the next tag that closes one of that name.
const SKIPPED: [&str; 10] = [
    "iframe", "math", "nav", "noembed", "noframes", "object", "script", "style", "svg", "template",
];
/// Elements that don't end a paragraph.
const INLINE: [&str; 36] = [
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em",
    "font", "i", "img", "ins", "kbd", "label", "mark", "q", "rp", "rt", "ruby", "s", "samp",
    "small", "span", "strike", "strong", "sub", "sup", "time", "u", "var", "wbr",
];
/// The longest name of a character, in bytes.
const ENTITY_MAX_BYTES: usize = 10;
/// Characters by their names; others stay as they are written.
const ENTITIES: [(&str, char); 46] = [
    ("Agrave", 'À'),
    ("Auml", 'Ä'),
    ("Eacute", 'É'),
    ("Ouml", 'Ö'),
    ("Uuml", 'Ü'),
    ("aacute", 'á'),
    ("acirc", 'â'),
    ("aelig", 'æ'),
    ("agrave", 'à'),
    ("amp", '&'),
    ("apos", '\''),
    ("aring", 'å'),
    ("auml", 'ä'),
    ("bull", '•'),
    ("ccedil", 'ç'),
    ("copy", '©'),
    ("deg", '°'),
    ("eacute", 'é'),
    ("ecirc", 'ê'),
    ("egrave", 'è'),
    ("euml", 'ë'),
    ("euro", '€'),
    ("gt", '>'),
    ("hellip", '…'),
    ("iacute", 'í'),
    ("icirc", 'î'),
    ("laquo", '«'),
    ("ldquo", '“'),
    ("lsquo", '‘'),
    ("lt", '<'),
    ("mdash", '—'),
    ("middot", '·'),
    ("nbsp", ' '),
    ("ndash", '–'),
    ("ntilde", 'ñ'),
    ("oacute", 'ó'),
    ("ocirc", 'ô'),
    ("oslash", 'ø'),
    ("ouml", 'ö'),
    ("quot", '"'),
    ("raquo", '»'),
    ("rdquo", '”'),
    ("rsquo", '’'),
    ("szlig", 'ß'),
    ("uacute", 'ú'),
    ("uuml", 'ü'),
];

/// The blocks of a document.
pub(super) fn blocks(html: &str) -> Blocks {
    let mut reader = HtmlReader::new();
    let mut at = 0;
    while at < html.len() && !reader.blocks.is_full() {
        let rest = &html[at..];
        let text = rest.find('<').unwrap_or(rest.len());
        reader.text(&rest[..text]);
        if text == rest.len() {
            break;
        }
        let markup = &rest[text..];
        let end = reader.markup(markup);
        looked_at(text + end);
        reader.source_line += lines_in(&markup[..end]);
        at += text + end;
    }
    reader.flush();
    reader.blocks.is_cut |= reader.blocks.is_full();
    reader.blocks
}

fn lines_in(text: &str) -> u32 {
    u32::try_from(text.matches('\n').count()).unwrap_or(u32::MAX)
}

struct HtmlReader {
    blocks: Blocks,
    text: String,
    kind: BlockKind,
    /// The line of the document that is being read, and the one where the block begins.
    source_line: u32,
    start: u32,
    is_title: bool,
}

impl HtmlReader {
    fn new() -> Self {
        Self {
            blocks: Blocks::default(),
            text: String::new(),
            kind: BlockKind::Text,
            source_line: 1,
            start: 1,
            is_title: false,
        }
    }

    /// Reads what begins with `<`; returns how much of it was read, at least a byte.
    fn markup(&mut self, markup: &str) -> usize {
        let behind = |sign: &str| markup.find(sign).map_or(markup.len(), |at| at + sign.len());
        if markup.starts_with("<!--") {
            return behind("-->");
        }
        if markup.starts_with("<!") || markup.starts_with("<?") {
            return behind(">");
        }
        let is_end = markup.starts_with("</");
        let name_at = if is_end { 2 } else { 1 };
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
        let name = markup.as_bytes()[name_at..]
            .iter()
            .take_while(|it| is_name(it));
        let name_end = name_at + name.count();
        let name = markup[name_at..name_end].to_ascii_lowercase();
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            self.push('<');
            return 1;
        }
        let end = name_end + tag_end(&markup[name_end..]);
        if !is_end && SKIPPED.contains(&name.as_str()) {
            self.boundary(&name);
            return end + closing(&markup[end..], &name);
        }
        if is_end {
            self.closed(&name);
        } else {
            self.opened(&name);
        }
        end
    }

    fn opened(&mut self, name: &str) {
        match name {
            "br" => self.push('\n'),
            "td" | "th" if self.is_table() => {
                if !self.text.is_empty() && !self.text.ends_with('\n') {
                    let end = self.text.trim_end().len();
                    self.text.truncate(end);
                    self.text.push_str(" | ");
                }
            }
            "tr" if self.is_table() => self.end_row(),
            "p" | "div" | "li" | "ul" | "ol" if self.is_table() => self.space(),
            // The items of a list stand together.
            "li" if self.kind == BlockKind::Text && self.text.starts_with("- ") => {
                let end = self.text.trim_end().len();
                self.text.truncate(end);
                self.text.push_str("\n- ");
            }
            _ => {
                self.boundary(name);
                match name {
                    "title" => self.is_title = true,
                    "pre" => self.kind = BlockKind::Code,
                    "table" => self.kind = BlockKind::Table { has_head: false },
                    "li" => self.text.push_str("- "),
                    _ => {
                        if let Some(level) = level(name) {
                            self.kind = BlockKind::Heading(level);
                        }
                    }
                }
            }
        }
    }

    fn closed(&mut self, name: &str) {
        let is_cell = matches!(name, "td" | "th" | "p" | "div" | "li" | "ul" | "ol");
        match name {
            "tr" if self.is_table() => self.end_row(),
            "tbody" | "thead" | "tfoot" if self.is_table() => {}
            "li" if !self.is_table() => {}
            _ if is_cell && self.is_table() => self.space(),
            _ => self.boundary(name),
        }
    }

    /// Ends the current block at a tag, unless its element stands inside a line or groups rows of a table.
    fn boundary(&mut self, name: &str) {
        let is_row_group = matches!(name, "tbody" | "thead" | "tfoot");
        if !(INLINE.contains(&name) || self.is_table() && is_row_group) {
            self.flush();
        }
    }

    fn is_table(&self) -> bool {
        matches!(self.kind, BlockKind::Table { .. })
    }

    fn end_row(&mut self) {
        while self.text.ends_with([' ', '|']) {
            self.text.pop();
        }
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    fn space(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with([' ', '\n']) {
            self.text.push(' ');
        }
    }

    /// Adds text between tags, with its named and numbered characters resolved.
    fn text(&mut self, text: &str) {
        let mut rest = text;
        while let Some(at) = rest.find('&') {
            self.literal(&rest[..at]);
            let behind = &rest[at + 1..];
            match entity(behind) {
                Some((c, length)) => {
                    self.push(c);
                    rest = &behind[length..];
                }
                None => {
                    self.push('&');
                    rest = behind;
                }
            }
        }
        self.literal(rest);
    }

    fn literal(&mut self, text: &str) {
        for c in text.chars() {
            if c == '\n' {
                self.source_line = self.source_line.saturating_add(1);
            }
            let is_kept = self.kind == BlockKind::Code;
            match c {
                '\r' => {}
                c if c.is_whitespace() && !is_kept => self.space(),
                c => self.push(c),
            }
        }
    }

    fn push(&mut self, c: char) {
        if c == '\0' || (c == '\n' && self.text.is_empty()) {
            return;
        }
        if self.text.is_empty() || self.text == "- " {
            self.start = self.source_line;
        }
        self.text.push(c);
    }

    fn flush(&mut self) {
        let text = std::mem::take(&mut self.text);
        let kind = std::mem::replace(&mut self.kind, BlockKind::Text);
        let text = text.trim_end();
        if std::mem::take(&mut self.is_title) {
            let title = one_line(text);
            self.blocks.title = Some(title).filter(|it| !it.is_empty());
            return;
        }
        if text.trim() == "-" {
            return;
        }
        let text = match kind {
            BlockKind::Heading(_) => one_line(text),
            BlockKind::Code if !text.trim().is_empty() => format!("```\n{text}\n```"),
            BlockKind::Text | BlockKind::Table { .. } | BlockKind::Code => text.to_owned(),
        };
        self.blocks.add(DocumentBlock {
            kind,
            text,
            line: self.start,
            page: None,
            has_own_lines: false,
        });
    }
}

/// The level of a heading's element.
fn level(name: &str) -> Option<u8> {
    let level = name.strip_prefix('h')?.parse().ok()?;
    (1..=6).contains(&level).then_some(level)
}

/// Where a tag whose name was read ends: behind the first `>` that is not in quotes.
fn tag_end(rest: &str) -> usize {
    let mut quote = None;
    let mut is_value = false;
    for (at, byte) in rest.bytes().enumerate() {
        match (quote, byte) {
            (Some(open), _) if byte == open => quote = None,
            (Some(_), _) => {}
            (None, b'>') => return at + 1,
            // A quote begins a value only behind an equals sign.
            (None, b'"' | b'\'') if is_value => quote = Some(byte),
            (None, _) => {}
        }
        is_value = byte == b'=' || (is_value && byte.is_ascii_whitespace());
    }
    rest.len()
}

/// Where an element whose content is skipped ends: behind the next tag that closes one of its name.
fn closing(rest: &str, name: &str) -> usize {
    let mut from = 0;
    while let Some(found) = rest[from..].find("</") {
        let at = from + found + 2;
        let is_it = rest.as_bytes()[at..]
            .get(..name.len())
            .is_some_and(|it| it.eq_ignore_ascii_case(name.as_bytes()));
        if is_it {
            let end = at + name.len();
            return end + rest[end..].find('>').map_or(rest.len() - end, |it| it + 1);
        }
        from = at;
    }
    rest.len()
}

/// The character that stands behind an ampersand by its name or number, and the length of that.
fn entity(behind: &str) -> Option<(char, usize)> {
    let bytes = behind.as_bytes();
    let end = bytes
        .iter()
        .take(ENTITY_MAX_BYTES + 1)
        .position(|it| *it == b';')?;
    let name = &behind[..end];
    let c = match name.strip_prefix('#') {
        Some(number) => {
            let hex = number.strip_prefix(['x', 'X']);
            let code = match hex {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?).filter(|c| !c.is_control() || c.is_whitespace())?
        }
        None => ENTITIES.iter().find(|(known, _)| *known == name)?.1,
    };
    Some((c, end + 1))
}
