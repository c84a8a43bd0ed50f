//! What a model needs to know to be asked.

use std::fmt;

use secrecy::SecretString;

/// The settings of one model.
#[derive(Clone)]
pub struct ModelSettings {
    /// Whose protocol it speaks.
    pub provider: Provider,
    /// The model's name at the provider, sent as it is.
    pub model: String,
    /// Where the API is; `None` = the provider's own address.
    pub base_url: Option<String>,
    /// The key; `None` for servers that want none.
    pub api_key: Option<SecretString>,
    /// How long one attempt may take, in milliseconds.
    pub timeout_ms: u64,
    /// At most so many tokens of answer.
    pub max_output_tokens: u32,
    /// Sampling temperature; `None` = the provider's default.
    pub temperature: Option<f64>,
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
            .field("model", &self.model)
            .field("has_base_url", &self.base_url.is_some())
            .field("has_api_key", &self.api_key.is_some())
            .field("timeout_ms", &self.timeout_ms)
            .field("max_output_tokens", &self.max_output_tokens)
            .field("temperature", &self.temperature)
            .field("context_limit", &self.context_limit)
            .field("retries", &self.retries)
            .field("stream", &self.stream)
            .finish()
    }
}

/// Whose protocol a model speaks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Provider {
    /// OpenAI's chat completions, and every server that is compatible with them.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
    /// The built-in model without a network.
    Offline,
    /// Another provider of the client library, by its name there. Untested.
    Other(String),
}

impl Provider {
    /// The provider of a configured name; an unknown one is looked for in the library by `build`.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        match name {
            "openai" => Self::OpenAi,
            "anthropic" => Self::Anthropic,
            "offline" => Self::Offline,
            other => Self::Other(other.to_owned()),
        }
    }

    /// The configured name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Offline => "offline",
            Self::Other(name) => name,
        }
    }
}
