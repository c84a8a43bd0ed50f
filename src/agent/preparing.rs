//! Makes a run's prompt, and asks its hooks whether its model is asked at all.

use std::time::Duration;

use tokio::time::Instant;
use tracing::{debug, info, warn};

use crate::agent::failing::{AttemptFailure, chain};
use crate::agent::hooking::{BeginJudged, Hooking, RunJudged};
use crate::agent::intent::IntentAsking;
use crate::agent::prompting::{BuiltPrompt, PromptError, PromptRequest, build_prompt};
use crate::agent::recall::{RecallFrom, Searching};
use crate::agent::registry::AgentSpec;
use crate::agent::remembered::{MemoryFrom, ShownMemories};
use crate::agent::sent;
use crate::agent::worker::AgentWorker;
use crate::agent::working::{RunEnd, UnderLease, Working};
use crate::files::waiting::wait_for_files;
use crate::llm::ToolSpec;
use vocative_core::hooking::HookPoint;
use vocative_core::ids::{RunId, TurnId};
use vocative_core::prompting::RunView;
use vocative_core::run::ClaimedRun;
use vocative_core::turn::Recount;
use vocative_store::StoreError;
use vocative_store::contract::LeaseOutcome;

/// How long looking up names may take before a prompt is made with ids in their place.
const NAMES_WAIT: Duration = Duration::from_secs(2);
/// How long a file that was sent just before the question may keep it waiting.
const EARLIER_FILES_WAIT: Duration = Duration::from_secs(2);
/// A prompt that takes longer than this to make is announced by a typing sign of its own.
const SIGN_AFTER: Duration = Duration::from_secs(1);

/// The result of preparing a run's request.
pub(super) enum PreparedRequest {
    /// Its prompt.
    Prompt(Box<BuiltPrompt>),
    /// The model is not asked: the run ended this way.
    Not(RunEnd),
}

impl Working<'_> {
    /// The prompt, and the hooks, which have allowed the run to go on.
    pub(super) async fn begun(
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

    /// Makes the prompt, and stores what it says about the run.
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
            false => UnderLease::BrokenOff(RunEnd::LeaseLost),
        })
    }

    /// Waits, within bounds, for what the prompt is made from, and makes it.
    ///
    /// `found` = the lines and the memory found for the question, if they were already looked up.
    pub(super) async fn prepare(
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
            return Ok(PreparedRequest::Not(RunEnd::LeaseLost));
        };
        let (found, shown) = match found {
            Some((found, shown)) => (Some(found), shown),
            // The record is of the agent that was asked before.
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
        // Only the prompt shows which files besides the question's are read.
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
                Ok(PreparedRequest::Not(RunEnd::Failed(AttemptFailure::Final(
                    reason,
                ))))
            }
        }
    }

    /// Marks the run if its prompt shows text that its askers did not write. Returns whether the lease is still held.
    pub(super) async fn mark(&self, built: &BuiltPrompt) -> Result<bool, StoreError> {
        if built.of_others.is_empty() {
            return Ok(true);
        }
        let (store, claimed) = (&self.worker.store, self.claimed);
        let (sources, now_ms) = (built.of_others.clone(), (self.worker.clock)());
        store
            .taint_run(claimed.run.id, claimed.token, sources, now_ms)
            .await
    }

    /// The agent's hooks, with their earlier verdicts on the run.
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

    /// The same hooks, after they have decided whether the run's model is asked. Their verdicts are stored first.
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
            return Ok(UnderLease::BrokenOff(RunEnd::LeaseLost));
        }
        Ok(match judged {
            BeginJudged::Run(RunJudged::Goes) => UnderLease::Done(hooking),
            BeginJudged::Run(RunJudged::Refused(why)) => {
                UnderLease::BrokenOff(RunEnd::Refused(why))
            }
            BeginJudged::NotMeant => UnderLease::BrokenOff(RunEnd::NotMeant),
        })
    }
}

/// Logs facts about a prompt; never its content.
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

/// Stores token counts, so that the next prompt does not count again.
async fn keep_counts(worker: &AgentWorker, run: RunId, recounts: Vec<Recount>) {
    if recounts.is_empty() {
        return;
    }
    if let Err(cause) = worker.store.record_counts(recounts).await {
        warn!(error = %cause, run.id = %run, "token counts could not be stored; they are made again");
    }
}

/// Records what the model is about to be sent, so that it can be shown later. An answer does not depend on it.
pub(super) async fn record_sent(
    worker: &AgentWorker,
    claimed: &ClaimedRun,
    spec: &AgentSpec,
    built: &BuiltPrompt,
    tools: &[ToolSpec],
) {
    let sent = sent::recipe_of(built, &spec.agent.situation, tools);
    let run = claimed.run.id;
    let sources = built.sources.clone();
    let recorded = worker
        .store
        .record_prompt(run, claimed.token, sent, sources);
    if let Err(cause) = recorded.await {
        warn!(error = %cause, run.id = %run, "what the model is sent could not be recorded; it is asked all the same");
    }
}
