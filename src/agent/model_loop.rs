//! The steps of one run: ask the model, make the calls it asks for, ask again, until it answers.
//!
//! Every model call is recorded before its tools run; what becomes of their calls is in `calling`. A resumed run
//! replays what is recorded.

use tracing::{debug, warn};
use vocative_contract::crash;

use crate::agent::answering::used_up;
use crate::agent::calling::Calls;
use crate::agent::context::shrunk;
use crate::agent::hooking::{RunJudged, SentWithout};
use crate::agent::step::{ModelStep, answer_by_tool, answer_of, failed_tool, record};
use crate::agent::stepping::{Stepping, StepsEnd};
use crate::config::{AnswerForm, FirstTool};
use crate::llm::{Answer, Exchange, ModelError, Request, ToolChoice};
use vocative_core::hooking::HookVerdict;
use vocative_core::ids::RunId;
use vocative_core::prompting::{Scaled, TokenCounter as _};
use vocative_store::StoreError;
use vocative_store::contract::{LeaseOutcome, RecordedStep, StepOutcome};

impl Stepping<'_> {
    /// Goes on after the recorded steps until the run has its answer, or can't have one.
    ///
    /// # Errors
    /// Storage refuses.
    pub(super) async fn work(&self, recorded: Vec<ModelStep>) -> Result<StepsEnd, StoreError> {
        let mut steps = recorded;
        loop {
            if let Some(ended) = self.answered(&steps) {
                return Ok(ended);
            }
            if self.is_used_up(&steps) {
                return Ok(used_up(&steps, self.form));
            }
            let used_tokens = tokens_of_results(&steps, self.counting.counter);
            if let Some(last) = steps.last_mut().filter(|last| last.has_open_calls()) {
                match self.call_tools(last, used_tokens).await? {
                    Calls::Made | Calls::BrokenOff(StepOutcome::Written) => {}
                    Calls::Wait => return Ok(StepsEnd::Waits),
                    Calls::BrokenOff(StepOutcome::Stale) => return Ok(StepsEnd::LeaseLost),
                    Calls::BrokenOff(StepOutcome::SourceGone) => return Ok(StepsEnd::SourceGone),
                }
            }
            let is_over = answer_by_tool(&steps, self.stop_after).is_some();
            if is_over || failed_tool(&steps, self.stop_after_failed).is_some() {
                continue;
            }
            // Deleted messages are not sent again.
            if !steps.is_empty() && !self.store.are_in_room(self.shown.to_vec()).await? {
                return Ok(StepsEnd::SourceGone);
            }
            if !steps.is_empty()
                && let Some(spent_up) = self.spent_up().await?
            {
                return Ok(StepsEnd::SpentUp(spent_up));
            }
            if let Some(refused) = self.place.refused() {
                return Ok(StepsEnd::Failed(refused));
            }
            match self.ask(&steps).await? {
                Ok(step) => steps.push(step),
                Err(ended) => return Ok(ended),
            }
        }
    }

    /// The number in the run of the step after these.
    fn number_behind(&self, steps: &[ModelStep]) -> u32 {
        let made = u32::try_from(steps.len()).unwrap_or(u32::MAX);
        self.steps_before.saturating_add(made).saturating_add(1)
    }

    /// Whether the model may call tools now, and which it must call: the last step is for the answer, and only the
    /// first is forced to call.
    fn tool_choice(&self, steps: &[ModelStep]) -> (ToolChoice, Option<&str>) {
        let is_last = steps.len() + 1 >= self.max_steps as usize;
        let is_mended = answer_of(steps).is_some();
        if is_last || is_mended || steps.iter().any(|step| step.ends_calls) {
            return (ToolChoice::None, None);
        }
        let is_there = |tool: &str| self.tools.iter().any(|it| it.name == tool);
        match self.first_tool {
            FirstTool::Never => (ToolChoice::None, None),
            FirstTool::Any if steps.is_empty() => (ToolChoice::Wanted, None),
            FirstTool::Named(tool) if steps.is_empty() && is_there(tool) => {
                (ToolChoice::Wanted, Some(tool))
            }
            FirstTool::Free | FirstTool::Any | FirstTool::Named(_) => (ToolChoice::Auto, None),
        }
    }

    /// The exchanges of the steps, with the pictures that tools gave.
    async fn exchanges(&self, steps: &[ModelStep]) -> Result<Vec<Exchange>, StoreError> {
        let exchanges = steps.iter().map(|step| {
            let told = self.to_mend(step);
            let exchange = exchange(step, &self.model_use.name);
            (step.number, Exchange { told, ..exchange })
        });
        let mut exchanges: Vec<(u32, Exchange)> = exchanges.collect();
        let run = self.claimed.run.id;
        self.files.show(self.store, run, &mut exchanges).await?;
        Ok(exchanges.into_iter().map(|(_, it)| it).collect())
    }

    /// Asks the model once and records its answer.
    async fn ask(&self, steps: &[ModelStep]) -> Result<Result<ModelStep, StepsEnd>, StoreError> {
        let number = self.number_behind(steps);
        let exchanges = self.exchanges(steps).await?;
        let without = self.hooking.before_model(self.messages, &exchanges);
        let (messages, exchanges) = match &without {
            Some(SentWithout {
                messages,
                exchanges,
            }) => (&messages[..], &exchanges[..]),
            None => (self.messages, &exchanges[..]),
        };
        let (tool_choice, wanted_tool) = self.tool_choice(steps);
        let request = Request {
            messages,
            images: self.images,
            exchanges,
            tools: self.tools,
            tool_choice,
            wanted_tool,
            answer_schema: self.form.map(AnswerForm::schema),
            max_output_tokens: self.max_output_tokens,
            listener: self.telling.listener(),
            caching: self.stable.caching(),
        };
        if let Some(too_costly) = self.too_costly(&request).await? {
            return Ok(Err(StepsEnd::TooCostly(too_costly)));
        }
        let request = match self.within_budget(&request).await? {
            Ok(max_output_tokens) => Request {
                max_output_tokens,
                ..request
            },
            Err(used_up) => return Ok(Err(StepsEnd::RunUsedUp(used_up))),
        };
        if let Some(ended) = self.before_request(number, &request).await? {
            return Ok(Err(ended));
        }
        debug!(run.id = %self.claimed.run.id, step = number, model = self.model.name(), tools = self.tools.len(), "the model is asked");
        let asked_at_ms = (self.clock)();
        crash::point("model.called");
        let answered = self.complete(number, &request).await;
        crash::point("model.answered");
        let took_ms = (self.clock)() - asked_at_ms;
        log_answer(self.claimed.run.id, number, took_ms, &answered);
        self.spend(&request, &answered).await?;
        let mut step = match said(answered, !steps.is_empty()) {
            Ok(answer) => ModelStep::said(number, &self.model_use.name, answer),
            Err(ended) => return Ok(Err(*ended)),
        };
        let mut verdicts = self.hooking.heard(number, &mut step.answer);
        let judging = self
            .hooking
            .answered(number, &mut step.answer, &mut verdicts);
        if let RunJudged::Refused(why) = judging.await {
            return self.refused(why, verdicts).await.map(Err);
        }
        if self.record_answer(&step, verdicts).await? == LeaseOutcome::Stale {
            return Ok(Err(StepsEnd::LeaseLost));
        }
        if !step.answer.tool_calls.is_empty()
            && let Some(listener) = self.telling.listener()
        {
            listener.interlude();
        }
        // Only the first request consists of the prompt alone.
        if steps.is_empty() {
            let (reported, now_ms) = (step.answer.reported_prompt_tokens, (self.clock)());
            let learning = self
                .counting
                .learn(self.store, self.tools, reported, now_ms);
            learning.await;
        }
        Ok(Ok(step))
    }

    /// The end of the run without a request, if hooks don't let it be sent.
    async fn before_request(
        &self,
        number: u32,
        request: &Request<'_>,
    ) -> Result<Option<StepsEnd>, StoreError> {
        let new = match request.exchanges.last() {
            None => request.messages.last().map(|it| it.content.clone()),
            Some(last) => {
                let results = last.results.iter().map(|result| result.content.as_str());
                Some(
                    results
                        .chain([last.told.as_str()])
                        .collect::<Vec<_>>()
                        .join("\n"),
                )
            }
        };
        let (new, model) = (new.unwrap_or_default(), &self.model_use.name);
        let judging = self.hooking.before_request(number, &new, model);
        let (judged, verdicts) = judging.await;
        match judged {
            RunJudged::Refused(why) => self.refused(why, verdicts).await.map(Some),
            RunJudged::Goes if verdicts.is_empty() => Ok(None),
            RunJudged::Goes => {
                let is_kept = self.keep(verdicts).await?;
                Ok((!is_kept).then_some(StepsEnd::LeaseLost))
            }
        }
    }

    /// Stores verdicts of hooks. Returns whether the lease is still held.
    async fn keep(&self, verdicts: Vec<HookVerdict>) -> Result<bool, StoreError> {
        let (run, token) = (self.claimed.run.id, self.claimed.token);
        let kept = self
            .store
            .keep_verdicts(run, token, verdicts, (self.clock)());
        Ok(kept.await? == LeaseOutcome::Written)
    }

    /// Stores the verdicts of hooks that don't let the run go on, and returns its end.
    async fn refused(
        &self,
        why: String,
        verdicts: Vec<HookVerdict>,
    ) -> Result<StepsEnd, StoreError> {
        Ok(match self.keep(verdicts).await? {
            true => StepsEnd::Refused(why),
            false => StepsEnd::LeaseLost,
        })
    }

    /// Records what the model answered.
    async fn record_answer(
        &self,
        step: &ModelStep,
        verdicts: Vec<HookVerdict>,
    ) -> Result<LeaseOutcome, StoreError> {
        self.telling.settled().await;
        let claimed = self.claimed;
        let recorded = RecordedStep {
            number: step.number,
            message: record(step),
            usage: step.answer.usage,
            verdicts,
        };
        let (run, token) = (claimed.run.id, claimed.token);
        let recorded = self
            .store
            .record_step(run, token, recorded, (self.clock)())
            .await?;
        crash::point("step.recorded");
        Ok(recorded)
    }

    /// Asks the model; once more with shorter tool results if the request exceeded its context.
    async fn complete(&self, number: u32, request: &Request<'_>) -> Result<Answer, ModelError> {
        let answered = self.model.complete(request).await;
        self.place.note(&answered).await;
        let is_too_long = matches!(answered, Err(ModelError::ContextTooLong { .. }));
        if !is_too_long || request.exchanges.is_empty() {
            return answered;
        }
        warn!(run.id = %self.claimed.run.id, step = number, "the prompt is too long for the model; asking again with less of what tools gave");
        let exchanges = shrunk(request.exchanges);
        let request = Request {
            exchanges: &exchanges,
            ..*request
        };
        let answered = self.model.complete(&request).await;
        self.place.note(&answered).await;
        answered
    }
}

/// The model's answer, or the end of the run without one.
fn said(answered: Result<Answer, ModelError>, has_steps: bool) -> Result<Answer, Box<StepsEnd>> {
    let ended = match answered {
        Ok(answer) if answer.text.trim().is_empty() && answer.tool_calls.is_empty() => {
            StepsEnd::Failed(ModelError::Empty)
        }
        Ok(answer) => return Ok(answer),
        Err(ModelError::ContextTooLong { limit, asked }) => StepsEnd::TooLong {
            limit,
            asked,
            has_steps,
        },
        Err(cause) => StepsEnd::Failed(cause),
    };
    Err(Box::new(ended))
}

/// Logs the result of asking the model; never what it said.
fn log_answer(run: RunId, step: u32, took_ms: i64, answered: &Result<Answer, ModelError>) {
    let answer = match answered {
        Ok(answer) => answer,
        Err(cause) => {
            debug!(run.id = %run, step, took_ms, error = %cause, "the model did not answer");
            return;
        }
    };
    debug!(
        run.id = %run, step, took_ms, prompt_tokens = answer.usage.prompt_tokens,
        completion_tokens = answer.usage.completion_tokens, tool_calls = answer.tool_calls.len(),
        "the model answered"
    );
}

/// A step as a model is shown it. The provider's own message goes back only to the model that said it: others can't
/// read what is sealed in it, and refuse it.
fn exchange(step: &ModelStep, asked: &str) -> Exchange {
    let is_own = step.model.is_empty() || step.model == asked;
    Exchange {
        told: String::new(),
        text: step.answer.text.clone(),
        calls: step.answer.tool_calls.clone(),
        results: step.results.clone().unwrap_or_default(),
        raw_message: if is_own {
            step.answer.raw_message.clone()
        } else {
            String::new()
        },
    }
}

fn tokens_of_results(steps: &[ModelStep], counter: &Scaled) -> usize {
    let results = steps.iter().filter_map(|step| step.results.as_ref());
    let contents = results.flatten().map(|result| result.content.as_str());
    contents
        .map(|content| counter.count(content) as usize)
        .sum()
}

#[cfg(test)]
#[path = "tests/stepping.rs"]
mod tests;
