//! `vocative sandbox`.

use std::process::ExitCode;

use super::args::SandboxArgs;
use super::context::Context;
use super::error::CliError;

/// Runs the loopback platforms.
pub(super) async fn run(_args: &SandboxArgs, context: &Context) -> Result<ExitCode, CliError> {
    context.start_log_at("warn")?;
    Err(CliError::NotBuilt("sandbox"))
}
