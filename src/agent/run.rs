//! One claimed run from prompt to committed answer. How it ends in its room: `ending`.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;
use tracing::{debug, info, warn};
use vocative_contract::crash;
use vocative_contract::envelope::Place;
use vocative_contract::outbound::Target;

use crate::agent::answering::{Misshapen, in_form};
use crate::agent::approving::AskedIn;
use crate::agent::attached::ToolFiles;
use crate::agent::context::learnt_limit;
use crate::agent::counting::Counting;
use crate::agent::delegating::{Delegating, whole_of, with_what_is_left};
use crate::agent::ending::{STORAGE_WAIT_MS, end_unserved, end_without_agent, give_back, requeue};
use crate::agent::events::Events;
use crate::agent::failing::{Again, Failure, GiveUpNotice, Next, Tried, after};
use crate::agent::hooking::{BeginJudged, Hooking, RunJudged};
use crate::agent::intent::IntentAsking;
use crate::agent::models::ModelSlot;
use crate::agent::network::Seat;
use crate::agent::prompting::{BuiltPrompt, PromptError, PromptRequest, build_prompt, options_in};
use crate::agent::recall::{RecallFrom, Searching};
use crate::agent::registry::AgentSpec;
use crate::agent::remembered::{MemoryFrom, ShownMemories};
use crate::agent::sent;
use crate::agent::stable::Stable;
use crate::agent::step::{self, ModelStep};
use crate::agent::stepping::{Ended, RESULTS_MAX_TOKENS, Stepping};
use crate::agent::telling::{FirstWords, Telling};
use crate::agent::worker::AgentWorker;
use crate::delivery::live::{self, LiveDesk, LivePlace, LiveReply, SETTLE_MS};
use crate::delivery::rooms::Room;
use crate::files::waiting::wait_for_files;
use crate::llm::{Answer, Listener, ModelError, ToolSpec};
use crate::tools::{
    ASK_HUMAN, ApprovalSettings, BoundTo, CONVERSATION_SEARCH, CallScope, KNOWLEDGE_SEARCH,
    MemoryDesk, PersonName, Planner, SetState, Tool as _, ToolLimits, ToolUse, Toolbox, names,
};
use vocative_core::delegating::StoredTask;
use vocative_core::given::Given;
use vocative_core::hooking::HookPoint;
use vocative_core::ids::{RunId, TurnId};
use vocative_core::judging::policy::{SpentUp, TooCostly};
use vocative_core::options::{AssemblerOptions, MemoryMode, Profile, RecallMode};
use vocative_core::place::ChatName;
use vocative_core::prompting::{Prompt, RunView};
use vocative_core::run::{ClaimedRun, Usage};
use vocative_core::running::budget::RunUsedUp;
use vocative_core::skills::Skill;
use vocative_core::turn::Recount;
use vocative_store::StoreError;
use vocative_store::contract::{LeaseOutcome, Parked, ReplyRoute, RunLease};

/// How long a run is leased, in milliseconds; the lease is extended while the run is worked on.
pub(super) const LEASE_MS: i64 = 60_000;
/// How often that is.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long looking up names may take before a prompt is made with ids in their place.
const NAMES_WAIT: Duration = Duration::from_secs(2);
/// How long a file that was sent just before the question may keep it waiting.
const EARLIER_FILES_WAIT: Duration = Duration::from_secs(2);
/// A prompt that takes longer than this to make is announced by a typing sign of its own.
const SIGN_AFTER: Duration = Duration::from_secs(1);

/// A run that was claimed, with its place at its model.
pub(super) struct Claim {
    pub(super) run: ClaimedRun,
    /// `None` if its agent is no longer configured.
    pub(super) place: Option<ModelSlot>,
    pub(super) age: Age,
}

/// How old a question is, by the run clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Age {
    at_claim_ms: i64,
    claimed: Instant,
}

impl Age {
    pub(super) fn at_claim(at_claim_ms: i64) -> Self {
        Self {
            at_claim_ms: at_claim_ms.max(0),
            claimed: Instant::now(),
        }
    }

    pub(super) fn now_ms(self) -> i64 {
        let elapsed_ms = self.claimed.elapsed().as_millis();
        self.at_claim_ms
            .saturating_add(i64::try_from(elapsed_ms).unwrap_or(i64::MAX))
    }
}

/// A claimed run with where its answer goes.
#[derive(Clone, Copy)]
pub(super) struct Working<'a> {
    pub(super) worker: &'a AgentWorker,
    pub(super) claimed: &'a ClaimedRun,
    pub(super) place: &'a ModelSlot,
    pub(super) room: &'a Room,
    pub(super) route: &'a ReplyRoute,
    pub(super) clock: WorkClock,
    /// What a program gave with its question.
    pub(super) given: &'a Given,
    /// Whether another model was asked before in this attempt.
    pub(super) is_fallback: bool,
    /// The agent call that is worked on, of a run of a network.
    pub(super) seat: Option<&'a Seat>,
    /// What it works on, if another run started it.
    pub(super) task: Option<&'a StoredTask>,
    /// How it asks other agents.
    pub(super) delegating: Delegating,
}

/// How long a run was worked on, all attempts together.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkClock {
    /// In earlier attempts, in milliseconds.
    before_ms: u64,
    since: Instant,
}

impl WorkClock {
    pub(super) fn after(before_ms: u64) -> Self {
        Self {
            before_ms,
            since: Instant::now(),
        }
    }

    pub(super) fn worked_ms(self) -> u64 {
        let elapsed_ms = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.before_ms.saturating_add(elapsed_ms)
    }
}

/// How a run's work ended.
pub(super) enum Work {
    /// An answer to commit.
    Answered(Answer),
    /// Its steps are used up without an answer.
    UsedUp(Usage),
    /// None of its answers has the form that it must have.
    Misshapen(Misshapen),
    /// A call of this tool failed, which ends the run.
    ToolFailed(String),
    /// The day's tokens were used up between two of its steps.
    SpentUp(SpentUp),
    /// Its next request could pass a cap of the day.
    TooCostly(TooCostly),
    /// It has used what one run may use.
    RunUsedUp(RunUsedUp),
    /// A hook does not let it go on, and why: words for the room.
    Refused(String),
    /// What it was to answer was said to somebody else.
    NotMeant,
    /// People are to decide about its calls, or agents to answer them.
    Waits,
    /// Its trigger is gone, or a person said stop.
    Cancelled,
    /// Somebody else holds it.
    LeaseLost,
    /// It gave no answer.
    Failed(Failure),
    /// It took longer than it may.
    TooLong { deadline_ms: u64 },
}

/// How a run's work ended, and what of it may still show up in the room.
pub(super) struct Worked {
    pub(super) work: Work,
    /// How long an edit of its placeholder may still be on its way.
    live_settle_ms: i64,
}

/// What came of something done under the run's lease.
pub(super) enum UnderLease<T> {
    /// It was done.
    Done(T),
    /// It was broken off, and so is the run's work.
    BrokenOff(Work),
}

impl From<Work> for Worked {
    fn from(work: Work) -> Self {
        Self {
            work,
            live_settle_ms: SETTLE_MS,
        }
    }
}

/// What a run asks its model with.
enum PreparedRequest {
    /// Its prompt.
    Prompt(Box<BuiltPrompt>),
    /// The model is not asked: the work has ended like this.
    Not(Work),
}

/// Works on a claimed run until it is answered, given back, given up or cancelled.
pub(super) async fn work_on(worker: Arc<AgentWorker>, claim: Claim) {
    let run_id = claim.run.run.id;
    if let Err(cause) = Box::pin(attempt(&worker, &claim)).await {
        warn!(error = %cause, run.id = %run_id, "a run could not be worked on; trying again");
        let reason = "storage failed";
        give_back(&worker, run_id, claim.run.token, STORAGE_WAIT_MS, reason).await;
    }
    // Its place is free before another run is looked for.
    drop(claim);
    worker.wake.runs.notify_one();
}

async fn attempt(worker: &AgentWorker, claim: &Claim) -> Result<(), StoreError> {
    let claimed = &claim.run;
    let (route, steps, calls, used, task, of_children) = tokio::try_join!(
        worker.store.reply_route(claimed.run.id),
        worker.store.steps(claimed.run.id),
        worker.store.tool_calls(claimed.run.id),
        worker.store.run_use(claimed.run.id),
        worker.store.task_of_run(claimed.run.id),
        worker.store.children_use(claimed.run.id),
    )?;
    let Some(room) = worker.rooms.get(route.account) else {
        let again = Again::counted(claimed.attempts_used());
        return requeue(worker, claimed, again, "the channel is not connected").await;
    };
    let asked_in = Place {
        chat: route.target.chat.clone(),
        kind: route.chat_kind,
        ..Place::default()
    };
    let person = route.person.as_deref();
    if !worker.rooms.still_admits(route.account, &asked_in, person) {
        return end_unserved(worker, claimed, &room, &route).await;
    }
    let spec = worker.spec_of(claimed);
    let (Some(spec), Some(place)) = (spec, &claim.place) else {
        return end_without_agent(worker, claimed, &room, &route).await;
    };
    let (given, undecodable) = given_of(worker, claimed.run.id).await?;
    let whole = whole_of(&spec, task.as_ref());
    let spec = with_what_is_left(&spec, whole, of_children);
    let working = Working {
        worker,
        claimed,
        place,
        room: &room,
        route: &route,
        clock: WorkClock::after(used.worked_ms),
        given: &given,
        is_fallback: false,
        seat: None,
        task: task.as_ref(),
        delegating: whole,
    };
    if let Some(what) = undecodable {
        return working.give_up(&spec, GiveUpNotice::Failed, what).await;
    }
    // Messages that came together were admitted together; not all of them are answered once the day's tokens
    // are spent.
    let asker = claimed.asker;
    let now_ms = (worker.clock)();
    let spent_up = worker
        .rooms
        .spent_up(&worker.store, asker.account, asker.person, now_ms);
    if steps.is_empty()
        && let Some(spent_up) = spent_up.await?
    {
        return working.end_spent_up(&spec, spent_up).await;
    }
    if claimed.attempts_used() > spec.max_attempts {
        let reason = format!("given up after {} attempts", spec.max_attempts);
        return working.give_up(&spec, GiveUpNotice::Failed, reason).await;
    }
    if let Some(network) = &spec.network {
        return Box::pin(working.work_as_network(&spec, network, claim.age)).await;
    }
    let recorded = step::replay(&steps, &calls);
    let (spec, worked) = Box::pin(working.work_with_any(&spec, recorded)).await?;
    let Worked {
        work,
        live_settle_ms,
    } = worked;
    working.keep_worked_time(&spec).await;
    match work {
        Work::Answered(answer) => working.answer(&spec, answer, live_settle_ms).await,
        Work::UsedUp(usage) => working.end_used_up(&spec, usage).await,
        Work::Misshapen(misshapen) => working.end_misshapen(&spec, misshapen).await,
        Work::Failed(failure) => working.fail(&spec, claim.age, failure).await,
        other => working.end_otherwise(&spec, other, claim.age).await,
    }
}

/// What a program gave with its question; where it can't be read, why.
async fn given_of(worker: &AgentWorker, run: RunId) -> Result<(Given, Option<String>), StoreError> {
    match worker.store.given(run).await {
        Ok(given) => Ok((given, None)),
        Err(StoreError::Undecodable { what }) => Ok((Given::default(), Some(what))),
        Err(cause) => Err(cause),
    }
}

impl Working<'_> {
    /// Ends a run whose work was broken off by something else than its model, or lets go of it.
    pub(super) async fn end_otherwise(
        &self,
        spec: &AgentSpec,
        work: Work,
        age: Age,
    ) -> Result<(), StoreError> {
        match work {
            Work::ToolFailed(tool) => self.end_tool_failed(spec, &tool).await,
            Work::SpentUp(spent_up) => self.end_spent_up(spec, spent_up).await,
            Work::TooCostly(too_costly) => self.end_too_costly(spec, too_costly).await,
            Work::RunUsedUp(used_up) => self.end_run_used_up(spec, used_up).await,
            Work::Refused(why) => self.end_refused(spec, why).await,
            Work::NotMeant => self.end_not_meant(spec).await,
            Work::Cancelled => self.cancel(spec).await,
            Work::Waits => self.wait_for_people().await,
            Work::LeaseLost => Ok(()),
            Work::TooLong { deadline_ms } => {
                let reason = format!("it took longer than {deadline_ms} ms");
                self.fail(spec, age, Failure::Passing(reason)).await
            }
            Work::Failed(failure) => self.fail(spec, age, failure).await,
            Work::UsedUp(usage) => self.end_used_up(spec, usage).await,
            Work::Misshapen(misshapen) => self.end_misshapen(spec, misshapen).await,
            Work::Answered(answer) => self.answer(spec, answer, SETTLE_MS).await,
        }
    }

    /// What is recorded of the work: of the run, or of its agent call.
    pub(super) async fn recorded(&self) -> Result<Vec<ModelStep>, StoreError> {
        let (store, run) = (&self.worker.store, self.claimed.run.id);
        let (steps, calls) = tokio::try_join!(store.steps(run), store.tool_calls(run))?;
        Ok(step::replay_behind(self.steps_before(), &steps, &calls))
    }

    /// The steps of the run before its agent call; of a run of one agent, none.
    fn steps_before(&self) -> u32 {
        self.seat.map_or(0, |seat| seat.steps_before)
    }

    /// What the work tells while it is done.
    fn events(&self, spec: &AgentSpec, recorded_steps: usize) -> Arc<Events> {
        let is_discreet = spec.holds_answers_back();
        let recorded_steps = self.steps_before() as usize + recorded_steps;
        Arc::new(Events::new(recorded_steps).discreet(is_discreet))
    }

    /// Works with the model that the run has a place at, and while that can't answer with those that are asked in its
    /// place. Returns the agent as it asked the one that counts.
    pub(super) async fn work_with_any(
        &self,
        spec: &Arc<AgentSpec>,
        recorded: Vec<ModelStep>,
    ) -> Result<(Arc<AgentSpec>, Worked), StoreError> {
        let (models, run) = (&self.worker.models, self.claimed.run.id);
        let mut asking = spec.asking(self.place.model());
        let mut worked = Box::pin(self.work(&asking, recorded)).await?;
        let mut asked = vec![asking.model_use.name.clone()];
        loop {
            let failure = match worked.work {
                Work::Failed(failure) if failure.falls_back() => failure,
                _ => return Ok((asking, worked)),
            };
            let mut others = spec.chain().filter(|model| !asked.contains(&model.name));
            let Some(next) = others.find(|model| models.is_open(model)) else {
                worked.work = Work::Failed(failure);
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
                Work::Failed(of_fallback) => Work::Failed(failure.sooner(of_fallback)),
                work => {
                    asking = fallback;
                    work
                }
            };
        }
    }

    /// The model has said nothing until the deadline: it is down rather than slow.
    async fn fell_silent(&self, deadline_ms: u64) -> Work {
        let cause = format!("no word within {deadline_ms} ms");
        let error = ModelError::Unavailable { cause };
        self.place.note::<Answer>(&Err(error.clone())).await;
        Work::Failed(Failure::Model(error))
    }

    /// The attempt gave no answer: another one follows, or the room is told.
    async fn fail(&self, spec: &AgentSpec, age: Age, failure: Failure) -> Result<(), StoreError> {
        let tried = Tried {
            attempts: self.claimed.attempts_used(),
            max_attempts: spec.max_attempts,
            age_ms: age.now_ms(),
            answer_within_ms: spec.answer_within_ms,
        };
        let reason = failure.reason();
        match after(&failure, tried) {
            Next::GiveUp(notice) => self.give_up(spec, notice, reason).await,
            Next::Again(again) => requeue(self.worker, self.claimed, again, &reason).await,
        }
    }

    /// Lets go of the run until people have decided about its calls, and agents have answered.
    async fn wait_for_people(&self) -> Result<(), StoreError> {
        let (store, wake) = (&self.worker.store, &self.worker.wake);
        let (run, token) = (self.claimed.run.id, self.claimed.token);
        let now_ms = (self.worker.clock)();
        crash::point("park.before-commit");
        let parked = store.park_run(run, token, now_ms).await?;
        crash::point("park.after-commit");
        wake.posts.notify_one();
        match parked {
            Parked::Waits => {
                // Agents that it asked may begin.
                wake.runs.notify_one();
                info!(run.id = %run, "a run waits for people to decide about its tool calls, or for agents to answer");
            }
            Parked::LetGo => {}
            Parked::Decided => {
                let given = store.return_run(run, token, "people have decided", now_ms);
                given.await?;
            }
        }
        Ok(())
    }

    /// Makes the prompt and lets the model work, unless an earlier attempt already has its answer.
    async fn work(&self, spec: &AgentSpec, recorded: Vec<ModelStep>) -> Result<Worked, StoreError> {
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
        let words = Arc::new(FirstWords::new(claimed.run.id));
        let stepping = Stepping {
            store: &worker.store,
            rooms: &worker.rooms,
            clock: &worker.clock,
            claimed,
            agent: &spec.name,
            display_name: &spec.display_name,
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
            max_steps: spec.max_steps,
            first_tool: &spec.first_tool,
            stop_after: &spec.stop_after_tools,
            stop_after_failed: &spec.stop_after_failed_tools,
            form: spec.answer_form.as_ref(),
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
            UnderLease::BrokenOff(Work::TooLong { deadline_ms })
                if !self.place.was_heard() && !words.has_begun() =>
            {
                self.fell_silent(deadline_ms).await
            }
            UnderLease::BrokenOff(work) => work,
        };
        Ok(Worked {
            work,
            live_settle_ms,
        })
    }

    /// The tools that the model is told of: in later requests of a run those of its first.
    async fn tools(
        &self,
        toolbox: &Toolbox,
        recorded: &[ModelStep],
    ) -> Result<Vec<ToolSpec>, StoreError> {
        if recorded.is_empty() || self.task.is_some() {
            return Ok(toolbox.specs());
        }
        let sent = sent::tools_sent(&self.worker.store, self.claimed.run.id).await?;
        Ok(sent.unwrap_or_else(|| toolbox.specs()))
    }

    /// What the run comes to without its model being asked: an earlier attempt's answer, or that nobody can be.
    fn without_asking(&self, spec: &AgentSpec, recorded: &[ModelStep]) -> Option<Work> {
        let answer = step::answer_of(recorded);
        let form = spec.answer_form.as_ref();
        if let Some(Ok(answer)) = answer.map(|answer| in_form(form, answer)) {
            return Some(Work::Answered(answer));
        }
        let refused = self.place.refused()?;
        Some(Work::Failed(Failure::Model(refused)))
    }

    /// The agent's hooks, with what they said of the run before.
    pub(super) async fn hooking(&self, spec: &AgentSpec) -> Result<Hooking, StoreError> {
        let said = match spec.hooks.is_empty() {
            true => Vec::new(),
            false => {
                let run = self.claimed.run.id;
                self.worker.store.hook_verdicts(run).await?
            }
        };
        let call = self.seat.map_or(0, |seat| seat.network.calls + 1);
        let (claimed, route) = (self.claimed, self.route);
        let language = self.room.language();
        Ok(Hooking::of(spec, call, claimed, route, said, language))
    }

    /// The prompt, and the hooks, which have let the run go on.
    async fn begun(
        &self,
        spec: &AgentSpec,
        begun: Instant,
    ) -> Result<UnderLease<(Box<BuiltPrompt>, Hooking)>, StoreError> {
        let built = match self.prompt(spec, begun).await? {
            UnderLease::Done(built) => built,
            UnderLease::BrokenOff(work) => return Ok(UnderLease::BrokenOff(work)),
        };
        Ok(match self.judged_hooking(spec, &built, begun).await? {
            UnderLease::Done(hooking) => UnderLease::Done((built, hooking)),
            UnderLease::BrokenOff(work) => UnderLease::BrokenOff(work),
        })
    }

    /// The same once they have said whether the run's model is asked at all. What they said is kept before it is.
    async fn judged_hooking(
        &self,
        spec: &AgentSpec,
        built: &BuiltPrompt,
        begun: Instant,
    ) -> Result<UnderLease<Hooking>, StoreError> {
        let mut hooking = self.hooking(spec).await?;
        if spec.hooks.at(HookPoint::BeforeRun).next().is_none() {
            return Ok(UnderLease::Done(hooking));
        }
        let asked = built.prompt.messages.last();
        let text = asked.map_or("", |message| message.content.as_str());
        let intent = IntentAsking {
            working: self,
            spec,
            prompt: &built.prompt.messages,
        };
        let judging = hooking.before_run(text, &spec.model_use.name, &intent);
        let signs = self.show_working(None);
        let (judged, verdicts) = match self.hold(spec, begun, signs, judging).await? {
            UnderLease::Done(said) => said,
            UnderLease::BrokenOff(work) => return Ok(UnderLease::BrokenOff(work)),
        };
        let (run, token) = (self.claimed.run.id, self.claimed.token);
        let now_ms = (self.worker.clock)();
        let kept = self
            .worker
            .store
            .keep_verdicts(run, token, verdicts, now_ms);
        if kept.await? == LeaseOutcome::Stale {
            return Ok(UnderLease::BrokenOff(Work::LeaseLost));
        }
        Ok(match judged {
            BeginJudged::Run(RunJudged::Goes) => UnderLease::Done(hooking),
            BeginJudged::Run(RunJudged::Refused(why)) => UnderLease::BrokenOff(Work::Refused(why)),
            BeginJudged::NotMeant => UnderLease::BrokenOff(Work::NotMeant),
        })
    }

    /// Where people are asked.
    fn asked_in<'b>(&'b self, spec: &AgentSpec, experts: Option<&'b Target>) -> AskedIn<'b> {
        AskedIn {
            renderer: &*self.room.renderer,
            place: &self.route.target,
            experts,
            question_expires_ms: spec.question_expires_ms,
            language: self.room.language(),
        }
    }

    /// Where the agent's experts are asked.
    fn room_of_experts(&self, spec: &AgentSpec) -> Option<Target> {
        let chat = spec.experts.get(&self.route.channel)?.clone();
        Some(Target {
            chat,
            thread: None,
            topic: None,
            reply_to: None,
        })
    }

    /// The prompt, with what it says of the run kept.
    async fn prompt(
        &self,
        spec: &AgentSpec,
        begun: Instant,
    ) -> Result<UnderLease<Box<BuiltPrompt>>, StoreError> {
        let signs = async {
            tokio::time::sleep(SIGN_AFTER).await;
            self.show_working(None).await;
        };
        let preparing = self.prepare(spec, None);
        let built = match self.hold(spec, begun, signs, preparing).await? {
            UnderLease::Done(PreparedRequest::Prompt(built)) => built,
            UnderLease::Done(PreparedRequest::Not(work)) | UnderLease::BrokenOff(work) => {
                return Ok(UnderLease::BrokenOff(work));
            }
        };
        keep_counts(self.worker, self.claimed.run.id, built.recounts.clone()).await;
        Ok(match self.mark(&built).await? {
            true => UnderLease::Done(built),
            false => UnderLease::BrokenOff(Work::LeaseLost),
        })
    }

    /// Marks the run if its prompt shows what its askers did not write. Returns whether the lease is held still.
    async fn mark(&self, built: &BuiltPrompt) -> Result<bool, StoreError> {
        if built.of_others.is_empty() {
            return Ok(true);
        }
        let (store, claimed) = (&self.worker.store, self.claimed);
        let (sources, now_ms) = (built.of_others.clone(), (self.worker.clock)());
        store
            .taint_run(claimed.run.id, claimed.token, sources, now_ms)
            .await
    }

    /// Keeps how long the run was worked on, where that is bounded. A kill loses what came after the last beat.
    pub(super) async fn keep_worked_time(&self, spec: &AgentSpec) {
        if spec.budget.worked_ms == 0 {
            return;
        }
        let (run, token) = (self.claimed.run.id, self.claimed.token);
        let kept = self
            .worker
            .store
            .keep_worked_time(run, token, self.clock.worked_ms());
        if let Err(cause) = kept.await {
            warn!(error = %cause, run.id = %run, "how long a run was worked on could not be kept");
        }
    }

    /// What the model may call for those who ask.
    async fn toolbox(
        &self,
        spec: &AgentSpec,
        skills: Vec<Arc<Skill>>,
    ) -> Result<Toolbox, StoreError> {
        let people = self.worker.store.run_askers(self.claimed.run.id).await?;
        let conversation = self.claimed.run.conversation;
        let options = options_in(&self.worker.store.reader(), spec, conversation).await?;
        join_all(spec.tools.iter().map(ToolUse::known)).await;
        let toolbox = toolbox(
            self.worker,
            self.claimed,
            self.route,
            spec,
            &options,
            (people, skills),
        )
        .only(self.given.tools.as_deref());
        let desk = self.seat.map(|seat| &seat.desk);
        let desk = desk.filter(|desk| desk.may_write() && spec.max_steps > 1);
        Ok(match desk {
            Some(desk) => {
                let tool = SetState(Arc::clone(desk));
                let approval = ApprovalSettings::default().with(&spec.approval, tool.rule());
                toolbox.with(Arc::new(tool), ToolLimits::default(), approval)
            }
            None => toolbox,
        })
    }

    /// Lets the model work; once more with a shorter prompt if its context did not hold the first.
    async fn step(
        &self,
        spec: &AgentSpec,
        built: &BuiltPrompt,
        stepping: Stepping<'_>,
        recorded: Vec<ModelStep>,
    ) -> Result<Ended, StoreError> {
        let ended = stepping.work(recorded).await?;
        let Ended::TooLong {
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
            return Ok(Ended::LeaseLost);
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

    /// Waits, within bounds, for what the prompt is made from, and makes it.
    ///
    /// `found` = what was found for the question, and what is remembered, where it was looked up already.
    async fn prepare(
        &self,
        spec: &AgentSpec,
        found: Option<(Vec<TurnId>, Option<ShownMemories>)>,
    ) -> Result<PreparedRequest, StoreError> {
        let (worker, claimed) = (self.worker, self.claimed);
        let learnt = (worker.learn_names)(self.route.account);
        if tokio::time::timeout(NAMES_WAIT, learnt).await.is_err() {
            info!(run.id = %claimed.run.id, "names are still being looked up; ids stand in for them");
        }
        let files_wait = Duration::from_millis(spec.files.wait_ms);
        let files_until = Instant::now() + files_wait;
        let (ratio, _) = tokio::try_join!(
            spec.ratio_of(claimed, &worker.store),
            wait_for_files(&worker.store, &claimed.run.triggers, files_until),
        )?;
        let Some(ratio) = ratio else {
            return Ok(PreparedRequest::Not(Work::LeaseLost));
        };
        let (found, shown) = match found {
            Some((found, shown)) => (Some(found), shown),
            // What is recorded was sent to the agent before.
            None if self.seat.is_some_and(|seat| seat.is_fresh) => (None, None),
            None => (
                None,
                sent::memories_sent(&worker.store, claimed.run.id).await?,
            ),
        };
        let memory = |these| MemoryFrom {
            rooms: Some(worker.rooms.clone()),
            these,
        };
        let request = PromptRequest {
            network: self.seat.map(|seat| seat.network.clone()),
            memory: Some(memory(shown)),
            conversation: claimed.run.conversation,
            run: RunView {
                run: Some(claimed.run.id),
                as_of_seq: Some(claimed.as_of_seq),
                triggers: claimed.run.triggers.clone(),
                made_by_ms: None,
            },
            as_of_ms: claimed.as_of_ms,
            task: self.task.cloned(),
            ratio,
            given: self.given.clone(),
            recall: match found {
                Some(found) => RecallFrom::Found(found),
                None => RecallFrom::Search(Searching {
                    rooms: worker.rooms.clone(),
                    embeddings: worker.embeddings.clone(),
                }),
            },
        };
        let earlier_until = Instant::now() + files_wait.min(EARLIER_FILES_WAIT);
        let build = |request| build_prompt(&worker.store, spec, Some(&self.room.identity), request);
        let mut built = build(request.clone()).await;
        // Whose files are read besides those of the question is known only with the prompt.
        if let Ok(first) = &built
            && !first.awaited.is_empty()
            && wait_for_files(&worker.store, &first.awaited, earlier_until).await?
        {
            let recall = RecallFrom::Found(first.history.recalled.clone());
            let again = PromptRequest {
                recall,
                memory: Some(memory(first.memories.clone())),
                ..request
            };
            built = build(again).await;
        }
        match built {
            Ok(built) => {
                log_prompt(claimed.run.id, &built);
                Ok(PreparedRequest::Prompt(Box::new(built)))
            }
            Err(PromptError::Store(cause)) => Err(cause),
            Err(cause) => {
                let reason = chain(&cause);
                Ok(PreparedRequest::Not(Work::Failed(Failure::Final(reason))))
            }
        }
    }

    /// What shows the answer while it is written, where that is wanted.
    fn begin_live(&self, spec: &AgentSpec) -> Option<LiveReply> {
        let (worker, claimed) = (self.worker, self.claimed);
        let (room, route) = (self.room, self.route);
        // The earlier answer stands until the new one is there, what may come out otherwise is not shown before, and what
        // another run asked for is not shown at all.
        let is_shown = self.task.is_none() && !spec.holds_answers_back();
        if route.replaces_answer || !is_shown {
            return None;
        }
        // Whose words are the answer is known in the end.
        if self.seat.is_some() {
            return None;
        }
        let policy = &room.delivery;
        let plan = live::plan(
            policy.live,
            policy.on_unknown,
            &room.capabilities,
            LivePlace {
                kind: route.chat_kind,
                is_thread: route.target.thread.is_some(),
            },
        )?;
        let desk = LiveDesk {
            store: worker.store.clone(),
            renderer: Arc::clone(&room.renderer),
            signs: Arc::clone(&room.signs),
            run: claimed.run.id,
            token: claimed.token,
            target: route.target.clone(),
            person: route.person.clone(),
            lead: self.lead(spec),
            posts: Arc::clone(&worker.wake.posts),
            posted: Arc::clone(&worker.wake.posted),
            clock: Arc::clone(&worker.clock),
        };
        Some(LiveReply::begin(desk, plan))
    }

    /// Lets something be done for a run while keeping its lease, showing people that it works, listening for a
    /// "stop" and watching the deadline.
    pub(super) async fn hold<T>(
        &self,
        spec: &AgentSpec,
        begun: Instant,
        signs: impl Future<Output = ()>,
        working: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<UnderLease<T>, StoreError> {
        let (worker, claimed) = (self.worker, self.claimed);
        let deadline_ms = spec.run_deadline_ms;
        let deadline = tokio::time::sleep_until(begun + Duration::from_millis(deadline_ms));
        // The first beat is one interval away: a timer takes a millisecond even to say that it is due.
        let mut heartbeat = tokio::time::interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
        let budget = spec.budget;
        let used_up = async {
            match budget.left_ms(self.clock.worked_ms()) {
                Some(left_ms) => tokio::time::sleep(Duration::from_millis(left_ms)).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(deadline, used_up, working, signs);
        loop {
            tokio::select! {
                // In this order: an answer that is there at once needs no sign that it is being worked on.
                biased;
                done = &mut working => return Ok(UnderLease::Done(done?)),
                () = &mut deadline => return Ok(UnderLease::BrokenOff(Work::TooLong { deadline_ms })),
                () = &mut used_up => {
                    let used_up = RunUsedUp::Time { max_ms: budget.worked_ms };
                    return Ok(UnderLease::BrokenOff(Work::RunUsedUp(used_up)));
                }
                _ = heartbeat.tick() => {
                    self.keep_worked_time(spec).await;
                    let until_ms = (worker.clock)() + LEASE_MS;
                    match worker.store.extend_run(claimed.run.id, claimed.token, until_ms).await {
                        Ok(RunLease::Held) => {}
                        Ok(RunLease::CancelRequested) => return Ok(UnderLease::BrokenOff(Work::Cancelled)),
                        Ok(RunLease::Lost) => return Ok(UnderLease::BrokenOff(Work::LeaseLost)),
                        // The model's answer is worth waiting for; the next beat tries again.
                        Err(cause) => {
                            warn!(error = %cause, run.id = %claimed.run.id, "a lease could not be extended");
                        }
                    }
                }
                // Only a hint: the beat reads whether it is so. A run that an edit brought back is not to stop.
                () = worker.wake.cancels.asked(claimed.run.id) => {
                    worker.wake.cancels.forget(claimed.run.id);
                    heartbeat.reset_immediately();
                }
                () = &mut signs => {}
            }
        }
    }

    /// Shows "typing" again and again, until the answer itself can be seen; never ends.
    pub(super) async fn show_working(&self, live: Option<&LiveReply>) {
        let lasts_ms = self.room.capabilities.working_sign_ms;
        if lasts_ms == 0 {
            return std::future::pending().await;
        }
        // A second early, so that the sign does not flicker.
        let again = Duration::from_millis(lasts_ms.saturating_sub(1_000).max(1_000));
        loop {
            if !live.is_some_and(LiveReply::is_visible) {
                self.room.signs.show_working(&self.route.target).await;
            }
            tokio::time::sleep(again).await;
        }
    }
}

/// Ends what shows an answer; returns how long an edit of it may still be on its way, in milliseconds.
async fn end_of(live: Option<LiveReply>) -> i64 {
    match live {
        Some(live) => live.end().await,
        None => SETTLE_MS,
    }
}

/// Who hears what the model says.
fn telling(words: &Arc<FirstWords>, live: Option<&LiveReply>) -> Telling {
    let telling = Telling::default().and(Arc::clone(words) as Arc<dyn Listener>);
    match live {
        Some(live) => telling.and(live.listener()),
        None => telling,
    }
}

/// How a prompt came out; never what is in it.
fn log_prompt(run: RunId, built: &BuiltPrompt) {
    let BuiltPrompt {
        prompt, history, ..
    } = built;
    debug!(
        run.id = %run, tokens = prompt.tokens, instruction_tokens = prompt.instruction_tokens,
        recalled_tokens = prompt.recalled_tokens,         counter = prompt.counter, turns_loaded = prompt.turns_loaded, turns_in_prompt = prompt.turns.len(),
        left_out_or_cut = prompt.omitted.len(), has_summary = prompt.has_summary,
        images = prompt.images.len(), rows = history.cost.rows, "the prompt is made"
    );
}

/// What had to be counted for a prompt is not counted for the next one.
async fn keep_counts(worker: &AgentWorker, run: RunId, recounts: Vec<Recount>) {
    if recounts.is_empty() {
        return;
    }
    if let Err(cause) = worker.store.record_counts(recounts).await {
        warn!(error = %cause, run.id = %run, "token counts could not be stored; they are made again");
    }
}

/// What the model is about to be sent can be shown later. An answer does not depend on it.
async fn record_sent(
    worker: &AgentWorker,
    claimed: &ClaimedRun,
    spec: &AgentSpec,
    built: &BuiltPrompt,
    tools: &[ToolSpec],
) {
    let sent = sent::recipe_of(built, &spec.situation, tools);
    let run = claimed.run.id;
    let sources = built.sources.clone();
    let recorded = worker
        .store
        .record_prompt(run, claimed.token, sent, sources);
    if let Err(cause) = recorded.await {
        warn!(error = %cause, run.id = %run, "what the model is sent could not be recorded; it is asked all the same");
    }
}

/// The agent's tools that may be called for the people who ask, bound to the run's conversation.
fn toolbox(
    worker: &AgentWorker,
    claimed: &ClaimedRun,
    route: &ReplyRoute,
    spec: &AgentSpec,
    options: &AssemblerOptions,
    (people, skills): (Vec<String>, Vec<Arc<Skill>>),
) -> Toolbox {
    let chat = ChatName {
        channel: route.channel.clone(),
        chat: route.target.chat.clone(),
    };
    let bound = BoundTo {
        knowledge: spec.knowledge_in(&chat),
        skills,
        store: worker.store.reader(),
        conversation: claimed.run.conversation,
        search_reach: spec.search_reach,
        triggers: claimed.run.triggers.clone(),
        is_strict: options.profile == Profile::Toolpack,
        embeddings: worker.embeddings.clone(),
        delegates: spec.delegates.clone(),
        planner: Some(Planner {
            store: worker.store.clone(),
            zone: worker.rooms.zone(claimed.asker.account),
            agent: spec.name.clone(),
            clock: Arc::clone(&worker.clock),
        }),
        memory: (options.memory != MemoryMode::Off).then(|| memory_desk(worker, claimed, route)),
    };
    let person = |id| PersonName {
        channel: route.channel.clone(),
        id,
    };
    let people: Vec<PersonName> = people.into_iter().map(person).collect();
    // Where the first step must be the answer, there are none.
    let may_search = options.recall != RecallMode::Off;
    let offered = spec.tools.iter().filter(|_| spec.max_steps > 1);
    let offered = offered.filter(|tool| may_search || tool.name() != CONVERSATION_SEARCH);
    // A question does not leave the account that it is asked in.
    let has_experts = spec.experts.contains_key(&route.channel);
    let offered = offered.filter(|tool| has_experts || tool.name() != ASK_HUMAN);
    let has_knowledge = !bound.knowledge.is_empty();
    let offered = offered.filter(|tool| has_knowledge || tool.name() != KNOWLEDGE_SEARCH);
    let there = spec.chat_tools.get(&chat);
    let is_there = |tool: &str| there.is_none_or(|all| all.iter().any(|it| names(it, tool)));
    let scope = CallScope {
        chat: format!("{}/{}", route.account, route.target.chat),
        agent: spec.name.to_string(),
    };
    let empty = Toolbox::new(Vec::new(), spec.tool_timeout_ms)
        .with_run_calls_max(spec.calls_per_run)
        .of(scope);
    let mut toolbox = empty;
    for tool in offered.filter(|tool| tool.is_for(&people)) {
        for open in tool.open(&bound) {
            if is_there(open.name()) && !toolbox.has(open.name()) {
                let approval = tool.approval.with(&spec.approval, open.rule());
                toolbox = toolbox.with(open, tool.limits, approval);
            }
        }
    }
    toolbox
}

/// What the run's tools remember by.
fn memory_desk(worker: &AgentWorker, claimed: &ClaimedRun, route: &ReplyRoute) -> MemoryDesk {
    let (rooms, account) = (worker.rooms.clone(), route.account);
    let place = Place {
        chat: route.target.chat.clone(),
        kind: route.chat_kind,
        ..Place::default()
    };
    MemoryDesk {
        store: worker.memory.clone(),
        // What an agent of a network notes is the network's: people ask that for what it remembers of them.
        agent: claimed.run.agent.clone(),
        run: claimed.run.id,
        token: claimed.token,
        conversation: claimed.run.conversation,
        room: route.target.chat.clone(),
        is_served: Arc::new(move |person| rooms.still_admits(account, &place, Some(person))),
        clock: Arc::clone(&worker.clock),
    }
}

fn note_replayed(claimed: &ClaimedRun, recorded: &[ModelStep]) {
    if !recorded.is_empty() {
        info!(run.id = %claimed.run.id, steps = recorded.len(), "recorded steps are replayed instead of asking the model again");
    }
}

/// What the model's context leaves for results, within their own limit.
fn results_max_tokens(spec: &AgentSpec, prompt: &Prompt) -> usize {
    let taken =
        prompt.tokens + prompt.instruction_tokens + prompt.recalled_tokens + spec.answer_reserve;
    let left = spec
        .context_limit
        .map_or(usize::MAX, |limit| limit.saturating_sub(taken));
    left.min(RESULTS_MAX_TOKENS)
}

fn judge(ended: Ended, attempt: u32) -> Work {
    match ended {
        Ended::Answered(answer) => Work::Answered(answer),
        Ended::UsedUp(usage) => Work::UsedUp(usage),
        Ended::Misshapen(misshapen) => Work::Misshapen(misshapen),
        Ended::ToolFailed(tool) => Work::ToolFailed(tool),
        Ended::SpentUp(spent_up) => Work::SpentUp(spent_up),
        Ended::TooCostly(too_costly) => Work::TooCostly(too_costly),
        Ended::RunUsedUp(used_up) => Work::RunUsedUp(used_up),
        Ended::Refused(why) => Work::Refused(why),
        Ended::Waits => Work::Waits,
        Ended::LeaseLost => Work::LeaseLost,
        Ended::SourceGone => {
            let reason = "a message that it had read was deleted meanwhile".to_owned();
            Work::Failed(Failure::Passing(reason))
        }
        // The next attempt's prompt is made within what was learnt.
        Ended::TooLong {
            limit,
            asked,
            has_steps,
        } => {
            let reason = chain(&ModelError::ContextTooLong { limit, asked });
            Work::Failed(match has_steps && attempt == 1 {
                true => Failure::Passing(reason),
                false => Failure::Final(reason),
            })
        }
        // Asked twice already; a third time says nothing else.
        Ended::Failed(cause @ ModelError::Truncated) => Work::Failed(Failure::Final(chain(&cause))),
        Ended::Failed(error) => Work::Failed(Failure::Model(error)),
    }
}

/// An error and its sources, joined.
fn chain(error: &dyn std::error::Error) -> String {
    let errors = std::iter::successors(Some(error), |cause| cause.source());
    errors
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}
