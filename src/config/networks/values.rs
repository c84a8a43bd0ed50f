//! The shared values of a network, and what they may be.

use std::collections::BTreeMap;

use serde_json::Value;

use super::NetworkChecks;
use super::shape::StateShape;
use vocative_core::routing::state::{
    ITEMS_DEFAULT, KEYS_MAX, KeySchema, STATE_MAX_BYTES, SimpleKind, StateKind, StateSchema,
    ValueMerge,
};

impl NetworkChecks<'_, '_> {
    /// The values without those that have mistakes.
    pub(super) fn state(&mut self, shapes: BTreeMap<String, StateShape>) -> StateSchema {
        if shapes.len() > KEYS_MAX {
            self.problem("state", format!("has more than {KEYS_MAX} values"));
        }
        let mut schema = StateSchema::default();
        for (key, shape) in shapes {
            if let Some(value) = self.value(&format!("state.{key}"), shape) {
                schema.0.insert(key, value);
            }
        }
        if schema.defaults().to_json().len() > STATE_MAX_BYTES {
            let what = format!("has defaults of more than {STATE_MAX_BYTES} bytes together");
            self.problem("state", what);
        }
        schema
    }

    fn value(&mut self, setting: &str, shape: StateShape) -> Option<KeySchema> {
        let simple = shape.r#type.simple();
        let kind = match (simple, shape.items) {
            (Some(kind), None) => StateKind::One(kind),
            (None, Some(items)) => StateKind::List(items.into()),
            (Some(_), Some(_)) => {
                self.problem(
                    &format!("{setting}.items"),
                    "is for lists: type = \"array\"",
                );
                return None;
            }
            (None, None) => {
                self.problem(
                    &format!("{setting}.items"),
                    "is missing: say what the items are, like \"string\"",
                );
                return None;
            }
        };
        let is_list = matches!(kind, StateKind::List(_));
        if shape.max_items.is_some() && !is_list {
            self.problem(
                &format!("{setting}.max_items"),
                "is for lists: type = \"array\"",
            );
        }
        let merge = shape.merge.map_or(ValueMerge::Replace, ValueMerge::from);
        let is_number = matches!(
            kind,
            StateKind::One(SimpleKind::Integer | SimpleKind::Number)
        );
        if (merge == ValueMerge::Append && !is_list) || (merge == ValueMerge::Max && !is_number) {
            let what = "append is for lists, and max for numbers";
            self.problem(&format!("{setting}.merge"), what);
        }
        let one_of = match shape.r#enum {
            None => Vec::new(),
            Some(Value::Array(words)) if !words.is_empty() => words,
            Some(_) => {
                self.problem(
                    &format!("{setting}.enum"),
                    "is a list of what it may be, and not empty",
                );
                return None;
            }
        };
        let mut schema = KeySchema {
            kind,
            one_of: Vec::new(),
            default: None,
            max_items: shape.max_items.map_or(ITEMS_DEFAULT, |most| most as usize),
            merge,
        };
        let is_of_type = |word: &Value| match is_list {
            true => schema.allows(&Value::Array(vec![word.clone()])),
            false => schema.allows(word),
        };
        if let Some(word) = one_of.iter().find(|word| !is_of_type(word)) {
            self.problem(
                &format!("{setting}.enum"),
                format!("{word} is of another type"),
            );
            return None;
        }
        schema.one_of = one_of;
        if let Some(default) = shape.default {
            if !schema.allows(&default) {
                self.problem(
                    &format!("{setting}.default"),
                    format!("must be {}, is {default}", schema.wanted()),
                );
                return None;
            }
            schema.default = Some(schema.tidied(default));
        }
        Some(schema)
    }
}
