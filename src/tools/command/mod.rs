//! Tools of kind `command`: one program, which reads a call's arguments as JSON and writes its result.
//!
//! No shell is involved. The program is confined (`confining`), ends with the call, and its output is data.

mod running;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::program::{Program, ProgramSettings};
use super::{CallContext, Tool, ToolError, ToolOutput};
use vocative_core::tool_call::CallRule;

/// The variable that holds a call's id, which stays the same when a call is made again.
pub const CALL_ID: &str = "VOCATIVE_CALL_ID";

/// A program that a model may run, with its secrets.
#[derive(Clone, Debug)]
pub struct CommandTool {
    /// Its settings.
    pub settings: CommandToolSettings,
    /// The program.
    pub program: Program,
}

/// The settings of a program that a model may run.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandToolSettings {
    /// The tool's name.
    pub name: String,
    /// What it is for, in words for the model.
    pub description: String,
    /// The JSON schema of its arguments.
    pub schema: Value,
    /// Whether a call is made again if it is not known whether it acted.
    pub rule: CallRule,
    /// The program.
    pub program: ProgramSettings,
    /// How much of the program's output is kept, in bytes.
    pub answer_bytes_max: usize,
}

impl Tool for Arc<CommandTool> {
    fn name(&self) -> &str {
        &self.settings.name
    }

    fn description(&self) -> &str {
        &self.settings.description
    }

    fn schema(&self) -> Value {
        self.settings.schema.clone()
    }

    fn rule(&self) -> CallRule {
        self.settings.rule
    }

    fn definition(&self) -> Value {
        let secrets: Vec<&str> = self
            .program
            .secrets
            .iter()
            .map(|it| it.0.as_str())
            .collect();
        json!({
            "kind": "command",
            "program": self.settings.program.definition(),
            "secrets": secrets,
        })
    }

    fn target(&self) -> String {
        json!(self.settings.program.argv).to_string()
    }

    fn call(
        &self,
        arguments: Value,
        context: CallContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let tool = Arc::clone(self);
        Box::pin(async move { running::run(&tool, &arguments, &context).await })
    }
}
