//! `ask_person`: a question to somebody in the room. The tool itself does nothing: the run that calls it waits for the
//! answer, which is the result.

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::search::schema;
use super::{BuiltIn, CallContext, Tool, ToolError, ToolOutput};
use vocative_core::questioning::{OPTION_MAX_CHARS, OPTIONS_MAX, QUESTION_MAX_CHARS};
use vocative_core::tool_call::CallRule;

/// The tool's name.
pub const ASK_PERSON: &str = "ask_person";
/// The longest name of a person, in characters.
const PERSON_MAX_CHARS: usize = 100;

/// A question that a model wants to ask people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionWish {
    /// The question.
    pub text: String,
    /// The offered answers; empty = any answer.
    pub options: Vec<String>,
    /// Who is to answer.
    pub to: QuestionTo,
}

/// Who is to answer a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuestionTo {
    /// The person who asked for the run.
    Requester,
    /// Somebody in the room, by a name.
    Person(String),
    /// Anybody in the agent's room of experts.
    Experts,
}

/// The tool that asks a person.
pub struct AskPerson;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AskPersonArguments {
    /// What you need to know, in one or two sentences, in the language of the room.
    question: String,
    /// Answers to choose from, up to 5, each a few words. None: they answer in their own words.
    #[serde(default)]
    options: Vec<String>,
    /// Who is to answer: the name of somebody who has said something here. None: who asked you.
    #[serde(default)]
    person: Option<String>,
}

impl Tool for AskPerson {
    fn name(&self) -> &str {
        ASK_PERSON
    }

    fn description(&self) -> &str {
        "Asks a person in this room a question and waits for the answer, which may take hours. Use it when you can't go \
         on without something that only a person knows or may decide, and never for what you can find out yourself. \
         Ask one thing at a time; at most 3 questions for one request. What comes back is what that person said."
    }

    fn schema(&self) -> Value {
        schema::<AskPersonArguments>()
    }

    fn rule(&self) -> CallRule {
        BuiltIn::AskPerson.rule()
    }

    fn question(&self, arguments: &Value) -> Option<Result<QuestionWish, ToolError>> {
        Some(wish(arguments))
    }

    fn call(&self, _: Value, _: CallContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        Box::pin(async {
            let what = "people are asked by runs alone, in the room that these answer in";
            Err(ToolError::Failed(what.to_owned()))
        })
    }
}

fn wish(arguments: &Value) -> Result<QuestionWish, ToolError> {
    let arguments: AskPersonArguments = serde_json::from_value(arguments.clone())
        .map_err(|cause| ToolError::Arguments(cause.to_string()))?;
    let person = arguments.person.map(|name| name.trim().to_owned());
    let to = match person.filter(|name| !name.is_empty()) {
        Some(name) if name.chars().count() > PERSON_MAX_CHARS => {
            return Err(ToolError::Arguments("`person` is no name".to_owned()));
        }
        Some(name) => QuestionTo::Person(name),
        None => QuestionTo::Requester,
    };
    checked(&arguments.question, &arguments.options, to)
}

/// The question, if its text and options are within the limits.
pub(super) fn checked(
    question: &str,
    options: &[String],
    to: QuestionTo,
) -> Result<QuestionWish, ToolError> {
    let wrong = |what: String| Err(ToolError::Arguments(what));
    let text = question.trim().to_owned();
    if text.is_empty() || text.chars().count() > QUESTION_MAX_CHARS {
        return wrong(format!(
            "`question` has 1 to {QUESTION_MAX_CHARS} characters"
        ));
    }
    let options = options.iter().map(|option| option.trim().to_owned());
    let options: Vec<String> = options.collect();
    if options.len() > OPTIONS_MAX {
        return wrong(format!("`options` has at most {OPTIONS_MAX} answers"));
    }
    for (n, option) in options.iter().enumerate() {
        let is_fit = (1..=OPTION_MAX_CHARS).contains(&option.chars().count());
        if !is_fit || option.contains('\n') || options[..n].contains(option) {
            let what = "each of `options` is another one, on one line, of 1 to";
            return wrong(format!("{what} {OPTION_MAX_CHARS} characters"));
        }
    }
    Ok(QuestionWish { text, options, to })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_question_that_can_not_be_asked_says_what_to_mend() {
        let read = |arguments: Value| wish(&arguments).map_err(|wrong| wrong.to_string());
        let fit = read(json!({"question": " Which? ", "options": ["Blue ", "Red"], "person": " "}));
        let expected = QuestionWish {
            text: "Which?".to_owned(),
            options: vec!["Blue".to_owned(), "Red".to_owned()],
            to: QuestionTo::Requester,
        };
        assert_eq!(fit, Ok(expected));
        let long = "x".repeat(QUESTION_MAX_CHARS + 1);
        for (arguments, words) in [
            (json!({"question": " "}), "`question` has 1 to 1000"),
            (json!({"question": long}), "`question` has 1 to 1000"),
            (
                json!({"question": "?", "options": vec!["a"; 6]}),
                "at most 5",
            ),
            (
                json!({"question": "?", "options": ["a", "a "]}),
                "another one",
            ),
            (json!({"question": "?", "options": ["a\nb"]}), "on one line"),
            (json!({"question": "?", "options": [""]}), "of 1 to 60"),
            (
                json!({"question": "?", "options": ["x".repeat(61)]}),
                "of 1 to 60",
            ),
            (
                json!({"question": "?", "person": "x".repeat(101)}),
                "no name",
            ),
            (json!({"question": "?", "chat": "C1"}), "unknown field"),
        ] {
            let told = read(arguments).err().unwrap_or_default();
            assert!(told.contains(words), "{words} in {told}");
        }
    }
}
