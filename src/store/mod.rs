//! The durable store. Owns SQL, rows and transactions; nothing outside sees them.
//!
//! One writer thread commits many pending writes together; a pool of read-only connections serves
//! snapshots. Time comes in as an argument. Reading order: `contract`, then this handle, then
//! `writer`, `schema`, one file per noun.

pub mod contract;

use std::path::{Path, PathBuf};

use contract::*;

use crate::domain::history::{History, HistoryQuery};
use crate::domain::ids::*;
use crate::domain::outbox::{ClaimedEntry, OutboxEntry};
use crate::domain::place::Conversation;
use crate::domain::run::{ClaimedRun, Run, Usage};
use crate::domain::turn::Turn;

/// Where the database is and how it is opened.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The database file; `None` = a private database in memory.
    pub path: Option<PathBuf>,
    /// Read-only connections for snapshots.
    pub readers: usize,
    /// Page cache per connection, in KiB.
    pub page_cache_kib: u32,
}

/// What opening did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenReport {
    /// One sentence per migration applied, with the copy it kept.
    pub migrations: Vec<String>,
    /// Leases of a predecessor that were taken back.
    pub leases_taken_back: u64,
}

/// Why the store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process has the database open for writing.
    #[error("another daemon has {path} open; stop it, or use its socket", path = path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// The database was written by a newer version.
    #[error(
        "the database has schema {found}, this build knows up to {known}; install the newer version or restore an older copy"
    )]
    Newer {
        /// Its version.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// The database can't be opened or migrated.
    #[error("can't open the database {path}: {what}", path = path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What failed.
        what: String,
    },
    /// Storage refuses for now (disk full, locked, I/O): nothing was written; try again.
    #[error("storage refuses: {what}")]
    Unavailable {
        /// What it says.
        what: String,
    },
    /// What was asked for does not exist.
    #[error("{what} does not exist")]
    NotFound {
        /// What.
        what: String,
    },
    /// The writer has stopped.
    #[error("the store is closed")]
    Closed,
}

/// The store. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Store {}

#[allow(
    unused_variables,
    clippy::unused_async,
    missing_docs,
    clippy::missing_errors_doc
)]
impl Store {
    /// Opens for writing: takes the lock, migrates, takes back a predecessor's leases (runs go back
    /// to queued; outbox entries whose send had started become unknown).
    pub fn open(options: &StoreOptions, now_ms: i64) -> Result<(Self, OpenReport), StoreError> {
        todo!()
    }
    /// Opens read-only, without the lock (CLI reading commands).
    pub fn open_read_only(path: &Path) -> Result<Self, StoreError> {
        todo!()
    }
    /// Commits what is pending, checkpoints, stops the writer, releases the lock.
    pub async fn close(&self) -> Result<(), StoreError> {
        todo!()
    }

    // Accounts.
    /// Finds or makes the account, binds the channel to it (renaming a channel changes nothing stored), lifts an account hold.
    pub async fn bind_account(
        &self,
        binding: AccountBinding,
        now_ms: i64,
    ) -> Result<AccountId, StoreError> {
        todo!()
    }

    // Capture. One transaction each; many callers' writes share one commit.
    pub async fn capture_message(&self, message: NewMessage) -> Result<Captured, StoreError> {
        todo!()
    }
    pub async fn capture_delete(
        &self,
        account: AccountId,
        chat: &str,
        message_id: &str,
        now_ms: i64,
    ) -> Result<Deleted, StoreError> {
        todo!()
    }
    /// Our own post came back: if its marker is an entry of unknown outcome (or leased), it is sent.
    pub async fn confirm_own_post(
        &self,
        account: AccountId,
        chat: &str,
        message_id: &str,
        marker: Option<&str>,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        todo!()
    }
    /// Two chat ids are one chat: merges in one transaction (also when the new one has turns already).
    pub async fn merge_chats(
        &self,
        account: AccountId,
        from_chat: &str,
        to_chat: &str,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        todo!()
    }
    /// Learns a chat's title, kind, or a topic's name.
    pub async fn learn_place(
        &self,
        account: AccountId,
        place: vocative_channels::envelope::Place,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        todo!()
    }
    /// The bot joined or left; joining lifts a parked chat.
    pub async fn record_membership(
        &self,
        account: AccountId,
        place: vocative_channels::envelope::Place,
        is_present: bool,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        todo!()
    }
    pub async fn learn_person(
        &self,
        account: AccountId,
        sender: vocative_channels::envelope::Sender,
    ) -> Result<(), StoreError> {
        todo!()
    }
    /// Participants of an account without a display name, and chats without a title: at most `limit` ids each, most recently active first.
    pub async fn unnamed(
        &self,
        account: AccountId,
        limit: usize,
    ) -> Result<(Vec<String>, Vec<String>), StoreError> {
        todo!()
    }
    pub async fn keep_raw(&self, stub: RawStub) -> Result<(), StoreError> {
        todo!()
    }
    /// Idempotent by (account, kind, id). Returns whether it was new.
    pub async fn keep_non_message(&self, event: NonMessage) -> Result<bool, StoreError> {
        todo!()
    }

    // Runs.
    /// Leases the oldest run that may start, of a conversation with no leased run; rooms take turns. Expired leases count as queued.
    pub async fn claim_run(&self, request: ClaimRequest) -> Result<Option<ClaimedRun>, StoreError> {
        todo!()
    }
    /// When the next queued run may start, if one waits for a time.
    pub async fn next_run_due_ms(&self) -> Result<Option<i64>, StoreError> {
        todo!()
    }
    pub async fn extend_run(
        &self,
        run: RunId,
        token: LeaseToken,
        until_ms: i64,
    ) -> Result<RunLease, StoreError> {
        todo!()
    }
    pub async fn requeue_run(
        &self,
        run: RunId,
        token: LeaseToken,
        not_before_ms: i64,
        reason: &str,
        now_ms: i64,
    ) -> Result<LeaseOutcome, StoreError> {
        todo!()
    }
    /// Ends a run without a word in the room.
    pub async fn cancel_run(
        &self,
        run: RunId,
        reason: &str,
        now_ms: i64,
    ) -> Result<bool, StoreError> {
        todo!()
    }
    pub async fn commit_reply(&self, reply: ReplyCommit) -> Result<CommittedReply, StoreError> {
        todo!()
    }
    /// Records a model call of a run: the provider's own message, opaque, and its usage.
    pub async fn record_step(
        &self,
        run: RunId,
        token: LeaseToken,
        number: u32,
        message: String,
        usage: Usage,
        now_ms: i64,
    ) -> Result<LeaseOutcome, StoreError> {
        todo!()
    }
    pub async fn reply_route(&self, run: RunId) -> Result<ReplyRoute, StoreError> {
        todo!()
    }
    pub async fn runs_of_missing_agents(
        &self,
        known: Vec<AgentName>,
    ) -> Result<Vec<Run>, StoreError> {
        todo!()
    }

    // Outbox.
    /// Leases the next entry per chat, in order, of accounts that are not held; a chat with a leased, pending or unknown older entry waits. Expired leases become unknown.
    pub async fn claim_posts(
        &self,
        request: ClaimRequest,
        limit: usize,
    ) -> Result<Vec<ClaimedEntry>, StoreError> {
        todo!()
    }
    pub async fn next_post_due_ms(&self) -> Result<Option<i64>, StoreError> {
        todo!()
    }
    /// Bytes are about to leave: after this a crash leaves the outcome unknown.
    pub async fn mark_send_started(
        &self,
        entry: OutboxId,
        token: LeaseToken,
        now_ms: i64,
    ) -> Result<LeaseOutcome, StoreError> {
        todo!()
    }
    pub async fn update_post(
        &self,
        entry: OutboxId,
        token: LeaseToken,
        update: OutboxUpdate,
        now_ms: i64,
    ) -> Result<LeaseOutcome, StoreError> {
        todo!()
    }
    /// A person decides about a held or dead entry: `send` again, or drop.
    pub async fn release_post(
        &self,
        entry: OutboxId,
        send: bool,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        todo!()
    }
    pub async fn stuck_posts(&self, limit: usize) -> Result<Vec<OutboxEntry>, StoreError> {
        todo!()
    }

    // Reads.
    pub async fn history(&self, query: HistoryQuery) -> Result<History, StoreError> {
        todo!()
    }
    pub async fn conversations(
        &self,
        filter: ConversationFilter,
    ) -> Result<Vec<Conversation>, StoreError> {
        todo!()
    }
    /// By id prefix, or `channel/#title`, `channel/platform-id`; NotFound says what is near.
    pub async fn find_conversation(&self, name: &str) -> Result<Conversation, StoreError> {
        todo!()
    }
    pub async fn conversation(&self, id: ConversationId) -> Result<Conversation, StoreError> {
        todo!()
    }
    /// Ascending by position.
    pub async fn turns(
        &self,
        conversation: ConversationId,
        filter: TurnFilter,
    ) -> Result<Vec<Turn>, StoreError> {
        todo!()
    }
    pub async fn turn_details(
        &self,
        conversation: ConversationId,
        limit: usize,
    ) -> Result<Vec<TurnDetail>, StoreError> {
        todo!()
    }
    pub async fn search(&self, query: SearchQuery) -> Result<Vec<Turn>, StoreError> {
        todo!()
    }
    pub async fn run(&self, id: RunId) -> Result<Run, StoreError> {
        todo!()
    }
    /// Runs of a conversation, newest first.
    pub async fn runs(
        &self,
        conversation: ConversationId,
        limit: usize,
    ) -> Result<Vec<Run>, StoreError> {
        todo!()
    }
    pub async fn status(&self, now_ms: i64) -> Result<StoreStatus, StoreError> {
        todo!()
    }
    /// Age in ms of the oldest write waiting for the writer: the watchdog's sign of life.
    pub fn writer_lag_ms(&self) -> u64 {
        todo!()
    }
    /// Expires raw envelopes kept for debugging.
    pub async fn expire_raw(&self, older_than_ms: i64) -> Result<u64, StoreError> {
        todo!()
    }
}
