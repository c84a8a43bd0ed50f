//! Turns a text and its entities into platform-neutral text with mention tokens.
//!
//! Formatting becomes CommonMark marks; mentions become tokens of [`vocative_contract::markup`]. Entities of an
//! unknown type leave the text as it is.

use std::ops::Range;

use vocative_contract::envelope::{CommandTarget, CommandWord};
use vocative_contract::identity::Identity;
use vocative_contract::markup::{bounded, mention_token, neutral_text};
use vocative_contract::work::looked_at;

use super::entities::{Span, spans};
use super::wire::MessageEntity;

/// A text in neutral form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NeutralText {
    /// The text with marks and tokens.
    pub(super) text: String,
    /// The ids of its mentions, in order, each once.
    pub(super) mentions: Vec<String>,
}

impl NeutralText {
    /// Notes a mention and appends its token.
    pub(super) fn push_mention(&mut self, id: String) {
        self.text.push_str(&mention_token(&id));
        if !self.mentions.contains(&id) {
            self.mentions.push(id);
        }
    }

    /// Appends another neutral text between two marks, with its mentions.
    fn push_inner(&mut self, inner: Self, open: &str, close: &str) {
        looked_at(inner.text.len());
        let trimmed = inner.text.trim();
        if trimmed.is_empty() {
            self.text.push_str(&inner.text);
        } else {
            // Marks must touch the words they mark; white space stays outside.
            let start = inner.text.len() - inner.text.trim_start().len();
            self.text.push_str(&inner.text[..start]);
            self.text.push_str(open);
            self.text.push_str(trimmed);
            self.text.push_str(close);
            self.text.push_str(&inner.text[start + trimmed.len()..]);
        }
        self.take_mentions(inner.mentions);
    }

    fn take_mentions(&mut self, mentions: Vec<String>) {
        for id in mentions {
            if !self.mentions.contains(&id) {
                self.mentions.push(id);
            }
        }
    }
}

/// The neutral form of a text.
pub(super) fn neutral(text: &str, entities: &[MessageEntity], bot: &Identity) -> NeutralText {
    let text = bounded(text);
    let spans = spans(&text, entities);
    let mut out = NeutralText::default();
    push_range(&mut out, &text, 0..text.len(), &spans, bot);
    out
}

/// The id of a mention by username: the bot's user id, else the lower-cased `@username`.
pub(super) fn username_id(username: &str, bot: &Identity) -> String {
    let name = username.trim_start_matches('@').to_ascii_lowercase();
    let is_bot = bot
        .username
        .as_ref()
        .is_some_and(|own| own.eq_ignore_ascii_case(&name));
    if is_bot {
        bot.user_id.clone()
    } else {
        format!("@{}", neutral_text(&name))
    }
}

/// Whether a text can be a username, `@` or not. Anything else could make a mention that is cut apart, for example at a
/// line end.
pub(super) fn is_username(text: &str) -> bool {
    let name = text.strip_prefix('@').unwrap_or(text);
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The command that Telegram sends when a person opens a private chat with the bot.
const START: &str = "start";

/// The command a text opens with. Only an entity at offset 0 makes one.
pub(super) fn command_word(
    text: &str,
    entities: &[MessageEntity],
    bot: &Identity,
) -> Option<CommandWord> {
    let spans = spans(text, entities);
    let span = spans
        .iter()
        .find(|span| span.entity.kind == "bot_command" && span.range.start == 0)?;
    // A command inside a quotation does not count.
    let is_quoted = |it: &Span<'_>| {
        it.range.start == 0
            && matches!(
                it.entity.kind.as_str(),
                "blockquote" | "expandable_blockquote"
            )
    };
    if spans.iter().any(is_quoted) {
        return None;
    }
    let word = text[span.range.clone()].strip_prefix('/')?;
    let (name, target) = match word.split_once('@') {
        None => (word, CommandTarget::Anyone),
        Some((name, to)) if username_id(to, bot) == bot.user_id => (name, CommandTarget::ThisBot),
        Some((name, _)) => (name, CommandTarget::AnotherBot),
    };
    let name = name.to_ascii_lowercase();
    (!name.is_empty()).then(|| CommandWord {
        opens_chat: name == START,
        name,
        target,
    })
}

/// Appends a range of the text. `spans` are the entities that may start in it, outer before inner.
fn push_range(
    out: &mut NeutralText,
    text: &str,
    range: Range<usize>,
    spans: &[Span<'_>],
    bot: &Identity,
) {
    let mut at = range.start;
    let mut next = 0;
    while let Some(span) = spans.get(next) {
        if span.range.start >= range.end {
            break;
        }
        next += 1;
        // Telegram nests its entities. If one overlaps another, only those that nest count.
        if span.range.start < at || span.range.end > range.end {
            continue;
        }
        out.text
            .push_str(&neutral_text(&text[at..span.range.start]));
        let inner_count = spans[next..]
            .iter()
            .take_while(|inner| inner.range.start < span.range.end)
            .count();
        push_span(out, text, span, &spans[next..next + inner_count], bot);
        at = span.range.end;
        next += inner_count;
        let is_block = matches!(
            span.entity.kind.as_str(),
            "pre" | "blockquote" | "expandable_blockquote"
        );
        if is_block && at < range.end && !text[at..].starts_with('\n') {
            out.text.push('\n');
        }
    }
    out.text.push_str(&neutral_text(&text[at..range.end]));
}

/// Appends one entity with what it contains.
fn push_span(
    out: &mut NeutralText,
    text: &str,
    span: &Span<'_>,
    inner: &[Span<'_>],
    bot: &Identity,
) {
    let slice = &text[span.range.clone()];
    match span.entity.kind.as_str() {
        "mention" if is_username(slice) => return out.push_mention(username_id(slice, bot)),
        "text_mention" => {
            if let Some(user) = &span.entity.user {
                return out.push_mention(user.id.to_string());
            }
        }
        "code" => return out.text.push_str(&inline_code(&neutral_text(slice))),
        "pre" => {
            let language = span.entity.language.as_deref().unwrap_or_default();
            return push_block(out, &fenced_code(&neutral_text(slice), language));
        }
        _ => {}
    }
    let mut content = NeutralText::default();
    push_range(&mut content, text, span.range.clone(), inner, bot);
    match span.entity.kind.as_str() {
        "bold" => out.push_inner(content, "**", "**"),
        "italic" => out.push_inner(content, "_", "_"),
        "strikethrough" => out.push_inner(content, "~~", "~~"),
        "spoiler" => out.push_inner(content, "||", "||"),
        "text_link" => {
            let url = span.entity.url.as_deref().unwrap_or_default();
            match link_target(url) {
                Some(target) => out.push_inner(content, "[", &format!("]({target})")),
                None => out.push_inner(content, "", ""),
            }
        }
        "blockquote" | "expandable_blockquote" => {
            push_block(out, &quoted(&content.text));
            out.take_mentions(content.mentions);
        }
        _ => out.push_inner(content, "", ""),
    }
}

/// Appends a block that must start its own line.
fn push_block(out: &mut NeutralText, block: &str) {
    if !out.text.is_empty() && !out.text.ends_with('\n') {
        out.text.push('\n');
    }
    out.text.push_str(block);
}

/// A URL that can stand in a CommonMark link; `None` if it is empty or unsafe.
fn link_target(url: &str) -> Option<String> {
    let url = neutral_text(url);
    let url = url.trim();
    if url.is_empty() || url.contains(['\n', '\r', '<', '>']) {
        return None;
    }
    if url.contains(['(', ')', ' ']) {
        return Some(format!("<{url}>"));
    }
    Some(url.to_owned())
}

/// Inline code with a fence longer than any run of backticks inside.
fn inline_code(code: &str) -> String {
    if !code.contains('`') {
        return format!("`{code}`");
    }
    let fence = "`".repeat(longest_backticks(code) + 1);
    format!("{fence} {code} {fence}")
}

/// A fenced block with a fence longer than any run of backticks inside.
pub(super) fn fenced_code(code: &str, language: &str) -> String {
    let fence = "`".repeat((longest_backticks(code) + 1).max(3));
    let language: String = language
        .chars()
        .filter(|c| c.is_alphanumeric() || "+-#._".contains(*c))
        .collect();
    format!(
        "{fence}{language}\n{}\n{fence}",
        code.trim_end_matches('\n')
    )
}

fn longest_backticks(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// Every line with a quote mark.
pub(super) fn quoted(text: &str) -> String {
    looked_at(text.len());
    let lines: Vec<String> = text.lines().map(|line| format!("> {line}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::super::test_support::bot;
    use super::*;

    fn entities(value: Value) -> Vec<MessageEntity> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn entities_nested_without_end_do_not_use_up_the_stack() {
        let bold = json!({"type": "bold", "offset": 0, "length": 5});
        let got = neutral("hello", &entities(json!(vec![bold; 20_000])), &bot());
        assert!(got.text.ends_with("**") && got.text.contains("*hello*"));
        assert!(got.text.len() <= 5 + 4 * 10, "{}", got.text);
    }

    #[test]
    fn entities_become_marks_and_tokens() {
        let table = [
            ("plain *text*", json!([]), "plain *text*"),
            (
                "so bold!",
                json!([{"type": "bold", "offset": 3, "length": 4}]),
                "so **bold**!",
            ),
            (
                "a b c",
                json!([{"type": "italic", "offset": 1, "length": 3}]),
                "a _b_ c",
            ),
            (
                "gone",
                json!([{"type": "strikethrough", "offset": 0, "length": 4}]),
                "~~gone~~",
            ),
            (
                "run ls -l",
                json!([{"type": "code", "offset": 4, "length": 5}]),
                "run `ls -l`",
            ),
            (
                "a`b",
                json!([{"type": "code", "offset": 0, "length": 3}]),
                "`` a`b ``",
            ),
            (
                "see\nlet x;\nend",
                json!([{"type": "pre", "offset": 4, "length": 6, "language": "rust"}]),
                "see\n```rust\nlet x;\n```\nend",
            ),
            (
                "docs here",
                json!([{"type": "text_link", "offset": 0, "length": 4, "url": "https://e.org/a_(b)"}]),
                "[docs](<https://e.org/a_(b)>) here",
            ),
            (
                "one\ntwo",
                json!([{"type": "blockquote", "offset": 0, "length": 7}]),
                "> one\n> two",
            ),
            (
                "bold and both",
                json!([{"type": "bold", "offset": 0, "length": 13}, {"type": "italic", "offset": 9, "length": 4}]),
                "**bold and _both_**",
            ),
            (
                "same",
                json!([{"type": "bold", "offset": 0, "length": 4}, {"type": "italic", "offset": 0, "length": 4}]),
                "**_same_**",
            ),
            // Overlapping entities, which Telegram does not send: the first one wins.
            (
                "abcdef",
                json!([{"type": "bold", "offset": 0, "length": 4}, {"type": "italic", "offset": 2, "length": 4}]),
                "**abcd**ef",
            ),
            (
                "unknown kind",
                json!([{"type": "sparkle", "offset": 0, "length": 7}]),
                "unknown kind",
            ),
            (
                "short",
                json!([{"type": "bold", "offset": 3, "length": 40}]),
                "short",
            ),
            (
                "  ",
                json!([{"type": "bold", "offset": 0, "length": 2}]),
                "  ",
            ),
        ];
        for (text, list, expected) in table {
            assert_eq!(neutral(text, &entities(list), &bot()).text, expected);
        }
    }

    #[test]
    fn mentions_become_tokens_of_ids() {
        let text = "👍 @Team_Bot ask Ann and @Bob";
        let got = neutral(
            text,
            &entities(json!([
                {"type": "mention", "offset": 3, "length": 9},
                {"type": "text_mention", "offset": 17, "length": 3, "user": {"id": 42}},
                {"type": "bold", "offset": 25, "length": 4},
                {"type": "mention", "offset": 25, "length": 4},
            ])),
            &bot(),
        );
        let expected = NeutralText {
            text: format!(
                "👍 {} ask {} and **{}**",
                mention_token("777"),
                mention_token("42"),
                mention_token("@bob")
            ),
            mentions: vec!["777".to_owned(), "42".to_owned(), "@bob".to_owned()],
        };
        assert_eq!(got, expected);
    }

    #[test]
    fn a_mention_of_what_is_no_username_is_text() {
        let list = entities(json!([
            {"type": "blockquote", "offset": 0, "length": 4},
            {"type": "mention", "offset": 1, "length": 2},
        ]));
        let got = neutral("a@\nb", &list, &bot());
        assert_eq!((got.text.as_str(), got.mentions.len()), ("> a@\n> b", 0));
    }

    #[test]
    fn a_token_in_the_text_is_no_mention() {
        let got = neutral("hi \u{FFF9}777\u{FFFB}", &[], &bot());
        assert_eq!(
            got,
            NeutralText {
                text: "hi 777".to_owned(),
                mentions: Vec::new()
            }
        );
    }

    #[test]
    fn commands_know_their_target() {
        let command = |text: &str, offset: i64, length: i64| {
            let list =
                entities(json!([{"type": "bot_command", "offset": offset, "length": length}]));
            command_word(text, &list, &bot()).map(|word| (word.name, word.target))
        };
        let word = |name: &str, target| Some((name.to_owned(), target));
        assert_eq!(
            command("/Ask what", 0, 4),
            word("ask", CommandTarget::Anyone)
        );
        assert_eq!(
            command("/ask@TEAM_bot x", 0, 13),
            word("ask", CommandTarget::ThisBot)
        );
        assert_eq!(
            command("/ask@other_bot x", 0, 14),
            word("ask", CommandTarget::AnotherBot)
        );
        assert_eq!(command("do /ask", 3, 4), None);
        assert_eq!(command("/ask", 0, 40), None);
        assert_eq!(command("/", 0, 1), None);
    }

    proptest! {
        #[test]
        fn no_entity_list_panics_or_forges_a_mention(
            text in "\\PC{0,30}|[a👍` \n\u{FFF9}\u{FFFB}]{0,30}",
            list in prop::collection::vec(
                (prop::sample::select(vec!["bold", "italic", "code", "pre", "text_link", "mention",
                    "blockquote", "custom_emoji", "spoiler"]), -2_i64..35, -2_i64..35),
                0..8,
            ),
        ) {
            let list: Vec<Value> = list.into_iter()
                .map(|(kind, offset, length)| json!({"type": kind, "offset": offset, "length": length, "url": "https://e.org"}))
                .collect();
            let list = entities(Value::Array(list));
            let got = neutral(&text, &list, &bot());
            let ids = vocative_contract::markup::mentioned_ids(&got.text);
            prop_assert!(ids.iter().all(|id| got.mentions.contains(id)));
            prop_assert!(got.mentions.iter().all(|id| ids.contains(id)));
            if list.iter().all(|entity| entity.kind != "mention") {
                prop_assert!(ids.is_empty());
            }
        }
    }
}
