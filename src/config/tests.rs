//! Tests of configurations as people write them. This page: how they are loaded.

#![allow(clippy::unwrap_used)]

mod agreement;
mod chats;
mod delegates;
mod hooks;
mod knowledge;
mod layers;
mod networks;
mod refusals;
mod secrets;
mod skills;
mod tools;
mod transports;

use std::collections::BTreeSet;
use std::path::Path;

use secrecy::ExposeSecret as _;

use super::*;
use vocative_core::ids::AgentName;
use vocative_core::options::{AssemblerOptions, Profile};
use vocative_core::place::Scope;

const MINIMAL: &str = r#"
[channels.slack.acme]
app_token = "env:SLACK_APP_TOKEN"
bot_token = "env:SLACK_BOT_TOKEN"
"#;

fn home() -> Environment {
    Environment::from([("HOME", "/home/ada")])
}

fn load_with<const N: usize>(
    text: &str,
    variables: [(&str, &str); N],
) -> Result<(Config, Vec<Warning>), ConfigError> {
    let mut all = vec![("HOME", "/home/ada")];
    all.extend(variables);
    let environment = Environment::from_pairs(all);
    Config::from_text(Some((Path::new("vocative.toml"), text)), &environment)
}

fn load(text: &str) -> Config {
    load_with(text, []).unwrap().0
}

/// The message for a configuration that can't be used.
fn refused(text: &str) -> String {
    load_with(text, []).unwrap_err().to_string()
}

fn agent(name: &str) -> AgentName {
    AgentName::new(name).unwrap()
}

const EXACT_COUNTS: &str = r#"
[models.default]
provider = "anthropic"
model = "claude-haiku-4-5"
api_key = "env:KEY"
counter = "o200k"
[channels.telegram.home]
token = "env:T"
"#;
