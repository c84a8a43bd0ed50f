//! Messages of an export.

use vocative_contract::envelope::Sender;
use vocative_contract::identity::Platform;

use super::capture::NewMessage;
use vocative_core::ids::AccountId;

/// An account that history can be imported into: what was learnt when its channel last started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportAccount {
    /// The account.
    pub account: AccountId,
    /// Which platform.
    pub platform: Platform,
    /// The platform's account id.
    pub platform_id: String,
    /// What people call the account.
    pub name: String,
    /// The bot's own user ids, its user id first; empty while no start has learnt them.
    pub own_ids: Vec<String>,
}

/// Messages of an export: one transaction.
pub struct ImportBatch {
    /// The account.
    pub account: AccountId,
    /// The messages, in the order of the export.
    pub messages: Vec<ImportMessage>,
    /// People who are mentioned: a name is noted where none is known.
    pub people: Vec<Sender>,
    /// How far the import is with this batch; written with it.
    pub progress: ImportProgress,
    /// The time, in milliseconds since the Unix epoch.
    pub now_ms: i64,
}

/// A message of an export.
pub struct ImportMessage {
    /// The message. Its judge is not asked: it is admitted, and starts no run.
    pub message: NewMessage,
    /// For a message whose id is numbered per user, not per chat: how many messages before it in the export have the
    /// same sender, second and text.
    pub own_box: Option<u32>,
    /// Whether this bot posted it.
    pub is_own: bool,
}

/// How far an import is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportProgress {
    /// What is imported: the same for the same files and choice of chats.
    pub fingerprint: String,
    /// Items of the export that were processed; a resumed import skips them.
    pub things: u64,
    /// Whether the import is finished; the next one starts over.
    pub is_finished: bool,
}

/// What became of the messages of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportCounts {
    /// New turns.
    pub imported: u64,
    /// Turns that got a newer text, by edits that the bot had missed.
    pub revised: u64,
    /// Known before.
    pub known: u64,
    /// Deleted or erased before: they do not come back.
    pub gone: u64,
    /// Posts of this bot that are stored already as its own answers.
    pub own: u64,
    /// Messages not older than the first live turn of a chat without shared ids that were found among its turns.
    pub overlap_found: u64,
    /// Such messages that were not found there.
    pub overlap_missing: u64,
    /// Another message is known under the same id.
    pub conflicts: u64,
}
