//! The models as shared by all that ask them: how many runs each takes at once, and which rest.
//!
//! A model at rest is also a row, for `status` and for the next start; how a rest comes about: `standing`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::time::Instant;
use tracing::{error, info, warn};

use crate::agent::registry::{ModelUse, Registry};
use crate::agent::standing::{BothClocks, Change, ModelQuestion, ModelStanding, Rest};
use crate::capture::clock::Clock;
use crate::capture::wake::Wake;
use crate::llm::ModelError;
use vocative_core::ids::{AgentName, RunId};
use vocative_core::model_rest::ModelRest;
use vocative_store::{Replying, Store, StoreError};

/// The models. Cloning shares them.
#[derive(Clone)]
pub struct Models {
    inner: Arc<ModelsInner>,
}

struct ModelsInner {
    store: Store<Replying>,
    registry: Registry,
    wake: Wake,
    clock: Clock,
    begun: Instant,
    models: Mutex<BTreeMap<String, Used>>,
}

#[derive(Default)]
struct Used {
    standing: ModelStanding,
    at_work: usize,
}

/// A place at a model, for a run or a summary; dropping it frees it.
pub struct ModelSlot {
    models: Models,
    name: String,
    asked: ModelQuestion,
    /// Why the model rested when this place was taken, if it did: the model must not be asked.
    refused: Option<ModelError>,
    /// Whether the model answered or failed.
    was_heard: AtomicBool,
}

impl Models {
    /// No model rests.
    #[must_use]
    pub fn new(store: Store<Replying>, registry: Registry, wake: Wake, clock: Clock) -> Self {
        let inner = ModelsInner {
            store,
            registry,
            wake,
            clock,
            begun: Instant::now(),
            models: Mutex::default(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Continues from what an earlier process stored: a rest goes on for as long as it had left, whatever the wall
    /// clock did meanwhile; a model whose account was refused is tried at once.
    pub async fn load(&self) {
        let rests = match self.inner.store.model_rests().await {
            Ok(rests) => rests,
            Err(cause) => {
                warn!(error = %cause, "which models rest could not be read; it is learnt again");
                return;
            }
        };
        let now = self.now();
        let mut models = self.models();
        for rest in rests {
            let whole_ms = (rest.until_ms - rest.noted_at_ms).max(0);
            let left_ms = match rest.is_held {
                true => 0,
                false => (rest.until_ms - now.wall_ms).clamp(0, whole_ms),
            };
            let until_ms = now.steady_ms + left_ms;
            let standing = ModelStanding::resting(
                rest.is_held,
                error_of(rest.is_held, rest.reason),
                until_ms,
                rest.since_ms,
            );
            models.entry(rest.model).or_default().standing = standing;
        }
    }

    /// Whether one more run may begin to ask a model.
    #[must_use]
    pub fn is_open(&self, model: &ModelUse) -> bool {
        let steady_ms = self.now().steady_ms;
        let models = self.models();
        models.get(&model.name).is_none_or(|used| {
            let standing = &used.standing;
            standing.is_open(used.at_work, model.max_parallel, steady_ms)
        })
    }

    /// Whether the model has as many runs as it may have at once. A model at rest is not busy.
    #[must_use]
    pub fn is_busy(&self, model: &ModelUse) -> bool {
        let steady_ms = self.now().steady_ms;
        let models = self.models();
        models.get(&model.name).is_some_and(|used| {
            let standing = &used.standing;
            !standing.is_refused(steady_ms)
                && !standing.is_open(used.at_work, model.max_parallel, steady_ms)
        })
    }

    /// The first of these models that does not rest.
    #[must_use]
    pub fn first_awake<'a>(
        &self,
        mut chain: impl Iterator<Item = &'a ModelUse>,
    ) -> Option<&'a ModelUse> {
        let steady_ms = self.now().steady_ms;
        let models = self.models();
        chain.find(|model| {
            let used = models.get(&model.name);
            used.is_none_or(|used| !used.standing.is_refused(steady_ms))
        })
    }

    /// A place for a run that was claimed.
    #[must_use]
    pub fn begin(&self, model: &ModelUse, run: RunId) -> ModelSlot {
        let steady_ms = self.now().steady_ms;
        let mut models = self.models();
        let used = models.entry(model.name.clone()).or_default();
        let is_open = used
            .standing
            .is_open(used.at_work, model.max_parallel, steady_ms);
        self.place(model, used, Some(run), is_open)
    }

    /// A place for work that can wait; `None` if none is free.
    #[must_use]
    pub fn try_begin(&self, model: &ModelUse) -> Option<ModelSlot> {
        let steady_ms = self.now().steady_ms;
        let mut models = self.models();
        let used = models.entry(model.name.clone()).or_default();
        let is_open = used
            .standing
            .is_open(used.at_work, model.max_parallel, steady_ms);
        is_open.then(|| self.place(model, used, None, true))
    }

    /// Lets the next question try each resting model: a change may have repaired them.
    pub fn try_all(&self) {
        let steady_ms = self.now().steady_ms;
        for used in self.models().values_mut() {
            if used.standing.rest().is_some_and(|rest| rest.is_held) {
                used.standing.try_now(steady_ms);
            }
        }
        self.inner.wake.runs.notify_one();
    }

    /// A person decides that a model is asked again. Returns whether it rested.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn release(&self, model: &str) -> Result<bool, StoreError> {
        let was_resting = self
            .models()
            .get_mut(model)
            .is_some_and(|used| used.standing.release());
        let was_noted = self.inner.store.end_model_rest(model).await?;
        self.bring_forward(model).await?;
        Ok(was_resting || was_noted)
    }

    /// Takes a place at a model; at a rest, only the run that tries the model may ask it.
    fn place(
        &self,
        model: &ModelUse,
        used: &mut Used,
        run: Option<RunId>,
        is_open: bool,
    ) -> ModelSlot {
        used.at_work += 1;
        let steady_ms = self.now().steady_ms;
        let refused = match used.standing.rest() {
            Some(rest) if !is_open => Some(as_error(rest, steady_ms)),
            _ => None,
        };
        ModelSlot {
            models: self.clone(),
            name: model.name.clone(),
            asked: if refused.is_none() {
                used.standing.begin(run)
            } else {
                used.standing.pass(run)
            },
            refused,
            was_heard: AtomicBool::new(false),
        }
    }

    async fn bring_forward(&self, model: &str) -> Result<(), StoreError> {
        let agents: Vec<AgentName> = self.inner.registry.of_model(model);
        let now_ms = (self.inner.clock)();
        let store = &self.inner.store;
        store.bring_runs_forward(&agents, now_ms).await?;
        self.inner.wake.runs.notify_one();
        Ok(())
    }

    /// Stores a change.
    async fn keep(&self, model: &str, change: Change) {
        let kept = match change {
            Change::None => return,
            Change::Rests(rest) => {
                self.tell(model, &rest);
                self.inner
                    .store
                    .note_model_rest(self.row(model, &rest))
                    .await
            }
            Change::Ended => {
                info!(model, "the model answers again");
                let ended = self.inner.store.end_model_rest(model).await;
                match ended {
                    Ok(_) => self.bring_forward(model).await,
                    Err(cause) => Err(cause),
                }
            }
        };
        if let Err(cause) = kept {
            warn!(error = %cause, model, "how it is with a model could not be stored; a restart learns it again");
        }
    }

    fn tell(&self, model: &str, rest: &Rest) {
        let wait_ms = rest.until_ms - self.now().steady_ms;
        let reason = rest.reason();
        if rest.is_held {
            error!(
                model,
                reason,
                wait_ms,
                "the model's account is refused; its questions wait, and one tries again after the wait"
            );
        } else {
            warn!(
                model,
                reason, wait_ms, "the model rests; its questions wait"
            );
        }
    }

    fn row(&self, model: &str, rest: &Rest) -> ModelRest {
        let now = self.now();
        ModelRest {
            model: model.to_owned(),
            is_held: rest.is_held,
            reason: rest.reason(),
            since_ms: rest.since_wall_ms,
            noted_at_ms: now.wall_ms,
            until_ms: now.wall_ms + (rest.until_ms - now.steady_ms),
        }
    }

    fn now(&self) -> BothClocks {
        let elapsed_ms = self.inner.begun.elapsed().as_millis();
        BothClocks {
            steady_ms: i64::try_from(elapsed_ms).unwrap_or(i64::MAX),
            wall_ms: (self.inner.clock)(),
        }
    }

    fn models(&self) -> MutexGuard<'_, BTreeMap<String, Used>> {
        self.inner
            .models
            .lock()
            .expect("no holder of this lock panics")
    }
}

impl ModelSlot {
    /// Why the model must not be asked: it rests, since before this place was taken or since then.
    #[must_use]
    pub fn refused(&self) -> Option<ModelError> {
        if let Some(refused) = &self.refused {
            return Some(refused.clone());
        }
        let steady_ms = self.models.now().steady_ms;
        let models = self.models.models();
        let standing = &models.get(&self.name)?.standing;
        let rest = standing.rests_since(self.asked)?;
        Some(as_error(rest, steady_ms))
    }

    /// The model's configured name.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.name
    }

    /// Whether the model answered or failed since this place was taken.
    pub(super) fn was_heard(&self) -> bool {
        self.was_heard.load(Ordering::Relaxed)
    }

    /// Notes that the model answered or failed.
    pub async fn note<T>(&self, outcome: &Result<T, ModelError>) {
        self.was_heard.store(true, Ordering::Relaxed);
        let now = self.models.now();
        let change = {
            let mut models = self.models.models();
            let used = models.entry(self.name.clone()).or_default();
            match outcome {
                Ok(_) => used.standing.answered(self.asked),
                Err(error) => used.standing.failed(self.asked, error, now),
            }
        };
        self.models.keep(&self.name, change).await;
    }
}

impl Drop for ModelSlot {
    fn drop(&mut self) {
        let mut models = self.models.models();
        if let Some(used) = models.get_mut(&self.name) {
            used.at_work = used.at_work.saturating_sub(1);
            used.standing.end_try(self.asked);
        }
    }
}

/// The error of a rest that an earlier process stored.
fn error_of(is_held: bool, reason: String) -> ModelError {
    match is_held {
        true => ModelError::AccountRefused { reason },
        false => ModelError::Unavailable { cause: reason },
    }
}

/// The error for a question that is not sent because of a rest.
fn as_error(rest: &Rest, steady_ms: i64) -> ModelError {
    if rest.is_held {
        return rest.error.clone();
    }
    let left_ms = u64::try_from(rest.until_ms - steady_ms).unwrap_or(0);
    match &rest.error {
        ModelError::RetryAfter { .. } => ModelError::RetryAfter {
            wait_ms: Some(left_ms),
        },
        error => error.clone(),
    }
}
