//! The tools of one run, and a call of one: whatever happens, there is a result.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

use super::arguments::wrong;
use super::{Tool, ToolError, ToolOutput};
use crate::llm::{ToolCall, ToolSpec};
use vocative_core::ids::TurnId;

/// The length to which results are cut, with a marker, in characters.
pub const RESULT_MAX_CHARS: usize = 16_000;

/// The tools of one run.
#[derive(Clone, Default)]
pub struct Toolbox {
    tools: Vec<Arc<dyn Tool>>,
    timeout_ms: u64,
}

/// What became of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolOutcome {
    /// For the model: what the tool gave, or what went wrong.
    pub content: String,
    /// Whether it went wrong.
    pub is_error: bool,
    /// Turns that it quotes.
    pub sources: Vec<TurnId>,
}

impl ToolOutcome {
    /// What went wrong, in words for the model.
    #[must_use]
    pub fn error(content: impl Into<String>) -> Self {
        Self {
            content: content.into(),
            is_error: true,
            sources: Vec::new(),
        }
    }
}

impl Toolbox {
    /// A toolbox; one call may take so long, in milliseconds.
    #[must_use]
    pub fn new(tools: Vec<Arc<dyn Tool>>, timeout_ms: u64) -> Self {
        Self { tools, timeout_ms }
    }

    /// What a model is told of the tools, by name: in the same order in every prompt, for the provider's cache.
    #[must_use]
    pub fn specs(&self) -> Vec<ToolSpec> {
        let spec = |tool: &Arc<dyn Tool>| ToolSpec {
            name: tool.name().to_owned(),
            description: tool.description().to_owned(),
            schema: tool.schema(),
        };
        let mut specs: Vec<ToolSpec> = self.tools.iter().map(spec).collect();
        specs.sort_by(|one, other| one.name.cmp(&other.name));
        specs
    }

    /// Whether there is a tool of that name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.tool(name).is_some()
    }

    /// Whether a call may be made again after a restart. One of an unknown tool does nothing.
    #[must_use]
    pub fn is_repeatable(&self, name: &str) -> bool {
        self.tool(name).is_none_or(|tool| tool.is_repeatable())
    }

    /// Makes a call. Dropping the future stops the tool.
    pub async fn call(&self, call: &ToolCall) -> ToolOutcome {
        let Some(tool) = self.tool(&call.name) else {
            let known: Vec<&str> = self.tools.iter().map(|tool| tool.name()).collect();
            let known = match known.as_slice() {
                [] => "there are none".to_owned(),
                known => format!("there are: {}", known.join(", ")),
            };
            return ToolOutcome::error(format!("there is no such tool; {known}"));
        };
        let wrong = wrong(&tool.schema(), &call.arguments);
        if !wrong.is_empty() {
            let cause = ToolError::Arguments(wrong.join("; "));
            return ToolOutcome::error(cause.to_string());
        }
        // A task of its own: a panic ends it, not the run.
        let working = tokio::spawn(tool.call(call.arguments.clone()));
        let working = AbortOnDropHandle::new(working);
        let limit = Duration::from_millis(self.timeout_ms);
        match tokio::time::timeout(limit, working).await {
            Ok(Ok(Ok(output))) => shown(output),
            Ok(Ok(Err(cause))) => ToolOutcome::error(cause.to_string()),
            Ok(Err(cause)) => {
                warn!(
                    tool = tool.name(),
                    panicked = cause.is_panic(),
                    "a tool ended without a result"
                );
                ToolOutcome::error("the tool ended without a result")
            }
            Err(_) => {
                warn!(
                    tool = tool.name(),
                    limit_ms = self.timeout_ms,
                    "a tool took too long"
                );
                ToolOutcome::error(format!("the tool took longer than {} ms", self.timeout_ms))
            }
        }
    }

    fn tool(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.name() == name)
    }
}

fn shown(output: ToolOutput) -> ToolOutcome {
    ToolOutcome {
        content: cut(output.content),
        is_error: false,
        sources: output.sources,
    }
}

fn cut(content: String) -> String {
    match content.char_indices().nth(RESULT_MAX_CHARS) {
        None => content,
        Some((end, _)) => {
            let left_out = content[end..].chars().count();
            format!("{}\n[cut: {left_out} more characters]", &content[..end])
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::BoxFuture;
    use serde_json::{Value, json};

    use super::*;

    /// Does what its argument `act` says.
    struct Scripted;

    impl Tool for Scripted {
        fn name(&self) -> &'static str {
            "scripted"
        }

        fn description(&self) -> &'static str {
            "does what it is told"
        }

        fn schema(&self) -> Value {
            json!({
                "type": "object",
                "properties": {"act": {"type": "string"}},
                "required": ["act"],
                "additionalProperties": false,
            })
        }

        fn is_repeatable(&self) -> bool {
            false
        }

        fn call(&self, arguments: Value) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
            Box::pin(async move {
                match arguments["act"].as_str() {
                    Some("panic") => panic!("on purpose"),
                    Some("hang") => std::future::pending().await,
                    Some("fail") => Err(ToolError::Failed("on purpose".to_owned())),
                    Some("long") => Ok(ToolOutput {
                        content: "ä".repeat(RESULT_MAX_CHARS + 2),
                        sources: Vec::new(),
                    }),
                    _ => Ok(ToolOutput {
                        content: "done".to_owned(),
                        sources: Vec::new(),
                    }),
                }
            })
        }
    }

    #[tokio::test]
    async fn whatever_happens_there_is_a_result() {
        let toolbox = Toolbox::new(vec![Arc::new(Scripted)], 50);
        let missing = "wrong arguments: `act` is missing";
        let long = format!("{}\n[cut: 2 more characters]", "ä".repeat(RESULT_MAX_CHARS));
        let cases = [
            ("scripted", json!({"act": "work"}), false, "done"),
            ("scripted", json!({"act": "long"}), false, long.as_str()),
            (
                "scripted",
                json!({"act": "fail"}),
                true,
                "the tool failed: on purpose",
            ),
            (
                "scripted",
                json!({"act": "panic"}),
                true,
                "the tool ended without a result",
            ),
            (
                "scripted",
                json!({"act": "hang"}),
                true,
                "the tool took longer than 50 ms",
            ),
            ("scripted", json!({}), true, missing),
            (
                "other",
                json!({}),
                true,
                "there is no such tool; there are: scripted",
            ),
        ];
        for (name, arguments, is_error, expected) in cases {
            let call = ToolCall {
                id: "call_1".to_owned(),
                name: name.to_owned(),
                arguments,
            };
            let outcome = toolbox.call(&call).await;
            let shown = (outcome.is_error, outcome.content.as_str());
            assert_eq!(shown, (is_error, expected), "{call:?}");
        }
        assert!(!toolbox.is_repeatable("scripted"));
        assert!(toolbox.is_repeatable("other"));
        let none = ToolCall {
            id: String::new(),
            name: "any".to_owned(),
            arguments: json!({}),
        };
        let outcome = Toolbox::default().call(&none).await;
        assert_eq!(
            outcome,
            ToolOutcome::error("there is no such tool; there are none")
        );
    }
}
