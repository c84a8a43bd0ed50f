//! The calls of a step: recorded, made, and brought to their results, each in its row.
//!
//! Repeatable calls are made in parallel, the others one after the other (`core/acting`). A resumed run reads the
//! rows: a call that has its result is not made again, and a call that was interrupted follows its rule.

use std::time::Duration;

use futures_util::future::try_join_all;
use serde_json::Value;
use tokio::sync::{Mutex, watch};
use tracing::{debug, warn};
use vocative_contract::crash;

use crate::agent::delegating::outcome_of_task;
use crate::agent::questioning::{Questioned, outcome_of};
use crate::agent::step::{ModelStep, is_among};
use crate::agent::stepping::{CALLS_MAX, Stepping};
use crate::capture::reply::commit_call;
use crate::files::space::Promise;
use crate::llm::read_arguments;
use crate::tools::{
    CallContext, InputGiven, Progress, QuestionWish, TaskWish, ToolError, ToolOutcome,
};
use vocative_core::acting::{Beginning, waves};
use vocative_core::approving::{ApprovalRule, ApprovalState, DecidedBy, changed_text, denied_text};
use vocative_core::delegating::not_delegated_text;
use vocative_core::hooking::HookVerdict;
use vocative_core::prompting::files::IMAGE_TOKENS;
use vocative_core::prompting::{ClassEstimate, Scaled, TokenCounter as _, content_count};
use vocative_core::tool_call::{
    CHANGED_DIGEST, CallDigest, CallRule, CallState, Refusal, StoredCall,
};
use vocative_store::StoreError;
use vocative_store::contract::{
    AskOutcome, CallBegun, CallFile, CallToBegin, CallToFinish, ConsentSought, NarrowedCall,
    NewToolCall, StepOutcome, TaskGiven, ToolTurn,
};

/// Appended for the model to a result whose files are not kept.
const FILES_NOT_KEPT: &str =
    "\n[The files of this result are not kept here: they can't be seen, and are not posted.]";
/// How often the progress of a call is told.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);
/// What a model is told of an interrupted call that may have had its effect.
const CUT_OFF: &str = "a restart cut this call off; it may have acted or not, and is not made again. Say so, and \
                       let the person decide whether to try once more";

/// The state of the calls of a step, or of one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Calls {
    /// Every call has its result.
    Made,
    /// A person must decide first, or another agent must answer.
    Wait,
    /// The run can't go on.
    BrokenOff(StepOutcome),
}

/// What became of a call.
pub(super) struct CalledTool {
    state: CallState,
    refusal: Option<Refusal>,
    pub(super) outcome: ToolOutcome,
    /// Whether the tool was asked.
    is_made: bool,
    /// Hook verdicts that are not stored yet.
    verdicts: Vec<HookVerdict>,
}

impl Stepping<'_> {
    /// Makes a step's calls that are open and can be made now, and fills in their results. Calls after one that waits
    /// for a person are not made before it; if such a call needs a person too, both are asked for together.
    pub(super) async fn call_tools(
        &self,
        step: &mut ModelStep,
        used_tokens: usize,
    ) -> Result<Calls, StoreError> {
        let asked = step.answer.tool_calls.iter();
        let asked = asked.map(|call| NewToolCall {
            call_id: call.id.clone(),
            tool: call.name.clone(),
            arguments: text_of(&call.arguments),
            digest: self.toolbox.digest(&call.name, &call.arguments),
            rule: self.toolbox.rule(&call.name),
        });
        let (run, token) = (self.claimed.run.id, self.claimed.token);
        let now_ms = (self.clock)();
        let recorded =
            self.store
                .record_tool_calls(run, token, step.number, asked.collect(), now_ms);
        let Some(mut calls) = recorded.await? else {
            return Ok(Calls::BrokenOff(StepOutcome::Stale));
        };
        crash::point("calls.recorded");
        if calls.len() != step.answer.tool_calls.len() {
            return Ok(Calls::BrokenOff(StepOutcome::SourceGone));
        }
        let left_tokens = Mutex::new(self.results_max_tokens.saturating_sub(used_tokens));
        let rules: Vec<CallRule> = calls.iter().map(|call| call.rule).collect();
        let mut is_behind_open = false;
        for wave in waves(&rules) {
            let calling = calls[wave]
                .iter_mut()
                .map(|call| self.bring_to_result(call, is_behind_open, &left_tokens));
            for brought in try_join_all(calling).await? {
                match brought {
                    Calls::Made => {}
                    Calls::Wait => is_behind_open = true,
                    Calls::BrokenOff(ended) => return Ok(Calls::BrokenOff(ended)),
                }
            }
        }
        if is_behind_open {
            return Ok(Calls::Wait);
        }
        step.take_results(&calls);
        Ok(Calls::Made)
    }

    /// Makes one call, unless it has its result or waits.
    async fn bring_to_result(
        &self,
        call: &mut StoredCall,
        is_behind_open: bool,
        left_tokens: &Mutex<usize>,
    ) -> Result<Calls, StoreError> {
        if call.state.is_over() {
            return Ok(Calls::Made);
        }
        let shown = format!("{} {}", call.tool, call.arguments);
        if let Some(listener) = self.telling.listener() {
            listener.tool_call(&call.call_id, &call.tool, &shown);
        }
        let mut called = match self.make(call, is_behind_open).await? {
            Ok(called) => called,
            Err(calls) => return Ok(calls),
        };
        // Hooks may have changed the arguments.
        let shown = format!("{} {}", call.tool, call.arguments);
        let counter = self.counting.counter;
        let is_outside = called.is_made && self.toolbox.is_outside(&call.tool);
        let (outcome, said) = self.hooking.given(call, called.outcome).await;
        called.verdicts.extend(said);
        let outcome = self.with_changes(call, outcome).await?;
        // A result that is itself the answer is not shown to the model.
        let is_answer = outcome.state == CallState::Done && is_among(self.stop_after, &call.tool);
        let outcome = match is_answer {
            true => outcome,
            false => within(outcome, &mut *left_tokens.lock().await, counter),
        };
        debug!(run.id = %self.claimed.run.id, step = call.step, state = called.state.name(), "a tool was called");
        call.state = called.state;
        call.refusal = called.refusal;
        let (outcome, kept) = self.with_files(outcome, is_answer).await?;
        call.result = Some(outcome.content.clone());
        let turn = turn(call, shown, self.toolbox.has(&call.tool), outcome);
        if let Some(listener) = self.telling.listener() {
            listener.tool_result(&turn.call_id, &turn.tool, &turn.result, &turn.sources);
        }
        self.telling.settled().await;
        let finished = CallToFinish {
            run: self.claimed.run.id,
            token: self.claimed.token,
            call: call.id,
            state: call.state,
            refusal: call.refusal,
            result: call.result.clone().unwrap_or_default(),
            asker: self.claimed.asker,
            agent: self.agent.clone(),
            agent_display_name: self.display_name.to_owned(),
            turn,
            files: kept.iter().flat_map(|(files, _)| files.clone()).collect(),
            is_outside,
            verdicts: called.verdicts,
            now_ms: (self.clock)(),
        };
        let committed = commit_call(self.store, finished).await?;
        // The promised space for its files is used now.
        drop(kept);
        Ok(match committed {
            StepOutcome::Written => Calls::Made,
            ended => Calls::BrokenOff(ended),
        })
    }

    /// A result, the files to keep with it, and the disk space promised for them. If its files are not kept, the
    /// result says so.
    async fn with_files(
        &self,
        mut outcome: ToolOutcome,
        is_answer: bool,
    ) -> Result<(ToolOutcome, Option<(Vec<CallFile>, Promise<'_>)>), StoreError> {
        let files = std::mem::take(&mut outcome.files);
        if files.is_empty() {
            return Ok((outcome, None));
        }
        // Hooks can't check files; where hooks check results, no file is kept.
        let is_looked_at = self.hooking.look_at_what_is_told();
        let promise = match self.files.room.filter(|_| !is_looked_at) {
            Some(room) => {
                let bytes = files.iter().map(|file| file.bytes.len() as u64);
                room.promise(bytes.sum()).await?
            }
            None => None,
        };
        if promise.is_none() && !is_answer {
            outcome.content += FILES_NOT_KEPT;
        }
        Ok((outcome, promise.map(|promise| (files, promise))))
    }

    /// The result of a call, preceded by the names of the people who changed its arguments.
    async fn with_changes(
        &self,
        call: &StoredCall,
        mut outcome: ToolOutcome,
    ) -> Result<ToolOutcome, StoreError> {
        let changers = self.store.changers_of_call(call.id).await?;
        let is_answer = outcome.state == CallState::Done && is_among(self.stop_after, &call.tool);
        if !changers.is_empty() && !is_answer {
            let mut names: Vec<&str> = changers.iter().map(|changer| changer.who.name()).collect();
            names.dedup();
            outcome.content = changed_text(&names, &call.arguments) + &outcome.content;
        }
        Ok(outcome)
    }

    /// The consent that a call needs.
    fn sought(&self, call: &StoredCall, arguments: &Value) -> ConsentSought {
        let approval = self.toolbox.approval(&call.tool);
        ConsentSought {
            asking: approval.map_or(ApprovalRule::Always, |approval| approval.ask(arguments)),
            definition: self.toolbox.definition_digest(&call.tool),
            person: self.claimed.asker.person,
            rule: call.rule,
            after_untrusted: approval.map_or_else(Default::default, |it| it.after_untrusted),
        }
    }

    /// The arguments with which hooks replaced a call's own, and the digest of the changed call.
    fn narrowed(&self, call: &StoredCall, arguments: &Value) -> Option<NarrowedCall> {
        let text = text_of(arguments);
        let is_same = read_arguments(&call.arguments).is_ok_and(|own| own == *arguments);
        (!is_same && text != call.arguments).then(|| NarrowedCall {
            digest: self.toolbox.digest(&call.tool, arguments),
            arguments: text,
        })
    }

    /// Makes a call and returns its result; the inner error says why there is none yet.
    async fn make(
        &self,
        call: &mut StoredCall,
        is_behind_open: bool,
    ) -> Result<Result<CalledTool, Calls>, StoreError> {
        // The call is made with the arguments of its row.
        let arguments =
            read_arguments(&call.arguments).unwrap_or(Value::String(call.arguments.clone()));
        if call.n as usize >= CALLS_MAX {
            return Ok(Ok(refused(Refusal::TooMany, self)));
        }
        if call.state == CallState::Ready
            && let Err(outcome) = self.toolbox.check(&call.tool, &arguments)
        {
            return Ok(Ok(over(outcome)));
        }
        let question = self.toolbox.question(&call.tool, &arguments);
        let task = self.toolbox.task(&call.tool, &arguments);
        if let Some(asked) = self
            .asked_before(call, (question.is_some(), task.is_some()), is_behind_open)
            .await?
        {
            return Ok(asked);
        }
        let as_asked = self.sought(call, &arguments);
        let digest = self.toolbox.digest(&call.tool, &arguments);
        let judged = self.hooking.before_tool(self.toolbox, call, arguments);
        let judged = judged.await;
        if let Some(denied) = judged.denied {
            return Ok(Ok(CalledTool {
                refusal: Some(Refusal::Hook),
                verdicts: judged.verdicts,
                ..over(ToolOutcome::denied(denied))
            }));
        }
        let narrowed = self.narrowed(call, &judged.arguments);
        let arguments = judged.arguments;
        let question = question.and_then(|_| self.toolbox.question(&call.tool, &arguments));
        let task = task.and_then(|_| self.toolbox.task(&call.tool, &arguments));
        let mut sought = self.sought(call, &arguments);
        sought.asking = sought.asking.max(as_asked.asking).max(judged.asking);
        // A run that a schedule started needs a person's approval for calls with effects.
        let acts = question.is_none() && call.rule != CallRule::Repeatable;
        if acts && self.store.is_scheduled(self.claimed.run.id).await? {
            sought.asking = ApprovalRule::Always;
        }
        let to_begin = CallToBegin {
            run: self.claimed.run.id,
            token: self.claimed.token,
            call: call.id,
            digest,
            is_changed: call.digest == CHANGED_DIGEST,
            verdicts: judged.verdicts,
            narrowed: narrowed.clone(),
            rule: call.rule,
            asker: self.claimed.asker,
            limits: self.toolbox.limits(&call.tool),
            sought,
            is_behind_open,
            now_ms: (self.clock)(),
        };
        let decided = match self.store.begin_tool_call(to_begin).await? {
            CallBegun::Decided(decided) => decided,
            CallBegun::NotAllowed(state, by) => return Ok(Ok(not_allowed(state, &by))),
            CallBegun::Stale => return Ok(Err(Calls::BrokenOff(StepOutcome::Stale))),
            CallBegun::SourceGone => return Ok(Err(Calls::BrokenOff(StepOutcome::SourceGone))),
        };
        note_begun(call, (decided, digest), narrowed);
        match (decided, question, task) {
            (Beginning::Make, Some(wish), _) => return self.questioned(call, wish).await,
            (Beginning::Make, None, Some(wish)) => return self.delegated(call, wish).await,
            _ => {}
        }
        Ok(Ok(match decided {
            Beginning::Make => return self.made(call, arguments).await,
            Beginning::Refuse(refusal) => refused(refusal, self),
            Beginning::Unknown => {
                warn!(run.id = %self.claimed.run.id, tool = call.tool, "a tool call was cut off by a restart and is not made again");
                over(ToolOutcome::unknown(CUT_OFF))
            }
            Beginning::Ask => return self.asked(call, sought).await,
            Beginning::Wait => return Ok(Err(Calls::Wait)),
            // Another worker ended the call, which only a holder of the lease can do.
            Beginning::NotDue => return Ok(Err(Calls::BrokenOff(StepOutcome::Stale))),
        }))
    }

    /// The result of a call that asked a person or another agent in an earlier attempt, or whose server asked a
    /// person; `None` if nobody was asked.
    async fn asked_before(
        &self,
        call: &StoredCall,
        (is_question, is_task): (bool, bool),
        is_behind_open: bool,
    ) -> Result<Option<Result<CalledTool, Calls>>, StoreError> {
        let outcome = if is_question {
            let asked = self.store.question_of_call(call.id).await?;
            asked.map(|asked| outcome_of(&asked))
        } else if is_task {
            let given = self.store.task_of_call(call.id).await?;
            given.map(|given| outcome_of_task(&given))
        } else {
            return self.asked_by_server(call, is_behind_open).await;
        };
        Ok(outcome.map(|outcome| outcome.map(over).ok_or(Calls::Wait)))
    }

    /// Calls the tool and returns its result.
    pub(super) async fn called(
        &self,
        call: &StoredCall,
        arguments: Value,
        input: Option<InputGiven>,
    ) -> CalledTool {
        crash::point("tool.called");
        let (progress, said) = Progress::new();
        let context = CallContext {
            input,
            progress,
            ..CallContext::of(call.id)
        };
        let calling = self.toolbox.call(&call.tool, arguments, context);
        let outcome = self.telling_progress(call, said, calling).await;
        crash::point("tool.answered");
        CalledTool {
            is_made: true,
            ..over(outcome)
        }
    }

    /// Waits for a call's result, and tells its progress meanwhile.
    async fn telling_progress(
        &self,
        call: &StoredCall,
        mut said: watch::Receiver<String>,
        calling: impl Future<Output = ToolOutcome>,
    ) -> ToolOutcome {
        let telling = async {
            while said.changed().await.is_ok() {
                let progress = said.borrow_and_update().clone();
                if let Some(listener) = self.telling.listener() {
                    listener.tool_progress(&call.call_id, &call.tool, &progress);
                }
                tokio::time::sleep(PROGRESS_EVERY).await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            outcome = calling => outcome,
            () = telling => unreachable!("it waits for ever"),
        }
    }

    /// Asks a person the question of a call; the call then waits, unless the question can't be asked.
    async fn questioned(
        &self,
        call: &StoredCall,
        wish: Result<QuestionWish, ToolError>,
    ) -> Result<Result<CalledTool, Calls>, StoreError> {
        let wish = match wish {
            Ok(wish) => wish,
            Err(wrong) => return Ok(Ok(over(ToolOutcome::failed(wrong.to_string())))),
        };
        Ok(match self.ask_person(call, wish, None).await? {
            Questioned::Waits => Err(Calls::Wait),
            Questioned::Not(outcome) => Ok(over(outcome)),
            Questioned::Stale => Err(Calls::BrokenOff(StepOutcome::Stale)),
            Questioned::SourceGone => Err(Calls::BrokenOff(StepOutcome::SourceGone)),
        })
    }

    /// Gives another agent a task; the call then waits, unless that agent can't be asked.
    async fn delegated(
        &self,
        call: &StoredCall,
        wish: Result<TaskWish, ToolError>,
    ) -> Result<Result<CalledTool, Calls>, StoreError> {
        let wish = match wish {
            Ok(wish) => wish,
            Err(wrong) => return Ok(Ok(over(ToolOutcome::failed(wrong.to_string())))),
        };
        let agent = wish.agent.clone();
        Ok(match self.give_task(call, wish).await? {
            TaskGiven::Waits => Err(Calls::Wait),
            TaskGiven::Not(not) => Ok(over(ToolOutcome::denied(not_delegated_text(
                not,
                agent.as_str(),
            )))),
            TaskGiven::Stale => Err(Calls::BrokenOff(StepOutcome::Stale)),
            TaskGiven::SourceGone => Err(Calls::BrokenOff(StepOutcome::SourceGone)),
        })
    }

    /// Asks people to approve a call; the call then waits, unless too many already do.
    async fn asked(
        &self,
        call: &StoredCall,
        sought: ConsentSought,
    ) -> Result<Result<CalledTool, Calls>, StoreError> {
        Ok(match self.ask_people(call, sought).await? {
            AskOutcome::Waits => Err(Calls::Wait),
            AskOutcome::TooMany => Ok(refused(Refusal::TooManyOpen, self)),
            AskOutcome::Stale => Err(Calls::BrokenOff(StepOutcome::Stale)),
            AskOutcome::SourceGone => Err(Calls::BrokenOff(StepOutcome::SourceGone)),
        })
    }
}

/// Brings a call up to date with its row after the decision whether it is made: its digest, and the arguments that
/// hooks left.
fn note_begun(
    call: &mut StoredCall,
    (decided, digest): (Beginning, CallDigest),
    narrowed: Option<NarrowedCall>,
) {
    // A waiting worker reads the row again.
    if call.digest == CHANGED_DIGEST && decided != Beginning::Wait {
        call.digest = digest;
    }
    if let Some(narrowed) = narrowed {
        (call.arguments, call.digest) = (narrowed.arguments, narrowed.digest);
    }
}

/// A call that people did not allow.
fn not_allowed(state: ApprovalState, by: &DecidedBy) -> CalledTool {
    let refusal = match state {
        ApprovalState::Denied => Refusal::NotAllowed,
        ApprovalState::Expired => Refusal::Undecided,
        ApprovalState::Open
        | ApprovalState::Approved
        | ApprovalState::Cancelled
        | ApprovalState::Changed => Refusal::AskedInVain,
    };
    CalledTool {
        state: CallState::Denied,
        refusal: Some(refusal),
        outcome: ToolOutcome::denied(denied_text(state, by)),
        is_made: false,
        verdicts: Vec::new(),
    }
}

pub(super) fn over(outcome: ToolOutcome) -> CalledTool {
    CalledTool {
        state: outcome.state,
        refusal: None,
        outcome,
        is_made: false,
        verdicts: Vec::new(),
    }
}

pub(super) fn refused(refusal: Refusal, stepping: &Stepping<'_>) -> CalledTool {
    CalledTool {
        state: CallState::Denied,
        refusal: Some(refusal),
        outcome: ToolOutcome::denied(words_of(refusal, stepping)),
        is_made: false,
        verdicts: Vec::new(),
    }
}

/// A refusal, worded for the model.
fn words_of(refusal: Refusal, stepping: &Stepping<'_>) -> String {
    let answer = "answer with what you have";
    match refusal {
        Refusal::TooMany => format!("not called: at most {CALLS_MAX} calls are made at once"),
        Refusal::RunBudget => {
            let max = stepping.toolbox.run_calls_max();
            format!("not called: all {max} calls for this question are used up; {answer}")
        }
        Refusal::ToolBudget => {
            "not called: this tool was called as often as it may be for one question".to_owned()
        }
        Refusal::DayBudget => {
            "not called: this person had this tool called as often as it may be in a day".to_owned()
        }
        Refusal::Repeated => {
            "not called: the same call was made twice for this question, and its results are above".to_owned()
        }
        Refusal::Circling => format!("not called: it was refused before; {answer}"),
        Refusal::MadeBefore => {
            "not called: the same call was made for this question before, and its result is gone; it may have acted"
                .to_owned()
        }
        Refusal::ToolChanged => {
            "not called: this tool was changed meanwhile; look at what it takes, and ask again".to_owned()
        }
        Refusal::RunEnded => "not called: the run ended".to_owned(),
        Refusal::Hook => "not called: a check does not allow it".to_owned(),
        Refusal::TooManyOpen => {
            "not called: too many calls wait here for a person to allow them; say so".to_owned()
        }
        Refusal::NotAllowed | Refusal::Undecided | Refusal::AskedInVain => {
            "not called: it was not allowed".to_owned()
        }
    }
}

/// The outcome, or, if it is too long, a text that says that there is no room for it.
fn within(outcome: ToolOutcome, left_tokens: &mut usize, counter: &Scaled) -> ToolOutcome {
    let tokens = counter.count(&outcome.content) as usize;
    if tokens > *left_tokens {
        let content = match outcome.state {
            CallState::Done => "done, but its result is left out",
            CallState::Unknown => "whether it acted is not known, and what it said is left out",
            _ => "left out",
        };
        return ToolOutcome {
            content: format!(
                "{content}: there is no room for further results; answer with what you have"
            ),
            sources: Vec::new(),
            files: Vec::new(),
            ..outcome
        };
    }
    let is_picture = |file: &&CallFile| file.mime_type.starts_with("image/");
    let pictures = outcome.files.iter().filter(is_picture).count();
    *left_tokens = left_tokens.saturating_sub(tokens + pictures * IMAGE_TOKENS);
    outcome
}

/// Arguments as a row stores them.
fn text_of(arguments: &Value) -> String {
    match arguments {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn turn(call: &StoredCall, called: String, is_known: bool, outcome: ToolOutcome) -> ToolTurn {
    let result = match outcome.state {
        CallState::Done => outcome.content,
        _ => format!("Error: {}", outcome.content),
    };
    ToolTurn {
        call_id: call.call_id.clone(),
        tool: call.tool.clone(),
        is_known,
        call_tokens: Some(content_count(&called, &ClassEstimate)),
        call: called,
        result_tokens: Some(content_count(&result, &ClassEstimate)),
        result,
        sources: outcome.sources,
    }
}
