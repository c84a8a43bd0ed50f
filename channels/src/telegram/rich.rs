//! Flattens a structured message (`rich_message`) into neutral text.
//!
//! Blocks and runs are a growing family, so they are read by their common field names: an unknown
//! block still gives its words.

use std::collections::HashSet;

use serde_json::{Map, Value};

use vocative_contract::identity::Identity;
use vocative_contract::markup::{bounded, neutral_text};

use super::text::{NeutralText, fenced_code, is_username, quoted, username_id};

/// The fields that hold content, in reading order.
const CONTENT_FIELDS: [&str; 8] = [
    "summary", "text", "blocks", "items", "cells", "caption", "credit", "button",
];

/// The neutral form of a `rich_message`.
pub(super) fn flatten(rich_message: &Value, bot: &Identity) -> NeutralText {
    let mut mentions = Mentioned::default();
    let text = blocks(rich_message.get("blocks"), bot, &mut mentions);
    NeutralText {
        text: bounded(&text).into_owned(),
        mentions: mentions.ids,
    }
}

/// Whom a message mentions.
#[derive(Default)]
struct Mentioned {
    /// In order, each once.
    ids: Vec<String>,
    known: HashSet<String>,
}

impl Mentioned {
    fn note(&mut self, id: String) {
        if self.known.insert(id.clone()) {
            self.ids.push(id);
        }
    }
}

fn blocks(list: Option<&Value>, bot: &Identity, mentions: &mut Mentioned) -> String {
    let Some(Value::Array(list)) = list else {
        return String::new();
    };
    let texts: Vec<String> = list
        .iter()
        .map(|item| block(item, bot, mentions))
        .filter(|text| !text.trim().is_empty())
        .collect();
    texts.join("\n\n")
}

fn block(value: &Value, bot: &Identity, mentions: &mut Mentioned) -> String {
    let Value::Object(fields) = value else {
        return run(value, bot, mentions);
    };
    let kind = fields.get("type").and_then(Value::as_str).unwrap_or("");
    match kind {
        "section_heading" | "heading" => {
            let level = fields.get("size").and_then(Value::as_u64).unwrap_or(2);
            let marks = "#".repeat(usize::try_from(level.clamp(1, 6)).unwrap_or(2));
            format!("{marks} {}", content(fields, bot, mentions))
        }
        "preformatted" => {
            let language = fields.get("language").and_then(Value::as_str);
            fenced_code(
                &content(fields, bot, mentions),
                language.unwrap_or_default(),
            )
        }
        "divider" => "---".to_owned(),
        "anchor" => String::new(),
        "block_quotation" | "expandable_block_quotation" | "pull_quotation" => {
            quoted(&content(fields, bot, mentions))
        }
        "list" => list_items(fields, bot, mentions),
        "table" => table_rows(fields, bot, mentions),
        "photo" | "video" | "audio" | "document" | "animation" | "voice_note" | "map" => {
            let caption = content(fields, bot, mentions);
            format!("[{}] {caption}", kind.replace('_', " "))
                .trim_end()
                .to_owned()
        }
        _ => content(fields, bot, mentions),
    }
}

fn list_items(fields: &Map<String, Value>, bot: &Identity, mentions: &mut Mentioned) -> String {
    let Some(Value::Array(items)) = fields.get("items") else {
        return String::new();
    };
    let mut lines = Vec::new();
    for item in items {
        let is_true = |name: &str| item.get(name) == Some(&Value::Bool(true));
        let label = item.get("label").and_then(Value::as_str).unwrap_or("-");
        let mark = match (is_true("has_checkbox"), is_true("is_checked")) {
            (true, true) => "- [x]".to_owned(),
            (true, false) => "- [ ]".to_owned(),
            _ if label.starts_with(|c: char| c.is_ascii_digit()) => neutral_text(label),
            _ => "-".to_owned(),
        };
        let text = blocks(item.get("blocks"), bot, mentions);
        lines.push(format!("{mark} {}", text.replace('\n', "\n  ")));
    }
    lines.join("\n")
}

fn table_rows(fields: &Map<String, Value>, bot: &Identity, mentions: &mut Mentioned) -> String {
    let Some(Value::Array(rows)) = fields.get("cells") else {
        return String::new();
    };
    let mut lines = Vec::new();
    for row in rows {
        let Value::Array(cells) = row else { continue };
        let texts: Vec<String> = cells
            .iter()
            .map(|cell| block(cell, bot, mentions))
            .collect();
        lines.push(format!("| {} |", texts.join(" | ")));
    }
    if let Some(caption) = fields.get("caption") {
        lines.push(run(caption, bot, mentions));
    }
    lines.join("\n")
}

/// What an object contains, by its common field names.
fn content(fields: &Map<String, Value>, bot: &Identity, mentions: &mut Mentioned) -> String {
    let mut parts = Vec::new();
    for name in CONTENT_FIELDS {
        let Some(value) = fields.get(name) else {
            continue;
        };
        let text = if name == "blocks" {
            blocks(Some(value), bot, mentions)
        } else {
            run(value, bot, mentions)
        };
        if !text.is_empty() {
            parts.push(text);
        }
    }
    if parts.is_empty() {
        let plain = ["expression", "alternative_text"];
        let found = plain.iter().find_map(|name| fields.get(*name)?.as_str());
        return found.map(neutral_text).unwrap_or_default();
    }
    parts.join("\n")
}

/// A run of rich text: a string, a list of runs, or an object around one.
fn run(value: &Value, bot: &Identity, mentions: &mut Mentioned) -> String {
    match value {
        Value::String(text) => neutral_text(text),
        Value::Array(runs) => runs.iter().map(|item| run(item, bot, mentions)).collect(),
        Value::Object(fields) => run_object(fields, bot, mentions),
        _ => String::new(),
    }
}

fn run_object(fields: &Map<String, Value>, bot: &Identity, mentions: &mut Mentioned) -> String {
    let kind = fields.get("type").and_then(Value::as_str).unwrap_or("");
    let mention = match kind {
        "mention" => fields
            .get("username")
            .and_then(Value::as_str)
            .filter(|name| is_username(name))
            .map(|name| username_id(name, bot)),
        "text_mention" => fields
            .get("user")
            .and_then(|user| user.get("id"))
            .and_then(Value::as_i64)
            .map(|id| id.to_string()),
        _ => None,
    };
    if let Some(id) = mention {
        let token = vocative_contract::markup::mention_token(&id);
        mentions.note(id);
        return token;
    }
    let text = content(fields, bot, mentions);
    let marks = match kind {
        "bold" => "**",
        "italic" => "_",
        "strikethrough" => "~~",
        "code" => "`",
        _ => "",
    };
    let link = fields.get("url").and_then(Value::as_str).unwrap_or("");
    if kind == "url" && !link.is_empty() && link != text {
        return format!("[{text}]({})", neutral_text(link));
    }
    format!("{marks}{text}{marks}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::test_support::bot;
    use super::*;
    use vocative_contract::markup::mention_token;

    #[test]
    fn every_block_gives_its_words() {
        let rich = json!({"blocks": [
            {"type": "section_heading", "size": 2, "text": "Report"},
            {"type": "paragraph", "text": ["All ", {"type": "bold", "text": "good"}, ", ",
                {"type": "mention", "text": "@Team_bot", "username": "Team_bot"}]},
            {"type": "list", "items": [
                {"label": "1.", "blocks": [{"type": "paragraph", "text": "first"}]},
                {"label": "•", "blocks": [{"type": "paragraph", "text": "second"}]},
                {"label": "", "has_checkbox": true, "is_checked": true,
                 "blocks": [{"type": "paragraph", "text": "done"}]},
            ]},
            {"type": "preformatted", "language": "sh", "text": "ls"},
            {"type": "block_quotation", "blocks": [{"type": "paragraph", "text": "said"}]},
            {"type": "table", "cells": [[{"text": "a"}, {"text": "b"}], [{"text": "1"}, {"text": "2"}]]},
            {"type": "photo", "photo": [], "caption": {"text": "a chart"}},
            {"type": "divider"},
            {"type": "from_the_future", "text": {"type": "new_run", "text": "still read"}},
            null, 7,
        ]});
        let got = flatten(&rich, &bot());
        assert_eq!(
            got.text,
            format!(
                "## Report\n\nAll **good**, {}\n\n1. first\n- second\n- [x] done\n\n```sh\nls\n```\n\n\
                 > said\n\n| a | b |\n| 1 | 2 |\n\n[photo] a chart\n\n---\n\nstill read",
                mention_token("777")
            )
        );
        assert_eq!(got.mentions, ["777"]);
        assert_eq!(flatten(&json!("nothing"), &bot()), NeutralText::default());
    }
}
