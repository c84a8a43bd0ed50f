//! What a button of a question carries, and what a press says. Nothing of it is trusted beyond an id: which post it
//! stands on is compared with the row.

use uuid::Uuid;

use crate::ids::QuestionId;
use crate::questioning::OPTIONS_MAX;

/// The prefix of a question's button data: `q` and the version.
const PREFIX: &str = "q1";
/// Characters of the id that stand in a button.
const ID_CHARS: usize = 32;

/// A button of a question: one of the answers that it offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuestionButton {
    /// Which question.
    pub question: QuestionId,
    /// Which answer, from 0.
    pub option: usize,
}

impl QuestionButton {
    /// What the button carries.
    #[must_use]
    pub fn data(&self) -> String {
        format!("{PREFIX}{}{}", self.question.0.simple(), self.option)
    }

    /// Reads a button's data; `None` if the button is not ours.
    #[must_use]
    pub fn read(data: &str) -> Option<Self> {
        let rest = data.strip_prefix(PREFIX)?;
        if !rest.is_ascii() || rest.len() != ID_CHARS + 1 {
            return None;
        }
        let (id, option) = rest.split_at(ID_CHARS);
        let option = option.parse().ok().filter(|n| *n < OPTIONS_MAX)?;
        let question = QuestionId(Uuid::try_parse(id).ok()?);
        Some(Self { question, option })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_button_is_read_back() {
        let question: QuestionId = "0198c5de-1234-7abc-8def-0123456789ab".parse().unwrap();
        for option in 0..OPTIONS_MAX {
            let button = QuestionButton { question, option };
            assert!(button.data().len() <= 64);
            assert_eq!(QuestionButton::read(&button.data()), Some(button));
        }
        let data = QuestionButton {
            question,
            option: 0,
        }
        .data();
        for wrong in [
            String::new(),
            "q1".to_owned(),
            data.replacen("q1", "a1", 1),
            data.replacen("q1", "q2", 1),
            format!("{data}0"),
            format!("{}9", &data[..data.len() - 1]),
            format!("{}-", &data[..data.len() - 1]),
            "q1".to_owned() + &"é".repeat(16) + "0",
        ] {
            assert_eq!(QuestionButton::read(&wrong), None, "{wrong}");
        }
    }
}
