//! Titles of conversations that have none, by the model that makes an agent's summaries: the check for what is due,
//! and the handler of the job.
//!
//! A conversation gets at most one title; the model is asked until there is one or the attempt is given up. No answer
//! waits for it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;
use tracing::{debug, info};

use crate::agent::background::{BackgroundAsking, CostMeter, NoAnswer};
use crate::agent::models::Models;
use crate::agent::registry::{AgentSpec, BackgroundModel, Registry};
use crate::capture::clock::Clock;
use crate::delivery::rooms::Rooms;
use vocative_core::ids::ConversationId;
use vocative_core::job::TITLE_ATTEMPTS_MAX;
use vocative_core::queueing::Outcome;
use vocative_core::title::{clean_title, title_request};
use vocative_store::contract::{DueConversation, MadeTitle, TitleSource};
use vocative_store::spending::Purpose;
use vocative_store::{Store, StoreError, Working};

/// The shortest time between two checks for what is due.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// The wait for a model that rests or answers people, in milliseconds.
const BUSY_WAIT_MS: i64 = 30_000;
/// Milliseconds of a UTC day.
const DAY_MS: i64 = 86_400_000;

/// Has conversations titled.
pub struct Titler {
    /// The store with the conversations.
    pub store: Store<Working>,
    /// The rooms, with their spending limits.
    pub rooms: Rooms,
    /// The agents.
    pub registry: Registry,
    /// The models.
    pub models: Models,
    /// The time.
    pub clock: Clock,
    /// When it last checked what is due.
    pub looked: Mutex<Option<Instant>>,
}

/// The result of asking a model.
enum TitleReply {
    /// Its answer.
    Text(String),
    /// The model must be asked later.
    Later(Outcome),
    /// The model failed.
    Failed(String),
}

impl Titler {
    /// The conversations for whose title a model is to be asked. Only reads, and only at intervals.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn due(&self) -> Result<Vec<DueConversation>, StoreError> {
        let titling = self.titling();
        let mut due: Vec<DueConversation> = Vec::new();
        if titling.is_empty() || !self.is_time_to_look() {
            return Ok(due);
        }
        for spec in titling {
            let (agent, now_ms) = (spec.name.clone(), (self.clock)());
            for found in self.store.conversations_to_title(agent, now_ms).await? {
                if !due.contains(&found) {
                    due.push(found);
                }
            }
        }
        Ok(due)
    }

    fn is_time_to_look(&self) -> bool {
        let mut looked = self.looked.lock().expect("no holder of this lock panics");
        if looked.is_some_and(|at| at.elapsed() < LOOK_EVERY) {
            return false;
        }
        *looked = Some(Instant::now());
        true
    }

    /// The agents whose conversations are titled.
    fn titling(&self) -> Vec<Arc<AgentSpec>> {
        let mut agents = self.registry.all();
        agents.retain(|spec| spec.settings().titles && spec.summary_model.is_some());
        agents
    }

    /// Has a conversation titled: the job of the queue, in its first, second ... attempt.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn title(
        &self,
        conversation: ConversationId,
        attempt: u32,
    ) -> Result<Outcome, StoreError> {
        match self.try_title(conversation, attempt).await {
            // The conversation was merged with another one, or is gone.
            Err(StoreError::NotFound { .. }) => Ok(Outcome::Done),
            other => other,
        }
    }

    async fn try_title(
        &self,
        conversation: ConversationId,
        attempt: u32,
    ) -> Result<Outcome, StoreError> {
        let titling = self.titling();
        let mut made = MadeTitle {
            conversation,
            title: None,
            read: Vec::new(),
        };
        for spec in &titling {
            let agent = spec.name.clone();
            let source = self.store.title_source(conversation, agent).await?;
            let (Some(source), Some(model)) = (source, &spec.summary_model) else {
                continue;
            };
            if let Some(later) = self.used_up(&source).await? {
                return Ok(later);
            }
            let why = match self.said(conversation, spec, model, &source).await {
                TitleReply::Later(later) => return Ok(later),
                TitleReply::Text(text) => {
                    made.title = clean_title(&text);
                    made.read = source.read;
                    if self.store.settle_title(made.clone()).await? {
                        info!(conversation.id = %conversation, agent = %spec.name, is_titled = made.title.is_some(), "a model was asked for a conversation's title");
                        return Ok(Outcome::Done);
                    }
                    "what was read for the title changed meanwhile".to_owned()
                }
                TitleReply::Failed(why) => why,
            };
            if attempt < TITLE_ATTEMPTS_MAX {
                return Ok(Outcome::failed(why));
            }
            debug!(conversation.id = %conversation, reason = why, "a conversation stays without a title");
            made.title = None;
            break;
        }
        // No model is asked again, or this would be due at the next check; without such agents nothing is due.
        if !titling.is_empty() {
            self.store.settle_title(made).await?;
        }
        Ok(Outcome::Done)
    }

    fn later(&self, wait_ms: i64, why: &str) -> Outcome {
        Outcome::Later {
            not_before_ms: (self.clock)().saturating_add(wait_ms),
            why: why.to_owned(),
        }
    }

    /// Whether the day's tokens are used up.
    async fn used_up(&self, source: &TitleSource) -> Result<Option<Outcome>, StoreError> {
        let now_ms = (self.clock)();
        let spent_up = self
            .rooms
            .spent_up(&self.store, source.account, None, now_ms)
            .await?;
        let until_tomorrow_ms = DAY_MS - now_ms.rem_euclid(DAY_MS);
        let later = || self.later(until_tomorrow_ms, "the tokens of the day are used up");
        Ok(spent_up.map(|_| later()))
    }

    async fn said(
        &self,
        conversation: ConversationId,
        spec: &AgentSpec,
        model: &BackgroundModel,
        source: &TitleSource,
    ) -> TitleReply {
        let busy =
            || TitleReply::Later(self.later(BUSY_WAIT_MS, "the model rests, or answers people"));
        let Some(place) = self.models.try_begin(&model.model_use) else {
            return busy();
        };
        let whose = (source.account, conversation, &spec.name);
        let now_ms = (self.clock)();
        let meter = CostMeter::new(&self.store, Purpose::Summaries, whose, Some(model), now_ms);
        let asking = BackgroundAsking {
            model,
            hooks: &spec.hooks,
            deadline: spec.settings().run_deadline_s.duration(),
            place: Some(&place),
            meter: &meter,
        };
        match asking.ask(&title_request(&source.texts)).await {
            Ok(answer) => TitleReply::Text(answer.text),
            Err(NoAnswer::Busy) => busy(),
            Err(NoAnswer::Failed(cause)) => TitleReply::Failed(cause.to_string()),
        }
    }
}
