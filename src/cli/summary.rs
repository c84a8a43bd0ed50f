//! `vocative summary`: what stands for the older turns of a conversation.

use std::fmt::Write as _;
use std::process::ExitCode;

use super::args::{SummaryCommand, SummaryRebuildArgs, SummaryShowArgs, TableFormat};
use super::asking::ask;
use super::context::CliContext;
use super::error::{CliError, Exit};
use super::table::instant;
use crate::admin::operations::AdminOperation;
use crate::admin::view::{RebuildView, SummariesView, SummaryView};
use vocative_core::counted::counted;

/// Shows summaries, or has them made again.
pub(super) async fn run(
    command: &SummaryCommand,
    context: &CliContext,
) -> Result<ExitCode, CliError> {
    match command {
        SummaryCommand::Show(args) => show(args, context).await?,
        SummaryCommand::Rebuild(args) => rebuild(args, context).await?,
    }
    Ok(Exit::Ok.into())
}

async fn show(args: &SummaryShowArgs, context: &CliContext) -> Result<(), CliError> {
    let operation = AdminOperation::Summaries {
        name: args.conversation.clone(),
        agent: args.agent.clone(),
    };
    let view: SummariesView = ask(context, operation).await?;
    let text = match args.format {
        TableFormat::Json => super::json_text(&view)?,
        TableFormat::Table => report(&view),
    };
    context.print(&text)
}

async fn rebuild(args: &SummaryRebuildArgs, context: &CliContext) -> Result<(), CliError> {
    let operation = AdminOperation::RebuildSummaries {
        name: args.conversation.clone(),
        agent: args.agent.clone(),
        forget_expired: args.forget_expired,
    };
    let view: RebuildView = ask(context, operation).await?;
    context.print(&rebuilt(view))
}

fn rebuilt(view: RebuildView) -> String {
    let kept = match view.stay {
        0 => String::new(),
        stay => format!(
            "{} in use: turns went by their age that only summaries remember. `--forget-expired` sets these aside, too.\n",
            counted(stay, "summary stays", "summaries stay")
        ),
    };
    if view.set_aside == 0 && view.stay == 0 {
        return "There is no summary in use here.\n".to_owned();
    }
    if view.set_aside == 0 {
        return kept;
    }
    let set_aside = counted(view.set_aside, "summary is", "summaries are");
    let then = if view.has_daemon {
        "The daemon makes new ones in the background; `vocative summary show` shows them."
    } else {
        "No daemon runs and no model was asked: the next `vocative run` makes new ones."
    };
    format!("{set_aside} set aside. {then}\n{kept}")
}

fn report(view: &SummariesView) -> String {
    if view.summaries.is_empty() {
        return "Nothing is summarised here: all kept turns are within reach of a prompt.\n"
            .to_owned();
    }
    let mut out = String::new();
    for summary in &view.summaries {
        summary_lines(&mut out, summary);
    }
    out
}

fn summary_lines(out: &mut String, summary: &SummaryView) {
    let previous = summary
        .previous
        .map_or_else(String::new, |id| format!(" on top of {id}"));
    let _ = writeln!(
        out,
        "{} of {}, {}: {} from {} to {}{previous}; {} by {}",
        summary.id,
        summary.agent,
        summary.state,
        counted(summary.turns, "turn", "turns"),
        instant(Some(summary.from_ms)),
        instant(Some(summary.through_ms)),
        counted(summary.tokens, "token", "tokens"),
        summary.model
    );
    for line in summary.text.lines() {
        let _ = writeln!(out, "    {line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_summary_says_what_it_stands_for() {
        let mut out = String::new();
        let summary = SummaryView {
            id: 2,
            agent: "kael".to_owned(),
            state: "current".to_owned(),
            previous: Some(1),
            from_ms: 0,
            through_ms: 60_000,
            turns: 21,
            tokens: 8,
            model: "offline".to_owned(),
            created_at_ms: 0,
            text: "Ada: We ship.\nBob: ok".to_owned(),
        };
        summary_lines(&mut out, &summary);
        insta::assert_snapshot!(out, @r"
        2 of kael, current: 21 turns from 1970-01-01 00:00:00 to 1970-01-01 00:01:00 on top of 1; 8 tokens by offline
            Ada: We ship.
            Bob: ok
        ");
    }

    #[test]
    fn a_rebuild_says_who_does_it() {
        let view = |set_aside, has_daemon| RebuildView {
            set_aside,
            stay: 0,
            has_daemon,
        };
        assert!(rebuilt(view(0, true)).starts_with("There is no summary"));
        assert!(rebuilt(view(2, true)).starts_with("2 summaries are set aside. The daemon"));
        assert!(rebuilt(view(1, false)).contains("no model was asked"));
        let stays = RebuildView {
            stay: 2,
            ..view(0, true)
        };
        assert!(rebuilt(stays).starts_with("2 summaries stay in use: turns went by their age"));
    }
}
