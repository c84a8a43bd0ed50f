//! Asks a language model for an answer.
//!
//! It has its own small trait, and in `provider` its own clients of three wire forms. It knows no conversation, no
//! agent and no store.
//!
//! Reading order: this page, `listener` (receives an answer while it is written), `tool` (what a model may call),
//! `settings`, `base_url`, `offline` (a model without a network), `provider` (OpenAI and Anthropic), `failure` (errors
//! of failed calls), `retry`, `reach` (checks whether a provider can be reached).

mod arguments;
mod base_url;
mod failure;
#[doc(hidden)]
pub mod fuzzing;
mod listener;
mod offline;
mod provider;
mod reach;
mod retry;
mod settings;
mod tool;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;

pub use arguments::read_arguments;
pub use failure::account_refusal;
pub use listener::Listener;
pub use offline::{ECHO_MAX_CHARS, Offline};
pub use reach::{NAMES_MAX, ProviderReach, reach, reach_and_names};
pub use retry::{ASKED, RetryPolicy, Retrying};
pub use settings::{Effort, ModelSettings, OpenAiApi, Provider};
pub use tool::{Exchange, ToolCall, ToolChoice, ToolResult, ToolSpec};

use self::base_url::Address;
use vocative_core::prompting::PromptMessage;
use vocative_core::prompting::files::PromptImage;
use vocative_core::run::Finish;
use vocative_core::run::Usage;

/// A model that answers prompts.
pub trait Model: Send + Sync {
    /// Its name, for logs and `status`: provider and model.
    fn name(&self) -> &str;

    /// The size of its context that was learnt from errors, in tokens; `None` until a prompt was too long.
    fn context_limit(&self) -> Option<usize> {
        None
    }

    /// Remembers the size of the context until the process ends, if it is smaller than the size known so far.
    fn learn_context_limit(&self, _tokens: usize) {}

    /// Makes one request, and passes text to the request's listener. It can be repeated: that costs only tokens.
    fn complete<'a>(
        &'a self,
        request: &'a Request<'a>,
    ) -> BoxFuture<'a, Result<Answer, ModelError>>;
}

/// A request to a model.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// The prompt, instructions first.
    pub messages: &'a [PromptMessage],
    /// Pictures that belong to its last message.
    pub images: &'a [PromptImage],
    /// Its earlier answers in the same run with the results of their calls, oldest first.
    pub exchanges: &'a [Exchange],
    /// The tools that it may call.
    pub tools: &'a [ToolSpec],
    /// Whether it may call now.
    pub tool_choice: ToolChoice,
    /// With [`ToolChoice::Wanted`]: the tool to call; `None` = any.
    pub wanted_tool: Option<&'a str>,
    /// The JSON schema that its answer must have. A provider is told the schema if it can enforce it; the caller checks
    /// whether the answer has it.
    pub answer_schema: Option<&'a Value>,
    /// The most tokens of the answer; `None` = as the model's settings say.
    pub max_output_tokens: Option<u32>,
    /// Receives the answer while it is written; `None` = it is not streamed.
    pub listener: Option<&'a dyn Listener>,
    /// What the provider's cache is told about the request.
    pub caching: Caching<'a>,
}

/// What a provider's cache is told about a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caching<'a> {
    /// How many of the first messages stay unchanged in later requests of the conversation.
    pub stable_messages: usize,
    /// A key that is the same for requests with the same beginning: those of an agent in a conversation.
    pub key: Option<&'a str>,
    /// How long it usually takes until the next question, in milliseconds; `None` = not known.
    pub gap_ms: Option<i64>,
}

impl<'a> Request<'a> {
    /// A request without tools.
    #[must_use]
    pub fn of(messages: &'a [PromptMessage]) -> Self {
        Self {
            messages,
            ..Self::default()
        }
    }
}

/// A model's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The text; blank only if there are tool calls.
    pub text: String,
    /// The tool calls that it asks for, in order; each id once. Empty if no tool was offered.
    pub tool_calls: Vec<ToolCall>,
    /// Tokens, by the provider's count; estimated if it reports none.
    pub usage: Usage,
    /// Tokens of the prompt as the provider reports them; `None` if it reports none, and for an answer that was read
    /// back.
    pub reported_prompt_tokens: Option<u64>,
    /// The provider's own message: versioned JSON that only this module reads.
    pub raw_message: String,
    /// Why it ended.
    pub finish: Finish,
}

/// Why there is no answer. Never holds a key, a URL, or text of the prompt or the answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The provider wants fewer requests: ask again after this time.
    #[error("the provider asks to wait{}", shown_wait(*wait_ms))]
    RetryAfter {
        /// How long, in milliseconds; `None` if the provider does not say.
        wait_ms: Option<u64>,
    },
    /// The provider can't answer for now: ask again.
    #[error("the provider is unavailable: {cause}")]
    Unavailable {
        /// What happened.
        cause: String,
    },
    /// The provider refuses this request, and would refuse it again.
    #[error("the provider refuses: {reason}")]
    Refused {
        /// Its status and error codes, and what to check.
        reason: String,
    },
    /// The provider refuses every request until somebody acts: key, quota, bill, or the model's name.
    #[error("the provider refuses every request: {reason}")]
    AccountRefused {
        /// Its status and error codes, and what to check.
        reason: String,
    },
    /// The prompt is longer than the model's context.
    #[error("the prompt is longer than the model's context{}", shown_sizes(*limit, *asked))]
    ContextTooLong {
        /// The size of the context, in tokens, if the provider says it.
        limit: Option<u64>,
        /// The requested number of tokens, if the provider says it; more than `limit`.
        asked: Option<u64>,
    },
    /// `max_output_tokens` was used up before any text.
    #[error(
        "the answer reached the token limit before any text; raise the model's `max_output_tokens`"
    )]
    Truncated,
    /// The answer holds no text.
    #[error("the provider answered without any text")]
    Empty,
    /// The answer does not follow the protocol.
    #[error("the provider's answer can't be read: {what}; check the model's `base_url`")]
    Malformed {
        /// What is wrong with it.
        what: String,
    },
}

fn shown_wait(wait_ms: Option<u64>) -> String {
    wait_ms.map_or_else(String::new, |wait_ms| format!(" {wait_ms} ms"))
}

fn shown_sizes(limit: Option<u64>, asked: Option<u64>) -> String {
    match (limit, asked) {
        (Some(limit), Some(asked)) => format!(" ({asked} of {limit} tokens)"),
        (Some(limit), None) => format!(" ({limit} tokens)"),
        (None, _) => String::new(),
    }
}

/// Why a model can't be built from its settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The base URL is not usable.
    #[error("`base_url` {what}")]
    BaseUrl {
        /// What is wrong, and what to write instead.
        what: &'static str,
    },
    /// The provider's own address needs a key.
    #[error("`api_key` is missing for provider `{provider}`")]
    NoKey {
        /// The provider.
        provider: &'static str,
    },
}

/// The model for these settings, with retries.
///
/// # Errors
/// [`BuildError`] names the setting to change.
pub fn build(
    settings: &ModelSettings,
    http: reqwest::Client,
) -> Result<Arc<dyn Model>, BuildError> {
    let Some(address) = Address::of(settings)? else {
        return Ok(Arc::new(Offline));
    };
    let remote = provider::Remote::new(settings, &address, http)?;
    let policy = RetryPolicy::at_once(settings.retries);
    Ok(Arc::new(Retrying::new(Arc::new(remote), policy)))
}
