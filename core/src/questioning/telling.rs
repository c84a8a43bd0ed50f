//! What people and the model are told of a question.

use serde_json::json;

use crate::questioning::{EXPERTS, NotCounted, QuestionState, StoredQuestion};
use crate::words::Language;

/// What the model is told of its question; `None` while it is open.
#[must_use]
pub fn result_text(question: &StoredQuestion) -> Option<String> {
    Some(match question.state {
        QuestionState::Open => return None,
        QuestionState::Answered => match &question.answer {
            Some(answer) => match &answer.text {
                Some(text) if question.is_for_experts => {
                    json!({"answered_by": answer.by, "of": EXPERTS, "answer": text}).to_string()
                }
                Some(text) => json!({"answered_by": answer.by, "answer": text}).to_string(),
                None => format!(
                    "{} answered, and the answer was deleted since. Go on without it",
                    answer.by
                ),
            },
            None => "the answer is gone. Go on without it".to_owned(),
        },
        QuestionState::Expired => {
            let asked = question.asked_names(Language::English);
            format!(
                "nobody answered in time ({asked} was asked). Say so, and go on without an answer"
            )
        }
        QuestionState::Cancelled => {
            "the question was taken back before anybody answered. Go on without an answer"
                .to_owned()
        }
    })
}

/// What a person is told if their press or reply is not the answer.
#[must_use]
pub fn not_counted_text(not: NotCounted, asked: &str, language: Language) -> String {
    match not {
        NotCounted::NotAsked => language.question_for_others(asked),
        NotCounted::Over(QuestionState::Answered) => language.question_answered(),
        NotCounted::Over(QuestionState::Expired) => language.question_expired(),
        NotCounted::Over(QuestionState::Cancelled) => language.question_cancelled(),
        NotCounted::Over(QuestionState::Open) | NotCounted::NotThisPost => {
            language.button_not_valid()
        }
        NotCounted::NotYet => language.question_being_posted(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::approving::{ApprovalDeadline, Requester};
    use crate::ids::{AccountId, AgentName};
    use crate::questioning::StoredAnswer;

    #[test]
    fn the_model_is_told_who_said_what() {
        let id = "0198c5de-1234-7abc-8def-0123456789ab";
        let mut question = StoredQuestion {
            id: id.parse().unwrap(),
            run: id.parse().unwrap(),
            account: AccountId(1),
            chat: "C1".to_owned(),
            agent: AgentName::trusted("helper"),
            text: "Which?".to_owned(),
            options: Vec::new(),
            is_for_experts: false,
            asked: vec![Requester {
                id: "U1".to_owned(),
                display_name: Some("Ann".to_owned()),
                username: None,
            }],
            state: QuestionState::Open,
            expiry: ApprovalDeadline {
                asked_at_ms: 0,
                expires_at_ms: Some(1),
            },
            ended_at_ms: None,
            answer: Some(StoredAnswer {
                by: "Ann".to_owned(),
                turn: id.parse().unwrap(),
                text: Some("the \"blue\" one".to_owned()),
            }),
        };
        let mut told = |state| {
            question.state = state;
            result_text(&question).unwrap_or_default()
        };
        let answered = told(QuestionState::Answered);
        assert_eq!(
            answered,
            r#"{"answered_by":"Ann","answer":"the \"blue\" one"}"#
        );
        assert!(
            told(QuestionState::Expired).starts_with("nobody answered in time (Ann was asked)")
        );
        assert!(told(QuestionState::Cancelled).starts_with("the question was taken back"));
        assert_eq!(told(QuestionState::Open), "");
        question.state = QuestionState::Answered;
        question.answer.as_mut().unwrap().text = None;
        assert!(result_text(&question).unwrap().contains("deleted since"));
    }
}
