//! What a request for a chat completion may say. Each field that is not served is refused by its name: a client that
//! sets a temperature and gets none would be deceived.

use serde_json::{Map, Value};

use super::super::asking::{LINES_MAX, ProgramQuestion};
use super::failure::CompletionFailure;
use vocative_core::given::{Given, GivenLine, GivenSpeaker};

/// A request that was read.
#[derive(Debug)]
pub(super) struct ChatRequest {
    pub(super) wish: ProgramQuestion,
    /// Whether the answer is told while it is written.
    pub(super) is_streamed: bool,
    /// Whether a stream tells the tokens at its end.
    pub(super) has_usage: bool,
}

/// Reads a request.
pub(super) fn read(body: &[u8]) -> Result<ChatRequest, CompletionFailure> {
    let no_object = || CompletionFailure::field("", "the body is no JSON object");
    let read: Value = serde_json::from_slice(body)
        .map_err(|cause| CompletionFailure::field("", format!("the body is no JSON: {cause}")))?;
    let Value::Object(fields) = read else {
        return Err(no_object());
    };
    let mut fields: Map<String, Value> = fields
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .collect();
    let model = match fields.remove("model") {
        Some(Value::String(model)) => model,
        _ => {
            return Err(CompletionFailure::field(
                "model",
                "model must be the name of an agent: GET /v1/models lists them",
            ));
        }
    };
    let messages = match fields.remove("messages") {
        Some(Value::Array(messages)) if !messages.is_empty() => messages,
        _ => {
            return Err(CompletionFailure::field(
                "messages",
                "messages must be a list with at least one message",
            ));
        }
    };
    let (text, mut given) = conversation(messages)?;
    given.user = match fields.remove("user") {
        None => None,
        Some(Value::String(user)) => Some(user),
        Some(_) => return Err(CompletionFailure::field("user", "user must be text")),
    };
    let is_streamed = switch(&mut fields, "stream")?;
    let has_usage = match fields.remove("stream_options") {
        None => false,
        Some(Value::Object(mut options)) if is_streamed => {
            let has_usage = switch(&mut options, "include_usage")?;
            if let Some(field) = options.keys().next() {
                return Err(CompletionFailure::unsupported(&format!(
                    "stream_options.{field}"
                )));
            }
            has_usage
        }
        Some(_) => {
            let told = "stream_options must be an object, and needs stream";
            return Err(CompletionFailure::field("stream_options", told));
        }
    };
    let conversation = named_conversation(&mut fields)?;
    match fields.remove("n") {
        None => {}
        Some(n) if n == 1 => {}
        Some(_) => return Err(CompletionFailure::unsupported("n")),
    }
    if switch(&mut fields, "store")? {
        return Err(CompletionFailure::unsupported("store"));
    }
    if let Some(field) = fields.keys().next() {
        return Err(CompletionFailure::unsupported(field));
    }
    Ok(ChatRequest {
        wish: ProgramQuestion {
            agent: Some(model),
            model: None,
            conversation,
            text,
            given,
        },
        is_streamed,
        has_usage,
    })
}

fn switch(fields: &mut Map<String, Value>, name: &str) -> Result<bool, CompletionFailure> {
    match fields.remove(name) {
        None => Ok(false),
        Some(Value::Bool(is_set)) => Ok(is_set),
        Some(_) => Err(CompletionFailure::field(
            name,
            format!("{name} must be true or false"),
        )),
    }
}

/// The conversation that `metadata` names. Other entries would be lost, so they are refused.
fn named_conversation(
    fields: &mut Map<String, Value>,
) -> Result<Option<String>, CompletionFailure> {
    let mut metadata = match fields.remove("metadata") {
        None => return Ok(None),
        Some(Value::Object(metadata)) => metadata,
        Some(_) => {
            return Err(CompletionFailure::field(
                "metadata",
                "metadata must be an object",
            ));
        }
    };
    let named = metadata.remove("conversation");
    if let Some(field) = metadata.keys().next() {
        return Err(CompletionFailure::unsupported(&format!("metadata.{field}")));
    }
    match named {
        None => Ok(None),
        Some(Value::String(name)) => Ok(Some(name)),
        Some(_) => Err(CompletionFailure::field(
            "metadata.conversation",
            "metadata.conversation must be text",
        )),
    }
}

/// The question, and what was said before it.
fn conversation(messages: Vec<Value>) -> Result<(String, Given), CompletionFailure> {
    if messages.len() > LINES_MAX + 1 {
        let told = format!(
            "messages has more than {} messages; send the newest",
            LINES_MAX + 1
        );
        return Err(CompletionFailure::field("messages", told));
    }
    let mut lines = Vec::new();
    let mut context = Vec::new();
    for (n, message) in messages.into_iter().enumerate() {
        let (role, text) = line(n, message)?;
        match role {
            CompletionRole::Context => context.push(text),
            CompletionRole::User => lines.push((
                n,
                GivenLine {
                    speaker: GivenSpeaker::User,
                    text,
                },
            )),
            CompletionRole::Assistant => lines.push((
                n,
                GivenLine {
                    speaker: GivenSpeaker::Agent,
                    text,
                },
            )),
        }
    }
    match lines.pop() {
        Some((
            _,
            GivenLine {
                speaker: GivenSpeaker::User,
                text,
            },
        )) => Ok((
            text,
            Given {
                earlier: lines.into_iter().map(|(_, line)| line).collect(),
                context: (!context.is_empty()).then(|| context.join("\n\n")),
                ..Given::default()
            },
        )),
        last => {
            let n = last.map_or(0, |(n, _)| n);
            let told = "the last message must be the user's: it is the question";
            Err(CompletionFailure::field(
                format!("messages[{n}].role"),
                told,
            ))
        }
    }
}

/// Who speaks in a message.
enum CompletionRole {
    /// The program, about the conversation.
    Context,
    User,
    Assistant,
}

fn line(n: usize, message: Value) -> Result<(CompletionRole, String), CompletionFailure> {
    let at = |field: &str| format!("messages[{n}].{field}");
    let Value::Object(fields) = message else {
        return Err(CompletionFailure::field(
            format!("messages[{n}]"),
            "a message must be an object",
        ));
    };
    let mut fields: Map<String, Value> = fields
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .collect();
    let role = match fields.remove("role").as_ref().and_then(Value::as_str) {
        Some("system" | "developer") => CompletionRole::Context,
        Some("user") => CompletionRole::User,
        Some("assistant") => CompletionRole::Assistant,
        Some("tool" | "function") => {
            let told =
                "results of a client's tools are not supported: agents have tools of their own";
            return Err(CompletionFailure::field(at("role"), told));
        }
        _ => {
            let told = "role must be system, developer, user or assistant";
            return Err(CompletionFailure::field(at("role"), told));
        }
    };
    let text = match fields.remove("content") {
        Some(Value::String(text)) => text,
        Some(Value::Array(parts)) => joined(n, parts)?,
        _ => {
            return Err(CompletionFailure::field(
                at("content"),
                "content must be text, or a list of parts of text",
            ));
        }
    };
    match fields.keys().next() {
        Some(field) => Err(CompletionFailure::unsupported(&at(field))),
        None => Ok((role, text)),
    }
}

/// The text of a message's parts.
fn joined(n: usize, parts: Vec<Value>) -> Result<String, CompletionFailure> {
    let mut texts = Vec::with_capacity(parts.len());
    for part in parts {
        match (part["type"].as_str(), part["text"].as_str()) {
            (Some("text"), Some(text)) => texts.push(text.to_owned()),
            _ => {
                let told = "only parts of text are supported";
                return Err(CompletionFailure::field(
                    format!("messages[{n}].content"),
                    told,
                ));
            }
        }
    }
    Ok(texts.join("\n"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(body: &Value) -> (String, String) {
        let failure = read(body.to_string().as_bytes()).unwrap_err().body();
        let error = &failure["error"];
        let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
        (text("param"), text("code"))
    }

    fn with(field: &str, value: Value) -> Value {
        let mut body = json!({"model": "helper", "messages": [{"role": "user", "content": "hi"}]});
        body[field] = value;
        body
    }

    #[test]
    fn a_conversation_is_a_question_and_what_came_before_it() {
        let body = json!({
            "model": "helper",
            "messages": [
                {"role": "system", "content": "Speak like a pirate."},
                {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
                {"role": "assistant", "content": "Three.", "refusal": null},
                {"role": "developer", "content": "Be short."},
                {"role": "user", "content": "and now?"}
            ],
            "user": "bob",
            "stream": true,
            "stream_options": {"include_usage": true},
            "metadata": {"conversation": "notes"},
            "n": 1,
            "store": false,
            "temperature": null
        });
        let read = read(body.to_string().as_bytes()).unwrap();
        assert!(read.is_streamed && read.has_usage);
        let wish = read.wish;
        assert_eq!(wish.agent.as_deref(), Some("helper"));
        assert_eq!(wish.conversation.as_deref(), Some("notes"));
        assert_eq!(wish.text, "and now?");
        let expected = Given {
            earlier: vec![
                GivenLine {
                    speaker: GivenSpeaker::User,
                    text: "one\ntwo".into(),
                },
                GivenLine {
                    speaker: GivenSpeaker::Agent,
                    text: "Three.".into(),
                },
            ],
            context: Some("Speak like a pirate.\n\nBe short.".into()),
            user: Some("bob".into()),
            instructions: None,
            tools: None,
        };
        assert_eq!(wish.given, expected);
    }

    #[test]
    fn what_is_not_served_is_refused_by_its_name() {
        for field in [
            "temperature",
            "top_p",
            "tools",
            "tool_choice",
            "functions",
            "response_format",
            "max_tokens",
            "max_completion_tokens",
            "stop",
            "seed",
            "logprobs",
            "reasoning_effort",
            "store",
            "modalities",
        ] {
            let value = if field == "store" {
                json!(true)
            } else {
                json!(1)
            };
            let told = refused(&with(field, value));
            assert_eq!(told, (field.to_owned(), "unsupported_parameter".to_owned()));
        }
        assert_eq!(refused(&with("n", json!(2))).0, "n");
        assert_eq!(
            refused(&with("metadata", json!({"team": "a"}))).0,
            "metadata.team"
        );
        assert_eq!(
            refused(&with("stream_options", json!({}))).0,
            "stream_options"
        );
    }

    #[test]
    fn a_message_that_is_none_is_refused_where_it_stands() {
        let image = json!([{"type": "image_url", "image_url": {"url": "data:"}}]);
        let table = [
            (json!([]), "messages"),
            (json!("hi"), "messages"),
            (json!(["hi"]), "messages[0]"),
            (json!([{"role": "user"}]), "messages[0].content"),
            (
                json!([{"role": "king", "content": "hi"}]),
                "messages[0].role",
            ),
            (
                json!([{"role": "tool", "content": "hi", "tool_call_id": "1"}]),
                "messages[0].role",
            ),
            (
                json!([{"role": "user", "content": image}]),
                "messages[0].content",
            ),
            (
                json!([{"role": "user", "content": "hi", "name": "bob"}]),
                "messages[0].name",
            ),
            (
                json!([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hi."}]),
                "messages[1].role",
            ),
            (
                json!([{"role": "system", "content": "hi"}]),
                "messages[0].role",
            ),
        ];
        for (messages, expected) in table {
            assert_eq!(
                refused(&with("messages", messages.clone())).0,
                expected,
                "{messages}"
            );
        }
        let many: Vec<Value> = vec![json!({"role": "user", "content": "hi"}); LINES_MAX + 2];
        assert_eq!(refused(&with("messages", json!(many))).0, "messages");
    }

    #[test]
    fn what_is_no_json_object_is_told() {
        for body in ["", "[]", "nonsense", "\"hi\"", "{\"model\": \"x\"}"] {
            assert!(read(body.as_bytes()).is_err(), "{body}");
        }
    }
}
