//! What the parsers of `parse_mode` share: the text that grows, and addresses of links.
//!
//! Pure. The parsers are in `html` and `markdown`.

use serde_json::{Map, Value};

use super::entities::TextEntity;
use super::text::Formatted;

/// The result of parsing; the error is in the platform's words.
pub(super) type Parsed = Result<Formatted, String>;

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
pub(super) struct MarkupOutput {
    pub(super) text: String,
    pub(super) units: usize,
    pub(super) entities: Vec<TextEntity>,
}

impl MarkupOutput {
    pub(super) fn push(&mut self, c: char) {
        self.text.push(c);
        self.units += c.len_utf16();
    }

    pub(super) fn close(&mut self, kind: &str, begin: usize, extra: Map<String, Value>) {
        if self.units > begin {
            self.entities.push(TextEntity {
                extra,
                ..TextEntity::new(kind, begin, self.units - begin)
            });
        }
    }

    pub(super) fn finish(mut self) -> Formatted {
        self.entities
            .sort_by_key(|entity| (entity.offset, usize::MAX - entity.length));
        Formatted {
            text: self.text,
            entities: self.entities,
        }
    }
}

/// The one further field of an entity.
pub(super) fn one(name: &str, value: &str) -> Map<String, Value> {
    Map::from_iter([(name.to_owned(), Value::from(value))])
}

/// The last `units` UTF-16 units of a text.
pub(super) fn last_units(text: &str, units: usize) -> String {
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
