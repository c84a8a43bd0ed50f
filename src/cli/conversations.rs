//! `vocative conversations`.

use std::process::ExitCode;

use super::args::{ListArgs, ShowArgs};
use super::context::Context;
use super::error::CliError;

/// Lists conversations, the most recently active first.
pub(super) async fn list(_args: &ListArgs, _context: &Context) -> Result<ExitCode, CliError> {
    Err(CliError::NotBuilt("conversations list"))
}

/// Shows the turns of one conversation.
pub(super) async fn show(_args: &ShowArgs, _context: &Context) -> Result<ExitCode, CliError> {
    Err(CliError::NotBuilt("conversations show"))
}
