//! `vocative status --alive`: a health check.

use std::process::ExitCode;

use super::asking::{Answerer, OperationsSource};
use super::context::CliContext;
use super::error::{CliError, Exit};
use super::table::span;
use crate::admin::operations::AdminOperation;
use crate::admin::view::AliveView;
use crate::daemon::start::wall_clock;

/// Succeeds if a daemon answers, whatever state it is in.
pub(super) async fn run(context: &CliContext) -> Result<ExitCode, CliError> {
    let unavailable = |what: &str| CliError::Unavailable {
        what: what.to_owned(),
        advice: "start it: systemctl start vocative, or vocative run".to_owned(),
        cause: None,
    };
    let daemon = Answerer::new(context)?.daemon().await;
    let daemon = daemon.ok_or_else(|| unavailable("no daemon runs"))?;
    let view: AliveView = OperationsSource::Daemon(daemon)
        .ask(AdminOperation::Alive)
        .await?;
    let started_at_ms = view.started_at_ms;
    let at_ms = started_at_ms.ok_or_else(|| unavailable("no daemon runs"))?;
    let now_ms = (wall_clock())();
    context.print(&format!("serves for {}\n", span(now_ms - at_ms)))?;
    Ok(Exit::Ok.into())
}
