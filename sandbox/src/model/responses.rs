//! OpenAI's Responses: what is refused, and the wire form of answers and streams.
//!
//! Pure. *Source:* OpenAI API reference, responses; error texts as the API sends them.

use serde_json::{Value, json};

use super::openai::{OpenAiAnswer, OpenAiRefusal, event_named, halves, refused};
use super::reply::pieces;
use super::rules::{is_openai_plain, is_openai_reasoner, seal, unknown_field};

/// Parameters of a request.
const PARAMETERS: [&str; 24] = [
    "background",
    "conversation",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_options",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_p",
];

/// The value of `include` with which reasoning items are requested.
const ENCRYPTED: &str = "reasoning.encrypted_content";

fn invalid(message: &str, param: &str) -> OpenAiRefusal {
    refused(400, message, Some(param), None)
}

/// Checks a request body as the API does.
pub(super) fn check(body: &[u8]) -> Result<Value, OpenAiRefusal> {
    let body: Value = serde_json::from_slice(body)
        .map_err(|_| invalid("We could not parse the JSON body of your request.", "body"))?;
    let model = body["model"].as_str().unwrap_or_default();
    if model.is_empty() {
        return Err(invalid("Missing required parameter: 'model'.", "model"));
    }
    if let Some(name) = unknown_field(&body, &PARAMETERS) {
        let message = format!("Unknown parameter: '{name}'.");
        return Err(refused(
            400,
            &message,
            Some(name),
            Some("unknown_parameter"),
        ));
    }
    if body
        .get("max_output_tokens")
        .is_some_and(|it| it.as_u64().is_none_or(|it| it < 16))
    {
        return Err(invalid(
            "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16.",
            "max_output_tokens",
        ));
    }
    if body.get("temperature").is_some_and(|it| *it != 1.0) && is_openai_reasoner(model) {
        let message = "Unsupported parameter: 'temperature' is not supported with this model.";
        return Err(invalid(message, "temperature"));
    }
    if asks_encrypted(&body) && is_openai_plain(model) {
        return Err(invalid(
            "Encrypted content is not supported with this model.",
            "include",
        ));
    }
    match &body["input"] {
        Value::String(text) if !text.is_empty() => {}
        Value::Array(items) if !items.is_empty() => check_items(&body, items)?,
        _ => return Err(invalid("Missing required parameter: 'input'.", "input")),
    }
    Ok(body)
}

fn asks_encrypted(body: &Value) -> bool {
    let asked = body["include"].as_array().into_iter().flatten();
    asked.into_iter().any(|it| it == ENCRYPTED)
}

/// Every call must have its output, every output its call, and reasoning must come back whole, before what it led to.
fn check_items(body: &Value, items: &[Value]) -> Result<(), OpenAiRefusal> {
    let text = |item: &Value, name: &str| item[name].as_str().unwrap_or_default().to_owned();
    let of_type = |kind: &'static str| items.iter().filter(move |item| item["type"] == kind);
    for (n, item) in items.iter().enumerate() {
        let param = format!("input[{n}]");
        let mut parts = item["content"].as_array().into_iter().flatten();
        if text(item, "role") == "assistant"
            && parts.any(|part| part.get("prompt_cache_breakpoint").is_some())
        {
            return Err(invalid(
                "Invalid value: 'prompt_cache_breakpoint' is not supported on assistant messages.",
                &param,
            ));
        }
        match (text(item, "type").as_str(), text(item, "role").as_str()) {
            ("reasoning", _) => check_reasoning(body, item, items.get(n + 1), &param)?,
            ("function_call", _) => {
                let id = text(item, "call_id");
                if !of_type("function_call_output").any(|it| it["call_id"] == *id) {
                    return Err(invalid(
                        &format!("No tool output found for function call {id}."),
                        "input",
                    ));
                }
                let led_by = text(item, "id")
                    .strip_prefix("fc_led_")
                    .map(|it| format!("rs_{it}"));
                if let Some(reasoning) = led_by
                    && !items[..n].iter().any(|it| it["id"] == *reasoning)
                {
                    return Err(invalid(
                        &format!(
                            "Item '{}' of type 'function_call' was provided without its required 'reasoning' item: '{reasoning}'.",
                            text(item, "id")
                        ),
                        "input",
                    ));
                }
            }
            ("function_call_output", _) => {
                let id = text(item, "call_id");
                if !items[..n]
                    .iter()
                    .any(|it| it["type"] == "function_call" && it["call_id"] == *id)
                {
                    return Err(invalid(
                        &format!("No tool call found for function call output with call_id {id}."),
                        "input",
                    ));
                }
            }
            ("" | "message", "user" | "system" | "developer" | "assistant") => {
                let content = &item["content"];
                if !content.is_string() && content.as_array().is_none_or(Vec::is_empty) {
                    return Err(invalid(
                        &format!("Missing required parameter: '{param}.content'."),
                        &param,
                    ));
                }
            }
            (kind, _) => {
                return Err(invalid(
                    &format!("Invalid value: '{kind}'."),
                    &format!("{param}.type"),
                ));
            }
        }
    }
    Ok(())
}

fn check_reasoning(
    body: &Value,
    item: &Value,
    next: Option<&Value>,
    param: &str,
) -> Result<(), OpenAiRefusal> {
    let id = item["id"].as_str().unwrap_or_default();
    if body["store"] == false && item["encrypted_content"].is_null() {
        return Err(refused(
            404,
            &format!(
                "Item with id '{id}' not found. Items are not persisted when `store` is set to false."
            ),
            Some("input"),
            None,
        ));
    }
    if item["encrypted_content"] != *seal(&[&item["id"], &item["summary"]]) {
        let message = format!("The encrypted content for item {id} could not be verified.");
        return Err(refused(
            400,
            &message,
            Some(param),
            Some("invalid_encrypted_content"),
        ));
    }
    if next.is_none_or(|next| next["type"] == "function_call_output" || next["role"] == "user") {
        return Err(invalid(
            &format!(
                "Item '{id}' of type 'reasoning' was provided without its required following item."
            ),
            "input",
        ));
    }
    Ok(())
}

/// The items of an answer.
fn output(answer: &OpenAiAnswer, body: &Value) -> Vec<Value> {
    let mut items = Vec::new();
    let serial = answer.id.trim_start_matches("resp_");
    if let Some(thinking) = answer.thinking {
        let id = json!(format!("rs_{serial}"));
        let summary = json!([{"type": "summary_text", "text": thinking}]);
        let encrypted = seal(&[&id, &summary]);
        let mut item = json!({"id": id, "type": "reasoning", "summary": summary});
        if asks_encrypted(body) {
            item["encrypted_content"] = json!(encrypted);
        }
        items.push(item);
    }
    if !answer.text.is_empty() {
        items.push(json!({
            "id": format!("msg_{serial}"), "type": "message", "role": "assistant",
            "status": if answer.cut { "incomplete" } else { "completed" },
            "content": [{"type": "output_text", "text": answer.text, "annotations": []}],
        }));
    }
    for (n, call) in answer.tool_calls.iter().enumerate() {
        // The first call is bound to the reasoning before it.
        let led = n == 0 && answer.thinking.is_some() && answer.text.is_empty();
        let id = if led {
            format!("fc_led_{serial}")
        } else {
            format!("fc_{serial}_{n}")
        };
        items.push(json!({
            "id": id, "type": "function_call", "status": "completed", "call_id": call.id,
            "name": call.name, "arguments": call.arguments.to_string(),
        }));
    }
    items
}

fn usage(answer: &OpenAiAnswer) -> Value {
    let usage = answer.usage;
    let mut told = json!({
        "input_tokens": usage.input, "output_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
    });
    if usage.is_cached() {
        told["input_tokens_details"] =
            json!({"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write});
    }
    told
}

/// The body of an answer that is not streamed.
pub(super) fn body(answer: &OpenAiAnswer, request: &Value) -> Value {
    let (status, details) = match answer.cut {
        true => ("incomplete", json!({"reason": "max_output_tokens"})),
        false => ("completed", Value::Null),
    };
    json!({
        "id": answer.id, "object": "response", "created_at": answer.created_s, "status": status,
        "model": answer.model, "error": null, "incomplete_details": details,
        "output": output(answer, request), "store": request["store"],
        "usage": usage(answer),
    })
}

/// The events up to the end of the text.
pub(super) fn opening(answer: &OpenAiAnswer) -> Vec<String> {
    let begun =
        json!({"id": answer.id, "object": "response", "status": "in_progress", "output": []});
    let mut events = vec![
        event_named(&json!({"type": "response.created", "response": begun})),
        event_named(&json!({"type": "response.in_progress", "response": begun})),
    ];
    for piece in pieces(answer.text, answer.pace) {
        events.push(event_named(&json!({
            "type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": piece,
        })));
    }
    events
}

/// The whole stream.
pub(super) fn stream(answer: &OpenAiAnswer, request: &Value) -> Vec<String> {
    let mut events = opening(answer);
    for (n, item) in output(answer, request).iter().enumerate() {
        if let Some(arguments) = item["arguments"].as_str() {
            let mut begun = item.clone();
            begun["arguments"] = json!("");
            events.push(event_named(
                &json!({"type": "response.output_item.added", "output_index": n, "item": begun}),
            ));
            let (first, second) = halves(arguments);
            for delta in [first, second] {
                events.push(event_named(&json!({
                    "type": "response.function_call_arguments.delta", "output_index": n, "delta": delta,
                })));
            }
        }
        events.push(event_named(
            &json!({"type": "response.output_item.done", "output_index": n, "item": item}),
        ));
    }
    let kind = if answer.cut {
        "response.incomplete"
    } else {
        "response.completed"
    };
    events.push(event_named(
        &json!({"type": kind, "response": body(answer, request)}),
    ));
    events
}

/// An error event.
pub(super) fn error_event(message: &str) -> String {
    event_named(
        &json!({"type": "error", "code": "server_error", "message": message, "param": null}),
    )
}

/// The input as messages of Chat Completions, to be looked through.
pub(super) fn as_messages(input: &Value) -> Value {
    let Value::Array(items) = input else {
        return json!([{"role": "user", "content": input}]);
    };
    let message = |item: &Value| match item["type"].as_str() {
        Some("function_call") => {
            json!({"role": "assistant", "tool_calls": [{"id": item["call_id"]}]})
        }
        Some("function_call_output") => json!({"role": "tool", "content": item["output"]}),
        Some("reasoning") => json!({"role": "assistant", "tool_calls": [{}]}),
        _ => json!({"role": item["role"], "content": item["content"]}),
    };
    items.iter().map(message).collect()
}
