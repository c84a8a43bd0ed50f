//! `vocative tools`: what agents may call, and a call as the daemon would make it.

use std::process::ExitCode;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use vocative_core::ids::ToolCallId;
use vocative_core::tool_call::{CallRule, CallState};
use vocative_store::NewId as _;

use super::args::{TableFormat, ToolsCommand};
use super::context::CliContext;
use super::error::{CliError, Exit};
use super::table::table;
use crate::config::Config;
use crate::daemon::wiring;
use crate::llm::read_arguments;
use crate::tools::{CallApproval, CallContext, Tool, ToolSource, ToolUse, Toolbox};

/// How long a call may take where neither the tool nor an agent says it, in milliseconds.
const TIMEOUT_MS: u64 = 30_000;

/// A tool as `vocative tools list` prints it.
#[derive(Debug, PartialEq, Serialize)]
struct ListedTool {
    name: String,
    kind: &'static str,
    /// The call rule: whether a call of unknown outcome is made again.
    rule: &'static str,
    /// The address, program or server that a call goes to; empty for built-in tools.
    target: String,
    /// The agents that have the tool.
    agents: Vec<String>,
    calls_per_run: Option<u32>,
    calls_per_day: Option<u32>,
    /// Whether only some people may have it called.
    is_for_some: bool,
}

/// Lists tools, or calls one.
pub(super) async fn run(
    command: &ToolsCommand,
    context: &CliContext,
) -> Result<ExitCode, CliError> {
    match command {
        ToolsCommand::List { format } => list(*format, context),
        ToolsCommand::Call { tool, arguments } => call(tool, arguments, context).await,
    }
}

fn list(format: TableFormat, context: &CliContext) -> Result<ExitCode, CliError> {
    let (config, _) = context.load_config()?;
    let tools = listed(&config);
    let text = match format {
        TableFormat::Json => super::json_text(&tools)?,
        TableFormat::Table => report(&tools),
    };
    context.print(&text)?;
    Ok(Exit::Ok.into())
}

fn listed(config: &Config) -> Vec<ListedTool> {
    let tools = wiring::tools(config, None);
    tools
        .iter()
        .map(|(name, tool)| of(config, name, tool))
        .collect()
}

fn of(config: &Config, name: &str, tool: &ToolUse) -> ListedTool {
    let agents = config.agents.values();
    let agents = agents.filter(|agent| agent.tools.iter().any(|it| it == name));
    let (kind, rule, target) = match &tool.source {
        ToolSource::BuiltIn(tool) => ("builtin", tool.rule(), String::new()),
        ToolSource::Http(http) => {
            let settings = &http.settings;
            let target = format!("{} {}", settings.method, settings.url.text());
            ("http", settings.rule, target)
        }
        ToolSource::Command(command) => {
            let settings = &command.settings;
            ("command", settings.rule, settings.program.argv.join(" "))
        }
        ToolSource::Mcp(tools) => ("mcp", CallRule::Once, tools.name.clone()),
    };
    ListedTool {
        name: name.to_owned(),
        kind,
        rule: rule.name(),
        target,
        agents: agents.map(|agent| agent.name.to_string()).collect(),
        calls_per_run: tool.limits.calls_per_run,
        calls_per_day: tool.limits.calls_per_day,
        is_for_some: tool.allow_people.is_some(),
    }
}

fn report(tools: &[ListedTool]) -> String {
    let count = |limit: Option<u32>| limit.map(|limit| limit.to_string()).unwrap_or_default();
    let cells: Vec<Vec<String>> = tools
        .iter()
        .map(|tool| {
            vec![
                tool.name.clone(),
                tool.kind.to_owned(),
                match tool.rule {
                    "repeatable" => String::new(),
                    rule => rule.to_owned(),
                },
                tool.agents.join(", "),
                if tool.is_for_some { "some" } else { "all" }.to_owned(),
                count(tool.calls_per_run),
                count(tool.calls_per_day),
                tool.target.clone(),
            ]
        })
        .collect();
    let header = [
        "tool", "kind", "acts", "agents", "people", "a run", "a day", "request",
    ];
    table(&header, &cells)
}

async fn call(name: &str, arguments: &str, context: &CliContext) -> Result<ExitCode, CliError> {
    let (config, secrets, _) = context.load_with_secrets()?;
    let tools = wiring::tools(&config, Some(&secrets));
    let Some(tool) = tools.get(name) else {
        let known: Vec<&str> = tools.keys().copied().collect();
        let what = format!("there is no tool {name}; there are {}", known.join(", "));
        return Err(CliError::Usage(what));
    };
    let source: Arc<dyn Tool> = match &tool.source {
        ToolSource::BuiltIn(_) => {
            let what = format!("{name} is built in, and works in a conversation only");
            return Err(CliError::Usage(what));
        }
        ToolSource::Http(http) => Arc::new(Arc::clone(http)),
        ToolSource::Command(command) => Arc::new(Arc::clone(command)),
        ToolSource::Mcp(_) => {
            return Err(CliError::Usage(format!(
                "call it by `vocative mcp call`: {name}"
            )));
        }
    };
    let arguments = read_arguments(arguments).map_err(CliError::Usage)?;
    let toolbox = Toolbox::new(Vec::new(), TIMEOUT_MS);
    let toolbox = toolbox.with(source, tool.limits, CallApproval::none());
    let outcome = made(&toolbox, name, arguments).await;
    context.print(&format!("{}\n", outcome.1))?;
    Ok(match outcome.0 {
        CallState::Done => Exit::Ok,
        _ => Exit::Failed,
    }
    .into())
}

/// Makes the call; returns how it ended, and what a model would be told.
async fn made(toolbox: &Toolbox, name: &str, arguments: Value) -> (CallState, String) {
    let outcome = match toolbox.check(name, &arguments) {
        Ok(()) => {
            let context = CallContext::of(ToolCallId::generate());
            toolbox.call(name, arguments, context).await
        }
        Err(wrong) => wrong,
    };
    (outcome.state, outcome.content)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::path::Path;

    use super::*;
    use crate::config::Environment;

    #[test]
    fn tools_are_listed_with_who_has_them() {
        let text = r#"
[channels.telegram.acme]
token = "env:TOKEN"
[agents.helper]
tools = ["refund"]
[tools.refund]
kind = "http"
description = "Refunds an order."
method = "POST"
approvers = "admins"
url = "https://shop.example/orders/{order}"
calls_per_day = 5
allow_people = ["acme/7"]
parameters = '{"type": "object", "required": ["order"], "properties": {"order": {"type": "string"}}}'
"#;
        let file = Some((Path::new("/etc/vocative.toml"), text));
        let environment = Environment::from([("HOME", "/home/ada")]);
        let (config, _) = Config::from_text(file, &environment).unwrap();
        insta::assert_snapshot!(report(&listed(&config)), @"
        tool                 kind     acts   agents  people  a run  a day  request
        ask_agent            builtin                 all
        ask_human            builtin                 all
        ask_person           builtin                 all
        conversation_search  builtin                 all
        forget_memory        builtin  keyed          all
        knowledge_search     builtin                 all
        read_skill           builtin                 all
        recall               builtin                 all
        refund               http     once   helper  some           5      POST https://shop.example/orders/{order}
        remember             builtin  keyed          all
        schedule             builtin  keyed          all
        ");
    }
}
