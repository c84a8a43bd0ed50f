//! The JSON schema of the configuration, and how the checks of files and variables read it.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::platforms::PLATFORMS;
use super::shape::{CHAT_PATTERN, Shape};

/// The definitions of the schema, each with the part of `config/default.toml` that has its defaults.
const DEFAULTS: [(&str, &str); 14] = [
    ("DaemonShape", "/daemon"),
    ("Store", "/store"),
    ("Capture", "/capture"),
    ("LimitsShape", "/limits"),
    ("DeliveryShape", "/delivery"),
    ("Files", "/files"),
    ("TranscriptionShape", "/transcription"),
    ("EmbeddingsShape", "/embeddings"),
    ("HttpShape", "/http"),
    ("ApiShape", "/api"),
    ("ConsoleShape", "/console"),
    ("ModelConfig", "/defaults/model"),
    ("AgentSettings", "/defaults/agent"),
    ("PromptShape", "/defaults/agent/prompt"),
];

/// The characters of the name of a model, agent or channel. Capitals and dashes are not allowed, because the name of an
/// environment variable that overrides a setting can't contain them.
const NAME_PATTERN: &str = "^[a-z0-9_]+$";

/// The JSON schema of a configuration file, for editors and for the checks.
///
/// # Panics
/// Never with the built-in defaults; a test checks that.
#[must_use]
pub fn schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> = LazyLock::new(build);
    &SCHEMA
}

fn build() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut root = generator.into_root_schema_for::<Shape>().to_value();
    root["title"] = json!("Vocative");
    // A file has only settings that differ from the defaults, so nothing is required in it.
    finish(&mut root);
    let defaults: Value =
        toml::from_str(super::DEFAULT_TOML).expect("the built-in defaults are valid TOML");
    let common = format!("/defaults/{}", PLATFORMS[0].name);
    let kinds = DEFAULTS.map(|(definition, pointer)| (definition, pointer.to_owned()));
    let platforms = PLATFORMS.map(|it| (it.shape, format!("/defaults/{}", it.name)));
    let of_all = [
        ("RetentionDays", format!("{common}/retention_days")),
        ("MannersShape", format!("{common}/manners")),
    ];
    for (definition, pointer) in kinds.into_iter().chain(platforms).chain(of_all) {
        if let (Some(values), Some(properties)) = (
            defaults.pointer(&pointer).and_then(Value::as_object),
            root.pointer_mut(&format!("/$defs/{definition}/properties"))
                .and_then(Value::as_object_mut),
        ) {
            add_defaults(properties, values);
        }
    }
    root
}

fn add_defaults(properties: &mut Map<String, Value>, values: &Map<String, Value>) {
    for (key, value) in values.iter().filter(|(_, value)| !value.is_object()) {
        if let Some(property) = properties.get_mut(key) {
            property["default"] = value.clone();
        }
    }
}

fn finish(node: &mut Value) {
    match node {
        Value::Object(map) => {
            if map.get("required").is_some_and(Value::is_array) {
                map.remove("required");
            }
            if map
                .get("additionalProperties")
                .is_some_and(Value::is_object)
            {
                map.entry("propertyNames")
                    .or_insert_with(|| json!({ "pattern": NAME_PATTERN }));
            }
            map.values_mut().for_each(finish);
        }
        Value::Array(items) => items.iter_mut().for_each(finish),
        _ => {}
    }
}

/// Marks in the schema a value that may have several forms.
pub(super) const FORMS_FORMAT: &str = "several-forms";

/// What the schema allows at one place.
#[derive(Clone, Debug)]
pub(super) enum Node<'s> {
    /// A table with known keys.
    Table(&'s Map<String, Value>),
    /// A table whose keys are names.
    Named(&'s Value),
    /// A table whose keys are a platform's ids of chats.
    OfChats(&'s Value),
    /// A list.
    List(&'s Value),
    /// One of these words.
    Words(Vec<&'s str>),
    /// A reference to a secret.
    Secret,
    /// A text or a whole number, kept as text.
    Id,
    /// Any text.
    Text,
    /// A whole number.
    Whole(Bounds),
    /// A number.
    Number(Bounds),
    /// True or false.
    Switch,
    /// A value of several forms, which is checked where it is read.
    Forms,
}

/// The bounds of a number, both included.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// The smallest value.
    pub min: Option<f64>,
    /// The largest value.
    pub max: Option<f64>,
}

impl<'s> Node<'s> {
    /// The node of the whole schema.
    pub(super) fn root(root: &'s Value) -> Self {
        Self::of(root, root)
    }

    /// The node of one place of the schema.
    pub(super) fn of(root: &'s Value, place: &'s Value) -> Self {
        if let Some(target) = place["$ref"].as_str() {
            let target = root.pointer(target.trim_start_matches('#'));
            return Self::of(
                root,
                target.expect("a reference in the schema has its target"),
            );
        }
        if place["format"] == FORMS_FORMAT {
            return Self::Forms;
        }
        if let Some(options) = place["anyOf"].as_array() {
            let option = options.iter().find(|option| option["type"] != "null");
            return Self::of(
                root,
                option.expect("an option in the schema is not only null"),
            );
        }
        let words = words(place);
        if !words.is_empty() {
            return Self::Words(words);
        }
        let has_type = |name: &str| match &place["type"] {
            Value::String(only) => only == name,
            Value::Array(several) => several.iter().any(|one| one == name),
            _ => false,
        };
        let bounds = Bounds {
            min: place["minimum"].as_f64(),
            max: place["maximum"].as_f64().or_else(|| largest(place)),
        };
        match () {
            () if place["propertyNames"]["pattern"] == CHAT_PATTERN => {
                Self::OfChats(&place["additionalProperties"])
            }
            () if place["additionalProperties"].is_object() => {
                Self::Named(&place["additionalProperties"])
            }
            () if has_type("object") => Self::Table(
                place["properties"]
                    .as_object()
                    .expect("a table in the schema has keys"),
            ),
            () if has_type("array") => Self::List(&place["items"]),
            () if has_type("string") && has_type("integer") => Self::Id,
            () if place["format"] == super::secret::FORMAT => Self::Secret,
            () if has_type("integer") => Self::Whole(bounds),
            () if has_type("number") => Self::Number(bounds),
            () if has_type("boolean") => Self::Switch,
            () => Self::Text,
        }
    }

    /// The expected value, in words.
    pub(super) fn wanted(&self) -> String {
        match self {
            Self::Table(_) | Self::Named(_) | Self::OfChats(_) => "a table".to_owned(),
            Self::List(_) => "a list".to_owned(),
            Self::Words(words) => format!("one of {}", quoted(words)),
            Self::Secret => "a reference to a secret".to_owned(),
            Self::Id => "an id".to_owned(),
            Self::Text => "a text".to_owned(),
            Self::Whole(bounds) => format!("a whole number{bounds}"),
            Self::Number(bounds) => format!("a number{bounds}"),
            Self::Switch => "true or false".to_owned(),
            Self::Forms => "a value".to_owned(),
        }
    }
}

/// The largest number of the type at this place, if the schema only names the type.
fn largest(place: &Value) -> Option<f64> {
    (place["format"] == "uint32").then_some(f64::from(u32::MAX))
}

impl std::fmt::Display for Bounds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.min, self.max) {
            (Some(min), Some(max)) => write!(f, " from {min} to {max}"),
            (Some(min), None) => write!(f, " of at least {min}"),
            (None, Some(max)) => write!(f, " of at most {max}"),
            (None, None) => Ok(()),
        }
    }
}

fn words(place: &Value) -> Vec<&str> {
    let direct = place["enum"].as_array().into_iter().flatten();
    let described = place["oneOf"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|option| {
            let several = option["enum"].as_array().into_iter().flatten();
            several.chain(option.get("const"))
        });
    direct.chain(described).filter_map(Value::as_str).collect()
}

/// The words in quotes, as a list.
pub(super) fn quoted(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    words.join(", ")
}

/// Reports every reference to a secret in a tree: its setting as a dotted path, and its text.
pub(super) fn secrets_of(root: &Value, tree: &Value, tell: &mut dyn FnMut(&str, &str)) {
    fn walk(
        root: &Value,
        node: &Node<'_>,
        path: &str,
        value: &Value,
        tell: &mut dyn FnMut(&str, &str),
    ) {
        let Some(table) = value.as_object() else {
            if let (Node::Secret, Some(text)) = (node, value.as_str()) {
                tell(path, text);
            }
            return;
        };
        for (key, value) in table {
            let place = match node {
                Node::Table(properties) => properties.get(key),
                Node::Named(item) | Node::OfChats(item) => Some(*item),
                _ => None,
            };
            if let Some(place) = place {
                let path = super::join(path, key);
                walk(root, &Node::of(root, place), &path, value, tell);
            }
        }
    }
    walk(root, &Node::root(root), "", tree, tell);
}

/// Every setting as a dotted path; `*` stands for the names of named tables.
#[cfg(test)]
pub(super) fn all_settings(root: &Value) -> Vec<String> {
    fn walk(root: &Value, node: &Node<'_>, path: &str, out: &mut Vec<String>) {
        match node {
            Node::Table(properties) => {
                for (key, place) in *properties {
                    let path = super::join(path, key);
                    walk(root, &Node::of(root, place), &path, out);
                }
            }
            Node::Named(item) | Node::OfChats(item) => {
                walk(root, &Node::of(root, item), &super::join(path, "*"), out);
            }
            _ => out.push(path.to_owned()),
        }
    }
    let mut out = Vec::new();
    walk(root, &Node::root(root), "", &mut out);
    out
}

/// Every setting outside of named tables, as a dotted path.
pub(super) fn settings(root: &Value) -> Vec<String> {
    fn walk(root: &Value, node: &Node<'_>, path: &str, out: &mut Vec<String>) {
        match node {
            Node::Table(properties) => {
                for (key, place) in *properties {
                    let path = super::join(path, key);
                    walk(root, &Node::of(root, place), &path, out);
                }
            }
            Node::Named(_) | Node::OfChats(_) => {}
            _ => out.push(path.to_owned()),
        }
    }
    let mut out = Vec::new();
    walk(root, &Node::root(root), "", &mut out);
    out
}
