//! `vocative config`: the configuration in force, its schema, an example, the Slack app's manifest.

use std::process::ExitCode;

use super::args::ConfigCommand;
use super::context::CliContext;
use super::error::{CliError, Exit};
use super::manifest;

/// Prints the configuration, its schema, an example or the manifest.
pub(super) fn run(command: &ConfigCommand, context: &CliContext) -> Result<ExitCode, CliError> {
    let text = match command {
        ConfigCommand::Show => context.load_config()?.0.show(),
        ConfigCommand::Example => crate::config::example(),
        ConfigCommand::SlackManifest(args) => manifest::slack(args)?,
        ConfigCommand::Schema => {
            let schema = serde_json::to_string_pretty(crate::config::schema())
                .map_err(|error| CliError::failed("the schema can't be written", error))?;
            format!("{schema}\n")
        }
    };
    context.print(&text)?;
    Ok(Exit::Ok.into())
}
