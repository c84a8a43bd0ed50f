//! Tools as models see them: what there is, a call, and what it gave.

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
    /// As it likes.
    #[default]
    Auto,
    /// It must answer now.
    None,
    /// It must call one.
    Required,
    /// The same, where it lets itself be made to; a model that refuses that is asked to do as it likes.
    Wanted,
}

/// A call that a model asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// Names the result; never empty.
    pub id: String,
    /// The tool, as the model names it.
    pub name: String,
    /// The arguments. An object, unless the model wrote something else: then that as text.
    pub arguments: Value,
}

/// What a call gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    /// The call.
    pub call_id: String,
    /// The result, or what went wrong.
    pub content: String,
    /// Whether it went wrong.
    pub is_error: bool,
    /// Pictures that came with it.
    pub images: Vec<PromptImage>,
}

/// One earlier model call of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// What the model said with its calls; may be blank.
    pub text: String,
    /// Its calls.
    pub calls: Vec<ToolCall>,
    /// What they gave: one result for each call, in their order.
    pub results: Vec<ToolResult>,
    /// What it is told behind that, as by a person; empty = nothing.
    pub told: String,
    /// The provider's own message, as its [`Answer`](super::Answer) had it; empty = it is not sent back.
    pub raw_message: String,
}

/// Calls as a provider gave them, made fit to be answered: every id is there once, arguments in a
/// string are read, and no arguments are an empty object.
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
