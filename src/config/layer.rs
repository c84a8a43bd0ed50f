//! One source of settings before they are merged: the file, or the environment.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

use super::environment::Environment;
use super::join;
use super::origin::WrittenAt;
use super::problem::{ConfigError, Problem, Warning};
use super::schema::{Node, settings};

/// The prefix of environment variables that are settings.
const PREFIX: &str = "VOCATIVE_";

/// Settings of one source as a tree, and the place where each of them is written.
#[derive(Clone, Debug, Default)]
pub(super) struct Layer {
    /// The settings.
    pub tree: Map<String, Value>,
    /// The places, by dotted paths.
    pub places: BTreeMap<String, WrittenAt>,
}

impl Layer {
    /// Reads a file's text.
    ///
    /// # Errors
    /// Every mistake in its TOML.
    pub(super) fn of_file(file: &Path, text: &str) -> Result<Self, ConfigError> {
        let lines = Lines::of(text);
        let (document, errors) = DeTable::parse_recoverable(text);
        ConfigError::check(
            errors
                .iter()
                .map(|e| syntax_problem(file, text, &lines, e))
                .collect(),
        )?;
        let tree: toml::Table = toml::from_str(text)
            .map_err(|error| ConfigError::from(syntax_problem(file, text, &lines, &error)))?;
        let mut places = BTreeMap::new();
        note_lines(document.get_ref(), "", &mut |path, start| {
            let place = WrittenAt::Line {
                file: file.to_owned(),
                line: Some(lines.line(start)),
            };
            places.insert(path, place);
        });
        let tree = tree.into_iter().map(|(key, value)| (key, json_of(value)));
        Ok(Self {
            tree: tree.collect(),
            places,
        })
    }

    /// Reads the variables named `VOCATIVE_SECTION__KEY`, guided by the schema: lists are separated by commas. A value
    /// that does not fit the schema stays a text, which the check refuses.
    pub(super) fn of_environment(environment: &Environment, schema: &Value) -> Self {
        let mut layer = Self::default();
        for (name, text) in environment.iter() {
            let Some(path) = setting_path(name) else {
                continue;
            };
            let keys: Vec<&str> = path.split('.').collect();
            let value = value_for(schema, &keys, text);
            insert(&mut layer.tree, &keys, value);
            layer
                .places
                .insert(path, WrittenAt::Variable(name.to_owned()));
        }
        layer
    }
}

/// The setting that a variable sets; `None` if the variable sets none.
fn setting_path(variable: &str) -> Option<String> {
    let rest = variable.strip_prefix(PREFIX)?;
    if !rest.contains("__") {
        return None;
    }
    let mut keys: Vec<String> = rest.split("__").map(str::to_lowercase).collect();
    // Ids of chats keep their letters' case.
    if let ([section, _, _, table, chat, ..], Some(written)) =
        (keys.as_mut_slice(), rest.split("__").nth(4))
        && section == "channels"
        && table == "chats"
    {
        written.clone_into(chat);
    }
    Some(keys.join("."))
}

/// The variable that sets this setting.
pub(super) fn variable_of(path: &str) -> String {
    format!("{PREFIX}{}", path.to_uppercase().replace('.', "__"))
}

/// Variables that look like settings but have one underscore where two are needed, with a warning for each.
pub(super) fn near_misses(environment: &Environment, schema: &Value) -> Vec<(String, Warning)> {
    let known: Vec<String> = settings(schema)
        .iter()
        .map(|path| variable_of(path))
        .collect();
    environment
        .iter()
        .filter(|(name, _)| name.starts_with(PREFIX) && !name.contains("__"))
        .filter_map(|(name, _)| {
            let meant = known
                .iter()
                .find(|known| known.replace("__", "_") == name)?;
            let what =
                format!("${name} is not read: the section ends with two underscores, {meant}");
            Some((name.to_owned(), Warning::new("", what)))
        })
        .collect()
}

fn value_for(schema: &Value, keys: &[&str], text: &str) -> Value {
    let mut node = Node::root(schema);
    for key in keys {
        let place = match &node {
            Node::Table(properties) => properties.get(*key),
            Node::Named(item) | Node::OfChats(item) => Some(*item),
            _ => None,
        };
        let Some(place) = place else {
            return Value::from(text);
        };
        node = Node::of(schema, place);
    }
    let trimmed = text.trim();
    match node {
        Node::List(_) => trimmed
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
            .map(Value::from)
            .collect(),
        Node::Whole(_) => trimmed
            .parse::<i64>()
            .map_or_else(|_| text.into(), Value::from),
        Node::Number(_) => trimmed
            .parse::<f64>()
            .map_or_else(|_| text.into(), Value::from),
        Node::Switch => trimmed
            .parse::<bool>()
            .map_or_else(|_| text.into(), Value::from),
        _ => Value::from(text),
    }
}

fn insert(tree: &mut Map<String, Value>, keys: &[&str], value: Value) {
    match keys {
        [] => {}
        [key] => {
            tree.insert((*key).to_owned(), value);
        }
        [key, rest @ ..] => {
            let table = tree
                .entry(*key)
                .or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(table) = table {
                insert(table, rest, value);
            }
        }
    }
}

fn syntax_problem(file: &Path, text: &str, lines: &Lines, error: &toml::de::Error) -> Problem {
    // Only an error about too deep nesting has no place.
    let at = error
        .span()
        .map_or_else(|| deepest(text), |span| span.start);
    let place = WrittenAt::Line {
        file: file.to_owned(),
        line: Some(lines.line(at)),
    };
    let column = lines.column(text, at);
    // The line itself is not shown: it may hold a secret.
    Problem::new(
        "",
        format!("no valid TOML at column {column}: {}", error.message()),
    )
    .at(Some(&place))
}

fn note_lines(table: &DeTable<'_>, path: &str, note: &mut impl FnMut(String, usize)) {
    for (key, value) in table {
        let path = join(path, key.get_ref());
        note(path.clone(), key.span().start);
        match value.get_ref() {
            DeValue::Table(inner) => note_lines(inner, &path, note),
            DeValue::Array(items) => {
                for (n, item) in items.iter().enumerate() {
                    note(format!("{path}[{n}]"), item.span().start);
                }
            }
            _ => {}
        }
    }
}

/// The place with the most open brackets.
fn deepest(text: &str) -> usize {
    let (mut depth, mut most, mut found) = (0_usize, 0, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > most {
            (most, found) = (depth, at);
        }
    }
    found
}

/// The ends of a text's lines.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        let ends = text.bytes().zip(0..).filter(|(byte, _)| *byte == b'\n');
        Self(ends.map(|(_, at)| at).collect())
    }

    /// The line of a place in the text, from 1.
    fn line(&self, start: usize) -> usize {
        1 + self.0.partition_point(|end| *end < start)
    }

    /// The column of a place in the text, from 1.
    fn column(&self, text: &str, start: usize) -> usize {
        let begin = self
            .line(start)
            .checked_sub(2)
            .map_or(0, |before| self.0[before] + 1);
        let before = text.get(begin..start).unwrap_or_default();
        1 + before.chars().count()
    }
}

fn json_of(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => number.into(),
        toml::Value::Boolean(switch) => switch.into(),
        toml::Value::Datetime(instant) => instant.to_string().into(),
        toml::Value::Array(items) => items.into_iter().map(json_of).collect(),
        toml::Value::Table(table) => Value::Object(
            table
                .into_iter()
                .map(|(key, value)| (key, json_of(value)))
                .collect(),
        ),
    }
}

/// A layer as a source of the `config` crate, which merges the layers.
impl config::Source for Layer {
    fn clone_into_box(&self) -> Box<dyn config::Source + Send + Sync> {
        Box::new(self.clone())
    }

    fn collect(&self) -> Result<config::Map<String, config::Value>, config::ConfigError> {
        Ok(self
            .tree
            .iter()
            .map(|(key, value)| (key.clone(), config_value(value)))
            .collect())
    }
}

fn config_value(value: &Value) -> config::Value {
    let kind: config::ValueKind = match value {
        Value::Null => config::ValueKind::Nil,
        Value::Bool(switch) => (*switch).into(),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64().unwrap_or(f64::MAX).into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => config::ValueKind::Array(items.iter().map(config_value).collect()),
        Value::Object(table) => config::ValueKind::Table(
            table
                .iter()
                .map(|(key, value)| (key.clone(), config_value(value)))
                .collect(),
        ),
    };
    config::Value::new(None, kind)
}
