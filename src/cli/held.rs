//! `vocative held`: posts and questions that wait for a person, and decisions about them.

use std::process::ExitCode;

use super::args::{HeldCommand, TableFormat};
use super::asking::ask;
use super::context::CliContext;
use super::error::{CliError, Exit};
use super::table::{instant, one_line, table};
use crate::admin::operations::AdminOperation;
use crate::admin::view::{HeldRunView, PostView, ReleasedView};

/// Characters of a post's text in the list.
const TEXT_CHARS: usize = 48;

/// Lists what is held, releases one entry, or drops it.
pub(super) async fn run(command: &HeldCommand, context: &CliContext) -> Result<ExitCode, CliError> {
    match command {
        HeldCommand::List(args) => {
            let posts: Vec<PostView> = ask(context, AdminOperation::Held).await?;
            let runs: Vec<HeldRunView> = ask(context, AdminOperation::HeldRuns).await?;
            let text = match args.format {
                TableFormat::Json => super::json_text(&held_json(&posts, &runs)?)?,
                TableFormat::Table => report(&posts, &runs),
            };
            context.print(&text)?;
        }
        HeldCommand::Release { id } => decide(context, id, true).await?,
        HeldCommand::Drop { id } => decide(context, id, false).await?,
    }
    Ok(Exit::Ok.into())
}

async fn decide(context: &CliContext, id: &str, send: bool) -> Result<(), CliError> {
    let operation = AdminOperation::Release {
        id: id.to_owned(),
        send,
    };
    let released: ReleasedView = ask(context, operation).await?;
    context.print(match (send, released.is_run) {
        (true, false) => "It will be sent.\n",
        (true, true) => "It will be answered.\n",
        (false, _) => "It is dropped.\n",
    })
}

/// Posts, then runs, in one JSON array, which once held only posts. A run's entry has the field `run`.
fn held_json(posts: &[PostView], runs: &[HeldRunView]) -> Result<Vec<serde_json::Value>, CliError> {
    let said = |cause| CliError::failed("the result can't be written as JSON", cause);
    let posts = posts.iter().map(serde_json::to_value);
    let runs = runs.iter().map(serde_json::to_value);
    posts.chain(runs).collect::<Result<_, _>>().map_err(said)
}

fn report(posts: &[PostView], runs: &[HeldRunView]) -> String {
    let mut out = String::new();
    if !posts.is_empty() {
        out.push_str(&posts_report(posts));
    }
    if !runs.is_empty() {
        if !posts.is_empty() {
            out.push('\n');
        }
        out.push_str(&runs_report(runs));
    }
    if out.is_empty() {
        return "Nothing waits for a decision.\n".to_owned();
    }
    out
}

fn runs_report(runs: &[HeldRunView]) -> String {
    let rows: Vec<Vec<String>> = runs
        .iter()
        .map(|held| {
            vec![
                held.run.id.clone(),
                held.run.agent.clone(),
                held.conversation.clone(),
                one_line(&held.text, TEXT_CHARS),
                held.run.reason.clone().unwrap_or_default(),
            ]
        })
        .collect();
    let advice = "\nLook whether it was answered there; then `vocative held release ID` has it answered, `vocative held drop ID` forgets it.\n";
    table(&["id", "agent", "conversation", "question", "why"], &rows) + advice
}

fn posts_report(posts: &[PostView]) -> String {
    let rows: Vec<Vec<String>> = posts
        .iter()
        .map(|post| {
            vec![
                post.id.clone(),
                post.state.clone(),
                post.chat.clone(),
                instant(post.first_attempt_ms),
                one_line(&post.text, TEXT_CHARS),
                post.reason.clone().unwrap_or_default(),
            ]
        })
        .collect();
    let advice = "\nLook whether it is in the chat, since it was first tried: an earlier message with these words is another one. Then `vocative held release ID` sends it, `vocative held drop ID` drops it.\n";
    table(
        &["id", "state", "chat", "first tried", "text", "why"],
        &rows,
    ) + advice
}
