//! `vocative conversations stats`.

use std::process::ExitCode;

use super::args::{StatsArgs, TableFormat};
use super::asking::ask;
use super::context::CliContext;
use super::error::{CliError, Exit};
use super::since::since_ms;
use super::table::{instant, span, table};
use crate::admin::operations::AdminOperation;
use crate::admin::view::ConversationStatsView;
use crate::daemon::start::wall_clock;
use vocative_core::price::shown_amount;

/// Shows the figures of one conversation.
pub(super) async fn run(args: &StatsArgs, context: &CliContext) -> Result<ExitCode, CliError> {
    let now_ms = (wall_clock())();
    let operation = AdminOperation::ConversationStats {
        name: args.conversation.clone(),
        since_ms: since_ms(&args.since, now_ms).map_err(CliError::Usage)?,
    };
    let (config, _) = context.load_config()?;
    let stats: ConversationStatsView = ask(context, operation).await?;
    context.print(&match args.format {
        TableFormat::Json => super::json_text(&stats)?,
        TableFormat::Table => report(&stats, &config.currency),
    })?;
    Ok(Exit::Ok.into())
}

fn report(stats: &ConversationStatsView, currency: &str) -> String {
    let times = stats.answer_p50_ms.zip(stats.answer_p95_ms);
    let times = times.map(|times| {
        let shown = |ms: u64| span(i64::try_from(ms).unwrap_or(i64::MAX));
        format!(
            "half within {}, 95 % within {}",
            shown(times.0),
            shown(times.1)
        )
    });
    let cost = match stats.cost_micros {
        0 => String::new(),
        micros => format!("{} {currency}", shown_amount(micros)),
    };
    let lines = [
        ("messages of people", stats.messages_of_people.to_string()),
        ("people", stats.speakers.to_string()),
        ("messages of agents", stats.messages_of_agents.to_string()),
        ("questions", stats.runs.to_string()),
        ("answered", stats.runs_answered.to_string()),
        ("given up", stats.runs_dead.to_string()),
        ("answers took", times.unwrap_or_default()),
        (
            "tokens",
            format!(
                "{} read, {} written",
                stats.prompt_tokens, stats.completion_tokens
            ),
        ),
        ("cost", cost),
        ("thumbs", stats.thumbs.to_string()),
    ];
    let rows = lines
        .into_iter()
        .filter(|(_, figure)| !figure.is_empty())
        .map(|(what, figure)| vec![what.to_owned(), figure]);
    let since = instant(Some(stats.since_ms));
    let heading = format!("{} since {since} UTC\n\n", stats.conversation.name);
    let mut out = heading + &table(&["", ""], &rows.collect::<Vec<_>>());
    if stats.is_cut {
        out.push_str(
            "\nOnly the newest 200,000 messages and runs were counted: ask for a shorter time.\n",
        );
    }
    out
}
