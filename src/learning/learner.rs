//! Reads conversations for memory: the handler of the job, and the check for what is due.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;
use tracing::{info, warn};
use vocative_contract::crash;
use vocative_contract::envelope::Place;

use crate::agent::background::{BackgroundAsking, CostMeter, NoAnswer};
use crate::agent::models::Models;
use crate::agent::registry::{AgentSpec, BackgroundModel, Registry};
use crate::capture::clock::Clock;
use crate::counters::{CountedEvent, Counters};
use crate::delivery::rooms::Rooms;
use crate::llm::ModelError;
use vocative_core::ids::{ConversationId, TurnId};
use vocative_core::options::MemoryMode;
use vocative_core::queueing::Outcome;
use vocative_core::remembering::StoredMemory;
use vocative_core::remembering::extracting::{
    LINES_MAX_CHARS, ReadAnswer, SpokenLine, extraction_request, known_for, once_more, read_answer,
};
use vocative_store::contract::{
    DueConversation, Extracted, Extraction, IsServed, MemoryQuery, UnreadQuery, UnreadTurns,
};
use vocative_store::spending::Purpose;
use vocative_store::{Learning, Store, StoreError};

/// The longest time between two checks for what is due.
const LOOK_EVERY_MAX: Duration = Duration::from_secs(30);
/// The most parts of a conversation that one attempt reads.
const PARTS_MAX: usize = 20;
/// How often a part is read again because another reader has read it meanwhile.
const OUTDATED_MAX: usize = 3;
/// The wait for a model that rests or answers people, in milliseconds.
const BUSY_WAIT_MS: i64 = 30_000;
/// The wait before a long conversation is read on, in milliseconds.
const NEXT_PART_MS: i64 = 1_000;
/// Milliseconds of a UTC day.
const DAY_MS: i64 = 86_400_000;
/// The tokens that instructions and notes take of a small context.
const FRAME_TOKENS: usize = 1_500;
/// The fewest characters of lines that are read at once.
const LINES_MIN_CHARS: usize = 1_000;

/// Reads conversations for memory.
pub struct Learner {
    /// The store with the conversations.
    pub store: Store<Learning>,
    /// Who is served where.
    pub rooms: Rooms,
    /// The agents.
    pub registry: Registry,
    /// The models.
    pub models: Models,
    /// The time.
    pub clock: Clock,
    /// The counters of what it did.
    pub counters: Arc<Counters>,
    /// When it last checked what is due.
    pub looked: Mutex<Option<Instant>>,
}

/// What became of one part of a conversation.
enum PartOutcome {
    /// It was read; `has_more` = there is more.
    Read { has_more: bool },
    /// There is nothing to read.
    Nothing,
    /// It must be read later.
    Later(Outcome),
}

/// A model's answer about some lines.
enum LearnerReply {
    /// The entries that count; `None` = its answers can't be parsed.
    Answer(Option<ReadAnswer>),
    /// The model could not be asked.
    Later(Outcome),
}

impl Learner {
    /// The conversations that are to be read now. Only reads, and only at intervals.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn due(&self) -> Result<Vec<DueConversation>, StoreError> {
        let learning = self.learning();
        let quiet_ms = learning
            .iter()
            .map(|spec| spec.settings().memory_after_quiet_s.ms())
            .min();
        if !quiet_ms.is_some_and(|quiet_ms| self.is_time_to_look(quiet_ms)) {
            return Ok(Vec::new());
        }
        let mut due: Vec<DueConversation> = Vec::new();
        for spec in learning {
            let (agent, now_ms) = (spec.name.clone(), (self.clock)());
            let found = self.store.conversations_to_read(
                agent,
                spec.settings().memory_after_quiet_s.ms(),
                now_ms,
            );
            for found in found.await? {
                if !due.contains(&found) {
                    due.push(found);
                }
            }
        }
        Ok(due)
    }

    fn is_time_to_look(&self, quiet_ms: i64) -> bool {
        let quiet_ms = u64::try_from(quiet_ms).unwrap_or(0);
        let every = LOOK_EVERY_MAX.min(Duration::from_millis(quiet_ms / 2));
        let mut looked = self.looked.lock().expect("no holder of this lock panics");
        if looked.is_some_and(|at| at.elapsed() < every) {
            return false;
        }
        *looked = Some(Instant::now());
        true
    }

    /// The agents that learn in the background.
    fn learning(&self) -> Vec<Arc<AgentSpec>> {
        let mut agents = self.registry.all();
        agents
            .retain(|spec| spec.options.memory == MemoryMode::Auto && spec.memory_model.is_some());
        agents
    }

    /// Lets every agent that learns read the unread part of a conversation: the job of the queue.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn learn(&self, conversation: ConversationId) -> Result<Outcome, StoreError> {
        for spec in self.learning() {
            let mut outdated = 0;
            for part in 0.. {
                if part == PARTS_MAX || outdated > OUTDATED_MAX {
                    return Ok(self.later(NEXT_PART_MS, "there is more to be read"));
                }
                match self.part(conversation, &spec, &mut outdated).await {
                    Ok(PartOutcome::Read { has_more: true }) => {}
                    Ok(PartOutcome::Read { has_more: false } | PartOutcome::Nothing) => break,
                    Ok(PartOutcome::Later(outcome)) => return Ok(outcome),
                    // The conversation was merged with another one, or is gone.
                    Err(StoreError::NotFound { .. }) => return Ok(Outcome::Done),
                    Err(cause) => return Err(cause),
                }
            }
        }
        Ok(Outcome::Done)
    }

    fn later(&self, wait_ms: i64, why: &str) -> Outcome {
        Outcome::Later {
            not_before_ms: (self.clock)().saturating_add(wait_ms),
            why: why.to_owned(),
        }
    }

    async fn part(
        &self,
        conversation: ConversationId,
        spec: &AgentSpec,
        outdated: &mut usize,
    ) -> Result<PartOutcome, StoreError> {
        let Some(model) = &spec.memory_model else {
            return Ok(PartOutcome::Nothing);
        };
        let query = UnreadQuery {
            conversation,
            agent: spec.name.clone(),
            max_chars: lines_max_chars(model),
            now_ms: (self.clock)(),
        };
        let Some(unread) = self.store.unread_turns(query).await? else {
            return Ok(PartOutcome::Nothing);
        };
        let place = Place {
            chat: unread.chat.clone(),
            kind: unread.kind,
            ..Place::default()
        };
        let agent = Some(&spec.name);
        let is_room = self
            .rooms
            .admits_now(unread.account, &place, None, agent)
            .await;
        let (rooms, account) = (self.rooms.clone(), unread.account);
        let is_served: IsServed =
            Arc::new(move |person| is_room && rooms.still_admits(account, &place, Some(person)));
        let (lines, passed_over) = split(&unread, &is_served);
        let mut read = ReadAnswer::default();
        if !lines.is_empty() {
            if let Some(later) = self.used_up(&unread, spec).await? {
                return Ok(PartOutcome::Later(later));
            }
            let known = self.known(conversation, spec, &lines, &is_served).await?;
            match self
                .said(conversation, spec, model, (&unread, &lines, &known))
                .await
            {
                LearnerReply::Answer(answer) => read = answer.unwrap_or_default(),
                LearnerReply::Later(outcome) => return Ok(PartOutcome::Later(outcome)),
            }
        }
        self.counters
            .add(CountedEvent::MemoryRefused, read.refused.len() as u64);
        let extraction = Extraction {
            conversation,
            agent: spec.name.clone(),
            mark: unread.mark,
            lines: lines_as_read(&unread, &lines),
            passed_over,
            entries: read.entries,
            is_served,
            now_ms: (self.clock)(),
        };
        let has_more = unread.has_more;
        crash::point("memory.extracted");
        match self.store.write_extraction(extraction).await? {
            Extracted::Done(done) => {
                let written = done.written.len();
                self.counters
                    .add(CountedEvent::MemoryLearnt, written as u64);
                let refused = read.refused.len() + done.refused.len() + done.older;
                if written + refused + done.gone > 0 {
                    info!(conversation.id = %conversation, agent = %spec.name, written, replaced = done.replaced.len(), refused, gone = done.gone, "a conversation was read for memory");
                }
                Ok(PartOutcome::Read { has_more })
            }
            Extracted::Outdated => {
                *outdated += 1;
                Ok(PartOutcome::Read { has_more: true })
            }
        }
    }

    /// Whether the day's tokens are used up.
    async fn used_up(
        &self,
        unread: &UnreadTurns,
        spec: &AgentSpec,
    ) -> Result<Option<Outcome>, StoreError> {
        let now_ms = (self.clock)();
        let spent = self.store.memory_tokens(unread.account, now_ms).await?;
        let most = spec.settings().memory_tokens_per_day;
        let is_spent = most > 0 && spent >= most;
        let spent_up = self
            .rooms
            .spent_up(&self.store, unread.account, None, now_ms)
            .await?;
        if !is_spent && spent_up.is_none() {
            return Ok(None);
        }
        let why = match is_spent {
            true => "memory_tokens_per_day is spent",
            false => "the tokens of the day are used up",
        };
        let tomorrow_ms = now_ms - now_ms.rem_euclid(DAY_MS) + DAY_MS;
        Ok(Some(self.later(tomorrow_ms - now_ms, why)))
    }

    /// The notes of the room that the model is shown along with these lines.
    async fn known(
        &self,
        conversation: ConversationId,
        spec: &AgentSpec,
        lines: &[SpokenLine],
        is_served: &IsServed,
    ) -> Result<Vec<StoredMemory>, StoreError> {
        let query = MemoryQuery {
            conversation,
            agent: spec.name.clone(),
            with_replaced: false,
            only: None,
        };
        let mut entries = self.store.memories_in(query).await?;
        entries.retain(|entry| is_served(&entry.teller.id));
        Ok(known_for(&entries, lines))
    }

    /// The entries that the model finds in these lines. If its answer is no JSON, it is asked once more.
    async fn said(
        &self,
        conversation: ConversationId,
        spec: &AgentSpec,
        model: &BackgroundModel,
        (unread, lines, known): (&UnreadTurns, &[SpokenLine], &[StoredMemory]),
    ) -> LearnerReply {
        let Some(place) = self.models.try_begin(&model.model_use) else {
            return LearnerReply::Later(
                self.later(BUSY_WAIT_MS, "the model rests, or answers people"),
            );
        };
        let whose = (unread.account, conversation, &spec.name);
        let now_ms = (self.clock)();
        let meter = CostMeter::new(&self.store, Purpose::Memory, whose, Some(model), now_ms);
        let asking = BackgroundAsking {
            model,
            hooks: &spec.hooks,
            deadline: spec.settings().run_deadline_s.duration(),
            place: Some(&place),
            meter: &meter,
        };
        let mut messages = extraction_request(&spec.agent.display_name, lines, known);
        for attempt in 1..=2 {
            let answer = match asking.ask(&messages).await {
                Ok(answer) => answer,
                // The provider refuses these lines and would refuse them again.
                Err(NoAnswer::Failed(cause)) if is_about_the_lines(&cause) => {
                    return self.unreadable(conversation, spec, &cause.to_string());
                }
                Err(NoAnswer::Failed(cause)) => return LearnerReply::Later(failed(&cause)),
                Err(NoAnswer::Busy) => {
                    return LearnerReply::Later(self.later(BUSY_WAIT_MS, "the model rests"));
                }
            };
            match read_answer(&answer.text, answer.finish, lines, known) {
                Ok(read) => return LearnerReply::Answer(Some(read)),
                Err(fault) if attempt == 2 => {
                    return self.unreadable(conversation, spec, &fault.to_string());
                }
                Err(_) => messages = once_more(&messages, &answer.text),
            }
        }
        LearnerReply::Answer(None)
    }

    /// Skips lines from which nothing can be learnt; otherwise no line after them would ever be read.
    fn unreadable(
        &self,
        conversation: ConversationId,
        spec: &AgentSpec,
        reason: &str,
    ) -> LearnerReply {
        self.counters.count(CountedEvent::MemoryUnreadable);
        warn!(conversation.id = %conversation, agent = %spec.name, reason, "nothing was learnt of some lines: the model's answer can't be read");
        LearnerReply::Answer(None)
    }
}

fn is_about_the_lines(cause: &ModelError) -> bool {
    matches!(
        cause,
        ModelError::Refused { .. }
            | ModelError::ContextTooLong { .. }
            | ModelError::Truncated
            | ModelError::Empty
    )
}

fn failed(cause: &ModelError) -> Outcome {
    let asked_wait_ms = match cause {
        ModelError::RetryAfter { wait_ms } => *wait_ms,
        _ => None,
    };
    Outcome::Failed {
        why: cause.to_string(),
        asked_wait_ms,
    }
}

/// How many characters of lines fit into the model's context besides the frame.
fn lines_max_chars(model: &BackgroundModel) -> usize {
    let Some(limit) = model.context_limit else {
        return LINES_MAX_CHARS;
    };
    let left = limit.saturating_sub(model.answer_reserve + FRAME_TOKENS);
    // Two characters a token, so that no script overflows it.
    (left * 2).clamp(LINES_MIN_CHARS, LINES_MAX_CHARS)
}

/// Splits turns into the lines that are shown and the turns that are not.
fn split(unread: &UnreadTurns, is_served: &IsServed) -> (Vec<SpokenLine>, Vec<TurnId>) {
    let (shown, hidden): (Vec<_>, Vec<_>) = unread
        .turns
        .iter()
        .partition(|turn| is_served(&turn.platform_id));
    let lines = shown.into_iter().map(|turn| SpokenLine {
        turn: turn.id,
        said_by: turn.said_by,
        name: turn.name.clone(),
        sent_at_ms: turn.sent_at_ms,
        text: turn.shown.clone(),
    });
    let hidden = hidden.into_iter().map(|turn| turn.id);
    let passed_over = hidden.chain(unread.silent.iter().copied());
    (lines.collect(), passed_over.collect())
}

/// The shown turns with their full text, in the lines' order.
fn lines_as_read(unread: &UnreadTurns, lines: &[SpokenLine]) -> Vec<(TurnId, String)> {
    let content = |line: &SpokenLine| {
        let turn = unread.turns.iter().find(|turn| turn.id == line.turn)?;
        Some((turn.id, turn.content.clone()))
    };
    lines.iter().filter_map(content).collect()
}
