//! From answers to the files to write, or to why there are none. Pure.

use std::fmt::Write as _;

use secrecy::{ExposeSecret as _, SecretString};
use toml::Value;

use super::answers::{Answers, ModelAnswers, ModelKind, SlackAnswers, TelegramAnswers};
use crate::config::{Config, Environment};

/// The files made from the answers.
#[derive(Clone, Debug)]
pub(super) struct SetupFiles {
    /// The configuration.
    pub configuration: String,
    /// The secrets, by the names of their files.
    pub secrets: Vec<(&'static str, SecretString)>,
}

/// Why the answers make no configuration: one sentence each, which names the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SetupRefusal(pub Vec<String>);

/// The files made from the answers. A configuration that `vocative check` would refuse is an error.
///
/// # Errors
/// Everything that is wrong with the answers, without any secret.
pub(super) fn written(
    answers: &Answers,
    environment: &Environment,
) -> Result<SetupFiles, SetupRefusal> {
    let problems = problems(answers);
    if !problems.is_empty() {
        return Err(SetupRefusal(problems));
    }
    let reference = |name: &str| answers.place.reference(name);
    let made = made(answers, &reference);
    let path = answers.place.file();
    match Config::from_text(Some((&path, &made.configuration)), environment) {
        Ok(_) => Ok(made),
        Err(error) => {
            let problems = error.problems.iter();
            let told = problems.map(|it| format!("{}: {}", it.key, it.what));
            Err(SetupRefusal(told.collect()))
        }
    }
}

/// The configuration with each secret in a variable, and these variables: for a try before anything is written.
pub(super) fn trial(answers: &Answers) -> (String, Environment) {
    let made = made(answers, &|name: &str| format!("env:{}", variable(name)));
    let variables: Vec<(String, &str)> = made
        .secrets
        .iter()
        .map(|(name, secret)| (variable(name), secret.expose_secret()))
        .collect();
    let pairs = variables
        .iter()
        .map(|(name, value)| (name.as_str(), *value));
    // The configuration needs a home for its database, which is never made: nothing is started with it.
    let pairs = pairs.chain([("HOME", "/nonexistent")]);
    (made.configuration, Environment::from_pairs(pairs))
}

fn variable(name: &str) -> String {
    format!("SETUP_{}", name.to_uppercase())
}

fn made(answers: &Answers, reference: &dyn Fn(&str) -> String) -> SetupFiles {
    let mut text = String::from(
        "# Made by `vocative setup`. Every setting with its default: vocative config example.\n\
         # What is not here is as the defaults say.\n",
    );
    let mut secrets = Vec::new();
    model(&answers.model, reference, &mut text, &mut secrets);
    text.push_str("\n[agents.vocative]\nmodel = \"default\"\n");
    if let Some(slack) = &answers.slack {
        of_slack(slack, reference, &mut text, &mut secrets);
    }
    if let Some(telegram) = &answers.telegram {
        of_telegram(telegram, reference, &mut text, &mut secrets);
    }
    SetupFiles {
        configuration: text,
        secrets,
    }
}

/// A string as TOML writes it.
fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

fn list(ids: &[String]) -> String {
    let ids = ids.iter().map(|id| Value::String(id.clone()));
    Value::Array(ids.collect()).to_string()
}

fn model(
    model: &ModelAnswers,
    reference: &dyn Fn(&str) -> String,
    text: &mut String,
    secrets: &mut Vec<(&'static str, SecretString)>,
) {
    let provider = model.kind.provider();
    let _ = write!(text, "\n[models.default]\nprovider = \"{provider}\"\n");
    if model.kind == ModelKind::Offline {
        text.push_str("# It repeats the question. For answers: \"openai\" or \"anthropic\", with model and api_key.\n");
        return;
    }
    let _ = writeln!(text, "model = {}", quoted(&model.name));
    if let Some(key) = &model.key {
        let _ = writeln!(text, "api_key = {}", quoted(&reference("model_key")));
        secrets.push(("model_key", key.clone()));
    }
    if let Some(url) = &model.url {
        let _ = writeln!(text, "base_url = {}", quoted(url));
    }
}

fn of_slack(
    slack: &SlackAnswers,
    reference: &dyn Fn(&str) -> String,
    text: &mut String,
    secrets: &mut Vec<(&'static str, SecretString)>,
) {
    text.push_str("\n[channels.slack.slack]\n");
    let tokens = [
        ("app_token", "slack_app", &slack.app_token),
        ("bot_token", "slack_bot", &slack.bot_token),
    ];
    for (setting, name, token) in tokens {
        let _ = writeln!(text, "{setting} = {}", quoted(&reference(name)));
        secrets.push((name, token.clone()));
    }
    if let Some(url) = &slack.api_url {
        let _ = writeln!(text, "api_url = {}", quoted(url));
    }
    if !slack.admins.is_empty() {
        let _ = writeln!(
            text,
            "# Who may use admin commands.\nadmins = {}",
            list(&slack.admins)
        );
    }
}

fn of_telegram(
    telegram: &TelegramAnswers,
    reference: &dyn Fn(&str) -> String,
    text: &mut String,
    secrets: &mut Vec<(&'static str, SecretString)>,
) {
    text.push_str("\n[channels.telegram.telegram]\n");
    let _ = writeln!(text, "token = {}", quoted(&reference("telegram")));
    secrets.push(("telegram", telegram.token.clone()));
    if let Some(url) = &telegram.api_url {
        let _ = writeln!(text, "api_url = {}", quoted(url));
    }
    text.push_str("# Nobody else is served: the log names the ids of those who ask.\n");
    let _ = writeln!(text, "allow_chats = {}", list(&telegram.chats));
    let _ = writeln!(text, "allow_people = {}", list(&telegram.people));
    if !telegram.admins.is_empty() {
        let _ = writeln!(text, "admins = {}", list(&telegram.admins));
    }
}

/// What is wrong with the answers themselves, before a configuration is made from them.
fn problems(answers: &Answers) -> Vec<String> {
    let mut problems = Vec::new();
    if answers.slack.is_none() && answers.telegram.is_none() {
        problems.push("no platform is chosen, so there is nothing to serve".to_owned());
    }
    if let Some(slack) = &answers.slack {
        let tokens = [
            ("the app-level token", "xapp-", &slack.app_token),
            ("the bot token", "xoxb-", &slack.bot_token),
        ];
        for (what, begin, token) in tokens {
            problems.extend(secret_problem(what, token));
            problems.extend(other_kind(what, begin, token));
        }
    }
    if let Some(telegram) = &answers.telegram {
        problems.extend(secret_problem("Telegram's token", &telegram.token));
        if telegram.chats.is_empty() && telegram.people.is_empty() {
            problems.push(
                "on Telegram nobody would be served: name a chat or a person, or write to the bot when asked to"
                    .to_owned(),
            );
        }
    }
    let model = &answers.model;
    if let Some(key) = &model.key {
        problems.extend(secret_problem("the model's key", key));
    }
    if model.kind != ModelKind::Offline {
        if model.name.trim().is_empty() {
            problems.push("the model has no name".to_owned());
        }
        if model.key.is_none() && model.url.is_none() {
            problems.push(format!("{} wants a key", model.kind.provider()));
        }
    }
    problems
}

/// Why a text can't be a secret in a file. The reason shows nothing of it.
pub(super) fn secret_problem(what: &str, secret: &SecretString) -> Option<String> {
    let secret = secret.expose_secret();
    if secret.trim().is_empty() {
        return Some(format!("{what} is empty"));
    }
    let is_odd = |c: char| c.is_control() || c.is_whitespace();
    secret
        .contains(is_odd)
        .then(|| format!("{what} has a space or a control character in it: copy it again"))
}

/// Why a token of Slack is of another kind than expected. The reason shows only the prefixes of both kinds.
pub(super) fn other_kind(what: &str, begin: &str, token: &SecretString) -> Option<String> {
    let token = token.expose_secret();
    let is_slack = ["xapp-", "xoxb-", "xoxp-"]
        .iter()
        .find(|kind| token.starts_with(**kind))?;
    (*is_slack != begin)
        .then(|| format!("{what} begins with {begin}, and this one with {is_slack}"))
}
