//! From what a bot sends to what people see: normalising, the `entities` array, limits.
//!
//! Owns the rules and their error texts. Pure. Parsing of markup is in `markup`.

use serde_json::{Map, Value};

use super::entities::{TextEntity, detect, utf16_len};
use super::failure::ApiFailure;
use super::{html, markdown, markup};

/// Raw text over this many bytes is refused before any markup is looked at.
const RAW_TEXT_BYTES_MAX: usize = 32_768;
/// More formatting entities than this are dropped.
const FORMATTING_MAX: usize = 100;
/// Styles that may overlap each other.
const STYLES: [&str; 5] = ["bold", "italic", "underline", "strikethrough", "spoiler"];
/// Types that are accepted and then found again by detection.
const DETECTED: [&str; 8] = [
    "mention",
    "hashtag",
    "cashtag",
    "bot_command",
    "url",
    "email",
    "phone_number",
    "bank_card_number",
];

/// A text with its entities, as a message carries it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Formatted {
    pub(super) text: String,
    pub(super) entities: Vec<TextEntity>,
}

impl Formatted {
    pub(super) fn entities_json(&self) -> Value {
        self.entities.iter().map(TextEntity::as_json).collect()
    }
}

/// Which limits apply to a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextKind {
    /// The text of a message: 1 to 4096 characters.
    Message,
    /// A caption: 0 to 1024 characters.
    Caption,
}

/// What the platform stores for a text sent with these entities: the text, and all entities of it.
///
/// # Errors
/// The platform's description of why it refuses them.
pub fn stored_text(text: &str, entities: Option<&Value>) -> Result<(String, Value), String> {
    let array = entities.map(Value::to_string);
    formatted(text, None, array.as_deref(), TextKind::Message)
        .map(|stored| (stored.entities_json(), stored.text))
        .map(|(entities, text)| (text, entities))
        .map_err(|failure| failure.description)
}

/// Turns the parameters of a call into the text that will be stored.
pub(super) fn formatted(
    raw: &str,
    parse_mode: Option<&str>,
    entities: Option<&str>,
    kind: TextKind,
) -> Result<Formatted, ApiFailure> {
    if raw.is_empty() {
        return match kind {
            TextKind::Message => Err(ApiFailure::bad("message text is empty")),
            TextKind::Caption => Ok(Formatted::default()),
        };
    }
    if raw.len() > RAW_TEXT_BYTES_MAX {
        return Err(ApiFailure::bad("text is too long"));
    }
    let mode = parse_mode.unwrap_or("").to_ascii_lowercase();
    let parsed = match mode.as_str() {
        "" | "none" => Formatted {
            text: raw.to_owned(),
            entities: parse_array(entities, raw)?,
        },
        "html" => html::html(raw).map_err(|why| unparsable(&why))?,
        "markdownv2" => markdown::markdown_v2(raw).map_err(|why| unparsable(&why))?,
        "markdown" => markdown::markdown(raw).map_err(|why| unparsable(&why))?,
        _ => return Err(ApiFailure::bad("unsupported parse_mode")),
    };
    let text = finish(parsed);
    match kind {
        TextKind::Message if text.text.is_empty() => Err(ApiFailure::bad("text must be non-empty")),
        TextKind::Message if text.text.chars().count() > 4096 => {
            Err(ApiFailure::bad("message is too long"))
        }
        TextKind::Caption if text.text.chars().count() > 1024 => {
            Err(ApiFailure::bad("message caption is too long"))
        }
        _ => Ok(text),
    }
}

fn unparsable(why: &str) -> ApiFailure {
    ApiFailure::bad(&format!("can't parse entities: {why}"))
}

/// Reads an `entities` array and checks every offset against the text.
fn parse_array(raw: Option<&str>, text: &str) -> Result<Vec<TextEntity>, ApiFailure> {
    let Some(raw) = raw.filter(|raw| !raw.is_empty()) else {
        return Ok(Vec::new());
    };
    let Ok(value) = serde_json::from_str::<Value>(raw) else {
        return Err(ApiFailure::bad("can't parse entities JSON object"));
    };
    // A `null`, or anything that is no array, is no entities at all.
    let Some(items) = value.as_array() else {
        return Ok(Vec::new());
    };
    let mut entities = Vec::new();
    for item in items {
        if let Some(entity) = parse_one(item, text)? {
            entities.push(entity);
        }
    }
    entities.sort_by_key(|entity| (entity.offset, usize::MAX - entity.length));
    Ok(entities)
}

fn parse_one(item: &Value, text: &str) -> Result<Option<TextEntity>, ApiFailure> {
    let bad = |why: &str| ApiFailure::bad(&format!("can't parse MessageEntity: {why}"));
    let object = item.as_object().ok_or_else(|| bad("expected an Object"))?;
    let number = |name: &str| {
        let value = object.get(name);
        value
            .and_then(|value| value.as_i64().or_else(|| value.as_str()?.parse().ok()))
            .ok_or_else(|| bad(&format!("Can't find field \"{name}\"")))
    };
    let (offset, length) = (number("offset")?, number("length")?);
    let kind = object
        .get("type")
        .and_then(Value::as_str)
        .ok_or_else(|| bad("Can't find field \"type\""))?;
    let extra = match kind {
        kind if DETECTED.contains(&kind) => {
            check_range(text, offset, length)?;
            return Ok(None);
        }
        kind if STYLES.contains(&kind) => Map::new(),
        "code" | "blockquote" | "expandable_blockquote" => Map::new(),
        "pre" => kept(object, &["language"]),
        "text_link" => link(object)?,
        "text_mention"
            if object
                .get("user")
                .is_none_or(|user| user["id"].as_i64().unwrap_or(0) <= 0) =>
        {
            return Err(bad("Can't find field \"user\""));
        }
        "text_mention" => kept(object, &["user"]),
        "custom_emoji" => kept(object, &["custom_emoji_id"]),
        "date_time" => kept(object, &["unix_time", "date_time_format"]),
        _ => return Err(bad("Unsupported type specified")),
    };
    let (offset, length) = check_range(text, offset, length)?;
    Ok((length > 0).then(|| TextEntity {
        extra,
        ..TextEntity::new(kind, offset, length)
    }))
}

fn kept(object: &Map<String, Value>, names: &[&str]) -> Map<String, Value> {
    names
        .iter()
        .filter_map(|&name| Some((name.to_owned(), object.get(name)?.clone())))
        .collect()
}

fn link(object: &Map<String, Value>) -> Result<Map<String, Value>, ApiFailure> {
    let url = object.get("url").and_then(Value::as_str).unwrap_or("");
    let Some(url) = markup::link_url(url) else {
        return Err(ApiFailure::bad(&format!(
            "entity URL '{url}' is invalid: Wrong HTTP URL"
        )));
    };
    Ok(Map::from_iter([("url".to_owned(), Value::from(url))]))
}

/// Checks that a range is inside the text and on character boundaries.
fn check_range(text: &str, offset: i64, length: i64) -> Result<(usize, usize), ApiFailure> {
    let Ok(begin) = usize::try_from(offset) else {
        return Err(ApiFailure::bad(&format!(
            "receive an entity with incorrect offset {offset}"
        )));
    };
    let Ok(units) = usize::try_from(length) else {
        return Err(ApiFailure::bad(&format!(
            "receive an entity with incorrect length {length}"
        )));
    };
    let end = begin + units;
    if units > 0 && end > utf16_len(text) {
        return Err(ApiFailure::bad(&format!(
            "entity beginning at UTF-16 offset {begin} ends after the end of the text at UTF-16 offset {end}"
        )));
    }
    let mut at = 0;
    for (byte, c) in text.char_indices() {
        let inside = |point: usize| at < point && point < at + c.len_utf16();
        if inside(begin) {
            return Err(ApiFailure::bad(&format!(
                "entity begins in a middle of a UTF-16 symbol at byte offset {byte}"
            )));
        }
        if inside(end) {
            return Err(ApiFailure::bad(&format!(
                "entity ends in a middle of a UTF-16 symbol at byte offset {byte}"
            )));
        }
        at += c.len_utf16();
    }
    Ok((begin, units))
}

/// Cleans and trims the text, untangles the entities and adds the detected ones.
fn finish(parsed: Formatted) -> Formatted {
    let cleaned = trim(clean(parsed));
    let mut entities = cap(untangle(cleaned.entities));
    let user = entities.clone();
    let blocked = |found: &TextEntity| {
        user.iter().any(|entity| {
            matches!(
                entity.kind.as_str(),
                "code" | "pre" | "text_link" | "text_mention" | "custom_emoji"
            ) && entity.overlaps(found)
        })
    };
    entities.extend(
        detect(&cleaned.text)
            .into_iter()
            .filter(|found| !blocked(found)),
    );
    entities.sort_by_key(|entity| (entity.offset, usize::MAX - entity.length));
    Formatted {
        text: cleaned.text,
        entities,
    }
}

/// Control characters and tabs become spaces; `\r` and U+2028..U+202E are removed.
fn clean(parsed: Formatted) -> Formatted {
    let mut text = String::with_capacity(parsed.text.len());
    let mut map = Vec::new();
    let mut at = 0;
    for c in parsed.text.chars() {
        for _ in 0..c.len_utf16() {
            map.push(at);
        }
        match c {
            '\r' | '\u{2028}'..='\u{202e}' => {}
            '\n' => {
                text.push('\n');
                at += 1;
            }
            c if c.is_control() => {
                text.push(' ');
                at += 1;
            }
            c => {
                text.push(c);
                at += c.len_utf16();
            }
        }
    }
    map.push(at);
    let entities = remap(parsed.entities, |unit| map[unit.min(map.len() - 1)]);
    Formatted { text, entities }
}

/// Trims both ends; at the front only as far as the first entity.
fn trim(parsed: Formatted) -> Formatted {
    let blank = |c: char| c == ' ' || c == '\n';
    let kept = parsed.text.trim_end_matches(blank);
    let first = parsed.entities.iter().map(|entity| entity.offset).min();
    let leading = kept.chars().take_while(|&c| blank(c)).count();
    let cut = leading.min(first.unwrap_or(usize::MAX));
    // Blank characters are one byte and one UTF-16 unit each.
    let text = kept[cut..].to_owned();
    let end = utf16_len(&text);
    let entities = remap(parsed.entities, |unit| unit.saturating_sub(cut).min(end));
    Formatted { text, entities }
}

fn remap(entities: Vec<TextEntity>, map: impl Fn(usize) -> usize) -> Vec<TextEntity> {
    entities
        .into_iter()
        .map(|entity| {
            let (begin, end) = (map(entity.offset), map(entity.end()));
            TextEntity {
                offset: begin,
                length: end - begin,
                ..entity
            }
        })
        .filter(|entity| entity.length > 0)
        .collect()
}

/// Makes entities nest: nothing inside code, no link in a link, styles split where they overlap.
fn untangle(entities: Vec<TextEntity>) -> Vec<TextEntity> {
    let is_style = |entity: &TextEntity| STYLES.contains(&entity.kind.as_str());
    let (styles, rest): (Vec<_>, Vec<_>) = entities.into_iter().partition(is_style);
    let mut kept: Vec<TextEntity> = Vec::new();
    for entity in rest {
        let quote = entity.kind.ends_with("blockquote");
        let clash = kept.iter().any(|other| {
            let other_quote = other.kind.ends_with("blockquote");
            other.overlaps(&entity) && quote == other_quote
        });
        if !clash {
            kept.push(entity);
        }
    }
    for style in STYLES {
        let ranges = styles.iter().filter(|entity| entity.kind == style);
        let pieces = without_code(merged(ranges), &kept);
        let cuts = edges(&kept, &styles, style);
        for (begin, end) in pieces {
            for (begin, end) in split_at(begin, end, &cuts) {
                kept.push(TextEntity::new(style, begin, end - begin));
            }
        }
    }
    kept.sort_by_key(|entity| (entity.offset, usize::MAX - entity.length));
    kept
}

fn merged<'e>(ranges: impl Iterator<Item = &'e TextEntity>) -> Vec<(usize, usize)> {
    let mut sorted: Vec<_> = ranges.map(|entity| (entity.offset, entity.end())).collect();
    sorted.sort_unstable();
    let mut out: Vec<(usize, usize)> = Vec::new();
    for (begin, end) in sorted {
        match out.last_mut() {
            Some(last) if begin <= last.1 => last.1 = last.1.max(end),
            _ => out.push((begin, end)),
        }
    }
    out
}

fn without_code(mut pieces: Vec<(usize, usize)>, kept: &[TextEntity]) -> Vec<(usize, usize)> {
    for code in kept
        .iter()
        .filter(|entity| matches!(entity.kind.as_str(), "code" | "pre"))
    {
        pieces = pieces
            .into_iter()
            .flat_map(|(begin, end)| [(begin, end.min(code.offset)), (begin.max(code.end()), end)])
            .filter(|(begin, end)| begin < end)
            .collect();
    }
    pieces
}

/// Points where a style has to be cut so that it crosses no other entity's border.
fn edges(kept: &[TextEntity], styles: &[TextEntity], style: &str) -> Vec<(usize, usize)> {
    let earlier = STYLES.iter().take_while(|&&other| other != style);
    let earlier: Vec<_> = earlier.collect();
    kept.iter()
        .chain(styles)
        .filter(|entity| {
            entity.kind != style
                && (!STYLES.contains(&entity.kind.as_str())
                    || earlier.contains(&&entity.kind.as_str()))
        })
        .map(|entity| (entity.offset, entity.end()))
        .collect()
}

fn split_at(begin: usize, end: usize, others: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let mut cuts: Vec<usize> = others
        .iter()
        .filter_map(|&(from, to)| match () {
            () if from < begin && begin < to && to < end => Some(to),
            () if begin < from && from < end && end < to => Some(from),
            () => None,
        })
        .chain([begin, end])
        .collect();
    cuts.sort_unstable();
    cuts.dedup();
    cuts.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

/// Keeps at most 100 formatting entities; code, links and quotes are counted first, custom emoji
/// are not counted.
fn cap(entities: Vec<TextEntity>) -> Vec<TextEntity> {
    let is_style = |entity: &TextEntity| STYLES.contains(&entity.kind.as_str());
    let is_counted = |entity: &TextEntity| entity.kind != "custom_emoji";
    let firm = entities
        .iter()
        .filter(|entity| !is_style(entity) && is_counted(entity))
        .count();
    let mut firm_left = FORMATTING_MAX;
    let mut styles_left = FORMATTING_MAX.saturating_sub(firm);
    entities
        .into_iter()
        .filter(|entity| {
            if !is_counted(entity) {
                return true;
            }
            let left = if is_style(entity) {
                &mut styles_left
            } else {
                &mut firm_left
            };
            let keep = *left > 0;
            *left = left.saturating_sub(1);
            keep
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn sent(raw: &str, entities: &str) -> Result<Vec<(String, usize, usize)>, String> {
        formatted(raw, None, Some(entities), TextKind::Message)
            .map(|text| {
                text.entities
                    .into_iter()
                    .map(|entity| (entity.kind, entity.offset, entity.length))
                    .collect()
            })
            .map_err(|failure| failure.description)
    }

    #[test]
    fn text_is_cleaned_and_trimmed_with_its_entities() {
        let array = r#"[{"type":"bold","offset":3,"length":2}]"#;
        let text = formatted(" \r\tab\n ", None, Some(array), TextKind::Message).unwrap();
        assert_eq!(text.text, "ab");
        assert_eq!(text.entities, [TextEntity::new("bold", 0, 2)]);
    }

    #[test]
    fn bad_entities_are_refused_with_the_platforms_words() {
        let cases = [
            (
                "👍 ok",
                r#"[{"type":"bold","offset":1,"length":2}]"#,
                "entity begins in a middle of a UTF-16 symbol at byte offset 0",
            ),
            (
                "ok",
                r#"[{"type":"bold","offset":1,"length":20}]"#,
                "entity beginning at UTF-16 offset 1 ends after the end of the text at UTF-16 offset 21",
            ),
            (
                "ok",
                r#"[{"type":"bold","offset":-1,"length":2}]"#,
                "receive an entity with incorrect offset -1",
            ),
            (
                "ok",
                r#"[{"type":"blink","offset":0,"length":2}]"#,
                "can't parse MessageEntity: Unsupported type specified",
            ),
        ];
        for (text, entities, why) in cases {
            assert_eq!(sent(text, entities), Err(format!("Bad Request: {why}")));
        }
    }

    #[test]
    fn overlapping_styles_are_split_and_code_holds_nothing() {
        let overlap =
            r#"[{"type":"bold","offset":0,"length":4},{"type":"italic","offset":2,"length":4}]"#;
        let wanted = [("bold", 0, 4), ("italic", 2, 2), ("italic", 4, 2)];
        let wanted = wanted.map(|(kind, offset, length)| (kind.to_owned(), offset, length));
        assert_eq!(sent("abcdef", overlap).unwrap(), wanted);
        let code =
            r#"[{"type":"bold","offset":0,"length":6},{"type":"code","offset":2,"length":2}]"#;
        let wanted = [("bold", 0, 2), ("code", 2, 2), ("bold", 4, 2)];
        let wanted = wanted.map(|(kind, offset, length)| (kind.to_owned(), offset, length));
        assert_eq!(sent("abcdef", code).unwrap(), wanted);
    }

    #[test]
    fn the_hundred_and_first_entity_is_dropped() {
        let items: Vec<String> = (0..101)
            .map(|n| format!(r#"{{"type":"code","offset":{},"length":1}}"#, n * 2))
            .collect();
        let array = format!("[{}]", items.join(","));
        assert_eq!(sent(&"a ".repeat(101), &array).unwrap().len(), 100);
    }
}
