//! Anthropic's Messages: builds requests, and reads answers and events into a draft.
//!
//! Pure. Blocks come one after the other; an event without an `index` belongs to the last block.

use std::ops::Range;

use serde_json::{Map, Value, json};

use super::asking::{ProviderRequest, base64, is_strict, object};
use super::draft::{Draft, DraftCall, WrittenAnswer, tokens};
use super::malformed;
use super::reader::ProviderAnswer;
use crate::llm::Exchange;
use crate::llm::failure::of_event;
use vocative_core::prompting::files::PromptImage;
use vocative_core::prompting::{PromptMessage, PromptRole};

/// A person's message that is put before an assistant's message at the start of a conversation, because the provider
/// requires a person's message first.
const BEGAN_EARLIER: &str = "(This conversation began earlier.)";

/// The most cache marks of a request. Source: Anthropic's prompt caching page.
const MARKS_MAX: usize = 4;
/// The least number of blocks between two marks in a long loop of tools.
const MARK_BLOCKS: usize = 15;

/// The body of a request. System messages go to the top.
pub(super) fn request(asking: &ProviderRequest<'_>) -> Value {
    let points = asking.cache_points();
    let (mut system, mut messages) = (Vec::new(), Vec::new());
    for (n, (message, images)) in asking.messages().enumerate() {
        match message.role {
            PromptRole::System => system.push(message.content.as_str()),
            PromptRole::Assistant if messages.is_empty() => {
                messages.push(json!({"role": "user", "content": BEGAN_EARLIER}));
                messages.push(prompt_message(message, images));
            }
            PromptRole::User | PromptRole::Assistant => {
                messages.push(prompt_message(message, images));
            }
        }
        if points.history == Some(n)
            && let Some(last) = messages.last_mut()
        {
            last["content"] = marked_text(&last["content"]);
        }
    }
    for exchange in asking.request.exchanges {
        let content = asking
            .received(exchange)
            .map_or_else(|| neutral(exchange), sent_back);
        messages.push(json!({"role": "assistant", "content": content}));
        messages.push(results(exchange));
    }
    if points.results {
        mark_results(
            &mut messages,
            usize::from(points.system) + usize::from(points.history.is_some()),
        );
    }
    let mut body = json!({
        "model": asking.origin.model,
        "max_tokens": asking.max_output_tokens,
        "messages": messages,
        "stream": asking.is_streamed,
    });
    if !system.is_empty() {
        let system = json!(system.join("\n\n"));
        body["system"] = match points.system {
            true => marked_text(&system),
            false => system,
        };
    }
    if let Some(temperature) = asking.temperature() {
        body["temperature"] = json!(temperature);
    }
    match asking.effort() {
        None => {}
        Some("none") => body["thinking"] = json!({"type": "disabled"}),
        Some(effort) => body["output_config"] = json!({"effort": effort}),
    }
    if asking.has_tools() {
        let tools = asking.request.tools.iter().map(|tool| {
            json!({"name": tool.name, "description": tool.description, "input_schema": tool.schema})
        });
        body["tools"] = tools.collect();
    }
    if asking.forbids_tools() {
        body["tool_choice"] = json!({"type": "none"});
    }
    match asking.forced_tool() {
        None => {}
        Some(None) => body["tool_choice"] = json!({"type": "any"}),
        Some(Some(tool)) => body["tool_choice"] = json!({"type": "tool", "name": tool}),
    }
    if let Some(schema) = asking
        .request
        .answer_schema
        .filter(|schema| is_strict(schema))
    {
        body["output_config"]["format"] = json!({"type": "json_schema", "schema": schema});
    }
    body
}

/// A text as a marked block, which ends a part for the cache to keep.
fn marked_text(text: &Value) -> Value {
    json!([{"type": "text", "text": text, "cache_control": mark()}])
}

fn mark() -> Value {
    json!({"type": "ephemeral"})
}

/// Marks the last result, and earlier results with at least [`MARK_BLOCKS`] blocks between two marks, as long as the
/// provider accepts more marks: it looks for a cached part at most 20 blocks before a mark.
fn mark_results(messages: &mut [Value], marks: usize) {
    let (mut left, mut passed) = (MARKS_MAX.saturating_sub(marks), MARK_BLOCKS);
    for message in messages.iter_mut().rev() {
        let Some(blocks) = message["content"].as_array_mut() else {
            return;
        };
        let last = blocks
            .last_mut()
            .filter(|block| block["type"] == "tool_result");
        if let Some(block) = last
            && left > 0
            && passed >= MARK_BLOCKS
        {
            block["cache_control"] = mark();
            (left, passed) = (left - 1, 0);
        }
        passed += blocks.len();
    }
}

fn picture(image: &PromptImage) -> Value {
    json!({"type": "image", "source": {
        "type": "base64", "media_type": image.mime_type, "data": base64(&image.bytes),
    }})
}

fn prompt_message(message: &PromptMessage, images: &[PromptImage]) -> Value {
    let role = match message.role {
        PromptRole::Assistant => "assistant",
        PromptRole::System | PromptRole::User => "user",
    };
    if images.is_empty() {
        return json!({"role": role, "content": message.content});
    }
    let text = json!({"type": "text", "text": message.content});
    let content: Value = std::iter::once(text)
        .chain(images.iter().map(picture))
        .collect();
    json!({"role": role, "content": content})
}

/// Content as it was received, without empty texts, which the provider sends but does not accept.
fn sent_back(content: Value) -> Value {
    let Value::Array(blocks) = content else {
        return content;
    };
    let is_empty = |block: &Value| block["type"] == "text" && block["text"] == "";
    blocks
        .into_iter()
        .filter(|block| !is_empty(block))
        .collect()
}

/// An answer without the provider's own fields.
fn neutral(exchange: &Exchange) -> Value {
    let text = (!exchange.text.is_empty()).then(|| json!({"type": "text", "text": exchange.text}));
    let calls = exchange.calls.iter().map(|call| {
        json!({"type": "tool_use", "id": call.id, "name": call.name, "input": object(&call.arguments)})
    });
    text.into_iter().chain(calls).collect()
}

/// All results of an answer's calls, in one message.
fn results(exchange: &Exchange) -> Value {
    let results = exchange.results.iter().map(|result| {
        let mut block = json!({
            "type": "tool_result", "tool_use_id": result.call_id, "content": result.content,
        });
        if !result.images.is_empty() {
            let text = json!({"type": "text", "text": result.content});
            let pictures = result.images.iter().map(picture);
            block["content"] = std::iter::once(text).chain(pictures).collect();
        }
        if result.is_error {
            block["is_error"] = json!(true);
        }
        block
    });
    let told = (!exchange.told.is_empty()).then(|| json!({"type": "text", "text": exchange.told}));
    json!({"role": "user", "content": results.chain(told).collect::<Value>()})
}

/// The content of a message while it is written.
#[derive(Debug, Default)]
pub(super) struct MessageContent {
    blocks: Vec<MessageBlock>,
    /// Tokens of the prompt that were neither read from the cache nor written to it.
    uncached_tokens: Option<u64>,
    /// The content as it was received, if it was not streamed.
    whole: Option<Value>,
}

#[derive(Debug)]
enum MessageBlock {
    /// A piece of the text.
    Text(Range<usize>),
    /// A call, by its index.
    Call(usize),
    Thinking {
        thinking: String,
        signature: String,
    },
    /// Any other block, as it was received.
    Other(Value),
}

impl MessageContent {
    /// Reads one event. Returns whether it belongs to this protocol.
    pub(super) fn read(&mut self, name: Option<&str>, data: &str, draft: &mut Draft) -> bool {
        let Ok(event) = serde_json::from_str::<Value>(data) else {
            draft.garble();
            return true;
        };
        match event["type"].as_str().or(name).unwrap_or_default() {
            "message_start" => self.read_usage(&event["message"]["usage"], draft),
            "content_block_start" => self.begin(&event["content_block"], draft),
            "content_block_delta" => self.read_delta(&event, draft),
            "message_delta" => {
                self.read_usage(&event["usage"], draft);
                if let Some(reason) = event["delta"]["stop_reason"].as_str() {
                    draft.finish(reason);
                }
            }
            "message_stop" => draft.end(),
            "error" => draft.fail(of_event(&event["error"])),
            "ping" | "content_block_stop" => {}
            _ => return false,
        }
        true
    }

    /// Reads an answer that is not streamed. Returns whether it belongs to this protocol.
    pub(super) fn read_whole(&mut self, body: &Value, draft: &mut Draft) -> bool {
        let Some(blocks) = body["content"].as_array() else {
            return false;
        };
        self.read_usage(&body["usage"], draft);
        for block in blocks {
            self.begin(block, draft);
        }
        self.whole = Some(body["content"].clone());
        if let Some(reason) = body["stop_reason"].as_str() {
            draft.finish(reason);
        }
        draft.end();
        true
    }

    /// For each number the last report counts; the provider's input tokens do not include those read from or written to
    /// the cache.
    fn read_usage(&mut self, usage: &Value, draft: &mut Draft) {
        let known = &mut draft.usage;
        let newest = |name, before| tokens(usage, name).unwrap_or(before);
        known.cache_write = newest("cache_creation_input_tokens", known.cache_write);
        known.cache_read = newest("cache_read_input_tokens", known.cache_read);
        self.uncached_tokens = tokens(usage, "input_tokens").or(self.uncached_tokens);
        let cached = known.cache_write.saturating_add(known.cache_read);
        known.prompt = self.uncached_tokens.map(|it| it.saturating_add(cached));
        known.completion = tokens(usage, "output_tokens").or(known.completion);
    }

    fn begin(&mut self, block: &Value, draft: &mut Draft) {
        let text = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
        let begun = match block["type"].as_str().unwrap_or_default() {
            "text" => {
                let from = draft.text_bytes();
                draft.write(&text("text"));
                MessageBlock::Text(from..draft.text_bytes())
            }
            "tool_use" => MessageBlock::Call(draft.begin_call(DraftCall {
                index: None,
                id: text("id"),
                name: text("name"),
                arguments: match &block["input"] {
                    Value::Object(input) if !input.is_empty() => block["input"].to_string(),
                    _ => String::new(),
                },
                extra: None,
            })),
            "thinking" => MessageBlock::Thinking {
                thinking: text("thinking"),
                signature: text("signature"),
            },
            _ => MessageBlock::Other(block.clone()),
        };
        let bytes = match &begun {
            MessageBlock::Text(_) | MessageBlock::Call(_) => BLOCK_BYTES,
            MessageBlock::Thinking { .. } | MessageBlock::Other(_) => {
                BLOCK_BYTES + block.to_string().len()
            }
        };
        if draft.has_room(bytes) {
            self.blocks.push(begun);
        } else {
            draft.fail(malformed("it has too many parts"));
        }
    }

    fn read_delta(&mut self, event: &Value, draft: &mut Draft) {
        let delta = &event["delta"];
        let text = |name: &str| delta[name].as_str().unwrap_or_default();
        let index = event["index"]
            .as_u64()
            .and_then(|n| usize::try_from(n).ok());
        let at = index
            .filter(|at| *at < self.blocks.len())
            .or(self.blocks.len().checked_sub(1));
        let block = at.map(|at| &mut self.blocks[at]);
        match (delta["type"].as_str().unwrap_or_default(), block) {
            ("text_delta", Some(MessageBlock::Text(range))) if range.end == draft.text_bytes() => {
                draft.write(text("text"));
                range.end = draft.text_bytes();
            }
            ("input_json_delta", Some(MessageBlock::Call(at))) => {
                draft.call(*at, text("partial_json"));
            }
            ("thinking_delta", Some(MessageBlock::Thinking { thinking, .. })) => {
                draft.keep(thinking, text("thinking"));
            }
            ("signature_delta", Some(MessageBlock::Thinking { signature, .. })) => {
                draft.keep(signature, text("signature"));
            }
            ("text_delta" | "input_json_delta", _) => {
                draft.fail(malformed("its stream names no part of it"));
            }
            _ => {}
        }
    }

    /// The whole answer, with the content as it would be without a stream.
    pub(super) fn conclude(self, written: WrittenAnswer) -> ProviderAnswer {
        if let Some(content) = self.whole {
            return written.said(content);
        }
        let block = |block| match block {
            MessageBlock::Text(range) => {
                let text = written.full_text.get(range).unwrap_or_default();
                json!({"type": "text", "text": text})
            }
            MessageBlock::Call(at) => {
                let call = &written.calls[at];
                let input = match call.arguments.as_str() {
                    "" => Value::Object(Map::new()),
                    _ => call.arguments(),
                };
                json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input})
            }
            MessageBlock::Thinking {
                thinking,
                signature,
            } => json!({"type": "thinking", "thinking": thinking, "signature": signature}),
            MessageBlock::Other(block) => block,
        };
        let content: Value = self.blocks.into_iter().map(block).collect();
        written.said(content)
    }
}

/// What a block counts besides its content, in bytes.
const BLOCK_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::super::draft::ReportedUsage;
    use super::*;
    use crate::llm::ModelError;
    use crate::llm::provider::draft::DraftOutcome;
    use crate::llm::provider::reader::Reason;
    use crate::llm::provider::thoughts::Aloud;

    fn read(events: &[Value]) -> (MessageContent, Draft) {
        let (mut content, mut draft) = (MessageContent::default(), Draft::new(1_000, Aloud::Never));
        for event in events {
            content.read(None, &event.to_string(), &mut draft);
        }
        (content, draft)
    }

    fn said(events: &[Value]) -> ProviderAnswer {
        let (content, draft) = read(events);
        match draft.conclude() {
            DraftOutcome::Whole(written) => content.conclude(*written),
            other => panic!("{other:?}"),
        }
    }

    fn start(block: &Value) -> Value {
        json!({"type": "content_block_start", "content_block": block})
    }

    fn delta(delta: &Value) -> Value {
        json!({"type": "content_block_delta", "delta": delta})
    }

    fn stop(reason: &str, usage: &Value) -> [Value; 2] {
        [
            json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}),
            json!({"type": "message_stop"}),
        ]
    }

    #[test]
    fn every_kind_of_block_is_put_together() {
        let events = [
            json!({"type": "message_start", "message": {"usage": {"input_tokens": 3, "output_tokens": 1}}}),
            json!({"type": "ping"}),
            start(&json!({"type": "thinking", "thinking": "", "signature": ""})),
            delta(&json!({"type": "thinking_delta", "thinking": "hm"})),
            delta(&json!({"type": "thinking_delta", "thinking": "m"})),
            delta(&json!({"type": "signature_delta", "signature": "c2ln"})),
            json!({"type": "content_block_stop", "index": 0}),
            start(&json!({"type": "redacted_thinking", "data": "x"})),
            start(&json!({"type": "text", "text": ""})),
            delta(&json!({"type": "text_delta", "text": "Let me "})),
            delta(&json!({"type": "text_delta", "text": "see."})),
            delta(&json!({"type": "citations_delta", "citation": {}})),
            start(&json!({"type": "tool_use", "id": "a", "name": "f", "input": {}})),
            delta(&json!({"type": "input_json_delta", "partial_json": "{\"q\":"})),
            delta(&json!({"type": "input_json_delta", "partial_json": "1}"})),
            start(&json!({"type": "tool_use", "id": "b", "name": "g", "input": {}})),
            start(&json!({"type": "text", "text": ""})),
            delta(&json!({"type": "text_delta", "text": " So."})),
            json!({"type": "an_event_of_tomorrow"}),
        ];
        let said = said(&[&events[..], &stop("tool_use", &json!({"output_tokens": 7}))].concat());
        assert_eq!(
            said.message,
            json!([
                {"type": "thinking", "thinking": "hmm", "signature": "c2ln"},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "text", "text": "Let me see."},
                {"type": "tool_use", "id": "a", "name": "f", "input": {"q": 1}},
                {"type": "tool_use", "id": "b", "name": "g", "input": {}},
                {"type": "text", "text": " So."},
            ])
        );
        assert_eq!(said.text, "Let me see. So.");
        assert_eq!(said.calls.len(), 2);
        assert_eq!(
            (said.reason, said.usage.prompt, said.usage.completion),
            (Reason::Tools, Some(3), Some(7))
        );
    }

    /// As without a stream: tokens read from or written to the cache belong to the prompt.
    #[test]
    fn cached_tokens_count_once_however_often_they_are_told() {
        let text = start(&json!({"type": "text", "text": "x"}));
        let cached = json!({"input_tokens": 3, "cache_creation_input_tokens": 20,
                            "cache_read_input_tokens": 100, "output_tokens": 1});
        let begin = json!({"type": "message_start", "message": {"usage": cached}});
        for last in [json!({"output_tokens": 7}), {
            let mut again = cached.clone();
            again["output_tokens"] = json!(7);
            again
        }] {
            let said =
                said(&[&[begin.clone(), text.clone()][..], &stop("end_turn", &last)].concat());
            let expected = ReportedUsage {
                prompt: Some(123),
                cache_read: 100,
                cache_write: 20,
                completion: Some(7),
            };
            assert_eq!(said.usage, expected);
        }
    }

    #[test]
    fn errors_and_ends() {
        let text = start(&json!({"type": "text", "text": "x"}));
        let outcome = |last: &[Value]| {
            let events = [std::slice::from_ref(&text), last].concat();
            let (_, mut draft) = read(&events);
            draft.close();
            draft.conclude()
        };
        assert!(matches!(outcome(&[]), DraftOutcome::Broken));
        let [reason, end] = stop("end_turn", &json!({}));
        assert!(matches!(outcome(&[reason]), DraftOutcome::Whole(_)));
        assert!(matches!(outcome(&[end]), DraftOutcome::Whole(_)));
        let error = |kind: &str| json!({"type": "error", "error": {"type": kind, "message": "m"}});
        let cases = [
            ("overloaded_error", "unavailable"),
            ("api_error", "unavailable"),
            ("rate_limit_error", "wait"),
            ("invalid_request_error", "refuses"),
        ];
        for (kind, expected) in cases {
            let DraftOutcome::Failed(cause) = outcome(&[error(kind)]) else {
                panic!("{kind}");
            };
            assert!(cause.to_string().contains(expected), "{kind}: {cause}");
        }
        let lost = delta(&json!({"type": "input_json_delta", "partial_json": "{}"}));
        assert!(matches!(
            outcome(&[lost]),
            DraftOutcome::Failed(ModelError::Malformed { .. })
        ));
    }
}
