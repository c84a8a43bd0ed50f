//! OpenAI's Responses: builds requests, and reads answers and events into a draft.
//!
//! Pure. The provider stores nothing: reasoning comes encrypted, is kept with its step, and is sent back before the
//! calls that followed it. For an item, only its *done* event counts.

use serde_json::{Value, json};

use super::asking::{ANSWER, ProviderRequest, data_url, is_strict, marked, object};
use super::draft::{Draft, DraftCall, WrittenAnswer, read_cache_usage, tokens};
use super::malformed;
use super::reader::ProviderAnswer;
use crate::llm::Exchange;
use crate::llm::failure::of_event;
use vocative_core::prompting::files::PromptImage;
use vocative_core::prompting::{PromptMessage, PromptRole};

/// The fewest output tokens that the provider accepts as a limit.
const OUTPUT_TOKENS_MIN: u32 = 16;

/// The body of a request.
pub(super) fn request(asking: &ProviderRequest<'_>) -> Value {
    let points = asking.cache_points();
    let mut input: Vec<Value> = asking
        .messages()
        .map(|(message, images)| prompt_message(message, images))
        .collect();
    if let Some(n) = points.history {
        let text = input[n]["content"].take();
        input[n]["content"] = json!([{
            "type": "input_text", "text": text, "prompt_cache_breakpoint": {"mode": "explicit"},
        }]);
    }
    for exchange in asking.request.exchanges {
        match asking.received(exchange) {
            Some(Value::Array(items)) => input.extend(items),
            _ => input.extend(neutral(exchange)),
        }
        input.extend(exchange.results.iter().map(|result| {
            let mut output = json!({
                "type": "function_call_output", "call_id": result.call_id, "output": marked(result),
            });
            if !result.images.is_empty() {
                let text = json!({"type": "input_text", "text": marked(result)});
                let pictures = result.images.iter().map(picture);
                output["output"] = std::iter::once(text).chain(pictures).collect();
            }
            output
        }));
        if !exchange.told.is_empty() {
            input.push(json!({"role": "user", "content": exchange.told}));
        }
    }
    let mut body = json!({
        "model": asking.origin.model,
        "input": input,
        "max_output_tokens": asking.max_output_tokens.max(OUTPUT_TOKENS_MIN),
        "store": false,
        "stream": asking.is_streamed,
    });
    if let Some(key) = asking.cache_key() {
        body["prompt_cache_key"] = json!(key);
    }
    // By default the provider also caches the question, which only a further step of the run reads again.
    if points.history.is_some() && !asking.has_tools() {
        body["prompt_cache_options"] = json!({"mode": "explicit"});
    }
    if !asking.habits.no_encrypted {
        body["include"] = json!(["reasoning.encrypted_content"]);
    }
    if let Some(temperature) = asking.temperature() {
        body["temperature"] = json!(temperature);
    }
    if let Some(effort) = asking.effort() {
        body["reasoning"] = json!({"effort": effort});
    }
    if let Some(schema) = asking.answer_schema() {
        body["text"] = json!({"format": {
            "type": "json_schema", "name": ANSWER, "schema": schema, "strict": is_strict(schema),
        }});
    }
    if asking.has_tools() {
        let tools = asking.request.tools.iter().map(|tool| {
            json!({
                "type": "function", "name": tool.name, "description": tool.description,
                "parameters": tool.schema, "strict": false,
            })
        });
        body["tools"] = tools.collect();
    }
    if asking.forbids_tools() {
        body["tool_choice"] = json!("none");
    }
    match asking.forced_tool() {
        None => {}
        Some(None) => body["tool_choice"] = json!("required"),
        Some(Some(tool)) => body["tool_choice"] = json!({"type": "function", "name": tool}),
    }
    body
}

fn picture(image: &PromptImage) -> Value {
    json!({"type": "input_image", "image_url": data_url(image), "detail": "auto"})
}

fn prompt_message(message: &PromptMessage, images: &[PromptImage]) -> Value {
    let role = match message.role {
        PromptRole::System => "system",
        PromptRole::User => "user",
        PromptRole::Assistant => "assistant",
    };
    if images.is_empty() {
        return json!({"role": role, "content": message.content});
    }
    let text = json!({"type": "input_text", "text": message.content});
    let content: Value = std::iter::once(text)
        .chain(images.iter().map(picture))
        .collect();
    json!({"role": role, "content": content})
}

/// An answer without the provider's own fields.
fn neutral(exchange: &Exchange) -> Vec<Value> {
    let text =
        (!exchange.text.is_empty()).then(|| json!({"role": "assistant", "content": exchange.text}));
    let calls = exchange.calls.iter().map(|call| {
        json!({
            "type": "function_call", "call_id": call.id, "name": call.name,
            "arguments": object(&call.arguments).to_string(),
        })
    });
    text.into_iter().chain(calls).collect()
}

/// The items of an answer while they are read.
#[derive(Debug, Default)]
pub(super) struct Output {
    items: Vec<Value>,
    /// Whether the current item's text came in deltas.
    has_deltas: bool,
}

impl Output {
    /// Reads one event. Returns whether it belongs to this protocol.
    pub(super) fn read(&mut self, name: Option<&str>, data: &str, draft: &mut Draft) -> bool {
        if data == "[DONE]" {
            draft.close();
            return true;
        }
        let Ok(event) = serde_json::from_str::<Value>(data) else {
            draft.garble();
            return true;
        };
        match event["type"].as_str().or(name).unwrap_or_default() {
            "response.output_text.delta" | "response.refusal.delta" => {
                let piece = event["delta"].as_str().unwrap_or_default();
                self.write(piece, draft);
            }
            "response.output_item.done" => self.take(&event["item"], draft),
            "response.completed" | "response.incomplete" => {
                self.end(&event["response"], draft);
            }
            "response.failed" => {
                draft.fail(of_event(&event["response"]["error"]));
            }
            "error" => {
                let error = event.get("error").filter(|error| error.is_object());
                draft.fail(of_event(error.unwrap_or(&event)));
            }
            name => return name.starts_with("response."),
        }
        true
    }

    /// Reads an answer that is not streamed. Returns whether it belongs to this protocol.
    pub(super) fn read_whole(&mut self, body: &Value, draft: &mut Draft) -> bool {
        if !body["output"].is_array() {
            return false;
        }
        self.end(body, draft);
        true
    }

    /// Adds to a text. Messages are separated by an empty line.
    fn write(&mut self, piece: &str, draft: &mut Draft) {
        if piece.is_empty() {
            return;
        }
        if !std::mem::replace(&mut self.has_deltas, true) && draft.text_bytes() > 0 {
            draft.write("\n\n");
        }
        if !draft.is_over() {
            draft.write(piece);
        }
    }

    /// Adds a complete item.
    fn take(&mut self, item: &Value, draft: &mut Draft) {
        if !draft.keeps(item) {
            draft.fail(malformed("it has too many parts"));
            return;
        }
        let text = |name: &str| item[name].as_str().unwrap_or_default();
        match text("type") {
            "message" => {
                if !self.has_deltas {
                    let parts = item["content"].as_array().into_iter().flatten();
                    let words =
                        parts.filter_map(|part| part["text"].as_str().or(part["refusal"].as_str()));
                    for words in words {
                        self.write(words, draft);
                    }
                }
                self.has_deltas = false;
            }
            "function_call" => {
                let call = DraftCall {
                    id: text("call_id").to_owned(),
                    name: text("name").to_owned(),
                    ..DraftCall::default()
                };
                let at = draft.begin_call(call);
                match &item["arguments"] {
                    Value::String(arguments) => draft.call(at, arguments),
                    Value::Null => {}
                    arguments => draft.call(at, &arguments.to_string()),
                }
            }
            _ => {}
        }
        self.items.push(item.clone());
    }

    /// Ends the answer, and reads items that no event had.
    fn end(&mut self, response: &Value, draft: &mut Draft) {
        let usage = &response["usage"];
        draft.usage.prompt = tokens(usage, "input_tokens");
        draft.usage.completion = tokens(usage, "output_tokens");
        read_cache_usage(usage, "input_tokens_details", &mut draft.usage);
        if self.items.is_empty() {
            for item in response["output"].as_array().into_iter().flatten() {
                if !draft.is_over() {
                    self.take(item, draft);
                }
            }
        }
        let reason = match response["status"].as_str() {
            Some("incomplete") => response["incomplete_details"]["reason"].as_str(),
            Some("failed" | "cancelled") => {
                draft.fail(of_event(&response["error"]));
                return;
            }
            _ if draft.calls.is_empty() => Some("completed"),
            _ => Some("tool_calls"),
        };
        draft.finish(reason.unwrap_or("incomplete"));
        draft.end();
    }

    /// The whole answer.
    pub(super) fn conclude(self, written: WrittenAnswer) -> ProviderAnswer {
        written.said(Value::Array(self.items))
    }
}

#[cfg(test)]
mod cache_tests {
    use super::*;
    use crate::llm::base_url::Wire;
    use crate::llm::provider::habits::Habits;
    use crate::llm::provider::replay::ReplayOrigin;
    use crate::llm::{Caching, ModelSettings, Provider, Request, ToolSpec};

    /// The body of a request to one of OpenAI's own models.
    fn body(model: &str, tools: &[ToolSpec]) -> Value {
        let said = |role, content: &str| PromptMessage {
            role,
            content: content.to_owned(),
        };
        let messages = [
            said(PromptRole::System, "Be brief."),
            said(PromptRole::User, &"word ".repeat(2_000)),
            said(PromptRole::Assistant, "ok"),
            said(PromptRole::User, "and now?"),
        ];
        let mut settings = ModelSettings::sample(Provider::OpenAi, None);
        model.clone_into(&mut settings.model);
        let asking = ProviderRequest {
            request: &Request {
                tools,
                caching: Caching {
                    stable_messages: 3,
                    key: Some("k"),
                    gap_ms: None,
                },
                ..Request::of(&messages)
            },
            origin: ReplayOrigin {
                provider: Provider::OpenAi,
                wire: Wire::Responses,
                model,
            },
            max_output_tokens: 100,
            temperature: None,
            effort: None,
            habits: Habits::of(&settings, Wire::Responses, true),
            is_streamed: false,
        };
        request(&asking)
    }

    #[test]
    fn the_last_stable_message_of_a_person_is_a_breakpoint_from_5_6_on() {
        let asked = body("gpt-5.6", &[]);
        let part = &asked["input"][1]["content"][0];
        assert_eq!(part["prompt_cache_breakpoint"], json!({"mode": "explicit"}));
        assert_eq!(part["type"], "input_text");
        assert_eq!(asked.to_string().matches("breakpoint").count(), 1);
        assert_eq!(asked["prompt_cache_key"], "k");
        assert_eq!(asked["prompt_cache_options"], json!({"mode": "explicit"}));
        // A further step with tools reads the question again.
        let tool = ToolSpec {
            name: "t".to_owned(),
            description: String::new(),
            schema: json!({}),
        };
        assert_eq!(body("gpt-5.6", &[tool]).get("prompt_cache_options"), None);
        let older = body("gpt-5.5", &[]);
        assert_eq!(older["prompt_cache_key"], "k");
        assert!(!older.to_string().contains("breakpoint"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::ModelError;
    use crate::llm::provider::draft::DraftOutcome;
    use crate::llm::provider::reader::Reason;
    use crate::llm::provider::thoughts::Aloud;

    fn outcome(events: &[Value]) -> Result<ProviderAnswer, DraftOutcome> {
        let (mut output, mut draft) = (Output::default(), Draft::new(1_000, Aloud::Never));
        for event in events {
            output.read(None, &event.to_string(), &mut draft);
        }
        match draft.conclude() {
            DraftOutcome::Whole(written) => Ok(output.conclude(*written)),
            other => Err(other),
        }
    }

    fn said(events: &[Value]) -> ProviderAnswer {
        outcome(events).unwrap_or_else(|other| panic!("{other:?}"))
    }

    fn delta(text: &str) -> Value {
        json!({"type": "response.output_text.delta", "delta": text})
    }

    fn done(item: &Value) -> Value {
        json!({"type": "response.output_item.done", "item": item})
    }

    fn completed() -> Value {
        json!({"type": "response.completed", "response": {
            "status": "completed", "output": [], "error": null,
            "usage": {"input_tokens": 9, "output_tokens": 2},
        }})
    }

    fn message(text: &str) -> Value {
        json!({"type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": text}]})
    }

    #[test]
    fn items_are_kept_as_they_are_done_and_texts_heard_once() {
        let reasoning =
            json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gA"});
        let call = json!({"type": "function_call", "id": "fc_1", "call_id": "a", "name": "f",
                          "arguments": "{\"q\":1}", "status": "completed"});
        let said = said(&[
            json!({"type": "response.created", "response": {}}),
            json!({"type": "response.output_item.added", "item": {"type": "reasoning", "encrypted_content": "x"}}),
            done(&reasoning),
            delta("Let me "),
            delta("see."),
            done(&message("Let me see.")),
            // A server that sends no deltas.
            done(&message("So.")),
            json!({"type": "response.function_call_arguments.delta", "delta": "{"}),
            done(&call),
            completed(),
        ]);
        assert_eq!(said.text, "Let me see.\n\nSo.");
        assert_eq!(
            said.message,
            json!([reasoning, message("Let me see."), message("So."), call])
        );
        assert_eq!(said.calls.len(), 1);
        assert_eq!(
            (said.calls[0].id.as_str(), &said.calls[0].arguments),
            ("a", &json!({"q": 1}))
        );
        assert_eq!(
            (said.reason, said.usage.prompt, said.usage.completion),
            (Reason::Tools, Some(9), Some(2))
        );
    }

    #[test]
    fn an_answer_that_comes_at_once_is_the_same() {
        let (mut output, mut draft) = (Output::default(), Draft::new(1_000, Aloud::Never));
        let body = json!({"status": "completed", "output": [message("Yes.")], "usage": {}});
        assert!(output.read_whole(&body, &mut draft));
        let DraftOutcome::Whole(written) = draft.conclude() else {
            panic!("it is whole");
        };
        let at_once = output.conclude(*written);
        let streamed = said(&[delta("Yes."), done(&message("Yes.")), completed()]);
        assert_eq!(
            (at_once.text, at_once.message, at_once.reason),
            (streamed.text, streamed.message, streamed.reason)
        );
        assert!(!Output::default().read_whole(&json!({}), &mut Draft::new(9, Aloud::Never)));
    }

    #[test]
    fn ends_and_failures() {
        let incomplete = |reason: &str| {
            json!({"type": "response.incomplete", "response": {
                "status": "incomplete", "incomplete_details": {"reason": reason}, "output": [],
            }})
        };
        assert_eq!(
            said(&[delta("x"), incomplete("max_output_tokens")]).reason,
            Reason::Length
        );
        assert_eq!(
            said(&[delta("x"), incomplete("content_filter")]).reason,
            Reason::Filter
        );
        let refusal = json!({"type": "response.refusal.delta", "delta": "I can't."});
        assert_eq!(said(&[refusal, completed()]).text, "I can't.");
        assert!(matches!(outcome(&[delta("x")]), Err(DraftOutcome::Broken)));
        let failed = json!({"type": "response.failed", "response": {
            "status": "failed", "error": {"code": "rate_limit_exceeded", "message": "secret"}}});
        let error = json!({"type": "error", "code": "context_length_exceeded", "message": "secret", "param": null});
        let table = [
            (failed, ModelError::RetryAfter { wait_ms: None }),
            (
                error,
                ModelError::ContextTooLong {
                    limit: None,
                    asked: None,
                },
            ),
        ];
        for (event, expected) in table {
            let Err(DraftOutcome::Failed(cause)) = outcome(&[delta("x"), event]) else {
                panic!("it failed");
            };
            assert_eq!(cause, expected);
        }
    }
}
