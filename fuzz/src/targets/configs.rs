//! The configuration: a file, and environment variables.

use std::path::Path;

use vocative::config::{Config, ConfigError, Environment, Warning};

const FILE: &str = "vocative.toml";

/// Enough for a configuration that variables are added to.
const MINIMAL: &str = "[channels.slack.acme]\napp_token = \"env:A\"\nbot_token = \"env:B\"\n";

type Loaded = Result<(Config, Vec<Warning>), ConfigError>;

pub(super) fn file(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let environment = Environment::from_pairs([("HOME", "/home/ada")]);
    let loaded = Config::from_text(Some((Path::new(FILE), &text)), &environment);
    match &loaded {
        Ok((config, _)) => check_shown(&config.show()),
        Err(error) => check_problems(error, &text),
    }
}

pub(super) fn environment(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    let environment = Environment::from_pairs([("HOME", "/home/ada")].into_iter().chain(pairs));
    let loaded: Loaded = Config::from_text(Some((Path::new(FILE), MINIMAL)), &environment);
    match &loaded {
        Ok((config, _)) => check_shown(&config.show()),
        Err(error) => {
            assert!(!error.problems.is_empty());
            assert!(!error.to_string().is_empty());
        }
    }
}

/// Every problem with something written in the file names a line that the file has.
fn check_problems(error: &ConfigError, text: &str) {
    assert!(!error.problems.is_empty(), "refused for nothing");
    let lines = text.split('\n').count();
    for problem in &error.problems {
        assert!(!problem.what.trim().is_empty(), "{problem:?}");
        if let Some(line) = problem.line {
            assert!(
                (1..=lines).contains(&line),
                "{problem:?} in a file of {lines} lines"
            );
            assert_eq!(problem.file.as_deref(), Some(Path::new(FILE)));
        }
        // A setting that is written down is known by its line; what is missing has none.
        let is_placed = problem.line.is_some() || !problem.key.is_empty();
        assert!(is_placed, "{problem:?} says neither line nor setting");
    }
    let shown = error.to_string();
    assert!(
        shown.len() < 2_000 + error.problems.len() * 1_000 + text.len() * 8,
        "{}",
        shown.len()
    );
}

/// What is shown is TOML again.
fn check_shown(shown: &str) {
    if let Err(error) = shown.parse::<toml::Table>() {
        panic!("{error}\n{shown}");
    }
}
