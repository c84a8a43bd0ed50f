//! `vocative prompt`.

use std::process::ExitCode;

use super::args::PromptArgs;
use super::context::Context;
use super::error::CliError;

/// Shows exactly what the model would be sent.
pub(super) async fn run(_args: &PromptArgs, _context: &Context) -> Result<ExitCode, CliError> {
    Err(CliError::NotBuilt("prompt"))
}
