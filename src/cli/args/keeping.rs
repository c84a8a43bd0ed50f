//! What `vocative import`, `backup`, `restore` and `erase` take.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use super::TableFormat;

/// What is to be erased.
#[derive(Debug, Args)]
pub struct EraseArgs {
    /// Everything of this person: id, @username or full name, with CHANNEL/ before it where needed
    #[arg(
        long,
        value_name = "PERSON",
        required_unless_present = "conversation",
        conflicts_with = "conversation"
    )]
    pub person: Option<String>,
    /// This conversation with its threads: the start of its id, or CHANNEL/CHAT
    #[arg(long, value_name = "CONVERSATION")]
    pub conversation: Option<String>,
    /// Afterwards search the files in the data directory for what was erased; exit 1 if it is there
    #[arg(long)]
    pub verify: bool,
    /// Only say what would go
    #[arg(long, conflicts_with_all = ["verify", "yes"])]
    pub dry_run: bool,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// How to print what was done
    #[arg(long, value_enum, default_value_t = TableFormat::Table, value_name = "FORMAT")]
    pub format: TableFormat,
}

/// What `vocative import` takes.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// The configured channel whose rooms these are
    #[arg(long, value_name = "NAME")]
    pub channel: String,
    /// The export: a zip, a folder, or result.json
    pub path: PathBuf,
    /// Only this chat, by id or name; may be given several times
    #[arg(long, value_name = "CHAT")]
    pub chat: Vec<String>,
    /// Only say what would be imported
    #[arg(long)]
    pub dry_run: bool,
}

/// What `vocative backup` takes.
#[derive(Debug, Args)]
pub struct BackupArgs {
    /// The file to make; in a folder the backup is named after the time
    #[arg(value_name = "FILE|FOLDER")]
    pub target: PathBuf,
    /// Replace a file that is there
    #[arg(long)]
    pub replace: bool,
    /// In a folder: how many backups named by this command to keep, the newest
    #[arg(long, value_name = "N")]
    pub keep: Option<NonZeroUsize>,
    /// The most MiB to copy in a second; 0 = as fast as the disk goes
    #[arg(long, value_name = "MIB", default_value_t = 64)]
    pub rate: u64,
    /// Leave out the bytes of attached files; a restored backup fetches them again where it can
    #[arg(long)]
    pub without_files: bool,
}

/// What `vocative restore` takes.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// The backup
    pub backup: PathBuf,
}
