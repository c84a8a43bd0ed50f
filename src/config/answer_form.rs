//! The form that an agent's answers must have: a JSON schema, checked when the configuration is read.
//!
//! Pure except for reading the file. It contains the instruction for the model and the check of an answer, too.

use std::sync::Arc;

use serde_json::Value;

use super::resolve::Review;
use super::settings::AgentSettings;
use crate::llm::read_arguments;
use crate::tools::{unknown_keywords, wrong_with_answer};

/// The longest schema, in bytes; it is part of every prompt.
const SCHEMA_MAX_BYTES: usize = 16_384;
/// The longest text about what is wrong with an answer, in characters.
const WRONG_MAX_CHARS: usize = 1_000;

/// The form that answers must have.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerForm {
    schema: Arc<Value>,
}

impl AnswerForm {
    /// Reads a schema.
    ///
    /// # Errors
    /// What is wrong with it, in words for the person who wrote it.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > SCHEMA_MAX_BYTES {
            return Err(format!(
                "is longer than {SCHEMA_MAX_BYTES} bytes, and it stands in every prompt"
            ));
        }
        let schema: Value =
            serde_json::from_str(text).map_err(|error| format!("is no JSON: {error}"))?;
        if schema["type"] != "object" || !schema["properties"].is_object() {
            return Err("must be a JSON schema of type \"object\" with \"properties\"".to_owned());
        }
        let unknown = unknown_keywords(&schema);
        if !unknown.is_empty() {
            let unknown = unknown.join(", ");
            return Err(format!("has what is not checked here: {unknown}"));
        }
        Ok(Self {
            schema: Arc::new(schema),
        })
    }

    /// The schema.
    #[must_use]
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// The instruction for a model. It never contains `{{`, which would name a value of a template.
    #[must_use]
    pub fn instruction(&self) -> String {
        // In JSON, two opening braces in a row occur only within a string.
        let schema = self.schema.to_string().replace("{{", "{\\u007b");
        format!(
            "Your answer must be one JSON value that this JSON schema describes, and nothing else: no words around \
             it, no code fence.\n{schema}"
        )
    }

    /// The JSON of an answer that has the form, as the model wrote it. A fence around it is removed.
    ///
    /// # Errors
    /// What is wrong with it, in words for the model. It never contains text of the answer.
    pub fn read(&self, answer: &str) -> Result<String, String> {
        let text = without_fence(answer.trim());
        let value = read_arguments(text)
            .map_err(|why| why.replacen("the arguments can't", "it can't", 1))?;
        let wrong = wrong_with_answer(&self.schema, &value);
        match wrong.is_empty() {
            true => Ok(text.to_owned()),
            false => Err(wrong.join("; ").chars().take(WRONG_MAX_CHARS).collect()),
        }
    }
}

/// A text without a fence around all of it.
fn without_fence(text: &str) -> &str {
    let inner = text
        .strip_prefix("```")
        .and_then(|text| text.strip_suffix("```"))
        .and_then(|text| text.split_once('\n'));
    match inner {
        Some((word, inner)) if word.trim().chars().all(char::is_alphanumeric) => inner.trim(),
        _ => text,
    }
}

/// The form of an agent's answers, if one is set.
pub(super) fn resolve_form(
    name: &str,
    shape: &AgentSettings,
    review: &mut Review<'_>,
) -> Option<AnswerForm> {
    let file_key = format!("agents.{name}.answer_schema_file");
    let (key, text) = match (&shape.answer_schema, &shape.answer_schema_file) {
        (None, None) => return None,
        (Some(_), Some(_)) => {
            review.problem(
                &file_key,
                "is set and so is answer_schema; keep one of them",
            );
            return None;
        }
        (Some(text), None) => (format!("agents.{name}.answer_schema"), text.clone()),
        (None, Some(file)) => {
            let path = review.base_dir.join(file);
            match std::fs::read_to_string(&path) {
                Ok(text) => (file_key, text),
                Err(error) => {
                    let what = format!("{} can't be read: {error}", path.display());
                    review.problem(&file_key, what);
                    return None;
                }
            }
        }
    };
    if !shape.stop_after_tools.is_empty() {
        let what = "is set and so is stop_after_tools, whose texts no schema is held against; keep one of them";
        review.problem(&key, what);
    }
    match AnswerForm::parse(&text) {
        Ok(form) => Some(form),
        Err(what) => {
            review.problem(&key, what);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::config::template::Template;

    const SCHEMA: &str = r#"{"type": "object", "required": ["city"], "additionalProperties": false,
        "properties": {"city": {"type": "string"}, "degrees": {"type": "number"}}}"#;

    #[test]
    fn an_answer_has_the_form_or_is_told_what_is_wrong() {
        let form = AnswerForm::parse(SCHEMA).unwrap();
        let json = r#"{"city": "Oslo", "degrees": -3.5}"#;
        for right in [
            json.to_owned(),
            format!("\n {json} \n"),
            format!("```json\n{json}\n```"),
            format!("```\n{json}\n```\n"),
        ] {
            assert_eq!(form.read(&right).as_deref(), Ok(json), "{right}");
        }
        let table = [
            ("It is cold.", "it can't be read"),
            ("", "it can't be read"),
            (r#"Here: {"city": "Oslo"}"#, "it can't be read"),
            (r#"{"city": "Oslo""#, "it can't be read"),
            (
                r#"{"city": "Oslo", "city": "Rome"}"#,
                "`city` stands there twice",
            ),
            (r#"{"city": 7}"#, "`city` must be string, not number"),
            ("{}", "`city` is missing"),
            ("[]", "the answer must be object, not array"),
            (r#"{"city": "Oslo", "x": 1}"#, "the answer has no `x`"),
        ];
        for (text, expected) in table {
            let wrong = form.read(text).unwrap_err();
            assert!(wrong.contains(expected), "{text}: {wrong}");
            assert!(!wrong.contains("Oslo"), "{wrong}");
        }
        let deep = "[".repeat(400_000);
        let wrong = form.read(&deep).unwrap_err();
        assert!(wrong.chars().count() <= WRONG_MAX_CHARS, "{}", wrong.len());
    }

    #[test]
    fn a_schema_is_one_that_is_checked_here() {
        let long = format!(
            r#"{{"type": "object", "properties": {{}}, "title": "{}"}}"#,
            "x".repeat(SCHEMA_MAX_BYTES)
        );
        let table = [
            ("{", "is no JSON"),
            (r#"{"type": "array"}"#, "of type \"object\""),
            (r#"{"type": "object"}"#, "with \"properties\""),
            (
                r#"{"type": "object", "properties": {"a": {"pattern": "^a"}}}"#,
                "/properties/a/pattern",
            ),
            (&long, "is longer than"),
        ];
        for (text, expected) in table {
            let wrong = AnswerForm::parse(text).unwrap_err();
            assert!(wrong.contains(expected), "{text}: {wrong}");
        }
    }

    #[test]
    fn what_the_model_is_told_is_text_to_a_template() {
        let schema =
            r#"{"type": "object", "properties": {"a": {"description": "as {{date}}, {{{"}}}"#;
        let form = AnswerForm::parse(schema).unwrap();
        let told = form.instruction();
        let template = Template::parse("Be brief.").unwrap().followed_by(&told);
        let read_back = Template::parse(&template.source()).unwrap();
        let text = read_back.render(|_| "value");
        assert_eq!(text, format!("Be brief.\n\n{told}"));
        let json = told.split_once('\n').unwrap().1;
        let back: Value = serde_json::from_str(json).unwrap();
        assert_eq!(&back, form.schema());
    }
}
