//! The settings of models.

use std::fmt;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

/// The settings of one model.
#[derive(Clone)]
pub struct ModelSettings {
    /// The provider.
    pub provider: Provider,
    /// Which of OpenAI's APIs to use; `None` = chosen by the address.
    pub api: Option<OpenAiApi>,
    /// The model's name at the provider, sent as it is.
    pub model: String,
    /// The base URL of the API; `None` = the provider's own address.
    pub base_url: Option<String>,
    /// The key; `None` for servers that need none.
    pub api_key: Option<SecretString>,
    /// How long one attempt may take, in milliseconds.
    pub timeout_ms: u64,
    /// The most tokens of one answer, its reasoning included.
    pub max_output_tokens: u32,
    /// Sampling temperature; `None` = the provider's default.
    pub temperature: Option<f64>,
    /// How much the model reasons; `None` = the provider's default.
    pub reasoning_effort: Option<Effort>,
    /// The size of the model's context, in tokens; `None` = no limit of ours.
    pub context_limit: Option<usize>,
    /// Further attempts after a failed one.
    pub retries: u32,
    /// Whether answers are streamed if there is a listener.
    pub stream: bool,
}

impl fmt::Debug for ModelSettings {
    /// Leaves out the key, and of the URL everything except that there is one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelSettings")
            .field("provider", &self.provider)
            .field("api", &self.api)
            .field("model", &self.model)
            .field("has_base_url", &self.base_url.is_some())
            .field("has_api_key", &self.api_key.is_some())
            .field("timeout_ms", &self.timeout_ms)
            .field("max_output_tokens", &self.max_output_tokens)
            .field("temperature", &self.temperature)
            .field("reasoning_effort", &self.reasoning_effort)
            .field("context_limit", &self.context_limit)
            .field("retries", &self.retries)
            .field("stream", &self.stream)
            .finish()
    }
}

/// Who serves a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    /// Built in: answers without a network, the same each time.
    Offline,
    /// OpenAI, or any server that is compatible with it (set `base_url`).
    #[serde(rename = "openai")]
    OpenAi,
    /// Anthropic.
    Anthropic,
}

impl Provider {
    /// The configured name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Offline => "offline",
        }
    }
}

/// One of OpenAI's APIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OpenAiApi {
    /// Responses, OpenAI's own.
    Responses,
    /// Chat Completions, which compatible servers speak.
    Chat,
}

/// How much a model reasons before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the providers' names say it all")]
pub enum Effort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

impl Effort {
    /// The name that providers use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }
}

#[cfg(test)]
impl ModelSettings {
    /// Settings of a model `m`, for tests that make no request.
    pub(super) fn sample(provider: Provider, base_url: Option<&str>) -> Self {
        Self {
            provider,
            api: None,
            model: "m".to_owned(),
            base_url: base_url.map(str::to_owned),
            api_key: None,
            timeout_ms: 1_000,
            max_output_tokens: 1,
            temperature: None,
            reasoning_effort: None,
            context_limit: None,
            retries: 0,
            stream: false,
        }
    }
}
