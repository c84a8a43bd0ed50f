//! The tools of one run, and their calls: every call has a result, whatever happens.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

use super::arguments::wrong;
use super::digest::{CallScope, digest};
use super::{
    CallApproval, CallContext, QuestionWish, TaskWish, Tool, ToolError, ToolLimits, ToolOutput,
};
use crate::llm::{ToolSpec, read_arguments};
use vocative_core::eliciting::InputRound;
use vocative_core::ids::TurnId;
use vocative_core::tool_call::{CallDigest, CallLimits, CallRule, CallState};
use vocative_store::contract::CallFile;

/// The length to which results are cut, with a marker, in characters.
pub const RESULT_MAX_CHARS: usize = 16_000;
/// The most calls in a run, of all tools together.
pub(super) const RUN_CALLS_MAX: u32 = 64;

/// The tools of one run.
#[derive(Clone)]
pub struct Toolbox {
    tools: Vec<LimitedTool>,
    timeout_ms: u64,
    run_calls_max: u32,
    scope: CallScope,
}

#[derive(Clone)]
struct LimitedTool {
    tool: Arc<dyn Tool>,
    limits: ToolLimits,
    approval: CallApproval,
}

impl Default for Toolbox {
    fn default() -> Self {
        Self::new(Vec::new(), 0)
    }
}

/// The outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolOutcome {
    /// The state of the call, which is over.
    pub state: CallState,
    /// For the model: the tool's result, or what went wrong.
    pub content: String,
    /// The turns that it quotes.
    pub sources: Vec<TurnId>,
    /// Files that came with it.
    pub files: Vec<CallFile>,
    /// What the tool's server asks people before it goes on. With it the call is not over yet, unless no person can be
    /// asked.
    pub input: Option<Box<InputRound>>,
}

impl ToolOutcome {
    /// A failed call: what went wrong, in words for the model.
    #[must_use]
    pub fn failed(content: impl Into<String>) -> Self {
        Self::without_sources(CallState::Failed, content)
    }

    /// A call of which it is not known whether it acted: why, in words for the model.
    #[must_use]
    pub fn unknown(content: impl Into<String>) -> Self {
        Self::without_sources(CallState::Unknown, content)
    }

    /// A call that was not made: why, in words for the model.
    #[must_use]
    pub fn denied(content: impl Into<String>) -> Self {
        Self::without_sources(CallState::Denied, content)
    }

    fn without_sources(state: CallState, content: impl Into<String>) -> Self {
        Self {
            state,
            content: content.into(),
            sources: Vec::new(),
            files: Vec::new(),
            input: None,
        }
    }
}

impl Toolbox {
    /// A toolbox whose calls may each take this long, in milliseconds.
    #[must_use]
    pub fn new(tools: Vec<Arc<dyn Tool>>, timeout_ms: u64) -> Self {
        let unlimited = |tool| LimitedTool {
            tool,
            limits: ToolLimits::default(),
            approval: CallApproval::none(),
        };
        Self {
            tools: tools.into_iter().map(unlimited).collect(),
            timeout_ms,
            run_calls_max: RUN_CALLS_MAX,
            scope: CallScope::default(),
        }
    }

    /// The same toolbox with one more tool.
    #[must_use]
    pub fn with(mut self, tool: Arc<dyn Tool>, limits: ToolLimits, approval: CallApproval) -> Self {
        self.tools.push(LimitedTool {
            tool,
            limits,
            approval,
        });
        self
    }

    /// The same toolbox with only the named tools; with all of them if `names` is `None`.
    #[must_use]
    pub fn only(mut self, names: Option<&[String]>) -> Self {
        if let Some(names) = names {
            let is_named = |it: &LimitedTool| names.iter().any(|name| name == it.tool.name());
            self.tools.retain(is_named);
        }
        self
    }

    /// The same toolbox with another limit of calls in a run, of all tools together.
    #[must_use]
    pub fn with_run_calls_max(self, run_calls_max: u32) -> Self {
        Self {
            run_calls_max,
            ..self
        }
    }

    /// The same toolbox for a chat and an agent, which are part of the digest of a call.
    #[must_use]
    pub fn of(self, scope: CallScope) -> Self {
        Self { scope, ..self }
    }

    /// The descriptions of the tools for a model, ordered by name: the same order in every prompt, for the provider's
    /// cache.
    #[must_use]
    pub fn specs(&self) -> Vec<ToolSpec> {
        let spec = |limited: &LimitedTool| ToolSpec {
            name: limited.tool.name().to_owned(),
            description: limited.tool.description().to_owned(),
            schema: limited.tool.schema(),
        };
        let mut specs: Vec<ToolSpec> = self.tools.iter().map(spec).collect();
        specs.sort_by(|one, other| one.name.cmp(&other.name));
        specs
    }

    /// Whether there is a tool with this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.tool(name).is_some()
    }

    /// Whether a call is made again if it is not known whether it acted. A call of an unknown tool does nothing.
    #[must_use]
    pub fn rule(&self, name: &str) -> CallRule {
        self.tool(name)
            .map_or(CallRule::Repeatable, |tool| tool.rule())
    }

    /// Whether a tool's results were written by others than the people of the room. The result for an unknown tool is
    /// our own text.
    #[must_use]
    pub fn is_outside(&self, name: &str) -> bool {
        self.tool(name).is_some_and(|tool| tool.is_outside())
    }

    /// The most calls in a run, of all tools together.
    #[must_use]
    pub fn run_calls_max(&self) -> u32 {
        self.run_calls_max
    }

    /// How often a tool may be called.
    #[must_use]
    pub fn limits(&self, name: &str) -> CallLimits {
        let limits = self
            .limited(name)
            .map_or_else(ToolLimits::default, |it| it.limits);
        CallLimits {
            run_calls_max: self.run_calls_max,
            run_tool_calls_max: limits.calls_per_run,
            day_tool_calls_max: limits.calls_per_day,
        }
    }

    /// When calls of a tool wait for a person; `None` if there is no such tool.
    #[must_use]
    pub fn approval(&self, name: &str) -> Option<&CallApproval> {
        self.limited(name).map(|limited| &limited.approval)
    }

    /// The question that a call asks a person, if that is all that its tool does.
    #[must_use]
    pub fn question(
        &self,
        name: &str,
        arguments: &Value,
    ) -> Option<Result<QuestionWish, ToolError>> {
        self.tool(name)?.question(arguments)
    }

    /// The task that a call gives another agent, if that is all that its tool does.
    #[must_use]
    pub fn task(&self, name: &str, arguments: &Value) -> Option<Result<TaskWish, ToolError>> {
        self.tool(name)?.task(arguments)
    }

    /// Where a tool's calls go, for people.
    #[must_use]
    pub fn target(&self, name: &str) -> String {
        self.tool(name)
            .map_or_else(String::new, |tool| tool.target())
    }

    /// The names of a tool's arguments, in the order of its schema.
    #[must_use]
    pub fn argument_names(&self, name: &str) -> Vec<String> {
        let schema = self.tool(name).map(|tool| tool.schema());
        let properties = schema
            .as_ref()
            .and_then(|schema| schema["properties"].as_object());
        properties
            .into_iter()
            .flatten()
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// The JSON schema of a tool's arguments.
    #[must_use]
    pub fn parameters(&self, name: &str) -> String {
        self.tool(name)
            .map_or(Value::Null, |tool| tool.schema())
            .to_string()
    }

    /// The hash of what a call does.
    #[must_use]
    pub fn digest(&self, name: &str, arguments: &Value) -> CallDigest {
        digest(&self.scope, name, &self.definition(name), arguments)
    }

    /// The hash of the tool itself: the same for all its calls, until its definition changes.
    #[must_use]
    pub fn definition_digest(&self, name: &str) -> CallDigest {
        digest(&self.scope, name, &self.definition(name), &Value::Null)
    }

    fn definition(&self, name: &str) -> Value {
        self.tool(name).map_or(Value::Null, |tool| {
            json!([
                tool.description(),
                tool.schema(),
                tool.rule().name(),
                tool.definition()
            ])
        })
    }

    /// Checks whether a call can be made.
    ///
    /// # Errors
    /// What the model has to correct.
    pub fn check(&self, name: &str, arguments: &Value) -> Result<(), ToolOutcome> {
        let Some(tool) = self.tool(name) else {
            return Err(self.no_such_tool());
        };
        if let Value::String(text) = arguments
            && let Err(unread) = read_arguments(text)
        {
            return Err(ToolOutcome::failed(format!("wrong arguments: {unread}")));
        }
        let wrong = wrong(&tool.schema(), arguments);
        if wrong.is_empty() {
            return Ok(());
        }
        let cause = ToolError::Arguments(wrong.join("; "));
        Err(ToolOutcome::failed(cause.to_string()))
    }

    /// Makes a call. Dropping the future stops the tool.
    pub async fn call(&self, name: &str, arguments: Value, context: CallContext) -> ToolOutcome {
        let Some(tool) = self.tool(name) else {
            return self.no_such_tool();
        };
        // A repeatable call that breaks off counts as not made.
        let broken_off = |content: String| match tool.rule() {
            CallRule::Repeatable => ToolOutcome::failed(content),
            CallRule::Keyed | CallRule::Once => ToolOutcome::unknown(format!(
                "{content}; it may have acted or not, and is not made again"
            )),
        };
        let limit_ms = self
            .limited(name)
            .and_then(|limited| limited.limits.timeout_ms)
            .unwrap_or(self.timeout_ms);
        let context = CallContext {
            limit_ms: Some(limit_ms),
            ..context
        };
        // The call runs in a task of its own: a panic ends the task, not the run.
        let working = tokio::spawn(tool.call(arguments, context));
        let working = AbortOnDropHandle::new(working);
        match tokio::time::timeout(Duration::from_millis(limit_ms), working).await {
            Ok(Ok(Ok(output))) => shown(output),
            Ok(Ok(Err(cause @ ToolError::Unknown(_)))) => broken_off(cause.to_string()),
            Ok(Ok(Err(ToolError::InputRequired(input)))) => ToolOutcome {
                input: Some(input.clone()),
                ..ToolOutcome::failed(ToolError::InputRequired(input).to_string())
            },
            Ok(Ok(Err(cause))) => ToolOutcome::failed(cut(cause.to_string())),
            Ok(Err(cause)) => {
                warn!(
                    tool = name,
                    panicked = cause.is_panic(),
                    "a tool ended without a result"
                );
                broken_off("the tool ended without a result".to_owned())
            }
            Err(_) => {
                warn!(tool = name, limit_ms, "a tool took too long");
                broken_off(format!("the tool took longer than {limit_ms} ms"))
            }
        }
    }

    fn no_such_tool(&self) -> ToolOutcome {
        let known: Vec<&str> = self.tools.iter().map(|it| it.tool.name()).collect();
        let known = match known.as_slice() {
            [] => "there are none".to_owned(),
            known => format!("there are: {}", known.join(", ")),
        };
        ToolOutcome::failed(format!("there is no such tool; {known}"))
    }

    fn tool(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.limited(name).map(|limited| &limited.tool)
    }

    fn limited(&self, name: &str) -> Option<&LimitedTool> {
        self.tools
            .iter()
            .find(|limited| limited.tool.name() == name)
    }
}

fn shown(output: ToolOutput) -> ToolOutcome {
    ToolOutcome {
        state: CallState::Done,
        content: cut(output.content),
        sources: output.sources,
        files: output.files,
        input: None,
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

    use super::*;
    use vocative_core::ids::ToolCallId;
    use vocative_store::NewId as _;

    /// A tool that does what its argument `act` says.
    struct Scripted(CallRule);

    impl Tool for Scripted {
        fn name(&self) -> &str {
            "scripted"
        }

        fn description(&self) -> &str {
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

        fn rule(&self) -> CallRule {
            self.0
        }

        fn call(
            &self,
            arguments: Value,
            _: CallContext,
        ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
            Box::pin(async move {
                match arguments["act"].as_str() {
                    Some("panic") => panic!("on purpose"),
                    Some("hang") => std::future::pending().await,
                    Some("fail") => Err(ToolError::Failed("on purpose".to_owned())),
                    Some("long") => Ok(ToolOutput {
                        content: "ä".repeat(RESULT_MAX_CHARS + 2),
                        sources: Vec::new(),
                        files: Vec::new(),
                    }),
                    _ => Ok(ToolOutput {
                        content: "done".to_owned(),
                        sources: Vec::new(),
                        files: Vec::new(),
                    }),
                }
            })
        }
    }

    #[tokio::test]
    async fn whatever_happens_there_is_a_result() {
        use CallState::{Done, Failed, Unknown};
        let long = format!("{}\n[cut: 2 more characters]", "ä".repeat(RESULT_MAX_CHARS));
        let cases = [
            ("work", Done, "done"),
            ("long", Done, long.as_str()),
            ("fail", Failed, "the tool failed: on purpose"),
            ("panic", Failed, "the tool ended without a result"),
            ("hang", Failed, "the tool took longer than 50 ms"),
        ];
        for rule in CallRule::ALL {
            let toolbox = Toolbox::new(vec![Arc::new(Scripted(rule))], 50);
            for (act, state, expected) in cases {
                let context = CallContext::of(ToolCallId::generate());
                let outcome = toolbox.call("scripted", json!({"act": act}), context).await;
                // A call that acts and is broken off may have acted.
                let is_broken_off = matches!(act, "panic" | "hang");
                let (state, expected) = match (is_broken_off, rule) {
                    (true, CallRule::Keyed | CallRule::Once) => {
                        let rest = "it may have acted or not, and is not made again";
                        (Unknown, format!("{expected}; {rest}"))
                    }
                    _ => (state, expected.to_owned()),
                };
                assert_eq!(
                    (outcome.state, outcome.content),
                    (state, expected),
                    "{rule:?}"
                );
            }
        }
    }

    #[test]
    fn a_call_that_can_not_be_made_says_what_to_mend() {
        let toolbox = Toolbox::new(vec![Arc::new(Scripted(CallRule::Once))], 50);
        let cases = [
            ("scripted", json!({"act": "work"}), Ok(())),
            (
                "scripted",
                json!({}),
                Err("wrong arguments: `act` is missing"),
            ),
            (
                "scripted",
                json!("{\"act\": \"work\", \"act\": \"hang\"}"),
                Err(
                    "wrong arguments: the arguments can't be read: `act` stands there twice at line 1 column 30",
                ),
            ),
            (
                "other",
                json!({}),
                Err("there is no such tool; there are: scripted"),
            ),
        ];
        for (name, arguments, expected) in cases {
            let checked = toolbox
                .check(name, &arguments)
                .map_err(|wrong| wrong.content);
            assert_eq!(checked, expected.map_err(str::to_owned), "{arguments}");
        }
        assert_eq!(toolbox.rule("scripted"), CallRule::Once);
        assert_eq!(toolbox.rule("other"), CallRule::Repeatable);
        assert_eq!(
            Toolbox::default().check("any", &json!({})),
            Err(ToolOutcome::failed("there is no such tool; there are none"))
        );
    }
}
