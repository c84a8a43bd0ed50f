//! Holds a call's arguments against its tool's JSON schema and tells everything that is wrong.
//!
//! Reads what `schemars` writes for a flat struct: `type`, `properties`, `required`, `enum`, `items`,
//! `additionalProperties: false`, `minimum` and `maximum`. What it does not know it lets through: the
//! tool's own types are the last word.

use serde_json::{Map, Value};

/// Everything that is wrong, in words for the model; empty if nothing is.
pub(super) fn wrong(schema: &Value, arguments: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    check("the arguments", schema, arguments, &mut wrong);
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
    check_range(path, schema, value, wrong);
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
                wrong.push(format!("{path} have no `{name}`; {there}"));
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
        let none = json!({"type": "object", "additionalProperties": false});
        assert_eq!(
            wrong(&none, &json!({"a": 1})),
            ["the arguments have no `a`; there are none"]
        );
    }
}
