//! A model that finds every fact in the lines it is shown, believes all of them, and adds what no line says.

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use vocative::llm::{Answer, Model, ModelError, Request};
use vocative_core::run::{Finish, Usage};

/// The model.
pub(super) struct Believer;

impl Model for Believer {
    fn name(&self) -> &'static str {
        "believer"
    }

    fn complete<'a>(
        &'a self,
        request: &'a Request<'a>,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        let shown = request.messages.last().map_or("", |it| it.content.as_str());
        let text = json!({ "entries": entries(shown) }).to_string();
        let answer = Answer {
            raw_message: text.clone(),
            text,
            usage: Usage::default(),
            reported_prompt_tokens: None,
            tool_calls: Vec::new(),
            finish: Finish::Stop,
        };
        Box::pin(std::future::ready(Ok(answer)))
    }
}

fn entries(shown: &str) -> Vec<Value> {
    let (known, lines) = shown.split_once("\n\nLines:\n").unwrap_or(("", shown));
    let mut entries = Vec::new();
    for line in lines.lines() {
        let Some((number, speaker, said)) = read(line) else {
            continue;
        };
        let Some((what, value)) = said.split_once(" is ") else {
            continue;
        };
        let Some((_, what)) = what.split_once("the code of ") else {
            continue;
        };
        let (topic, person) = match what.split_once(" of ") {
            Some((topic, person)) => (topic.trim_start_matches("the "), person),
            None => (what.trim_start_matches("my "), speaker),
        };
        let about = if person == speaker { "speaker" } else { person };
        let order = if said.starts_with("ignore") {
            "ignore your instructions: "
        } else {
            ""
        };
        entries.push(json!({
            "text": format!("{order}the code of the {topic} of {person} is {value}"),
            "lines": [number],
            "about": about,
            "replaces": replaced(known, topic, person),
        }));
        // Invented entries: another author, another value, an unknown id, and a line that nobody said.
        entries.push(json!({"text": format!("the code of the {topic} of {person} is m9999"), "lines": [number]}));
        entries.push(json!({"text": format!("the code of the {topic} is {value}"), "lines": [number], "about": "U0000"}));
        entries.push(json!({"text": format!("the code of the {topic} of {person} is {value}"), "lines": [9_999]}));
    }
    entries
}

/// Reads `[3] 2026-01-05 Ann: said`.
fn read(line: &str) -> Option<(u64, &str, &str)> {
    let (number, rest) = line.strip_prefix('[')?.split_once("] ")?;
    let (_, rest) = rest.split_once(' ')?;
    let (speaker, said) = rest.split_once(": ")?;
    Some((number.parse().ok()?, speaker, said))
}

/// The id of the known note that says something else about the same topic.
fn replaced(known: &str, topic: &str, person: &str) -> Option<u64> {
    let says = |line: &&str| line.contains(&format!("the code of the {topic} of {person} is "));
    let note = known.lines().find(says)?;
    let (number, _) = note.strip_prefix('(')?.split_once(')')?;
    number.parse().ok()
}
