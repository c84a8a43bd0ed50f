//! The parameters of one call, however they came: query, form, JSON or multipart.
//!
//! Owns the platform's lenient reading of numbers, booleans and `null`. Knows no method.

use std::collections::BTreeMap;

use axum::body::to_bytes;
use axum::extract::{FromRequest, Multipart, Query, RawForm, Request};
use axum::http::header::CONTENT_TYPE;
use serde_json::{Map, Value};

use super::failure::ApiFailure;

/// All parameters that are no files may have this many bytes together.
const FIELDS_BYTES_MAX: usize = 1 << 20;
/// A request body may have this many bytes.
pub(super) const BODY_BYTES_MAX: usize = 52 << 20;
/// One request may carry this many files.
const FILES_MAX: usize = 50;

/// An uploaded file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Upload {
    pub(super) file_name: String,
    pub(super) content_type: String,
    pub(super) bytes: Vec<u8>,
}

/// Parameters by name. A JSON value that is no string keeps its JSON text, as on the platform; so
/// `null` is the four letters `null`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MethodParams {
    fields: BTreeMap<String, String>,
    files: BTreeMap<String, Upload>,
}

impl MethodParams {
    /// Reads query and body. What can't be parsed is ignored, as on the platform.
    pub(super) async fn read(request: Request) -> Result<Self, ApiFailure> {
        let mut params = Self::default();
        if let Ok(Query(query)) = Query::<Vec<(String, String)>>::try_from_uri(request.uri()) {
            params.fill(query);
        }
        let content_type = request
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or("")
            .to_ascii_lowercase();
        if content_type.starts_with("multipart/form-data") {
            params.read_multipart(request).await?;
        } else if content_type.starts_with("application/x-www-form-urlencoded") {
            params.read_form(request).await;
        } else if content_type.starts_with("application/json") {
            let body = to_bytes(request.into_body(), BODY_BYTES_MAX).await;
            params.read_json(&body.map_err(|_| too_large())?);
        }
        let bytes: usize = params
            .fields
            .iter()
            .map(|(name, value)| name.len() + value.len())
            .sum();
        if bytes > FIELDS_BYTES_MAX || params.files.len() > FILES_MAX {
            return Err(too_large());
        }
        Ok(params)
    }

    /// The fields of a JSON object.
    pub(super) fn of_json(object: Map<String, Value>) -> Self {
        let mut params = Self::default();
        params.read_object(object);
        params
    }

    fn fill(&mut self, pairs: Vec<(String, String)>) {
        for (name, value) in pairs {
            self.fields.entry(name).or_insert(value);
        }
    }

    fn read_json(&mut self, body: &[u8]) {
        if let Ok(Value::Object(object)) = serde_json::from_slice(body) {
            self.read_object(object);
        }
    }

    fn read_object(&mut self, object: Map<String, Value>) {
        let text = |value: Value| match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        self.fill(
            object
                .into_iter()
                .map(|(name, value)| (name, text(value)))
                .collect(),
        );
    }

    async fn read_form(&mut self, request: Request) {
        // A POST form is in the body; the extractor reads the query only for GET.
        let Ok(RawForm(bytes)) = RawForm::from_request(request, &()).await else {
            return;
        };
        let Ok(query) = format!("/?{}", String::from_utf8_lossy(&bytes)).parse() else {
            return;
        };
        if let Ok(Query(pairs)) = Query::<Vec<(String, String)>>::try_from_uri(&query) {
            self.fill(pairs);
        }
    }

    async fn read_multipart(&mut self, request: Request) -> Result<(), ApiFailure> {
        let Ok(mut parts) = Multipart::from_request(request, &()).await else {
            return Ok(());
        };
        while let Ok(Some(part)) = parts.next_field().await {
            let name = part.name().unwrap_or("").to_owned();
            let file_name = part.file_name().map(str::to_owned);
            let content_type = part.content_type().unwrap_or("").to_owned();
            let bytes = part.bytes().await.map_err(|_| too_large())?.to_vec();
            match file_name {
                Some(file_name) => {
                    self.files.insert(
                        name,
                        Upload {
                            file_name,
                            content_type,
                            bytes,
                        },
                    );
                }
                None => self.fill(vec![(name, String::from_utf8_lossy(&bytes).into_owned())]),
            }
        }
        Ok(())
    }

    /// A parameter as it came; `None` when it is absent.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }

    /// A parameter as text; empty when it is absent.
    pub(super) fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or("")
    }

    /// A whole number: the longest prefix that is one, else 0.
    pub(super) fn integer(&self, name: &str) -> i64 {
        lenient_integer(self.text(name))
    }

    /// True for `true`, `yes` and `1` in any case.
    pub(super) fn boolean(&self, name: &str) -> bool {
        is_true(self.text(name))
    }

    /// A file, by the name of its part.
    pub(super) fn file(&self, name: &str) -> Option<&Upload> {
        self.files.get(name)
    }

    /// What the wire log shows: fields with their JSON where they are JSON, files by name and size.
    pub(super) fn for_log(&self) -> Value {
        let mut object = Map::new();
        for (name, value) in &self.fields {
            let json = serde_json::from_str(value)
                .ok()
                .filter(|json: &Value| !json.is_string());
            object.insert(name.clone(), json.unwrap_or_else(|| value.clone().into()));
        }
        for (name, file) in &self.files {
            let shown = format!("[file {}, {} bytes]", file.file_name, file.bytes.len());
            object.insert(name.clone(), shown.into());
        }
        Value::Object(object)
    }
}

fn too_large() -> ApiFailure {
    ApiFailure::plain(413, "Request Entity Too Large")
}

/// Whether a text means yes.
pub(super) fn is_true(text: &str) -> bool {
    matches!(text.to_ascii_lowercase().as_str(), "true" | "yes" | "1")
}

/// The longest prefix that is a whole number, else 0.
pub(super) fn lenient_integer(text: &str) -> i64 {
    let text = text.trim();
    let sign = usize::from(text.starts_with('-'));
    let digits = text[sign..].bytes().take_while(u8::is_ascii_digit).count();
    text[..sign + digits].parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_values_keep_their_text_and_null_is_a_word() {
        let mut params = MethodParams::default();
        params.read_json(br#"{"a":5,"b":"5","c":null,"d":{"e":[1]},"f":true}"#);
        assert_eq!(params.integer("a"), params.integer("b"));
        assert_eq!(params.text("c"), "null");
        assert_eq!(params.text("d"), r#"{"e":[1]}"#);
        assert!(params.boolean("f"));
    }

    #[test]
    fn numbers_are_read_as_far_as_they_go() {
        let cases = [
            ("12", 12),
            ("12x", 12),
            ("-7", -7),
            ("x", 0),
            ("", 0),
            ("null", 0),
        ];
        for (text, number) in cases {
            assert_eq!(lenient_integer(text), number, "{text}");
        }
    }
}
