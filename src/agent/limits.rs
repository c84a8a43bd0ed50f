//! What the contexts of models were found to hold, kept for the next start.

use tracing::warn;

use crate::agent::registry::AgentSpec;
use crate::agent::worker::Worker;

impl Worker {
    /// An agent within what its model's context was found to hold.
    pub(super) async fn fitted(&self, spec: &AgentSpec) -> AgentSpec {
        self.recall_context_limit(spec).await;
        spec.fitted()
    }

    /// Has a model know what an earlier start found.
    async fn recall_context_limit(&self, spec: &AgentSpec) {
        if spec.model.context_limit().is_some() {
            return;
        }
        let now_ms = (self.clock)();
        match self.store.context_limit(&spec.model_key, now_ms).await {
            Ok(Some(tokens)) => {
                let tokens = usize::try_from(tokens).unwrap_or(usize::MAX);
                spec.model.learn_context_limit(tokens);
            }
            Ok(None) => {}
            Err(cause) => warn!(error = %cause, "what a context holds could not be read"),
        }
    }

    /// Keeps what was found.
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
