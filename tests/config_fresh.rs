//! The generated files in `config/` are those that the program generates. `VOCATIVE_BLESS=1` writes
//! them anew.
#![allow(clippy::unwrap_used)]

use std::path::Path;

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
