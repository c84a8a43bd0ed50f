//! The background worker: looks for what can be folded, asks, stores.
//!
//! One summary at a time, after replies, and with nothing claimed: what it stores is compared with
//! the turns at that moment, so being killed or overtaken costs a call and harms nothing. A failure
//! leaves the summary before it in force; that agent or conversation is left alone for a while.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use vocative_contract::crash;

use crate::agent::background::{BackgroundAsking, Meter, NoAnswer};
use crate::agent::models::{ModelSlot, Models};
use crate::agent::prompting::{agent_view, options_in};
use crate::agent::registry::{AgentSpec, Registry};
use crate::capture::clock::Clock;
use crate::capture::wake::Wake;
use crate::delivery::rooms::Rooms;
use vocative_core::folding::accept::accept;
use vocative_core::folding::details::Loss;
use vocative_core::folding::request::{again, input_max_tokens, request};
use vocative_core::folding::{offline, plan};
use vocative_core::history::HistoryTurn;
use vocative_core::ids::{AccountId, AgentName, ConversationId, SummaryId, TurnId};
use vocative_core::options::AssemblerOptions;
use vocative_core::prompting::{ClassEstimate, PromptMessage, TokenCounter as _, record};
use vocative_core::summary::{
    Coverage, FoldBase, FoldOver, FoldQuery, FoldRule, FoldSource, NewSummary, RefoldStep,
    SummaryOutcome,
};
use vocative_store::spending::Purpose;
use vocative_store::{Folding, Store, StoreError};

/// How often work is looked for without a wake hint.
const POLL: Duration = Duration::from_secs(60);
/// How many conversations a wake hint looks at, by activity: the one just answered in is among them.
const NEWEST_ON_WAKE: usize = 20;
/// How many conversations a poll looks at, by activity; an older one waits for its next turn.
const NEWEST_ON_POLL: usize = 1_000;
/// The most turns that are read for one summary; the rest is folded next.
const FOLD_TURNS_MAX: usize = 200;
/// After a failure it waits this long, then twice as long each time.
const RETRY_FIRST_MS: i64 = 30_000;
const RETRY_MAX_MS: i64 = 3_600_000;
/// A turn of a person may hold back itself and three of agents, bots or the platform.
const HELD_PER_PERSONS_TURN: usize = 4;
/// The text that stands for turns without words.
const NOTHING_SAID: &str = "(Nothing was said.)";

/// What the worker did, for `status` and metrics.
#[derive(Debug, Default)]
pub struct SummaryCounters {
    /// Summaries stored.
    pub made: AtomicU64,
    /// Attempts that failed: a dead model, a refusal, an answer that is no summary.
    pub failed: AtomicU64,
    /// Answers thrown away because a turn changed meanwhile.
    pub outdated: AtomicU64,
    /// Summaries that were asked for once more because the first one lost more details than it kept.
    pub asked_again: AtomicU64,
}

/// The summary worker.
pub struct SummaryWorker {
    /// Where turns and summaries are.
    pub store: Store<Folding>,
    /// Who we are where.
    pub rooms: Rooms,
    /// The agents.
    pub registry: Registry,
    /// The models.
    pub models: Models,
    /// Wake hints.
    pub wake: Wake,
    /// The time.
    pub clock: Clock,
    /// What it did.
    pub counters: Arc<SummaryCounters>,
}

/// How a model is asked for a summary.
type Asking<'a> = BackgroundAsking<'a, Folding>;

/// What became of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Attempt {
    /// One or more summaries were stored.
    Made,
    /// There is nothing to fold.
    Nothing,
    /// A turn changed meanwhile.
    Outdated,
    /// The model rests, or answers people.
    ModelBusy,
    /// The model can't be asked: leave its agent alone for a while.
    ModelFailed(String),
    /// Its answer is no summary: leave this conversation alone for a while.
    Rejected(String),
}

/// What of a source is folded at once.
#[derive(Clone, Copy)]
struct FoldPart<'a> {
    source: &'a FoldSource,
    /// How many of its oldest turns.
    count: usize,
    /// The number of requests after which no further step begins.
    requests_max: u32,
}

/// When something that failed is tried again.
#[derive(Clone, Copy, Debug, Default)]
struct Wait {
    failures: u32,
    until_ms: i64,
}

impl Wait {
    fn after_failure(self, now_ms: i64) -> Self {
        Self {
            failures: self.failures + 1,
            until_ms: now_ms + retry_wait_ms(self.failures),
        }
    }
}

fn retry_wait_ms(failures_before: u32) -> i64 {
    (RETRY_FIRST_MS << failures_before.min(16)).min(RETRY_MAX_MS)
}

/// What is left alone for a while.
#[derive(Debug, Default)]
struct Waits {
    agents: HashMap<AgentName, Wait>,
    conversations: HashMap<(ConversationId, AgentName), Wait>,
}

impl Waits {
    fn is_over(&self, place: &(ConversationId, AgentName), now_ms: i64) -> bool {
        let agent = self.agents.get(&place.1);
        let waits = agent.into_iter().chain(self.conversations.get(place));
        waits.into_iter().all(|wait| wait.until_ms <= now_ms)
    }

    fn note(&mut self, place: (ConversationId, AgentName), attempt: &Attempt, now_ms: i64) {
        match attempt {
            Attempt::Made => {
                self.agents.remove(&place.1);
                self.conversations.remove(&place);
            }
            Attempt::Nothing | Attempt::ModelBusy => {}
            Attempt::ModelFailed(_) => {
                let wait = self.agents.entry(place.1).or_default();
                *wait = wait.after_failure(now_ms);
            }
            Attempt::Rejected(_) | Attempt::Outdated => {
                let wait = self.conversations.entry(place).or_default();
                *wait = wait.after_failure(now_ms);
            }
        }
        // What waited long ago is no longer a reason to wait longer.
        self.conversations
            .retain(|_, wait| wait.until_ms + RETRY_MAX_MS > now_ms);
    }
}

impl SummaryWorker {
    /// Works until `stop`. A request in flight is dropped then; nothing of it is stored.
    ///
    /// The first look is after the first reply or poll: until a channel is connected nobody knows
    /// under which ids the agent is mentioned.
    pub async fn run(self, stop: CancellationToken) {
        let mut waits = Waits::default();
        loop {
            let mut newest = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = self.wake.summaries.notified() => NEWEST_ON_WAKE,
                () = tokio::time::sleep(POLL) => NEWEST_ON_POLL,
            };
            // A long past is folded a part at a time, each conversation in its turn.
            loop {
                let made = tokio::select! {
                    biased;
                    () = stop.cancelled() => return,
                    made = self.pass(newest, &mut waits) => made,
                };
                if made == 0 {
                    break;
                }
                newest = NEWEST_ON_POLL;
            }
        }
    }

    /// Looks once at the newest conversations, at most `newest`. Returns in how many a summary was made.
    async fn pass(&self, newest: usize, waits: &mut Waits) -> usize {
        let due = match self.store.conversations_to_fold(self.rules(), newest).await {
            Ok(due) => due,
            Err(cause) => {
                warn!(error = %cause, "summaries could not be looked for; trying again");
                return 0;
            }
        };
        let mut made = 0;
        for place in due {
            let Some(spec) = self.registry.get(&place.1) else {
                continue;
            };
            if !waits.is_over(&place, (self.clock)()) {
                continue;
            }
            let attempt = self.attempt(place.0, &spec).await;
            self.report(&place, &attempt);
            made += usize::from(attempt == Attempt::Made);
            // A wait counts from the failure: a model that hangs would use it up before.
            waits.note(place, &attempt, (self.clock)());
        }
        made
    }

    fn rules(&self) -> Vec<FoldRule> {
        let names = self.registry.names();
        let specs = names.iter().filter_map(|name| self.registry.get(name));
        specs
            .map(|spec| FoldRule {
                agent: spec.name.clone(),
                elsewhere: FoldOver::of(&spec.options),
                in_chats: spec
                    .chat_options
                    .iter()
                    .map(|(chat, options)| (chat.clone(), FoldOver::of(options)))
                    .collect(),
            })
            .collect()
    }

    fn report(&self, (conversation, agent): &(ConversationId, AgentName), attempt: &Attempt) {
        match attempt {
            Attempt::Made | Attempt::Nothing | Attempt::ModelBusy => {}
            Attempt::Outdated => {
                self.counters.outdated.fetch_add(1, Ordering::Relaxed);
                info!(conversation.id = %conversation, %agent, "turns changed while they were summarised; trying again");
            }
            Attempt::ModelFailed(reason) | Attempt::Rejected(reason) => {
                self.counters.failed.fetch_add(1, Ordering::Relaxed);
                warn!(conversation.id = %conversation, %agent, reason, "no summary was made; the one before stands");
            }
        }
    }

    /// Folds what can be folded in one conversation.
    async fn attempt(&self, conversation: ConversationId, spec: &AgentSpec) -> Attempt {
        match self.fold(conversation, spec).await {
            Ok(attempt) => attempt,
            Err(cause) => Attempt::Rejected(format!("the store failed: {cause}")),
        }
    }

    async fn fold(
        &self,
        conversation: ConversationId,
        spec: &AgentSpec,
    ) -> Result<Attempt, StoreError> {
        let options = options_in(&self.store, spec, conversation).await?;
        let Some(FoldOver {
            coverage,
            threshold,
        }) = FoldOver::of(&options)
        else {
            return Ok(Attempt::Nothing);
        };
        let query = FoldQuery {
            conversation,
            agent: spec.name.clone(),
            coverage: coverage.clone(),
            threshold,
            preserve_recent: options.preserve_recent_turns,
            hold_turns: hold_turns(&options, threshold),
            max_turns: FOLD_TURNS_MAX,
        };
        let Some(source) = self.store.fold_source(query).await? else {
            return Ok(Attempt::Nothing);
        };
        let count = plan::foldable(&source.history.turns, source.fold_before);
        if count == 0 {
            return Ok(Attempt::Nothing);
        }
        let refold = source.refold.map(|refold| refold.step((self.clock)()));
        let requests_max = match refold {
            None => u32::MAX,
            Some(RefoldStep::Fold(requests_max)) => requests_max,
            Some(RefoldStep::Wait) => return Ok(Attempt::Nothing),
            Some(RefoldStep::Note) => {
                self.store.note_refold(conversation, (self.clock)()).await?;
                return Ok(Attempt::Nothing);
            }
        };
        let part = FoldPart {
            source: &source,
            count,
            requests_max,
        };
        self.fold_turns(part, spec, coverage).await
    }

    /// Folds the oldest turns of a source, in as many steps as the model's context asks for. A step
    /// that ends at a whole turn is stored, so that the next start goes on from there. Before each
    /// request the store is asked whether all of it may still be sent.
    async fn fold_turns(
        &self,
        part: FoldPart<'_>,
        spec: &AgentSpec,
        coverage: Coverage,
    ) -> Result<Attempt, StoreError> {
        let FoldPart { source, count, .. } = part;
        let place = match &spec.summary_model {
            Some(summariser) => match self.models.try_begin(&summariser.model_use) {
                Some(place) => Some(place),
                None => return Ok(Attempt::ModelBusy),
            },
            None => None,
        };
        let history = &source.history;
        let identity = self
            .rooms
            .get(history.conversation.account)
            .map(|room| room.identity);
        let mut entries = record(history, &agent_view(spec, identity.as_ref()));
        entries.truncate(count);
        let mut previous = history.summary.as_ref().map(|summary| summary.id);
        let mut text = history.summary.as_ref().map(|summary| summary.text.clone());
        let (mut done, mut requests, mut requests_used) = (0, 0, 0);
        let account = history.conversation.account;
        for step in plan::steps(&entries, max_tokens(spec), &ClassEstimate) {
            let base = FoldBase {
                conversation: history.conversation.id,
                agent: spec.name.clone(),
                coverage: coverage.clone(),
                previous,
                sources: sources_of(&history.turns[done..count]),
                through: history.turns[count - 1].turn.position,
            };
            let meter = self.meter(account, history.conversation.id, spec);
            let asking = asking_of(spec, place.as_ref(), &meter);
            let said = (text.as_deref(), step.text.as_str());
            let made = match self.made(spec, asking, said, &base).await? {
                Ok(made) => made,
                Err(attempt) => return Ok(attempt),
            };
            requests += made.requests;
            let made = made.text;
            text = Some(made.clone());
            let Some(completes) = step.completes else {
                continue;
            };
            let turns = &history.turns[done..completes];
            let mut summary = self.summary(source, spec, coverage.clone(), previous, turns, made);
            summary.requests = std::mem::take(&mut requests);
            requests_used += summary.requests;
            crash::point("summary.before-commit");
            let added = self.store.add_summary(summary).await?;
            crash::point("summary.after-commit");
            match added {
                SummaryOutcome::Written(id) => {
                    previous = Some(id);
                    done = completes;
                    self.counters.made.fetch_add(1, Ordering::Relaxed);
                    info!(conversation.id = %history.conversation.id, agent = %spec.name, turns = turns.len(), "a summary was made");
                }
                SummaryOutcome::Outdated => return Ok(Attempt::Outdated),
            }
            if requests_used >= part.requests_max {
                break;
            }
        }
        Ok(Attempt::Made)
    }

    /// A summary of what came before and what was said since. It is asked for once more where it lost more
    /// details than it kept; then the better of the two counts.
    async fn made(
        &self,
        spec: &AgentSpec,
        asking: Option<Asking<'_>>,
        (previous, turns): (Option<&str>, &str),
        base: &FoldBase,
    ) -> Result<Result<Made, Attempt>, StoreError> {
        let made = |text: String, requests| Ok(Ok(Made { text, requests }));
        if let Some(refused) = self.refused(spec, asking.as_ref(), base).await? {
            return Ok(Err(refused));
        }
        if turns.is_empty() {
            return made(previous.unwrap_or(NOTHING_SAID).to_owned(), 1);
        }
        let Some(asking) = asking else {
            return made(offline::summarise(previous, turns, &ClassEstimate), 1);
        };
        let messages = request(&spec.agent.display_name, previous, turns);
        let (answer, text) = match ask(&asking, &messages).await {
            Ok(answered) => answered,
            Err(attempt) => return Ok(Err(attempt)),
        };
        let loss = Loss::of(&text, previous, turns);
        if !loss.is_grave() || self.refused(spec, Some(&asking), base).await?.is_some() {
            return made(text, 1);
        }
        self.counters.asked_again.fetch_add(1, Ordering::Relaxed);
        let messages = again(&messages, &answer, &loss.lost);
        // Whatever becomes of the second request, the first answer is a summary.
        let second = ask(&asking, &messages).await.ok().map(|(_, text)| text);
        let better =
            second.filter(|text| Loss::of(text, previous, turns).lost.len() < loss.lost.len());
        made(better.unwrap_or(text), 2)
    }

    /// Why a request is not made: the day's tokens are used up, or something of it may not be sent any more.
    async fn refused(
        &self,
        spec: &AgentSpec,
        asking: Option<&Asking<'_>>,
        base: &FoldBase,
    ) -> Result<Option<Attempt>, StoreError> {
        if let Some(asking) = asking
            && let Some(refused) = self.refused_by_limit(asking.meter.account, spec).await?
        {
            return Ok(Some(refused));
        }
        let is_base = self.store.is_fold_base(base.clone()).await?;
        Ok((!is_base).then_some(Attempt::Outdated))
    }

    /// Why an account's summaries wait: its tokens of the day are used up. The built-in summaries cost none.
    async fn refused_by_limit(
        &self,
        account: AccountId,
        spec: &AgentSpec,
    ) -> Result<Option<Attempt>, StoreError> {
        if spec.summary_model.is_none() {
            return Ok(None);
        }
        let now_ms = (self.clock)();
        let spent_up = self
            .rooms
            .spent_up(&self.store, account, None, now_ms)
            .await?;
        let refused = || Attempt::Rejected("the tokens of the day are used up".to_owned());
        Ok(spent_up.map(|_| refused()))
    }

    fn meter<'a>(
        &'a self,
        account: AccountId,
        conversation: ConversationId,
        spec: &'a AgentSpec,
    ) -> Meter<'a, Folding> {
        let whose = (account, conversation, &spec.name);
        let model = spec.summary_model.as_ref();
        Meter::new(
            &self.store,
            Purpose::Summaries,
            whose,
            model,
            (self.clock)(),
        )
    }

    fn summary(
        &self,
        source: &FoldSource,
        spec: &AgentSpec,
        coverage: Coverage,
        previous: Option<SummaryId>,
        turns: &[HistoryTurn],
        text: String,
    ) -> NewSummary {
        let last = turns.last().expect("a step completes at least one turn");
        NewSummary {
            base: FoldBase {
                conversation: source.history.conversation.id,
                agent: spec.name.clone(),
                coverage,
                previous,
                sources: sources_of(turns),
                through: last.turn.position,
            },
            requests: 1,
            tokens: ClassEstimate.count(&text),
            counter: ClassEstimate.name().to_owned(),
            text,
            model: spec
                .summary_model
                .as_ref()
                .map_or("offline", |summariser| summariser.model.name())
                .to_owned(),
            now_ms: (self.clock)(),
        }
    }
}

/// How many turns of anybody the newest turns of people may hold back from being folded: never more
/// than are read for a prompt.
fn hold_turns(options: &AssemblerOptions, threshold: usize) -> usize {
    let held = options
        .preserve_recent_turns
        .saturating_mul(HELD_PER_PERSONS_TURN);
    held.min(options.max_turns_to_load).max(threshold)
}

/// Turns with the revision that was read.
fn sources_of(turns: &[HistoryTurn]) -> Vec<(TurnId, u32)> {
    turns
        .iter()
        .map(|read| (read.turn.id, read.turn.revision))
        .collect()
}

fn max_tokens(spec: &AgentSpec) -> usize {
    let (limit, reserve) = spec.summary_model.as_ref().map_or((None, 0), |summariser| {
        (summariser.context_limit, summariser.answer_reserve)
    });
    input_max_tokens(limit, reserve, &spec.agent.display_name, &ClassEstimate)
}

/// A summary that a step made.
struct Made {
    text: String,
    /// How many requests it took.
    requests: u32,
}

/// How a model is asked for a summary; `None` where they are made without one.
fn asking_of<'a>(
    spec: &'a AgentSpec,
    place: Option<&'a ModelSlot>,
    meter: &'a Meter<'a, Folding>,
) -> Option<Asking<'a>> {
    Some(BackgroundAsking {
        model: spec.summary_model.as_ref()?,
        hooks: &spec.hooks,
        deadline: spec.settings().run_deadline_s.duration(),
        place,
        meter,
    })
}

/// The model's answer, and the summary in it.
async fn ask(asking: &Asking<'_>, messages: &[PromptMessage]) -> Result<(String, String), Attempt> {
    let answer = asking.ask(messages).await.map_err(|cause| match cause {
        NoAnswer::Busy => Attempt::ModelBusy,
        NoAnswer::Failed(cause) => Attempt::ModelFailed(cause.to_string()),
    })?;
    let text = accept(&answer.text, answer.finish, &ClassEstimate)
        .map_err(|cause| Attempt::Rejected(cause.to_string()))?;
    Ok((answer.text, text))
}

impl SummaryWorker {
    /// One look at everything, without waits from before; in how many conversations a summary was made.
    pub async fn once(&self) -> usize {
        self.pass(NEWEST_ON_POLL, &mut Waits::default()).await
    }
}

#[cfg(test)]
impl SummaryWorker {
    /// Two looks, one right after the other.
    pub(super) async fn twice(&self) {
        let mut waits = Waits::default();
        for _ in 0..2 {
            self.pass(NEWEST_ON_POLL, &mut waits).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocative_store::NewId as _;

    #[test]
    fn a_dead_model_is_asked_less_and_less_often() {
        let place = (ConversationId::generate(), AgentName::trusted("kael"));
        let other = (ConversationId::generate(), AgentName::trusted("kael"));
        let mut waits = Waits::default();
        waits.note(place.clone(), &Attempt::ModelFailed(String::new()), 0);
        // The same model serves the other conversation.
        assert!(!waits.is_over(&other, 29_999) && waits.is_over(&other, 30_000));
        waits.note(place.clone(), &Attempt::ModelFailed(String::new()), 30_000);
        assert!(!waits.is_over(&place, 89_999) && waits.is_over(&place, 90_000));
        waits.note(place.clone(), &Attempt::Made, 90_000);
        waits.note(place.clone(), &Attempt::Rejected(String::new()), 90_000);
        assert!(!waits.is_over(&place, 100_000) && waits.is_over(&other, 100_000));
        assert_eq!(retry_wait_ms(60), RETRY_MAX_MS);
    }
}
