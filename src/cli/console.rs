//! `vocative console`: a link into the console, and its audit: logins, views of direct chats, actions.

use std::process::ExitCode;

use super::args::{ConsoleCommand, TableFormat};
use super::asking::{Answerer, ask};
use super::context::CliContext;
use super::error::{CliError, Exit};
use super::table::{instant, table};
use crate::admin::operations::AdminOperation;
use crate::admin::view::{AuditView, ConsoleLinkView};

/// Makes a link, or lists the audit.
pub(super) async fn run(
    command: &ConsoleCommand,
    context: &CliContext,
) -> Result<ExitCode, CliError> {
    let text = match command {
        ConsoleCommand::Link { name, format } => {
            let link = link(name.clone(), context).await?;
            match format {
                TableFormat::Json => super::json_text(&link)?,
                TableFormat::Table => told(&link),
            }
        }
        ConsoleCommand::Audit {
            limit,
            before,
            format,
        } => {
            let operation = AdminOperation::ConsoleAudit {
                before: *before,
                limit: *limit,
            };
            let rows: Vec<AuditView> = ask(context, operation).await?;
            match format {
                TableFormat::Json => super::json_text(&rows)?,
                TableFormat::Table => report(&rows),
            }
        }
    };
    context.print(&text)?;
    Ok(Exit::Ok.into())
}

/// Asks the daemon for a link; without a daemon there is no console.
async fn link(name: String, context: &CliContext) -> Result<ConsoleLinkView, CliError> {
    let mut answerer = Answerer::new(context)?;
    if answerer.daemon().await.is_none() {
        return Err(CliError::Unavailable {
            what: "no daemon runs, so there is no console".to_owned(),
            advice: "start it with `vocative run` and [console] enabled = true".to_owned(),
            cause: None,
        });
    }
    let link = answerer.ask(AdminOperation::ConsoleLink { name }).await;
    answerer.close().await?;
    link
}

fn told(link: &ConsoleLinkView) -> String {
    let ConsoleLinkView {
        url,
        name,
        role,
        port,
        ..
    } = link;
    let minutes = link.expires_in_s / 60;
    let mut text =
        format!("{url}\n\nIt lets {name} ({role}) in, once, within {minutes} minutes.\n");
    if link.is_local {
        text.push_str(&format!(
            "From another machine: ssh -L {port}:127.0.0.1:{port} THIS_MACHINE, and open it there.\n"
        ));
    }
    text
}

fn report(rows: &[AuditView]) -> String {
    if rows.is_empty() {
        return "Nobody was in the console.\n".to_owned();
    }
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            vec![
                row.id.to_string(),
                instant(Some(row.at_ms)),
                row.who.clone(),
                row.via.clone(),
                row.act.clone(),
                row.target.clone(),
                row.outcome.clone(),
            ]
        })
        .collect();
    let header = ["no", "time", "who", "by", "what", "of what", "outcome"];
    table(&header, &cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_says_whom_it_lets_in_and_how_to_reach_it() {
        let link = ConsoleLinkView {
            url: "http://127.0.0.1:8089/login#c0de".to_owned(),
            name: "ann".to_owned(),
            role: "operator".to_owned(),
            expires_in_s: 300,
            port: 8089,
            is_local: true,
        };
        insta::assert_snapshot!(told(&link), @r"
        http://127.0.0.1:8089/login#c0de

        It lets ann (operator) in, once, within 5 minutes.
        From another machine: ssh -L 8089:127.0.0.1:8089 THIS_MACHINE, and open it there.
        ");
    }

    #[test]
    fn the_audit_is_a_table() {
        let row = AuditView {
            id: 7,
            at_ms: 1_700_000_000_000,
            who: "ann".to_owned(),
            via: "link".to_owned(),
            act: "look".to_owned(),
            target: "0198c5de-1234-7abc-8def-0123456789ab".to_owned(),
            outcome: "done".to_owned(),
        };
        insta::assert_snapshot!(report(&[row]), @r"
        no  time                 who  by    what  of what                               outcome
        7   2023-11-14 22:13:20  ann  link  look  0198c5de-1234-7abc-8def-0123456789ab  done
        ");
        assert_eq!(report(&[]), "Nobody was in the console.\n");
    }
}
