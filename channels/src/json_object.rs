//! Reads JSON objects, and nothing else in their place.

use serde::Deserialize;
use serde::de::Error as _;

/// Reads a JSON object.
///
/// # Errors
/// If it is no JSON, or JSON of another type: a derived struct would also be read from a list of its
/// fields, and what a server answers in place of an object would pass for one.
pub(crate) fn read_object<'a, T: Deserialize<'a>>(json: &'a str) -> serde_json::Result<T> {
    if json.trim_start().starts_with('[') {
        return Err(serde_json::Error::custom("a list in place of an object"));
    }
    serde_json::from_str(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Answer {
        ok: bool,
    }

    #[test]
    fn only_an_object_is_read_as_one() {
        let read = |json| read_object::<Answer>(json).ok();
        assert_eq!(read(" {\"ok\": true}"), Some(Answer { ok: true }));
        for json in ["[true]", " \n[true]", "true", "", "[", "{}"] {
            assert_eq!(read(json), None, "{json:?}");
        }
    }
}
