//! `vocative mcp`: servers of tools.

use std::process::ExitCode;

use serde::Serialize;

use super::args::{McpCommand, TableFormat};
use super::asking::ask;
use super::context::CliContext;
use super::error::{CliError, Exit};
use super::table::{one_line, table};
use crate::admin::operations::AdminOperation;
use crate::admin::view::{McpToolView, StatusView};
use crate::daemon::wiring;
use crate::llm::read_arguments;
use crate::tools::mcp::{McpPlace, call_once};

/// Characters of a description or a cause in a list.
const TOLD_CHARS: usize = 80;

/// A server as `vocative mcp list` prints it.
#[derive(Debug, Serialize)]
struct ListedServer {
    name: String,
    /// The state in a word; `stopped` without a daemon.
    state: String,
    tools: usize,
    /// The program, socket or address of the server.
    place: String,
    cause: Option<String>,
    log: Vec<String>,
}

/// Lists servers or their tools, approves tools, or calls one.
pub(super) async fn run(command: &McpCommand, context: &CliContext) -> Result<ExitCode, CliError> {
    match command {
        McpCommand::List { format } => list(*format, context).await,
        McpCommand::Tools { server, format } => tools(server.clone(), *format, context).await,
        McpCommand::Approve {
            server,
            tool,
            digest,
        } => {
            let operation = AdminOperation::ApproveMcpTools {
                server: server.clone(),
                tool: tool.clone(),
                digest: digest.clone(),
            };
            let approved: usize = ask(context, operation).await?;
            context.print(&format!("{approved} approved.\n"))?;
            Ok(Exit::Ok.into())
        }
        McpCommand::Call {
            server,
            tool,
            arguments,
        } => call(server, tool, arguments, context).await,
    }
}

async fn list(format: TableFormat, context: &CliContext) -> Result<ExitCode, CliError> {
    let (config, _) = context.load_config()?;
    // Without a database, only the configuration can be listed.
    let status: Option<StatusView> = ask(context, AdminOperation::Status).await.ok();
    let health = status.map(|status| status.mcp).unwrap_or_default();
    let listed = config.mcp.values().map(|server| {
        let name = &server.settings.name;
        let health = health.iter().find(|it| it.name == *name);
        ListedServer {
            name: name.clone(),
            state: health.map_or_else(|| "stopped".to_owned(), |it| it.state.clone()),
            tools: health.map_or(0, |it| it.tools),
            place: match &server.settings.place {
                McpPlace::Program(program) => program.argv.join(" "),
                McpPlace::Socket(path) => path.display().to_string(),
                McpPlace::Http { url, .. } => url.to_string(),
            },
            cause: health.and_then(|it| it.cause.clone()),
            log: health.map(|it| it.log.clone()).unwrap_or_default(),
        }
    });
    let listed: Vec<ListedServer> = listed.collect();
    let text = match format {
        TableFormat::Json => super::json_text(&listed)?,
        TableFormat::Table if listed.is_empty() => "No [mcp.NAME] is configured.\n".to_owned(),
        TableFormat::Table => {
            let cells = |it: &ListedServer| {
                let cause = one_line(it.cause.as_deref().unwrap_or_default(), TOLD_CHARS);
                vec![
                    it.name.clone(),
                    it.state.clone(),
                    it.tools.to_string(),
                    it.place.clone(),
                    cause,
                ]
            };
            let cells: Vec<Vec<String>> = listed.iter().map(cells).collect();
            table(&["server", "state", "tools", "place", "cause"], &cells)
        }
    };
    context.print(&text)?;
    Ok(Exit::Ok.into())
}

async fn tools(
    server: Option<String>,
    format: TableFormat,
    context: &CliContext,
) -> Result<ExitCode, CliError> {
    let tools: Vec<McpToolView> = ask(context, AdminOperation::McpTools { server }).await?;
    let text = match format {
        TableFormat::Json => super::json_text(&tools)?,
        TableFormat::Table => report(&tools),
    };
    context.print(&text)?;
    Ok(Exit::Ok.into())
}

fn report(tools: &[McpToolView]) -> String {
    if tools.is_empty() {
        return "No server has offered a tool yet.\n".to_owned();
    }
    let mut cells = Vec::new();
    for tool in tools {
        let told = one_line(&tool.told, TOLD_CHARS);
        let first = [&tool.server, &tool.tool, &tool.state, &tool.digest, &told];
        cells.push(first.map(String::clone).to_vec());
        if let Some(before) = &tool.told_before {
            let before = one_line(before, TOLD_CHARS);
            let empty = String::new;
            cells.push(vec![empty(), empty(), "before".to_owned(), empty(), before]);
        }
    }
    let waits = tools
        .iter()
        .any(|tool| ["new", "changed"].contains(&tool.state.as_str()));
    let advice = "\n`vocative mcp approve SERVER TOOL --digest DIGEST` lets agents have one that is new or changed.\n";
    let listed = table(
        &[
            "server",
            "tool",
            "state",
            "digest",
            "what it says of itself",
        ],
        &cells,
    );
    listed + if waits { advice } else { "" }
}

async fn call(
    server: &str,
    tool: &str,
    arguments: &str,
    context: &CliContext,
) -> Result<ExitCode, CliError> {
    let (config, secrets, _) = context.load_with_secrets()?;
    let servers = wiring::servers(&config, Some(&secrets));
    let Some(configured) = servers.iter().find(|it| it.settings.name == server) else {
        let known: Vec<&str> = config.mcp.keys().map(String::as_str).collect();
        let what = format!("there is no [mcp.{server}]; there are {}", known.join(", "));
        return Err(CliError::Usage(what));
    };
    let arguments = read_arguments(arguments).map_err(CliError::Usage)?;
    let (text, exit) = match call_once(configured, tool, arguments).await {
        Ok(output) => (output.content, Exit::Ok),
        Err(error) => (error.to_string(), Exit::Failed),
    };
    context.print(&format!("{text}\n"))?;
    Ok(exit.into())
}
