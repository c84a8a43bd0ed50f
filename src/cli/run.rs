//! `vocative run`: the daemon.

use std::process::ExitCode;

use super::args::RunArgs;
use super::context::Context;
use super::error::CliError;

/// Serves the configured channels until stopped.
pub(super) async fn run(_args: &RunArgs, context: &Context) -> Result<ExitCode, CliError> {
    let (config, mut warnings) = context.load_config()?;
    context.start_log(&config)?;
    let (_secrets, about_secrets) = config.resolve_secrets(&context.environment)?;
    warnings.extend(about_secrets);
    for warning in &warnings {
        tracing::warn!(setting = warning.key, "{}", warning.what);
    }
    Err(CliError::NotBuilt("run"))
}
