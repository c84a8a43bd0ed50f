//! `vocative jobs`: durable background work.

use std::process::ExitCode;

use super::args::{JobsArgs, JobsCommand, TableFormat};
use super::asking::ask;
use super::context::CliContext;
use super::error::{CliError, Exit};
use super::table::{instant, one_line, table};
use crate::admin::operations::AdminOperation;
use crate::admin::view::JobView;

/// Characters of a cause in the list.
const CAUSE_CHARS: usize = 60;

/// Lists jobs, has one run now, or removes one.
pub(super) async fn run(args: &JobsArgs, context: &CliContext) -> Result<ExitCode, CliError> {
    match &args.command {
        None => list(args.format, context).await?,
        Some(JobsCommand::List(list_args)) => list(list_args.format, context).await?,
        Some(JobsCommand::Retry { id }) => decide(context, id, true).await?,
        Some(JobsCommand::Cancel { id }) => decide(context, id, false).await?,
    }
    Ok(Exit::Ok.into())
}

async fn list(format: TableFormat, context: &CliContext) -> Result<(), CliError> {
    let jobs: Vec<JobView> = ask(context, AdminOperation::Jobs).await?;
    let text = match format {
        TableFormat::Json => super::json_text(&jobs)?,
        TableFormat::Table => report(&jobs),
    };
    context.print(&text)
}

async fn decide(context: &CliContext, id: &str, retry: bool) -> Result<(), CliError> {
    let id = id.to_owned();
    let _: bool = ask(context, AdminOperation::DecideJob { id, retry }).await?;
    context.print(match retry {
        true => "It is done now.\n",
        false => "It is taken away.\n",
    })
}

fn report(jobs: &[JobView]) -> String {
    if jobs.is_empty() {
        return "Nothing is to be done in the background.\n".to_owned();
    }
    let cells: Vec<Vec<String>> = jobs
        .iter()
        .map(|job| {
            vec![
                job.id.to_string(),
                job.kind.clone(),
                job.channel.clone().unwrap_or_default(),
                match &job.waits_for {
                    Some(waits_for) => format!("waits for {waits_for}"),
                    None => job.state.clone(),
                },
                job.attempts.to_string(),
                instant(Some(job.not_before_ms).filter(|at_ms| *at_ms > 0)),
                one_line(job.cause.as_deref().unwrap_or_default(), CAUSE_CHARS),
            ]
        })
        .collect();
    let header = [
        "id",
        "kind",
        "channel",
        "state",
        "attempts",
        "not before",
        "cause",
    ];
    table(&header, &cells)
        + "\n`vocative jobs retry ID` has one done now, `vocative jobs cancel ID` takes one away.\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_say_what_they_are_where_they_belong_and_why_they_were_given_up() {
        let jobs = [
            JobView {
                id: 7,
                kind: "fetch-file".to_owned(),
                key: "3".to_owned(),
                channel: Some("acme".to_owned()),
                state: "dead".to_owned(),
                waits_for: None,
                not_before_ms: 1_700_000_000_000,
                attempts: 10,
                cause: Some("HTTP 503".to_owned()),
                asked_at_ms: 0,
            },
            JobView {
                id: 9,
                kind: "transcribe-file".to_owned(),
                key: "4".to_owned(),
                channel: None,
                state: "waiting".to_owned(),
                waits_for: Some("transcription".to_owned()),
                not_before_ms: 0,
                attempts: 0,
                cause: None,
                asked_at_ms: 0,
            },
        ];
        insta::assert_snapshot!(report(&jobs), @r"
        id  kind             channel  state                    attempts  not before           cause
        7   fetch-file       acme     dead                     10        2023-11-14 22:13:20  HTTP 503
        9   transcribe-file           waits for transcription  0         -

        `vocative jobs retry ID` has one done now, `vocative jobs cancel ID` takes one away.
        ");
        assert_eq!(report(&[]), "Nothing is to be done in the background.\n");
    }
}
