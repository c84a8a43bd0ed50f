//! A question as it stands.

use crate::approving::{ApprovalDeadline, Requester};
use crate::ids::{AccountId, AgentName, QuestionId, RunId, TurnId};
use crate::words::Language;

/// How a question stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QuestionState {
    /// It waits for its answer.
    Open,
    /// It was answered.
    Answered,
    /// Nobody answered in time.
    Expired,
    /// Its run ended, its post was deleted, or somebody who runs the daemon took it back.
    Cancelled,
}

impl QuestionState {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Open, Self::Answered, Self::Expired, Self::Cancelled];

    /// The stored and shown name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Answered => "answered",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
        }
    }

    /// The state of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// A question as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredQuestion {
    /// Its identity.
    pub id: QuestionId,
    /// The run that waits.
    pub run: RunId,
    /// The account through which it was asked.
    pub account: AccountId,
    /// The platform's id of the chat that the run answers in.
    pub chat: String,
    /// The agent.
    pub agent: AgentName,
    /// What is asked; empty once it was forgotten.
    pub text: String,
    /// The answers that it offers.
    pub options: Vec<String>,
    /// Whose answer counts: the person it names, or everybody who asked for the run. Nobody is named where it is for
    /// the experts.
    pub asked: Vec<Requester>,
    /// Whether it is asked in a room of experts, where everybody's answer counts.
    pub is_for_experts: bool,
    /// How it stands.
    pub state: QuestionState,
    /// How long it is open.
    pub expiry: ApprovalDeadline,
    /// When it was answered or ended, in milliseconds since the Unix epoch.
    pub ended_at_ms: Option<i64>,
    /// Its answer, if it was answered.
    pub answer: Option<StoredAnswer>,
}

/// An answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredAnswer {
    /// Who gave it, by the best name there is.
    pub by: String,
    /// The turn of the answer.
    pub turn: TurnId,
    /// What it says; `None` once its turn is gone.
    pub text: Option<String>,
}

impl StoredQuestion {
    /// Whom it asks, as people read it.
    #[must_use]
    pub fn asked_names(&self, language: Language) -> String {
        if self.is_for_experts {
            return language.question_experts();
        }
        let names: Vec<&str> = self.asked.iter().map(Requester::name).collect();
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_back() {
        for state in QuestionState::ALL {
            assert_eq!(QuestionState::from_name(state.name()), Some(state));
        }
    }
}
