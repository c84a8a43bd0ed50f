//! Servers of tools, their tools, and which of these wait for an admin's approval.

use axum::extract::{Form, Path, State};
use maud::{Markup, html};
use serde::Deserialize;

use super::{PageResult, nothing};
use crate::desk::{Ask, Deed};
use crate::page::{Page, part};
use crate::person::UserRole;
use crate::sessions::Visitor;
use crate::show;
use crate::state::{ConsoleState, Who};
use crate::views::{Server, Tool};

/// All servers with their tools.
pub(crate) async fn mcp(State(console): State<ConsoleState>, who: Who) -> PageResult {
    let status = console.status().await?;
    let tools: Vec<Tool> = console.ask(Ask::McpTools).await?;
    let servers = html! {
        @if status.mcp.is_empty() { (nothing("No server of tools is configured.")) }
        @for server in &status.mcp { (card(server)) }
    };
    let offered = html! {
        @if tools.is_empty() { (nothing("None offers a tool.")) }
        @for tool in &tools { (offer(tool, &who)) }
    };
    let body = html! {
        (part("servers", &servers))
        h2 { "What they offer" }
        p.quiet { "A tool that is new, or that says something else than what was approved, is offered to no model until an admin has read it." }
        (part("tools", &offered))
    };
    let page = Page {
        title: "Servers of tools",
        at: "/mcp",
        body,
    };
    page.shown(&console, &who).await
}

fn card(server: &Server) -> Markup {
    html! {
        article.card {
            p.by { b { (server.name) } " " (show::state(&server.state)) " · " (server.tools) " tools" }
            @if let Some(cause) = &server.cause { p.note.warn { (show::word(cause)) } }
            @if !server.log.is_empty() {
                details id={ "log-" (server.name) } { summary { "The last of its log" } (show::code(&server.log.join("\n"))) }
            }
        }
    }
}

fn offer(tool: &Tool, who: &Visitor) -> Markup {
    let waits = matches!(tool.state.as_str(), "new" | "changed");
    html! {
        article.card {
            p.by { b { (tool.server) "/" (show::word(&tool.tool)) } " " (show::state(&tool.state)) }
            (show::said(&tool.told))
            @if let Some(before) = &tool.told_before {
                details id={ "before-" (tool.digest) } { summary { "What was approved" } (show::said(before)) }
            }
            @if waits && who.person.role >= UserRole::Admin {
                form.inline method="post" action={ "/mcp/" (tool.server) "/" (tool.tool) "/approve" } data-sure="Offer this tool to models as it is told here?" {
                    input type="hidden" name="digest" value=(tool.digest);
                    button.primary type="submit" { "Approve it" }
                }
            }
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct ApproveServerForm {
    digest: String,
}

/// Approves a tool as the person saw it.
pub(crate) async fn approve(
    State(console): State<ConsoleState>,
    who: Who,
    Path((server, tool)): Path<(String, String)>,
    Form(form): Form<ApproveServerForm>,
) -> PageResult {
    let deed = Deed::ApproveTool {
        server,
        tool,
        digest: form.digest,
    };
    console.act(&who, deed, "/mcp").await
}
