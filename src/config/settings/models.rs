//! Language models.

use schemars::JsonSchema;
use serde::Deserialize;
use vocative_core::price::Prices;

use crate::config::secret::SecretRef;
use crate::config::units::Seconds;
use crate::llm::{Effort, OpenAiApi, Provider};

/// A language model's settings, as the file says them. Fields that are visible in `config` only are checked or filled
/// in: these are in [`Model`].
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(description = "A language model.")]
pub struct ModelConfig {
    /// Who serves it. Required.
    pub(in crate::config) provider: Option<Provider>,
    /// Which of OpenAI's APIs it is asked by, where its address does not tell.
    pub api: Option<OpenAiApi>,
    /// The provider's name of the model. Required, except for `offline`.
    pub(in crate::config) model: Option<String>,
    /// Address of the API, for servers other than the provider's own.
    pub base_url: Option<String>,
    /// Where the key is.
    pub api_key: Option<SecretRef>,
    /// Seconds that one request may take.
    #[schemars(range(min = 1, max = 3600))]
    pub timeout_s: Seconds,
    /// Tokens that one answer may have, its reasoning included.
    #[schemars(range(min = 1))]
    pub(in crate::config) max_output_tokens: u32,
    /// Randomness of the answers.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: Option<f64>,
    /// What a million tokens of a prompt cost.
    #[schemars(range(min = 0.0))]
    pub(in crate::config) price_input: Option<f64>,
    /// What a million of those that the provider's cache gives cost.
    #[schemars(range(min = 0.0))]
    pub(in crate::config) price_cached: Option<f64>,
    /// What a million of those that the provider's cache takes cost.
    #[schemars(range(min = 0.0))]
    pub(in crate::config) price_written: Option<f64>,
    /// What a million tokens of an answer cost.
    #[schemars(range(min = 0.0))]
    pub(in crate::config) price_output: Option<f64>,
    /// How much it reasons before it answers.
    pub reasoning_effort: Option<Effort>,
    /// Tokens that prompt and answer may have together.
    #[schemars(range(min = 256))]
    pub context_limit: Option<u32>,
    /// Further attempts at once after a failure that passes (5xx, connection lost).
    #[schemars(range(min = 0, max = 20))]
    pub retries: u32,
    /// Runs that may ask it at the same time.
    #[schemars(range(min = 1, max = 1000))]
    pub max_parallel: usize,
    /// Names from `[models]` that are asked in its place while it can't answer.
    pub fallback: Vec<String>,
    /// Whether its answers are asked for word by word.
    pub stream: bool,
    /// What counts the tokens of its prompts.
    pub counter: CounterName,
    /// Whether it takes pictures.
    pub images: bool,
}

/// A language model.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Its name in the configuration.
    pub name: String,
    /// The provider.
    pub provider: Provider,
    /// The provider's name of the model; empty for `offline`.
    pub model: String,
    /// The most tokens of one answer, its reasoning included; fewer than the context holds.
    pub max_output_tokens: u32,
    /// The prices of its tokens, in `limits.currency`.
    pub prices: Prices,
    /// Its other settings.
    pub settings: ModelConfig,
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

    /// Whether this build contains it.
    #[must_use]
    pub fn is_built_in(self) -> bool {
        match self {
            Self::Class => true,
            Self::O200k => cfg!(feature = "tiktoken"),
        }
    }
}

/// What to write instead of the name of a provider that is used as a compatible server.
pub(in crate::config) fn in_place_of(name: &str) -> Option<String> {
    if name == "openai_resp" {
        return Some("write provider = \"openai\" and api = \"responses\"".to_owned());
    }
    let (_, base_url) = COMPATIBLE.iter().find(|(it, _)| *it == name)?;
    let written = "write provider = \"openai\"";
    Some(match base_url {
        Some(url) => format!("{written} and base_url = \"{url}\""),
        None => format!("{written} and the base_url of a gateway that speaks for {name}"),
    })
}

/// Providers that offer an API compatible with OpenAI's, with their addresses. *Source:* their pages on OpenAI
/// compatibility.
const COMPATIBLE: [(&str, Option<&str>); 17] = [
    (
        "aliyun",
        Some("https://dashscope-intl.aliyuncs.com/compatible-mode/v1/"),
    ),
    ("bedrock_api", None),
    ("cohere", Some("https://api.cohere.ai/compatibility/v1/")),
    ("deepseek", Some("https://api.deepseek.com/v1/")),
    ("fireworks", Some("https://api.fireworks.ai/inference/v1/")),
    (
        "gemini",
        Some("https://generativelanguage.googleapis.com/v1beta/openai/"),
    ),
    ("groq", Some("https://api.groq.com/openai/v1/")),
    ("mistral", Some("https://api.mistral.ai/v1/")),
    ("moonshot", Some("https://api.moonshot.ai/v1/")),
    ("nebius", Some("https://api.studio.nebius.com/v1/")),
    ("ollama", Some("http://127.0.0.1:11434/v1/")),
    ("open_router", Some("https://openrouter.ai/api/v1/")),
    ("openrouter", Some("https://openrouter.ai/api/v1/")),
    ("together", Some("https://api.together.xyz/v1/")),
    ("vertex", None),
    ("xai", Some("https://api.x.ai/v1/")),
    ("zai", Some("https://api.z.ai/api/paas/v4/")),
];
