//! A model that keeps what it is asked to keep: each fact that it reads, in the form and number that the request names.
//! Facts that it loses, every model loses.

use futures_util::future::BoxFuture;
use vocative::llm::{Answer, Model, ModelError, Request};
use vocative_core::folding::FACTS_MAX;
use vocative_core::run::{Finish, Usage};

use super::told::{SummaryFact, ToldConversation};

pub(super) struct Perfect {
    facts: Vec<SummaryFact>,
}

impl Perfect {
    pub(super) fn of(told: &ToldConversation) -> Self {
        Self {
            facts: told.facts.clone(),
        }
    }
}

impl Model for Perfect {
    fn name(&self) -> &'static str {
        "perfect"
    }

    fn complete<'a>(
        &'a self,
        request: &'a Request<'a>,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        let read: Vec<&str> = request
            .messages
            .iter()
            .map(|it| it.content.as_str())
            .collect();
        let read = read.join("\n");
        let facts: Vec<&str> = self
            .facts
            .iter()
            .filter(|fact| read.contains(&fact.text))
            .map(|fact| fact.text.as_str())
            .collect();
        let facts = &facts[facts.len().saturating_sub(FACTS_MAX)..];
        let text = serde_json::json!({"summary": "They talked.", "facts": facts}).to_string();
        let answer = Answer {
            raw_message: text.clone(),
            text,
            usage: Usage::default(),
            reported_prompt_tokens: None,
            tool_calls: Vec::new(),
            finish: Finish::Stop,
        };
        Box::pin(std::future::ready(Ok(answer)))
    }
}
