//! Whether changed arguments ask for no more than those they stand for.

use serde_json::Value;

/// Whether one value may stand for another without asking for more: the same fields, texts and answers as they are,
/// numbers between zero and what they were, and lists with some of their items left out.
///
/// A field that is left out may have been a limit, so leaving it out does not narrow.
#[must_use]
pub fn is_narrower(narrowed: &Value, asked: &Value) -> bool {
    match (narrowed, asked) {
        (Value::Object(narrowed), Value::Object(asked)) => {
            let holds = |(name, value): (&String, &Value)| {
                asked.get(name).is_some_and(|of| is_narrower(value, of))
            };
            narrowed.len() == asked.len() && narrowed.iter().all(holds)
        }
        (Value::Array(narrowed), Value::Array(asked)) => {
            let mut rest = asked.iter();
            narrowed
                .iter()
                .all(|item| rest.any(|of| is_narrower(item, of)))
        }
        (Value::Number(narrowed), Value::Number(asked)) => {
            narrowed == asked || is_nearer(narrowed.as_f64(), asked.as_f64())
        }
        _ => narrowed == asked,
    }
}

fn is_nearer(narrowed: Option<f64>, asked: Option<f64>) -> bool {
    let (Some(narrowed), Some(asked)) = (narrowed, asked) else {
        return false;
    };
    match asked >= 0.0 {
        true => (0.0..=asked).contains(&narrowed),
        false => (asked..=0.0).contains(&narrowed),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn less_is_narrower_and_other_things_are_not() {
        let asked = json!({"amount": 120, "to": ["ann", "bob", "cat"], "note": "x", "dry": true, "loss": -3});
        let table = [
            (asked.clone(), true),
            (
                json!({"amount": 0, "to": ["ann", "cat"], "note": "x", "dry": true, "loss": -1}),
                true,
            ),
            (
                json!({"amount": 120.0, "to": [], "note": "x", "dry": true, "loss": 0}),
                true,
            ),
            (
                json!({"amount": 121, "to": [], "note": "x", "dry": true, "loss": -3}),
                false,
            ),
            (
                json!({"amount": -1, "to": [], "note": "x", "dry": true, "loss": -3}),
                false,
            ),
            (
                json!({"amount": 120, "to": ["bob", "ann"], "note": "x", "dry": true, "loss": -3}),
                false,
            ),
            (
                json!({"amount": 120, "to": [], "note": "y", "dry": true, "loss": -3}),
                false,
            ),
            (
                json!({"amount": 120, "to": [], "note": "x", "dry": false, "loss": -3}),
                false,
            ),
            (
                json!({"amount": 120, "to": [], "note": "x", "dry": true}),
                false,
            ),
            (
                json!({"amount": 120, "to": [], "note": "x", "dry": true, "loss": -3, "more": 1}),
                false,
            ),
            (json!("amount"), false),
        ];
        for (narrowed, expected) in table {
            assert_eq!(is_narrower(&narrowed, &asked), expected, "{narrowed}");
        }
    }
}
