//! What a model needs to know to be asked.

use std::fmt;

use secrecy::SecretString;

/// The settings of one model.
#[derive(Clone)]
pub struct ModelSettings {
    /// Who serves it.
    pub provider: Provider,
    /// Which of OpenAI's APIs it is asked by; `None` = as its address tells.
    pub api: Option<OpenAiApi>,
    /// The model's name at the provider, sent as it is.
    pub model: String,
    /// Where the API is; `None` = the provider's own address.
    pub base_url: Option<String>,
    /// The key; `None` for servers that want none.
    pub api_key: Option<SecretString>,
    /// How long one attempt may take, in milliseconds.
    pub timeout_ms: u64,
    /// Tokens that one answer may have, its reasoning included.
    pub max_output_tokens: u32,
    /// Sampling temperature; `None` = the provider's default.
    pub temperature: Option<f64>,
    /// How much the model reasons; `None` = the provider's default.
    pub reasoning_effort: Option<Effort>,
    /// What the model's context holds, in tokens; `None` = not limited by us.
    pub context_limit: Option<usize>,
    /// Further attempts after a failed one.
    pub retries: u32,
    /// Whether it is asked for streams where somebody listens.
    pub stream: bool,
}

impl fmt::Debug for ModelSettings {
    /// Leaves out the key and everything of the URL but that there is one.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Provider {
    /// OpenAI, and every server that is compatible with it.
    OpenAi,
    /// Anthropic.
    Anthropic,
    /// The built-in model without a network.
    Offline,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpenAiApi {
    /// Responses: OpenAI's own.
    Responses,
    /// Chat Completions: what compatible servers speak.
    Chat,
}

/// How much a model reasons before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// The name that providers know.
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
    /// Settings of a model `m` that tests ask nothing.
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
