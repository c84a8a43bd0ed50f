//! The generated files in `config/`, and the generated line of one, are those that the program generates.
//! `VOCATIVE_BLESS=1` writes them anew.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use vocative_core::command::CommandName;

fn assert_fresh(name: &str, generated: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("config")
        .join(name);
    if std::env::var_os("VOCATIVE_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&path, generated).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == generated,
        "config/{name} is stale; write it anew with: VOCATIVE_BLESS=1 cargo test --test config_fresh"
    );
}

#[test]
fn the_example_file_is_fresh() {
    assert_fresh("example.toml", &vocative::config::example());
}

#[test]
fn the_schema_file_is_fresh() {
    let schema = serde_json::to_string_pretty(vocative::config::schema()).unwrap();
    assert_fresh("vocative.schema.json", &format!("{schema}\n"));
}

/// Slack completes nothing behind the app's command: its hint is all that people see there of what they can say.
#[test]
fn the_hint_in_the_slack_manifest_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/slack-manifest.yaml");
    let kept = std::fs::read_to_string(path).unwrap();
    assert_eq!(kept.matches("usage_hint: ").count(), 1);
    let words: Vec<&str> = CommandName::ALL.iter().map(|it| it.name()).collect();
    let line = |line: &str| match line.split_once("usage_hint: ") {
        Some((indent, _)) => format!("{indent}usage_hint: \"[{}]\"\n", words.join("|")),
        None => format!("{line}\n"),
    };
    let manifest: String = kept.lines().map(line).collect();
    assert_fresh("slack-manifest.yaml", &manifest);
}
