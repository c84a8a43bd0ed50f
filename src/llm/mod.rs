//! Asks a language model for an answer.
//!
//! Our own small trait, and in `provider` our own clients of three wire forms. It knows no conversation, no
//! agent and no store.
//!
//! Reading order: this page, `listener` (who hears an answer while it is written), `tool` (what a
//! model may call), `settings`, `base_url`, `offline` (a model without a network), `provider` (OpenAI
//! and Anthropic), `failure` (what a failed call means), `retry`, `reach` (asked before anything else is).

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

    /// What was learnt of its context, in tokens; `None` as long as no prompt was too long.
    fn context_limit(&self) -> Option<usize> {
        None
    }

    /// Keeps for the life of the process what its context holds, where that is less than what is known.
    fn learn_context_limit(&self, _tokens: usize) {}

    /// Asks once, and tells the request's listener what it hears. Safe to repeat: it costs tokens,
    /// nothing else.
    fn complete<'a>(
        &'a self,
        request: &'a Request<'a>,
    ) -> BoxFuture<'a, Result<Answer, ModelError>>;
}

/// What a model is asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// The prompt, instructions first.
    pub messages: &'a [PromptMessage],
    /// Pictures that belong to its last message.
    pub images: &'a [PromptImage],
    /// What it answered before in the same run, and what its calls gave, oldest first.
    pub exchanges: &'a [Exchange],
    /// What it may call.
    pub tools: &'a [ToolSpec],
    /// Whether it may call now.
    pub tool_choice: ToolChoice,
    /// With [`ToolChoice::Wanted`]: which of them; `None` = any.
    pub wanted_tool: Option<&'a str>,
    /// The JSON schema that its answer must have. A provider is told where it can hold its model to it; whether the
    /// answer has it is for the asker to see.
    pub answer_schema: Option<&'a Value>,
    /// Tokens that the answer may have; `None` = what the model's settings allow.
    pub max_output_tokens: Option<u32>,
    /// Who hears the answer while it is written; `None` = it is not streamed.
    pub listener: Option<&'a dyn Listener>,
    /// What the provider's cache may do for it.
    pub caching: Caching<'a>,
}

/// What a provider's cache may do for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caching<'a> {
    /// How many of the first messages stay as they are in later requests of the conversation.
    pub stable_messages: usize,
    /// The same for requests that begin alike: an agent's in a conversation.
    pub key: Option<&'a str>,
    /// How long it usually takes until the next question, in milliseconds; `None` = not known.
    pub gap_ms: Option<i64>,
}

impl<'a> Request<'a> {
    /// A question without tools.
    #[must_use]
    pub fn of(messages: &'a [PromptMessage]) -> Self {
        Self {
            messages,
            ..Self::default()
        }
    }
}

/// What a model answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The text; blank only if there are tool calls.
    pub text: String,
    /// What it wants to know first, in order; each id once. Empty where no tool was offered.
    pub tool_calls: Vec<ToolCall>,
    /// Tokens, by the provider's count; estimated where it gives none.
    pub usage: Usage,
    /// Tokens of the prompt as the provider reports them; `None` where it does not, and for an
    /// answer that was read back.
    pub reported_prompt_tokens: Option<u64>,
    /// The provider's own message: versioned JSON, opaque to everything but this module.
    pub raw_message: String,
    /// Why it ended.
    pub finish: Finish,
}

/// Why there is no answer. Never holds a key, a URL, or text of the prompt or the answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The provider wants fewer requests: ask again after that time.
    #[error("the provider asks to wait{}", shown_wait(*wait_ms))]
    RetryAfter {
        /// How long, in milliseconds; `None` where it does not say.
        wait_ms: Option<u64>,
    },
    /// The provider can't answer for now: ask again.
    #[error("the provider is unavailable: {cause}")]
    Unavailable {
        /// What happened.
        cause: String,
    },
    /// It refuses this request, and would refuse it again.
    #[error("the provider refuses: {reason}")]
    Refused {
        /// Its status and error codes, and what to check.
        reason: String,
    },
    /// It refuses every request until somebody acts: key, quota, bill, or the model's name.
    #[error("the provider refuses every request: {reason}")]
    AccountRefused {
        /// Its status and error codes, and what to check.
        reason: String,
    },
    /// The prompt is longer than the model's context.
    #[error("the prompt is longer than the model's context{}", shown_sizes(*limit, *asked))]
    ContextTooLong {
        /// What the context holds, in tokens, where the provider says it.
        limit: Option<u64>,
        /// What was asked for, in tokens, where the provider says it; more than `limit`.
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
    /// The answer is not what the protocol says.
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
        /// What is wrong and what to write instead.
        what: &'static str,
    },
    /// The provider's own address needs a key.
    #[error("`api_key` is missing for provider `{provider}`")]
    NoKey {
        /// The provider.
        provider: &'static str,
    },
}

/// The model of these settings, with its retries.
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
