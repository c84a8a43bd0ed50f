//! The checked configuration that the daemon reads: plain values, instants and lengths in
//! milliseconds, references known to hold. This page: the whole, and the process; then `models`, `agents`,
//! `channels`.

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
use vocative_core::ids::AgentName;

pub use self::agents::{Agent, AgentSettings, ChannelChoice, FirstTool, Network};
pub use self::channels::{Access, AgentView, Channel, Limits, ReplyPrefix, RetentionDays};
pub use self::hooks::{Hook, HookKind};
pub use self::models::{CounterName, Model, ModelApi, Provider, ReasoningEffort};
pub use self::schedules::ConfiguredSchedule;
pub use self::tools::{McpServer, SecretHeader, SecretVariable, Tool, ToolKind};
pub use vocative_core::judging::policy::ThreadPolicy;
pub use vocative_core::sending::policy::{Live, OnUndecided, OnUnknown};

/// The name under which the summariser without a model is always there.
pub(super) const OFFLINE_SUMMARIES: &str = "offline";

/// The whole configuration.
///
/// *Invariant:* made only by `Config::load` and its kin, so every reference in it holds: an agent's
/// model and channels exist, a channel's default agent exists and serves it.
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
    /// Writing voice notes down; `None` = they are only named.
    pub transcription: Option<Transcription>,
    /// What amounts of money are in.
    pub currency: String,
    /// Makes vectors of what is said, where that is wanted.
    pub embeddings: Option<EmbeddingServer>,
    /// Health and metrics over HTTP.
    pub http: Http,
    /// The API for programs.
    pub api: Api,
    /// The web console.
    pub console: Console,
    /// What platforms call.
    pub webhooks: Webhooks,
    /// Language models by name.
    pub models: BTreeMap<String, Model>,
    /// Agents by name, networks among them as what is addressed; never empty.
    pub agents: BTreeMap<AgentName, Agent>,
    /// Tools by name; built-in ones only where they have limits.
    pub tools: BTreeMap<String, Tool>,
    /// Hooks by name.
    pub hooks: BTreeMap<String, Hook>,
    /// Servers of tools by name.
    pub mcp: BTreeMap<String, McpServer>,
    /// Collections of documents by name.
    pub knowledge: BTreeMap<String, CollectionSettings>,
    /// Folders of skills.
    pub skill_folders: Vec<PathBuf>,
    /// What starts again and again.
    pub schedules: Vec<ConfiguredSchedule>,
    /// Channels by name, of all platforms.
    pub channels: BTreeMap<String, Channel>,
    /// The file it was read from; none if there was none.
    pub file: Option<PathBuf>,
    /// The folder that relative paths count from.
    pub(super) base_dir: PathBuf,
    /// The effective values as a tree, for `config show`.
    pub(super) effective: serde_json::Value,
    /// Where values came from.
    pub(super) origins: Origins,
}

/// The process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Daemon {
    /// Folder of the database.
    pub data_dir: PathBuf,
    /// Folder of the control socket.
    pub runtime_dir: PathBuf,
    /// The control socket: what commands talk to.
    pub control_socket: PathBuf,
    /// Group that may use the control socket.
    pub socket_group: Option<String>,
    /// How long a stop waits for answers in progress.
    pub drain_deadline_ms: u64,
    /// Runs that may work at the same time.
    pub max_parallel_runs: usize,
    /// How log lines look.
    pub log_format: LogFormat,
    /// A level or filter directives.
    pub log_level: String,
    /// Whether the daemon gives up what it does not need of the file system.
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
    /// Posts that one answer may be split into.
    pub max_parts: usize,
    /// When a post of unknown outcome is first looked for, after its attempt.
    pub first_look_ms: u64,
    /// How long a post of unknown outcome is looked for; longer than a platform may take to show it.
    pub look_back_ms: u64,
    /// How long posts wait for a chat that refuses them.
    pub park_keep_ms: u64,
    /// How long after its first words an answer that is being written begins to show.
    pub live_delay_ms: u64,
    /// The shortest time between two states of an answer that show; 0 = the platform's own pace.
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

/// Writing voice notes down.
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

/// Making vectors of what is said.
#[derive(Clone, Debug, PartialEq)]
pub struct EmbeddingServer {
    /// Address of the API (`/v1`), which speaks OpenAI's protocol.
    pub base_url: String,
    /// The provider's name of the model.
    pub model: String,
    /// How many numbers a vector is to have; `None` = as many as the model makes.
    pub dimensions: Option<u32>,
    /// Where the key is.
    pub api_key: Option<SecretRef>,
    /// Tokens that may be embedded in a UTC day; 0 = no limit.
    pub tokens_per_day: u64,
}

/// Health and metrics over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http {
    /// Whether the server runs.
    pub enabled: bool,
    /// Address and port.
    pub listen: SocketAddr,
}

/// The API for programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Api {
    /// Whether the server runs.
    pub enabled: bool,
    /// Where it listens.
    pub listen: ApiAddress,
    /// Group that may use the API's socket.
    pub socket_group: Option<String>,
    /// A token that may read. On an address and port there is this or another one.
    pub token: Option<SecretRef>,
    /// Tokens with names.
    pub tokens: Vec<ApiToken>,
    /// How long what is asked over it is kept.
    pub retention_days: RetentionDays,
}

/// Where the API listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiAddress {
    /// On a Unix socket.
    Unix(PathBuf),
    /// On an address and port.
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

/// The listener that platforms call; open only if a channel's transport needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Webhooks {
    /// Address and port.
    pub listen: SocketAddr,
}

/// A platform id as written: text or number.
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
    /// An agent by its name.
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
    /// If the agent is of another configuration.
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

    /// The model that reads settled conversations for an agent's memory; `None` = it is one that only repeats.
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
