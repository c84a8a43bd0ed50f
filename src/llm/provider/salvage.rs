//! Reads an answer of OpenAI's shape that the library gave up on.
//!
//! The library refuses a whole answer if the arguments of one tool call are no JSON, or if a call
//! has no id. Models and servers do both. The model is told what is wrong with its call instead, so
//! the call must get through.

use serde_json::Value;

use super::Said;
use crate::llm::{Finish, ToolCall};

/// What was said; `None` if the body has no answer.
pub(super) fn said(body: &Value) -> Option<Said> {
    let choice = body.pointer("/choices/0")?;
    let message = choice.get("message")?;
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    let calls: Vec<ToolCall> = calls.filter_map(call).collect();
    Some(Said {
        text: message["content"].as_str().unwrap_or_default().to_owned(),
        calls,
        finish: match choice["finish_reason"].as_str() {
            Some("stop") => Finish::Stop,
            Some("length") => Finish::Length,
            Some("content_filter") => Finish::ContentFilter,
            _ => Finish::Other,
        },
        usage: (
            body["usage"]["prompt_tokens"].as_u64(),
            body["usage"]["completion_tokens"].as_u64(),
        ),
        message: message.clone(),
    })
}

fn call(call: &Value) -> Option<ToolCall> {
    Some(ToolCall {
        id: call["id"].as_str().unwrap_or_default().to_owned(),
        name: call["function"]["name"].as_str()?.to_owned(),
        arguments: call["function"]["arguments"].clone(),
    })
}
