//! `vocative demo`.

use std::process::ExitCode;

use super::args::DemoArgs;
use super::context::Context;
use super::error::CliError;

/// Shows the daemon at work against the sandbox.
pub(super) async fn run(_args: &DemoArgs, context: &Context) -> Result<ExitCode, CliError> {
    context.start_log_at("warn")?;
    Err(CliError::NotBuilt("demo"))
}
