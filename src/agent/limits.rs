//! The learnt context sizes of models, stored for the next start.

use tracing::warn;

use crate::agent::registry::AgentSpec;
use crate::agent::worker::AgentWorker;
use vocative_store::Reader;

/// Tells the models of agents the context sizes that an earlier process learnt.
pub async fn recall_context_limits<'a>(
    store: &Reader,
    specs: impl IntoIterator<Item = &'a AgentSpec>,
    now_ms: i64,
) {
    for spec in specs {
        match store.context_limit(&spec.model_key, now_ms).await {
            Ok(Some(tokens)) => {
                let tokens = usize::try_from(tokens).unwrap_or(usize::MAX);
                spec.model.learn_context_limit(tokens);
            }
            Ok(None) => {}
            Err(cause) => warn!(error = %cause, "what a context holds could not be read"),
        }
    }
}

impl AgentWorker {
    /// Stores what was learnt about the model's context.
    pub(super) async fn keep_context_limit(&self, spec: &AgentSpec) {
        let Some(tokens) = spec.model.context_limit() else {
            return;
        };
        let (tokens, now_ms) = (tokens as u64, (self.clock)());
        let kept = self
            .store
            .keep_context_limit(&spec.model_key, tokens, now_ms);
        if let Err(cause) = kept.await {
            warn!(error = %cause, "what a context holds could not be stored; the next start finds it anew");
        }
    }
}
