//! The provider's own message of an earlier answer. It is stored with its step, and sent back as it was received while
//! provider, wire and model are the same.
//!
//! The stored form is JSON with a version. Version 1 named the provider: `openai` for a message of Chat Completions,
//! `anthropic` for content of Messages.

use serde_json::{Value, json};

use crate::llm::base_url::Wire;
use crate::llm::{Exchange, Provider};

/// The version of [`Answer::raw_message`](crate::llm::Answer::raw_message).
const VERSION: u32 = 2;

/// The provider, wire and model that a message comes from.
#[derive(Clone, Copy)]
pub(super) struct ReplayOrigin<'a> {
    pub(super) provider: Provider,
    pub(super) wire: Wire,
    pub(super) model: &'a str,
}

/// The stored form of a message.
pub(super) fn stored(origin: ReplayOrigin<'_>, message: &Value) -> String {
    json!({
        "version": VERSION,
        "provider": origin.provider.name(),
        "api": origin.wire.name(),
        "model": origin.model,
        "message": message,
    })
    .to_string()
}

/// The message of an exchange, if it may be sent back as it was received: it comes from this model, and its calls are
/// the ones that the results answer, with arguments that are objects.
pub(super) fn received(origin: ReplayOrigin<'_>, exchange: &Exchange) -> Option<Value> {
    let mut stored: Value = serde_json::from_str(&exchange.raw_message).ok()?;
    let api = match (stored["version"].as_u64()?, stored["provider"].as_str()?) {
        (1, "openai") => "chat",
        (1, "anthropic") => "messages",
        (2, _) => stored["api"].as_str()?,
        _ => return None,
    };
    if api != origin.wire.name()
        || stored["provider"] != origin.provider.name()
        || stored["model"] != origin.model
    {
        return None;
    }
    let message = stored["message"].take();
    let is_answered = exchange.calls.iter().all(|call| call.arguments.is_object())
        && exchange
            .calls
            .iter()
            .map(|call| call.id.as_str())
            .eq(call_ids(origin.wire, &message));
    is_answered.then_some(message)
}

/// The ids of a message's calls, in order.
fn call_ids(wire: Wire, message: &Value) -> impl Iterator<Item = &str> {
    let (list, kind, id) = match wire {
        Wire::Responses => (message, Some("function_call"), "call_id"),
        Wire::Chat => (&message["tool_calls"], None, "id"),
        Wire::Messages => (message, Some("tool_use"), "id"),
    };
    let entries = list.as_array().into_iter().flatten();
    entries
        .filter(move |entry| kind.is_none_or(|kind| entry["type"] == kind))
        .map(move |entry| entry[id].as_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::ToolCall;

    fn exchange(raw_message: String, ids: &[&str]) -> Exchange {
        let call = |id: &&str| ToolCall {
            id: (*id).to_owned(),
            name: "search".to_owned(),
            arguments: json!({}),
        };
        Exchange {
            told: String::new(),
            text: String::new(),
            calls: ids.iter().map(call).collect(),
            results: Vec::new(),
            raw_message,
        }
    }

    const CLAUDE: ReplayOrigin<'_> = ReplayOrigin {
        provider: Provider::Anthropic,
        wire: Wire::Messages,
        model: "m",
    };

    #[test]
    fn a_message_goes_back_to_its_own_model_with_its_own_calls() {
        let message =
            json!([{"type": "thinking", "signature": "s"}, {"type": "tool_use", "id": "a"}]);
        let raw = stored(CLAUDE, &message);
        assert_eq!(
            received(CLAUDE, &exchange(raw.clone(), &["a"])),
            Some(message)
        );
        // A changed id, a missing call, another model, another wire.
        assert_eq!(received(CLAUDE, &exchange(raw.clone(), &["a_1"])), None);
        assert_eq!(received(CLAUDE, &exchange(raw.clone(), &["a", "b"])), None);
        let other = ReplayOrigin {
            model: "n",
            ..CLAUDE
        };
        assert_eq!(received(other, &exchange(raw.clone(), &["a"])), None);
        let chat = ReplayOrigin {
            provider: Provider::OpenAi,
            wire: Wire::Chat,
            ..CLAUDE
        };
        assert_eq!(received(chat, &exchange(raw.clone(), &["a"])), None);
        let mut odd = exchange(raw, &["a"]);
        odd.calls[0].arguments = json!("{\"q\":");
        assert_eq!(received(CLAUDE, &odd), None);
    }

    #[test]
    fn messages_of_earlier_versions_are_read_and_later_ones_left_alone() {
        let old = |provider: &str, message: &Value| {
            json!({"version": 1, "provider": provider, "model": "m", "message": message})
                .to_string()
        };
        let content = json!([{"type": "tool_use", "id": "a"}]);
        let anthropic = exchange(old("anthropic", &content), &["a"]);
        assert_eq!(received(CLAUDE, &anthropic), Some(content.clone()));
        let chat = ReplayOrigin {
            provider: Provider::OpenAi,
            wire: Wire::Chat,
            ..CLAUDE
        };
        let message = json!({"tool_calls": [{"id": "a"}]});
        let openai = exchange(old("openai", &message), &["a"]);
        assert_eq!(received(chat, &openai), Some(message));
        for raw in [
            "",
            "{}",
            "not json",
            &old("gemini", &content),
            &old("anthropic", &content).replace(":1,", ":3,"),
        ] {
            assert_eq!(
                received(CLAUDE, &exchange(raw.to_owned(), &["a"])),
                None,
                "{raw}"
            );
        }
    }
}
