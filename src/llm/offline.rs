//! A model without a network: deterministic, so that everything runs without a key.
//!
//! It repeats the question and says what context it saw, which shows at a glance whether addressing, history and
//! threads work. The question "search: WORDS" makes it call the tool `conversation_search` with these words (none = the
//! newest messages), if it has that tool, and tell what was found. The question "call: NAME {..}" makes it call any of
//! its tools with these arguments, and tell the result. Messages that were put into the prompt because they were found
//! for the question are its answer. A listener receives the text word by word, all at once.

use futures_util::future::BoxFuture;

use serde_json::{Value, json};

use super::{Answer, Exchange, Model, ModelError, Request, ToolCall, ToolChoice};
use vocative_core::prompting::{
    ClassEstimate, FOUND_LABEL, PromptMessage, PromptRole, TokenCounter,
};
use vocative_core::run::Finish;
use vocative_core::run::Usage;

/// How much of a question the built-in model repeats, in characters.
pub const ECHO_MAX_CHARS: usize = 200;

/// How much of a tool's result the built-in model repeats, in characters.
const FOUND_MAX_CHARS: usize = 1_500;

/// The search tool, and the text that makes the model call it.
const SEARCH_TOOL: &str = "conversation_search";
const SEARCH_SIGN: &str = "search:";

/// The text that makes the model call any tool: the tool's name and an object of arguments follow.
const CALL_SIGN: &str = "call:";

/// The built-in model.
#[derive(Clone, Copy, Debug, Default)]
pub struct Offline;

impl Model for Offline {
    fn name(&self) -> &'static str {
        "offline"
    }

    fn complete<'a>(
        &'a self,
        request: &'a Request<'a>,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        let answer = answer(request);
        if let (Ok(answer), Some(listener)) = (&answer, request.listener) {
            for word in answer.text.split_inclusive(' ') {
                listener.text(word);
            }
        }
        Box::pin(std::future::ready(answer))
    }
}

fn answer(request: &Request<'_>) -> Result<Answer, ModelError> {
    let Some((question, earlier)) = request.messages.split_last() else {
        return Err(ModelError::Refused {
            reason: "there is no message to answer".to_owned(),
        });
    };
    let said = said(question);
    if let Some(exchange) = request.exchanges.last() {
        return Ok(spoken(request, found(exchange), Vec::new()));
    }
    let may_call = |name: &str| {
        request.tool_choice != ToolChoice::None && request.tools.iter().any(|it| it.name == name)
    };
    let search = after(&said, SEARCH_SIGN).map(|words| (SEARCH_TOOL, json!({"query": words})));
    let asked_for = after(&said, CALL_SIGN).and_then(named_call).or(search);
    if let Some((name, arguments)) = asked_for.filter(|(name, _)| may_call(name)) {
        let call = ToolCall {
            id: "offline_1".to_owned(),
            name: name.to_owned(),
            arguments,
        };
        return Ok(spoken(request, String::new(), vec![call]));
    }
    let recalled = recalled(earlier);
    let text = if recalled.is_empty() {
        format!(
            "You asked: \"{}\". I am the offline model; I saw {} in this conversation.",
            asked(&said),
            seen(earlier)
        )
    } else {
        format!(
            "You asked: \"{}\". Here it was said:\n{recalled}\nI am the offline model.",
            asked(&said)
        )
    };
    Ok(spoken(request, text, Vec::new()))
}

fn spoken(request: &Request<'_>, text: String, tool_calls: Vec<ToolCall>) -> Answer {
    let messages = request.messages.iter().map(|m| m.content.as_str());
    let results = request
        .exchanges
        .iter()
        .flat_map(|exchange| &exchange.results);
    let read = messages.chain(results.map(|result| result.content.as_str()));
    let prompt_tokens: usize = read.map(|text| ClassEstimate.cost(text)).sum();
    Answer {
        usage: Usage {
            prompt_tokens: prompt_tokens as u64,
            completion_tokens: u64::from(ClassEstimate.count(&text)),
            ..Usage::default()
        },
        reported_prompt_tokens: None,
        raw_message: json!({"version": 1, "provider": "offline", "message": text}).to_string(),
        text,
        tool_calls,
        finish: Finish::Stop,
    }
}

/// The words behind a sign, which may be anywhere in the text.
fn after<'a>(said: &'a str, sign: &str) -> Option<&'a str> {
    let at = said.to_ascii_lowercase().find(sign)?;
    Some(said[at + sign.len()..].trim())
}

/// A tool's name and its arguments; without arguments an empty object.
fn named_call(words: &str) -> Option<(&str, Value)> {
    let (name, arguments) = words.split_once(' ').unwrap_or((words, "{}"));
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    arguments.is_object().then_some((name, arguments))
}

/// What a search found, one line for each message; another tool's result as it is.
fn found(exchange: &Exchange) -> String {
    if let (Some(call), Some(result)) = (exchange.calls.first(), exchange.results.first())
        && call.name != SEARCH_TOOL
    {
        let given: String = result.content.chars().take(FOUND_MAX_CHARS).collect();
        return format!("{} gave:\n{given}\nI am the offline model.", call.name);
    }
    let mut lines = Vec::new();
    for result in &exchange.results {
        let content: Value = serde_json::from_str(&result.content).unwrap_or_default();
        match content["hits"].as_array() {
            Some(hits) => lines.extend(hits.iter().map(|hit| {
                let part = |name: &str| hit[name].as_str().unwrap_or_default();
                format!("- {} ({}): {}", part("speaker"), part("time"), part("text"))
            })),
            None => lines.push(result.content.clone()),
        }
    }
    if lines.is_empty() {
        return "I searched this conversation and found nothing. I am the offline model."
            .to_owned();
    }
    let lines: String = lines.join("\n").chars().take(FOUND_MAX_CHARS).collect();
    format!("I searched this conversation and found:\n{lines}\nI am the offline model.")
}

/// Messages that were found for the question, one line each.
fn recalled(earlier: &[PromptMessage]) -> String {
    let of_user = earlier.iter().filter(|it| it.role == PromptRole::User);
    let found = of_user.filter_map(|it| {
        let (at, said) = it.content.strip_prefix(FOUND_LABEL)?.split_once(") ")?;
        let (speaker, said) = said.split_once(": ")?;
        Some(format!("- {speaker} ({at}): {said}"))
    });
    let found = found.collect::<Vec<_>>().join("\n");
    found.chars().take(FOUND_MAX_CHARS).collect()
}

/// The question, shortened to its limit.
fn asked(said: &str) -> String {
    let said = said.replace('"', "'");
    if said.chars().count() <= ECHO_MAX_CHARS {
        return said;
    }
    said.chars().take(ECHO_MAX_CHARS).collect::<String>() + "…"
}

/// The question on one line, without its speaker's label and without quoted lines.
fn said(question: &PromptMessage) -> String {
    let said = match question.role {
        PromptRole::User => question
            .content
            .split_once(": ")
            .map_or(question.content.as_str(), |(_, said)| said),
        PromptRole::System | PromptRole::Assistant => &question.content,
    };
    let lines = said.lines().map(str::trim);
    let words: Vec<&str> = lines
        .filter(|line| !line.starts_with('>'))
        .flat_map(str::split_whitespace)
        .collect();
    words.join(" ")
}

fn seen(earlier: &[PromptMessage]) -> String {
    let count = |is_wanted: &dyn Fn(&PromptMessage) -> bool| {
        earlier.iter().filter(|message| is_wanted(message)).count()
    };
    let own = count(&|message| message.role == PromptRole::Assistant);
    let agents = count(&|message| message.role == PromptRole::User && is_by_agent(message));
    let people = count(&|message| message.role == PromptRole::User) - agents;
    let total = own + agents + people;
    if total == 0 {
        return "no earlier messages".to_owned();
    }
    let agents = match agents {
        0 => String::new(),
        agents => format!(", {agents} from other agents"),
    };
    let plural = if total == 1 { "" } else { "s" };
    format!("{total} earlier message{plural} ({people} from people{agents}, {own} of mine)")
}

fn is_by_agent(message: &PromptMessage) -> bool {
    let label = message.content.split_once(": ").map(|(label, _)| label);
    label.is_some_and(|label| label.ends_with(" (agent)"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn message(role: PromptRole, content: &str) -> PromptMessage {
        PromptMessage {
            role,
            content: content.to_owned(),
        }
    }

    #[test]
    fn it_says_what_it_was_asked_and_what_it_saw() {
        let messages = [
            message(PromptRole::System, "You are Vocative."),
            message(PromptRole::User, "Alice: one"),
            message(PromptRole::Assistant, "two"),
            message(PromptRole::User, "Atlas (agent): three"),
            message(PromptRole::User, "(overheard) Bob: four"),
            message(
                PromptRole::User,
                "Alice: > three\n  say \"hello\":\n  twice",
            ),
        ];
        let answer = answer(&Request::of(&messages)).unwrap();
        insta::assert_snapshot!(answer.text, @r#"You asked: "say 'hello': twice". I am the offline model; I saw 4 earlier messages (2 from people, 1 from other agents, 1 of mine) in this conversation."#);
        let prompt_tokens: usize = messages
            .iter()
            .map(|m| ClassEstimate.cost(&m.content))
            .sum();
        assert_eq!(answer.usage.prompt_tokens, prompt_tokens as u64);
        assert!(answer.usage.completion_tokens > 0);
    }

    #[test]
    fn the_example_of_the_readme() {
        let three = [
            message(PromptRole::User, "Alice: hi"),
            message(PromptRole::Assistant, "hi"),
            message(PromptRole::User, "Bob: hi"),
            message(PromptRole::User, "Alice: hello"),
        ];
        insta::assert_snapshot!(answer(&Request::of(&three)).unwrap().text, @r#"You asked: "hello". I am the offline model; I saw 3 earlier messages (2 from people, 1 of mine) in this conversation."#);
        insta::assert_snapshot!(answer(&Request::of(&three[3..])).unwrap().text, @r#"You asked: "hello". I am the offline model; I saw no earlier messages in this conversation."#);
        assert!(matches!(
            answer(&Request::of(&[])),
            Err(ModelError::Refused { .. })
        ));
    }

    #[test]
    fn asked_to_search_it_calls_the_tool_and_tells_what_it_found() {
        let messages = [message(PromptRole::User, "Alice: please search: deploy at")];
        let tools = [crate::llm::ToolSpec {
            name: SEARCH_TOOL.to_owned(),
            description: String::new(),
            schema: json!({}),
        }];
        let mut request = Request {
            tools: &tools,
            ..Request::of(&messages)
        };
        let called = answer(&request).unwrap();
        assert_eq!(called.text, "");
        assert_eq!(
            called.tool_calls[0].arguments,
            json!({"query": "deploy at"})
        );
        let without_tools = answer(&Request::of(&messages)).unwrap();
        assert!(without_tools.text.starts_with("You asked:"));

        let result = |content: &str| Exchange {
            told: String::new(),
            text: String::new(),
            calls: called.tool_calls.clone(),
            raw_message: String::new(),
            results: vec![crate::llm::ToolResult {
                call_id: "offline_1".to_owned(),
                content: content.to_owned(),
                is_error: false,
                images: Vec::new(),
            }],
        };
        let hits = r#"{"hits": [{"speaker": "Bob", "time": "noon", "text": "we deploy at nine"}]}"#;
        let exchanges = [result(hits)];
        request.exchanges = &exchanges;
        insta::assert_snapshot!(answer(&request).unwrap().text, @r"
        I searched this conversation and found:
        - Bob (noon): we deploy at nine
        I am the offline model.
        ");
        let nothing = [result(r#"{"hits": []}"#)];
        request.exchanges = &nothing;
        insta::assert_snapshot!(answer(&request).unwrap().text, @"I searched this conversation and found nothing. I am the offline model.");
    }

    #[test]
    fn asked_to_call_a_tool_it_calls_it_and_tells_what_it_gave() {
        let tools = [crate::llm::ToolSpec {
            name: "time__now".to_owned(),
            description: String::new(),
            schema: json!({}),
        }];
        let called = |said: &str| {
            let messages = [message(PromptRole::User, said)];
            let request = Request {
                tools: &tools,
                ..Request::of(&messages)
            };
            let calls = answer(&request).unwrap().tool_calls;
            calls.into_iter().next().map(|call| call.arguments)
        };
        let table = [
            (
                "Ann: call: time__now {\"zone\": \"Asia/Tokyo\"}",
                Some(json!({"zone": "Asia/Tokyo"})),
            ),
            ("Ann: Call: time__now", Some(json!({}))),
            ("Ann: call: other {}", None),
            ("Ann: call: time__now [1]", None),
            ("Ann: call: time__now {", None),
            ("Ann: call:", None),
        ];
        for (said, expected) in table {
            assert_eq!(called(said), expected, "{said}");
        }
        let messages = [message(PromptRole::User, "Ann: call: time__now")];
        let exchanges = [Exchange {
            told: String::new(),
            text: String::new(),
            calls: vec![ToolCall {
                id: "offline_1".to_owned(),
                name: "time__now".to_owned(),
                arguments: json!({}),
            }],
            raw_message: String::new(),
            results: vec![crate::llm::ToolResult {
                call_id: "offline_1".to_owned(),
                content: "noon".to_owned(),
                is_error: false,
                images: Vec::new(),
            }],
        }];
        let request = Request {
            tools: &tools,
            exchanges: &exchanges,
            ..Request::of(&messages)
        };
        insta::assert_snapshot!(answer(&request).unwrap().text, @r"
        time__now gave:
        noon
        I am the offline model.
        ");
    }

    #[test]
    fn what_was_found_for_the_question_is_its_answer() {
        let messages = [
            message(PromptRole::User, "(found) The next lines were found."),
            message(
                PromptRole::User,
                "(found 2026-11-20 14:02) Ann: the deploy: at nine\n  sharp",
            ),
            message(PromptRole::User, "Bob: when is the deploy?"),
        ];
        insta::assert_snapshot!(answer(&Request::of(&messages)).unwrap().text, @r#"
        You asked: "when is the deploy?". Here it was said:
        - Ann (2026-11-20 14:02): the deploy: at nine
          sharp
        I am the offline model.
        "#);
    }

    #[test]
    fn it_never_repeats_more_than_its_limit() {
        let long = message(PromptRole::User, &format!("Alice: {}", "ä".repeat(5_000)));
        let text = answer(&Request::of(&[long])).unwrap().text;
        assert_eq!(text.matches('ä').count(), ECHO_MAX_CHARS);
        assert!(text.contains("ä…\""));
    }
}
