//! Checks a call's arguments against its tool's JSON schema, or an answer against its agent's schema, and lists
//! everything that is wrong.
//!
//! Only a part of JSON Schema is supported: [`KEYWORDS`]. [`unknown_keywords`] reports other keywords of a schema, so
//! that no setting asks for a check that is never made. Arguments of built-in tools are checked again when they are
//! read into the tools' own types.

use serde_json::{Map, Value};

use crate::llm::read_arguments;
use vocative_core::approving::changed_arguments;
use vocative_core::words::Language;

/// Keywords that are checked, or that do not restrict arguments.
const KEYWORDS: [&str; 18] = [
    "type",
    "properties",
    "required",
    "enum",
    "const",
    "items",
    "additionalProperties",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "title",
    "description",
    "default",
    "examples",
    "$schema",
];
/// How deep a schema may be.
const DEPTH_MAX: usize = 8;

/// The keywords of a schema that are not checked, and where they stand.
#[must_use]
pub fn unknown_keywords(schema: &Value) -> Vec<String> {
    let mut unknown = Vec::new();
    look_for_unknown("", schema, DEPTH_MAX, &mut unknown);
    unknown
}

fn look_for_unknown(path: &str, schema: &Value, depth: usize, unknown: &mut Vec<String>) {
    let Some(keywords) = schema.as_object() else {
        unknown.push(format!("{path}/"));
        return;
    };
    if depth == 0 {
        unknown.push(format!("{path}/ (deeper than {DEPTH_MAX})"));
        return;
    }
    for (keyword, value) in keywords {
        let is_known = match keyword.as_str() {
            "additionalProperties" => value.is_boolean(),
            "type" => value.is_string() || value.is_array(),
            known => KEYWORDS.contains(&known),
        };
        if !is_known {
            unknown.push(format!("{path}/{keyword}"));
        }
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        look_for_unknown(
            &format!("{path}/properties/{name}"),
            property,
            depth - 1,
            unknown,
        );
    }
    if let Some(items) = keywords.get("items") {
        look_for_unknown(&format!("{path}/items"), items, depth - 1, unknown);
    }
}

/// Everything that is wrong with the arguments, in words for the model; empty if they fit.
pub(super) fn wrong(schema: &Value, arguments: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    check("the arguments", schema, arguments, &mut wrong);
    wrong
}

/// Reads arguments that a person wrote to replace those of a call, as JSON that fits its tool's schema.
///
/// # Errors
/// What is wrong with the new arguments, for the person.
pub fn other_arguments(
    text: &str,
    arguments: &str,
    schema: &str,
    language: Language,
) -> Result<String, String> {
    let schema: Value = serde_json::from_str(schema).map_err(|_| language.change_unreadable())?;
    let now = read_arguments(arguments).unwrap_or(Value::Null);
    let other = changed_arguments(text, &now, &schema, read_arguments, language)?;
    let wrong = wrong(&schema, &other);
    if !wrong.is_empty() {
        return Err(wrong.join("; "));
    }
    if other == now {
        return Err(language.change_of_nothing());
    }
    Ok(other.to_string())
}

/// Everything that is wrong with a model's answer; empty if it fits.
#[must_use]
pub fn wrong_with_answer(schema: &Value, answer: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    check("the answer", schema, answer, &mut wrong);
    wrong
}

fn check(path: &str, schema: &Value, value: &Value, wrong: &mut Vec<String>) {
    let wanted = types(schema);
    if !wanted.is_empty() && !wanted.iter().any(|wanted| is_of(wanted, value)) {
        let found = kind(value);
        wrong.push(format!(
            "{path} must be {}, not {found}",
            wanted.join(" or ")
        ));
        return;
    }
    if let Some(words) = schema["enum"].as_array()
        && !words.contains(value)
    {
        let words: Vec<String> = words.iter().map(Value::to_string).collect();
        wrong.push(format!("{path} must be one of {}", words.join(", ")));
    }
    if let Some(only) = schema.get("const")
        && only != value
    {
        wrong.push(format!("{path} must be {only}"));
    }
    check_range(path, schema, value, wrong);
    check_size(path, schema, value, wrong);
    match value {
        Value::Object(object) => check_object(path, schema, object, wrong),
        Value::Array(items) => {
            for (n, item) in items.iter().enumerate() {
                check(&format!("{path}[{n}]"), &schema["items"], item, wrong);
            }
        }
        _ => {}
    }
}

fn check_object(path: &str, schema: &Value, object: &Map<String, Value>, wrong: &mut Vec<String>) {
    let none = Map::new();
    let known = schema["properties"].as_object().unwrap_or(&none);
    for name in schema["required"].as_array().into_iter().flatten() {
        let name = name.as_str().unwrap_or_default();
        if !object.contains_key(name) {
            wrong.push(format!("`{name}` is missing"));
        }
    }
    for (name, value) in object {
        match known.get(name) {
            Some(schema) => check(&format!("`{name}`"), schema, value, wrong),
            None if schema["additionalProperties"] == false => {
                let known: Vec<String> = known.keys().map(|name| format!("`{name}`")).collect();
                let there = if known.is_empty() {
                    "there are none".to_owned()
                } else {
                    format!("there are {}", known.join(", "))
                };
                let has = if path == "the arguments" {
                    "have"
                } else {
                    "has"
                };
                wrong.push(format!("{path} {has} no `{name}`; {there}"));
            }
            None => {}
        }
    }
}

fn check_range(path: &str, schema: &Value, value: &Value, wrong: &mut Vec<String>) {
    let Some(number) = value.as_f64() else { return };
    if schema["minimum"].as_f64().is_some_and(|min| number < min) {
        wrong.push(format!("{path} must be at least {}", schema["minimum"]));
    }
    if schema["maximum"].as_f64().is_some_and(|max| number > max) {
        wrong.push(format!("{path} must be at most {}", schema["maximum"]));
    }
}

fn check_size(path: &str, schema: &Value, value: &Value, wrong: &mut Vec<String>) {
    let (size, least, most, what) = match value {
        Value::String(text) => (text.chars().count(), "minLength", "maxLength", "characters"),
        Value::Array(items) => (items.len(), "minItems", "maxItems", "items"),
        _ => return,
    };
    let bound = |name: &str| {
        schema[name]
            .as_u64()
            .and_then(|it| usize::try_from(it).ok())
    };
    if let Some(least) = bound(least).filter(|least| size < *least) {
        wrong.push(format!("{path} must have at least {least} {what}"));
    }
    if let Some(most) = bound(most).filter(|most| size > *most) {
        wrong.push(format!("{path} must have at most {most} {what}"));
    }
}

fn types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn is_of(wanted: &str, value: &Value) -> bool {
    match wanted {
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => kind(value) == other,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn everything_wrong_is_told_at_once() {
        let schema = json!({
            "type": "object",
            "properties": {
                "query": {"type": "string"},
                "limit": {"type": ["integer", "null"], "minimum": 1, "maximum": 9},
                "order": {"enum": ["newest", "best"]},
                "words": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["query"],
            "additionalProperties": false,
        });
        let cases: [(Value, &[&str]); 9] = [
            (json!({"query": "a", "limit": 3, "order": "best"}), &[]),
            (json!({"query": "", "limit": null, "words": ["a"]}), &[]),
            (json!({}), &["`query` is missing"]),
            (
                json!({"query": 1, "limit": "x"}),
                &[
                    "`query` must be string, not number",
                    "`limit` must be integer or null, not string",
                ],
            ),
            (
                json!({"query": "a", "limit": 0}),
                &["`limit` must be at least 1"],
            ),
            (
                json!({"query": "a", "limit": 9.5}),
                &["`limit` must be integer or null, not number"],
            ),
            (
                json!({"query": "a", "order": "worst", "words": ["a", 1]}),
                &[
                    "`order` must be one of \"newest\", \"best\"",
                    "`words`[1] must be string, not number",
                ],
            ),
            (
                json!({"query": "a", "conversation": "C1"}),
                &[
                    "the arguments have no `conversation`; there are `query`, `limit`, `order`, `words`",
                ],
            ),
            (json!("{"), &["the arguments must be object, not string"]),
        ];
        for (arguments, expected) in cases {
            assert_eq!(wrong(&schema, &arguments), expected, "{arguments}");
        }
        let sized = json!({
            "type": "object",
            "properties": {
                "code": {"type": "string", "minLength": 2, "maxLength": 3},
                "list": {"type": "array", "minItems": 1, "maxItems": 2},
                "unit": {"const": "C"},
            },
        });
        assert_eq!(
            wrong(&sized, &json!({"code": "äöü", "list": [1, 2], "unit": "C"})),
            Vec::<String>::new()
        );
        assert_eq!(
            wrong(&sized, &json!({"code": "a", "list": [], "unit": "F"})),
            [
                "`code` must have at least 2 characters",
                "`list` must have at least 1 items",
                "`unit` must be \"C\"",
            ]
        );
        assert_eq!(
            wrong(&sized, &json!({"code": "abcd", "list": [1, 2, 3]})),
            [
                "`code` must have at most 3 characters",
                "`list` must have at most 2 items",
            ]
        );
        let none = json!({"type": "object", "additionalProperties": false});
        assert_eq!(
            wrong(&none, &json!({"a": 1})),
            ["the arguments have no `a`; there are none"]
        );
    }

    #[test]
    fn a_keyword_that_is_not_checked_is_told() {
        let known = json!({
            "type": "object",
            "properties": {"a": {"type": "array", "items": {"type": "string", "maxLength": 3}}},
            "additionalProperties": false,
        });
        assert_eq!(unknown_keywords(&known), Vec::<String>::new());
        let cases = [
            (json!({"$ref": "https://evil.example/x"}), "/$ref"),
            (json!({"oneOf": []}), "/oneOf"),
            (
                json!({"properties": {"a": {"pattern": "^a"}}}),
                "/properties/a/pattern",
            ),
            (json!({"items": {"format": "email"}}), "/items/format"),
            (json!({"properties": {"a": true}}), "/properties/a/"),
            (
                json!({"additionalProperties": {"type": "string"}}),
                "/additionalProperties",
            ),
        ];
        for (schema, expected) in cases {
            assert_eq!(unknown_keywords(&schema), [expected], "{schema}");
        }
        let bomb = (0..1_000).fold(json!({}), |inner, _| json!({"items": inner}));
        assert_eq!(unknown_keywords(&bomb).len(), 1);
    }
}
