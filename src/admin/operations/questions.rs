//! Questions that models ask people.

use super::{Answer, OperationError, Operations, json};
use crate::admin::view::QuestionView;
use vocative_core::ids::QuestionId;
use vocative_core::questioning::StoredQuestion;
use vocative_store::StoreError;

/// The most questions that are listed.
const LISTED_MAX: usize = 500;

impl Operations {
    pub(super) async fn questions(&self, all: bool) -> Answer {
        let mut views = Vec::new();
        for question in self.store.questions(!all, LISTED_MAX).await? {
            let channel = self.channel_of(question.account).await?;
            views.push(QuestionView::of(question, channel));
        }
        Ok(json(&views))
    }

    pub(super) async fn question(&self, id: &str) -> Answer {
        let question = self.stored_question(id).await?;
        let channel = self.channel_of(question.account).await?;
        Ok(json(&QuestionView::of(question, channel)))
    }

    pub(super) async fn cancel_question(&self, id: &str) -> Answer {
        let question = self.stored_question(id).await?;
        let was_open = self.store.cancel_question(question.id, (self.clock)());
        if !was_open.await? {
            let what = format!("{id} is not open any more: it is {}", question.state.name());
            return Err(OperationError::Wrong(what));
        }
        if let Some(running) = &self.running {
            running.wake.runs.notify_one();
            running.wake.posts.notify_one();
        }
        self.question(id).await
    }

    async fn stored_question(&self, id: &str) -> Result<StoredQuestion, OperationError> {
        let none = || OperationError::Wrong(format!("there is no question {id}"));
        let question: QuestionId = id.parse().map_err(|_| none())?;
        match self.store.question(question).await {
            Ok(question) => Ok(question),
            Err(StoreError::NotFound { .. }) => Err(none()),
            Err(other) => Err(other.into()),
        }
    }
}
