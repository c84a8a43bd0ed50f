//! Questions to people.

use serde::{Deserialize, Serialize};

use vocative_core::approving::Requester;
use vocative_core::questioning::StoredQuestion;
use vocative_core::words::Language;

/// A question to a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionView {
    /// Its id.
    pub id: String,
    /// How it stands: `open`, `answered`, `expired`, `cancelled`.
    pub state: String,
    /// The channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The platform's id of the chat that its run answers in.
    pub chat: String,
    /// The run that it belongs to.
    pub run: String,
    /// The agent.
    pub agent: String,
    /// What is asked; empty once it was forgotten.
    pub question: String,
    /// The answers that it offers.
    pub options: Vec<String>,
    /// Whose answer counts.
    pub asked: Vec<String>,
    /// When it was asked, in milliseconds since the Unix epoch.
    pub asked_at_ms: i64,
    /// When it expires, in milliseconds since the Unix epoch.
    pub expires_at_ms: Option<i64>,
    /// When it was answered or ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at_ms: Option<i64>,
    /// Who answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// The answer; absent also once its turn is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

impl QuestionView {
    /// The view of a question in a channel.
    #[must_use]
    pub fn of(question: StoredQuestion, channel: Option<String>) -> Self {
        let asked = match question.is_for_experts {
            true => vec![question.asked_names(Language::English)],
            false => {
                let asked = question.asked.iter().map(Requester::name);
                asked.map(str::to_owned).collect()
            }
        };
        let (answered_by, answer) = match question.answer {
            Some(answer) => (Some(answer.by), answer.text),
            None => (None, None),
        };
        Self {
            id: question.id.to_string(),
            state: question.state.name().to_owned(),
            channel,
            chat: question.chat,
            run: question.run.to_string(),
            agent: question.agent.to_string(),
            question: question.text,
            options: question.options,
            asked,
            asked_at_ms: question.expiry.asked_at_ms,
            expires_at_ms: question.expiry.expires_at_ms,
            ended_at_ms: question.ended_at_ms,
            answered_by,
            answer,
        }
    }
}
