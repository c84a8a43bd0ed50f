//! Checks one layer against the schema, and finds everything that is wrong with it at once.
//!
//! What is wrong is left out of the result, so that the checks after the merge can go on and find further problems;
//! `faulty` names the settings that were left out, so that these checks don't report them again.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::join;
use super::layer::{Layer, variable_of};
use super::origin::WrittenAt;
use super::problem::Problem;
use super::schema::{Bounds, Node, quoted, settings};
use super::secret::SecretRef;
use super::settings::in_place_of;
use super::suggest::nearest;

/// What a check found.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// All problems.
    pub problems: Vec<Problem>,
    /// Paths of settings that are written but wrong.
    pub faulty: BTreeSet<String>,
}

/// Checks a layer, and removes what is wrong from it.
pub(super) fn check(schema: &Value, layer: Layer, findings: &mut Findings) -> Layer {
    let mut checker = Checker {
        schema,
        layer: &layer,
        findings,
    };
    let tree = match Node::root(schema) {
        Node::Table(properties) => checker.table("", properties, &layer.tree),
        _ => Map::new(),
    };
    Layer {
        tree,
        places: layer.places,
    }
}

struct Checker<'a> {
    schema: &'a Value,
    layer: &'a Layer,
    findings: &'a mut Findings,
}

impl<'a> Checker<'a> {
    fn table(
        &mut self,
        path: &str,
        properties: &'a Map<String, Value>,
        table: &Map<String, Value>,
    ) -> Map<String, Value> {
        let mut sound = Map::new();
        for (key, value) in table {
            let child = join(path, key);
            let Some(place) = properties.get(key) else {
                self.unknown(path, key, properties);
                continue;
            };
            if let Some(value) = self.value(&child, &Node::of(self.schema, place), value) {
                sound.insert(key.clone(), value);
            }
        }
        sound
    }

    fn named(
        &mut self,
        path: &str,
        item: &'a Value,
        table: &Map<String, Value>,
    ) -> Map<String, Value> {
        let mut sound = Map::new();
        for (name, value) in table {
            let child = join(path, name);
            if !is_name(name) {
                self.bad_name(&child, name);
                // Problems inside are reported, too, but nothing of the table is used.
                let _ = self.value(&child, &Node::of(self.schema, item), value);
                continue;
            }
            if let Some(value) = self.value(&child, &Node::of(self.schema, item), value) {
                sound.insert(name.clone(), value);
            }
        }
        sound
    }

    /// Whether a key is an id of a chat is checked later by its platform.
    fn of_chats(
        &mut self,
        path: &str,
        item: &'a Value,
        table: &Map<String, Value>,
    ) -> Map<String, Value> {
        let mut sound = Map::new();
        for (chat, value) in table {
            let child = join(path, chat);
            if chat.is_empty() || chat.contains('.') {
                let what = "a chat is named by the platform's id of it".to_owned();
                self.report(&child, what, None);
                continue;
            }
            if let Some(value) = self.value(&child, &Node::of(self.schema, item), value) {
                sound.insert(chat.clone(), value);
            }
        }
        sound
    }

    fn value(&mut self, path: &str, node: &Node<'a>, value: &Value) -> Option<Value> {
        match (node, value) {
            (Node::Table(properties), Value::Object(table)) => {
                Some(Value::Object(self.table(path, properties, table)))
            }
            (Node::Named(item), Value::Object(table)) => {
                Some(Value::Object(self.named(path, item, table)))
            }
            (Node::OfChats(item), Value::Object(table)) => {
                Some(Value::Object(self.of_chats(path, item, table)))
            }
            (Node::List(item), Value::Array(values)) => self.list(path, item, values),
            (Node::Forms, value) => Some(value.clone()),
            (Node::Words(words), Value::String(text)) => self.word(path, words, text),
            (Node::Secret, Value::String(text)) => self.secret(path, text),
            (Node::Id, Value::Number(id)) if id.is_i64() => Some(id.to_string().into()),
            (Node::Id | Node::Text, Value::String(_)) | (Node::Switch, Value::Bool(_)) => {
                Some(value.clone())
            }
            (Node::Whole(bounds), Value::Number(number)) if number.is_i64() => {
                self.bounded(path, node, *bounds, value)
            }
            (Node::Number(bounds), Value::Number(_)) => self.bounded(path, node, *bounds, value),
            _ => {
                let found = kind_of(value);
                self.report(path, format!("must be {}, is {found}", node.wanted()), None);
                None
            }
        }
    }

    fn list(&mut self, path: &str, item: &'a Value, values: &[Value]) -> Option<Value> {
        let node = Node::of(self.schema, item);
        let mut sound = Vec::new();
        for (n, value) in values.iter().enumerate() {
            sound.push(self.value(&format!("{path}[{n}]"), &node, value));
        }
        sound.into_iter().collect()
    }

    fn word(&mut self, path: &str, words: &[&str], text: &str) -> Option<Value> {
        if words.contains(&text) {
            return Some(text.into());
        }
        let near = || nearest(text, words.iter().copied());
        let suggestion = match path.rsplit('.').next() {
            Some("provider") => in_place_of(text),
            _ => None,
        };
        let suggestion =
            suggestion.or_else(|| near().map(|word| format!("did you mean \"{word}\"?")));
        let what = format!("must be one of {}, is \"{text}\"", quoted(words));
        self.report(path, what, suggestion);
        None
    }

    fn secret(&mut self, path: &str, text: &str) -> Option<Value> {
        if SecretRef::parse(text).is_some() {
            return Some(text.into());
        }
        let key = path.rsplit('.').next().unwrap_or(path).to_uppercase();
        self.report(
            path,
            "must say where the secret is, not what it is; a secret written here may already be in \
             backups or in version control, so replace it (its value is not shown)"
                .to_owned(),
            Some(format!(
                "write \"env:{key}\" for an environment variable, \"file:PATH\" for a file, or \
                 \"credential:NAME\" for a systemd credential"
            )),
        );
        None
    }

    fn bounded(
        &mut self,
        path: &str,
        node: &Node<'_>,
        bounds: Bounds,
        value: &Value,
    ) -> Option<Value> {
        let number = value.as_f64()?;
        if bounds.min.is_none_or(|min| number >= min) && bounds.max.is_none_or(|max| number <= max)
        {
            return Some(value.clone());
        }
        self.report(path, format!("must be {}, is {value}", node.wanted()), None);
        None
    }

    fn unknown(&mut self, path: &str, key: &str, properties: &Map<String, Value>) {
        let child = join(path, key);
        let meant = nearest(key, properties.keys().map(String::as_str));
        let suggestion = match meant {
            Some(meant) => {
                let meant = join(path, meant);
                self.findings.faulty.insert(meant.clone());
                Some(format!("did you mean {}?", self.spelled(&child, &meant)))
            }
            None => self.elsewhere(key).or_else(|| {
                let known: Vec<&str> = properties.keys().map(String::as_str).collect();
                Some(format!("known here: {}", known.join(", ")))
            }),
        };
        self.report(&child, "there is no such setting".to_owned(), suggestion);
    }

    /// The name of a setting as it is spelled where `child` is written: in the file or in a variable.
    fn spelled(&self, child: &str, meant: &str) -> String {
        match self.place(child) {
            Some(WrittenAt::Variable(name)) => {
                let depth = child.split('.').count();
                let written = name.trim_start_matches("VOCATIVE_");
                let deeper: Vec<&str> = written.split("__").skip(depth).collect();
                let meant = variable_of(meant);
                std::iter::once(meant.as_str())
                    .chain(deeper)
                    .collect::<Vec<_>>()
                    .join("__")
            }
            _ => meant.rsplit('.').next().unwrap_or(meant).to_owned(),
        }
    }

    /// The tables in which a setting of this name exists.
    fn elsewhere(&self, key: &str) -> Option<String> {
        let tables: BTreeSet<String> = settings(self.schema)
            .iter()
            .filter_map(|path| path.rsplit_once('.'))
            .filter(|(_, last)| *last == key)
            .map(|(table, _)| format!("[{}]", named_table(table)))
            .collect();
        (!tables.is_empty()).then(|| {
            let tables: Vec<String> = tables.into_iter().collect();
            format!("{key} belongs in {}", tables.join(" or "))
        })
    }

    fn bad_name(&mut self, path: &str, name: &str) {
        let better: String = name
            .to_lowercase()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        let suggestion = is_name(&better).then(|| format!("write \"{better}\" instead"));
        self.report(
            path,
            "names of models, agents and channels are made of a-z, 0-9 and _ only, so that \
             environment variables can reach them"
                .to_owned(),
            suggestion,
        );
    }

    fn report(&mut self, path: &str, what: String, suggestion: Option<String>) {
        let mut problem = Problem::new(path, what).at(self.place(path));
        problem.suggestion = suggestion;
        self.findings.problems.push(problem);
        let setting = path.split('[').next().unwrap_or(path);
        self.findings.faulty.insert(setting.to_owned());
    }

    /// Where a setting is written: its own line or variable, or that of the list around it or of a setting inside it.
    fn place(&self, path: &str) -> Option<&WrittenAt> {
        let places = &self.layer.places;
        places
            .get(path)
            .or_else(|| places.get(path.split('[').next()?))
            .or_else(|| {
                let inside = format!("{path}.");
                let (_, place) = places
                    .range(inside.clone()..)
                    .next()
                    .filter(|(key, _)| key.starts_with(&inside))?;
                Some(place)
            })
    }
}

/// The table that people write for a table of defaults.
fn named_table(table: &str) -> String {
    match table.strip_prefix("defaults.") {
        None => table.to_owned(),
        Some(rest) => {
            let (kind, inner) = rest
                .split_once('.')
                .map_or((rest, ""), |(kind, inner)| (kind, inner));
            let named = match kind {
                "model" => "models.NAME".to_owned(),
                "agent" => "agents.NAME".to_owned(),
                platform => format!("channels.{platform}.NAME"),
            };
            join(&named, inner)
        }
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "not a finite number",
        Value::Bool(_) => "true or false",
        Value::Number(number) if number.is_i64() => "a whole number",
        Value::Number(_) => "a number with a fraction",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table",
    }
}
