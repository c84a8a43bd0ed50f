//! From the bytes of a request to its arguments and token.
//!
//! Form, multipart and JSON bodies, the query, bearer or form token; what Slack refuses about the shape
//! of a request is noted as `problem`, and the caller answers it.

use axum::body::Bytes;
use axum::http::{HeaderMap, header};
use serde_json::{Map, Value, json};

use crate::parts;

/// One parsed call.
#[derive(Debug, Default)]
pub(super) struct MethodCall {
    args: Map<String, Value>,
    pub(super) token: Option<String>,
    pub(super) token_in_header: bool,
    pub(super) problem: Option<&'static str>,
}

impl MethodCall {
    /// Reads a request. A JSON body of a method that takes only forms counts as no arguments;
    /// arguments in the query count with every HTTP method.
    pub(super) async fn read(
        headers: &HeaderMap,
        query: Option<&str>,
        body: Bytes,
        takes_json: bool,
    ) -> Self {
        let mut call = Self::default();
        let content_type = headers
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .map(|value| value.split(';').next().unwrap_or_default().trim());
        let parsed = match (content_type, body.is_empty()) {
            (_, true) => Ok(Map::new()),
            (Some("application/x-www-form-urlencoded"), _) => parse_form(&body),
            (Some("application/json"), _) => parse_json(&body, takes_json),
            (Some("multipart/form-data"), _) => read_parts(headers, body.clone()).await,
            (Some(_), _) => Err("invalid_post_type"),
            (None, _) => Err("missing_post_type"),
        };
        match parsed {
            Ok(args) => call.args = args,
            Err(problem) => call.problem = Some(problem),
        }
        if let Some(query) = query.and_then(|query| parse_form(query.as_bytes()).ok()) {
            for (name, value) in query.into_iter().filter(|(name, _)| name != "token") {
                call.args.entry(name).or_insert(value);
            }
        }
        let is_json = content_type == Some("application/json");
        call.take_token(headers, !is_json);
        call
    }

    fn take_token(&mut self, headers: &HeaderMap, is_form: bool) {
        let in_body = self.args.remove("token");
        let in_header = headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, token)| token.trim().to_owned());
        self.token_in_header = in_header.is_some();
        // With JSON the token must be in the header.
        let in_body = in_body.filter(|_| is_form);
        self.token = in_header
            .or_else(|| in_body.and_then(|token| token.as_str().map(str::to_owned)))
            .filter(|token| !token.is_empty());
    }

    /// A text argument; numbers and booleans count as their text, `null` as absent.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        match self.args.get(name)? {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }

    /// A text argument that is there and not empty.
    pub(super) fn given(&self, name: &str) -> Option<String> {
        self.text(name).filter(|text| !text.is_empty())
    }

    /// A boolean argument.
    pub(super) fn flag(&self, name: &str) -> bool {
        matches!(self.text(name).as_deref(), Some("true" | "1"))
    }

    /// A structured argument; in forms it is JSON text. `Err` when it is no JSON.
    pub(super) fn structure(&self, name: &str) -> Result<Option<Value>, ()> {
        match self.args.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.is_empty() => Ok(None),
            Some(Value::String(text)) => serde_json::from_str(text).map(Some).map_err(|_| ()),
            Some(other) => Ok(Some(other.clone())),
        }
    }

    /// All arguments but the token.
    pub(super) fn arguments(&self) -> Value {
        Value::Object(self.args.clone())
    }

    /// The arguments for the wire log, with the token cut down to its last four characters.
    pub(super) fn logged(&self) -> Value {
        let mut fields = self.args.clone();
        if let Some(token) = &self.token {
            fields.insert("token".into(), json!(last_four(token)));
        }
        if let Some(problem) = self.problem {
            fields.insert("(unreadable)".into(), json!(problem));
        }
        Value::Object(fields)
    }
}

/// A response body for the wire log: the ticket in a socket's URL is cut down.
pub(super) fn redacted(mut body: Value) -> Value {
    let cut = body["url"]
        .as_str()
        .and_then(|url| url.split_once("ticket="))
        .map(|(before, after)| {
            let (ticket, rest) = after.split_once('&').unwrap_or((after, ""));
            format!("{before}ticket={}&{rest}", last_four(ticket))
        });
    if let Some(url) = cut {
        body["url"] = json!(url);
    }
    body
}

fn last_four(secret: &str) -> String {
    let skipped = secret.chars().count().saturating_sub(4);
    format!("…{}", secret.chars().skip(skipped).collect::<String>())
}

fn parse_json(body: &[u8], takes_json: bool) -> Result<Map<String, Value>, &'static str> {
    match serde_json::from_slice(body) {
        _ if !takes_json => Ok(Map::new()),
        Ok(Value::Object(args)) => Ok(args),
        Ok(_) => Err("json_not_object"),
        Err(_) => Err("invalid_json"),
    }
}

/// The fields of a multipart form; files among them are skipped.
async fn read_parts(headers: &HeaderMap, body: Bytes) -> Result<Map<String, Value>, &'static str> {
    let parts = parts::read(headers, body).await;
    let parts = parts.ok_or("invalid_form_data")?;
    let fields = parts.into_iter().filter(|part| part.file_name.is_none());
    let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
    Ok(fields
        .map(|part| (part.name, json!(text(&part.bytes))))
        .collect())
}

fn parse_form(body: &[u8]) -> Result<Map<String, Value>, &'static str> {
    let text = std::str::from_utf8(body).map_err(|_| "invalid_form_data")?;
    let mut args = Map::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = percent_decoded(name).ok_or("invalid_form_data")?;
        let value = percent_decoded(value).ok_or("invalid_form_data")?;
        args.insert(name, Value::String(value));
    }
    Ok(args)
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let high = char::from(rest.next()?).to_digit(16)?;
                let low = char::from(rest.next()?).to_digit(16)?;
                u8::try_from(high * 16 + low).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_decode_or_are_refused() {
        let cases = [
            ("a=b+c&d=%C3%A9", Ok(json!({"a": "b c", "d": "é"}))),
            ("", Ok(json!({}))),
            ("a=%", Err("invalid_form_data")),
            ("a=%ff", Err("invalid_form_data")),
        ];
        for (form, expected) in cases {
            assert_eq!(parse_form(form.as_bytes()).map(Value::Object), expected);
        }
    }

    #[test]
    fn a_ticket_is_cut_down_in_the_log() {
        let url = "ws://127.0.0.1:1/link/?ticket=abcdefgh&app_id=A1";
        let logged = redacted(json!({"ok": true, "url": url}));
        let expected = "ws://127.0.0.1:1/link/?ticket=…efgh&app_id=A1";
        assert_eq!(logged, json!({"ok": true, "url": expected}));
    }
}
