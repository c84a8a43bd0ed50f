//! Summaries of older turns: the check for what can be folded, and the handler of the job.
//!
//! Before a summary is stored, its sources are compared with the current turns, so being killed or overtaken costs a
//! call and does no harm. After a failure the previous summary stays in force; the queue decides when it is tried
//! again.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::time::Instant;
use tracing::{info, warn};
use vocative_contract::crash;

use crate::agent::background::{BackgroundAsking, CostMeter, NoAnswer};
use crate::agent::models::{ModelSlot, Models};
use crate::agent::prompting::{agent_view, options_in};
use crate::agent::registry::{AgentSpec, Registry};
use crate::capture::clock::Clock;
use crate::capture::wake::Wake;
use crate::counters::{CountedEvent, Counters};
use crate::delivery::rooms::Rooms;
use vocative_core::coverage::Coverage;
use vocative_core::folding::accept::accept;
use vocative_core::folding::details::Loss;
use vocative_core::folding::request::{again, input_max_tokens, request};
use vocative_core::folding::{offline, plan};
use vocative_core::history::HistoryTurn;
use vocative_core::ids::{AccountId, AgentName, ConversationId, SummaryId, TurnId};
use vocative_core::job::Job;
use vocative_core::options::AssemblerOptions;
use vocative_core::prompting::{ClassEstimate, PromptMessage, TokenCounter as _, record};
use vocative_core::queueing::Outcome;
use vocative_core::summary::{
    FoldBase, FoldOver, FoldQuery, FoldRule, FoldSource, NewSummary, RefoldStep, SummaryOutcome,
};
use vocative_store::contract::DueConversation;
use vocative_store::spending::Purpose;
use vocative_store::{Folding, Store, StoreError};

/// How often all conversations are checked; a wake hint has the newest checked at once.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// How many conversations are checked after a wake hint, by activity: the one just answered in is among them.
const NEWEST_ON_WAKE: usize = 20;
/// How many conversations are checked without a hint, by activity; an older one waits for its next turn.
const NEWEST_WITHOUT: usize = 1_000;
/// The most turns that are read for one summary; the rest is folded next.
const FOLD_TURNS_MAX: usize = 200;
/// The wait for a model that rests or answers people, in milliseconds.
const BUSY_WAIT_MS: i64 = 30_000;
/// Milliseconds of a UTC day.
const DAY_MS: i64 = 86_400_000;
/// A turn of a person may hold back itself and three of agents, bots or the platform.
const HELD_PER_PERSONS_TURN: usize = 4;
/// The text in place of turns without words.
const NOTHING_SAID: &str = "(Nothing was said.)";

/// Makes summaries.
pub struct Summarizer {
    /// The store with turns and summaries.
    pub store: Store<Folding>,
    /// The rooms, with our identities.
    pub rooms: Rooms,
    /// The agents.
    pub registry: Registry,
    /// The models.
    pub models: Models,
    /// Wake hints.
    pub wake: Wake,
    /// The time.
    pub clock: Clock,
    /// The counters of what it did.
    pub counters: Arc<Counters>,
    /// When it last checked all conversations.
    pub looked: Mutex<Option<Instant>>,
}

/// How a model is asked for a summary.
type SummaryAsking<'a> = BackgroundAsking<'a, Folding>;

/// What became of one attempt for one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SummaryAttempt {
    /// One or more summaries were stored.
    Made,
    /// There is nothing to fold.
    Nothing,
    /// A turn changed meanwhile.
    Outdated,
    /// The model rests, or answers people.
    ModelBusy,
    /// The tokens of the day are used up.
    SpentUp,
    /// The model failed, or its answer is no summary.
    Failed(String),
}

/// The part of a conversation that is folded at once for an agent.
struct FoldPart {
    source: FoldSource,
    coverage: Coverage,
    /// The number of its oldest turns.
    count: usize,
    /// The number of requests after which no further step begins.
    requests_max: u32,
}

impl Summarizer {
    /// The conversations in which turns can be folded and for which no job exists yet. Checks nothing unless a wake
    /// hint came or the last check is long ago.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn due(&self) -> Result<Vec<DueConversation>, StoreError> {
        match self.share_to_look_at() {
            Some(newest) => self.due_among(newest).await,
            None => Ok(Vec::new()),
        }
    }

    /// How many of the newest conversations are checked now.
    fn share_to_look_at(&self) -> Option<usize> {
        let mut looked = self.looked.lock().expect("no holder of this lock panics");
        let is_time = looked.is_some_and(|at| at.elapsed() >= LOOK_EVERY);
        if is_time || looked.is_none() {
            *looked = Some(Instant::now());
        }
        let is_told = self.wake.summaries.notified().now_or_never().is_some();
        match (is_time, is_told) {
            (true, _) => Some(NEWEST_WITHOUT),
            (false, true) => Some(NEWEST_ON_WAKE),
            (false, false) => None,
        }
    }

    pub(super) async fn due_among(
        &self,
        newest: usize,
    ) -> Result<Vec<DueConversation>, StoreError> {
        let places = self
            .store
            .conversations_to_fold(self.rules(), newest)
            .await?;
        let mut due: Vec<DueConversation> = Vec::new();
        for (conversation, agent) in places {
            let job = Job::SummarizeConversation { conversation };
            let is_known = due.iter().any(|it| it.conversation == conversation);
            let Some(spec) = self.registry.get(&agent) else {
                continue;
            };
            if is_known || self.store.is_queued(job).await? {
                continue;
            }
            match self.foldable(conversation, &spec).await {
                Ok(Some(part)) => due.push(DueConversation {
                    conversation,
                    account: part.source.history.conversation.account,
                }),
                // The conversation was merged with another one, or is gone.
                Ok(None) | Err(StoreError::NotFound { .. }) => {}
                // The other conversations go on.
                Err(StoreError::Undecodable { what }) => {
                    warn!(conversation.id = %conversation, %agent, what, "a conversation can't be summarised: a row of it can't be decoded");
                }
                Err(cause) => return Err(cause),
            }
        }
        Ok(due)
    }

    /// Folds a part of what can be folded in a conversation, for each agent: the job of the queue.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn summarize(&self, conversation: ConversationId) -> Result<Outcome, StoreError> {
        let (mut has_made, mut later, mut failed) = (false, None, None);
        for spec in self.registry.all() {
            let attempt = match self.fold(conversation, &spec).await {
                Err(StoreError::NotFound { .. }) => return Ok(Outcome::Done),
                other => other?,
            };
            self.report(conversation, &spec.name, &attempt);
            match attempt {
                SummaryAttempt::Nothing => {}
                SummaryAttempt::Made => has_made = true,
                SummaryAttempt::Outdated => {
                    failed = Some("turns changed while they were summarised".to_owned());
                }
                SummaryAttempt::Failed(why) => failed = Some(why),
                SummaryAttempt::ModelBusy => {
                    later = Some((BUSY_WAIT_MS, "the model rests, or answers people"));
                }
                SummaryAttempt::SpentUp => {
                    let until_tomorrow_ms = DAY_MS - (self.clock)().rem_euclid(DAY_MS);
                    later = Some((until_tomorrow_ms, "the tokens of the day are used up"));
                }
            }
        }
        // A long history is folded a part at a time, the conversations taking turns.
        let later = later.or(has_made.then_some((0, "there may be more to fold")));
        Ok(match (failed, later) {
            (Some(why), _) => Outcome::failed(why),
            (None, Some((wait_ms, why))) => Outcome::Later {
                not_before_ms: (self.clock)().saturating_add(wait_ms),
                why: why.to_owned(),
            },
            (None, None) => Outcome::Done,
        })
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

    fn report(&self, conversation: ConversationId, agent: &AgentName, attempt: &SummaryAttempt) {
        match attempt {
            SummaryAttempt::Made
            | SummaryAttempt::Nothing
            | SummaryAttempt::ModelBusy
            | SummaryAttempt::SpentUp => {}
            SummaryAttempt::Outdated => {
                self.counters.count(CountedEvent::SummariesOutdated);
                info!(conversation.id = %conversation, %agent, "turns changed while they were summarised; trying again");
            }
            SummaryAttempt::Failed(reason) => {
                self.counters.count(CountedEvent::SummariesFailed);
                warn!(conversation.id = %conversation, %agent, reason, "no summary was made; the one before stands");
            }
        }
    }

    /// Folds a part of what can be folded in one conversation for an agent.
    async fn fold(
        &self,
        conversation: ConversationId,
        spec: &AgentSpec,
    ) -> Result<SummaryAttempt, StoreError> {
        match self.foldable(conversation, spec).await? {
            Some(part) => self.fold_turns(part, spec).await,
            None => Ok(SummaryAttempt::Nothing),
        }
    }

    /// The turns that can be folded in a conversation for an agent, if any.
    async fn foldable(
        &self,
        conversation: ConversationId,
        spec: &AgentSpec,
    ) -> Result<Option<FoldPart>, StoreError> {
        let options = options_in(&self.store, spec, conversation).await?;
        let Some(FoldOver {
            coverage,
            threshold,
        }) = FoldOver::of(&options)
        else {
            return Ok(None);
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
            return Ok(None);
        };
        let count = plan::foldable(&source.history.turns, source.fold_before);
        if count == 0 {
            return Ok(None);
        }
        let refold = source.refold.as_ref();
        let requests_max = match refold.map(|refold| refold.step((self.clock)())) {
            None => u32::MAX,
            Some(RefoldStep::Fold(requests_max)) => requests_max,
            Some(RefoldStep::Wait) => return Ok(None),
            Some(RefoldStep::Note) => {
                self.store.note_refold(conversation, (self.clock)()).await?;
                return Ok(None);
            }
        };
        Ok(Some(FoldPart {
            source,
            coverage,
            count,
            requests_max,
        }))
    }

    /// Folds the oldest turns of a source, in as many steps as the model's context requires. A step that ends at a
    /// whole turn is stored, so that the next start goes on from there. Before each request the store is asked
    /// whether all of it may still be sent.
    async fn fold_turns(
        &self,
        part: FoldPart,
        spec: &AgentSpec,
    ) -> Result<SummaryAttempt, StoreError> {
        let FoldPart {
            source,
            coverage,
            count,
            requests_max,
        } = part;
        let place = match &spec.summary_model {
            Some(summariser) => match self.models.try_begin(&summariser.model_use) {
                Some(place) => Some(place),
                None => return Ok(SummaryAttempt::ModelBusy),
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
            let mut summary = self.summary(&source, spec, coverage.clone(), previous, turns, made);
            summary.requests = std::mem::take(&mut requests);
            requests_used += summary.requests;
            crash::point("summary.before-commit");
            let added = self.store.add_summary(summary).await?;
            crash::point("summary.after-commit");
            match added {
                SummaryOutcome::Written(id) => {
                    previous = Some(id);
                    done = completes;
                    self.counters.count(CountedEvent::SummariesMade);
                    info!(conversation.id = %history.conversation.id, agent = %spec.name, turns = turns.len(), "a summary was made");
                }
                SummaryOutcome::Outdated => return Ok(SummaryAttempt::Outdated),
            }
            if requests_used >= requests_max {
                break;
            }
        }
        Ok(SummaryAttempt::Made)
    }

    /// A summary of the earlier summary and the turns since. If it lost more details than it kept, the model is asked
    /// once more; then the better of the two counts.
    async fn made(
        &self,
        spec: &AgentSpec,
        asking: Option<SummaryAsking<'_>>,
        (previous, turns): (Option<&str>, &str),
        base: &FoldBase,
    ) -> Result<Result<MadeSummary, SummaryAttempt>, StoreError> {
        let made = |text: String, requests| Ok(Ok(MadeSummary { text, requests }));
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
        self.counters.count(CountedEvent::SummariesAskedAgain);
        let messages = again(&messages, &answer, &loss.lost);
        // Even if the second request fails, the first answer is a summary.
        let second = ask(&asking, &messages).await.ok().map(|(_, text)| text);
        let better =
            second.filter(|text| Loss::of(text, previous, turns).lost.len() < loss.lost.len());
        made(better.unwrap_or(text), 2)
    }

    /// Why a request is not made: the day's tokens are used up, or a part of it may not be sent any more.
    async fn refused(
        &self,
        spec: &AgentSpec,
        asking: Option<&SummaryAsking<'_>>,
        base: &FoldBase,
    ) -> Result<Option<SummaryAttempt>, StoreError> {
        if let Some(asking) = asking
            && let Some(refused) = self.refused_by_limit(asking.meter.account, spec).await?
        {
            return Ok(Some(refused));
        }
        let is_base = self.store.is_fold_base(base.clone()).await?;
        Ok((!is_base).then_some(SummaryAttempt::Outdated))
    }

    /// Why an account's summaries wait: its tokens of the day are used up. The built-in summaries use none.
    async fn refused_by_limit(
        &self,
        account: AccountId,
        spec: &AgentSpec,
    ) -> Result<Option<SummaryAttempt>, StoreError> {
        if spec.summary_model.is_none() {
            return Ok(None);
        }
        let now_ms = (self.clock)();
        let spent_up = self
            .rooms
            .spent_up(&self.store, account, None, now_ms)
            .await?;
        Ok(spent_up.map(|_| SummaryAttempt::SpentUp))
    }

    fn meter<'a>(
        &'a self,
        account: AccountId,
        conversation: ConversationId,
        spec: &'a AgentSpec,
    ) -> CostMeter<'a, Folding> {
        let whose = (account, conversation, &spec.name);
        let model = spec.summary_model.as_ref();
        CostMeter::new(
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

/// How many turns in all the newest turns of people may hold back from being folded: never more than are read for a
/// prompt.
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
struct MadeSummary {
    text: String,
    /// The number of requests that it took.
    requests: u32,
}

/// How a model is asked for a summary; `None` where they are made without one.
fn asking_of<'a>(
    spec: &'a AgentSpec,
    place: Option<&'a ModelSlot>,
    meter: &'a CostMeter<'a, Folding>,
) -> Option<SummaryAsking<'a>> {
    Some(BackgroundAsking {
        model: spec.summary_model.as_ref()?,
        hooks: &spec.hooks,
        deadline: spec.settings().run_deadline_s.duration(),
        place,
        meter,
    })
}

/// The model's answer, and the summary in it.
async fn ask(
    asking: &SummaryAsking<'_>,
    messages: &[PromptMessage],
) -> Result<(String, String), SummaryAttempt> {
    let answer = asking.ask(messages).await.map_err(|cause| match cause {
        NoAnswer::Busy => SummaryAttempt::ModelBusy,
        NoAnswer::Failed(cause) => SummaryAttempt::Failed(cause.to_string()),
    })?;
    let text = accept(&answer.text, answer.finish, &ClassEstimate)
        .map_err(|cause| SummaryAttempt::Failed(cause.to_string()))?;
    Ok((answer.text, text))
}

impl Summarizer {
    /// Folds once wherever turns can be folded; returns in how many conversations a summary was made.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn once(&self) -> Result<usize, StoreError> {
        let mut made = 0;
        for due in self.due_among(NEWEST_WITHOUT).await? {
            let before = self.counters.of(CountedEvent::SummariesMade);
            self.summarize(due.conversation).await?;
            made += usize::from(self.counters.of(CountedEvent::SummariesMade) > before);
        }
        Ok(made)
    }
}
