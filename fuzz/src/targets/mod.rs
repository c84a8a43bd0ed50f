//! All targets. A target is a function of bytes that panics where a promise breaks.
//!
//! One file per subject: `slack` and `telegram` (wire to envelope, answers, texts), `texts` (splitting
//! and marks), `capturing` (judging, and everything up to the commit), `cards`, `commands`, `documents` (of operators),
//! `requests` (what comes over HTTP), `exports` (importers), `configs`, `prompts`, `models`, `searching`. `speech`
//! holds what every envelope must keep.

mod capturing;
mod cards;
mod commands;
mod configs;
mod documents;
mod exports;
mod models;
mod prompts;
mod requests;
mod searching;
mod slack;
mod speech;
mod telegram;
mod texts;

use std::collections::BTreeMap;

use serde_json::value::RawValue;

pub(crate) use capturing::policies;
pub(crate) use speech::{NOW_MS, slack_bot, telegram_bot};

/// A parser, and what must hold of it whatever it reads.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name; its corpus is in the folder of that name.
    pub name: &'static str,
    /// What an input is.
    pub input: &'static str,
    /// Runs it; panics where a promise breaks.
    pub run: fn(&[u8]),
    /// Whether an input costs milliseconds: a connection, or a whole configuration.
    pub is_dear: bool,
}

const fn target(name: &'static str, input: &'static str, run: fn(&[u8])) -> Target {
    Target {
        name,
        input,
        run,
        is_dear: false,
    }
}

const fn dear(name: &'static str, input: &'static str, run: fn(&[u8])) -> Target {
    Target {
        is_dear: true,
        ..target(name, input, run)
    }
}

/// All of them, by name.
pub const TARGETS: &[Target] = &[
    target(
        "capture",
        "a Slack frame or a Telegram update",
        capturing::capture,
    ),
    target("card", "a call's arguments", cards::shown),
    target(
        "command",
        "what is said behind a command",
        commands::command,
    ),
    dear("config", "a TOML file", configs::file),
    dear("config_env", "NAME=VALUE lines", configs::environment),
    target(
        "document",
        "a number for its format, then a document",
        documents::cut,
    ),
    target("event_id", "a Last-Event-ID", requests::event_id),
    target(
        "form_file",
        "names of a field and a file, its type, its bytes, with | between them",
        requests::form,
    ),
    target(
        "judging",
        "a Slack frame or a Telegram update",
        capturing::judging,
    ),
    target(
        "json_list",
        "a JSON list as in an export",
        exports::json_list,
    ),
    dear(
        "model_answer",
        "an HTTP status, then a body",
        models::answer,
    ),
    target("prompt", "a transcript", prompts::assembled),
    target("quiet_hours", "hours, then a zone", commands::quiet_hours),
    target("search", "words to search for", searching::query),
    target(
        "slack_answer",
        "an HTTP status and Retry-After, then a body",
        slack::answer,
    ),
    target("slack_event", "a payload of any envelope", slack::event),
    target(
        "slack_export",
        "an object of an export's files",
        exports::slack_folder,
    ),
    target("slack_frame", "a text frame of a socket", slack::frame),
    target("slack_history", "a message of a history", slack::history),
    target(
        "slack_request",
        "a path, a timestamp and a signature, then a body",
        requests::slack,
    ),
    target("slack_text", "an escaped text", slack::text),
    target("slack_zip", "a zip", exports::slack_zip),
    target("split", "a limit, then a text", texts::split),
    target(
        "telegram_answer",
        "an HTTP status and Retry-After, then a body",
        telegram::answer,
    ),
    target("telegram_export", "a result.json", exports::telegram_file),
    target("telegram_text", "a text and its entities", telegram::text),
    target("telegram_update", "an update", telegram::update),
    target("texts", "a text, a name, a template", texts::any),
];

/// The target of a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// An input's first line as numbers, and the rest.
fn headed(input: &[u8]) -> (Vec<u64>, &[u8]) {
    let end = input.iter().position(|byte| *byte == b'\n');
    let (head, body) = match end {
        Some(end) => (&input[..end], &input[end + 1..]),
        None => (&input[..0], input),
    };
    let head = String::from_utf8_lossy(head);
    let numbers = head.split_whitespace().filter_map(|word| word.parse().ok());
    (numbers.collect(), body)
}

/// The HTTP status and the `Retry-After` that an answer begins with.
fn answered(input: &[u8]) -> (u16, Option<String>, &[u8]) {
    let (head, body) = headed(input);
    let status = head.first().and_then(|status| u16::try_from(*status).ok());
    let status = status.filter(|status| (100..1_000).contains(status));
    let retry_after = head.get(1).map(ToString::to_string);
    (status.unwrap_or(200), retry_after, body)
}

/// Whether a body is a JSON object in which `ok` is true.
fn says_ok(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body);
    let fields = serde_json::from_str::<BTreeMap<String, &RawValue>>(&text);
    fields.is_ok_and(|fields| fields.get("ok").is_some_and(|ok| ok.get() == "true"))
}
