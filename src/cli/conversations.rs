//! `vocative conversations`.

use std::fmt::Write as _;
use std::process::ExitCode;

use super::args::{ListArgs, SearchArgs, ShowArgs, TableFormat};
use super::asking::ask;
use super::context::Context;
use super::error::{CliError, Exit};
use super::table::{instant, table};
use crate::admin::operations::Operation;
use crate::admin::view::{ConversationDetailView, ConversationView, SearchView, TurnView};

/// Characters of a tool's call or result that people are shown; `--format json` has all.
const TOOL_TEXT_CHARS: usize = 400;

/// Characters of an id that are shown: enough to name a conversation.
const ID_CHARS: usize = 18;

/// Lists conversations, the most recently active first.
pub(super) async fn list(args: &ListArgs, context: &Context) -> Result<ExitCode, CliError> {
    let operation = Operation::Conversations {
        channel: args.channel.clone(),
        limit: args.limit.get(),
    };
    let views: Vec<ConversationView> = ask(context, operation).await?;
    let text = match args.format {
        TableFormat::Json => super::json_text(&views)?,
        TableFormat::Table if views.is_empty() => "There are no conversations yet.\n".to_owned(),
        TableFormat::Table => {
            let rows: Vec<Vec<String>> = views.iter().map(row).collect();
            table(
                &["id", "name", "scope", "turns", "last activity (UTC)"],
                &rows,
            )
        }
    };
    context.print(&text)?;
    Ok(Exit::Ok.into())
}

fn row(view: &ConversationView) -> Vec<String> {
    vec![
        view.id.chars().take(ID_CHARS).collect(),
        view.name.clone(),
        view.scope.clone(),
        view.turns.to_string(),
        instant(Some(view.last_activity_ms)),
    ]
}

/// Shows the turns of one conversation, in the room's order.
pub(super) async fn show(args: &ShowArgs, context: &Context) -> Result<ExitCode, CliError> {
    let operation = Operation::Conversation {
        name: args.conversation.clone(),
        limit: args.limit.get(),
        timeline: args.timeline,
    };
    let view: ConversationDetailView = ask(context, operation).await?;
    let text = match args.format {
        TableFormat::Json => super::json_text(&view)?,
        TableFormat::Table => report(&view),
    };
    context.print(&text)?;
    Ok(Exit::Ok.into())
}

/// Finds what was said.
pub(super) async fn search(args: &SearchArgs, context: &Context) -> Result<ExitCode, CliError> {
    let operation = Operation::Search {
        name: args.conversation.clone(),
        query: args.query.join(" "),
        limit: args.limit.get(),
        threads: args.threads,
    };
    let view: SearchView = ask(context, operation).await?;
    let text = match args.format {
        TableFormat::Json => super::json_text(&view)?,
        TableFormat::Table => found(&view),
    };
    context.print(&text)?;
    Ok(Exit::Ok.into())
}

fn found(view: &SearchView) -> String {
    let mut out = String::new();
    for hit in &view.hits {
        let text = hit.text.replace('\n', "\n        ");
        let at = instant(Some(hit.sent_at_ms));
        let _ = writeln!(out, "{:>6}  {at}  {}: {text}", hit.seq, hit.speaker);
    }
    let or_more = if view.is_bounded { " or more" } else { "" };
    let _ = match (view.hits.len(), view.matches) {
        (0, _) => writeln!(out, "Nothing was found."),
        (shown, matches) if shown < matches => {
            writeln!(out, "{shown} of {matches}{or_more} matches are shown.")
        }
        _ => Ok(()),
    };
    for note in &view.notes {
        let _ = writeln!(out, "{note}");
    }
    out
}

fn report(view: &ConversationDetailView) -> String {
    let mut out = String::new();
    let head = &view.conversation;
    let _ = writeln!(
        out,
        "{}  {}  ({}, {} turns)\n",
        head.id, head.name, head.scope, head.turns
    );
    for turn in &view.turns {
        turn_lines(&mut out, turn);
    }
    out
}

fn turn_lines(out: &mut String, turn: &TurnView) {
    let mut marks = Vec::new();
    if !turn.addressed_to.is_empty() {
        marks.push(format!("to {}", turn.addressed_to.join(", ")));
    }
    if turn.revision > 1 {
        marks.push("edited".to_owned());
    }
    if turn.visibility != "room" {
        marks.push(turn.visibility.clone());
    }
    let marks = if marks.is_empty() {
        String::new()
    } else {
        format!("  [{}]", marks.join("; "))
    };
    let is_tool = turn.kind.starts_with("tool_");
    let verb = match turn.kind.as_str() {
        "tool_call" => " calls",
        "tool_result" => " answers",
        _ => "",
    };
    let text = if is_tool {
        shortened(&turn.text)
    } else {
        turn.text.clone()
    };
    let text = text.replace('\n', "\n        ");
    let _ = writeln!(
        out,
        "{:>6}  {}  {}{verb}: {text}{marks}",
        turn.seq,
        instant(Some(turn.sent_at_ms)),
        turn.speaker
    );
    for run in turn.runs.iter().filter(|run| run.state != "done") {
        let reason = run.reason.as_deref().unwrap_or_default();
        let _ = writeln!(out, "        run of {}: {} {reason}", run.agent, run.state);
    }
    for post in turn.posts.iter().filter(|post| post.state != "sent") {
        let reason = post.reason.as_deref().unwrap_or_default();
        let _ = writeln!(out, "        post {}: {} {reason}", post.part, post.state);
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(TOOL_TEXT_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
