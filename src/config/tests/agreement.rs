//! The example, the defaults and the schema agree.

use super::*;
use crate::llm::Provider;

#[test]
fn the_example_loads_as_it_is_and_with_every_setting_active() {
    let (config, _) = load_with(&example(), []).unwrap();
    assert_eq!(config.channels.len(), 0);
    let active = example::activated(&example());
    let active = active.replace("instructions_file = \"instructions.txt\"\n", "");
    let active = active.replace("answer_schema_file = \"answer.json\"\n", "");
    let active = active.replace("like = \"vocative\"\n", "");
    let (config, _) = load_with(&active, []).unwrap();
    assert_eq!(config.channels.keys().collect::<Vec<_>>(), ["acme", "home"]);
    let table: toml::Table = toml::from_str(&active).unwrap();
    let defaults: toml::Table = toml::from_str(DEFAULT_TOML).unwrap();
    // The active example contains every default with its value.
    for (section, values) in &defaults {
        for (key, value) in values.as_table().unwrap() {
            if !value.is_table() {
                assert_eq!(table[section].get(key), Some(value), "{section}.{key}");
            }
        }
    }
}

#[test]
fn the_defaults_and_the_schema_have_the_same_settings() {
    fn leaves(table: &toml::Table, path: &str, out: &mut BTreeSet<String>) {
        for (key, value) in table {
            let path = join(path, key);
            match value {
                toml::Value::Table(inner) => leaves(inner, &path, out),
                _ => {
                    out.insert(path);
                }
            }
        }
    }
    let active: toml::Table = toml::from_str(&example::activated(DEFAULT_TOML)).unwrap();
    let mut written = BTreeSet::new();
    leaves(&active, "", &mut written);
    let known: BTreeSet<String> = schema::settings(schema()).into_iter().collect();
    assert_eq!(written, known);
}

#[test]
fn the_defaults_are_those_of_the_assembler() {
    assert_eq!(
        load(MINIMAL).agents[&agent("vocative")].prompt,
        AssemblerOptions::default()
    );
}

#[test]
fn every_provider_is_known_by_its_name() {
    let schema = schema();
    let known: Vec<String> = match schema::Node::of(schema, &schema["$defs"]["Provider"]) {
        schema::Node::Words(words) => words.into_iter().map(str::to_owned).collect(),
        other => panic!("{other:?}"),
    };
    assert_eq!(known.len(), 3);
    for name in known {
        let provider: Provider = serde_json::from_value(json!(name)).unwrap();
        assert_eq!(provider.name(), name);
        assert!(
            DEFAULT_TOML.contains(&format!("\"{name}\"")),
            "{name} is not in default.toml"
        );
    }
}

#[test]
fn no_value_of_any_setting_slips_through_the_schema() {
    let odd = [
        "\"\"",
        "\"x\"",
        "\"*\"",
        "-1",
        "0",
        "4294967296",
        "9223372036854775807",
        "0.5",
        "-0.5",
        "inf",
        "nan",
        "true",
        "[]",
        "[1]",
        "[\"\"]",
        "[[]]",
        "{}",
        "{ a = 1 }",
        "1979-05-27",
    ];
    for setting in schema::settings(schema()) {
        for value in odd {
            let text = format!("{setting} = {value}\n{MINIMAL}");
            if let Err(error) = load_with(&text, []) {
                assert!(!error.problems.is_empty(), "{setting} = {value}");
                for problem in &error.problems {
                    // Every value that the schema accepts can be read and merged afterwards.
                    assert!(
                        !problem.what.contains("merged"),
                        "{setting} = {value}: {problem}"
                    );
                }
            }
        }
    }
}
