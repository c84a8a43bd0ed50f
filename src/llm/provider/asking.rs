//! The parts of a request to a provider, for all wire forms.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::caching::{CacheHabit, CachePoints, points};
use super::habits::{Habits, SchemaHabit};
use super::replay::{ReplayOrigin, received};
use crate::llm::{Effort, Exchange, Request, ToolChoice, ToolResult};
use vocative_core::prompting::PromptMessage;
use vocative_core::prompting::files::PromptImage;

/// The name of an answer's schema; providers require one.
pub(super) const ANSWER: &str = "answer";

/// A request with the form it has this time.
pub(super) struct ProviderRequest<'a> {
    pub(super) request: &'a Request<'a>,
    pub(super) origin: ReplayOrigin<'a>,
    pub(super) max_output_tokens: u32,
    pub(super) temperature: Option<f64>,
    pub(super) effort: Option<Effort>,
    pub(super) habits: Habits,
    pub(super) is_streamed: bool,
}

impl ProviderRequest<'_> {
    pub(super) fn has_tools(&self) -> bool {
        !self.request.tools.is_empty()
    }

    /// The parts of the request that the provider's cache is told to keep.
    pub(super) fn cache_points(&self) -> CachePoints {
        points(self.habits.cache, self.request)
    }

    /// The cache key of requests with the same beginning, if the provider takes one.
    pub(super) fn cache_key(&self) -> Option<&str> {
        match self.habits.cache {
            CacheHabit::Key | CacheHabit::Breakpoints => self.request.caching.key,
            CacheHabit::Unsaid | CacheHabit::Marks { .. } => None,
        }
    }

    /// Whether there are tools which must not be called.
    pub(super) fn forbids_tools(&self) -> bool {
        self.has_tools() && self.request.tool_choice == ToolChoice::None
    }

    /// Whether a tool must be called, and which one; `Some(None)` = any.
    pub(super) fn forced_tool(&self) -> Option<Option<&str>> {
        let forces = match self.request.tool_choice {
            ToolChoice::Auto | ToolChoice::None => false,
            ToolChoice::Required => true,
            ToolChoice::Wanted => !self.habits.no_forced_tool,
        };
        (forces && self.has_tools()).then_some(self.request.wanted_tool)
    }

    /// The answer's schema, if the provider is told it.
    pub(super) fn answer_schema(&self) -> Option<&Value> {
        let may_call = self.has_tools() && !self.forbids_tools();
        let is_taken = match self.habits.schema {
            SchemaHabit::Always => true,
            SchemaHabit::WithoutCalls => !may_call,
            SchemaHabit::Never => false,
        };
        self.request.answer_schema.filter(|_| is_taken)
    }

    pub(super) fn temperature(&self) -> Option<f64> {
        self.temperature.filter(|_| !self.habits.no_temperature)
    }

    pub(super) fn effort(&self) -> Option<&'static str> {
        let effort = self.habits.effort(self.effort, self.has_tools());
        effort.map(Effort::name)
    }

    /// The messages, each with its pictures.
    pub(super) fn messages(&self) -> impl Iterator<Item = (&PromptMessage, &[PromptImage])> {
        let messages = self.request.messages;
        let last = messages.len().saturating_sub(1);
        let images = move |n| match n == last {
            true => self.request.images,
            false => &[],
        };
        let numbered = messages.iter().enumerate();
        numbered.map(move |(n, message)| (message, images(n)))
    }

    /// The provider's own message of an earlier answer, if it may be sent back as it was received.
    pub(super) fn received(&self, exchange: &Exchange) -> Option<Value> {
        (!self.habits.is_neutral)
            .then(|| received(self.origin, exchange))
            .flatten()
    }

    /// Whether an earlier answer is sent back as it was received.
    pub(super) fn replays(&self) -> bool {
        let mut exchanges = self.request.exchanges.iter();
        exchanges.any(|exchange| self.received(exchange).is_some())
    }
}

/// Whether providers can hold a model to all of a schema: each object names all its fields, and all of them are
/// required. Source: OpenAI's structured outputs.
pub(super) fn is_strict(schema: &Value) -> bool {
    let is_object = schema["type"] == "object" || schema.get("properties").is_some();
    let fields = schema["properties"].as_object();
    let required = schema["required"].as_array();
    let is_required = |name: &String| required.is_some_and(|it| it.contains(&json!(name)));
    let is_whole = !is_object
        || schema["additionalProperties"] == false
            && fields.is_some_and(|fields| fields.keys().all(is_required));
    is_whole
        && fields
            .into_iter()
            .flatten()
            .all(|(_, field)| is_strict(field))
        && schema.get("items").is_none_or(is_strict)
}

/// Arguments as they are sent back: always an object. Other arguments were wrong, and their result says so.
pub(super) fn object(arguments: &Value) -> Value {
    match arguments {
        Value::Object(object) => Value::Object(object.clone()),
        _ => Value::Object(Map::new()),
    }
}

/// A result for wires that have no field for errors.
pub(super) fn marked(result: &ToolResult) -> String {
    match result.is_error {
        true => format!("Error: {}", result.content),
        false => result.content.clone(),
    }
}

/// A picture as a data URL.
pub(super) fn data_url(image: &PromptImage) -> Value {
    json!(format!(
        "data:{};base64,{}",
        image.mime_type,
        base64(&image.bytes)
    ))
}

/// Bytes as Base64, with padding.
pub(super) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::is_strict;

    #[test]
    fn a_schema_is_strict_if_nothing_in_it_is_left_open() {
        let strict = json!({
            "type": "object", "required": ["a"], "additionalProperties": false,
            "properties": {"a": {"type": "array", "items": {"type": "string"}}},
        });
        assert!(is_strict(&strict));
        let mut optional = strict.clone();
        optional["required"] = json!([]);
        let mut open = strict.clone();
        open["properties"]["a"]["items"] = json!({"type": "object", "properties": {}});
        for schema in [optional, open, json!({"type": "object"})] {
            assert!(!is_strict(&schema), "{schema}");
        }
    }
}
