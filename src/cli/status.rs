//! `vocative status`.

use std::process::ExitCode;

use super::args::StatusArgs;
use super::context::Context;
use super::error::CliError;

/// Says how the running daemon is doing.
pub(super) async fn run(_args: &StatusArgs, _context: &Context) -> Result<ExitCode, CliError> {
    Err(CliError::NotBuilt("status"))
}
