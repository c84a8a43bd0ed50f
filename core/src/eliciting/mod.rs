//! What a server of tools asks a person before it goes on with a call ("elicitation"): read from its request, put to a
//! person as a question, and the person's words read back as the values that it asked for. Pure.
//!
//! *Source:* the Model Context Protocol, revision 2026-07-28: a form asks for a flat object of strings, numbers,
//! booleans and choices, is never for secrets, and can be declined.
//!
//! Reading order: `form` (what is asked for), `reading` (an answer's words as values).

mod form;
mod reading;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use form::{FieldKind, FormRefused, InputField, InputForm};
pub use reading::FormAnswer;

use crate::words::Language;

/// The most forms in one round of a call.
pub const FORMS_MAX: usize = 3;
/// The most rounds of a call. *Source:* what the protocol's own libraries take.
pub const ROUNDS_MAX: u32 = 10;

/// What a server wants to know before it goes on with a call. It is kept with each question that is asked for it, so
/// that the call goes on after a restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputRound {
    /// Which round of the call it is, from 1.
    pub number: u32,
    /// The server, as settings name it.
    pub server: String,
    /// State that is sent back to the server unchanged; only the server reads it.
    pub state: Option<String>,
    /// What it asks for, by its own names.
    pub forms: Vec<(String, InputForm)>,
}

/// A question that was asked for a round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedForm {
    /// The round.
    pub round: InputRound,
    /// Which of its forms, from 0.
    pub form: usize,
}

/// How a question of a round ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormEnded {
    /// It is open.
    Open,
    /// It was answered with these words.
    Said(String),
    /// It has no answer: nobody gave one in time, it was taken back, or the answer was deleted.
    Unanswered,
}

/// What is next with a call whose server asks a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextInput {
    /// Its question waits for an answer.
    Wait,
    /// A form is asked, by its index in `forms`, with what was wrong with the answer before.
    Ask(usize, Option<String>),
    /// The server is told this, by its own names, and goes on with the call.
    GoOn(BTreeMap<String, Value>),
}

impl InputRound {
    /// What is next, by the questions that were asked for this round in their order: which form, and how each ended.
    #[must_use]
    pub fn next(&self, asked: &[(usize, FormEnded)], language: Language) -> NextInput {
        let mut given = BTreeMap::new();
        for (n, (key, form)) in self.forms.iter().enumerate() {
            let newest = asked.iter().rev().find(|(of, _)| *of == n);
            let answer = match newest.map(|(_, ended)| ended) {
                None => return NextInput::Ask(n, None),
                Some(FormEnded::Open) => return NextInput::Wait,
                Some(FormEnded::Unanswered) => json!({"action": "cancel"}),
                Some(FormEnded::Said(text)) => match form.read(text, language) {
                    Ok(FormAnswer::Declined) => json!({"action": "decline"}),
                    Ok(FormAnswer::Given(content)) => {
                        json!({"action": "accept", "content": content})
                    }
                    Err(problem) => return NextInput::Ask(n, Some(problem)),
                },
            };
            given.insert(key.clone(), answer);
        }
        NextInput::GoOn(given)
    }

    /// The question for a form, with what was wrong with the answer before; without that where there is no room for it.
    ///
    /// # Errors
    /// It is longer than a question may be.
    pub fn question(
        &self,
        form: usize,
        problem: Option<&str>,
        language: Language,
    ) -> Result<String, FormRefused> {
        let Some((_, form)) = self.forms.get(form) else {
            return Err(FormRefused::Unfit("there is no such form".to_owned()));
        };
        form.question(&self.server, problem, language)
            .or_else(|_| form.question(&self.server, None, language))
    }

    /// What the server is told where a question can't be asked: that nobody answers.
    #[must_use]
    pub fn cancelled(&self) -> BTreeMap<String, Value> {
        let cancelled = |(key, _): &(String, InputForm)| (key.clone(), json!({"action": "cancel"}));
        self.forms.iter().map(cancelled).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round() -> InputRound {
        let form = |field: &str| {
            let schema = json!({"type": "object", "properties": {field: {"type": "integer"}}, "required": [field]});
            let params = json!({"mode": "form", "message": "How many?", "requestedSchema": schema});
            InputForm::of(&params).unwrap_or_else(|refused| panic!("{refused}"))
        };
        InputRound {
            number: 1,
            server: "boxes".to_owned(),
            state: Some("opaque".to_owned()),
            forms: vec![("a".to_owned(), form("n")), ("b".to_owned(), form("m"))],
        }
    }

    #[test]
    fn forms_are_asked_one_after_the_other_and_again_where_the_answer_is_none() {
        let said = |text: &str| FormEnded::Said(text.to_owned());
        let round = round();
        let problem = || Some("It is to be a whole number".to_owned());
        let cases = [
            (vec![], NextInput::Ask(0, None)),
            (vec![(0, FormEnded::Open)], NextInput::Wait),
            (vec![(0, said("many"))], NextInput::Ask(0, problem())),
            (
                vec![(0, said("many")), (0, FormEnded::Open)],
                NextInput::Wait,
            ),
            (
                vec![(0, said("many")), (0, said("3"))],
                NextInput::Ask(1, None),
            ),
            (
                vec![(0, said(" Decline. ")), (1, said("4"))],
                NextInput::GoOn(BTreeMap::from([
                    ("a".to_owned(), json!({"action": "decline"})),
                    (
                        "b".to_owned(),
                        json!({"action": "accept", "content": {"m": 4}}),
                    ),
                ])),
            ),
            (
                vec![(0, FormEnded::Unanswered), (1, FormEnded::Unanswered)],
                NextInput::GoOn(round.cancelled()),
            ),
        ];
        for (asked, expected) in cases {
            let next = round.next(&asked, Language::English);
            assert_eq!(next, expected, "{asked:?}");
        }
        let kept = serde_json::to_string(&round).unwrap_or_default();
        assert_eq!(serde_json::from_str::<InputRound>(&kept).ok(), Some(round));
    }
}
