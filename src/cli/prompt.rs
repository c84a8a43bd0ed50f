//! `vocative prompt`: exactly what the model would be sent.

use std::fmt::Write as _;
use std::process::ExitCode;

use super::args::{PromptArgs, TextFormat};
use super::asking::ask;
use super::context::Context;
use super::error::{CliError, Exit};
use crate::admin::operations::Operation;
use crate::admin::view::PromptView;
use crate::prompt::{transcript, view};

/// Shows the prompt of a conversation, or of a transcript.
pub(super) async fn run(args: &PromptArgs, context: &Context) -> Result<ExitCode, CliError> {
    let text = match (&args.transcript, &args.conversation) {
        (Some(path), _) => of_transcript(path).await?,
        (None, name) => {
            let operation = Operation::Prompt {
                name: name.clone().unwrap_or_default(),
                agent: args.agent.clone(),
                at: args.at,
            };
            let view: PromptView = ask(context, operation).await?;
            match args.format {
                TextFormat::Json => super::json_text(&view)?,
                TextFormat::Text => report(&view, args.stats),
            }
        }
    };
    context.print(&text)?;
    Ok(Exit::Ok.into())
}

async fn of_transcript(path: &std::path::Path) -> Result<String, CliError> {
    let is_stdin = path.as_os_str() == "-";
    let read = if is_stdin {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(path)
    };
    let text =
        read.map_err(|cause| CliError::failed(format!("{} can't be read", path.display()), cause))?;
    let prompt = transcript::run_transcript(&text)
        .await
        .map_err(|cause| CliError::failed(format!("{} can't be used", path.display()), cause))?;
    super::json_text(&view::PromptView::from(&prompt))
}

fn report(view: &PromptView, with_stats: bool) -> String {
    let mut out = String::new();
    for message in &view.messages {
        let _ = writeln!(out, "--- {}\n{}", message.role, message.content);
    }
    let _ = writeln!(
        out,
        "\n{} for {}: {} tokens and {} of instructions (by {})",
        view.conversation, view.agent, view.tokens, view.instruction_tokens, view.counter
    );
    for omitted in &view.omitted {
        let _ = writeln!(
            out,
            "left out: seq {} by {}: {}",
            omitted.seq, omitted.speaker, omitted.why
        );
    }
    if !view.has_identity {
        out.push_str("without a running daemon the bot's own mentions stand as its id\n");
    }
    if view.has_older {
        out.push_str("left out: older turns, by max_turns_to_load\n");
    }
    if with_stats {
        let _ = writeln!(
            out,
            "read: {} turns, {} rows",
            view.turns_loaded, view.rows_read
        );
    }
    out
}
