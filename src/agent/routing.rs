//! Asking the routing agent of a network who is next. Each of its answers is a step of the run, so that a resumed run reads
//! it and does not ask again; none of them is a turn.

use tracing::{debug, info, warn};
use vocative_contract::crash;

use crate::agent::ending::requeue;
use crate::agent::failing::{Failure, Next, Tried, after};
use crate::agent::network::Journey;
use crate::agent::run::UnderLease;
use crate::agent::step::{ModelStep, answers_behind, record};
use crate::llm::{Answer, ModelError, Request, ToolChoice, ToolSpec};
use vocative_core::prompting::{ClassEstimate, PromptMessage, TokenCounter as _};
use vocative_core::routing::router::{
    ANSWER_MAX_TOKENS, ASKED_MAX, Asking, Choice, DONE, Routed, RouterWord, SELECT_AGENT,
    answer_schema, messages, read, select_schema, wrong_answer,
};
use vocative_core::routing::{Course, Decided, Facts, on_routed};
use vocative_core::run::{Finish, Usage};
use vocative_store::StoreError;
use vocative_store::contract::{LeaseOutcome, RecordedStep};
use vocative_store::spending::{ModelCall, Purpose, Spending};

/// What came of asking once.
enum RouterAsked {
    /// It said something.
    Said(Answer),
    /// It said nothing that can be used, and is not asked again now.
    Failed(ModelError),
    /// The lease was lost.
    Stale,
}

impl Journey<'_> {
    /// Asks the routing agent and decides by its word. Returns with that its reason and the steps of the run behind it;
    /// `None` = the run went another way.
    pub(super) async fn ask_router(
        &self,
        course: &Course,
        facts: &Facts<'_>,
        decided: Decided,
    ) -> Result<Option<(Decided, String, u32)>, StoreError> {
        let working = self.working;
        let begun = tokio::time::Instant::now();
        let asking = self.routed(course, facts, &decided);
        let signs = working.show_working(None);
        let (routed, words, steps) = match working.hold(self.face, begun, signs, asking).await? {
            UnderLease::Done(Ok(Some(routed))) => routed,
            UnderLease::Done(Ok(None)) => return Ok(None),
            UnderLease::Done(Err(failure)) => match self.router_failed(course, failure).await? {
                Some(routed) => routed,
                None => return Ok(None),
            },
            UnderLease::BrokenOff(work) => {
                working.end_otherwise(self.face, work, self.age).await?;
                return Ok(None);
            }
        };
        let decided = on_routed(&self.of.network, facts, decided, &routed);
        Ok(Some((decided, words, steps)))
    }

    /// The routing agent's word, by its answers so far and by asking.
    async fn routed(
        &self,
        course: &Course,
        facts: &Facts<'_>,
        decided: &Decided,
    ) -> Result<Result<Option<(Routed, String, u32)>, ModelError>, StoreError> {
        let claimed = self.working.claimed;
        let choices = self.choices(facts);
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
                        RouterAsked::Failed(cause) => return Ok(Err(cause)),
                        RouterAsked::Stale => return Ok(Ok(None)),
                    }
                }
            };
            let call = answer.tool_calls.first();
            let call = call.map(|call| (call.name.as_str(), &call.arguments));
            let RouterWord { pick, reason } = read(&choices, &answer.text, call);
            match pick {
                Ok(routed) => return Ok(Ok(Some((routed, reason, number)))),
                Err(named) => {
                    info!(run.id = %claimed.run.id, asked = asked + 1, "the routing agent's answer does not count");
                    wrong = Some(wrong_answer(&choices, &named));
                }
            }
        }
        let words = wrong.unwrap_or_default();
        Ok(Ok(Some((
            Routed::NoAnswer,
            words,
            course.steps() + ASKED_MAX,
        ))))
    }

    fn choices(&self, facts: &Facts<'_>) -> Vec<Choice> {
        let members = self.of.network.members.iter();
        let enabled = members.filter(|agent| !facts.disabled.contains(*agent));
        enabled
            .map(|agent| Choice {
                name: agent.clone(),
                description: self.of.descriptions.get(agent).cloned().unwrap_or_default(),
            })
            .collect()
    }

    /// Asks once, in the first form that the model takes, and records what it says.
    async fn ask_once(
        &self,
        number: u32,
        choices: &[Choice],
        ask: impl Fn(Asking) -> Vec<PromptMessage>,
    ) -> Result<RouterAsked, StoreError> {
        let working = self.working;
        let (claimed, router) = (working.claimed, &self.of.router);
        let schema = answer_schema(choices);
        let tools = router_tools(choices);
        let hooking = working.hooking(self.face).await?;
        let mut asking = self.of.asking();
        // Where the run has a place at this model it is the run's: one that tries a model that rested is the only one.
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
        let (mut answer, sent) = loop {
            let asked = ask(asking);
            let without = hooking.before_model(&asked, &[]);
            let asked = without.map_or(asked, |without| without.messages);
            let request = Request {
                messages: &asked,
                tools: if asking == Asking::Tool { &tools } else { &[] },
                tool_choice: if asking == Asking::Tool {
                    ToolChoice::Required
                } else {
                    ToolChoice::Auto
                },
                answer_schema: (asking == Asking::Schema).then_some(&schema),
                max_output_tokens: Some(ANSWER_MAX_TOKENS),
                ..Request::default()
            };
            debug!(run.id = %claimed.run.id, step = number, model = router.model.name(), "the routing agent is asked");
            crash::point("model.called");
            let answered = router.model.complete(&request).await;
            crash::point("model.answered");
            place.note(&answered).await;
            match (answered, asking.next()) {
                (Ok(answer), _) => break (answer, asked),
                // It does not take this form: the next one is tried, now and from now on.
                (Err(ModelError::Refused { reason }), Some(next)) => {
                    info!(
                        model = router.model.name(),
                        reason,
                        "the routing agent's model refuses this form of a question; another is tried"
                    );
                    self.of.learn_asking(next);
                    asking = next;
                }
                // What it says is cut, or nothing: an answer that does not count.
                (Err(ModelError::Empty | ModelError::Truncated), _) => break (no_answer(), asked),
                (Err(cause), _) => return Ok(RouterAsked::Failed(cause)),
            }
        };
        self.spend(&sent, &answer).await?;
        let verdicts = hooking.heard(number, &mut answer);
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
            .record_judged_step(claimed.run.id, claimed.token, recorded, now_ms)
            .await?;
        Ok(match kept {
            LeaseOutcome::Written => RouterAsked::Said(step.answer),
            LeaseOutcome::Stale => RouterAsked::Stale,
        })
    }

    /// Counts what an answer of the routing agent cost.
    async fn spend(&self, sent: &[PromptMessage], answer: &Answer) -> Result<(), StoreError> {
        let (worker, claimed) = (self.working.worker, self.working.claimed);
        let router = &self.of.router;
        let count = |text: &str| u64::from(ClassEstimate.count(text));
        let usage = match answer.usage.total() {
            0 => Usage {
                prompt_tokens: sent.iter().map(|message| count(&message.content)).sum(),
                completion_tokens: count(&answer.text),
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

    /// The routing agent's model can't answer: the run is tried again, in the end without it.
    async fn router_failed(
        &self,
        course: &Course,
        cause: ModelError,
    ) -> Result<Option<(Routed, String, u32)>, StoreError> {
        let working = self.working;
        let failure = Failure::Model(cause);
        let tried = Tried {
            attempts: working.claimed.attempts_used(),
            max_attempts: self.face.max_attempts,
            age_ms: self.age.now_ms(),
            answer_within_ms: self.face.answer_within_ms,
        };
        let reason = format!("the routing agent: {}", failure.reason());
        match after(&failure, tried) {
            Next::Again(again) => {
                requeue(working.worker, working.claimed, again, &reason).await?;
                Ok(None)
            }
            Next::GiveUp(_) => {
                warn!(run.id = %working.claimed.run.id, reason, "the routing agent is given up; the default agent takes over");
                Ok(Some((Routed::NoAnswer, reason, course.steps())))
            }
        }
    }
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

fn router_tools(choices: &[Choice]) -> Vec<ToolSpec> {
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
