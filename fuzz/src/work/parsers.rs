//! The parsers of text that comes in and of text that goes out, behind one face.

use std::borrow::Cow;
use std::hint::black_box;

use serde_json::{Value, json};
use vocative::llm::fuzzing::without_thoughts;
use vocative_channels::render::{noted, prefixed};
use vocative_channels::slack::{
    SlackDelivery, fuzzing as slack_doors, translate as translate_slack,
};
use vocative_channels::{slack, telegram};
use vocative_contract::capability::LengthUnit;
use vocative_contract::envelope::{Event, InboundMessage};
use vocative_contract::error::Fallback;
use vocative_contract::live::so_far;
use vocative_contract::markup::{mention_token, one_line, replace_mentions};
use vocative_contract::outbound::Part;
use vocative_contract::people::{People, Person};
use vocative_contract::split::split_text;
use vocative_core::addressing::MessageFacts;
use vocative_core::decode::decoded;
use vocative_core::judging::addressees::addressing;
use vocative_core::judging::judge::judge;
use vocative_core::judging::speech::spoken_text;
use vocative_core::knowledge::{Format, chunked};
use vocative_core::prompting::Utf16Div4;
use vocative_core::prompting::files::{FileContent, FileLimits, PromptFile, fit_files};

use crate::targets::{NOW_MS, policies, slack_bot, telegram_bot};

/// Something that reads a text.
#[derive(Clone, Copy, Debug)]
pub struct Parser {
    /// What it is.
    pub name: &'static str,
    /// Where its texts come from.
    pub way: Way,
    /// What it is given for a text.
    pub prepare: fn(&str) -> Cow<'_, str>,
    /// Reads it.
    pub parse: fn(&str),
}

/// Where a text comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From people.
    In,
    /// From models.
    Out,
}

const fn inbound(name: &'static str, parse: fn(&str)) -> Parser {
    Parser {
        name,
        way: Way::In,
        prepare: as_it_is,
        parse,
    }
}

const fn outbound(name: &'static str, parse: fn(&str)) -> Parser {
    Parser {
        way: Way::Out,
        ..inbound(name, parse)
    }
}

/// All of them.
pub const PARSERS: &[Parser] = &[
    inbound("Slack text", |text| {
        drop(black_box(slack_doors::neutral(text)));
    }),
    Parser {
        prepare: slack_message,
        ..inbound("Slack message", slack_event)
    },
    Parser {
        prepare: slack_rich_text,
        ..inbound("Slack rich text", slack_event)
    },
    inbound("Telegram text", telegram_text),
    inbound("Telegram nested entities", telegram_nested),
    inbound("code and links of a message", |text| {
        drop(black_box(spoken_text(text)));
    }),
    inbound("whom a message addresses", whom),
    inbound("what a message asks for", asked),
    inbound("a search for it", |text| {
        drop(black_box(vocative_store::fuzzing::found(text, text)));
    }),
    inbound("a search in it", |text| {
        drop(black_box(vocative_store::fuzzing::found(
            "a \"a b\" dep*",
            text,
        )));
    }),
    inbound("an erased text in itself", |text| {
        drop(black_box(vocative_store::fuzzing::erased(text, text)));
    }),
    inbound("an erased text in another", |text| {
        let with_more = text.replace('a', "ab");
        drop(black_box(vocative_store::fuzzing::erased(text, &with_more)));
    }),
    inbound("a document in a prompt", document),
    inbound("a document of Markdown", |text| {
        drop(black_box(chunked(Format::Markdown, text)));
    }),
    inbound("a document of HTML", |text| {
        drop(black_box(chunked(Format::Html, text)));
    }),
    inbound("mention tokens", tokens),
    inbound("names", |text| drop(black_box(one_line(text)))),
    outbound("a message that `show` prints", |text| {
        drop(black_box(vocative::cli::fuzzing::shown(text)));
    }),
    outbound("a message in a Markdown export", |text| {
        drop(black_box(vocative::cli::fuzzing::exported(text)));
    }),
    outbound("thoughts of a model", |text| {
        drop(black_box(without_thoughts(text, 16)));
    }),
    outbound("Slack posts", |text| {
        drop(black_box(slack::render(text, &room())));
    }),
    outbound("Telegram posts", |text| {
        drop(black_box(telegram::render(text, &room())));
    }),
    outbound("refused Slack posts", refused_slack),
    outbound("refused Telegram posts", refused_telegram),
    outbound("plain pieces", pieces),
    outbound("an answer that grows", |text| drop(black_box(so_far(text)))),
    outbound("notes around an answer", |text| {
        drop(black_box((prefixed("(1) ", text), noted(text, "(end)"))));
    }),
];

fn as_it_is(text: &str) -> Cow<'_, str> {
    Cow::Borrowed(text)
}

fn slack_message(text: &str) -> Cow<'_, str> {
    event(&json!({"text": text}))
}

/// A text in one element, and the same in many.
fn slack_rich_text(text: &str) -> Cow<'_, str> {
    let half = (0..=text.len() / 2)
        .rev()
        .find(|at| text.is_char_boundary(*at));
    let (one, many) = text.split_at(half.unwrap_or(0));
    let leaf = |text: &str| json!({"type": "text", "text": text, "style": {"bold": true}});
    let mut elements = vec![leaf(one)];
    let words = many.split_inclusive(char::is_whitespace);
    elements.extend(words.take(2_000).map(leaf));
    let blocks = json!([{"type": "rich_text", "elements": [
        {"type": "rich_text_quote", "elements": elements},
    ]}]);
    event(&json!({"text": one, "blocks": blocks}))
}

fn event(content: &Value) -> Cow<'static, str> {
    let mut event = json!({
        "type": "message", "channel": "C1", "channel_type": "channel", "user": "U1",
        "ts": "1763712345.000100",
    });
    for (name, value) in content.as_object().into_iter().flatten() {
        event[name] = value.clone();
    }
    json!({"type": "event_callback", "event": event})
        .to_string()
        .into()
}

fn slack_event(payload: &str) {
    let delivery = SlackDelivery {
        channel: "acme",
        kind: "events_api",
        envelope_id: "e1",
        payload,
        received_at_ms: NOW_MS,
    };
    drop(black_box(translate_slack(&delivery, &slack_bot())));
}

/// Entities of every kind, one behind the other.
fn telegram_text(text: &str) {
    let kinds = [
        "bold",
        "mention",
        "code",
        "blockquote",
        "pre",
        "bot_command",
        "spoiler",
    ];
    let units = LengthUnit::Utf16.len(text);
    let each = (units / 200).max(2);
    let entities = (0..units / each).zip(kinds.iter().cycle());
    let entities: Vec<Value> = entities
        .map(|(n, kind)| json!({"type": kind, "offset": n * each, "length": each}))
        .collect();
    read_telegram(text, &entities);
}

/// As many entities as count, each in the one before.
fn telegram_nested(text: &str) {
    let kinds = ["bold", "blockquote", "italic", "strikethrough", "spoiler"];
    let units = LengthUnit::Utf16.len(text);
    let entities = (0..units.min(1_000) / 2).zip(kinds.iter().cycle());
    let entities: Vec<Value> = entities
        .map(|(n, kind)| json!({"type": kind, "offset": n, "length": units - 2 * n}))
        .collect();
    read_telegram(text, &entities);
}

fn read_telegram(text: &str, entities: &[Value]) {
    let message = json!({"update_id": 1, "message": {
        "message_id": 1, "date": NOW_MS / 1_000, "text": text,
        "chat": {"id": -5, "type": "group", "title": "g"},
        "from": {"id": 5_001, "is_bot": false, "first_name": "A"},
        "entities": entities,
    }});
    let update = message.to_string();
    drop(black_box(telegram::translate(
        "home",
        &telegram_bot(),
        &update,
        NOW_MS,
    )));
}

/// A message that says a text.
fn message(text: &str) -> Option<InboundMessage> {
    let payload = event(&json!({"text": "x"}));
    let delivery = SlackDelivery {
        channel: "acme",
        kind: "events_api",
        envelope_id: "e1",
        payload: &payload,
        received_at_ms: NOW_MS,
    };
    match translate_slack(&delivery, &slack_bot()).event {
        Event::Posted(message) => Some(InboundMessage {
            text: text.to_owned(),
            ..message
        }),
        _ => None,
    }
}

fn whom(text: &str) {
    let [policy, ..] = policies(&slack_bot());
    if let Some(message) = message(text) {
        drop(black_box(addressing(
            &message,
            &MessageFacts::default(),
            &policy,
        )));
    }
}

/// A command, a stop, or a question; the text mentions the bot.
fn asked(text: &str) {
    let [mut policy, ..] = policies(&slack_bot());
    policy.manners.commands = true;
    let text = format!("{} {text}", mention_token("UBOT"));
    if let Some(message) = message(&text) {
        let now_ms = message.sent_at_ms;
        drop(black_box(judge(
            &message,
            &MessageFacts::default(),
            &policy,
            now_ms,
            now_ms,
        )));
    }
}

fn tokens(text: &str) {
    let text = text.replace('a', &mention_token("U1"));
    drop(black_box(replace_mentions(&text, str::to_owned)));
}

/// A text file as people send it, and as what a model reads.
fn document(text: &str) {
    let utf16 = [0xff, 0xfe].into_iter();
    let utf16 = utf16.chain(text.encode_utf16().flat_map(u16::to_le_bytes));
    drop(black_box(decoded(utf16.collect())));
    let Some(text) = decoded(text.as_bytes().to_vec()) else {
        return;
    };
    let file = PromptFile {
        name: "notes.txt".to_owned(),
        is_earlier: false,
        content: FileContent::Text(text),
    };
    let limits = FileLimits {
        text_max_tokens: 1_000_000,
        ..FileLimits::default()
    };
    drop(black_box(fit_files(&[file], limits, &Utf16Div4)));
}

/// People whose names begin alike.
fn room() -> People {
    let name = |n: usize| format!("Ann {}", "Maria ".repeat(n % 7) + &n.to_string());
    let people = (0..200).map(|n| Person {
        name: name(n),
        id: format!("U{n}"),
    });
    People::known(people)
}

fn refused_slack(text: &str) {
    for part in slack_doors::render(text) {
        refused(&part, slack_doors::render_fallback);
    }
}

fn refused_telegram(text: &str) {
    for part in telegram::fuzzing::render(text) {
        refused(&part, telegram::fuzzing::render_fallback);
    }
}

fn refused(part: &Part, render: fn(&Part, Fallback) -> Vec<Part>) {
    for fallback in [Fallback::Plain, Fallback::Resplit] {
        drop(black_box(render(part, fallback)));
    }
}

fn pieces(text: &str) {
    for unit in [LengthUnit::Chars, LengthUnit::Utf16] {
        drop(black_box(split_text(text, 4_000, unit)));
    }
}
