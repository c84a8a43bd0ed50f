//! Language models.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vocative_core::price::Prices;

use crate::config::secret::SecretRef;

/// A language model.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Its name in the configuration.
    pub name: String,
    /// The provider.
    pub provider: Provider,
    /// Which of OpenAI's APIs to use; `None` = chosen by the address.
    pub api: Option<ModelApi>,
    /// The provider's name of the model; empty for `offline`.
    pub model: String,
    /// Address of the API; `None` = the provider's own.
    pub base_url: Option<String>,
    /// Where the key is.
    pub api_key: Option<SecretRef>,
    /// How long one request may take.
    pub timeout_ms: u64,
    /// The most tokens of one answer, its reasoning included.
    pub max_output_tokens: u32,
    /// Randomness of the answers; `None` = the provider's default.
    pub temperature: Option<f64>,
    /// The prices of its tokens, in `limits.currency`.
    pub prices: Prices,
    /// How much it reasons; `None` = the provider's default.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// The most tokens of prompt and answer together; `None` = not checked.
    pub context_limit: Option<u32>,
    /// Further attempts, made soon after a transient failure.
    pub retries: u32,
    /// The number of runs that may ask it at the same time.
    pub max_parallel: usize,
    /// Models that are asked instead while it can't answer.
    pub fallback: Vec<String>,
    /// Whether its answers are streamed.
    pub stream: bool,
    /// The counter for tokens of its prompts.
    pub counter: CounterName,
    /// Whether it accepts pictures.
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

    /// Whether this build contains it.
    #[must_use]
    pub fn is_built_in(self) -> bool {
        match self {
            Self::Class => true,
            Self::O200k => cfg!(feature = "tiktoken"),
        }
    }
}

/// Who serves a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
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
    /// The name in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Offline => "offline",
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
        }
    }

    /// What to write instead of the name of a provider that is used as a compatible server.
    #[must_use]
    pub fn in_place_of(name: &str) -> Option<String> {
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

/// One of OpenAI's APIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelApi {
    /// Responses, OpenAI's own.
    Responses,
    /// Chat Completions, which compatible servers speak.
    Chat,
}

/// How much a model reasons before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the providers' names say it all")]
pub enum ReasoningEffort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}
