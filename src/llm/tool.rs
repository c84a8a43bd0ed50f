//! Tools as models see them: their descriptions, calls and results.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::arguments::read_arguments;
use vocative_core::prompting::files::PromptImage;

/// A tool that a model may call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name: `[a-z0-9_]`.
    pub name: String,
    /// What it is for, in words for the model.
    pub description: String,
    /// The JSON schema of its arguments: an object.
    pub schema: Value,
}

/// Whether a model may call its tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ToolChoice {
    /// It may call tools or answer.
    #[default]
    Auto,
    /// It must not call tools.
    None,
    /// It must call a tool.
    Required,
    /// It must call a tool, if it accepts being forced to; otherwise it may call tools or answer.
    Wanted,
}

/// A call that a model asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// The id that the result refers to; never empty.
    pub id: String,
    /// The tool, as the model names it.
    pub name: String,
    /// The arguments: an object. If the model wrote something else, that as text.
    pub arguments: Value,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    /// The id of the call.
    pub call_id: String,
    /// The result, or what went wrong.
    pub content: String,
    /// Whether the call went wrong.
    pub is_error: bool,
    /// Pictures that came with the result.
    pub images: Vec<PromptImage>,
}

/// One earlier model call of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// What the model said with its calls; may be blank.
    pub text: String,
    /// Its calls.
    pub calls: Vec<ToolCall>,
    /// The results: one for each call, in the order of the calls.
    pub results: Vec<ToolResult>,
    /// A message that is added behind the results, as if by a person; empty = none.
    pub told: String,
    /// The provider's own message, as in its [`Answer`](super::Answer); empty = it is not sent back.
    pub raw_message: String,
}

/// Corrects the calls of a provider so that they can be answered: every id is unique, arguments in a string are read,
/// and missing arguments are an empty object.
pub(super) fn settled(calls: impl IntoIterator<Item = ToolCall>) -> Vec<ToolCall> {
    let mut settled: Vec<ToolCall> = Vec::new();
    for (n, mut call) in calls.into_iter().enumerate() {
        call.arguments = read(call.arguments);
        if call.id.is_empty() {
            call.id = format!("call_{n}");
        }
        while settled.iter().any(|earlier| earlier.id == call.id) {
            call.id = format!("{}_{n}", call.id);
        }
        settled.push(call);
    }
    settled
}

fn read(arguments: Value) -> Value {
    match arguments {
        Value::Null => Value::Object(serde_json::Map::new()),
        Value::String(text) if text.trim().is_empty() => Value::Object(serde_json::Map::new()),
        Value::String(text) => match read_arguments(&text) {
            Ok(read @ (Value::Object(_) | Value::String(_))) => read,
            _ => Value::String(text),
        },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_are_made_fit_to_be_answered() {
        let call = |id: &str, arguments| ToolCall {
            id: id.to_owned(),
            name: "search".to_owned(),
            arguments,
        };
        let given = [
            call("a", json!({"q": 1})),
            call("a", json!("{\"q\": 2}")),
            call("", json!("")),
            call("", json!(null)),
            call("b", json!("{\"q\":")),
            call("b_6", json!({})),
            call("b", json!({})),
        ];
        let expected = [
            call("a", json!({"q": 1})),
            call("a_1", json!({"q": 2})),
            call("call_2", json!({})),
            call("call_3", json!({})),
            call("b", json!("{\"q\":")),
            call("b_6", json!({})),
            call("b_6_6", json!({})),
        ];
        assert_eq!(settled(given), expected);
    }
}
