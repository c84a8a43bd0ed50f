//! What calls of models cost.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use vocative_store::costs::Cost;

/// By what costs are added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum CostsBy {
    /// By UTC day, the newest first
    Day,
    /// By channel
    Channel,
    /// By conversation
    Room,
    /// By who asked
    Person,
    /// By agent
    Agent,
    /// By model
    Model,
}

impl CostsBy {
    /// Its word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Channel => "channel",
            Self::Room => "room",
            Self::Person => "person",
            Self::Agent => "agent",
            Self::Model => "model",
        }
    }
}

/// What something cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostView {
    /// Of what: a day or a name; empty for summaries, by person.
    pub of: String,
    /// Calls of models.
    pub calls: u64,
    /// Tokens of prompts.
    pub prompt_tokens: u64,
    /// Of these, from the provider's cache.
    pub cache_read_tokens: u64,
    /// Of these, to the provider's cache.
    pub cache_write_tokens: u64,
    /// Tokens of answers.
    pub completion_tokens: u64,
    /// What they cost, in millionths of `limits.currency`.
    pub cost_micros: u64,
}

impl From<Cost> for CostView {
    fn from(cost: Cost) -> Self {
        Self {
            of: cost.of,
            calls: cost.calls,
            prompt_tokens: cost.usage.prompt_tokens,
            cache_read_tokens: cost.usage.cache_read_tokens,
            cache_write_tokens: cost.usage.cache_write_tokens,
            completion_tokens: cost.usage.completion_tokens,
            cost_micros: cost.cost_micros,
        }
    }
}
