//! Asks the routing agent of a network which agent is next. Each of its answers is a step of the run, so that a
//! resumed run reads it and does not ask again; none of them is a turn.

use tracing::{debug, info, warn};
use vocative_contract::crash;

use crate::agent::failing::{AfterFailure, Again, AttemptFailure, after};
use crate::agent::hooking::{Hooking, RunJudged};
use crate::agent::letting_go::requeue;
use crate::agent::models::ModelSlot;
use crate::agent::network::{BUSY_WAIT_MS, Journey};
use crate::agent::step::{ModelStep, answers_behind, record};
use crate::agent::working::{RunEnd, UnderLease};
use crate::llm::{Answer, ModelError, Request, ToolChoice, ToolSpec};
use vocative_core::hooking::HookVerdict;
use vocative_core::prompting::{ClassEstimate, PromptMessage, TokenCounter as _};
use vocative_core::routing::router::{
    ANSWER_MAX_TOKENS, ASKED_MAX, DONE, Routed, RouterChoice, RouterForm, RouterWord, SELECT_AGENT,
    answer_schema, messages, read, select_schema, wrong_answer,
};
use vocative_core::routing::{Course, Decided, Facts, on_routed};
use vocative_core::run::{Finish, Usage};
use vocative_core::running::budget::{NextRequest, RunUse};
use vocative_store::StoreError;
use vocative_store::contract::{LeaseOutcome, RecordedStep};
use vocative_store::spending::{ModelCall, Purpose, Spending};

/// The result of asking once.
enum RouterAsked {
    /// It answered.
    Said(Answer),
    /// It gave no usable answer, and is not asked again now.
    Failed(ModelError),
    /// It is not asked, or the lease was lost.
    Over(RunEnd),
}

/// The result of asking for one decision.
enum Routing {
    /// The decision, the reason that it gave, and the number of steps of the run after it.
    Word(Routed, String, u32),
    /// Its model can't answer.
    Failed(ModelError),
    /// The run ends or waits.
    Over(RunEnd),
}

impl Journey<'_> {
    /// Asks the routing agent and decides by its answer. Also returns its reason and the number of steps of the run
    /// after it; `None` = the run ended or waits.
    pub(super) async fn ask_router(
        &self,
        course: &Course,
        facts: &Facts<'_>,
        decided: Decided,
    ) -> Result<Option<(Decided, String, u32)>, StoreError> {
        let working = self.working;
        if self.is_router_busy() {
            let again = Again {
                wait_ms: BUSY_WAIT_MS,
                counts: false,
            };
            let reason = "the routing agent's model has no place free";
            requeue(working.worker, working.claimed, again, reason).await?;
            return Ok(None);
        }
        let begun = tokio::time::Instant::now();
        let asking = self.routed(course, facts, &decided);
        let signs = working.show_working(None);
        let (routed, words, steps) = match working.hold(self.face, begun, signs, asking).await? {
            UnderLease::Done(Routing::Word(routed, words, steps)) => (routed, words, steps),
            UnderLease::Done(Routing::Failed(failure)) => {
                match self.router_failed(course, failure).await? {
                    Some(routed) => routed,
                    None => return Ok(None),
                }
            }
            UnderLease::Done(Routing::Over(work)) | UnderLease::BrokenOff(work) => {
                working.end_otherwise(self.face, work, self.age).await?;
                return Ok(None);
            }
        };
        let decided = on_routed(&self.of.network, facts, decided, &routed);
        Ok(Some((decided, words, steps)))
    }

    /// Whether the routing agent's model, if it is not the one at which the run has a place, has as many runs as it
    /// may.
    fn is_router_busy(&self) -> bool {
        let (worker, model) = (self.working.worker, &self.of.router.model_use);
        model.name != self.working.place.model() && worker.models.is_busy(model)
    }

    /// The routing agent's decision, from its answers so far and by asking.
    async fn routed(
        &self,
        course: &Course,
        facts: &Facts<'_>,
        decided: &Decided,
    ) -> Result<Routing, StoreError> {
        let claimed = self.working.claimed;
        let choices = self.choices(facts);
        if choices.is_empty() {
            let words = "none of its agents works here".to_owned();
            return Ok(Routing::Word(Routed::NoAnswer, words, course.steps()));
        }
        let stored = self.working.worker.store.steps(claimed.run.id).await?;
        let mut answers = answers_behind(course.steps(), &stored);
        let mut wrong: Option<String> = None;
        let keys: Vec<String> = self.of.network.state.0.keys().cloned().collect();
        let line = decided.state.line(&keys);
        for asked in 0..ASKED_MAX {
            let number = course.steps() + asked + 1;
            let answer = match answers.is_empty() {
                false => answers.remove(0),
                true => {
                    let ask = |asking| {
                        messages(
                            &choices,
                            course,
                            line.as_deref(),
                            &self.asked.text,
                            asking,
                            wrong.as_deref(),
                        )
                    };
                    match self.ask_once(number, &choices, ask).await? {
                        RouterAsked::Said(answer) => answer,
                        RouterAsked::Failed(cause) => return Ok(Routing::Failed(cause)),
                        RouterAsked::Over(work) => return Ok(Routing::Over(work)),
                    }
                }
            };
            let call = answer.tool_calls.first();
            let call = call.map(|call| (call.name.as_str(), &call.arguments));
            let RouterWord { pick, reason } = read(&choices, &answer.text, call);
            match pick {
                Ok(routed) => return Ok(Routing::Word(routed, reason, number)),
                Err(named) => {
                    info!(run.id = %claimed.run.id, asked = asked + 1, "the routing agent's answer does not count");
                    wrong = Some(wrong_answer(&choices, &named));
                }
            }
        }
        let words = wrong.unwrap_or_default();
        Ok(Routing::Word(
            Routed::NoAnswer,
            words,
            course.steps() + ASKED_MAX,
        ))
    }

    fn choices(&self, facts: &Facts<'_>) -> Vec<RouterChoice> {
        let members = self.of.network.members.iter();
        let enabled = members.filter(|agent| !facts.disabled.contains(*agent));
        enabled
            .map(|agent| RouterChoice {
                name: agent.clone(),
                description: self.of.descriptions.get(agent).cloned().unwrap_or_default(),
            })
            .collect()
    }

    /// Asks once, in the first form that the model takes, and records what it says.
    async fn ask_once(
        &self,
        number: u32,
        choices: &[RouterChoice],
        ask: impl Fn(RouterForm) -> Vec<PromptMessage>,
    ) -> Result<RouterAsked, StoreError> {
        let working = self.working;
        let (claimed, router) = (working.claimed, &self.of.router);
        let hooking = working.hooking(self.face).await?;
        // If the run has its place at this model, that place is used: while a resting model is tried, it takes no
        // second one.
        let own_place = match router.model_use.name == working.place.model() {
            true => None,
            false => {
                let models = &working.worker.models;
                Some(models.begin(&router.model_use, claimed.run.id))
            }
        };
        let place = own_place.as_ref().unwrap_or(working.place);
        if let Some(refused) = place.refused() {
            return Ok(RouterAsked::Failed(refused));
        }
        let asked = ask(self.of.asking());
        if let Some(over) = self.judged_request(&hooking, number, &asked).await? {
            return Ok(RouterAsked::Over(over));
        }
        if let Some(over) = self.is_too_much(&asked).await? {
            return Ok(RouterAsked::Over(over));
        }
        debug!(run.id = %claimed.run.id, step = number, model = router.model.name(), "the routing agent is asked");
        let (mut answer, sent) = match self.in_some_form(place, &hooking, choices, ask).await {
            Ok(answered) => answered,
            Err(cause) => return Ok(RouterAsked::Failed(cause)),
        };
        self.spend(&sent, &answer).await?;
        let mut verdicts = hooking.heard(number, &mut answer);
        let judging = hooking.answered(number, &mut answer, &mut verdicts);
        if let RunJudged::Refused(why) = judging.await {
            return Ok(RouterAsked::Over(self.refused(why, verdicts).await?));
        }
        let step = ModelStep {
            number,
            model: router.model_use.name.clone(),
            answer,
            results: None,
            ends_calls: false,
        };
        let recorded = RecordedStep {
            number,
            message: record(&step),
            usage: step.answer.usage,
            verdicts,
        };
        let now_ms = (working.worker.clock)();
        let store = &working.worker.store;
        let kept = store
            .record_step(claimed.run.id, claimed.token, recorded, now_ms)
            .await?;
        Ok(match kept {
            LeaseOutcome::Written => RouterAsked::Said(step.answer),
            LeaseOutcome::Stale => RouterAsked::Over(RunEnd::LeaseLost),
        })
    }

    /// Asks in the form that the model accepted before, and in further ones while it refuses. Also returns the
    /// messages that were sent.
    async fn in_some_form(
        &self,
        place: &ModelSlot,
        hooking: &Hooking,
        choices: &[RouterChoice],
        ask: impl Fn(RouterForm) -> Vec<PromptMessage>,
    ) -> Result<(Answer, Vec<PromptMessage>), ModelError> {
        let router = &self.of.router;
        let (schema, tools) = (answer_schema(choices), router_tools(choices));
        let mut asking = self.of.asking();
        let answered = loop {
            let asked = ask(asking);
            let without = hooking.before_model(&asked, &[]);
            let asked = without.map_or(asked, |without| without.messages);
            let by_tool = asking == RouterForm::Tool;
            let request = Request {
                messages: &asked,
                tools: if by_tool { &tools } else { &[] },
                tool_choice: match by_tool {
                    true => ToolChoice::Required,
                    false => ToolChoice::Auto,
                },
                answer_schema: (asking == RouterForm::Schema).then_some(&schema),
                max_output_tokens: Some(ANSWER_MAX_TOKENS),
                ..Request::default()
            };
            crash::point("model.called");
            let answered = router.model.complete(&request).await;
            crash::point("model.answered");
            place.note(&answered).await;
            match (answered, asking.next()) {
                (Ok(answer), _) => break (answer, asked),
                // The model does not accept this form, or this question.
                (Err(ModelError::Refused { reason }), Some(next)) => {
                    info!(
                        model = router.model.name(),
                        reason,
                        "the routing agent's model refuses this form of a question; another is tried"
                    );
                    asking = next;
                }
                // The answer is cut off or empty: an answer that does not count.
                (Err(ModelError::Empty | ModelError::Truncated), _) => break (no_answer(), asked),
                (Err(cause), _) => return Err(cause),
            }
        };
        // The model refused the form, not the question, since it answered the question in another form.
        self.of.learn_asking(asking);
        Ok(answered)
    }

    /// How the run ends if hooks say that a request is not sent.
    async fn judged_request(
        &self,
        hooking: &Hooking,
        number: u32,
        asked: &[PromptMessage],
    ) -> Result<Option<RunEnd>, StoreError> {
        let new = asked.last().map_or("", |message| message.content.as_str());
        let model = &self.of.router.model_use.name;
        let (judged, verdicts) = hooking.before_request(number, new, model).await;
        match judged {
            RunJudged::Refused(why) => self.refused(why, verdicts).await.map(Some),
            RunJudged::Goes if verdicts.is_empty() => Ok(None),
            RunJudged::Goes => Ok((!self.keep(verdicts).await?).then_some(RunEnd::LeaseLost)),
        }
    }

    /// Stores the verdicts of hooks that don't let the run go on, and returns its end.
    async fn refused(&self, why: String, verdicts: Vec<HookVerdict>) -> Result<RunEnd, StoreError> {
        Ok(match self.keep(verdicts).await? {
            true => RunEnd::Refused(why),
            false => RunEnd::LeaseLost,
        })
    }

    /// Stores verdicts of hooks. Returns whether the lease is still held.
    async fn keep(&self, verdicts: Vec<HookVerdict>) -> Result<bool, StoreError> {
        let (worker, claimed) = (self.working.worker, self.working.claimed);
        let now_ms = (worker.clock)();
        let kept = worker
            .store
            .keep_verdicts(claimed.run.id, claimed.token, verdicts, now_ms);
        Ok(kept.await? == LeaseOutcome::Written)
    }

    /// Whether a request would exceed what the run, a person or a channel may use.
    async fn is_too_much(&self, asked: &[PromptMessage]) -> Result<Option<RunEnd>, StoreError> {
        let (working, worker) = (self.working, self.working.worker);
        let asker = working.claimed.asker;
        let now_ms = (worker.clock)();
        let (rooms, store) = (&worker.rooms, &worker.store);
        let spent_up = rooms.spent_up(store, asker.account, asker.person, now_ms);
        if let Some(spent_up) = spent_up.await? {
            return Ok(Some(RunEnd::SpentUp(spent_up)));
        }
        let usage = Usage {
            prompt_tokens: tokens_of(asked),
            completion_tokens: ANSWER_MAX_TOKENS.into(),
            ..Usage::default()
        };
        let next = NextRequest {
            prompt_tokens: usage.prompt_tokens,
            answer_max_tokens: usage.completion_tokens,
            most_micros: self.of.router.model_use.prices.cost_micros(usage),
        };
        let used = RunUse {
            worked_ms: working.clock.worked_ms(),
            ..store.run_use(working.claimed.run.id).await?
        };
        if let Err(used_up) = self.face.budget.next(used, next) {
            return Ok(Some(RunEnd::RunUsedUp(used_up)));
        }
        if next.most_micros == 0 {
            return Ok(None);
        }
        let too_costly =
            rooms.too_costly(store, asker.account, asker.person, next.most_micros, now_ms);
        Ok(too_costly.await?.map(RunEnd::TooCostly))
    }

    /// Counts what an answer of the routing agent cost.
    async fn spend(&self, sent: &[PromptMessage], answer: &Answer) -> Result<(), StoreError> {
        let (worker, claimed) = (self.working.worker, self.working.claimed);
        let router = &self.of.router;
        let usage = match answer.usage.total() {
            0 => Usage {
                prompt_tokens: tokens_of(sent),
                completion_tokens: ClassEstimate.count(&answer.text).into(),
                ..Usage::default()
            },
            _ => answer.usage,
        };
        let spending = Spending {
            account: claimed.asker.account,
            person: claimed.asker.person,
            purpose: Purpose::Answers,
            usage,
            cost_micros: router.model_use.prices.cost_micros(usage),
            call: Some(ModelCall {
                conversation: claimed.run.conversation,
                agent: claimed.run.agent.clone(),
                model: router.model_use.name.clone(),
                run: Some(claimed.run.id),
            }),
            now_ms: (worker.clock)(),
        };
        worker.store.spend(spending).await
    }

    /// The routing agent's model can't answer: the run is tried again, and finally goes on without it. Its earlier
    /// answers to this decision count as steps of the decision, not of the agent that is called by it.
    async fn router_failed(
        &self,
        course: &Course,
        cause: ModelError,
    ) -> Result<Option<(Routed, String, u32)>, StoreError> {
        let working = self.working;
        let failure = AttemptFailure::Model(cause);
        let reason = format!("the routing agent: {}", failure.reason());
        match after(&failure, self.tried(course)) {
            AfterFailure::Again(again) => {
                requeue(working.worker, working.claimed, again, &reason).await?;
                Ok(None)
            }
            AfterFailure::GiveUp(_) => {
                let run = working.claimed.run.id;
                warn!(run.id = %run, reason, "the routing agent is given up; the default agent takes over");
                let steps = working.worker.store.steps(run).await?;
                let steps = u32::try_from(steps.len()).unwrap_or(u32::MAX);
                Ok(Some((Routed::NoAnswer, reason, steps)))
            }
        }
    }
}

/// The tokens of a prompt, estimated.
fn tokens_of(messages: &[PromptMessage]) -> u64 {
    let counts = messages.iter().map(|it| ClassEstimate.count(&it.content));
    counts.map(u64::from).sum()
}

/// An answer that says nothing.
fn no_answer() -> Answer {
    Answer {
        text: String::new(),
        tool_calls: Vec::new(),
        usage: Usage::default(),
        reported_prompt_tokens: None,
        raw_message: String::new(),
        finish: Finish::Other,
    }
}

fn router_tools(choices: &[RouterChoice]) -> Vec<ToolSpec> {
    let spec = |name: &str, description: &str, schema| ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        schema,
    };
    let done = serde_json::json!({
        "type": "object",
        "properties": { "summary": { "type": "string" } },
        "additionalProperties": false,
    });
    vec![
        spec(
            SELECT_AGENT,
            "Picks the agent that works next.",
            select_schema(choices),
        ),
        spec(DONE, "Says that the request is answered.", done),
    ]
}
