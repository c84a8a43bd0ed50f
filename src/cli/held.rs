//! `vocative held`: posts that wait for a person, and decisions about them.

use std::process::ExitCode;

use super::args::{HeldCommand, TableFormat};
use super::asking::ask;
use super::context::Context;
use super::error::{CliError, Exit};
use super::table::{one_line, table};
use crate::admin::operations::Operation;
use crate::admin::view::PostView;

/// Characters of a post's text in the list.
const TEXT_CHARS: usize = 48;

/// Lists held and dead posts, sends one again, or drops it.
pub(super) async fn run(command: &HeldCommand, context: &Context) -> Result<ExitCode, CliError> {
    match command {
        HeldCommand::List(args) => {
            let posts: Vec<PostView> = ask(context, Operation::Held).await?;
            let text = match args.format {
                TableFormat::Json => super::json_text(&posts)?,
                TableFormat::Table => report(&posts),
            };
            context.print(&text)?;
        }
        HeldCommand::Release { id } => decide(context, id, true).await?,
        HeldCommand::Drop { id } => decide(context, id, false).await?,
    }
    Ok(Exit::Ok.into())
}

async fn decide(context: &Context, id: &str, send: bool) -> Result<(), CliError> {
    let operation = Operation::Release {
        id: id.to_owned(),
        send,
    };
    let _: serde_json::Value = ask(context, operation).await?;
    context.print(if send {
        "It will be sent.\n"
    } else {
        "It is dropped.\n"
    })
}

fn report(posts: &[PostView]) -> String {
    if posts.is_empty() {
        return "Nothing waits for a decision.\n".to_owned();
    }
    let rows: Vec<Vec<String>> = posts
        .iter()
        .map(|post| {
            vec![
                post.id.clone(),
                post.state.clone(),
                post.chat.clone(),
                one_line(&post.text, TEXT_CHARS),
                post.reason.clone().unwrap_or_default(),
            ]
        })
        .collect();
    let advice = "\nLook whether it is in the chat; then `vocative held release ID` sends it, `vocative held drop ID` drops it.\n";
    table(&["id", "state", "chat", "text", "why"], &rows) + advice
}
