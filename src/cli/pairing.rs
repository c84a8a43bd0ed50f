//! `vocative pairing`: who waits to be let in to a direct chat, who was let in, and who decided.

use std::process::ExitCode;

use serde::de::DeserializeOwned;

use super::args::{PairingCommand, TableFormat};
use super::asking::ask;
use super::context::CliContext;
use super::error::{CliError, Exit};
use super::table::{instant, table};
use crate::admin::operations::{AdminOperation, PairingOperation};
use crate::admin::view::PairingView;
use vocative_core::approving::visible_line;

/// Lists people, or decides about one.
pub(super) async fn run(
    command: &PairingCommand,
    context: &CliContext,
) -> Result<ExitCode, CliError> {
    match command {
        PairingCommand::List { format } => {
            let people: Vec<PairingView> = asked(context, PairingOperation::List).await?;
            let text = match format {
                TableFormat::Json => super::json_text(&people)?,
                TableFormat::Table => report(&people),
            };
            context.print(&text)?;
        }
        PairingCommand::Approve { channel, code, by } => {
            let operation = PairingOperation::Approve {
                channel: channel.clone(),
                code: code.clone(),
                by: by.clone(),
            };
            let person: PairingView = asked(context, operation).await?;
            let label = label(&person);
            context.print(&format!(
                "{label} is let in, and told so. `vocative pairing revoke {label} --by {by}` takes it back.\n"
            ))?;
        }
        PairingCommand::Revoke { person, by } => {
            let (channel, id) = person.split_once('/').ok_or_else(|| {
                CliError::Usage(format!(
                    "{person} is no person: give CHANNEL/ID, as `vocative pairing list` does"
                ))
            })?;
            let operation = PairingOperation::Revoke {
                channel: channel.to_owned(),
                person: id.to_owned(),
                by: by.clone(),
            };
            let _: bool = asked(context, operation).await?;
            context.print(&format!("{person} is let in no more.\n"))?;
        }
    }
    Ok(Exit::Ok.into())
}

async fn asked<T: DeserializeOwned>(
    context: &CliContext,
    operation: PairingOperation,
) -> Result<T, CliError> {
    ask(context, AdminOperation::Pairing(operation)).await
}

fn label(person: &PairingView) -> String {
    visible_line(&format!("{}/{}", person.channel, person.person))
}

fn report(people: &[PairingView]) -> String {
    if people.is_empty() {
        return "Nobody waits to be let in, and nobody was. Channels with `pairing = true` tell codes.\n"
            .to_owned();
    }
    let cells = |it: &PairingView| {
        let state = it.approved_at_ms.map_or("waits", |_| "is let in");
        let shown = |text: &Option<String>| text.as_deref().map(visible_line).unwrap_or_default();
        vec![
            label(it),
            shown(&it.name),
            state.to_owned(),
            instant(Some(it.offered_at_ms)),
            shown(&it.approved_by),
            instant(it.approved_at_ms),
        ]
    };
    let cells: Vec<Vec<String>> = people.iter().map(cells).collect();
    let header = ["person", "name", "state", "code told at", "let in by", "at"];
    table(&header, &cells)
}
