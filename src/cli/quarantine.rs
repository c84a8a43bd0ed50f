//! `vocative quarantine`: stored rows that can't be decoded.

use std::process::ExitCode;

use super::args::{QuarantineCommand, TableFormat};
use super::asking::ask;
use super::context::CliContext;
use super::error::{CliError, Exit};
use super::table::table;
use crate::admin::operations::AdminOperation;
use crate::admin::view::QuarantinedView;

/// Lists quarantined rows, has one tried again, or drops it.
pub(super) async fn run(
    command: &QuarantineCommand,
    context: &CliContext,
) -> Result<ExitCode, CliError> {
    match command {
        QuarantineCommand::List(args) => {
            let rows: Vec<QuarantinedView> = ask(context, AdminOperation::Quarantine).await?;
            let text = match args.format {
                TableFormat::Json => super::json_text(&rows)?,
                TableFormat::Table => report(&rows),
            };
            context.print(&text)?;
        }
        QuarantineCommand::Release { id } => decide(context, id, true).await?,
        QuarantineCommand::Drop { id } => decide(context, id, false).await?,
    }
    Ok(Exit::Ok.into())
}

async fn decide(context: &CliContext, id: &str, again: bool) -> Result<(), CliError> {
    let operation = AdminOperation::DecideQuarantined {
        id: id.to_owned(),
        again,
    };
    let _: bool = ask(context, operation).await?;
    context.print(match again {
        true => "It is tried again.\n",
        false => "It is dropped.\n",
    })
}

fn report(rows: &[QuarantinedView]) -> String {
    if rows.is_empty() {
        return "Every stored row can be decoded.\n".to_owned();
    }
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| vec![row.id.clone(), row.reason.clone()])
        .collect();
    table(&["id", "what can't be decoded"], &cells)
        + "\n`vocative quarantine release ID` tries one again after it was mended; `drop ID` gives it up.\n"
}
