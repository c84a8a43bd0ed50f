//! Entities that the platform detects: mentions, commands, links, hashtags, addresses.
//!
//! Owns the detection rules and the entity type, counted in UTF-16 units. Pure.

use serde_json::{Map, Value, json};

/// Top-level domains that make a bare `name.tld` a link. The platform knows all of them; these are
/// the ones that turn up in technical talk.
const LINK_DOMAINS: [&str; 36] = [
    "com", "org", "net", "io", "dev", "app", "ai", "me", "rs", "py", "sh", "md", "so", "ml", "pl",
    "cc", "co", "us", "uk", "de", "fr", "nl", "eu", "ru", "info", "biz", "edu", "gov", "xyz", "in",
    "it", "es", "ch", "at", "tv", "zip",
];

/// A special part of a text. Offsets count UTF-16 units.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TextEntity {
    pub(super) kind: String,
    pub(super) offset: usize,
    pub(super) length: usize,
    pub(super) extra: Map<String, Value>,
}

impl TextEntity {
    pub(super) fn new(kind: &str, offset: usize, length: usize) -> Self {
        Self {
            kind: kind.to_owned(),
            offset,
            length,
            extra: Map::new(),
        }
    }

    pub(super) fn end(&self) -> usize {
        self.offset + self.length
    }

    pub(super) fn overlaps(&self, other: &Self) -> bool {
        self.offset < other.end() && other.offset < self.end()
    }

    pub(super) fn as_json(&self) -> Value {
        let mut object = self.extra.clone();
        object.insert("type".to_owned(), json!(self.kind));
        object.insert("offset".to_owned(), json!(self.offset));
        object.insert("length".to_owned(), json!(self.length));
        Value::Object(object)
    }
}

/// The number of UTF-16 units of a text.
pub(super) fn utf16_len(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// Detects the entities of a text, in order, without overlaps.
pub(super) fn detect(text: &str) -> Vec<TextEntity> {
    let mut found: Vec<TextEntity> = Vec::new();
    let mut scan = Scan {
        chars: text.chars().collect(),
        at: 0,
    };
    let mut offset = 0;
    while scan.at < scan.chars.len() {
        let (kind, chars) = scan.match_here().unwrap_or(("", 1));
        let length = scan.chars[scan.at..scan.at + chars]
            .iter()
            .map(|c| c.len_utf16())
            .sum();
        if !kind.is_empty() {
            found.push(TextEntity::new(kind, offset, length));
        }
        offset += length;
        scan.at += chars;
    }
    found
}

struct Scan {
    chars: Vec<char>,
    at: usize,
}

impl Scan {
    /// The kind and length in characters of the entity that begins here.
    fn match_here(&self) -> Option<(&'static str, usize)> {
        self.url()
            .or_else(|| self.email())
            .or_else(|| self.mention())
            .or_else(|| self.command())
            .or_else(|| self.tagged('#', "hashtag", is_word, 256))
            .or_else(|| self.tagged('$', "cashtag", |c| c.is_ascii_uppercase(), 8))
    }

    fn before(&self) -> Option<char> {
        self.at.checked_sub(1).map(|before| self.chars[before])
    }

    fn run(&self, from: usize, matches: impl Fn(char) -> bool) -> usize {
        self.chars[from.min(self.chars.len())..]
            .iter()
            .take_while(|&&c| matches(c))
            .count()
    }

    fn char(&self, at: usize) -> Option<char> {
        self.chars.get(at).copied()
    }

    fn mention(&self) -> Option<(&'static str, usize)> {
        if self.char(self.at) != Some('@') || self.before().is_some_and(is_word) {
            return None;
        }
        let name = self.run(self.at + 1, is_name);
        let after = self.char(self.at + 1 + name);
        ((4..=32).contains(&name) && !after.is_some_and(is_word)).then_some(("mention", name + 1))
    }

    fn command(&self) -> Option<(&'static str, usize)> {
        let barred = |c: char| is_word(c) || matches!(c, '/' | '<' | '>');
        if self.char(self.at) != Some('/') || self.before().is_some_and(barred) {
            return None;
        }
        let name = self.run(self.at + 1, is_name);
        if !(1..=64).contains(&name) {
            return None;
        }
        let mut length = name + 1;
        if self.char(self.at + length) == Some('@') {
            let bot = self.run(self.at + length + 1, is_name);
            let after = self.char(self.at + length + 1 + bot);
            if (3..=32).contains(&bot) && !after.is_some_and(is_word) {
                length += bot + 1;
            }
        }
        let after = self.char(self.at + length);
        let broken = after.is_some_and(|c| is_word(c) || matches!(c, '/' | '<' | '>'));
        (!broken).then_some(("bot_command", length))
    }

    fn tagged(
        &self,
        sign: char,
        kind: &'static str,
        matches: impl Fn(char) -> bool,
        chars_max: usize,
    ) -> Option<(&'static str, usize)> {
        if self.char(self.at) != Some(sign) || self.before().is_some_and(is_word) {
            return None;
        }
        let name = self.run(self.at + 1, matches);
        let letters = self.chars[self.at + 1..self.at + 1 + name]
            .iter()
            .any(|c| c.is_alphabetic());
        let after = self.char(self.at + 1 + name);
        let whole = (1..=chars_max).contains(&name) && letters;
        (whole && !after.is_some_and(is_word)).then_some((kind, name + 1))
    }

    fn url(&self) -> Option<(&'static str, usize)> {
        if self
            .before()
            .is_some_and(|c| is_word(c) || matches!(c, '@' | '.' | '-' | '/'))
        {
            return None;
        }
        let scheme = ["https://", "http://"]
            .iter()
            .find(|scheme| self.starts_with(scheme))
            .map_or(0, |scheme| scheme.len());
        let host = self.host(self.at + scheme, scheme > 0)?;
        if self.char(self.at + scheme + host) == Some('@') {
            return None;
        }
        let mut length = scheme + host;
        if self.char(self.at + length) == Some(':') {
            let port = self.run(self.at + length + 1, |c| c.is_ascii_digit());
            length += if port > 0 { port + 1 } else { 0 };
        }
        if matches!(self.char(self.at + length), Some('/' | '?' | '#')) {
            length += self.run(self.at + length, |c| {
                !c.is_whitespace() && !matches!(c, '<' | '>' | '"')
            });
        }
        while matches!(
            self.chars[self.at + length - 1],
            '.' | ',' | ';' | ':' | '!' | '?' | ')' | '\'' | ']'
        ) {
            length -= 1;
        }
        Some(("url", length))
    }

    /// The length of a host name with a domain that the platform links.
    fn host(&self, from: usize, has_scheme: bool) -> Option<usize> {
        let mut length = self.run(from, |c| {
            c.is_alphanumeric() || matches!(c, '.' | '-' | '_')
        });
        while length > 0 && self.chars[from + length - 1] == '.' {
            length -= 1;
        }
        let host: String = self.chars[from..from + length].iter().collect();
        let (name, domain) = host.rsplit_once('.')?;
        let linked = has_scheme || LINK_DOMAINS.contains(&domain.to_ascii_lowercase().as_str());
        (linked && !name.is_empty() && !name.starts_with('.')).then_some(length)
    }

    fn email(&self) -> Option<(&'static str, usize)> {
        if self.before().is_some_and(is_word) {
            return None;
        }
        let name = self.run(self.at, |c| {
            c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+')
        });
        if name == 0 || self.char(self.at + name) != Some('@') {
            return None;
        }
        let host = self.host(self.at + name + 1, false)?;
        Some(("email", name + 1 + host))
    }

    fn starts_with(&self, wanted: &str) -> bool {
        wanted.chars().enumerate().all(|(n, c)| {
            self.char(self.at + n)
                .is_some_and(|here| here.to_ascii_lowercase() == c)
        })
    }
}

/// A letter, digit or underscore of any script.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// What names and commands are made of.
fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text, and the entities in it: kind, offset, length.
    type Case = (&'static str, &'static [(&'static str, usize, usize)]);

    fn kinds(text: &str) -> Vec<(String, usize, usize)> {
        detect(text)
            .into_iter()
            .map(|entity| (entity.kind, entity.offset, entity.length))
            .collect()
    }

    #[test]
    fn entities_are_found_where_the_platform_finds_them() {
        let cases: [Case; 20] = [
            ("👍 @team_bot what broke?", &[("mention", 3, 9)]),
            ("(@team_bot)", &[("mention", 1, 9)]),
            ("@team_bot,", &[("mention", 0, 9)]),
            ("@team_bot's", &[("mention", 0, 9)]),
            ("a@team_bot", &[]),
            ("@team_botпривет", &[]),
            ("@abc", &[]),
            ("`@team_bot`", &[("mention", 1, 9)]),
            ("/start-now", &[("bot_command", 0, 6)]),
            ("/команда", &[]),
            ("x /start", &[("bot_command", 2, 6)]),
            ("/ask@team_bot hi", &[("bot_command", 0, 13)]),
            ("a/b", &[]),
            ("see https://e.com/@team_bot.", &[("url", 4, 23)]),
            ("main.rs", &[("url", 0, 7)]),
            ("main.rust", &[]),
            ("mail ann@example.com", &[("email", 5, 15)]),
            ("#tag #1", &[("hashtag", 0, 4)]),
            ("$USD", &[("cashtag", 0, 4)]),
            ("user@host @team_bot", &[("mention", 10, 9)]),
        ];
        for (text, wanted) in cases {
            let wanted: Vec<_> = wanted
                .iter()
                .map(|&(kind, offset, length)| (kind.to_owned(), offset, length))
                .collect();
            assert_eq!(kinds(text), wanted, "{text}");
        }
    }
}
