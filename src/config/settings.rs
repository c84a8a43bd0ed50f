//! The checked configuration that the daemon reads: plain values, times in milliseconds, and references that exist.
//! This page: the whole configuration, and the process; then `models`, `agents`, `channels`.

mod agents;
mod channels;
mod hooks;
mod models;
mod schedules;
mod tools;

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use super::api::ApiToken;
use super::console::Console;
use super::origin::Origins;
use super::secret::SecretRef;
use crate::knowledge::CollectionSettings;
use crate::llm::Provider;
use vocative_core::ids::AgentName;

pub use self::agents::{Agent, AgentSettings, ChannelChoice, FirstTool, Network};
pub use self::channels::{Access, AgentView, Channel, Limits, ReplyPrefix, RetentionDays};
pub use self::hooks::{Hook, HookKind};
pub(super) use self::models::in_place_of;
pub use self::models::{CounterName, Model, ModelConfig};
pub use self::schedules::ConfiguredSchedule;
pub use self::tools::{McpServer, SecretHeader, SecretVariable, Tool, ToolKind};
pub use vocative_core::judging::policy::ThreadPolicy;
pub use vocative_core::sending::policy::{Live, OnUndecided, OnUnknown};

/// The name of the built-in summariser, which needs no model.
pub(super) const OFFLINE_SUMMARIES: &str = "offline";

/// The whole configuration.
///
/// *Invariant:* made only by `Config::load` and its kin, so every reference in it is valid: an agent's model and
/// channels exist, a channel's default agent exists and serves it.
#[derive(Clone, Debug)]
pub struct Config {
    /// The process.
    pub daemon: Daemon,
    /// The database.
    pub store: Store,
    /// What is stored of incoming messages.
    pub capture: Capture,
    /// Posting answers.
    pub delivery: Delivery,
    /// Files that people attach.
    pub files: Files,
    /// Transcribing voice notes; `None` = they are only named.
    pub transcription: Option<Transcription>,
    /// The currency of amounts of money.
    pub currency: String,
    /// The server that makes embedding vectors of messages, if one is configured.
    pub embeddings: Option<EmbeddingServer>,
    /// Health and metrics over HTTP.
    pub http: Http,
    /// The API for programs.
    pub api: Api,
    /// The web console.
    pub console: Console,
    /// The listener for calls from platforms.
    pub webhooks: Webhooks,
    /// Language models by name.
    pub models: BTreeMap<String, Model>,
    /// Agents by name, also the networks, which are addressed like agents; never empty.
    pub agents: BTreeMap<AgentName, Agent>,
    /// Tools by name; a built-in tool only if it has limits.
    pub tools: BTreeMap<String, Tool>,
    /// Hooks by name.
    pub hooks: BTreeMap<String, Hook>,
    /// MCP servers by name.
    pub mcp: BTreeMap<String, McpServer>,
    /// Collections of documents by name.
    pub knowledge: BTreeMap<String, CollectionSettings>,
    /// Folders of skills.
    pub skill_folders: Vec<PathBuf>,
    /// Schedules.
    pub schedules: Vec<ConfiguredSchedule>,
    /// Channels by name, of all platforms.
    pub channels: BTreeMap<String, Channel>,
    /// The file it was read from; `None` if there was none.
    pub file: Option<PathBuf>,
    /// The folder that relative paths count from.
    pub(super) base_dir: PathBuf,
    /// The effective values as a tree, for `config show`.
    pub(super) effective: serde_json::Value,
    /// Where values come from.
    pub(super) origins: Origins,
}

/// The process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Daemon {
    /// Folder of the database.
    pub data_dir: PathBuf,
    /// Folder of the control socket.
    pub runtime_dir: PathBuf,
    /// The control socket, which commands connect to.
    pub control_socket: PathBuf,
    /// Group that may use the control socket.
    pub socket_group: Option<String>,
    /// How long a stop waits for answers in progress.
    pub drain_deadline_ms: u64,
    /// The number of runs that may work at the same time.
    pub max_parallel_runs: usize,
    /// The format of log lines.
    pub log_format: LogFormat,
    /// The level, or filter directives, of the log.
    pub log_level: String,
    /// Whether the daemon gives up access to files that it does not need.
    pub landlock: Landlock,
}

/// Whether the daemon gives up what it does not need of the file system, by Linux's Landlock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Landlock {
    /// Where the kernel can; not in a systemd unit that filters system calls, which confines it already.
    #[default]
    Auto,
    /// Always: where the kernel can't, the daemon does not start.
    On,
    /// Never.
    Off,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// Text; without time and colours under systemd.
    #[default]
    Auto,
    /// Text with time.
    Text,
    /// One JSON object a line.
    Json,
}

/// The database.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Store {
    /// Connections that read at the same time.
    #[schemars(range(min = 1, max = 64))]
    pub readers: usize,
    /// Page cache of each connection, in KiB.
    #[schemars(range(min = 64, max = 4_194_304))]
    pub page_cache_kib: u32,
    /// Hours for which every raw envelope is kept; 0 = only those that did not translate.
    #[schemars(range(min = 0, max = 8760))]
    pub debug_raw_hours: u32,
    /// Whether the text before an edit is kept.
    pub keep_revisions: bool,
}

/// What is stored of incoming messages.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Capture {
    /// The length above which a text is cut, with a marker, in bytes.
    #[schemars(range(min = 256, max = 1_048_576))]
    pub inbound_text_max_bytes: usize,
    /// An older message is stored and not answered, in minutes. Read a channel's
    /// `max_trigger_age_ms` instead, which knows its own setting too.
    #[schemars(range(min = 1, max = 5_256_000))]
    pub max_trigger_age_minutes: u64,
    /// How long the run for an album waits for its further items, in milliseconds.
    #[schemars(range(min = 0, max = 60_000))]
    pub album_wait_ms: u64,
    /// Days for which messages that were missed are read back, on Slack; 0 = none.
    #[schemars(range(min = 0, max = 365))]
    pub catch_up_days: u32,
    /// Messages of one chat that are read back, the newest; 0 = none.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub catch_up_messages_max: usize,
    /// Days that are read of a Slack channel when the bot joins it; 0 = none.
    #[schemars(range(min = 0, max = 3_650))]
    pub backfill_days: u32,
    /// Messages that are read of it, the newest; 0 = none.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub backfill_messages_max: usize,
    /// The silence of a Slack connection after which it is doubted, in seconds: the newest messages are
    /// compared with the stored ones; 0 = never.
    #[schemars(range(min = 0, max = 86_400))]
    pub deaf_after_s: u32,
}

/// Posting answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The most posts that one answer may be split into.
    pub max_parts: usize,
    /// How long after an attempt a post of unknown outcome is first looked for.
    pub first_look_ms: u64,
    /// How long a post of unknown outcome is looked for; longer than a platform may take to show a post.
    pub look_back_ms: u64,
    /// How long posts wait for a chat that refuses them.
    pub park_keep_ms: u64,
    /// How long after its first words an answer that is being written is shown.
    pub live_delay_ms: u64,
    /// The shortest time between two updates of a shown answer; 0 = the platform's own pace.
    pub live_interval_ms: u64,
}

/// Files that people attach: what is fetched, kept and shown to models.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Files {
    /// Whether the contents of files are fetched; their names are stored in any case.
    pub fetch: bool,
    /// Which kinds are fetched.
    pub kinds: Vec<FileKindName>,
    /// A larger file is not fetched, in bytes. Telegram gives bots at most 20 MiB.
    #[schemars(range(min = 1, max = 1_073_741_824))]
    pub max_bytes: u64,
    /// The size of all stored files together at which the oldest make room for newer ones, in MiB.
    #[schemars(range(min = 1, max = 16_777_216))]
    pub max_total_mib: u64,
    /// How long an answer waits for the files of its question, in seconds; 0 = not at all.
    #[schemars(range(min = 0, max = 40))]
    pub wait_s: u64,
    /// Of how many turns before a question the files are read, too; 0 = only those of the question.
    #[schemars(range(min = 0, max = 100))]
    pub recent_turns: usize,
    /// Tokens that the texts of all files of one prompt may have; what is over is cut with a marker.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub text_max_tokens: usize,
    /// The largest picture that models are shown, in bytes.
    #[schemars(range(min = 1, max = 20_971_520))]
    pub image_max_bytes: u64,
    /// Pictures of one prompt.
    #[schemars(range(min = 0, max = 20))]
    pub images_max: usize,
}

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileKindName {
    /// Text, source, data that people can read.
    Text,
    /// PNG, JPEG, WebP and GIF.
    Image,
    /// Voice notes.
    Voice,
    /// Everything else.
    Other,
}

impl FileKindName {
    /// The name in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Image => "image",
            Self::Voice => "voice",
            Self::Other => "other",
        }
    }
}

/// Transcribing voice notes.
#[derive(Clone, Debug, PartialEq)]
pub struct Transcription {
    /// Address of the API (`/v1`), which speaks OpenAI's protocol.
    pub base_url: String,
    /// The provider's name of the model.
    pub model: String,
    /// Where the key is.
    pub api_key: Option<SecretRef>,
    /// How long one request may take.
    pub timeout_ms: u64,
}

/// The server that makes embedding vectors of messages.
#[derive(Clone, Debug, PartialEq)]
pub struct EmbeddingServer {
    /// Address of the API (`/v1`), which speaks OpenAI's protocol.
    pub base_url: String,
    /// The provider's name of the model.
    pub model: String,
    /// The number of dimensions of a vector; `None` = the model's default.
    pub dimensions: Option<u32>,
    /// Where the key is.
    pub api_key: Option<SecretRef>,
    /// The most tokens that may be embedded in a UTC day; 0 = no limit.
    pub tokens_per_day: u64,
}

/// Health and metrics over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http {
    /// Whether the server runs.
    pub enabled: bool,
    /// The address and port it listens on.
    pub listen: SocketAddr,
}

/// The API for programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Api {
    /// Whether the server runs.
    pub enabled: bool,
    /// The address it listens on.
    pub listen: ApiAddress,
    /// Group that may use the API's socket.
    pub socket_group: Option<String>,
    /// A token that may only read. An API on an address and port has at least this or another token.
    pub token: Option<SecretRef>,
    /// Tokens with names.
    pub tokens: Vec<ApiToken>,
    /// How long data of requests to the API is kept.
    pub retention_days: RetentionDays,
}

/// The address that the API listens on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiAddress {
    /// A Unix socket.
    Unix(PathBuf),
    /// An address and port.
    Tcp(SocketAddr),
}

impl fmt::Display for ApiAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => write!(f, "{address}"),
        }
    }
}

/// The listener for calls from platforms; open only if a channel's transport needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Webhooks {
    /// The address and port it listens on.
    pub listen: SocketAddr,
}

/// A platform's id as it is written: text or number.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct PlatformId(pub String);

impl JsonSchema for PlatformId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PlatformId".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A platform's id of a chat or person, as text or number; or `*` for all.",
            "type": ["string", "integer"],
        })
    }
}

impl Config {
    /// The agent with this name.
    #[must_use]
    pub fn agent(&self, name: &AgentName) -> Option<&Agent> {
        self.agents.get(name)
    }

    /// The agents that serve a channel, its default agent first, then by name.
    #[must_use]
    pub fn agents_for_channel(&self, channel: &Channel) -> Vec<&Agent> {
        let mut agents: Vec<&Agent> = self
            .agents
            .values()
            .filter(|agent| match channel.platform.asked_agents() {
                Some(asked) => asked.contains(&agent.name),
                None => agent.channels.has(&channel.name),
            })
            .collect();
        agents.sort_by_key(|agent| Some(&agent.name) != channel.default_agent.as_ref());
        agents
    }

    /// The model of an agent.
    ///
    /// # Panics
    /// If the agent is from another configuration.
    #[must_use]
    pub fn model_of(&self, agent: &Agent) -> &Model {
        self.models
            .get(&agent.settings.model)
            .expect("a checked agent's model is configured")
    }

    /// The model that makes an agent's summaries; `None` = the built-in summariser.
    #[must_use]
    pub fn summary_model_of(&self, agent: &Agent) -> Option<&Model> {
        let name = agent.settings.summary_model.as_ref();
        let name = name.unwrap_or(&agent.settings.model);
        let model = self.models.get(name);
        model.filter(|model| model.provider != Provider::Offline)
    }

    /// The model that reads settled conversations for an agent's memory; `None` = it would be the offline model.
    #[must_use]
    pub fn memory_model_of(&self, agent: &Agent) -> Option<&Model> {
        let summaries = || self.summary_model_of(agent);
        let own = || self.models.get(&agent.settings.model);
        let named = agent.settings.memory_model.as_ref();
        let model = match named {
            Some(name) => self.models.get(name),
            None => summaries().or_else(own),
        };
        model.filter(|model| model.provider != Provider::Offline)
    }

    /// Whether an answer of one of the channel's agents starts with its name.
    #[must_use]
    pub fn prefixes_replies(&self, channel: &Channel) -> bool {
        if channel.custom_names {
            return false;
        }
        match channel.reply_prefix {
            ReplyPrefix::Always => true,
            ReplyPrefix::Never => false,
            ReplyPrefix::Auto => self.agents_for_channel(channel).len() > 1,
        }
    }
}
