//! `vocative reload`: has the running daemon read its configuration again, and reports the result.

use std::process::ExitCode;

use super::asking::{Answerer, OperationsSource};
use super::context::CliContext;
use super::error::{CliError, Exit};
use crate::admin::operations::AdminOperation;

/// Succeeds only if the daemon accepted the configuration: `systemctl reload` shows what this prints.
pub(super) async fn run(context: &CliContext) -> Result<ExitCode, CliError> {
    let Some(daemon) = Answerer::new(context)?.daemon().await else {
        return Err(CliError::Unavailable {
            what: "no daemon runs that could read its configuration again".to_owned(),
            advice: "start it; it reads the configuration then".to_owned(),
            cause: None,
        });
    };
    let summary: String = OperationsSource::Daemon(daemon)
        .ask(AdminOperation::Reload)
        .await?;
    context.print(&format!("reloaded: {summary}\n"))?;
    Ok(Exit::Ok.into())
}
