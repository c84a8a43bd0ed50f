//! Anthropic's messages: what is refused, and the wire form of answers and streams.
//!
//! Pure. *Source:* Anthropic API reference, messages; error texts as the API sends them.

use serde_json::{Value, json};

use super::openai::{OpenAiAnswer, OpenAiRefusal, event_named, halves};
use super::reply::pieces;
use super::rules::{always_thinks, seal, takes_no_temperature, unknown_field};

/// Parameters of a request.
const PARAMETERS: [&str; 18] = [
    "cache_control",
    "container",
    "context_management",
    "inference_geo",
    "max_tokens",
    "messages",
    "metadata",
    "model",
    "output_config",
    "service_tier",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_p",
];

/// Blocks that may be marked for the cache.
const MARKS_MAX: usize = 4;

fn refused(status: u16, kind: &str, message: &str) -> OpenAiRefusal {
    OpenAiRefusal {
        status,
        body: error_body(kind, message),
    }
}

fn invalid(message: &str) -> OpenAiRefusal {
    refused(400, "invalid_request_error", message)
}

/// An error as the API wraps it.
pub(super) fn error_body(kind: &str, message: &str) -> Value {
    json!({
        "type": "error", "error": {"type": kind, "message": message},
        "request_id": "req_loopback000000000000",
    })
}

/// The answer without a key.
pub(super) fn no_key() -> OpenAiRefusal {
    refused(401, "authentication_error", "x-api-key header is required")
}

/// The answer without a version.
pub(super) fn no_version() -> OpenAiRefusal {
    invalid("anthropic-version: header is required")
}

/// The body that goes with a scripted status.
pub(super) fn status_body(status: u16) -> Value {
    let (kind, message) = match status {
        401 => ("authentication_error", "invalid x-api-key"),
        403 => (
            "permission_error",
            "Your API key does not have permission to use the specified resource.",
        ),
        404 => ("not_found_error", "model: not found"),
        413 => ("request_too_large", "Request exceeds the maximum size"),
        429 => (
            "rate_limit_error",
            "This request would exceed your organization's rate limit.",
        ),
        529 => ("overloaded_error", "Overloaded"),
        400..=499 => ("invalid_request_error", "The request was refused."),
        _ => ("api_error", "Internal server error"),
    };
    error_body(kind, message)
}

/// The answer of a server that does not stream.
pub(super) fn no_streams() -> OpenAiRefusal {
    invalid("stream: streaming is not supported for this model")
}

/// Checks a request body as the API does.
pub(super) fn check(body: &[u8]) -> Result<Value, OpenAiRefusal> {
    let body: Value = serde_json::from_slice(body)
        .map_err(|_| invalid("The request body is not valid JSON: expected value"))?;
    if body["model"].as_str().is_none_or(str::is_empty) {
        return Err(invalid("model: Field required"));
    }
    match body.get("max_tokens").map(Value::as_i64) {
        None => return Err(invalid("max_tokens: Field required")),
        Some(Some(1..)) => {}
        Some(_) => {
            return Err(invalid(
                "max_tokens: Input should be greater than or equal to 1",
            ));
        }
    }
    let messages = body
        .get("messages")
        .ok_or_else(|| invalid("messages: Field required"))?
        .as_array()
        .ok_or_else(|| invalid("messages: Input should be a valid list"))?;
    if messages.is_empty() {
        return Err(invalid("messages: at least one message is required"));
    }
    for (n, message) in messages.iter().enumerate() {
        check_message(n, message, n + 1 == messages.len())?;
    }
    if messages[0]["role"] != "user" {
        return Err(invalid(
            "messages: first message must use the \"user\" role",
        ));
    }
    check_system(&body)?;
    check_marks(&body)?;
    check_tool_order(messages)?;
    check_parameters(&body)?;
    check_thoughts(&body, messages)?;
    Ok(body)
}

/// Parameters that newer models refuse, and parameters that no model knows.
fn check_parameters(body: &Value) -> Result<(), OpenAiRefusal> {
    if let Some(name) = unknown_field(body, &PARAMETERS) {
        return Err(invalid(&format!("{name}: Extra inputs are not permitted")));
    }
    let model = body["model"].as_str().unwrap_or_default();
    if body.get("temperature").is_some() && takes_no_temperature(model) {
        return Err(invalid("`temperature` is deprecated for this model."));
    }
    let mode = body["thinking"]["type"].as_str();
    if mode == Some("disabled") && always_thinks(model) {
        return Err(invalid(
            "thinking: this model does not support disabling thinking",
        ));
    }
    let thinks = always_thinks(model) || mode.is_some_and(|mode| mode != "disabled");
    if thinks && matches!(body["tool_choice"]["type"].as_str(), Some("any" | "tool")) {
        return Err(invalid(
            "Thinking may not be enabled when tool_choice forces tool use.",
        ));
    }
    Ok(())
}

/// Thoughts must come back unchanged, with the same system, tools and messages before them.
fn check_thoughts(body: &Value, messages: &[Value]) -> Result<(), OpenAiRefusal> {
    for (n, message) in messages.iter().enumerate() {
        let blocks = message["content"].as_array().into_iter().flatten();
        let thoughts = blocks.filter(|block| block["type"] == "thinking");
        for block in thoughts {
            let before = Value::Array(messages[..n].to_vec());
            if block["signature"] != *signature(body, &before, &block["thinking"]) {
                return Err(invalid(&format!(
                    "messages.{n}.content.0: `thinking` block is bound to a different conversation"
                )));
            }
        }
    }
    Ok(())
}

fn signature(body: &Value, before: &Value, thinking: &Value) -> String {
    seal(&[
        &body["model"],
        &body["system"],
        &body["tools"],
        before,
        thinking,
    ])
}

/// The thought of an answer, bound to the request.
fn thought(answer: &OpenAiAnswer, request: &Value) -> Option<Value> {
    let thinking = json!(answer.thinking?);
    let signature = signature(request, &request["messages"], &thinking);
    Some(json!({"type": "thinking", "thinking": thinking, "signature": signature}))
}

/// The refusal of a field that is not known.
pub(super) fn unknown_field_refused(name: &str) -> OpenAiRefusal {
    invalid(&format!("{name}: Extra inputs are not permitted"))
}

/// The refusal of a prompt that is too long.
pub(super) fn too_long(limit: u32, asked: u32) -> OpenAiRefusal {
    invalid(&format!(
        "prompt is too long: {asked} tokens > {limit} maximum"
    ))
}

fn check_message(n: usize, message: &Value, last: bool) -> Result<(), OpenAiRefusal> {
    let role = message["role"].as_str().unwrap_or("");
    if role == "system" {
        return Err(invalid(
            "messages: Unexpected role \"system\". The Messages API accepts a top-level `system` parameter, not \"system\" as an input message role.",
        ));
    }
    if !matches!(role, "user" | "assistant") {
        return Err(invalid(&format!(
            "messages: Unexpected role \"{role}\". Allowed roles are \"user\" or \"assistant\""
        )));
    }
    let content = &message["content"];
    let blocks = content.as_array().map(Vec::as_slice);
    let empty = content.as_str().is_some_and(str::is_empty) || blocks.is_some_and(<[_]>::is_empty);
    if empty && !(role == "assistant" && last) {
        return Err(invalid(&format!(
            "messages.{n}: all messages must have non-empty content except for the optional final assistant message"
        )));
    }
    if !content.is_string() && blocks.is_none() {
        return Err(invalid(&format!("messages.{n}.content: Field required")));
    }
    for block in blocks.into_iter().flatten() {
        if block["type"] == "text" && block["text"].as_str().is_none_or(str::is_empty) {
            return Err(invalid("messages: text content blocks must be non-empty"));
        }
    }
    let text = content.as_str().unwrap_or("");
    if role == "assistant" && last && text.ends_with(char::is_whitespace) {
        return Err(invalid(
            "messages: final assistant content cannot end with trailing whitespace",
        ));
    }
    Ok(())
}

/// At most four blocks may be marked for the cache, and no thought and no block without text.
fn check_marks(body: &Value) -> Result<(), OpenAiRefusal> {
    let lists = [&body["tools"], &body["system"]];
    let contents = body["messages"].as_array().into_iter().flatten();
    let contents = contents.map(|message| &message["content"]);
    let blocks = lists
        .into_iter()
        .chain(contents)
        .filter_map(Value::as_array);
    let marked: Vec<&Value> = blocks
        .flatten()
        .filter(|block| block.get("cache_control").is_some())
        .collect();
    if marked.len() > MARKS_MAX {
        return Err(invalid(&format!(
            "A maximum of {MARKS_MAX} blocks with cache_control may be provided. Found {}.",
            marked.len()
        )));
    }
    for block in marked {
        if block["cache_control"]["type"] != "ephemeral" {
            return Err(invalid("cache_control.type: Input should be 'ephemeral'"));
        }
        if block["type"] == "thinking" || block["text"] == "" {
            return Err(invalid("cache_control cannot be set for this block"));
        }
    }
    Ok(())
}

fn check_system(body: &Value) -> Result<(), OpenAiRefusal> {
    match body.get("system") {
        None | Some(Value::String(_) | Value::Array(_)) => Ok(()),
        Some(_) => Err(invalid("system: Input should be a valid list")),
    }
}

/// Every `tool_use` has its `tool_result` in the next message, and no result stands alone.
fn check_tool_order(messages: &[Value]) -> Result<(), OpenAiRefusal> {
    let ids = |message: &Value, kind: &str, field: &str| -> Vec<String> {
        let blocks = message["content"].as_array().into_iter().flatten();
        blocks
            .filter(|block| block["type"] == kind)
            .filter_map(|block| block[field].as_str().map(str::to_owned))
            .collect()
    };
    for (n, message) in messages.iter().enumerate() {
        let before = n.checked_sub(1).map(|before| &messages[before]);
        let used = before.map_or_else(Vec::new, |before| ids(before, "tool_use", "id"));
        for result in ids(message, "tool_result", "tool_use_id") {
            if !used.contains(&result) {
                return Err(invalid(&format!(
                    "messages.{n}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: {result}. Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
                )));
            }
        }
        let next = messages.get(n + 1);
        let results = next.map_or_else(Vec::new, |next| ids(next, "tool_result", "tool_use_id"));
        let mut missing = ids(message, "tool_use", "id");
        missing.retain(|id| !results.contains(id));
        if !missing.is_empty() {
            return Err(invalid(&format!(
                "messages.{n}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
                missing.join(", ")
            )));
        }
    }
    Ok(())
}

fn stop_reason(answer: &OpenAiAnswer) -> &'static str {
    match (answer.cut, answer.tool_calls.is_empty()) {
        (true, _) => "max_tokens",
        (false, false) => "tool_use",
        (false, true) => "end_turn",
    }
}

/// Tokens as the API reports them: tokens read from or written to the cache are not in the input.
fn usage(answer: &OpenAiAnswer, output: u32) -> Value {
    let usage = answer.usage;
    let mut told = json!({"input_tokens": usage.uncached(), "output_tokens": output});
    if usage.is_cached() {
        told["cache_creation_input_tokens"] = json!(usage.cache_write);
        told["cache_read_input_tokens"] = json!(usage.cache_read);
    }
    told
}

/// The body of an answer that is not streamed.
pub(super) fn body(answer: &OpenAiAnswer, request: &Value) -> Value {
    let mut content: Vec<Value> = thought(answer, request).into_iter().collect();
    if !answer.text.is_empty() {
        content.push(json!({"type": "text", "text": answer.text}));
    }
    for call in answer.tool_calls {
        content.push(json!({
            "type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments,
        }));
    }
    json!({
        "id": answer.id, "type": "message", "role": "assistant", "model": answer.model,
        "content": content, "stop_reason": stop_reason(answer), "stop_sequence": null,
        "usage": usage(answer, answer.usage.output),
    })
}

/// The events up to the end of the text.
pub(super) fn opening(answer: &OpenAiAnswer, request: &Value) -> Vec<String> {
    let start = json!({"type": "message_start", "message": {
        "id": answer.id, "type": "message", "role": "assistant", "model": answer.model, "content": [],
        "stop_reason": null, "stop_sequence": null,
        "usage": usage(answer, 1),
    }});
    let mut events = vec![event_named(&start), event_named(&json!({"type": "ping"}))];
    let index = usize::from(answer.thinking.is_some());
    if let Some(thought) = thought(answer, request) {
        let begun = json!({"type": "thinking", "thinking": "", "signature": ""});
        let deltas = [
            json!({"type": "thinking_delta", "thinking": thought["thinking"]}),
            json!({"type": "signature_delta", "signature": thought["signature"]}),
        ];
        events.push(event_named(
            &json!({"type": "content_block_start", "index": 0, "content_block": begun}),
        ));
        for delta in deltas {
            events.push(event_named(
                &json!({"type": "content_block_delta", "index": 0, "delta": delta}),
            ));
        }
        events.push(event_named(
            &json!({"type": "content_block_stop", "index": 0}),
        ));
    }
    if answer.text.is_empty() {
        return events;
    }
    let block = json!({"type": "text", "text": ""});
    events.push(event_named(
        &json!({"type": "content_block_start", "index": index, "content_block": block}),
    ));
    for piece in pieces(answer.text, answer.pace) {
        let delta = json!({"type": "text_delta", "text": piece});
        events.push(event_named(
            &json!({"type": "content_block_delta", "index": index, "delta": delta}),
        ));
    }
    events
}

/// The whole stream. `has_index` is false for servers that leave the index of blocks out.
pub(super) fn stream(answer: &OpenAiAnswer, request: &Value, has_index: bool) -> Vec<String> {
    let mut events = opening(answer, request);
    let mut index = usize::from(answer.thinking.is_some());
    if !answer.text.is_empty() {
        events.push(event_named(
            &json!({"type": "content_block_stop", "index": index}),
        ));
        index += 1;
    }
    for call in answer.tool_calls {
        let block = json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}});
        let mut parts = vec![json!({"type": "content_block_start", "content_block": block})];
        let arguments = call.arguments.to_string();
        let (first, second) = halves(&arguments);
        for part in [first, second] {
            let delta = json!({"type": "input_json_delta", "partial_json": part});
            parts.push(json!({"type": "content_block_delta", "delta": delta}));
        }
        parts.push(json!({"type": "content_block_stop"}));
        for mut part in parts {
            if has_index {
                part["index"] = json!(index);
            }
            events.push(event_named(&part));
        }
        index += 1;
    }
    events.push(event_named(&json!({
        "type": "message_delta", "delta": {"stop_reason": stop_reason(answer), "stop_sequence": null},
        "usage": {"output_tokens": answer.usage.output},
    })));
    events.push(event_named(&json!({"type": "message_stop"})));
    events
}
