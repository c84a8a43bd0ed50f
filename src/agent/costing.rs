//! What a request of a run may use, and what it used: caps of the day, the run's own budget, and the ledger.

use crate::agent::stepping::Stepping;
use crate::llm::{Answer, ModelError, Request};
use vocative_core::judging::policy::{SpentUp, TooCostly};
use vocative_core::prompting::TokenCounter as _;
use vocative_core::prompting::files::IMAGE_TOKENS;
use vocative_core::run::Usage;
use vocative_core::running::budget::{NextRequest, RunBudget, RunUse, RunUsedUp};
use vocative_store::StoreError;
use vocative_store::spending::{ModelCall, Purpose, Spending};

impl Stepping<'_> {
    /// Whether the person's or the channel's tokens of the day are used up.
    pub(super) async fn spent_up(&self) -> Result<Option<SpentUp>, StoreError> {
        let (asker, now_ms) = (self.claimed.asker, (self.clock)());
        let rooms = self.rooms;
        rooms
            .spent_up(self.store, asker.account, asker.person, now_ms)
            .await
    }

    /// The most that a request may use: with an answer of the greatest length, and without a cache.
    pub(super) fn most(&self, request: &Request<'_>) -> NextRequest {
        let answer = self.max_output_tokens;
        let usage = Usage {
            completion_tokens: answer.unwrap_or(self.model_use.max_output_tokens).into(),
            ..self.estimated(request, "")
        };
        NextRequest {
            prompt_tokens: usage.prompt_tokens,
            answer_max_tokens: usage.completion_tokens,
            most_micros: self.model_use.prices.cost_micros(usage),
        }
    }

    /// The most tokens that the answer to a request may have within the run's budget.
    pub(super) async fn within_budget(
        &self,
        request: &Request<'_>,
    ) -> Result<Result<Option<u32>, RunUsedUp>, StoreError> {
        if self.budget == RunBudget::default() {
            return Ok(Ok(request.max_output_tokens));
        }
        let used = RunUse {
            worked_ms: self.work_clock.worked_ms(),
            ..self.store.run_use(self.claimed.run.id).await?
        };
        let next = self.most(request);
        Ok(self.budget.next(used, next).map(|answer_max_tokens| {
            match answer_max_tokens < next.answer_max_tokens {
                true => Some(u32::try_from(answer_max_tokens).unwrap_or(u32::MAX)),
                false => request.max_output_tokens,
            }
        }))
    }

    /// Whether a request could pass a cap of the day, in money.
    pub(super) async fn too_costly(
        &self,
        request: &Request<'_>,
    ) -> Result<Option<TooCostly>, StoreError> {
        let most_micros = self.most(request).most_micros;
        if most_micros == 0 {
            return Ok(None);
        }
        let asker = self.claimed.asker;
        let (rooms, now_ms) = (self.rooms, (self.clock)());
        rooms
            .too_costly(self.store, asker.account, asker.person, most_micros, now_ms)
            .await
    }

    /// Counts the cost of an answer, whatever becomes of it.
    pub(super) async fn spend(
        &self,
        request: &Request<'_>,
        answered: &Result<Answer, ModelError>,
    ) -> Result<(), StoreError> {
        let usage = match answered {
            Ok(answer) if answer.usage.total() == 0 => self.estimated(request, &answer.text),
            Ok(answer) => answer.usage,
            // The prompt was read, and the answer had the greatest length.
            Err(ModelError::Truncated | ModelError::Empty) => self.estimated(request, ""),
            Err(_) => return Ok(()),
        };
        let asker = self.claimed.asker;
        let spending = Spending {
            account: asker.account,
            person: asker.person,
            purpose: Purpose::Answers,
            usage,
            cost_micros: self.model_use.prices.cost_micros(usage),
            call: Some(ModelCall {
                conversation: self.claimed.run.conversation,
                agent: self.claimed.run.agent.clone(),
                model: self.model_use.name.clone(),
                run: Some(self.claimed.run.id),
            }),
            now_ms: (self.clock)(),
        };
        self.store.spend(spending).await
    }

    /// The estimated usage of a model call for which the model reported none.
    pub(super) fn estimated(&self, request: &Request<'_>, answer: &str) -> Usage {
        let count = |text: &str| u64::from(self.counting.counter.count(text));
        let said = request
            .messages
            .iter()
            .map(|message| count(&message.content));
        let found = request
            .exchanges
            .iter()
            .flat_map(|exchange| &exchange.results);
        let found = found.map(|result| count(&result.content));
        let of_tools = request.exchanges.iter().flat_map(|it| &it.results);
        let of_tools: usize = of_tools.map(|result| result.images.len()).sum();
        let pictures = ((request.images.len() + of_tools) * IMAGE_TOKENS) as u64;
        Usage {
            prompt_tokens: said.chain(found).sum::<u64>() + pictures,
            completion_tokens: count(answer),
            ..Usage::default()
        }
    }
}
