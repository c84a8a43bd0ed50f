//! A run of a network: decisions and agent calls, one after the other, each a row before the next begins.
//!
//! `core/routing` decides. A resumed run reads its rows and goes on after the newest: a decision that was made holds,
//! an agent that answered is not asked again, and the steps and tool calls of an interrupted agent call are replayed
//! as in any run. What the routing agent is asked: `routing`.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use tracing::{info, warn};
use vocative_contract::crash;

use crate::agent::clocks::Age;
use crate::agent::ending::{note, notice};
use crate::agent::failing::{AfterFailure, Again, AttemptFailure, GiveUpNotice, Tried, after};
use crate::agent::hooking::AnswerJudged;
use crate::agent::letting_go::requeue;
use crate::agent::prompting::InNetwork;
use crate::agent::registry::{AgentSpec, NetworkSpec};
use crate::agent::sharing::Delegating;
use crate::agent::step;
use crate::agent::working::{FinishedRun, NetworkSeat, RunEnd, Working};
use crate::capture::reply::{Lead, OtherWords, Reply};
use crate::delivery::live::SETTLE_MS;
use crate::llm::{Answer, read_arguments};
use crate::tools::{SET_STATE, StateDesk};
use vocative_core::delegating::StoredTask;
use vocative_core::ids::AgentName;
use vocative_core::judging::speech::{behind_address, calls_name, opens_with_name, spoken_text};
use vocative_core::presence::{AskedAt, Presence};
use vocative_core::prompting::{ClassEstimate, NetworkTail, PeerWords, content_count};
use vocative_core::routing::state::StateValues;
use vocative_core::routing::{
    AnswerFrom, AskerKind, CallOutcome, Conclusion, Course, Decided, Facts, MemberCall, Network,
    RoutingDecision, SaidBy, StopReason, StoredDecision, conclude, decide,
};
use vocative_core::run::Usage;
use vocative_core::tool_call::{CallState, StoredCall};
use vocative_core::turn::TurnKind;
use vocative_store::StoreError;
use vocative_store::contract::{AskedInRun, LeaseOutcome, RunEnding, ValuesToKeep};

/// How long a run waits for a place at the model of its next agent, in milliseconds.
pub(super) const BUSY_WAIT_MS: i64 = 1_000;

/// The facts about the question that decisions use, besides the course.
pub(super) struct NetworkQuestion {
    /// The question, without the address at its start.
    pub(super) text: String,
    alias: Option<String>,
    chat: String,
    senders: Vec<AskerKind>,
    has_files: bool,
    people: Vec<String>,
    sent_at_ms: i64,
}

/// A run of a network while it is worked on.
pub(super) struct Journey<'a> {
    pub(super) working: &'a Working<'a>,
    /// The agent under whose name the network is addressed; its settings hold for the whole run.
    pub(super) face: &'a Arc<AgentSpec>,
    pub(super) of: &'a NetworkSpec,
    pub(super) asked: NetworkQuestion,
    pub(super) age: Age,
    /// The agent calls that had ended when this attempt began.
    calls_before: u32,
}

impl Working<'_> {
    /// Whether the run is a network's.
    pub(super) fn is_of_network(&self) -> bool {
        let spec = self.worker.registry.get(&self.claimed.run.agent);
        spec.is_some_and(|spec| spec.network.is_some())
    }

    /// Works on the run of a network until it ends, is given back, or waits.
    pub(super) async fn work_as_network(
        &self,
        face: &Arc<AgentSpec>,
        of: &NetworkSpec,
        age: Age,
    ) -> Result<(), StoreError> {
        let store = &self.worker.store;
        let run = self.claimed.run.id;
        let course = match store.network_course(run).await {
            Ok(course) => course,
            Err(StoreError::Undecodable { what }) => {
                return self.give_up(face, GiveUpNotice::Failed, what).await;
            }
            Err(cause) => return Err(cause),
        };
        let asked = store.asked_in_run(run).await?;
        let asked = self.asked(of, asked);
        let asked = match self.task {
            Some(task) => asked.by_agent(task, of),
            None => asked,
        };
        let journey = Journey {
            working: self,
            face,
            of,
            asked,
            age,
            calls_before: course.count(),
        };
        journey.go_on(course).await
    }

    fn asked(&self, of: &NetworkSpec, asked: AskedInRun) -> NetworkQuestion {
        let speech = spoken_text(&asked.texts.join("\n"));
        let named = of
            .names
            .iter()
            .filter(|name| opens_with_name(&speech, name) || calls_name(&speech, name));
        let alias = named.max_by_key(|name| name.chars().count());
        let rooms = &self.worker.rooms;
        let is_admin = |person: &String| rooms.is_admin(self.route.account, person);
        let mut senders = vec![if asked.is_bot {
            AskerKind::Bot
        } else {
            AskerKind::Person
        }];
        // If several people are answered together, each of them must be an admin.
        let are_admins = !asked.people.is_empty() && asked.people.iter().all(is_admin);
        senders.extend(are_admins.then_some(AskerKind::Admin));
        NetworkQuestion {
            alias: alias.cloned(),
            chat: format!("{}/{}", self.route.channel, self.route.target.chat),
            senders,
            has_files: asked.has_files,
            text: self.without_address(&asked.texts, &of.names),
            people: asked.people,
            sent_at_ms: asked.sent_at_ms,
        }
    }
}

impl Working<'_> {
    /// The text of the messages, each without the address of the network at its start.
    fn without_address(&self, texts: &[String], names: &[String]) -> String {
        let identity = &self.room.identity;
        let is_bot = |id: &str| {
            identity.is_self(id)
                || id
                    .strip_prefix('@')
                    .is_some_and(|name| Some(name) == identity.username.as_deref())
        };
        let said = texts
            .iter()
            .map(|text| behind_address(text, &is_bot, names));
        said.collect::<Vec<_>>().join("\n")
    }
}

impl NetworkQuestion {
    /// The question if another agent asks: its text is the task. Who asked that agent, where and when, stays.
    fn by_agent(self, task: &StoredTask, of: &NetworkSpec) -> Self {
        Self {
            text: task.task.clone(),
            alias: Some(of.network.name.to_string()),
            has_files: self.has_files && task.sees_room,
            ..self
        }
    }

    /// Whether an agent with this presence works for all who ask.
    fn is_for(&self, presence: &Presence) -> bool {
        let (channel, chat) = self.chat.split_once('/').unwrap_or_default();
        self.people.iter().all(|person| {
            presence.holds(&AskedAt {
                channel,
                chat,
                person,
                at_ms: self.sent_at_ms,
            })
        })
    }
}

impl Journey<'_> {
    fn network(&self) -> &Network {
        &self.of.network
    }

    /// The name of an agent for people.
    fn display_name(&self, agent: &AgentName) -> String {
        let spec = self.working.worker.registry.get(agent);
        spec.map_or_else(|| agent.to_string(), |it| it.agent.display_name.clone())
    }

    /// Decides and calls, in turn, until the run ends or can't go on. Each turn of the loop adds a row, and there are
    /// at most `max_calls` of each kind.
    async fn go_on(&self, mut course: Course) -> Result<(), StoreError> {
        loop {
            let decision = match course.decision() {
                Some(decision) => decision.clone(),
                None => match self.decide_next(&course).await? {
                    Some(decision) => decision,
                    None => return Ok(()),
                },
            };
            if course.decision().is_none() {
                course.decisions.push(decision.clone());
            }
            let agent = match decision.next {
                Ok((agent, _)) => agent,
                Err(ref reason) => return self.end(&course, reason).await,
            };
            let Some(call) = self.call(&agent, &course).await? else {
                return Ok(());
            };
            course.calls.push(call);
        }
    }

    /// Makes and stores the next decision; `None` = the run ended or waits otherwise.
    async fn decide_next(&self, course: &Course) -> Result<Option<StoredDecision>, StoreError> {
        let network = self.network();
        let (state, state_version) = match course.state(network) {
            Some(state) => (state, None),
            None => self.begin_state().await?,
        };
        let disabled = self.disabled();
        let used = course.used(network);
        let facts = self.facts(course, &state, &used, &disabled);
        let decided = decide(network, &facts);
        let routed = match decided.decision {
            RoutingDecision::AskRouter => self.ask_router(course, &facts, decided).await?,
            RoutingDecision::Call { .. } | RoutingDecision::Stop(_) => {
                Some((decided, String::new(), course.steps()))
            }
        };
        let Some((decided, words, steps)) = routed else {
            return Ok(None);
        };
        let now_ms = (self.working.worker.clock)();
        let decision = stored((course.count(), now_ms), decided, words, steps);
        for agent in &decision.refused {
            info!(run.id = %self.working.claimed.run.id, agent = %agent, "an agent of a network is not to be had here, and is passed over");
        }
        let claimed = self.working.claimed;
        let store = &self.working.worker.store;
        crash::point("decision.before-commit");
        let kept = store.keep_decision(
            claimed.run.id,
            claimed.token,
            decision.clone(),
            state_version,
        );
        let kept = kept.await?;
        Ok((kept == LeaseOutcome::Written).then_some(decision))
    }

    /// The values that the run begins with, and the version of the conversation's values that they were read from.
    async fn begin_state(&self) -> Result<(StateValues, Option<i64>), StoreError> {
        let network = self.network();
        if !self.keeps_values() {
            return Ok((network.state.defaults(), None));
        }
        let conversation = self.working.claimed.run.conversation;
        let store = &self.working.worker.store;
        let kept = store
            .network_state(conversation, network.name.clone())
            .await?;
        Ok(match kept {
            Some(kept) => (network.state.read(&kept.values), Some(kept.version)),
            None => (network.state.defaults(), Some(0)),
        })
    }

    /// Whether the run's values are stored for later runs. They never are where another agent asks: several may ask
    /// at once, and a task is not part of the conversation.
    fn keeps_values(&self) -> bool {
        self.network().persist && self.working.task.is_none()
    }

    /// Agents that may not be called for this question: those that are no longer configured, and those that don't
    /// work in its chat, for its people, or at its time.
    pub(super) fn disabled(&self) -> BTreeSet<AgentName> {
        let registry = &self.working.worker.registry;
        let callable = self.network().callable().into_iter();
        callable
            .filter(|agent| {
                registry
                    .get(agent)
                    .is_none_or(|spec| !self.asked.is_for(&spec.agent.presence))
            })
            .cloned()
            .collect()
    }

    fn facts<'b>(
        &'b self,
        course: &'b Course,
        state: &'b StateValues,
        used: &'b [u32],
        disabled: &'b BTreeSet<AgentName>,
    ) -> Facts<'b> {
        Facts {
            calls: course.count(),
            last: course.last(),
            stack: course.stack(),
            state,
            used,
            disabled,
            is_circling: course.is_circling(),
            alias: self.asked.alias.as_deref(),
            scope: self.working.route.scope,
            chat: &self.asked.chat,
            senders: &self.asked.senders,
            has_files: self.asked.has_files,
            text: &self.asked.text,
        }
    }

    /// Calls an agent and commits the result; `None` = the run ended or waits otherwise.
    async fn call(
        &self,
        agent: &AgentName,
        course: &Course,
    ) -> Result<Option<MemberCall>, StoreError> {
        let worker = self.working.worker;
        let Some(member) = worker.registry.get(agent) else {
            let failed =
                FailedAgentCall::of(format!("the agent {agent} is no longer configured"), None);
            return self.end_call(agent, course, Err(failed), None).await;
        };
        let member = member.chosen(self.working.claimed.asked_model.as_deref());
        let spec = self.as_member(&member);
        let model = worker
            .models
            .first_awake(spec.chain())
            .unwrap_or(&spec.model_use);
        let place = match model.name == self.working.place.model() {
            true => None,
            false if worker.models.is_busy(model) => {
                let again = Again {
                    wait_ms: BUSY_WAIT_MS,
                    counts: false,
                };
                let reason = "the model of its next agent has no place free";
                requeue(worker, self.working.claimed, again, reason).await?;
                return Ok(None);
            }
            false => Some(worker.models.begin(model, self.working.claimed.run.id)),
        };
        let seat = self.seat(&spec, course).await?;
        let working = Working {
            place: place.as_ref().unwrap_or(self.working.place),
            seat: Some(&seat),
            delegating: Delegating {
                sees_room: spec.settings().delegates_see_room(),
                ..self.working.delegating
            },
            ..*self.working
        };
        let language = self.working.room.language();
        info!(run.id = %self.working.claimed.run.id, agent = %agent, call = course.count() + 1, "an agent of a network is called");
        let recorded = working.recorded().await?;
        let (asking, FinishedRun { work, .. }) =
            Box::pin(working.work_with_any(&spec, recorded)).await?;
        working.keep_worked_time(&spec).await;
        drop(place);
        match work {
            RunEnd::Answered(answer) => self.end_call(agent, course, Ok(answer), Some(&seat)).await,
            RunEnd::UsedUp(_) => {
                let reason = format!(
                    "it used up its {} steps without an answer",
                    spec.settings().max_steps
                );
                let failed = FailedAgentCall::of(reason, None);
                self.end_call(agent, course, Err(failed), Some(&seat)).await
            }
            RunEnd::Misshapen(misshapen) => {
                let told = language.answer_misshapen(misshapen.answers.into());
                let reason = "it gave no answer of the form that is set for it".to_owned();
                let failed = FailedAgentCall::of(reason, Some(told));
                self.end_call(agent, course, Err(failed), Some(&seat)).await
            }
            RunEnd::ToolFailed(tool) => {
                let told = language.tool_failed(&tool);
                let reason = format!("{tool} failed, without which it gives no answer");
                let failed = FailedAgentCall::of(reason, Some(told));
                self.end_call(agent, course, Err(failed), Some(&seat)).await
            }
            RunEnd::Failed(failure) => self.failed(agent, course, failure, &seat).await,
            other => {
                self.working.end_otherwise(&asking, other, self.age).await?;
                Ok(None)
            }
        }
    }

    /// The agent as a member of the network: budget and limits of the run are the network's.
    fn as_member(&self, member: &Arc<AgentSpec>) -> Arc<AgentSpec> {
        let face = self.face;
        // Calls that were made by runs which this run started count as its own.
        let whole = self.working.delegating.calls_max;
        let calls_below = whole.saturating_sub(face.calls_per_run);
        let calls_max = |own: u32| match self.working.task {
            Some(_) => own.min(whole),
            None => own,
        };
        let of_run = |spec: &AgentSpec| AgentSpec {
            budget: face.budget,
            calls_per_run: calls_max(spec.calls_per_run).saturating_sub(calls_below),
            max_attempts: face.max_attempts,
            answer_within_ms: face.answer_within_ms,
            fallbacks: Vec::new(),
            ..spec.clone()
        };
        let fallbacks = member.fallbacks.iter().map(|spec| Arc::new(of_run(spec)));
        Arc::new(AgentSpec {
            fallbacks: fallbacks.collect(),
            ..of_run(member)
        })
    }

    /// What the agent is sent of the run so far, and the values as its calls before this attempt left them.
    async fn seat(&self, spec: &AgentSpec, course: &Course) -> Result<NetworkSeat, StoreError> {
        let network = self.network();
        let run = self.working.claimed.run.id;
        let steps_before = course.steps();
        let calls = self.working.worker.store.tool_calls(run).await?;
        let state = course
            .state(network)
            .unwrap_or_else(|| network.state.defaults());
        let of = |by_agent: &std::collections::BTreeMap<AgentName, Vec<String>>| {
            by_agent.get(&spec.name).cloned().unwrap_or_default()
        };
        let reads = of(&network.reads);
        let line = state.line(&reads);
        let desk = StateDesk::new(network.state.clone(), of(&network.writes), state);
        let own: Vec<&StoredCall> = calls
            .iter()
            .filter(|call| call.step > steps_before)
            .collect();
        for call in own
            .iter()
            .filter(|call| call.tool == SET_STATE && call.state == CallState::Done)
        {
            let arguments = read_arguments(&call.arguments).unwrap_or(Value::Null);
            // The value was accepted when it was set, by the same schema unless the configuration has changed.
            if let Err(wrong) = desk.apply(&arguments) {
                warn!(run.id = %run, wrong, "a value that was set before is not taken any more");
            }
        }
        let said = course
            .calls
            .iter()
            .filter(|call| call.outcome == CallOutcome::Done && !call.text.trim().is_empty());
        let words = said.clone().map(|call| PeerWords {
            name: self.display_name(&call.agent),
            is_own: call.agent == spec.name,
            text: call.text.clone(),
        });
        Ok(NetworkSeat {
            network: InNetwork {
                name: network.name.clone(),
                calls: course.count(),
                tail: NetworkTail {
                    words: words.collect(),
                    state: line,
                },
                said: said.map(|call| call.n).collect(),
                reads,
            },
            steps_before,
            is_fresh: own.is_empty(),
            desk: Arc::new(desk),
        })
    }

    /// How often and how long the next decision or agent call was tried. Each agent call has attempts of its own.
    pub(super) fn tried(&self, course: &Course) -> Tried {
        Tried {
            attempts: match course.count() > self.calls_before {
                true => 1,
                false => self.working.claimed.attempts_used(),
            },
            max_attempts: self.face.max_attempts,
            age_ms: self.age.now_ms(),
            answer_within_ms: self.face.answer_within_ms,
        }
    }

    /// A model gave no answer: the run is tried again, or the call has failed and the rules go on.
    async fn failed(
        &self,
        agent: &AgentName,
        course: &Course,
        failure: AttemptFailure,
        seat: &NetworkSeat,
    ) -> Result<Option<MemberCall>, StoreError> {
        let working = self.working;
        let reason = failure.reason();
        match (after(&failure, self.tried(course)), &failure) {
            (AfterFailure::Again(again), _) => {
                requeue(working.worker, working.claimed, again, &reason).await?;
                Ok(None)
            }
            // A message that was read is gone, or the run took too long: this ends the run, not only the call.
            (AfterFailure::GiveUp(told), AttemptFailure::Passing(_)) => {
                working.give_up(self.face, told, reason).await?;
                Ok(None)
            }
            (AfterFailure::GiveUp(told), AttemptFailure::Model(_) | AttemptFailure::Final(_)) => {
                warn!(run.id = %working.claimed.run.id, agent = %agent, reason, "an agent of a network failed; its rules go on");
                let told = told.text(working.room.language());
                let failed = FailedAgentCall::of(reason, Some(told));
                self.end_call(agent, course, Err(failed), Some(seat)).await
            }
        }
    }

    /// Commits the end of an agent call with the values after it; `None` = the lease was lost.
    async fn end_call(
        &self,
        agent: &AgentName,
        course: &Course,
        came: Result<Answer, FailedAgentCall>,
        seat: Option<&NetworkSeat>,
    ) -> Result<Option<MemberCall>, StoreError> {
        let (store, claimed) = (&self.working.worker.store, self.working.claimed);
        let run = claimed.run.id;
        let before = course.steps();
        let (steps, calls) = tokio::try_join!(store.steps(run), store.tool_calls(run))?;
        let mut tools: Vec<String> = Vec::new();
        for call in calls.iter().filter(|call| call.step > before) {
            if !tools.contains(&call.tool) {
                tools.push(call.tool.clone());
            }
        }
        let state = match seat {
            Some(seat) => seat.desk.values().to_json(),
            None => course.state(self.network()).unwrap_or_default().to_json(),
        };
        let failed = came.as_ref().err();
        let call = MemberCall {
            n: course.count() + 1,
            agent: agent.clone(),
            outcome: if failed.is_some() {
                CallOutcome::Failed
            } else {
                CallOutcome::Done
            },
            text: came
                .as_ref()
                .map_or_else(|_| String::new(), |answer| answer.text.clone()),
            note: came
                .as_ref()
                .ok()
                .and_then(|answer| note(answer.finish, self.working.room.language())),
            reason: failed.map(|failed| failed.reason.clone()),
            told: failed.and_then(|failed| failed.told.clone()),
            tools,
            state,
            steps: u32::try_from(steps.len()).unwrap_or(u32::MAX),
            usage: step::usage_since(&steps, before),
            at_ms: (self.working.worker.clock)(),
        };
        crash::point("member.before-commit");
        let written = store
            .end_network_call(run, claimed.token, call.clone())
            .await?;
        crash::point("member.after-commit");
        Ok((written == LeaseOutcome::Written).then_some(call))
    }

    /// Ends the run with what its agents said, or says why there is nothing to say.
    async fn end(&self, course: &Course, reason: &StopReason) -> Result<(), StoreError> {
        let working = self.working;
        let run = working.claimed.run.id;
        info!(run.id = %run, calls = course.count(), reason = reason.name(), "a network has come to its end");
        let stored = working.worker.store.steps(run).await?;
        let usage = step::usage_since(&stored, 0);
        let values = self.values_to_keep(course).await?;
        let language = working.room.language();
        let told = |text: String| Reply {
            usage,
            values: values.clone(),
            ..notice(text, RunEnding::Done)
        };
        match conclude(self.network(), course) {
            Conclusion::Said(said) if working.task.is_some() => self.report(&said, usage).await,
            Conclusion::Said(said) => self.say(said, usage, values).await,
            Conclusion::NoAnswer => {
                warn!(run.id = %run, "no_answer: the agents of a network said nothing that is to be posted");
                working
                    .end(self.face, told(language.network_no_answer()))
                    .await
            }
            Conclusion::NoAgent => {
                warn!(run.id = %run, "no_agent: no rule of a network called anybody");
                working
                    .end(self.face, told(language.network_no_agent()))
                    .await
            }
            Conclusion::Failed(call) => {
                let reason = call.reason.clone().unwrap_or_default();
                let text = call
                    .told
                    .clone()
                    .unwrap_or_else(|| GiveUpNotice::Failed.text(language));
                let reason = format!("{}: {reason}", call.agent);
                warn!(run.id = %run, reason, "a run of a network was given up");
                let reply = Reply {
                    usage,
                    ..notice(text, RunEnding::Dead { reason })
                };
                working.end(self.face, reply).await
            }
        }
    }

    /// Gives the words of one agent or of several to the agent that asked. As with the answer of a single agent, no
    /// room reads them, and hooks judge the answer of the agent that asked.
    async fn report(&self, said: &[SaidBy<'_>], usage: Usage) -> Result<(), StoreError> {
        let is_each = self.network().answer_from == AnswerFrom::Each;
        let word = |said: &SaidBy<'_>| match is_each {
            true => format!("{}: {}", self.display_name(said.agent), said.call.text),
            false => said.call.text.clone(),
        };
        let words: Vec<String> = said.iter().map(word).collect();
        let text = words.join("\n\n");
        let reply = Reply {
            tokens: Some(content_count(&text, &ClassEstimate)),
            kind: TurnKind::Message,
            usage,
            ..notice(text, RunEnding::Done)
        };
        self.working.end(self.face, reply).await
    }

    /// Commits the words of one agent or of several. If they replace an earlier answer, they are joined into one.
    async fn say(
        &self,
        said: Vec<SaidBy<'_>>,
        usage: Usage,
        values: Option<ValuesToKeep>,
    ) -> Result<(), StoreError> {
        let working = self.working;
        let is_each = self.network().answer_from == AnswerFrom::Each;
        let mut all = Vec::new();
        let mut verdicts = Vec::new();
        let mut withheld = None;
        for SaidBy { agent, call } in said {
            let spec = working
                .worker
                .registry
                .get(agent)
                .unwrap_or_else(|| Arc::clone(self.face));
            let hooking = working.hooking(&spec).await?;
            let n = if is_each { call.n } else { 0 };
            let judging = hooking.before_post(call.text.clone(), n);
            let (judged, said) = working.keeping_lease(judging).await;
            verdicts.extend(said);
            let text = match judged {
                AnswerJudged::Said(text) => text,
                AnswerJudged::Withheld(why) => {
                    warn!(run.id = %working.claimed.run.id, agent = %agent, "an answer is not posted: a hook withholds it");
                    withheld = Some((spec, why));
                    continue;
                }
            };
            let lead = match working.lead(&spec) {
                Lead::Nobody if is_each => Lead::Prefix(spec.agent.display_name.clone()),
                // The post that is edited may stand under another agent's name.
                Lead::Speaker(speaker) if working.route.replaces_answer => {
                    Lead::Prefix(speaker.name)
                }
                lead => lead,
            };
            all.push((spec, text, lead, call.note.clone()));
        }
        if working.route.replaces_answer && all.len() > 1 {
            let joined: Vec<String> = all
                .iter()
                .map(|(_, text, lead, _)| format!("{}{text}", lead.prefix_among_others()))
                .collect();
            let (spec, _, _, note) = all.remove(all.len() - 1);
            all = vec![(spec, joined.join("\n\n"), Lead::Nobody, note)];
        }
        let Some((spec, text, lead, note)) = all.pop() else {
            let nothing = || {
                let text = working.room.language().network_no_answer();
                (Arc::clone(self.face), text)
            };
            let (spec, text) = withheld.unwrap_or_else(nothing);
            let reply = Reply {
                usage,
                values,
                verdicts,
                ..notice(text, RunEnding::Done)
            };
            return working.end(&spec, reply).await;
        };
        let before = all.into_iter().map(|(spec, text, lead, note)| OtherWords {
            tokens: Some(content_count(&text, &ClassEstimate)),
            speaker: spec.name.clone(),
            display_name: spec.agent.display_name.clone(),
            text,
            lead,
            note,
        });
        let reply = Reply {
            tokens: Some(content_count(&text, &ClassEstimate)),
            text,
            is_json: spec.agent.answer_form.is_some(),
            lead,
            note,
            kind: TurnKind::Message,
            ending: RunEnding::Done,
            usage,
            live_settle_ms: SETTLE_MS,
            verdicts,
            before: before.collect(),
            values,
        };
        working.end(&spec, reply).await
    }

    /// The values to store for later runs, if this run changed them and no other run did meanwhile.
    async fn values_to_keep(&self, course: &Course) -> Result<Option<ValuesToKeep>, StoreError> {
        let network = self.network();
        let Some(state) = course.state(network).filter(|_| self.keeps_values()) else {
            return Ok(None);
        };
        let (store, run) = (&self.working.worker.store, &self.working.claimed.run);
        let (read_version, kept) = tokio::try_join!(
            store.run_state_version(run.id),
            store.network_state(run.conversation, network.name.clone()),
        )?;
        let read_version = read_version.unwrap_or(0);
        let (version, before) = kept.map_or((0, String::new()), |kept| (kept.version, kept.values));
        let values = state.to_json();
        if version != read_version {
            warn!(run.id = %run.id, "the values of a conversation were changed meanwhile; those of this run are not kept");
            return Ok(None);
        }
        Ok((values != before).then_some(ValuesToKeep {
            network: network.name.clone(),
            read_version,
            values,
        }))
    }
}

/// Why an agent call failed.
struct FailedAgentCall {
    /// For operators.
    reason: String,
    /// For the room.
    told: Option<String>,
}

impl FailedAgentCall {
    fn of(reason: String, told: Option<String>) -> Self {
        Self { reason, told }
    }
}

/// A decision as it is stored.
fn stored(
    (calls, at_ms): (u32, i64),
    decided: Decided,
    words: String,
    steps: u32,
) -> StoredDecision {
    let next = match decided.decision {
        RoutingDecision::Call { agent, by } => Ok((agent, by)),
        RoutingDecision::Stop(reason) => Err(reason),
        RoutingDecision::AskRouter => unreachable!("the routing agent was asked"),
    };
    StoredDecision {
        calls,
        next,
        rule: decided.rule,
        stack: decided.stack,
        state: decided.state.to_json(),
        refused: decided.refused,
        words,
        steps,
        at_ms,
    }
}
