//! The shape of the configuration as people write it: every setting, its type and its bounds.
//!
//! The JSON schema is generated from these types, and the same schema is what files and variables
//! are checked against, so the published shape is the enforced one. No default lives here: all of
//! them are in `config/default.toml`. `settings` holds what the rest of the daemon reads.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use super::platforms::{ChannelsShape, DefaultsShape};
use super::secret::SecretRef;
use super::settings::{
    Capture, CounterName, Files, Landlock, LogFormat, ModelApi, Provider, ReasoningEffort, Store,
};
use crate::tools::ToolName;
use vocative_core::addressing::Overlap;
use vocative_core::place::Scope;
use vocative_core::sending::policy::{Live, OnUndecided, OnUnknown};

/// What a platform's id of a chat is made of; which of them a platform has is checked later.
pub(super) const CHAT_PATTERN: &str = "^-?[A-Za-z0-9]+$";

/// The configuration of Vocative. Every setting is optional unless its description says otherwise.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Shape {
    /// The process: folders, shutdown, parallelism, log.
    pub daemon: DaemonShape,
    /// The database.
    pub store: Store,
    /// What is stored of incoming messages.
    pub capture: Capture,
    /// Limits on use; a channel may set its own.
    pub limits: LimitsShape,
    /// Posting answers.
    pub delivery: DeliveryShape,
    /// Files that people attach.
    pub files: Files,
    /// Writing voice notes down; off unless `base_url` is set.
    pub transcription: TranscriptionShape,
    /// Vectors of what is said; off unless `base_url` is set.
    pub embeddings: EmbeddingsShape,
    /// Health and metrics over HTTP.
    pub http: HttpShape,
    /// The API for programs.
    pub api: ApiShape,
    /// What platforms call.
    pub webhooks: WebhooksShape,
    /// Values for all models, agents and channels that don't set their own.
    #[allow(dead_code, reason = "merged into each table before this is read")]
    pub defaults: DefaultsShape,
    /// Language models by name.
    #[serde(default)]
    pub models: BTreeMap<String, ModelShape>,
    /// Agents by name.
    #[serde(default)]
    pub agents: BTreeMap<String, AgentShape>,
    /// Connections to platforms.
    #[serde(default)]
    pub channels: ChannelsShape,
}

/// The process: folders, shutdown, parallelism, log.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DaemonShape {
    /// Folder of the database.
    pub data_dir: Option<PathBuf>,
    /// Folder of the control socket.
    pub runtime_dir: Option<PathBuf>,
    /// The control socket. Not set: vocative.sock in `runtime_dir`.
    pub control_socket: Option<PathBuf>,
    /// Group that may use the control socket.
    pub socket_group: Option<String>,
    /// Seconds that a stop waits for answers in progress.
    #[schemars(range(min = 0, max = 3600))]
    pub drain_deadline_s: u64,
    /// Runs that may work at the same time.
    #[schemars(range(min = 1, max = 1000))]
    pub max_parallel_runs: usize,
    /// How log lines look.
    pub log_format: LogFormat,
    /// Which log lines are written: a level or filter directives.
    pub log_level: String,
    /// Whether the daemon gives up what it does not need of the file system.
    pub landlock: Landlock,
}

/// Limits on use.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LimitsShape {
    /// Runs of one person in one hour; 0 = no limit.
    pub max_runs_per_hour_person: u32,
    /// Runs in one chat in one hour; 0 = no limit.
    pub max_runs_per_hour_chat: u32,
    /// Tokens of one channel in one UTC day; 0 = no limit.
    pub tokens_per_day: u64,
    /// Tokens that one person may cost in one UTC day; 0 = no limit.
    pub tokens_per_day_person: u64,
    /// What one channel may cost in one UTC day; 0 = no limit.
    #[schemars(range(min = 0.0))]
    pub cost_per_day: f64,
    /// What one person may cost in one UTC day; 0 = no limit.
    #[schemars(range(min = 0.0))]
    pub cost_per_day_person: f64,
    /// What amounts are in, as it is shown.
    pub currency: String,
}

/// Posting answers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DeliveryShape {
    /// What happens to a post that may or may not have arrived, where the platform shows bots no history.
    pub on_unknown: OnUnknown,
    /// What happens to a post of which nobody can say whether it arrived.
    pub on_undecided: OnUndecided,
    /// Posts that one answer may be split into.
    #[schemars(range(min = 1, max = 1000))]
    pub max_parts: usize,
    /// Seconds until a post of unknown outcome is first looked for.
    #[schemars(range(min = 1, max = 3600))]
    pub first_look_s: u64,
    /// Seconds that a platform may take to show a post in its history.
    #[schemars(range(min = 1, max = 86_400))]
    pub visibility_delay_s: u64,
    /// Seconds that a post of unknown outcome is looked for.
    #[schemars(range(min = 2, max = 172_800))]
    pub look_back_s: Option<u64>,
    /// Hours for which posts wait for a chat that refuses them.
    #[schemars(range(min = 1, max = 8760))]
    pub parked_posts_keep_hours: u64,
    /// Whether people see an answer while it is written.
    pub live: Live,
    /// Milliseconds between an answer's first words and the first that people see of it.
    #[schemars(range(min = 0, max = 60_000))]
    pub live_delay_ms: u64,
    /// Milliseconds between two states of an answer that show; 0 = the platform's own pace.
    #[schemars(range(min = 0, max = 60_000))]
    pub live_interval_ms: u64,
}

/// Writing voice notes down.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TranscriptionShape {
    /// Address of the API, which speaks OpenAI's protocol. Set, voice notes are sent there.
    pub base_url: Option<String>,
    /// The provider's name of the model.
    pub model: String,
    /// Where the key is.
    pub api_key: Option<SecretRef>,
    /// Seconds that one request may take.
    #[schemars(range(min = 1, max = 3600))]
    pub timeout_s: u64,
}

/// Vectors of what is said.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EmbeddingsShape {
    /// Address of the API, which speaks OpenAI's protocol. Set, every message is sent there.
    pub base_url: Option<String>,
    /// The provider's name of the model.
    pub model: String,
    /// How many numbers a vector is to have.
    #[schemars(range(min = 1, max = 4096))]
    pub dimensions: Option<u32>,
    /// Where the key is.
    pub api_key: Option<SecretRef>,
    /// Tokens that may be embedded in a UTC day.
    pub tokens_per_day: u64,
}

/// Health and metrics over HTTP.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct HttpShape {
    /// Whether the server runs.
    pub enabled: bool,
    /// Address and port.
    pub listen: String,
}

/// The API for programs: conversations, runs and their events.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ApiShape {
    /// Whether the server runs.
    pub enabled: bool,
    /// Address and port, or unix:PATH. Not set: the socket vocative-api.sock in runtime_dir.
    pub listen: Option<String>,
    /// Group that may use the API's socket.
    pub socket_group: Option<String>,
    /// The token that every request must bear.
    pub token: Option<SecretRef>,
}

/// The listener that platforms call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WebhooksShape {
    /// Address and port.
    pub listen: String,
}

/// A language model.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelShape {
    /// Who serves it. Required.
    pub provider: Option<Provider>,
    /// Which of OpenAI's APIs it is asked by, where its address does not tell.
    pub api: Option<ModelApi>,
    /// The provider's name of the model. Required, except for `offline`.
    pub model: Option<String>,
    /// Address of the API, for servers other than the provider's own.
    pub base_url: Option<String>,
    /// Where the key is.
    pub api_key: Option<SecretRef>,
    /// Seconds that one request may take.
    #[schemars(range(min = 1, max = 3600))]
    pub timeout_s: u64,
    /// Tokens that one answer may have, its reasoning included.
    #[schemars(range(min = 1))]
    pub max_output_tokens: u32,
    /// Randomness of the answers.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: Option<f64>,
    /// What a million tokens of a prompt cost.
    #[schemars(range(min = 0.0))]
    pub price_input: Option<f64>,
    /// What a million of those that the provider's cache gives cost.
    #[schemars(range(min = 0.0))]
    pub price_cached: Option<f64>,
    /// What a million of those that the provider's cache takes cost.
    #[schemars(range(min = 0.0))]
    pub price_written: Option<f64>,
    /// What a million tokens of an answer cost.
    #[schemars(range(min = 0.0))]
    pub price_output: Option<f64>,
    /// How much it reasons before it answers.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// Tokens that prompt and answer may have together.
    #[schemars(range(min = 256))]
    pub context_limit: Option<u32>,
    /// Further attempts at once after a failure that passes (5xx, connection lost).
    #[schemars(range(min = 0, max = 20))]
    pub retries: u32,
    /// Runs that may ask it at the same time.
    #[schemars(range(min = 1, max = 1000))]
    pub max_parallel: usize,
    /// Whether its answers are asked for word by word.
    pub stream: bool,
    /// What counts the tokens of its prompts.
    pub counter: CounterName,
    /// Whether it takes pictures.
    pub images: bool,
}

/// An agent.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AgentShape {
    /// The name that people see.
    pub display_name: Option<String>,
    /// Further names by which people address it.
    pub aliases: Vec<String>,
    /// The system instructions, a template.
    pub instructions: String,
    /// A file with the system instructions.
    pub instructions_file: Option<PathBuf>,
    /// What stands behind the history of a prompt, a template.
    pub situation: String,
    /// A name from `[models]`.
    pub model: String,
    /// The model that makes its summaries: a name from `[models]`, or `offline`.
    pub summary_model: Option<String>,
    /// Names from `[channels]` that it serves, or `*`.
    pub channels: Vec<String>,
    /// Seconds that one run may take.
    #[schemars(range(min = 1, max = 86_400))]
    pub run_deadline_s: u64,
    /// Attempts of one run.
    #[schemars(range(min = 1, max = 100))]
    pub max_attempts: u32,
    /// Seconds that a question is tried while the model can't answer.
    #[schemars(range(min = 1, max = 604_800))]
    pub answer_within_s: u64,
    /// What becomes of a message to it while an earlier one still waits for its answer.
    pub overlap: OverlapShape,
    /// What its model may use while it works on an answer.
    pub tools: Vec<ToolName>,
    /// What `conversation_search` searches.
    pub search_reach: ReachShape,
    /// Model calls of one run.
    #[schemars(range(min = 1, max = 100))]
    pub max_steps: u32,
    /// Seconds that one tool call may take.
    #[schemars(range(min = 1, max = 3600))]
    pub tool_timeout_s: u64,
    /// How its prompts are assembled.
    pub prompt: PromptShape,
}

/// What `conversation_search` searches; never another chat.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ReachShape {
    /// The conversation where it is asked.
    Conversation,
    /// A thread's room, too.
    Parent,
    /// The room's other threads, too.
    Threads,
}

/// What becomes of a message to an agent while an earlier one still waits for its answer.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum OverlapShape {
    /// What one person asks meanwhile is answered together; other people's apart.
    Auto,
    /// Each is answered by itself, in order.
    Queue,
    /// All that wait are answered together, whoever asked.
    Collect,
    /// What is being answered is given up, and all is answered together.
    Interrupt,
}

impl From<OverlapShape> for Overlap {
    fn from(shape: OverlapShape) -> Self {
        match shape {
            OverlapShape::Auto => Self::Auto,
            OverlapShape::Queue => Self::Queue,
            OverlapShape::Collect => Self::Collect,
            OverlapShape::Interrupt => Self::Interrupt,
        }
    }
}

/// How prompts are assembled.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PromptShape {
    /// Keep only turns that concern the agent.
    pub addressed_only: bool,
    /// The most kept turns that are read.
    #[schemars(range(min = 1, max = 10_000))]
    pub max_turns_to_load: usize,
    /// How far back turns are read, in minutes.
    #[schemars(range(min = 0.0))]
    pub time_window_minutes: Option<f64>,
    /// Only turns of this scope.
    pub scope: Option<ScopeShape>,
    /// Kept turns in no summary from which on the older ones are folded into one.
    #[schemars(range(min = 1))]
    pub rolling_summary_threshold: usize,
    /// Newest turns of people that are not folded, as far as a prompt can hold what stands among them.
    pub preserve_recent_turns: usize,
    /// Tokens for summary, history and trigger together.
    #[schemars(range(min = 1))]
    pub token_budget: usize,
    /// The most tokens of a trigger; a longer one is cut with a marker.
    #[schemars(range(min = 1))]
    pub trigger_max_tokens: usize,
    /// Kept turns of the parent before a thread's root.
    pub parent_turns: usize,
    /// Turns before the trigger that don't concern the agent and that no summary reaches.
    pub ambient_turns: usize,
    /// Which set of rules.
    pub profile: ProfileShape,
}

/// What kind of place a conversation is.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ScopeShape {
    /// A group room or one of its topics.
    Channel,
    /// A Slack thread in a channel.
    Thread,
    /// A direct chat.
    Dm,
}

impl From<ScopeShape> for Scope {
    fn from(shape: ScopeShape) -> Self {
        match shape {
            ScopeShape::Channel => Self::Channel,
            ScopeShape::Thread => Self::Thread,
            ScopeShape::Dm => Self::Dm,
        }
    }
}

/// A set of assembler rules.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ProfileShape {
    /// Ours.
    Vocative,
    /// Those of the recorded vectors.
    Toolpack,
}

/// One chat of a channel.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ChatShape {
    /// What becomes of a message while an earlier one still waits there, for every agent; not set: as
    /// the agent has it.
    pub overlap: Option<OverlapShape>,
    /// How prompts are assembled there, for every agent: what is not set is as the agent has it.
    #[serde(default)]
    pub prompt: ChatPromptShape,
}

/// How prompts are assembled in one chat. The settings and bounds of [`PromptShape`], none required;
/// which set of rules stays the agent's.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ChatPromptShape {
    /// Keep only turns that concern the agent.
    pub addressed_only: Option<bool>,
    /// The most kept turns that are read.
    #[schemars(range(min = 1, max = 10_000))]
    pub max_turns_to_load: Option<usize>,
    /// How far back turns are read, in minutes.
    #[schemars(range(min = 0.0))]
    pub time_window_minutes: Option<f64>,
    /// Only turns of this scope.
    pub scope: Option<ScopeShape>,
    /// Kept turns in no summary from which on the older ones are folded into one.
    #[schemars(range(min = 1))]
    pub rolling_summary_threshold: Option<usize>,
    /// Newest turns of people that are not folded, as far as a prompt can hold what stands among them.
    pub preserve_recent_turns: Option<usize>,
    /// Tokens for summary, history and trigger together.
    #[schemars(range(min = 1))]
    pub token_budget: Option<usize>,
    /// The most tokens of a trigger; a longer one is cut with a marker.
    #[schemars(range(min = 1))]
    pub trigger_max_tokens: Option<usize>,
    /// Kept turns of the parent before a thread's root.
    pub parent_turns: Option<usize>,
    /// Turns before the trigger that don't concern the agent and that no summary reaches.
    pub ambient_turns: Option<usize>,
}
