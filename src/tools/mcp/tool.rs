//! A call of a server's tool.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use rmcp::ServiceError;
use rmcp::model::CallToolRequestParams;
use serde_json::{Value, json};

use super::connection::{START_LIMIT, connect};
use super::definition::Definition;
use super::outcome::outcome;
use super::{McpConfigured, McpServer};
use crate::tools::{CallContext, InputGiven, Progress, Tool, ToolError, ToolOutput};
use vocative_core::tool_call::CallRule;

/// Calls in a row that took too long, after which a server is started again.
const TIMEOUTS_MAX: u32 = 3;

/// A server's tool for a run.
#[derive(Clone)]
pub(super) struct McpTool {
    pub(super) server: Arc<McpServer>,
    pub(super) definition: Arc<Definition>,
}

impl Tool for McpTool {
    #[allow(
        clippy::misnamed_getters,
        reason = "the name is the one that models know"
    )]
    fn name(&self) -> &str {
        &self.definition.shown_name
    }

    fn description(&self) -> &str {
        &self.definition.description
    }

    fn schema(&self) -> Value {
        self.definition.schema.clone()
    }

    fn rule(&self) -> CallRule {
        let repeatable = &self.server.settings().repeatable;
        match repeatable.contains(&self.definition.name) {
            true => CallRule::Repeatable,
            false => CallRule::Once,
        }
    }

    fn definition(&self) -> Value {
        let server = &self.server.settings().name;
        json!({"kind": "mcp", "server": server, "pinned": self.definition.pinned})
    }

    fn call(
        &self,
        arguments: Value,
        context: CallContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let tool = self.clone();
        Box::pin(async move { tool.made(arguments, context).await })
    }
}

/// Counts a call as timed out if it is dropped before its answer.
struct Unanswered<'a>(&'a McpServer);

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        let mut timeouts = self
            .0
            .timeouts
            .lock()
            .expect("no holder of this lock panics");
        *timeouts += 1;
        if *timeouts >= TIMEOUTS_MAX {
            *timeouts = 0;
            self.0.restart.notify_one();
        }
    }
}

impl McpTool {
    async fn made(&self, arguments: Value, context: CallContext) -> Result<ToolOutput, ToolError> {
        let name = &self.server.settings().name;
        let limit = Duration::from_millis(context.limit_ms.unwrap_or(30_000));
        let down = |why| ToolError::Failed(format!("the server {name} can't be asked: {why}"));
        let line = self.server.ready(limit / 2).await.map_err(down)?;
        // The server may have changed the tool meanwhile.
        if !self.server.definitions().contains(&self.definition) {
            return Err(ToolError::Failed(
                "this tool was changed meanwhile, and waits for a person".to_owned(),
            ));
        }
        let round = context
            .input
            .as_ref()
            .map_or(1, |input| input.round.number + 1);
        let params = params(&self.definition.name, arguments, context.input);
        let unanswered = Unanswered(&self.server);
        let mut answer = line.call(params.clone(), context.progress.clone()).await;
        let is_lost = matches!(
            answer,
            Err(ServiceError::TransportClosed | ServiceError::TransportSend(_))
        );
        if is_lost && self.rule() == CallRule::Repeatable {
            tokio::time::sleep(Duration::from_millis(250)).await;
            let line = self.server.ready(limit / 2).await.map_err(down)?;
            answer = line.call(params, context.progress).await;
        }
        std::mem::forget(unanswered);
        *self
            .server
            .timeouts
            .lock()
            .expect("no holder of this lock panics") = 0;
        outcome((name, self.server.settings().post_files), round, answer)
    }
}

fn params(tool: &str, arguments: Value, input: Option<InputGiven>) -> CallToolRequestParams {
    let mut params = CallToolRequestParams::new(tool.to_owned());
    if let Value::Object(arguments) = arguments {
        params = params.with_arguments(arguments);
    }
    let Some(input) = input else {
        return params;
    };
    if let Some(state) = input.round.state {
        params = params.with_request_state(state);
    }
    match input.answers.is_empty() {
        true => params,
        false => params.with_input_responses(input.answers),
    }
}

/// Calls a server's tool once, outside the daemon, whether or not the tool was approved.
///
/// # Errors
/// As a call of a run.
pub async fn call_once(
    configured: &McpConfigured,
    tool: &str,
    arguments: Value,
) -> Result<ToolOutput, ToolError> {
    let failed = |why: String| ToolError::Failed(why);
    let connecting = tokio::time::timeout(START_LIMIT, connect(configured, None));
    let connection = connecting
        .await
        .map_err(|_| failed("the server did not start in time".to_owned()))?
        .map_err(failed)?;
    let answer = connection
        .line
        .call(params(tool, arguments, None), Progress::new().0)
        .await;
    let settings = &configured.settings;
    outcome((&settings.name, settings.post_files), 1, answer)
}
