//! Has a run's question answered: by the model at which it has a place, or by that model's fallbacks.

use std::sync::Arc;

use tokio::time::Instant;
use tracing::info;
use vocative_contract::outbound::Target;

use crate::agent::answering::in_form;
use crate::agent::attached::ToolFiles;
use crate::agent::context::learnt_limit;
use crate::agent::counting::Counting;
use crate::agent::events::RunEvents;
use crate::agent::failing::{AttemptFailure, chain};
use crate::agent::holding::end_of;
use crate::agent::preparing::{PreparedRequest, record_sent};
use crate::agent::prompting::BuiltPrompt;
use crate::agent::registry::AgentSpec;
use crate::agent::stable::Stable;
use crate::agent::step::{self, ModelStep};
use crate::agent::stepping::{AskedIn, RESULTS_MAX_TOKENS, Stepping, StepsEnd};
use crate::agent::telling::{FirstWordsTimer, ListenerGroup};
use crate::agent::working::{FinishedRun, RunEnd, UnderLease, Working};
use crate::config::Seconds;
use crate::delivery::live::LiveReply;
use crate::llm::{Answer, Listener, ModelError};
use vocative_core::prompting::Prompt;
use vocative_core::run::ClaimedRun;
use vocative_store::StoreError;

impl Working<'_> {
    /// Works with the model at which the run has a place, and with its fallbacks while that one can't answer. Returns
    /// the agent with the model whose result counts.
    pub(super) async fn work_with_any(
        &self,
        spec: &Arc<AgentSpec>,
        recorded: Vec<ModelStep>,
    ) -> Result<(Arc<AgentSpec>, FinishedRun), StoreError> {
        let (models, run) = (&self.worker.models, self.claimed.run.id);
        let mut asking = spec.asking(self.place.model());
        let mut worked = Box::pin(self.work(&asking, recorded)).await?;
        let mut asked = vec![asking.model_use.name.clone()];
        loop {
            let failure = match worked.work {
                RunEnd::Failed(failure) if failure.falls_back() => failure,
                _ => return Ok((asking, worked)),
            };
            let mut others = spec.chain().filter(|model| !asked.contains(&model.name));
            let Some(next) = others.find(|model| models.is_open(model)) else {
                worked.work = RunEnd::Failed(failure);
                return Ok((asking, worked));
            };
            info!(run.id = %run, model = next.name, reason = failure.reason(), "another model is asked in place of one that can't answer");
            let place = models.begin(next, run);
            asked.push(next.name.clone());
            let fallback = spec.asking(&next.name);
            let working = Working {
                place: &place,
                is_fallback: true,
                ..*self
            };
            let recorded = working.recorded().await?;
            let again = Box::pin(working.work(&fallback, recorded)).await?;
            worked.live_settle_ms = worked.live_settle_ms.max(again.live_settle_ms);
            worked.work = match again.work {
                RunEnd::Failed(of_fallback) => RunEnd::Failed(failure.sooner(of_fallback)),
                work => {
                    asking = fallback;
                    work
                }
            };
        }
    }

    /// Makes the prompt and lets the model work, unless an earlier attempt already has its answer.
    async fn work(
        &self,
        spec: &AgentSpec,
        recorded: Vec<ModelStep>,
    ) -> Result<FinishedRun, StoreError> {
        let (worker, claimed) = (self.worker, self.claimed);
        note_replayed(claimed, &recorded);
        if let Some(work) = self.without_asking(spec, &recorded) {
            return Ok(work.into());
        }
        let skills = self.skills(spec).await?;
        let spec = &spec.fitted().listing(&skills);
        let begun = Instant::now();
        let (built, hooking) = match self.begun(spec, begun).await? {
            UnderLease::Done(begun) => begun,
            UnderLease::BrokenOff(work) => return Ok(work.into()),
        };
        let toolbox = self.toolbox(spec, skills).await?;
        let tools = self.tools(&toolbox, &recorded).await?;
        if recorded.is_empty() && self.task.is_none() {
            record_sent(worker, claimed, spec, &built, &tools).await;
        }
        let experts = self.room_of_experts(spec);
        let events = self.events(spec, recorded.len());
        let live = self.begin_live(spec);
        let words = Arc::new(FirstWordsTimer::new(claimed.run.id));
        let stepping = Stepping {
            store: &worker.store,
            rooms: &worker.rooms,
            clock: &worker.clock,
            claimed,
            agent: &spec.name,
            display_name: &spec.agent.display_name,
            steps_before: self.steps_before(),
            model: &*spec.model,
            model_use: &spec.model_use,
            place: self.place,
            messages: &built.prompt.messages,
            shown: &built.prompt.turns,
            images: &built.prompt.images,
            toolbox: &toolbox,
            files: ToolFiles::of(worker.room.as_deref(), spec.files),
            tools: &tools,
            max_steps: spec.settings().max_steps,
            first_tool: &spec.agent.first_tool,
            stop_after: &spec.settings().stop_after_tools,
            stop_after_failed: &spec.settings().stop_after_failed_tools,
            form: spec.agent.answer_form.as_ref(),
            budget: spec.budget,
            work_clock: self.clock,
            results_max_tokens: results_max_tokens(spec, &built.prompt),
            counting: Counting::of(spec, &built),
            stable: Stable::of(&built),
            max_output_tokens: spec.output_tokens(),
            hooking: &hooking,
            delegating: self.delegating,
            asked_in: self.asked_in(spec, experts.as_ref()),
            telling: telling(&words, live.as_ref()).and_events(Arc::clone(&events)),
        };
        stepping.telling.void(self.is_fallback);
        let working = Box::pin(self.step(spec, &built, stepping, recorded));
        let holding = self.hold(spec, begun, self.show_working(live.as_ref()), working);
        let telling = events.during(holding, &worker.store, claimed, &worker.clock);
        let held = telling.await;
        let live_settle_ms = end_of(live).await;
        let work = match held? {
            UnderLease::Done(ended) => judge(ended, claimed.attempts_used()),
            UnderLease::BrokenOff(RunEnd::TooLong { longest })
                if !self.place.was_heard() && !words.has_begun() =>
            {
                self.fell_silent(longest).await
            }
            UnderLease::BrokenOff(work) => work,
        };
        Ok(FinishedRun {
            work,
            live_settle_ms,
        })
    }

    /// Lets the model work; once more with a shorter prompt if the first exceeded its context.
    async fn step(
        &self,
        spec: &AgentSpec,
        built: &BuiltPrompt,
        stepping: Stepping<'_>,
        recorded: Vec<ModelStep>,
    ) -> Result<StepsEnd, StoreError> {
        let ended = stepping.work(recorded).await?;
        let StepsEnd::TooLong {
            limit,
            asked,
            has_steps,
        } = ended
        else {
            return Ok(ended);
        };
        let sent = stepping.counting.prompt_tokens;
        let learnt = learnt_limit(limit, asked, sent, spec.answer_reserve);
        spec.model.learn_context_limit(learnt);
        self.worker.keep_context_limit(spec).await;
        if has_steps {
            return Ok(ended);
        }
        let (worker, claimed) = (self.worker, self.claimed);
        let smaller = spec.fitted();
        let found = Some((built.history.recalled.clone(), built.memories.clone()));
        let built = match self.prepare(&smaller, found).await? {
            PreparedRequest::Prompt(built) => built,
            PreparedRequest::Not(_) => return Ok(ended),
        };
        if !self.mark(&built).await? {
            return Ok(StepsEnd::LeaseLost);
        }
        if self.task.is_none() {
            record_sent(worker, claimed, &smaller, &built, stepping.tools).await;
        }
        let again = Stepping {
            messages: &built.prompt.messages,
            shown: &built.prompt.turns,
            images: &built.prompt.images,
            results_max_tokens: results_max_tokens(&smaller, &built.prompt),
            counting: Counting::of(&smaller, &built),
            stable: Stable::of(&built),
            max_output_tokens: smaller.output_tokens(),
            ..stepping
        };
        again.work(Vec::new()).await
    }

    /// The end of the run without asking its model: an earlier attempt's answer, or that the model must not be asked.
    fn without_asking(&self, spec: &AgentSpec, recorded: &[ModelStep]) -> Option<RunEnd> {
        let answer = step::answer_of(recorded);
        let form = spec.agent.answer_form.as_ref();
        if let Some(Ok(answer)) = answer.map(|answer| in_form(form, answer)) {
            return Some(RunEnd::Answered(answer));
        }
        let refused = self.place.refused()?;
        Some(RunEnd::Failed(AttemptFailure::Model(refused)))
    }

    /// The model gave no answer until the deadline: it counts as down rather than slow.
    async fn fell_silent(&self, longest: Seconds) -> RunEnd {
        let cause = format!("no word within {} s", longest.0);
        let error = ModelError::Unavailable { cause };
        self.place.note::<Answer>(&Err(error.clone())).await;
        RunEnd::Failed(AttemptFailure::Model(error))
    }

    /// The recorded steps of the work: of the run, or of its agent call.
    pub(super) async fn recorded(&self) -> Result<Vec<ModelStep>, StoreError> {
        let (store, run) = (&self.worker.store, self.claimed.run.id);
        let (steps, calls) = tokio::try_join!(store.steps(run), store.tool_calls(run))?;
        Ok(step::replay_behind(self.steps_before(), &steps, &calls))
    }

    /// The steps of the run before its agent call; of a run of one agent, none.
    fn steps_before(&self) -> u32 {
        self.seat.map_or(0, |seat| seat.steps_before)
    }

    /// The events of the work.
    fn events(&self, spec: &AgentSpec, recorded_steps: usize) -> Arc<RunEvents> {
        let is_discreet = spec.holds_answers_back();
        let recorded_steps = self.steps_before() as usize + recorded_steps;
        Arc::new(RunEvents::new(recorded_steps).discreet(is_discreet))
    }

    /// Where people are asked.
    fn asked_in<'b>(&'b self, spec: &AgentSpec, experts: Option<&'b Target>) -> AskedIn<'b> {
        AskedIn {
            renderer: &*self.room.renderer,
            place: &self.route.target,
            experts,
            question_expires_ms: spec.settings().question_expires_s.ms(),
            language: self.room.language(),
        }
    }

    /// Where the agent's experts are asked.
    fn room_of_experts(&self, spec: &AgentSpec) -> Option<Target> {
        let chat = spec.agent.experts.get(&self.route.channel)?.clone();
        Some(Target {
            chat,
            thread: None,
            topic: None,
            reply_to: None,
        })
    }
}

/// The listeners for the model's words.
fn telling(words: &Arc<FirstWordsTimer>, live: Option<&LiveReply>) -> ListenerGroup {
    let telling = ListenerGroup::default().and(Arc::clone(words) as Arc<dyn Listener>);
    match live {
        Some(live) => telling.and(live.listener()),
        None => telling,
    }
}

fn note_replayed(claimed: &ClaimedRun, recorded: &[ModelStep]) {
    if !recorded.is_empty() {
        info!(run.id = %claimed.run.id, steps = recorded.len(), "recorded steps are replayed instead of asking the model again");
    }
}

/// The tokens that the model's context leaves for results, within their own limit.
fn results_max_tokens(spec: &AgentSpec, prompt: &Prompt) -> usize {
    let taken =
        prompt.tokens + prompt.instruction_tokens + prompt.recalled_tokens + spec.answer_reserve;
    let left = spec
        .context_limit
        .map_or(usize::MAX, |limit| limit.saturating_sub(taken));
    left.min(RESULTS_MAX_TOKENS)
}

fn judge(ended: StepsEnd, attempt: u32) -> RunEnd {
    match ended {
        StepsEnd::Answered(answer) => RunEnd::Answered(answer),
        StepsEnd::UsedUp(usage) => RunEnd::UsedUp(usage),
        StepsEnd::Misshapen(misshapen) => RunEnd::Misshapen(misshapen),
        StepsEnd::ToolFailed(tool) => RunEnd::ToolFailed(tool),
        StepsEnd::SpentUp(spent_up) => RunEnd::SpentUp(spent_up),
        StepsEnd::TooCostly(too_costly) => RunEnd::TooCostly(too_costly),
        StepsEnd::RunUsedUp(used_up) => RunEnd::RunUsedUp(used_up),
        StepsEnd::Refused(why) => RunEnd::Refused(why),
        StepsEnd::Waits => RunEnd::Waits,
        StepsEnd::LeaseLost => RunEnd::LeaseLost,
        StepsEnd::SourceGone => {
            let reason = "a message that it had read was deleted meanwhile".to_owned();
            RunEnd::Failed(AttemptFailure::Passing(reason))
        }
        // The next attempt's prompt is made to fit the learnt context.
        StepsEnd::TooLong {
            limit,
            asked,
            has_steps,
        } => {
            let reason = chain(&ModelError::ContextTooLong { limit, asked });
            RunEnd::Failed(match has_steps && attempt == 1 {
                true => AttemptFailure::Passing(reason),
                false => AttemptFailure::Final(reason),
            })
        }
        // The model was asked twice already; a third time would give the same.
        StepsEnd::Failed(cause @ ModelError::Truncated) => {
            RunEnd::Failed(AttemptFailure::Final(chain(&cause)))
        }
        StepsEnd::Failed(error) => RunEnd::Failed(AttemptFailure::Model(error)),
    }
}
