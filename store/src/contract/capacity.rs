//! What uses the space, and what a disk has left.

/// What the store takes up and how fast it grows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capacity {
    /// Turns in it.
    pub turns: u64,
    /// Turns captured within the seven days before, imports included.
    pub turns_last_week: u64,
    /// The database's size, without its write-ahead log.
    pub database_bytes: u64,
    /// The write-ahead log's size.
    pub log_bytes: u64,
    /// The size of the stored files that people attached.
    pub files_bytes: u64,
    /// What each table takes with its indexes, largest first; the full-text index is one.
    pub tables: Vec<TableSpace>,
    /// What the disk has left for this process's user; `None` where it can't be asked.
    pub free_bytes: Option<u64>,
    /// How long the disk takes to make 4 KiB durable, in microseconds, in ascending order; empty where
    /// nothing may be written beside the database.
    pub sync_us: Vec<u64>,
}

/// What one table takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSpace {
    /// Its name.
    pub name: String,
    /// Its bytes, with its indexes.
    pub bytes: u64,
}
