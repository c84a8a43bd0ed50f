//! The daemon at a glance.

use serde::{Deserialize, Serialize};

use super::agents::ModelRestView;
use super::jobs::JobCountView;
use super::knowledge::CollectionView;
use super::mcp::McpHealthView;
use super::skills::{SkillCountsView, WaitingSkillView};
use super::tools::ToolCountsView;
use crate::admin::health::ListenerReading;
use vocative_core::timing::Histogram;
use vocative_core::tokens::RatioStatus;
use vocative_store::StoreWork;

/// The answer of a daemon that serves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AliveView {
    /// The version of the program.
    pub version: String,
    /// Since when the daemon runs, in milliseconds since the Unix epoch; absent without a daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at_ms: Option<i64>,
}

/// The daemon at a glance.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StatusView {
    /// The version of the program.
    pub version: String,
    /// Since when the daemon runs, in milliseconds since the Unix epoch; absent without a daemon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at_ms: Option<i64>,
    /// Whether the daemon is confined to its own folders by Landlock; absent without a daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landlock: Option<String>,
    /// Per channel.
    pub channels: Vec<ChannelView>,
    /// Per open listener: what platforms call, and the API.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listeners: Vec<ListenerView>,
    /// Runs.
    pub runs: RunCounts,
    /// Posts.
    pub posts: PostCounts,
    /// The store.
    pub store: StoreView,
    /// Background work of each kind, by how it stands.
    #[serde(default)]
    pub jobs: Vec<JobCountView>,
    /// What came of tool calls today (UTC), by tool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolCountsView>,
    /// What hooks said since the start; empty without a daemon.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookCountView>,
    /// Servers of tools; empty without a daemon.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp: Vec<McpHealthView>,
    /// Skills that agents name and that are not used, with what is to be done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<WaitingSkillView>,
    /// The states of all skills that agents name; absent while their folders do not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill_counts: Option<SkillCountsView>,
    /// Collections of documents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub knowledge: Vec<CollectionView>,
    /// Vectors of what is said; absent if no embedding server was ever configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embeddings: Option<EmbeddingsView>,
    /// Attached files.
    #[serde(default)]
    pub files: FileCountsView,
    /// Summaries of older turns.
    #[serde(default)]
    pub summaries: SummaryCountsView,
    /// What was learnt in the background.
    #[serde(default)]
    pub memory: MemoryCountsView,
    /// Models that are not asked for now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ModelRestView>,
    /// How long things took since the start; empty without a daemon.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timings: Vec<TimingView>,
    /// What was learnt about counting tokens, by model.
    #[serde(default)]
    pub token_ratios: Vec<TokenRatioView>,
    /// What came in since the start.
    pub intake: IntakeCounts,
    /// What needs a person, in plain words; not empty = exit code 1.
    pub needs_person: Vec<String>,
}

/// A listener as `status` shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenerView {
    /// `webhooks` or `api`.
    pub name: String,
    /// Where it listens.
    pub address: String,
    /// Connections that are open.
    pub connections: u64,
    /// The most connections that may be open.
    pub connections_max: u64,
    /// Open connections that read an event stream.
    pub streams: u64,
    /// Requests since the start that were answered with a refusal (4xx).
    pub refused: u64,
    /// Idle connections that were closed since the start to make room for waiting ones.
    pub sent_away: u64,
}

impl From<ListenerReading> for ListenerView {
    fn from(reading: ListenerReading) -> Self {
        Self {
            name: reading.name.to_owned(),
            address: reading.address,
            connections: reading.connections,
            connections_max: reading.connections_max,
            streams: reading.streams,
            refused: reading.refused,
            sent_away: reading.sent_away,
        }
    }
}

/// How a model counts tokens, compared with a counter of ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokenRatioView {
    /// The model, under its configured name and the provider's.
    pub model: String,
    /// The counter's name and version.
    pub counter: String,
    /// Reported divided by counted tokens; the counts of a counter that estimates are multiplied by it.
    pub ratio: f64,
    /// Reports learnt from.
    pub reports: u64,
    /// Reports too far off to be believed.
    pub ignored: u64,
}

impl From<&RatioStatus> for TokenRatioView {
    fn from(status: &RatioStatus) -> Self {
        Self {
            model: status.key.model.clone(),
            counter: status.key.counter.clone(),
            ratio: status.learnt.ratio.as_number(),
            reports: status.learnt.reports,
            ignored: status.learnt.ignored,
        }
    }
}

/// One channel.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ChannelView {
    /// The configured name.
    pub name: String,
    /// The platform, once an account is bound.
    pub platform: Option<String>,
    /// What people call the account.
    pub account: Option<String>,
    /// `connecting`, `connected`, `retrying`, `alarm`; `stopped` without a daemon.
    pub state: String,
    /// Why it is not connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Open connections.
    pub connections: usize,
    /// When anything was last heard.
    pub last_heard_ms: Option<i64>,
    /// When a new message was last captured.
    pub last_captured_ms: Option<i64>,
    /// The time from receipt to acknowledgement of the last event, in milliseconds.
    pub lag_ms: u64,
    /// These times of all events since the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lags: Option<HistogramView>,
    /// Frames or updates that could not be read.
    pub malformed: u64,
    /// Webhook requests that did not come from the platform, or came incomplete.
    #[serde(default)]
    pub refused: u64,
    /// Webhook requests that were not committed in the time the platform waits; they come again.
    #[serde(default)]
    pub late: u64,
    /// Starts after a failure.
    pub restarts: u64,
    /// How often since the start a connection was open but delivered none of the events.
    #[serde(default)]
    pub deaf: u64,
    /// Connections of the same app that are not this daemon's and take a part of the events, as last reported.
    #[serde(default)]
    pub other_connections: u64,
    /// Chats that refuse posts for now.
    pub parked_chats: u64,
    /// Tokens used since the start of the UTC day.
    pub tokens_today: u64,
    /// How many tokens it may use in a UTC day; absent without a limit, or without a daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_today_max: Option<u64>,
    /// Of these, tokens of the prompts of answers and summaries.
    #[serde(default)]
    pub prompt_tokens_today: u64,
    /// Of the prompts' tokens, read from the provider's cache.
    #[serde(default)]
    pub cache_read_tokens_today: u64,
    /// Of the prompts' tokens, written to the provider's cache.
    #[serde(default)]
    pub cache_write_tokens_today: u64,
    /// Tokens of answers and summaries.
    #[serde(default)]
    pub completion_tokens_today: u64,
    /// What they cost, in millionths of `limits.currency`; 0 where models have no prices.
    #[serde(default)]
    pub cost_micros_today: u64,
    /// What they may cost in a UTC day, in the same; absent without a limit, or without a daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros_today_max: Option<u64>,
    /// Messages since then may be missing and are being read back; absent if none are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread_from_ms: Option<i64>,
    /// Chats whose history from before the bot joined is still to be read.
    #[serde(default)]
    pub backfills: u64,
    /// Chats in which something is missing, as their timeline says.
    #[serde(default)]
    pub history_gaps: u64,
    /// One of these chats, and why something is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_gap: Option<String>,
    /// Warnings for the operator that were found at start.
    pub warnings: Vec<String>,
}

/// Counts of runs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RunCounts {
    /// Waiting to be claimed.
    pub queued: u64,
    /// Being worked on.
    pub leased: u64,
    /// Given up.
    pub dead: u64,
    /// Waiting for a person, after a restore.
    #[serde(default)]
    pub held: u64,
    /// Waiting for people to decide about their tool calls.
    #[serde(default)]
    pub waiting: u64,
    /// Tool calls of these that wait for a person.
    #[serde(default)]
    pub approvals_open: u64,
    /// Questions of these that wait for a person.
    #[serde(default)]
    pub questions_open: u64,
    /// Age of the oldest waiting run, in milliseconds.
    pub oldest_waiting_ms: Option<i64>,
}

/// Counts of posts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PostCounts {
    /// To be sent or being sent.
    pub pending: u64,
    /// Posts of unknown outcome that are being looked for.
    pub unknown: u64,
    /// Waiting for a person.
    pub held: u64,
    /// Held posts of which it stays unknown whether they arrived, though the platform was asked.
    #[serde(default)]
    pub undecided: u64,
    /// Posts that were sent again so far although it was unknown whether they had arrived.
    #[serde(default)]
    pub resent_undecided: u64,
    /// Never to be sent.
    pub dead: u64,
    /// Age of the oldest waiting post, in milliseconds.
    pub oldest_waiting_ms: Option<i64>,
}

/// The store.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StoreView {
    /// Turns.
    pub turns: u64,
    /// Conversations.
    pub conversations: u64,
    /// Bytes of the database.
    pub bytes: u64,
    /// What its disk has left, in bytes; absent where it can't be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_free_bytes: Option<u64>,
    /// When a backup was last made, in milliseconds since the Unix epoch; absent if none is known of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup_last_ms: Option<i64>,
    /// Rows of queues that can't be decoded and are set aside.
    #[serde(default)]
    pub quarantined: u64,
    /// Events that did not translate and are kept raw.
    pub raw_stubs: u64,
    /// Turns that retention let go so far.
    #[serde(default)]
    pub expired_turns: u64,
    /// Raw events that retention let go.
    #[serde(default)]
    pub expired_raw: u64,
    /// Runs whose details retention let go.
    #[serde(default)]
    pub expired_runs: u64,
    /// When retention last let something go, in milliseconds since the Unix epoch.
    #[serde(default)]
    pub expired_last_ms: Option<i64>,
    /// Erasures that are not finished.
    #[serde(default)]
    pub erasures_open: u64,
    /// What the daemon's store has done since the start; absent without a daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<StoreWorkView>,
}

/// What a store has done since it was opened.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct StoreWorkView {
    /// Reads, each on another thread.
    pub reads: u64,
    /// Writes, each on the writer's thread.
    pub writes: u64,
    /// Statements of both.
    pub statements: u64,
    /// Rows that were inserted, changed or deleted.
    pub rows: u64,
    /// Transactions that were committed.
    pub commits: u64,
    /// Commits that waited for the disk.
    pub syncs: u64,
}

impl From<StoreWork> for StoreWorkView {
    fn from(work: StoreWork) -> Self {
        Self {
            reads: work.reads,
            writes: work.writes,
            statements: work.statements,
            rows: work.rows,
            commits: work.commits,
            syncs: work.syncs,
        }
    }
}

/// Counts of attached files.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FileCountsView {
    /// Contents stored, the same bytes once.
    pub stored: u64,
    /// Their bytes.
    pub bytes: u64,
    /// To be fetched.
    pub waiting: u64,
    /// Voice notes to be transcribed.
    pub to_be_heard: u64,
    /// Fetched since the start.
    pub fetched: u64,
    /// Only named, since the start: not wanted, too large, refused or gone.
    pub refused: u64,
    /// Given up after many attempts, since the start.
    pub failed: u64,
    /// Bytes of files that made room for newer ones, since the start.
    #[serde(default)]
    pub evicted_bytes: u64,
    /// Voice notes transcribed since the start.
    pub heard: u64,
    /// Voice notes since the start that will never be transcribed.
    pub unheard: u64,
    /// Why the last one was given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_reason: Option<String>,
}

/// Counts of summaries.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SummaryCountsView {
    /// In use.
    pub current: u64,
    /// To be made again: a turn was edited or came late.
    pub stale: u64,
    /// Void: a turn was deleted.
    pub void: u64,
    /// Made since the start.
    pub made: u64,
    /// Attempts that failed since the start; after each, the summary before it stays in use.
    pub failed: u64,
    /// Asked for once more since the start, because the first answer lost more details than it kept.
    #[serde(default)]
    pub asked_again: u64,
}

/// What was learnt from settled conversations since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryCountsView {
    /// Entries that were written.
    pub written: u64,
    /// Entries of models that were refused.
    pub refused: u64,
    /// Readings of which nothing was learnt: the model's answer could not be read.
    pub unreadable: u64,
}

/// What came in since the start.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct IntakeCounts {
    /// New turns.
    pub captured: u64,
    /// Messages that were known already: delivered or read again.
    pub duplicates: u64,
    /// Runs queued.
    pub runs_queued: u64,
    /// Messages outside access.
    pub not_admitted: u64,
    /// Triggers too old to answer.
    pub too_old: u64,
    /// Triggers not answered because a limit was met.
    pub limited: u64,
    /// Events that did not translate.
    pub untranslated: u64,
    /// Events without room content.
    pub ignored: u64,
    /// Envelopes that could not be stored.
    pub refused: u64,
}

/// Vectors of what is said.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EmbeddingsView {
    /// The model, as configured.
    pub model: String,
    /// Turns with a vector.
    pub embedded: u64,
    /// The most turns that may still need one.
    pub remaining_max: u64,
    /// Tokens spent today (UTC).
    pub tokens_today: u64,
}

/// How long something took since the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimingView {
    /// What: `model` (an attempt at a model) or `answer` (from a question to the first part of its answer in the room,
    /// what people took to decide about calls included).
    pub what: String,
    /// The model, or the channel.
    pub name: String,
    /// What came of it: `answered` or `failed`, or `posted`.
    pub outcome: String,
    /// The distribution of its durations.
    pub took: HistogramView,
}

/// A distribution of durations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistogramView {
    /// The upper bounds of the buckets, rising, in milliseconds; the last bucket has none.
    pub bounds_ms: Vec<u64>,
    /// The count of each bucket alone; one more than there are bounds.
    pub counts: Vec<u64>,
    /// The sum of all durations, in milliseconds.
    pub sum_ms: u64,
}

impl From<&Histogram> for HistogramView {
    fn from(histogram: &Histogram) -> Self {
        Self {
            bounds_ms: histogram.bounds_ms.to_vec(),
            counts: histogram.counts.clone(),
            sum_ms: histogram.sum_ms,
        }
    }
}

/// How often a hook said something since the start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HookCountView {
    /// The hook.
    pub hook: String,
    /// What: `pass`, `deny`, `ask`, `narrow`, `redact`, `note` or `failed`.
    pub verdict: String,
    /// How often.
    pub times: u64,
}
