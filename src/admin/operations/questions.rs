//! Questions that models ask people.

use serde::{Deserialize, Serialize};
use vocative_contract::card::CardMisfit;
use vocative_contract::markup::neutral_text;

use super::{OperationError, Operations, Operator};
use crate::admin::view::QuestionView;
use crate::delivery::rooms::Room;
use vocative_core::ids::QuestionId;
use vocative_core::questioning::{QuestionCard, StoredQuestion, answered_card, fitted_question};
use vocative_core::words::Language;
use vocative_store::StoreError;
use vocative_store::contract::OperatorAnswer;

/// The longest answer, in characters.
const ANSWER_MAX_CHARS: usize = 4_000;

/// An operator's answer to a question.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AnsweredQuestion {
    /// The id of the question.
    pub id: String,
    /// What is answered.
    pub text: String,
    /// Who answers.
    pub by: String,
}

impl Operations {
    /// Questions, newest first; only open ones, or all.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn questions(
        &self,
        is_open: bool,
        before: Option<QuestionId>,
        limit: usize,
    ) -> Result<Vec<QuestionView>, OperationError> {
        let mut views = Vec::new();
        for question in self.store.questions(is_open, before, limit).await? {
            let channel = self.channel_of(question.account).await?;
            views.push(QuestionView::of(question, channel));
        }
        Ok(views)
    }

    /// One question.
    ///
    /// # Errors
    /// If it is not there, or the store fails.
    pub async fn question(&self, id: &str) -> Result<QuestionView, OperationError> {
        let question = self.stored_question(id).await?;
        let channel = self.channel_of(question.account).await?;
        Ok(QuestionView::of(question, channel))
    }

    /// Answers a question in place of the people whom it asks.
    ///
    /// # Errors
    /// If it is not there or not open any more, or the answer is empty or too long.
    pub async fn answer_question(
        &self,
        answered: AnsweredQuestion,
        by: &Operator,
    ) -> Result<QuestionView, OperationError> {
        let text = neutral_text(answered.text.trim());
        if text.trim().is_empty() || text.chars().count() > ANSWER_MAX_CHARS {
            let what = format!("an answer has 1 to {ANSWER_MAX_CHARS} characters");
            return Err(OperationError::Wrong(what));
        }
        let question = self.stored_question(&answered.id).await?;
        let room = self.rooms.get(question.account);
        let language = room.as_ref().map_or_else(Language::default, Room::language);
        let shown_by = language.operator_answers(by.name());
        let by = Language::English.operator_answers(by.name());
        let renderer = room.map(|room| room.renderer.clone());
        let asked = question.asked_names(language);
        let card = QuestionCard {
            id: question.id,
            text: &question.text,
            options: &question.options,
            asked: &asked,
            expires_at_ms: question.expiry.expires_at_ms.unwrap_or_default(),
            language,
        };
        let card = answered_card(&card, Some(&shown_by), Some(&text));
        let outcome = fitted_question(&card, &|card| match &renderer {
            Some(renderer) => renderer.render_card(card),
            None => Err(CardMisfit::NoButtons),
        });
        let answer = OperatorAnswer {
            question: question.id,
            text,
            operator: by,
            outcome,
            now_ms: (self.clock)(),
        };
        if !self.store.answer_question(answer).await? {
            return Err(over(&self.stored_question(&answered.id).await?));
        }
        self.wake_work();
        self.question(&answered.id).await
    }

    /// Withdraws a question; its run goes on without an answer.
    ///
    /// # Errors
    /// If it is not there or not open any more.
    pub async fn cancel_question(&self, id: &str) -> Result<QuestionView, OperationError> {
        let question = self.stored_question(id).await?;
        let was_open = self.store.cancel_question(question.id, (self.clock)());
        if !was_open.await? {
            return Err(over(&self.stored_question(id).await?));
        }
        self.wake_work();
        self.question(id).await
    }

    async fn stored_question(&self, id: &str) -> Result<StoredQuestion, OperationError> {
        let none = || OperationError::Missing(format!("there is no question {id}"));
        let question: QuestionId = id.parse().map_err(|_| none())?;
        match self.store.question(question).await {
            Ok(question) => Ok(question),
            Err(StoreError::NotFound { .. }) => Err(none()),
            Err(other) => Err(other.into()),
        }
    }
}

fn over(question: &StoredQuestion) -> OperationError {
    OperationError::Over(format!(
        "{} is not open any more: it is {}",
        question.id,
        question.state.name()
    ))
}
