//! How the tokens of a run are counted, and what is learnt from its model's report.

use tracing::warn;

use crate::agent::prompting::BuiltPrompt;
use crate::agent::registry::AgentSpec;
use crate::llm::ToolSpec;
use vocative_core::options::Profile;
use vocative_core::prompting::{Scaled, TokenCounter as _};
use vocative_core::run::ClaimedRun;
use vocative_core::tokens::{PromptReport, RatioKey, TokenRatio};
use vocative_store::{Reader, Replying, Store, StoreError};

impl AgentSpec {
    /// The key of the reports that teach about this agent's prompts.
    #[must_use]
    pub fn ratio_key(&self) -> RatioKey {
        RatioKey {
            model: self.model_key.clone(),
            counter: self.counter.name().to_owned(),
        }
    }

    /// The key of the ratio that this agent's prompts are made with; `None` if counts are used as they are.
    #[must_use]
    fn applied_ratio_key(&self) -> Option<RatioKey> {
        (!self.counter.is_exact()).then(|| self.ratio_key())
    }

    /// The ratio that a prompt is made with now, outside any run.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn present_ratio(&self, store: &Reader) -> Result<TokenRatio, StoreError> {
        match self.applied_ratio_key() {
            Some(key) => store.token_ratio(key).await,
            None => Ok(TokenRatio::ONE),
        }
    }

    /// The ratio of a run's prompt, the same for all its attempts; `None` if its lease is lost.
    pub(super) async fn ratio_of(
        &self,
        run: &ClaimedRun,
        store: &Store<Replying>,
    ) -> Result<Option<TokenRatio>, StoreError> {
        match self.applied_ratio_key() {
            Some(key) => store.fix_token_ratio(run.run.id, run.token, key).await,
            None => Ok(Some(TokenRatio::ONE)),
        }
    }
}

/// How the tokens of one run are counted.
pub(super) struct Counting<'a> {
    /// Counts as the model does, as far as is known.
    pub(super) counter: &'a Scaled,
    /// The key under which the model's reports are learnt from; `None` = nothing is learnt.
    pub(super) key: Option<RatioKey>,
    /// What the prompt costs by that counter, instructions included.
    pub(super) prompt_tokens: usize,
}

impl<'a> Counting<'a> {
    pub(super) fn of(spec: &AgentSpec, built: &'a BuiltPrompt) -> Self {
        let prompt = &built.prompt;
        // The `toolpack` profile counts differently, so it does not correct the ratio.
        // The cost of pictures is an estimate, which would spoil the ratio.
        let is_ours = built.options.profile == Profile::Vocative && prompt.images.is_empty();
        Self {
            counter: &built.counter,
            key: is_ours.then(|| spec.ratio_key()),
            prompt_tokens: prompt.tokens + prompt.instruction_tokens + prompt.recalled_tokens,
        }
    }

    /// Learns from what a provider reports of the prompt and the tools beside it. That it can't be
    /// stored is no reason to lose the answer.
    pub(super) async fn learn(
        &self,
        store: &Store<Replying>,
        tools: &[ToolSpec],
        reported: Option<u64>,
        now_ms: i64,
    ) {
        let (Some(key), Some(reported)) = (&self.key, reported) else {
            return;
        };
        let sent = self.prompt_tokens + tools.iter().map(|tool| self.cost_of(tool)).sum::<usize>();
        let report = PromptReport {
            counted: self.counter.ratio().unscale(sent),
            reported,
        };
        if let Err(cause) = store.learn_token_ratio(key.clone(), report, now_ms).await {
            warn!(error = %cause, "a report of tokens could not be learnt from; the next one will be");
        }
    }

    fn cost_of(&self, tool: &ToolSpec) -> usize {
        let described = format!("{} {} {}", tool.name, tool.description, tool.schema);
        self.counter.count(&described) as usize
    }
}
