//! Model calls besides the answers of runs: for summaries, for memory, and for whom a message was meant. Their cost
//! is counted, whatever becomes of the answer.

use std::time::Duration;

use tracing::warn;

use crate::agent::models::ModelSlot;
use crate::agent::registry::BackgroundModel;
use crate::hooks::Hooks;
use crate::llm::{Answer, ModelError, Request};
use vocative_core::hooking::HookPoint;
use vocative_core::ids::{AccountId, AgentName, ConversationId, ParticipantId};
use vocative_core::price::Prices;
use vocative_core::prompting::{ClassEstimate, PromptMessage, TokenCounter as _};
use vocative_core::run::Usage;
use vocative_store::Store;
use vocative_store::capability::MayUseModels;
use vocative_store::spending::{ModelCall, Purpose, Spending};

/// Counts what background work costs.
pub struct CostMeter<'a, C> {
    /// Where the cost is counted.
    pub store: &'a Store<C>,
    /// The account that pays.
    pub account: AccountId,
    /// What the model is asked for.
    pub purpose: Purpose,
    /// The person whose question it is about; `None` = nobody's.
    pub person: Option<ParticipantId>,
    /// The model call that is counted.
    pub call: ModelCall,
    /// What tokens cost.
    pub prices: Prices,
    /// The time of the call, in milliseconds since the Unix epoch.
    pub now_ms: i64,
}

impl<'a, C: MayUseModels> CostMeter<'a, C> {
    /// The meter for work of an agent in a conversation; without a model nothing is counted.
    pub fn new(
        store: &'a Store<C>,
        purpose: Purpose,
        (account, conversation, agent): (AccountId, ConversationId, &AgentName),
        model: Option<&BackgroundModel>,
        now_ms: i64,
    ) -> Self {
        let model_use = model.map(|it| &it.model_use);
        Self {
            store,
            account,
            purpose,
            person: None,
            call: ModelCall {
                conversation,
                agent: agent.clone(),
                model: model_use.map_or_else(String::new, |it| it.name.clone()),
                run: None,
            },
            prices: model_use.map_or_else(Prices::default, |it| it.prices),
            now_ms,
        }
    }

    /// Counts the cost of an answer; an estimate if the model does not report its usage.
    async fn count(&self, asked: &[PromptMessage], answer: &Answer) {
        let count = |text: &str| u64::from(ClassEstimate.count(text));
        let usage = match answer.usage.total() {
            0 => Usage {
                prompt_tokens: asked.iter().map(|message| count(&message.content)).sum(),
                completion_tokens: count(&answer.text),
                ..Usage::default()
            },
            _ => answer.usage,
        };
        let spending = Spending {
            account: self.account,
            person: self.person,
            purpose: self.purpose,
            usage,
            cost_micros: self.prices.cost_micros(usage),
            call: Some(self.call.clone()),
            now_ms: self.now_ms,
        };
        if let Err(cause) = self.store.spend(spending).await {
            warn!(error = %cause, "the tokens of background work could not be counted");
        }
    }
}

/// How a model is asked outside runs.
pub struct BackgroundAsking<'a, C> {
    /// The model.
    pub model: &'a BackgroundModel,
    /// Removes words from the messages that it is sent and from its answer.
    pub hooks: &'a Hooks,
    /// How long it may take.
    pub deadline: Duration,
    /// The place that is taken at the model.
    pub place: Option<&'a ModelSlot>,
    /// Counts what it costs.
    pub meter: &'a CostMeter<'a, C>,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum NoAnswer {
    /// The model rests: it is not asked.
    Busy,
    /// The model failed.
    Failed(ModelError),
}

impl<C: MayUseModels> BackgroundAsking<'_, C> {
    /// The model's answer, without the words that hooks remove.
    ///
    /// # Errors
    /// The model rests or failed.
    pub async fn ask(&self, messages: &[PromptMessage]) -> Result<Answer, NoAnswer> {
        if self.place.is_some_and(|place| place.refused().is_some()) {
            return Err(NoAnswer::Busy);
        }
        let without = |message: &PromptMessage| {
            let changed = self
                .hooks
                .without_words(&[HookPoint::BeforeModel], &message.content);
            PromptMessage {
                role: message.role,
                content: changed.unwrap_or_else(|| message.content.clone()),
            }
        };
        let messages: Vec<PromptMessage> = messages.iter().map(without).collect();
        let asked = Request::of(&messages);
        let answer = tokio::time::timeout(self.deadline, self.model.model.complete(&asked));
        let answer = answer.await.unwrap_or_else(|_| {
            let cause = format!("no answer within {} ms", self.deadline.as_millis());
            Err(ModelError::Unavailable { cause })
        });
        if let Some(place) = self.place {
            place.note(&answer).await;
        }
        if let Ok(answer) = &answer {
            self.meter.count(&messages, answer).await;
        }
        let mut answer = answer.map_err(NoAnswer::Failed)?;
        let stored = [HookPoint::AfterModel, HookPoint::BeforeSave];
        if let Some(text) = self.hooks.without_words(&stored, &answer.text) {
            answer.text = text;
        }
        Ok(answer)
    }
}
