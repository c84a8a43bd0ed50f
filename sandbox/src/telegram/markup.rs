//! `parse_mode`: HTML, MarkdownV2 and the old Markdown, with the platform's error texts.
//!
//! Pure. Byte offsets in errors count bytes of the source. Knows no limits and no trimming.

use serde_json::{Map, Value};

use super::entities::Entity;
use super::text::Formatted;

/// What can't be parsed, in the platform's words.
pub(super) type Parsed = Result<Formatted, String>;

/// Characters that MarkdownV2 reserves outside code.
const RESERVED: &str = "_*[]()~`>#+-=|{}.!";
/// Tags that HTML mode knows.
const TAGS: [&str; 16] = [
    "b",
    "strong",
    "i",
    "em",
    "u",
    "ins",
    "s",
    "strike",
    "del",
    "tg-spoiler",
    "span",
    "a",
    "code",
    "pre",
    "blockquote",
    "tg-emoji",
];

/// The address of a link as the platform writes it back; `None` when it is no address.
pub(super) fn link_url(url: &str) -> Option<String> {
    let url = url.trim();
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let scheme = scheme.to_ascii_lowercase();
    if scheme == "tg" || scheme == "ton" || scheme == "tonsite" {
        return Some(url.to_owned());
    }
    let host_len = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(host_len);
    let name = host.split(':').next().unwrap_or("");
    let valid = matches!(scheme.as_str(), "http" | "https")
        && !name.is_empty()
        && !url.contains(char::is_whitespace)
        && (name.contains('.') || name == "localhost");
    let path = if path.is_empty() { "/" } else { path };
    valid.then(|| format!("{scheme}://{host}{path}"))
}

/// Text under construction and the length of it in UTF-16 units.
#[derive(Default)]
struct Output {
    text: String,
    units: usize,
    entities: Vec<Entity>,
}

impl Output {
    fn push(&mut self, c: char) {
        self.text.push(c);
        self.units += c.len_utf16();
    }

    fn close(&mut self, kind: &str, begin: usize, extra: Map<String, Value>) {
        if self.units > begin {
            self.entities.push(Entity {
                extra,
                ..Entity::new(kind, begin, self.units - begin)
            });
        }
    }

    fn finish(mut self) -> Formatted {
        self.entities
            .sort_by_key(|entity| (entity.offset, usize::MAX - entity.length));
        Formatted {
            text: self.text,
            entities: self.entities,
        }
    }
}

fn one(name: &str, value: &str) -> Map<String, Value> {
    Map::from_iter([(name.to_owned(), Value::from(value))])
}

/// Parses HTML mode.
pub(super) fn html(source: &str) -> Parsed {
    let mut parser = Html {
        source,
        at: 0,
        out: Output::default(),
        open: Vec::new(),
    };
    while let Some(c) = source[parser.at..].chars().next() {
        match c {
            '<' if source[parser.at + 1..].starts_with('/') => parser.end_tag()?,
            '<' => parser.start_tag()?,
            '&' => parser.character_reference(),
            c => {
                parser.out.push(c);
                parser.at += c.len_utf8();
            }
        }
    }
    match parser.open.pop() {
        Some(tag) => Err(format!(
            "Can't find end tag corresponding to start tag \"{}\"",
            tag.name
        )),
        None => Ok(parser.out.finish()),
    }
}

struct OpenTag {
    name: String,
    argument: String,
    begin: usize,
}

struct Html<'s> {
    source: &'s str,
    at: usize,
    out: Output,
    open: Vec<OpenTag>,
}

impl Html<'_> {
    fn character_reference(&mut self) {
        let rest = &self.source[self.at..];
        let decoded = [
            ("&lt;", '<'),
            ("&gt;", '>'),
            ("&amp;", '&'),
            ("&quot;", '"'),
        ]
        .into_iter()
        .find(|(name, _)| rest.starts_with(name))
        .map(|(name, c)| (name.len(), c))
        .or_else(|| numeric_reference(rest));
        let (length, c) = decoded.unwrap_or((1, '&'));
        self.out.push(c);
        self.at += length;
    }

    fn start_tag(&mut self) -> Result<(), String> {
        let begin = self.at;
        let rest = &self.source[begin + 1..];
        let unclosed = || format!("Unclosed start tag at byte offset {begin}");
        let name_len = rest
            .find(|c: char| c.is_ascii_whitespace() || c == '>')
            .ok_or_else(unclosed)?;
        let name = rest[..name_len].to_ascii_lowercase();
        if !TAGS.contains(&name.as_str()) {
            return Err(format!(
                "Unsupported start tag \"{name}\" at byte offset {begin}"
            ));
        }
        let tag_len = tag_len(&rest[name_len..]).ok_or_else(unclosed)?;
        let attributes = &rest[name_len..name_len + tag_len];
        let argument = match name.as_str() {
            "a" => attribute(attributes, "href"),
            "code" => attribute(attributes, "class")
                .and_then(|class| class.strip_prefix("language-").map(str::to_owned)),
            "tg-emoji" => attribute(attributes, "emoji-id"),
            "span" if attribute(attributes, "class").as_deref() != Some("tg-spoiler") => {
                return Err(format!(
                    "Tag \"span\" must have class \"tg-spoiler\" at byte offset {begin}"
                ));
            }
            "blockquote" if attributes.contains("expandable") => Some("1".to_owned()),
            _ => None,
        };
        self.open.push(OpenTag {
            name,
            argument: argument.unwrap_or_default(),
            begin: self.out.units,
        });
        self.at = begin + 1 + name_len + tag_len + 1;
        Ok(())
    }

    fn end_tag(&mut self) -> Result<(), String> {
        let begin = self.at;
        let rest = &self.source[begin + 2..];
        let Some(tag) = self.open.pop() else {
            return Err(format!("Unexpected end tag at byte offset {begin}"));
        };
        let end = rest
            .find('>')
            .ok_or_else(|| format!("Unclosed end tag at byte offset {begin}"))?;
        let name = rest[..end].trim().to_ascii_lowercase();
        if !name.is_empty() && name != tag.name {
            return Err(format!(
                "Unmatched end tag at byte offset {begin}, expected \"</{}>\", found \"</{name}>\"",
                tag.name
            ));
        }
        self.at = begin + 2 + end + 1;
        self.close(&tag);
        Ok(())
    }

    fn close(&mut self, tag: &OpenTag) {
        let (kind, extra) = match tag.name.as_str() {
            "b" | "strong" => ("bold", Map::new()),
            "i" | "em" => ("italic", Map::new()),
            "u" | "ins" => ("underline", Map::new()),
            "s" | "strike" | "del" => ("strikethrough", Map::new()),
            "tg-spoiler" | "span" => ("spoiler", Map::new()),
            "blockquote" if tag.argument.is_empty() => ("blockquote", Map::new()),
            "blockquote" => ("expandable_blockquote", Map::new()),
            "tg-emoji" => ("custom_emoji", one("custom_emoji_id", &tag.argument)),
            "pre" => return self.close_pre(tag.begin),
            "code" => ("code", one("language", &tag.argument)),
            _ => {
                // A link without a usable address is silently no link.
                let text = last_units(&self.out.text, self.out.units - tag.begin);
                let address = if tag.argument.is_empty() {
                    text
                } else {
                    tag.argument.clone()
                };
                return match link_url(&address) {
                    Some(url) => self.out.close("text_link", tag.begin, one("url", &url)),
                    None => {}
                };
            }
        };
        let inside_pre = self.open.last().is_some_and(|outer| outer.name == "pre");
        let extra = if kind == "code" && !inside_pre {
            Map::new()
        } else {
            extra
        };
        self.out.close(kind, tag.begin, extra);
    }

    /// `<pre><code class="language-x">` is one block with a language.
    fn close_pre(&mut self, begin: usize) {
        let whole = self.out.units - begin;
        let language = match self.out.entities.last() {
            Some(code) if code.kind == "code" && code.offset == begin && code.length == whole => {
                let language = code.extra.get("language").cloned();
                self.out.entities.pop();
                language
            }
            _ => None,
        };
        let extra = language
            .filter(|language| language.as_str().is_some_and(|name| !name.is_empty()))
            .map(|language| Map::from_iter([("language".to_owned(), language)]));
        self.out.close("pre", begin, extra.unwrap_or_default());
    }
}

fn numeric_reference(rest: &str) -> Option<(usize, char)> {
    let body = rest.strip_prefix("&#")?;
    let end = body.find(';')?;
    let code = match body[..end].strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16).ok()?,
        None => body[..end].parse().ok()?,
    };
    Some((end + 3, char::from_u32(code).filter(|&c| c != '\0')?))
}

/// The length up to the closing `>`, which may not be inside quotes.
fn tag_len(rest: &str) -> Option<usize> {
    let mut quote = None;
    rest.char_indices().find_map(|(at, c)| {
        match (quote, c) {
            (None, '>') => return Some(at),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            _ => {}
        }
        None
    })
}

fn attribute(attributes: &str, name: &str) -> Option<String> {
    let lower = attributes.to_ascii_lowercase();
    let from = lower.find(&format!("{name}="))? + name.len() + 1;
    let value = &attributes[from..];
    let raw = match value.chars().next()? {
        quote @ ('"' | '\'') => value[1..].split(quote).next()?,
        _ => value.split_ascii_whitespace().next()?,
    };
    let mut decoded = raw.to_owned();
    for (reference, c) in [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&amp;", "&"),
    ] {
        decoded = decoded.replace(reference, c);
    }
    Some(decoded)
}

/// The last `units` UTF-16 units of a text.
fn last_units(text: &str, units: usize) -> String {
    let mut left = units;
    let mut tail: Vec<char> = text
        .chars()
        .rev()
        .take_while(|c| {
            let take = left > 0;
            left = left.saturating_sub(c.len_utf16());
            take
        })
        .collect();
    tail.reverse();
    tail.into_iter().collect()
}

/// What MarkdownV2 has open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
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

impl Style {
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
    style: Style,
    begin: usize,
    byte: usize,
    language: String,
}

struct MarkdownV2<'s> {
    source: &'s str,
    at: usize,
    out: Output,
    open: Vec<Open>,
    quote: Option<usize>,
    line_start: bool,
}

/// Parses MarkdownV2.
pub(super) fn markdown_v2(source: &str) -> Parsed {
    let mut parser = MarkdownV2 {
        source,
        at: 0,
        out: Output::default(),
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
            .is_some_and(|open| matches!(open.style, Style::Code | Style::Pre));
        if let ('\\', Some(escaped @ '\u{1}'..='\u{7e}')) = (c, next) {
            self.at += 2;
            self.literal(escaped);
        } else if self.closes() {
            self.close()?;
        } else if in_code || !RESERVED.contains(c) {
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
            Style::Italic => rest.starts_with('_') && !rest.starts_with("__"),
            style => rest.starts_with(style.mark()),
        }
    }

    fn begin(&mut self, c: char) -> Result<(), String> {
        let rest = self.rest();
        let style = match c {
            '_' if rest.starts_with("__") => Style::Underline,
            '_' => Style::Italic,
            '*' if self.line_start && rest.starts_with("**>") => {
                self.at += 2;
                return Ok(());
            }
            '*' => Style::Bold,
            '~' => Style::Strikethrough,
            '|' if rest == "||" && self.quote.is_some() || self.ends_quote() => {
                self.at += 2;
                self.end_quote("expandable_blockquote");
                return Ok(());
            }
            '|' if rest.starts_with("||") => Style::Spoiler,
            '`' if rest.starts_with("```") => Style::Pre,
            '`' => Style::Code,
            '[' => Style::TextUrl,
            '!' if rest.starts_with("![") => Style::CustomEmoji,
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
            Style::CustomEmoji => 2,
            Style::TextUrl => 1,
            style => style.mark().len(),
        };
        let language = if style == Style::Pre {
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
            Style::Pre if !open.language.is_empty() => one("language", &open.language),
            Style::TextUrl => {
                let written = self.address(&open)?.unwrap_or(text);
                match link_url(&written) {
                    Some(url) => one("url", &url),
                    None => return Ok(()),
                }
            }
            Style::CustomEmoji => {
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
            return if open.style == Style::TextUrl {
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
    let mut out = Output::default();
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

    fn shape(parsed: Parsed) -> (String, Vec<(String, usize, usize)>) {
        let parsed = parsed.unwrap();
        let entities = parsed.entities.into_iter();
        let entities = entities.map(|entity| (entity.kind, entity.offset, entity.length));
        (parsed.text, entities.collect())
    }

    #[test]
    fn html_gives_entities() {
        let cases: [(&str, &str, &[(&str, usize, usize)]); 5] = [
            (
                "<b>a<I>b</I></b>",
                "ab",
                &[("bold", 0, 2), ("italic", 1, 1)],
            ),
            ("a &amp; b &nbsp; &", "a & b &nbsp; &", &[]),
            (
                "<pre><code class=\"language-rs\">x</code></pre>",
                "x",
                &[("pre", 0, 1)],
            ),
            (
                "<a href=\"https://e.com\">e</a>",
                "e",
                &[("text_link", 0, 1)],
            ),
            ("<a href=\"nonsense\">e</a>", "e", &[]),
        ];
        for (source, text, entities) in cases {
            let entities: Vec<_> = entities
                .iter()
                .map(|&(kind, offset, length)| (kind.to_owned(), offset, length))
                .collect();
            assert_eq!(shape(html(source)), (text.to_owned(), entities), "{source}");
        }
    }

    #[test]
    fn html_errors_have_the_platforms_words() {
        let cases = [
            ("<br>", "Unsupported start tag \"br\" at byte offset 0"),
            ("a < b >", "Unsupported start tag \"\" at byte offset 2"),
            (
                "<b>a",
                "Can't find end tag corresponding to start tag \"b\"",
            ),
            ("a</b>", "Unexpected end tag at byte offset 1"),
        ];
        for (source, why) in cases {
            assert_eq!(html(source), Err(why.to_owned()), "{source}");
        }
    }

    #[test]
    fn markdown_v2_gives_entities() {
        let cases: [(&str, &str, &[(&str, usize, usize)]); 6] = [
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
        ];
        for (source, why) in cases {
            assert_eq!(markdown_v2(source), Err(why.to_owned()), "{source}");
        }
    }
}
