//! Makes an address and a body of arguments. A value stays a value: it can't add a segment, a parameter, a field or
//! another host.

use reqwest::Url;
use serde_json::{Map, Value};

/// The name of the argument that is a whole body.
pub const WHOLE: &str = "event";

/// An address with places for arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlTemplate {
    text: String,
    /// Scheme, host and port.
    base: Url,
    /// The path's segments.
    segments: Vec<Pieces>,
    /// The parameters behind the `?`.
    parameters: Vec<(String, Pieces)>,
}

/// Text with places for arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pieces(Vec<TemplatePiece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePiece {
    Text(String),
    Argument(String),
}

impl UrlTemplate {
    /// Reads a template: `https://shop.example/orders/{order}?currency={currency}`. Path and parameters are written
    /// unencoded, without `%`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(text: &str) -> Result<Self, String> {
        let (scheme, rest) = text
            .split_once("://")
            .ok_or("must begin with https:// or http://")?;
        let (authority, path) = match rest.find(['/', '?']) {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        if authority.contains(['{', '}']) || scheme.contains(['{', '}']) {
            return Err(
                "must name its host itself: arguments are for the path behind it".to_owned(),
            );
        }
        if path.contains('#') {
            return Err("must not have a fragment (#)".to_owned());
        }
        let base = Url::parse(&format!("{scheme}://{authority}/"))
            .map_err(|error| format!("is no address: {error}"))?;
        if !matches!(base.scheme(), "https" | "http") {
            return Err("must begin with https:// or http://".to_owned());
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err("must not hold a name or a password: use secret_headers".to_owned());
        }
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let segments = path.split('/').skip(1).map(Pieces::read);
        let parameters = query.split('&').filter(|parameter| !parameter.is_empty());
        let parameters = parameters.map(|parameter| {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            Ok::<_, String>((name.to_owned(), Pieces::read(value)?))
        });
        Ok(Self {
            text: text.to_owned(),
            base,
            segments: segments.collect::<Result<_, _>>()?,
            parameters: parameters.collect::<Result<_, _>>()?,
        })
    }

    /// The template's text, as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Scheme, host and port.
    #[must_use]
    pub fn base(&self) -> &Url {
        &self.base
    }

    /// The arguments in the path: without them a call has no address.
    pub fn path_arguments(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().flat_map(Pieces::arguments)
    }

    /// All arguments of the template.
    pub fn arguments(&self) -> impl Iterator<Item = &str> {
        let parameters = self.parameters.iter().map(|(_, value)| value);
        self.path_arguments()
            .chain(parameters.flat_map(Pieces::arguments))
    }

    /// The address of a call. A parameter whose argument is not given is left out.
    ///
    /// # Errors
    /// In words for the model: an argument that may not be used in its place.
    pub fn fill(&self, arguments: &Value) -> Result<Url, String> {
        let mut url = self.base.clone();
        {
            let mut path = url.path_segments_mut().map_err(|()| "no path".to_owned())?;
            path.clear();
            for segment in &self.segments {
                let Some(filled) = segment.fill(arguments)? else {
                    let missing: Vec<&str> = segment.arguments().collect();
                    return Err(format!("`{}` is missing", missing.join("`, `")));
                };
                let is_own = segment.arguments().next().is_some();
                // These would change the path, even if they come from an argument.
                if is_own && matches!(filled.as_str(), "" | "." | "..") {
                    return Err(format!("{filled:?} can't stand in an address"));
                }
                path.push(&filled);
            }
        }
        for (name, value) in &self.parameters {
            if let Some(filled) = value.fill(arguments)? {
                url.query_pairs_mut().append_pair(name, &filled);
            }
        }
        Ok(url)
    }
}

impl Pieces {
    fn read(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            let (before, behind) = rest.split_at(open);
            let close = behind.find('}').ok_or("has a { without its }")?;
            let name = &behind[1..close];
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if name.is_empty() || !name.chars().all(is_name) {
                return Err(format!("{{{name}}} names no argument"));
            }
            if !before.is_empty() {
                pieces.push(TemplatePiece::Text(before.to_owned()));
            }
            pieces.push(TemplatePiece::Argument(name.to_owned()));
            rest = &behind[close + 1..];
        }
        if rest.contains('}') {
            return Err("has a } without its {".to_owned());
        }
        if !rest.is_empty() {
            pieces.push(TemplatePiece::Text(rest.to_owned()));
        }
        Ok(Self(pieces))
    }

    fn arguments(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            TemplatePiece::Argument(name) => Some(name.as_str()),
            TemplatePiece::Text(_) => None,
        })
    }

    /// The text with its arguments filled in; `None` if an argument is missing.
    fn fill(&self, arguments: &Value) -> Result<Option<String>, String> {
        let mut filled = String::new();
        for piece in &self.0 {
            match piece {
                TemplatePiece::Text(text) => filled.push_str(text),
                TemplatePiece::Argument(name) => match &arguments[name] {
                    Value::Null => return Ok(None),
                    value => filled.push_str(&plain(name, value)?),
                },
            }
        }
        Ok(Some(filled))
    }
}

/// A value as text.
fn plain(name: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) if text.chars().any(char::is_control) => {
            Err(format!("`{name}` must not hold control characters"))
        }
        Value::String(text) => Ok(text.clone()),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            Err(format!("`{name}` must be a text, a number or a boolean"))
        }
    }
}

/// A JSON body with places for arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct BodyTemplate(Value);

impl BodyTemplate {
    /// Reads a template: JSON in which the text `"{amount}"` stands for an argument with its type, and
    /// `"by {name}"` for a text with an argument in it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(text: &str) -> Result<Self, String> {
        let template =
            Self(serde_json::from_str(text).map_err(|error| format!("is no JSON: {error}"))?);
        template.check(&template.0)?;
        Ok(template)
    }

    /// A body that is the arguments themselves: an object with one field for each of these names.
    #[must_use]
    pub fn of_arguments<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let entry = |name: &str| (name.to_owned(), Value::String(format!("{{{name}}}")));
        Self(Value::Object(names.into_iter().map(entry).collect()))
    }

    /// A body that is only the argument [`WHOLE`], of any type.
    #[must_use]
    pub fn whole() -> Option<Self> {
        Some(Self(Value::String(format!("{{{WHOLE}}}"))))
    }

    /// The template as JSON.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.0
    }

    /// The arguments of the template.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        let mut names = Vec::new();
        collect(&self.0, &mut names);
        names
    }

    /// The body of a call. A field whose argument is not given is left out.
    ///
    /// # Errors
    /// In words for the model: an argument that may not be used in its place.
    pub fn fill(&self, arguments: &Value) -> Result<Value, String> {
        filled(&self.0, arguments).map(|body| body.unwrap_or(Value::Null))
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        match value {
            Value::String(text) => Pieces::read(text).map(|_| ()),
            Value::Array(items) => items.iter().try_for_each(|item| self.check(item)),
            Value::Object(fields) => fields.values().try_for_each(|field| self.check(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        }
    }
}

fn collect(template: &Value, names: &mut Vec<String>) {
    match template {
        Value::String(text) => {
            let pieces = Pieces::read(text).unwrap_or(Pieces(Vec::new()));
            names.extend(pieces.arguments().map(str::to_owned));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, names)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn filled(template: &Value, arguments: &Value) -> Result<Option<Value>, String> {
    Ok(match template {
        Value::String(text) => {
            let pieces = Pieces::read(text)?;
            match pieces.0.as_slice() {
                // An argument that stands alone keeps its type.
                [TemplatePiece::Argument(name)] => {
                    Some(arguments[name].clone()).filter(|value| !value.is_null())
                }
                _ => pieces.fill(arguments)?.map(Value::String),
            }
        }
        Value::Array(items) => {
            let items = items.iter().map(|item| filled(item, arguments));
            let items: Result<Vec<Option<Value>>, String> = items.collect();
            Some(Value::Array(items?.into_iter().flatten().collect()))
        }
        Value::Object(fields) => {
            let mut all = Map::new();
            for (name, field) in fields {
                if let Some(field) = filled(field, arguments)? {
                    all.insert(name.clone(), field);
                }
            }
            Some(Value::Object(all))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(template.clone()),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_stays_where_it_stands() {
        let template = UrlTemplate::read(
            "https://shop.example:8443/a b/{order}/x-{n}?currency={currency}&v=1",
        )
        .unwrap();
        let cases = [
            (
                json!({"order": "7", "n": 2, "currency": "EUR"}),
                Ok("https://shop.example:8443/a%20b/7/x-2?currency=EUR&v=1"),
            ),
            (
                json!({"order": "../admin?x=1#y", "n": true, "currency": "a&b=c d"}),
                Ok(
                    "https://shop.example:8443/a%20b/..%2Fadmin%3Fx=1%23y/x-true?currency=a%26b%3Dc+d&v=1",
                ),
            ),
            (
                json!({"order": "%2e%2e", "n": 0.5}),
                Ok("https://shop.example:8443/a%20b/%252e%252e/x-0.5?v=1"),
            ),
            (
                json!({"order": "..", "n": 1}),
                Err("\"..\" can't stand in an address"),
            ),
            (
                json!({"order": "", "n": 1}),
                Err("\"\" can't stand in an address"),
            ),
            (json!({"n": 1}), Err("`order` is missing")),
            (
                json!({"order": "a\r\nb", "n": 1}),
                Err("`order` must not hold control characters"),
            ),
            (
                json!({"order": ["a"], "n": 1}),
                Err("`order` must be a text, a number or a boolean"),
            ),
        ];
        for (arguments, expected) in cases {
            let filled = template.fill(&arguments).map(String::from);
            assert_eq!(
                filled,
                expected.map(str::to_owned).map_err(str::to_owned),
                "{arguments}"
            );
        }
        let path: Vec<&str> = template.path_arguments().collect();
        assert_eq!(path, ["order", "n"]);
        assert_eq!(template.arguments().count(), 3);
    }

    #[test]
    fn the_host_is_the_operators() {
        for wrong in [
            "https://{host}/x",
            "https://shop.example:{port}/x",
            "{scheme}://shop.example/x",
            "https://ann:pass@shop.example/x",
            "file:///etc/passwd",
            "shop.example/x",
            "https://shop.example/{a",
            "https://shop.example/a}",
            "https://shop.example/{a b}",
            "https://shop.example/x#y",
        ] {
            assert!(UrlTemplate::read(wrong).is_err(), "{wrong}");
        }
        let bare = UrlTemplate::read("https://shop.example").unwrap();
        assert_eq!(
            bare.fill(&json!({})).unwrap().as_str(),
            "https://shop.example/"
        );
    }

    #[test]
    fn a_body_is_a_tree_and_not_a_text() {
        let template = BodyTemplate::read(
            r#"{"amount": "{amount}", "note": "by {who}: {why}", "lines": ["{a}", "{b}", 1], "fixed": null}"#,
        )
        .unwrap();
        let arguments =
            json!({"amount": 12.5, "who": "Ann", "why": "\",\"admin\":true,\"", "b": {"x": [1]}});
        assert_eq!(
            template.fill(&arguments).unwrap(),
            json!({"amount": 12.5, "note": "by Ann: \",\"admin\":true,\"", "lines": [{"x": [1]}, 1], "fixed": null})
        );
        assert_eq!(
            template.fill(&json!({})).unwrap(),
            json!({"lines": [1], "fixed": null})
        );
        assert_eq!(template.arguments(), ["amount", "who", "why", "a", "b"]);
        assert!(BodyTemplate::read("{").is_err());
        assert!(BodyTemplate::read(r#"{"a": "{b"}"#).is_err());
        let all = BodyTemplate::of_arguments(["a", "b"]);
        assert_eq!(all.fill(&json!({"a": 1})).unwrap(), json!({"a": 1}));
    }
}
