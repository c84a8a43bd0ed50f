//! The checked configuration that the daemon reads: plain values, instants and lengths in
//! milliseconds, references known to hold.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::origin::Origins;
use super::secret::SecretRef;
use super::template::Template;
use crate::domain::addressing::Overlap;
use crate::domain::ids::AgentName;
use crate::domain::manners::Manners;
use crate::domain::options::{AssemblerOptions, OptionOverrides};
use crate::domain::search::SearchReach;

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
    /// Health and metrics over HTTP.
    pub http: Http,
    /// The API for programs.
    pub api: Api,
    /// What platforms call.
    pub webhooks: Webhooks,
    /// Language models by name.
    pub models: BTreeMap<String, Model>,
    /// Agents by name; never empty.
    pub agents: BTreeMap<AgentName, Agent>,
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
    /// A longer text is cut with a marker, in bytes.
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
    /// A Slack connection that tells of nothing for so long is doubted: the newest messages are
    /// compared with the stored ones, in seconds; 0 = never.
    #[schemars(range(min = 0, max = 86_400))]
    pub deaf_after_s: u32,
}

/// Limits on the use of one channel; 0 = no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Runs of one person in one hour.
    pub max_runs_per_hour_person: u32,
    /// Runs in one chat in one hour.
    pub max_runs_per_hour_chat: u32,
    /// Tokens of the channel in one UTC day.
    pub tokens_per_day: u64,
}

/// Days for which a channel's data is kept; 0 = until it is erased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetentionDays {
    /// Turns: text, earlier texts, attachments' names, full text.
    #[schemars(range(min = 0, max = 36_500))]
    pub text: u32,
    /// Raw events and commands.
    #[schemars(range(min = 0, max = 36_500))]
    pub raw: u32,
    /// Details of runs: model calls, tool calls and results, texts and attempts of posts.
    #[schemars(range(min = 0, max = 36_500))]
    pub runs: u32,
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
    /// How long after its first words an answer that is being written begins to show.
    pub live_delay_ms: u64,
    /// The shortest time between two states of an answer that show; 0 = the platform's own pace.
    pub live_interval_ms: u64,
}

/// What happens to a post that may or may not have arrived and can't be looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnUnknown {
    /// Post it once more: people may see it twice.
    Resend,
    /// Wait for a person: people may not see it until then.
    Hold,
}

/// Whether people see an answer while it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Live {
    /// In chats with one person; elsewhere one post, because nobody is notified of an edit.
    #[default]
    Auto,
    /// Everywhere.
    On,
    /// Nowhere.
    Off,
    /// Everywhere, and by a post that is edited also where the platform has previews.
    Edit,
    /// In Slack's threads by its streaming, and by a post that is edited in other chats with one person.
    Stream,
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
    /// While all stored files together have so much, no further one is fetched, in MiB.
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
    /// A larger picture is not shown to models, in bytes.
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
    /// The token that every request must bear; never absent where other machines can reach it.
    pub token: Option<SecretRef>,
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

/// An agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Agent {
    /// Its name in the configuration.
    pub name: AgentName,
    /// The name that people see.
    pub display_name: String,
    /// Further names by which people address it.
    pub aliases: Vec<String>,
    /// The system instructions.
    pub instructions: Template,
    /// Its model's name; `Config::models` has it.
    pub model: String,
    /// The model that makes its summaries; not set: the one above. `offline` is built in.
    pub summary_model: Option<String>,
    /// The channels it serves.
    pub channels: ChannelChoice,
    /// How long one run may take.
    pub run_deadline_ms: u64,
    /// Attempts of one run.
    pub max_attempts: u32,
    /// What becomes of a message to it while an earlier one still waits for its answer.
    pub overlap: Overlap,
    /// What its model may use while it works on an answer; each once.
    pub tools: Vec<ToolName>,
    /// What `conversation_search` searches.
    pub search_reach: SearchReach,
    /// Model calls of one run.
    pub max_steps: u32,
    /// How long one tool call may take.
    pub tool_timeout_ms: u64,
    /// How its prompts are assembled.
    pub prompt: AssemblerOptions,
}

/// A tool that a model may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolName {
    /// Searches what was said in the conversation.
    ConversationSearch,
}

impl Agent {
    /// Every text that addresses the agent: its name, its display name and its aliases, each once
    /// whatever its case.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = vec![self.name.as_str()];
        for name in std::iter::once(self.display_name.as_str())
            .chain(self.aliases.iter().map(String::as_str))
        {
            let folded = name.to_lowercase();
            if !names.iter().any(|known| known.to_lowercase() == folded) {
                names.push(name);
            }
        }
        names
    }
}

/// The channels an agent serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelChoice {
    /// All, those that are added later too.
    All,
    /// Those named.
    Named(Vec<String>),
}

impl ChannelChoice {
    /// Whether the channel is among them.
    #[must_use]
    pub fn has(&self, channel: &str) -> bool {
        match self {
            Self::All => true,
            Self::Named(names) => names.iter().any(|name| name == channel),
        }
    }
}

/// A configured connection to a platform.
#[derive(Clone, Debug, PartialEq)]
pub struct Channel {
    /// Its name in the configuration, unique over all platforms.
    pub name: String,
    /// The agent that answers when no alias picks one. None if no agent serves the channel.
    pub default_agent: Option<AgentName>,
    /// Who is served.
    pub access: Access,
    /// What counts as a follow-up in a thread.
    pub thread_policy: ThreadPolicy,
    /// Whether an answer in a room opens a thread, where the platform has threads.
    pub answers_in_threads: bool,
    /// Commands that address the default agent, without the slash.
    pub commands: Vec<String>,
    /// Whether an answer starts with its agent's name.
    pub reply_prefix: ReplyPrefix,
    /// Whether `@Name` in an answer tells somebody who spoke in the conversation.
    pub mention_people: bool,
    /// An older message is stored and not answered.
    pub max_trigger_age_ms: u64,
    /// What happens to a post of unknown outcome.
    pub on_unknown: OnUnknown,
    /// Whether people see an answer while it is written.
    pub live: Live,
    /// Limits on its use.
    pub limits: Limits,
    /// How prompts are assembled in single chats, by the platform's id of the chat.
    pub chats: BTreeMap<String, OptionOverrides>,
    /// How long its data is kept.
    pub retention_days: RetentionDays,
    /// How the bot behaves there.
    pub manners: Manners,
    /// What its own surface shows, where the platform has one and the app declares it.
    pub agent_view: Option<AgentView>,
    /// What becomes there of a message while an earlier one waits, in single chats that differ from
    /// their agents.
    pub chat_overlaps: BTreeMap<String, Overlap>,
    /// What only its platform knows.
    pub platform: PlatformSettings,
}

/// A bot's own surface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentView {
    /// What people may want to ask: what is shown, and what is said when it is chosen.
    pub prompts: Vec<(String, String)>,
}

/// Who is served on a channel, by platform id; `*` = all. What follows from it is capture's to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Chats that are served.
    pub allow_chats: Vec<String>,
    /// People who are served; empty = everybody in a served room, nobody in private.
    pub allow_people: Vec<String>,
    /// People who may use admin commands; never `*`.
    pub admins: Vec<String>,
    /// Other bots that may address an agent.
    pub allow_bots: Vec<String>,
    /// Whether people of other organisations in shared channels are served.
    pub serves_strangers: bool,
}

/// What counts as a follow-up in a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThreadPolicy {
    /// Every message in a thread whose root addressed the agent.
    Participating,
    /// Only messages that address the agent themselves.
    Mention,
}

/// Whether an answer starts with its agent's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplyPrefix {
    /// If several agents serve the channel.
    Auto,
    /// In any case.
    Always,
    /// In no case.
    Never,
}

/// What only one platform knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlatformSettings {
    /// A Slack workspace.
    Slack(SlackSettings),
    /// A Telegram bot.
    Telegram(TelegramSettings),
}

/// A Slack workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlackSettings {
    /// How events come in.
    pub transport: SlackTransport,
    /// Where the bot token is.
    pub bot_token: SecretRef,
    /// Address of the Web API, without a slash at its end.
    pub api_url: String,
    /// Sockets held open at the same time.
    pub sockets: usize,
}

/// How a Slack workspace's events come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlackTransport {
    /// Over sockets that the daemon opens.
    Socket {
        /// Where the app-level token is.
        app_token: SecretRef,
    },
    /// Over requests that Slack makes.
    Http {
        /// Where the secret is with which Slack signs them.
        signing_secret: SecretRef,
        /// Where the app-level token is; only a live check has a use for it.
        app_token: Option<SecretRef>,
    },
}

impl SlackSettings {
    /// The references to secrets, by their settings.
    pub(super) fn secrets(&self) -> Vec<(&'static str, &SecretRef)> {
        let mut secrets = vec![("bot_token", &self.bot_token)];
        match &self.transport {
            SlackTransport::Socket { app_token } => secrets.insert(0, ("app_token", app_token)),
            SlackTransport::Http {
                signing_secret,
                app_token,
            } => {
                secrets.push(("signing_secret", signing_secret));
                secrets.extend(app_token.as_ref().map(|token| ("app_token", token)));
            }
        }
        secrets
    }
}

/// A Telegram bot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TelegramSettings {
    /// Where the token is.
    pub token: SecretRef,
    /// Address of the Bot API, without a slash at its end.
    pub api_url: String,
    /// How updates come in.
    pub transport: TelegramTransport,
}

/// How a Telegram bot's updates come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TelegramTransport {
    /// The daemon asks for them.
    Poll,
    /// Telegram posts them.
    Webhook {
        /// What is in front of `/telegram/NAME`, without a slash at its end.
        public_url: String,
        /// Where the secret is that Telegram sends; none = one that follows from the token.
        secret: Option<SecretRef>,
        /// Chats that are delivered at the same time.
        max_connections: u32,
    },
}

impl TelegramSettings {
    /// The references to secrets, by their settings.
    pub(super) fn secrets(&self) -> Vec<(&'static str, &SecretRef)> {
        let mut secrets = vec![("token", &self.token)];
        if let TelegramTransport::Webhook {
            secret: Some(secret),
            ..
        } = &self.transport
        {
            secrets.push(("webhook_secret", secret));
        }
        secrets
    }
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
            .filter(|agent| agent.channels.has(&channel.name))
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
            .get(&agent.model)
            .expect("a checked agent's model is configured")
    }

    /// The model that makes an agent's summaries; `None` = the built-in summariser.
    #[must_use]
    pub fn summary_model_of(&self, agent: &Agent) -> Option<&Model> {
        let name = agent.summary_model.as_ref().unwrap_or(&agent.model);
        let model = self.models.get(name);
        model.filter(|model| model.provider != Provider::Offline)
    }

    /// Whether an answer of one of the channel's agents starts with its name.
    #[must_use]
    pub fn prefixes_replies(&self, channel: &Channel) -> bool {
        match channel.reply_prefix {
            ReplyPrefix::Always => true,
            ReplyPrefix::Never => false,
            ReplyPrefix::Auto => self.agents_for_channel(channel).len() > 1,
        }
    }
}
