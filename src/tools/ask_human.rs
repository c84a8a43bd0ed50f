//! `ask_human`: a question to the agent's room of experts. As with `ask_person`, the tool itself does nothing: the run
//! waits for the answer, which is the result.

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::ask_person::{QuestionTo, QuestionWish, checked};
use super::search::schema;
use super::{BuiltIn, CallContext, Tool, ToolError, ToolOutput};
use vocative_core::tool_call::CallRule;

/// The tool's name.
pub const ASK_HUMAN: &str = "ask_human";

/// The tool that asks the experts.
pub struct AskHuman;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AskHumanArguments {
    /// What you need to know. They do not see this conversation: say all that they need, and nothing that is private.
    question: String,
    /// Answers to choose from, up to 5, each a few words. None: they answer in their own words.
    #[serde(default)]
    options: Vec<String>,
}

impl Tool for AskHuman {
    fn name(&self) -> &str {
        ASK_HUMAN
    }

    fn description(&self) -> &str {
        "Asks human experts, who are in another room, and waits for the answer, which may take hours. Use it when nobody \
         here and nothing you can look up answers the question. At most 3 questions for one request. What comes back is \
         what one of them said, with the name."
    }

    fn schema(&self) -> Value {
        schema::<AskHumanArguments>()
    }

    fn rule(&self) -> CallRule {
        BuiltIn::AskHuman.rule()
    }

    fn question(&self, arguments: &Value) -> Option<Result<QuestionWish, ToolError>> {
        let read = serde_json::from_value::<AskHumanArguments>(arguments.clone());
        Some(match read {
            Ok(read) => checked(&read.question, &read.options, QuestionTo::Experts),
            Err(cause) => Err(ToolError::Arguments(cause.to_string())),
        })
    }

    fn call(&self, _: Value, _: CallContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        Box::pin(async {
            let what = "experts are asked by runs alone";
            Err(ToolError::Failed(what.to_owned()))
        })
    }
}
