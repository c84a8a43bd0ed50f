//! Language models.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::secret::SecretRef;

/// A language model.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Its name in the configuration.
    pub name: String,
    /// Who serves it.
    pub provider: Provider,
    /// The provider's name of the model; empty for `offline`.
    pub model: String,
    /// Address of the API; none = the provider's own.
    pub base_url: Option<String>,
    /// Where the key is.
    pub api_key: Option<SecretRef>,
    /// How long one request may take.
    pub timeout_ms: u64,
    /// Tokens that one answer may have.
    pub max_output_tokens: u32,
    /// Randomness of the answers; none = the provider's default.
    pub temperature: Option<f64>,
    /// Tokens that prompt and answer may have together; none = not checked.
    pub context_limit: Option<u32>,
    /// Further attempts after a refusal that passes.
    pub retries: u32,
    /// Whether its answers are asked for word by word.
    pub stream: bool,
    /// What counts its prompts.
    pub counter: CounterName,
    /// Whether it takes pictures.
    pub images: bool,
}

/// What counts the tokens of a model's prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CounterName {
    /// An estimate by kinds of characters, times what was learnt about the model.
    Class,
    /// OpenAI's vocabulary from `gpt-4o` on; only in builds with the feature `tiktoken`.
    O200k,
}

impl CounterName {
    /// The name in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Class => "class",
            Self::O200k => "o200k",
        }
    }

    /// Whether this build has it.
    #[must_use]
    pub fn is_built_in(self) -> bool {
        match self {
            Self::Class => true,
            Self::O200k => cfg!(feature = "tiktoken"),
        }
    }
}

/// Who serves a model. The first three are tested; the others are the client library's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names of companies and servers say it all")]
pub enum Provider {
    /// Built in: answers without a network, the same each time.
    Offline,
    /// OpenAI's chat completions, or any server that speaks them (set `base_url`).
    #[serde(rename = "openai")]
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
    /// Untested, as are all below.
    #[serde(rename = "openai_resp")]
    OpenAiResponses,
    Gemini,
    Fireworks,
    Together,
    Groq,
    Moonshot,
    Nebius,
    Xai,
    #[serde(rename = "deepseek")]
    DeepSeek,
    Mistral,
    Zai,
    Aliyun,
    Cohere,
    Ollama,
    Vertex,
    BedrockApi,
    OpenRouter,
}

impl Provider {
    /// The name in the configuration, which is also the client library's name of its adapter.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Offline => "offline",
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::OpenAiResponses => "openai_resp",
            Self::Gemini => "gemini",
            Self::Fireworks => "fireworks",
            Self::Together => "together",
            Self::Groq => "groq",
            Self::Moonshot => "moonshot",
            Self::Nebius => "nebius",
            Self::Xai => "xai",
            Self::DeepSeek => "deepseek",
            Self::Mistral => "mistral",
            Self::Zai => "zai",
            Self::Aliyun => "aliyun",
            Self::Cohere => "cohere",
            Self::Ollama => "ollama",
            Self::Vertex => "vertex",
            Self::BedrockApi => "bedrock_api",
            Self::OpenRouter => "open_router",
        }
    }

    /// Whether our tests cover it.
    #[must_use]
    pub fn is_tested(self) -> bool {
        matches!(self, Self::Offline | Self::OpenAi | Self::Anthropic)
    }

    /// Whether it answers only with a key when `base_url` is not set.
    #[must_use]
    pub fn needs_key(self) -> bool {
        !matches!(self, Self::Offline | Self::Ollama)
    }
}
