//! `parse_mode` HTML, with the platform's error texts.
//!
//! Pure. Byte offsets in errors count bytes of the source. Knows no limits and no trimming.

use serde_json::Map;

use super::markup::{MarkupOutput, Parsed, last_units, link_url, one};

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

/// Parses HTML mode.
pub(super) fn html(source: &str) -> Parsed {
    let mut parser = Html {
        source,
        at: 0,
        out: MarkupOutput::default(),
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
    out: MarkupOutput,
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
                // A link without a usable address silently becomes plain text.
                let text = last_units(&self.out.text, self.out.units - tag.begin);
                let address = if tag.argument.is_empty() {
                    text
                } else {
                    tag.argument.clone()
                };
                if let Some(url) = link_url(&address) {
                    self.out.close("text_link", tag.begin, one("url", &url));
                }
                return;
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
    fn html_gives_entities() {
        let cases: [Case; 5] = [
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
}
