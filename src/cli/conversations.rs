//! `vocative conversations`.

use std::fmt::Write as _;
use std::process::ExitCode;

use super::args::{ListArgs, ShowArgs, TableFormat};
use super::asking::ask;
use super::context::Context;
use super::error::{CliError, Exit};
use super::table::{instant, table};
use crate::admin::operations::Operation;
use crate::admin::view::{ConversationDetailView, ConversationView, TurnView};

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
    };
    let view: ConversationDetailView = ask(context, operation).await?;
    let text = match args.format {
        TableFormat::Json => super::json_text(&view)?,
        TableFormat::Table => report(&view),
    };
    context.print(&text)?;
    Ok(Exit::Ok.into())
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
    let text = turn.text.replace('\n', "\n        ");
    let _ = writeln!(
        out,
        "{:>6}  {}  {}: {text}{marks}",
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
