//! The shape of the configuration as people write it: every setting, its type and its bounds.
//!
//! The JSON schema is generated from these types, and files and variables are checked against the same schema: so the
//! published schema is what is enforced. No defaults are here: all of them are in `config/default.toml`. `settings`
//! holds what the rest of the daemon reads.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::Value;

use super::api::ApiShape;
use super::console::ConsoleShape;
use super::hooks::HookShape;
use super::knowledge::KnowledgeShape;
use super::mcp::McpShape;
use super::networks::NetworkShape;
use super::platforms::{ChannelsShape, DefaultsShape};
use super::schedules::ScheduleShape;
use super::schema::FORMS_FORMAT;
use super::secret::SecretRef;
use super::settings::{AgentSettings, Capture, Files, Landlock, LogFormat, ModelConfig, Store};
use super::skills::SkillsShape;
use vocative_core::addressing::Overlap;
use vocative_core::approving::AfterUntrusted;
use vocative_core::options::Profile;
use vocative_core::place::Scope;
use vocative_core::sending::policy::{Live, OnUndecided, OnUnknown};

/// The characters of a platform's id of a chat; each platform's own form is checked later.
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
    /// The web console.
    pub console: ConsoleShape,
    /// Skills of agents.
    pub skills: SkillsShape,
    /// What platforms call.
    pub webhooks: WebhooksShape,
    /// Values for all models, agents and channels that don't set their own.
    #[allow(dead_code, reason = "merged into each table before this is read")]
    pub defaults: DefaultsShape,
    /// Language models by name.
    #[serde(default)]
    pub models: BTreeMap<String, ModelConfig>,
    /// Agents by name.
    #[serde(default)]
    pub agents: BTreeMap<String, AgentSettings>,
    /// Networks by name: several agents behind one name.
    #[serde(default)]
    pub networks: BTreeMap<String, NetworkShape>,
    /// Tools by name.
    #[serde(default)]
    pub tools: BTreeMap<String, ToolShape>,
    /// Hooks by name: who is asked at the points of a run.
    #[serde(default)]
    pub hooks: BTreeMap<String, HookShape>,
    /// Servers of tools (Model Context Protocol) by name.
    #[serde(default)]
    pub mcp: BTreeMap<String, McpShape>,
    /// Collections of documents by name.
    #[serde(default)]
    pub knowledge: BTreeMap<String, KnowledgeShape>,
    /// What starts again and again, by name.
    #[serde(default)]
    pub schedules: BTreeMap<String, ScheduleShape>,
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

/// The listener that platforms call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WebhooksShape {
    /// Address and port.
    pub listen: String,
}

/// A tool that agents may name in `tools`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolShape {
    /// How it works.
    pub kind: ToolKindShape,
    /// What it is for, in words for the model.
    pub description: Option<String>,
    /// A JSON schema of its arguments, as text.
    pub parameters: Option<String>,
    /// The method of the request.
    #[serde(default)]
    pub method: MethodShape,
    /// Where the request goes: {name} stands for an argument, behind the host.
    pub url: Option<String>,
    /// What is sent, as JSON text: "{name}" stands for an argument. Not set: of a request with a body the
    /// arguments that do not stand in the address.
    pub body: Option<String>,
    /// Headers, a line each: "accept: application/json".
    #[serde(default)]
    pub headers: Vec<String>,
    /// A secret that is sent as "authorization: Bearer ...".
    pub bearer: Option<SecretRef>,
    /// A secret that is sent in the header `api_key_header`.
    pub api_key: Option<SecretRef>,
    /// The header of `api_key`.
    #[serde(default = "api_key_header")]
    pub api_key_header: String,
    /// The header that carries the id of a call, by which the server knows a repeated request.
    pub idempotency_header: Option<String>,
    /// Hosts of own networks that it may ask, with their ports.
    #[serde(default)]
    pub allow_private: Vec<String>,
    /// Which part of a JSON answer is shown, as a JSON pointer.
    #[serde(default)]
    pub result: String,
    /// The longest answer that is read, in bytes.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub answer_max_bytes: Option<usize>,
    /// The program of a command and its arguments, without a shell.
    #[serde(default)]
    pub argv: Vec<String>,
    /// Where a command runs; not set: in an empty folder for each call.
    pub folder: Option<PathBuf>,
    /// The variables of a command, each NAME=VALUE; it has no others.
    #[serde(default)]
    pub environment: Vec<String>,
    /// Variables of a command that hold secrets, each NAME=REFERENCE: "TOKEN=env:REFUND_TOKEN".
    #[serde(default)]
    pub secrets: Vec<String>,
    /// Files and folders that a command may read and execute, beside the system's programs.
    #[serde(default)]
    pub read: Vec<PathBuf>,
    /// Files and folders that a command may change.
    #[serde(default)]
    pub write: Vec<PathBuf>,
    /// TCP ports that a command may connect to; none: it has no network.
    #[serde(default)]
    pub connect_ports: Vec<u16>,
    /// Memory of all processes of a command together, in MiB.
    #[schemars(range(min = 16, max = 1_048_576))]
    pub memory_max_mib: Option<u64>,
    /// Processes of a command.
    #[schemars(range(min = 1, max = 10_000))]
    pub processes_max: Option<u32>,
    /// Whether a command is run where the machine can't keep it from the archive.
    #[serde(default)]
    pub trusted: bool,
    /// Whether a command knows a call that is made again by its id, VOCATIVE_CALL_ID.
    #[serde(default)]
    pub keyed: bool,
    /// Whether a call that was cut off may be made again.
    pub repeatable: Option<bool>,
    /// Seconds that one call may take; not set: as the agent has it.
    #[schemars(range(min = 1, max = 3600))]
    pub timeout_s: Option<u64>,
    /// The people whose questions it may be called for, as CHANNEL/ID; not set: everybody's.
    pub allow_people: Option<Vec<String>>,
    /// Calls of it in one run.
    #[schemars(range(min = 1, max = 1000))]
    pub calls_per_run: Option<u32>,
    /// Calls of it in one UTC day for one person.
    #[schemars(range(min = 1))]
    pub calls_per_day: Option<u32>,
    /// When its calls wait for a person: "never", "always", "first" or a table of rules.
    #[schemars(schema_with = "forms")]
    pub approval: Option<Value>,
    /// Who may decide about them.
    #[schemars(schema_with = "forms")]
    pub approvers: Option<Value>,
    /// Seconds that they wait; "never" = until somebody decides.
    #[schemars(schema_with = "forms")]
    pub approval_expires_s: Option<Value>,
    /// What becomes of its calls once their run has read what its asker did not write; not set: as the agent has it.
    pub after_untrusted: Option<AfterUntrusted>,
}

/// The schema of a value that may have several forms.
pub(super) fn forms(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"format": FORMS_FORMAT})
}

fn api_key_header() -> String {
    "x-api-key".to_owned()
}

/// How a tool works.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToolKindShape {
    /// One request.
    Http,
    /// One program.
    Command,
    /// A built-in tool of that name, with limits.
    Builtin,
}

/// The method of a request.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum MethodShape {
    /// Reads.
    #[default]
    Get,
    /// Reads the headers.
    Head,
    /// Acts.
    Post,
    /// Puts in place.
    Put,
    /// Changes.
    Patch,
    /// Removes.
    Delete,
}

/// How prompts are assembled.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
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
    pub scope: Option<Scope>,
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
    pub profile: Profile,
}

/// One chat of a channel.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ChatShape {
    /// What becomes of a message while an earlier one still waits there, for every agent; not set: as
    /// the agent has it.
    pub overlap: Option<Overlap>,
    /// Which of their tools agents may use there; not set: all of them.
    pub tools: Option<Vec<String>>,
    /// What stands there behind the instructions of every agent, a template.
    pub instructions: Option<String>,
    /// When nothing is answered there, as in `manners`; empty: always answered; not set: as in the channel.
    pub quiet_hours: Option<String>,
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
    pub scope: Option<Scope>,
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
