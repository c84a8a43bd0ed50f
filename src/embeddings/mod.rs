//! Vectors of messages, if `[embeddings]` names a server: turns are embedded in the background, and a query when a
//! search is made. If the server is down, recall gets worse, but no answer is lost.

pub mod client;

use std::sync::Arc;
use std::time::Duration;

use tracing::{info, warn};
use vocative_core::queueing::Outcome;
use vocative_core::vector::Vector;
use vocative_store::vectors::{EmbeddingBatch, EmbeddingModelId};
use vocative_store::{Store, StoreError, Working};

use self::client::{Embedded, EmbeddingClient, EmbeddingError};

/// The most turns of one request. *Source:* `docs/adr/0042`.
const BATCH_MAX: usize = 64;
/// How long a request for a batch may take.
const BATCH_WITHIN: Duration = Duration::from_secs(60);
/// How long an answer waits for the vectors of its query.
const QUERY_WITHIN: Duration = Duration::from_secs(2);
/// How much of a query is embedded, in characters.
const QUERY_MAX_CHARS: usize = 2_000;
/// Milliseconds of a UTC day.
const DAY_MS: i64 = 86_400_000;
/// A text that every model takes: it tells a refused text from a refused request.
const HARMLESS: &str = "hello";

/// Makes vectors, and stores them.
pub struct Embeddings {
    /// Asks the server.
    pub client: EmbeddingClient,
    /// The store with turns and vectors.
    pub store: Store<Working>,
    /// The model that made the vectors.
    pub model: EmbeddingModelId,
    /// The most tokens of a UTC day; 0 = no limit.
    pub tokens_per_day: u64,
    /// The time, in milliseconds since the Unix epoch.
    pub clock: Arc<dyn Fn() -> i64 + Send + Sync>,
}

impl Embeddings {
    /// Vectors of search queries, in their order; `None` if there are none in time: then only words are searched for.
    pub async fn of_queries(&self, queries: &[String]) -> Option<Vec<Vector>> {
        let cut = |text: &String| text.chars().take(QUERY_MAX_CHARS).collect::<String>();
        let queries: Vec<String> = queries.iter().map(cut).collect();
        if queries.iter().all(|query| query.trim().is_empty()) || !self.has_tokens().await {
            return None;
        }
        let embedded = match self.asked(&queries, QUERY_WITHIN).await {
            Ok(embedded) => embedded,
            Err(cause) => {
                warn!(error = %cause, "a search goes by words alone");
                return None;
            }
        };
        let spent = self
            .store
            .spend_on_embedding(self.model, embedded.tokens, (self.clock)());
        if let Err(cause) = spent.await {
            warn!(error = %cause, "tokens of a search could not be counted");
        }
        Some(embedded.vectors)
    }

    async fn has_tokens(&self) -> bool {
        match self.tokens_left().await {
            Ok(left) => left > 0,
            Err(cause) => {
                warn!(error = %cause, "the tokens of embeddings could not be read");
                false
            }
        }
    }

    async fn tokens_left(&self) -> Result<u64, StoreError> {
        if self.tokens_per_day == 0 {
            return Ok(u64::MAX);
        }
        let spent = self.store.embedding_tokens(self.model, (self.clock)());
        Ok(self.tokens_per_day.saturating_sub(spent.await?))
    }

    /// Embeds the remaining turns, batch by batch: the job of the queue.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn fill(&self) -> Result<Outcome, StoreError> {
        while self.store.remove_old_vectors().await? {}
        let mut turns = 0;
        while let Some(batch) = self.store.embedding_batch(self.model, BATCH_MAX).await? {
            let now_ms = (self.clock)();
            if self.tokens_left().await? == 0 {
                return Ok(Outcome::Later {
                    not_before_ms: now_ms - now_ms.rem_euclid(DAY_MS) + DAY_MS,
                    why: "embeddings.tokens_per_day is spent".to_owned(),
                });
            }
            let (batch, embedded) = match self.embedded(batch).await {
                Ok(done) => done,
                Err(cause) => {
                    let asked_wait_ms = match &cause {
                        EmbeddingError::Unavailable { wait_ms, .. } => *wait_ms,
                        EmbeddingError::Refused { .. } => None,
                    };
                    return Ok(Outcome::Failed {
                        why: cause.to_string(),
                        asked_wait_ms,
                    });
                }
            };
            turns += embedded.vectors.len();
            let (vectors, tokens) = (embedded.vectors, embedded.tokens);
            self.store
                .store_vectors(self.model, batch, vectors, tokens, now_ms)
                .await?;
        }
        if turns > BATCH_MAX {
            info!(turns, "turns were embedded");
        }
        Ok(Outcome::Done)
    }

    /// The vectors of a batch. Texts that the server refuses one by one get none.
    async fn embedded(
        &self,
        mut batch: EmbeddingBatch,
    ) -> Result<(EmbeddingBatch, Embedded), EmbeddingError> {
        let mut all = Embedded {
            vectors: Vec::new(),
            tokens: 0,
        };
        if batch.turns.is_empty() {
            return Ok((batch, all));
        }
        let texts: Vec<String> = batch.turns.iter().map(|(_, text)| text.clone()).collect();
        match self.asked(&texts, BATCH_WITHIN).await {
            Err(EmbeddingError::Refused { .. }) => {}
            asked => return asked.map(|embedded| (batch, embedded)),
        }
        self.asked(&[HARMLESS.to_owned()], BATCH_WITHIN).await?;
        let mut turns = Vec::new();
        for (seq, text) in batch.turns {
            match self.asked(std::slice::from_ref(&text), BATCH_WITHIN).await {
                Ok(embedded) => {
                    all.tokens += embedded.tokens;
                    all.vectors.extend(embedded.vectors);
                    turns.push((seq, text));
                }
                Err(EmbeddingError::Refused { what }) => {
                    warn!(%seq, what, "the embedding server refuses a turn; it goes without a vector");
                }
                Err(unavailable) => return Err(unavailable),
            }
        }
        batch.turns = turns;
        Ok((batch, all))
    }

    /// Asks the server, and refuses vectors that can't be compared with those that are stored.
    async fn asked(&self, texts: &[String], within: Duration) -> Result<Embedded, EmbeddingError> {
        let embedded = self.client.embed(texts, within).await?;
        let stored = self.store.embedding_dimensions(self.model).await;
        let stored = stored.map_err(|cause| EmbeddingError::Unavailable {
            what: cause.to_string(),
            wait_ms: None,
        })?;
        let made = embedded.vectors.first().map(|it| it.numbers.len());
        match (stored, made) {
            (Some(stored), Some(made)) if stored != made => Err(EmbeddingError::Refused {
                what: format!(
                    "its vectors have {made} numbers and those that are stored have {stored}: it serves \
                     another model under the same name; set embeddings.dimensions to {made} to begin anew"
                ),
            }),
            _ => Ok(embedded),
        }
    }
}
