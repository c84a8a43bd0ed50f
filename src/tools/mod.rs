//! What an agent's model may call while it works on an answer.
//!
//! A tool is made for one run and sees what it was made with: the model can't name another
//! conversation. It knows no agent, no platform and no provider's wire form. Nothing a tool does
//! ends a run: a wrong name, wrong arguments, a panic and a time-out are results that say so.
//!
//! Reading order: this page, `arguments` (what is wrong with a call), `toolbox` (the tools of one
//! run), `search` (`conversation_search`).

mod arguments;
pub(crate) mod search;
mod toolbox;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

pub use search::{
    CONVERSATION_SEARCH, ConversationSearch, HIT_MAX_CHARS, HITS_DEFAULT, HITS_MAX, HITS_MAX_TOKENS,
};
pub use toolbox::{RESULT_MAX_CHARS, ToolOutcome, Toolbox};

use crate::embeddings::Embeddings;
use vocative_core::ids::{ConversationId, TurnId};
use vocative_core::search::SearchReach;
use vocative_store::Reader;

/// A tool that a model may use, as settings name it. A new one is a file beside `search`, and a variant and an
/// arm here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolName {
    /// Searches what was said in the conversation.
    ConversationSearch,
}

/// What the tools of a run are made with: they see nothing else.
#[derive(Clone)]
pub struct BoundTo {
    /// Where it was said.
    pub store: Reader,
    /// The run's conversation.
    pub conversation: ConversationId,
    /// How far its agent may search.
    pub search_reach: SearchReach,
    /// The turns that are being answered.
    pub triggers: Vec<TurnId>,
    /// Whether a search requires all words, as the `toolpack` profile's does.
    pub is_strict: bool,
    /// Makes vectors of queries, where a server is configured.
    pub embeddings: Option<Arc<Embeddings>>,
}

impl ToolName {
    /// The tool for a run.
    #[must_use]
    pub fn open(self, to: &BoundTo) -> Arc<dyn Tool> {
        match self {
            Self::ConversationSearch => Arc::new(ConversationSearch::new(to.clone())),
        }
    }
}

/// Something a model may call.
pub trait Tool: Send + Sync {
    /// Its name: `[a-z0-9_]`.
    fn name(&self) -> &'static str;

    /// What it is for, in words for the model.
    fn description(&self) -> &'static str;

    /// The JSON schema of its arguments: an object.
    fn schema(&self) -> Value;

    /// Whether calling it twice does no more than calling it once. One that is not is never called
    /// again after a restart that may have cut it off.
    fn is_repeatable(&self) -> bool;

    /// Calls it. The arguments fit the schema.
    fn call(&self, arguments: Value) -> BoxFuture<'static, Result<ToolOutput, ToolError>>;
}

/// What a tool gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolOutput {
    /// For the model.
    pub content: String,
    /// Turns that it quotes.
    pub sources: Vec<TurnId>,
}

/// Why a tool gave nothing, in words for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// The arguments must be others.
    #[error("wrong arguments: {0}")]
    Arguments(String),
    /// It failed; asking again may help.
    #[error("the tool failed: {0}")]
    Failed(String),
}
