//! The store at a glance.

use crate::contract::{CollectionStatus, JobCount};
use vocative_contract::identity::Platform;

use vocative_core::ids::{AccountId, AgentName};
use vocative_core::model_rest::ModelRest;
use vocative_core::run::Usage;
use vocative_core::summary::SummaryCounts;
use vocative_core::tokens::RatioStatus;

/// Numbers for `status` and metrics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoreStatus {
    /// Jobs of each kind, by how they stand.
    pub jobs: Vec<JobCount>,
    /// What came of tool calls today (UTC), by tool.
    pub tools: Vec<ToolCounts>,
    /// Collections of documents.
    pub knowledge: Vec<CollectionStatus>,
    /// How the embedding of turns stands; `None` if no model was ever named.
    pub embeddings: Option<EmbeddingStatus>,
    /// What the store has done since it was opened.
    pub work: StoreWork,
    /// Turns.
    pub turns: u64,
    /// Conversations.
    pub conversations: u64,
    /// Queued runs.
    pub runs_queued: u64,
    /// Leased runs.
    pub runs_leased: u64,
    /// Runs given up.
    pub runs_dead: u64,
    /// Runs given up in the last 24 hours.
    pub runs_dead_last_day: u64,
    /// Runs that wait for a person.
    pub runs_held: u64,
    /// Runs that wait for people to decide about their tool calls.
    pub runs_waiting: u64,
    /// Tool calls that wait for a person.
    pub approvals_open: u64,
    /// Questions that wait for a person.
    pub questions_open: u64,
    /// Age of the oldest queued run that may start, in milliseconds.
    pub oldest_waiting_run_ms: Option<i64>,
    /// Pending and leased posts.
    pub posts_pending: u64,
    /// Posts of unknown outcome, being looked for.
    pub posts_unknown: u64,
    /// Posts that wait for a person.
    pub posts_held: u64,
    /// Held posts of which it stays unknown whether they arrived, though the platform was asked.
    pub posts_undecided: u64,
    /// Posts that were sent again so far although it was unknown whether they had arrived.
    pub posts_resent_undecided: u64,
    /// Posts that will never be sent.
    pub posts_dead: u64,
    /// Age of the oldest pending post that may be sent, in milliseconds.
    pub oldest_waiting_post_ms: Option<i64>,
    /// Rows of queues that can't be decoded and are set aside.
    pub quarantined: u64,
    /// Raw stubs of events that did not translate.
    pub raw_stubs: u64,
    /// Summaries.
    pub summaries: SummaryCounts,
    /// Models that are not asked for now.
    pub model_rests: Vec<ModelRest>,
    /// Queued runs of each agent.
    pub queued_by_agent: Vec<(AgentName, u64)>,
    /// What was learnt about counting tokens, by model.
    pub token_ratios: Vec<RatioStatus>,
    /// What retention let go so far.
    pub expired: Expired,
    /// When it last let something go, in milliseconds since the Unix epoch.
    pub expired_last_ms: Option<i64>,
    /// Erasures that are not finished.
    pub erasures_open: u64,
    /// Copies of the database made before the newest request to forget what a person said.
    pub copies_to_remove: Vec<std::path::PathBuf>,
    /// Attached files.
    pub files: FileCounts,
    /// Database bytes.
    pub database_bytes: u64,
    /// What the database's disk has left for this process, in bytes; `None` where it can't be asked.
    pub disk_free_bytes: Option<u64>,
    /// When a backup was last made and verified, in milliseconds since the Unix epoch; `None` = none is known.
    pub backup_last_ms: Option<i64>,
    /// Per account.
    pub accounts: Vec<AccountStatus>,
}

/// Counts of attached files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileCounts {
    /// Contents stored, each once.
    pub stored: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files to be fetched.
    pub waiting: u64,
    /// Voice notes to be transcribed.
    pub to_be_heard: u64,
}

/// Numbers of one account.
#[derive(Clone, Debug, PartialEq)]
pub struct AccountStatus {
    /// The account.
    pub account: AccountId,
    /// The channel bound to it.
    pub channel: String,
    /// The platform.
    pub platform: Platform,
    /// What people call it.
    pub name: String,
    /// When a message was last captured, in milliseconds since the Unix epoch.
    pub last_captured_ms: Option<i64>,
    /// Tokens used since the start of the UTC day.
    pub tokens_today: u64,
    /// Of these, those of answers and summaries.
    pub usage_today: Usage,
    /// What they cost, in millionths of the currency of the prices.
    pub cost_micros_today: u64,
    /// Why the account is held, if it is.
    pub held: Option<String>,
    /// Chats parked.
    pub parked_chats: u64,
    /// Messages since then may be missing and are being read, in milliseconds since the Unix epoch.
    pub unread_from_ms: Option<i64>,
    /// Chats of which what was said before the bot joined is still to be read.
    pub backfills: u64,
    /// Chats in which something is missing.
    pub history_gaps: u64,
    /// One of them, and why.
    pub history_gap: Option<String>,
}

/// How much retention deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expired {
    /// Turns.
    pub text: u64,
    /// Raw events, commands and texts before an edit.
    pub raw: u64,
    /// Runs.
    pub runs: u64,
}

impl Expired {
    /// Whether nothing was deleted.
    #[must_use]
    pub fn is_nothing(self) -> bool {
        self == Self::default()
    }

    /// Whether one class reached the most that may be deleted at once.
    #[must_use]
    pub fn is_whole_share(self, share: u64) -> bool {
        self.text.max(self.raw).max(self.runs) >= share
    }
}

/// What a store has done since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreWork {
    /// Reads. Each is handed to another thread and back.
    pub reads: u64,
    /// Writes. Each is handed to the writer's thread and back.
    pub writes: u64,
    /// Statements of reads and writes.
    pub statements: u64,
    /// Rows that were inserted, changed or deleted.
    pub rows: u64,
    /// Transactions that were committed.
    pub commits: u64,
    /// Commits of which a write waited for the disk.
    pub syncs: u64,
}

/// What came of the calls of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCounts {
    /// The tool.
    pub tool: String,
    /// Calls that were begun, each once.
    pub begun: u64,
    /// Calls that gave a result.
    pub done: u64,
    /// Calls that gave an error.
    pub failed: u64,
    /// Calls of which it is not known whether they acted.
    pub unknown: u64,
    /// Calls that were not made.
    pub denied: u64,
}

/// How the embedding of turns stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbeddingStatus {
    /// The model, as configured.
    pub model: String,
    /// Turns with a vector.
    pub embedded: u64,
    /// The most turns that may still need one.
    pub remaining_max: u64,
    /// Tokens spent on the UTC day.
    pub tokens_today: u64,
}
