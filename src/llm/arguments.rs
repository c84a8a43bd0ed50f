//! Reads a call's arguments as a model wrote them without losing anything: people must be shown exactly the arguments
//! that the call is made with.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// A double can't represent every whole number above this one.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Reads arguments.
///
/// # Errors
/// In words for the model: the text is no JSON, a key stands twice in an object, or a number is too large to be
/// kept exactly.
pub fn read_arguments(text: &str) -> Result<Value, String> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Exact
        .deserialize(&mut reader)
        .map_err(|error| words(&error))?;
    reader.end().map_err(|error| words(&error))?;
    Ok(value)
}

fn words(error: &serde_json::Error) -> String {
    format!("the arguments can't be read: {error}")
}

struct Exact;

impl<'de> DeserializeSeed<'de> for Exact {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Exact {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        if value.abs() > EXACT_MAX {
            return Err(E::custom("a number is too large; write it as a string"));
        }
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("a number is none"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut read = Vec::new();
        while let Some(item) = items.next_element_seed(Exact)? {
            read.push(item);
        }
        Ok(Value::Array(read))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut read = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(Exact)?;
            if read.contains_key(&key) {
                return Err(A::Error::custom(format!("`{key}` stands there twice")));
            }
            read.insert(key, value);
        }
        Ok(Value::Object(read))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_can_be_kept_is_read_and_nothing_else() {
        for text in [
            r#"{"b":1,"a":[true,null,"x",-2,0.5,18446744073709551615]}"#,
            r#"{"deep":{"er":{"est":[]}}}"#,
            r#""text""#,
        ] {
            assert_eq!(read_arguments(text).unwrap().to_string(), text);
        }
        let cases = [
            (r#"{"to":"ann","to":"bob"}"#, "`to` stands there twice"),
            (r#"{"x":{"to":1,"to":1}}"#, "`to` stands there twice"),
            ("{\"id\":12345678901234567890123}", "too large"),
            ("{\"id\":", "EOF"),
            ("{} {}", "trailing"),
            ("", "EOF"),
        ];
        for (text, expected) in cases {
            let wrong = read_arguments(text).unwrap_err();
            assert!(wrong.contains(expected), "{text}: {wrong}");
        }
        let bomb = "[".repeat(100_000);
        assert!(read_arguments(&bomb).is_err());
    }
}
