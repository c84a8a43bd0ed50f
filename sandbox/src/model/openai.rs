//! OpenAI's chat completions: what is refused, and the wire form of answers and streams.
//!
//! Pure. *Source:* OpenAI API reference, chat completions; error texts as the API sends them.

use serde_json::{Map, Value, json};

use super::reply::{ModelPace, ModelToolCall, ModelUsage, pieces};
use super::rules::{gpt, is_openai_reasoner, unknown_field};

const ROLES: [&str; 6] = [
    "system",
    "assistant",
    "user",
    "function",
    "tool",
    "developer",
];

/// A refusal as the API words it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OpenAiRefusal {
    pub(super) status: u16,
    pub(super) body: Value,
}

/// Parameters of a request.
const PARAMETERS: [&str; 33] = [
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "modalities",
    "model",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_options",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
];

pub(super) fn refused(
    status: u16,
    message: &str,
    param: Option<&str>,
    code: Option<&str>,
) -> OpenAiRefusal {
    OpenAiRefusal {
        status,
        body: json!({"error": {
            "message": message, "type": "invalid_request_error", "param": param, "code": code,
        }}),
    }
}

/// The answer without a key.
pub(super) fn no_key() -> OpenAiRefusal {
    refused(
        401,
        "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY), or as the password field (with blank username) if you're accessing the API from your browser and are prompted for a username and password.",
        None,
        None,
    )
}

/// The body that goes with a scripted status.
pub(super) fn status_body(status: u16) -> Value {
    let (message, kind, code) = match status {
        401 => (
            "Incorrect API key provided.",
            "invalid_request_error",
            Some("invalid_api_key"),
        ),
        404 => (
            "The model does not exist or you do not have access to it.",
            "invalid_request_error",
            Some("model_not_found"),
        ),
        429 => (
            "Rate limit reached for requests.",
            "requests",
            Some("rate_limit_exceeded"),
        ),
        503 => (
            "The engine is currently overloaded, please try again later.",
            "server_error",
            None,
        ),
        400..=499 => ("The request was refused.", "invalid_request_error", None),
        _ => (
            "The server had an error while processing your request. Sorry about that!",
            "server_error",
            None,
        ),
    };
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}

/// Checks a request body as the API does.
pub(super) fn check(body: &[u8]) -> Result<Value, OpenAiRefusal> {
    let body: Value = serde_json::from_slice(body).map_err(|_| {
        refused(
            400,
            "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON. If you have trouble figuring out how to fix this, please contact us through our help center at help.openai.com.)",
            None,
            None,
        )
    })?;
    if body["model"].as_str().is_none_or(str::is_empty) {
        return Err(refused(
            400,
            "you must provide a model parameter",
            None,
            None,
        ));
    }
    let messages = match body.get("messages") {
        None => {
            return Err(refused(
                400,
                "Missing required parameter: 'messages'.",
                Some("messages"),
                Some("missing_required_parameter"),
            ));
        }
        Some(messages) => messages.as_array().ok_or_else(|| {
            refused(
                400,
                "Invalid type for 'messages': expected an array of objects.",
                Some("messages"),
                Some("invalid_type"),
            )
        })?,
    };
    if messages.is_empty() {
        return Err(refused(
            400,
            "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            Some("messages"),
            Some("empty_array"),
        ));
    }
    for (n, message) in messages.iter().enumerate() {
        check_message(n, message)?;
    }
    check_tool_order(messages)?;
    check_parameters(&body)?;
    if body.get("stream_options").is_some() && body["stream"] != true {
        return Err(refused(
            400,
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            Some("stream_options"),
            None,
        ));
    }
    Ok(body)
}

/// Parameters that newer models refuse, and parameters that no model knows.
fn check_parameters(body: &Value) -> Result<(), OpenAiRefusal> {
    if let Some(name) = unknown_field(body, &PARAMETERS) {
        let message = format!("Unrecognized request argument supplied: {name}");
        return Err(refused(400, &message, None, None));
    }
    let model = body["model"].as_str().unwrap_or_default();
    let unsupported = |message: &str, param| {
        Err(refused(
            400,
            message,
            Some(param),
            Some("unsupported_parameter"),
        ))
    };
    if !is_openai_reasoner(model) {
        return Ok(());
    }
    if body.get("max_tokens").is_some() {
        return unsupported(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            "max_tokens",
        );
    }
    if body.get("temperature").is_some_and(|it| *it != 1.0) {
        return unsupported(
            "Unsupported value: 'temperature' does not support this value with this model. Only the default (1) value is supported.",
            "temperature",
        );
    }
    let has_tools = body["tools"]
        .as_array()
        .is_some_and(|tools| !tools.is_empty());
    let effort = body["reasoning_effort"].as_str();
    let needs_none = gpt(model) >= Some((5, 6));
    let is_refused = match effort {
        Some("none") => false,
        Some(_) => gpt(model) >= Some((5, 4)),
        None => needs_none,
    };
    if has_tools && is_refused {
        return unsupported(
            &format!(
                "Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'."
            ),
            "reasoning_effort",
        );
    }
    Ok(())
}

/// The refusal of a field that is not known.
pub(super) fn unknown_field_refused(name: &str) -> OpenAiRefusal {
    let message = format!("Unrecognized request argument supplied: {name}");
    refused(400, &message, Some(name), None)
}

/// The refusal of a prompt that is too long.
pub(super) fn too_long(limit: u32, asked: u32) -> OpenAiRefusal {
    refused(
        400,
        &format!(
            "This model's maximum context length is {limit} tokens. However, your messages resulted in {asked} tokens. Please reduce the length of the messages."
        ),
        Some("messages"),
        Some("context_length_exceeded"),
    )
}

/// The answer of a server that does not stream.
pub(super) fn no_streams() -> OpenAiRefusal {
    refused(
        400,
        "Unsupported value: 'stream' does not support true with this model. Only the default (false) value is supported.",
        Some("stream"),
        Some("unsupported_value"),
    )
}

fn check_message(n: usize, message: &Value) -> Result<(), OpenAiRefusal> {
    let role = message["role"].as_str().unwrap_or("");
    if !ROLES.contains(&role) {
        return Err(refused(
            400,
            &format!(
                "Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'."
            ),
            Some(&format!("messages[{n}].role")),
            Some("invalid_value"),
        ));
    }
    let content = &message["content"];
    let calls = message["tool_calls"].as_array().map_or(0, Vec::len);
    let has_content =
        content.is_string() || content.as_array().is_some_and(|parts| !parts.is_empty());
    let only_calls = role == "assistant" && calls > 0;
    if !(has_content || only_calls) {
        return Err(refused(
            400,
            "Invalid value for 'content': expected a string, got null.",
            Some(&format!("messages.[{n}].content")),
            None,
        ));
    }
    if let Some(name) = message.get("name").and_then(Value::as_str) {
        let plain = |c: char| !c.is_whitespace() && !"<|\\/>".contains(c);
        if name.is_empty() || name.chars().count() > 64 || !name.chars().all(plain) {
            return Err(refused(
                400,
                &format!(
                    "Invalid 'messages[{n}].name': string does not match pattern. Expected a string that matches the pattern '^[^\\s<|\\\\/>]+$'."
                ),
                Some(&format!("messages[{n}].name")),
                Some("invalid_value"),
            ));
        }
    }
    Ok(())
}

/// Every tool call has its result right behind it, and no result stands alone.
fn check_tool_order(messages: &[Value]) -> Result<(), OpenAiRefusal> {
    let mut open: Vec<&str> = Vec::new();
    let unanswered = |open: &[&str]| {
        refused(
            400,
            &format!(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
                open.join(", ")
            ),
            Some("messages"),
            None,
        )
    };
    for (n, message) in messages.iter().enumerate() {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or("");
            let Some(at) = open.iter().position(|&call| call == id) else {
                return Err(refused(
                    400,
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
                    Some(&format!("messages.[{n}].role")),
                    None,
                ));
            };
            open.swap_remove(at);
            continue;
        }
        if !open.is_empty() {
            return Err(unanswered(&open));
        }
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        open = calls.filter_map(|call| call["id"].as_str()).collect();
    }
    match open.is_empty() {
        true => Ok(()),
        false => Err(unanswered(&open)),
    }
}

/// What an answer is made of, whatever its form.
#[derive(Clone, Debug)]
pub(super) struct OpenAiAnswer<'a> {
    pub(super) id: String,
    pub(super) model: &'a str,
    pub(super) created_s: i64,
    pub(super) text: &'a str,
    pub(super) tool_calls: &'a [ModelToolCall],
    pub(super) cut: bool,
    pub(super) usage: ModelUsage,
    pub(super) pace: Option<ModelPace>,
    /// The model's thoughts before the answer.
    pub(super) thinking: Option<&'a str>,
}

impl OpenAiAnswer<'_> {
    fn finish_reason(&self) -> &'static str {
        match (self.cut, self.tool_calls.is_empty()) {
            (true, _) => "length",
            (false, false) => "tool_calls",
            (false, true) => "stop",
        }
    }

    fn usage_json(&self) -> Value {
        let usage = self.usage;
        let mut told = json!({
            "prompt_tokens": usage.input, "completion_tokens": usage.output,
            "total_tokens": usage.input + usage.output,
        });
        if usage.is_cached() {
            told["prompt_tokens_details"] =
                json!({"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write});
        }
        told
    }

    /// The body of an answer that is not streamed.
    pub(super) fn body(&self) -> Value {
        let mut message = Map::new();
        message.insert("role".to_owned(), json!("assistant"));
        let content = match self.text {
            "" if !self.tool_calls.is_empty() => Value::Null,
            text => json!(text),
        };
        message.insert("content".to_owned(), content);
        message.insert("refusal".to_owned(), Value::Null);
        if let Some(thinking) = self.thinking {
            message.insert("reasoning_content".to_owned(), json!(thinking));
        }
        if !self.tool_calls.is_empty() {
            let calls: Vec<Value> = self.tool_calls.iter().map(tool_call).collect();
            message.insert("tool_calls".to_owned(), json!(calls));
        }
        json!({
            "id": self.id, "object": "chat.completion", "created": self.created_s, "model": self.model,
            "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": self.finish_reason()}],
            "usage": self.usage_json(), "system_fingerprint": "fp_loopback",
        })
    }

    fn chunk(&self, delta: &Value, finish: Option<&str>) -> String {
        event(&json!({
            "id": self.id, "object": "chat.completion.chunk", "created": self.created_s,
            "model": self.model, "system_fingerprint": "fp_loopback",
            "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}],
        }))
    }

    /// The events up to the end of the text.
    pub(super) fn opening(&self) -> Vec<String> {
        let role = json!({"role": "assistant", "content": "", "refusal": null});
        let mut events = vec![self.chunk(&role, None)];
        if let Some(thinking) = self.thinking {
            events.push(self.chunk(&json!({"reasoning_content": thinking}), None));
        }
        for piece in pieces(self.text, self.pace) {
            events.push(self.chunk(&json!({"content": piece}), None));
        }
        events
    }

    /// The whole stream. `has_usage` follows `stream_options.include_usage`; `has_index` is false
    /// for servers that leave the index of tool calls out.
    pub(super) fn stream(&self, has_usage: bool, has_index: bool) -> Vec<String> {
        let mut events = self.opening();
        for (n, call) in self.tool_calls.iter().enumerate() {
            let arguments = call.arguments.to_string();
            let (first, second) = halves(&arguments);
            let mut begin = json!({
                "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""},
            });
            let mut parts = [first, second]
                .map(|part| json!({"function": {"arguments": part}}))
                .to_vec();
            if has_index {
                begin["index"] = json!(n);
                parts.iter_mut().for_each(|part| part["index"] = json!(n));
            }
            for part in [begin].into_iter().chain(parts) {
                events.push(self.chunk(&json!({"tool_calls": [part]}), None));
            }
        }
        events.push(self.chunk(&json!({}), Some(self.finish_reason())));
        if has_usage {
            events.push(event(&json!({
                "id": self.id, "object": "chat.completion.chunk", "created": self.created_s,
                "model": self.model, "choices": [], "usage": self.usage_json(),
            })));
        }
        events.push("data: [DONE]\n\n".to_owned());
        events
    }
}

fn tool_call(call: &ModelToolCall) -> Value {
    json!({
        "id": call.id, "type": "function",
        "function": {"name": call.name, "arguments": call.arguments.to_string()},
    })
}

/// A server-sent event with this content.
pub(super) fn event(content: &Value) -> String {
    format!("data: {content}\n\n")
}

/// The same with its name.
pub(super) fn event_named(content: &Value) -> String {
    let name = content["type"].as_str().unwrap_or("error");
    format!("event: {name}\ndata: {content}\n\n")
}

/// Cuts a text in two on a character boundary.
pub(super) fn halves(text: &str) -> (&str, &str) {
    let mut middle = text.len() / 2;
    while !text.is_char_boundary(middle) {
        middle += 1;
    }
    text.split_at(middle)
}

/// The text of the last message of a person.
pub(super) fn last_user_text(messages: &Value) -> String {
    let messages = messages.as_array();
    let last = messages
        .into_iter()
        .flatten()
        .rev()
        .find(|message| message["role"] == "user");
    last.map_or_else(String::new, |message| text_of(&message["content"]))
}

/// What people said since the last answer, a message a line.
pub(super) fn unanswered_text(messages: &Value) -> String {
    let messages = messages.as_array();
    let newest_first = messages.into_iter().flatten().rev();
    let mut texts: Vec<String> = newest_first
        .take_while(|message| message["role"] != "assistant" || calls_tools(message))
        .filter(|message| message["role"] == "user")
        .map(|message| text_of(&message["content"]))
        .collect();
    texts.reverse();
    texts.join("\n")
}

/// Whether the last messages are the results of tools.
pub(super) fn has_looked_up(messages: &Value) -> bool {
    let last = messages.as_array().and_then(|all| all.last());
    last.is_some_and(|message| message["role"] == "tool")
}

/// Whether a message of the model's asks for tools instead of answering.
fn calls_tools(message: &Value) -> bool {
    let calls = message["tool_calls"].as_array();
    calls.is_some_and(|calls| !calls.is_empty())
}

/// A content as text: itself, or its text parts joined.
pub(super) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect::<Vec<_>>()
            .join("\n"),
        _ => String::new(),
    }
}
