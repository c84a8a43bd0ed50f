//! `parse_mode` MarkdownV2 and the old Markdown, with the platform's error texts.
//!
//! Pure. Byte offsets in errors count bytes of the source. Knows no limits and no trimming.

use serde_json::Map;

use super::markup::{MarkupOutput, Parsed, last_units, link_url, one};

/// Characters that MarkdownV2 reserves outside code; inside it a backtick alone is reserved.
const RESERVED: &str = "_*[]()~`>#+-=|{}.!";

/// The styles that can be open in MarkdownV2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MarkdownStyle {
    Bold,
    Italic,
    Underline,
    Strikethrough,
    Spoiler,
    Code,
    Pre,
    TextUrl,
    CustomEmoji,
}

impl MarkdownStyle {
    fn mark(self) -> &'static str {
        match self {
            Self::Bold => "*",
            Self::Italic => "_",
            Self::Underline => "__",
            Self::Strikethrough => "~",
            Self::Spoiler => "||",
            Self::Code => "`",
            Self::Pre => "```",
            Self::TextUrl | Self::CustomEmoji => "]",
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Bold => "bold",
            Self::Italic => "italic",
            Self::Underline => "underline",
            Self::Strikethrough => "strikethrough",
            Self::Spoiler => "spoiler",
            Self::Code => "code",
            Self::Pre => "pre",
            Self::TextUrl => "text_link",
            Self::CustomEmoji => "custom_emoji",
        }
    }
}

struct Open {
    style: MarkdownStyle,
    begin: usize,
    byte: usize,
    language: String,
}

struct MarkdownV2<'s> {
    source: &'s str,
    at: usize,
    out: MarkupOutput,
    open: Vec<Open>,
    quote: Option<usize>,
    line_start: bool,
}

/// Parses MarkdownV2.
pub(super) fn markdown_v2(source: &str) -> Parsed {
    let mut parser = MarkdownV2 {
        source,
        at: 0,
        out: MarkupOutput::default(),
        open: Vec::new(),
        quote: None,
        line_start: true,
    };
    while parser.at < source.len() {
        parser.step()?;
    }
    if let Some(open) = parser.open.last() {
        return Err(format!(
            "Can't find end of {:?} entity at byte offset {}",
            open.style, open.byte
        ));
    }
    parser.end_quote("blockquote");
    Ok(parser.out.finish())
}

impl MarkdownV2<'_> {
    fn rest(&self) -> &str {
        &self.source[self.at..]
    }

    fn step(&mut self) -> Result<(), String> {
        let mut chars = self.rest().chars();
        let (Some(c), next) = (chars.next(), chars.next()) else {
            return Ok(());
        };
        let in_code = self
            .open
            .last()
            .is_some_and(|open| matches!(open.style, MarkdownStyle::Code | MarkdownStyle::Pre));
        if let ('\\', Some(escaped @ '\u{1}'..='\u{7e}')) = (c, next) {
            self.at += 2;
            self.literal(escaped);
        } else if self.closes() {
            self.close()?;
        } else if (in_code && c != '`') || !RESERVED.contains(c) {
            self.at += c.len_utf8();
            self.plain(c);
        } else {
            self.begin(c)?;
        }
        Ok(())
    }

    fn literal(&mut self, c: char) {
        self.line_start = c == '\n';
        self.out.push(c);
    }

    fn plain(&mut self, c: char) {
        if c == '\n' && self.quote.is_some() && !self.rest().starts_with('>') {
            self.end_quote("blockquote");
        }
        self.literal(c);
    }

    /// Whether the innermost open entity ends here.
    fn closes(&self) -> bool {
        let Some(open) = self.open.last() else {
            return false;
        };
        let rest = self.rest();
        match open.style {
            MarkdownStyle::Italic => rest.starts_with('_') && !rest.starts_with("__"),
            style => rest.starts_with(style.mark()),
        }
    }

    fn begin(&mut self, c: char) -> Result<(), String> {
        let rest = self.rest();
        let style = match c {
            '_' if rest.starts_with("__") => MarkdownStyle::Underline,
            '_' => MarkdownStyle::Italic,
            '*' if self.line_start && rest.starts_with("**>") => {
                self.at += 2;
                return Ok(());
            }
            '*' => MarkdownStyle::Bold,
            '~' => MarkdownStyle::Strikethrough,
            '|' if rest == "||" && self.quote.is_some() || self.ends_quote() => {
                self.at += 2;
                self.end_quote("expandable_blockquote");
                return Ok(());
            }
            '|' if rest.starts_with("||") => MarkdownStyle::Spoiler,
            '`' if rest.starts_with("```") => MarkdownStyle::Pre,
            '`' => MarkdownStyle::Code,
            '[' => MarkdownStyle::TextUrl,
            '!' if rest.starts_with("![") => MarkdownStyle::CustomEmoji,
            '>' if self.line_start => {
                self.at += 1;
                self.quote.get_or_insert(self.out.units);
                self.line_start = false;
                return Ok(());
            }
            _ => {
                return Err(format!(
                    "Character '{c}' is reserved and must be escaped with the preceding '\\'"
                ));
            }
        };
        self.line_start = false;
        let byte = self.at;
        self.at += match style {
            MarkdownStyle::CustomEmoji => 2,
            MarkdownStyle::TextUrl => 1,
            style => style.mark().len(),
        };
        let language = if style == MarkdownStyle::Pre {
            self.language()
        } else {
            String::new()
        };
        self.open.push(Open {
            style,
            begin: self.out.units,
            byte,
            language,
        });
        Ok(())
    }

    /// `||` at the end of a quoted line, with no spoiler open, ends an expandable quote.
    fn ends_quote(&self) -> bool {
        self.quote.is_some() && self.rest().starts_with("||\n") && self.open.is_empty()
    }

    fn language(&mut self) -> String {
        let rest = self.rest();
        let len = rest
            .find(|c: char| c.is_ascii_whitespace() || c == '`')
            .unwrap_or(rest.len());
        let mut language = String::new();
        if len > 0 && !rest[len..].starts_with('`') {
            language = rest[..len].to_owned();
            self.at += len;
        }
        if self.rest().starts_with("\r\n") {
            self.at += 2;
        } else if self.rest().starts_with('\n') {
            self.at += 1;
        }
        language
    }

    fn close(&mut self) -> Result<(), String> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        self.at += open.style.mark().len();
        let text = last_units(&self.out.text, self.out.units - open.begin);
        let extra = match open.style {
            MarkdownStyle::Pre if !open.language.is_empty() => one("language", &open.language),
            MarkdownStyle::TextUrl => {
                let written = self.address(&open)?.unwrap_or(text);
                match link_url(&written) {
                    Some(url) => one("url", &url),
                    None => return Ok(()),
                }
            }
            MarkdownStyle::CustomEmoji => {
                let written = self.address(&open)?.unwrap_or_default();
                match written.strip_prefix("tg://emoji?id=") {
                    Some(id) => one("custom_emoji_id", id),
                    None => return Err("Custom emoji URL must have an emoji identifier".to_owned()),
                }
            }
            _ => Map::new(),
        };
        self.out.close(open.style.kind(), open.begin, extra);
        Ok(())
    }

    /// Reads `(address)` after a link's text.
    fn address(&mut self, open: &Open) -> Result<Option<String>, String> {
        if !self.rest().starts_with('(') {
            return if open.style == MarkdownStyle::TextUrl {
                Ok(None)
            } else {
                Err(format!(
                    "Custom emoji entity must contain a tg://emoji URL at byte offset {}",
                    self.at
                ))
            };
        }
        let begin = self.at;
        let mut address = String::new();
        let mut chars = self.source[begin + 1..].char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                ')' => {
                    self.at = begin + 1 + at + 1;
                    return Ok(Some(address));
                }
                '\\' => address.extend(chars.next().map(|(_, escaped)| escaped)),
                c => address.push(c),
            }
        }
        Err(format!("Can't find end of a URL at byte offset {begin}"))
    }

    fn end_quote(&mut self, kind: &str) {
        if let Some(begin) = self.quote.take() {
            self.out.close(kind, begin, Map::new());
        }
    }
}

/// Parses the old Markdown: one level, no nesting.
pub(super) fn markdown(source: &str) -> Parsed {
    let mut out = MarkupOutput::default();
    let mut at = 0;
    while let Some(c) = source[at..].chars().next() {
        let rest = &source[at..];
        let escaped = rest[c.len_utf8()..]
            .chars()
            .next()
            .filter(|next| c == '\\' && "_*`[".contains(*next));
        if let Some(escaped) = escaped {
            out.push(escaped);
            at += 2;
            continue;
        }
        let (kind, mark, end) = match c {
            '_' => ("italic", "_", "_"),
            '*' => ("bold", "*", "*"),
            '`' if rest.starts_with("```") => ("pre", "```", "```"),
            '`' => ("code", "`", "`"),
            '[' => ("text_link", "[", "]"),
            c => {
                out.push(c);
                at += c.len_utf8();
                continue;
            }
        };
        let inner = &rest[mark.len()..];
        let Some(length) = inner.find(end) else {
            return Err(format!(
                "Can't find end of the entity starting at byte offset {at}"
            ));
        };
        let begin = out.units;
        inner[..length].chars().for_each(|c| out.push(c));
        at += mark.len() + length + end.len();
        if kind != "text_link" {
            out.close(kind, begin, Map::new());
            continue;
        }
        let address = source[at..]
            .strip_prefix('(')
            .and_then(|rest| Some(&rest[..rest.find(')')?]));
        if let Some(address) = address {
            at += address.len() + 2;
            if let Some(url) = link_url(address) {
                out.close(kind, begin, one("url", &url));
            }
        }
    }
    Ok(out.finish())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// A source, the text it gives, and the entities: kind, offset, length.
    type Case = (
        &'static str,
        &'static str,
        &'static [(&'static str, usize, usize)],
    );

    fn shape(parsed: Parsed) -> (String, Vec<(String, usize, usize)>) {
        let parsed = parsed.unwrap();
        let entities = parsed.entities.into_iter();
        let entities = entities.map(|entity| (entity.kind, entity.offset, entity.length));
        (parsed.text, entities.collect())
    }

    #[test]
    fn markdown_v2_gives_entities() {
        let cases: [Case; 6] = [
            (
                "*b* _i_ __u__ ~s~ ||p||",
                "b i u s p",
                &[
                    ("bold", 0, 1),
                    ("italic", 2, 1),
                    ("underline", 4, 1),
                    ("strikethrough", 6, 1),
                    ("spoiler", 8, 1),
                ],
            ),
            ("```rs\nx.y```", "x.y", &[("pre", 0, 3)]),
            ("`a_b`\\.", "a_b.", &[("code", 0, 3)]),
            ("[t](https://e.com/\\))", "t", &[("text_link", 0, 1)]),
            (">q\n>r\ns", "q\nr\ns", &[("blockquote", 0, 3)]),
            ("**x**", "x", &[]),
        ];
        for (source, text, entities) in cases {
            let entities: Vec<_> = entities
                .iter()
                .map(|&(kind, offset, length)| (kind.to_owned(), offset, length))
                .collect();
            assert_eq!(
                shape(markdown_v2(source)),
                (text.to_owned(), entities),
                "{source}"
            );
        }
    }

    #[test]
    fn markdown_v2_errors_have_the_platforms_words() {
        let cases = [
            (
                "done.",
                "Character '.' is reserved and must be escaped with the preceding '\\'",
            ),
            ("see _x", "Can't find end of Italic entity at byte offset 4"),
            ("[t](e", "Can't find end of a URL at byte offset 3"),
            ("```a`b```", "Can't find end of Pre entity at byte offset 0"),
        ];
        for (source, why) in cases {
            assert_eq!(markdown_v2(source), Err(why.to_owned()), "{source}");
        }
    }
}
