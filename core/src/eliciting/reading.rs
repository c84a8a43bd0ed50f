//! A person's words as the values of a form.

use chrono::{DateTime, NaiveDate};
use serde_json::{Map, Number, Value};

use super::form::{FieldKind, InputField, InputForm};
use crate::approving::visible_line;
use crate::words::Language;

/// What a person's words say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormAnswer {
    /// These values, by the server's names.
    Given(Map<String, Value>),
    /// Nothing is given.
    Declined,
}

impl InputForm {
    /// Reads an answer: of one field its value, of several a line each that begins with the field's name.
    ///
    /// # Errors
    /// What is wrong with it, as a sentence for the person that repeats none of the answer's words: the next question
    /// begins with it, and stays when the answer is deleted.
    pub fn read(&self, text: &str, language: Language) -> Result<FormAnswer, String> {
        let said = text.trim();
        let is_decline = says(said.trim_end_matches(['.', '!']), Language::form_decline);
        let values = match self.fields.as_slice() {
            [] if is_decline => return Ok(FormAnswer::Declined),
            // Only one word accepts: a question back is no consent.
            [] if says(said, Language::form_accept) => Vec::new(),
            [] => {
                let words = (language.form_accept(), language.form_decline());
                return Err(language.form_accept_or_decline(words.0, words.1));
            }
            [one] => match one.value(said, language) {
                Ok(value) if !is_decline || matches!(one.kind, FieldKind::One(_)) => {
                    vec![(one, value)]
                }
                _ if is_decline => return Ok(FormAnswer::Declined),
                Ok(value) => vec![(one, value)],
                Err(wanted) => return Err(language.form_wrong(wanted)),
            },
            _ if is_decline => return Ok(FormAnswer::Declined),
            several => by_lines(several, said, language)?,
        };
        let mut given = Map::new();
        for field in &self.fields {
            let value = values.iter().find(|(of, _)| of.name == field.name);
            match value.map(|(_, value)| value).or(field.default.as_ref()) {
                Some(value) => {
                    given.insert(field.name.clone(), value.clone());
                }
                None if field.is_required => {
                    return Err(language.form_field_missing(visible_line(&field.title)));
                }
                None => {}
            }
        }
        Ok(FormAnswer::Given(given))
    }
}

/// Whether the words are this text in any language: the language may have changed since the question was asked.
fn says(said: &str, text: impl Fn(Language) -> String) -> bool {
    let said = said.to_lowercase();
    let mut texts = Language::ALL.into_iter().map(text);
    texts.any(|text| text.to_lowercase() == said)
}

fn by_lines<'a>(
    fields: &'a [InputField],
    said: &str,
    language: Language,
) -> Result<Vec<(&'a InputField, Value)>, String> {
    let mut values: Vec<(&InputField, Value)> = Vec::new();
    let lines = said.lines().map(str::trim).enumerate();
    for (n, line) in lines.filter(|(_, line)| !line.is_empty()) {
        let line = line.trim_start_matches(['-', '*', '•']).trim();
        let named = line.split_once([':', '=']).and_then(|(name, value)| {
            let name = name.trim().to_lowercase();
            let is_it = |field: &&InputField| {
                [&field.name, &field.title]
                    .iter()
                    .any(|it| it.to_lowercase() == name)
            };
            Some((fields.iter().find(is_it)?, value.trim()))
        });
        let Some((field, value)) = named else {
            return Err(language.form_line_unnamed(n + 1));
        };
        let title = visible_line(&field.title);
        if values.iter().any(|(of, _)| of.name == field.name) {
            return Err(language.form_field_twice(title));
        }
        let value = field.value(value, language);
        values.push((
            field,
            value.map_err(|wanted| language.form_field_wrong(title, wanted))?,
        ));
    }
    Ok(values)
}

impl InputField {
    /// The value that a person's words mean.
    ///
    /// # Errors
    /// What it is to be.
    fn value(&self, said: &str, language: Language) -> Result<Value, String> {
        match &self.kind {
            FieldKind::Text { min, max, format } => {
                text(said, (*min, *max), format.as_deref(), language)
            }
            FieldKind::Number { is_whole, min, max } => {
                number(said, *is_whole, (min.as_ref(), max.as_ref()), language)
            }
            FieldKind::Boolean => match said.to_lowercase().as_str() {
                "yes" | "y" | "true" | "ja" => Ok(true.into()),
                "no" | "n" | "false" | "nein" => Ok(false.into()),
                _ => Err(language.wanted_yes_or_no()),
            },
            FieldKind::One(choices) => choice(choices, said, language).map(Value::from),
            FieldKind::Several(choices) => {
                let mut values: Vec<&str> = Vec::new();
                for one in said.split(',').map(str::trim).filter(|one| !one.is_empty()) {
                    let value = choice(choices, one, language)?;
                    if !values.contains(&value) {
                        values.push(value);
                    }
                }
                Ok(values.into())
            }
        }
    }
}

fn choice<'a>(
    choices: &'a [(String, String)],
    said: &str,
    language: Language,
) -> Result<&'a str, String> {
    let said = said.to_lowercase();
    let is_it = |it: &&(String, String)| it.1.to_lowercase() == said || it.0.to_lowercase() == said;
    match choices.iter().find(is_it) {
        Some((value, _)) => Ok(value),
        None => {
            let titles: Vec<String> = choices.iter().map(|(_, it)| visible_line(it)).collect();
            Err(language.wanted_one_of(titles.join(", ")))
        }
    }
}

fn text(
    said: &str,
    (min, max): (Option<u64>, Option<u64>),
    format: Option<&str>,
    language: Language,
) -> Result<Value, String> {
    let chars = said.chars().count() as u64;
    if chars < min.unwrap_or(0).max(1) {
        return Err(language.chars_at_least(min.unwrap_or(0).max(1)));
    }
    if let Some(max) = max.filter(|max| chars > *max) {
        return Err(language.chars_at_most(max));
    }
    let is_of_format = match format {
        Some("email") => {
            let parts = said.split_once('@');
            let is_whole = |part: &str| !part.is_empty() && !part.contains(['@', ' ', '\n']);
            parts.is_some_and(|(name, host)| is_whole(name) && is_whole(host))
        }
        Some("uri") => {
            let parts = said.split_once(':');
            parts.is_some_and(|(scheme, rest)| {
                scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                    && scheme
                        .chars()
                        .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
                    && !rest.is_empty()
                    && !said.contains(char::is_whitespace)
            })
        }
        Some("date") => NaiveDate::parse_from_str(said, "%Y-%m-%d").is_ok(),
        Some("date-time") => DateTime::parse_from_rfc3339(said).is_ok(),
        _ => true,
    };
    match is_of_format {
        true => Ok(said.into()),
        false => Err(match format {
            Some("email") => language.wanted_email(),
            Some("uri") => language.wanted_uri(),
            Some("date") => language.wanted_date(),
            _ => language.wanted_time(),
        }),
    }
}

fn number(
    said: &str,
    is_whole: bool,
    (min, max): (Option<&Value>, Option<&Value>),
    language: Language,
) -> Result<Value, String> {
    let number: Option<Number> = match is_whole {
        true => said.parse::<i64>().ok().map(Number::from),
        false => match said.parse::<i64>() {
            Ok(whole) => Some(whole.into()),
            Err(_) => said.parse::<f64>().ok().and_then(Number::from_f64),
        },
    };
    let Some(number) = number else {
        return Err(match is_whole {
            true => language.wanted_whole_number(),
            false => language.wanted_number(),
        });
    };
    let value = number.as_f64().unwrap_or_default();
    let bound = |it: Option<&Value>| it.and_then(Value::as_f64);
    if let Some(min) = bound(min).filter(|min| value < *min) {
        return Err(language.at_least(min));
    }
    if let Some(max) = bound(max).filter(|max| value > *max) {
        return Err(language.at_most(max));
    }
    Ok(number.into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn form(properties: &Value, required: &[&str]) -> InputForm {
        let schema = json!({"type": "object", "properties": properties, "required": required});
        InputForm::of(&json!({"message": "?", "requestedSchema": schema})).unwrap()
    }

    fn given(form: &InputForm, text: &str) -> Result<Value, String> {
        match form.read(text, Language::English)? {
            FormAnswer::Given(values) => Ok(values.into()),
            FormAnswer::Declined => Ok("declined".into()),
        }
    }

    #[test]
    fn one_field_takes_its_value() {
        let cases = [
            (
                json!({"type": "string", "minLength": 2}),
                "Ann",
                json!({"x": "Ann"}),
            ),
            (json!({"type": "string"}), "decline", json!("declined")),
            (json!({"type": "integer"}), "7", json!({"x": 7})),
            (json!({"type": "number"}), "1.5", json!({"x": 1.5})),
            (json!({"type": "boolean"}), "No", json!({"x": false})),
            (
                json!({"type": "string", "format": "date"}),
                "2026-02-28",
                json!({"x": "2026-02-28"}),
            ),
            (
                json!({"type": "string", "oneOf": [{"const": "l", "title": "Large"}]}),
                "large",
                json!({"x": "l"}),
            ),
            (
                json!({"type": "string", "enum": ["go", "decline"]}),
                "Decline",
                json!({"x": "decline"}),
            ),
            (
                json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}),
                "b, A, b",
                json!({"x": ["b", "a"]}),
            ),
        ];
        for (schema, text, expected) in cases {
            let form = form(&json!({"x": schema}), &["x"]);
            assert_eq!(given(&form, text), Ok(expected), "{schema} {text}");
        }
        let wrong = [
            (
                json!({"type": "string", "maxLength": 2}),
                "Ann",
                "at most 2",
            ),
            (json!({"type": "integer"}), "1.5", "a whole number"),
            (json!({"type": "number", "minimum": 3}), "2", "at least 3"),
            (json!({"type": "number"}), "NaN", "a number"),
            (json!({"type": "boolean"}), "perhaps", "yes or no"),
            (
                json!({"type": "string", "format": "email"}),
                "ann@",
                "an e-mail address",
            ),
            (
                json!({"type": "string", "format": "uri"}),
                "a b:c",
                "an address",
            ),
            (
                json!({"type": "string", "format": "date"}),
                "2026-02-30",
                "a date",
            ),
            (
                json!({"type": "string", "format": "date-time"}),
                "noon",
                "a time",
            ),
            (json!({"type": "string", "enum": ["a"]}), "b", "one of: a"),
        ];
        for (schema, text, words) in wrong {
            let told = given(&form(&json!({"x": schema}), &["x"]), text).unwrap_err();
            assert!(
                told.starts_with("It is to be ") && told.contains(words),
                "{told}"
            );
        }
    }

    #[test]
    fn several_fields_take_a_line_each() {
        let properties = json!({
            "name": {"type": "string", "title": "Your name"},
            "n": {"type": "integer", "default": 2},
            "gift": {"type": "boolean"},
        });
        let form = form(&properties, &["name", "n"]);
        for (text, expected) in [
            (
                "your name: Ann: the 2nd\n- gift = yes",
                Ok(json!({"name": "Ann: the 2nd", "n": 2, "gift": true})),
            ),
            ("name: Ann\nN: 3", Ok(json!({"name": "Ann", "n": 3}))),
            ("Decline", Ok(json!("declined"))),
            ("n: 3", Err("`Your name` is missing")),
            ("name: Ann\nname: Bob", Err("`Your name` is there twice")),
            ("name: Ann\nn: two", Err("`n` is to be a whole number")),
            (
                "Ann, please",
                Err("Line 1 does not begin with the name of a field"),
            ),
        ] {
            assert_eq!(
                given(&form, text),
                expected.map_err(str::to_owned),
                "{text}"
            );
        }
        let none = InputForm::of(&json!({"message": "Go on?"})).unwrap();
        assert_eq!(given(&none, "Accept"), Ok(json!({})));
        assert_eq!(given(&none, "decline!"), Ok(json!("declined")));
        assert!(given(&none, "why?").unwrap_err().contains("Accept"));
    }

    proptest! {
        #[test]
        fn what_a_button_says_is_read_as_its_choice(titles in proptest::collection::vec("[A-Za-z0-9 äöü.!:=,-]{1,20}", 1..=4)) {
            let choices: Vec<Value> = titles.iter().enumerate()
                .map(|(n, title)| json!({"const": format!("#{n}"), "title": title.trim()})).collect();
            let form = form(&json!({"x": {"type": "string", "oneOf": choices}}), &["x"]);
            for option in Language::ALL.into_iter().flat_map(|it| form.options(it)) {
                prop_assert!(form.read(&option, Language::English).is_ok(), "{option}");
            }
        }

        #[test]
        fn any_words_are_read_or_refused(text in ".{0,200}", kind in 0_usize..6) {
            let schema = [
                json!({"type": "string", "format": "email"}), json!({"type": "string", "format": "date-time"}),
                json!({"type": "integer"}), json!({"type": "number", "maximum": 5}), json!({"type": "boolean"}),
                json!({"type": "array", "items": {"enum": ["a"]}}),
            ][kind].clone();
            for fields in [json!({"x": schema}), json!({"x": schema, "y": schema})] {
                let _ = form(&fields, &["x"]).read(&text, Language::German);
            }
        }
    }
}
