//! An agent of the product as its configuration makes it, to be judged without a daemon.

use std::path::Path;

use vocative::agent::registry::AgentSpec;
use vocative::cli::CliError;
use vocative::config::{Config, Environment};
use vocative::daemon::wiring;
use vocative::tools::mcp::McpServers;

/// The agent `vocative` with these settings and the model `judged` of this table.
///
/// # Errors
/// If the configuration is invalid.
pub(crate) fn agent(model: &str, settings: &str) -> Result<AgentSpec, CliError> {
    let text = format!(
        "[daemon]\ndata_dir = \"/judged\"\nruntime_dir = \"/judged\"\n[models.judged]\n{model}\
         [agents.vocative]\nmodel = \"judged\"\n{settings}[channels.slack.acme]\n\
         app_token = \"env:ONE\"\nbot_token = \"env:TWO\"\n"
    );
    let environment = Environment::from_pairs([("ONE", "one-token"), ("TWO", "another-token")]);
    let path = Path::new("judged.toml");
    let wrong = |cause: &dyn std::fmt::Display| failed(format!("the configuration: {cause}"));
    let (config, _) =
        Config::from_text(Some((path, &text)), &environment).map_err(|cause| wrong(&cause))?;
    let agents =
        wiring::agents(&config, None, &McpServers::default()).map_err(|cause| wrong(&cause))?;
    let mut agents = agents.into_iter();
    agents.next().ok_or_else(|| failed("no agent".to_owned()))
}

/// A failure of the laboratory.
pub(crate) fn failed(what: String) -> CliError {
    CliError::Failed {
        what,
        advice: None,
        cause: None,
    }
}
