//! The durable store. Owns SQL, rows and transactions; nothing outside sees them.
//!
//! One writer thread commits many pending writes together; a pool of read-only connections serves
//! snapshots. Time comes in as an argument.
//!
//! The type of a `Store` handle says what its holder may write ([`capability`]).
//!
//! Reading order, in which each layer uses only those before it: `contract` (what is asked and answered, as plain
//! types), `registry` (what becomes of each table's rows), `engine` (the database; `sql` is how the rest speaks to it),
//! `handle` (who holds the store, and the two ways in), `rows` (what the tables hold, a file per family), `views` (what
//! is read), `acts` (what becomes true in one transaction, a file per thing), `opening`.

mod acts;
pub mod capability;
pub mod contract;
mod engine;
#[doc(hidden)]
pub mod fuzzing;
mod handle;
mod new_id;
mod opening;
mod registry;
mod rows;
#[cfg(test)]
mod scene;
#[cfg(test)]
mod tests;
mod views;

pub use acts::cleaning::PageWalk;
pub use acts::commands;
pub use acts::erasure;
pub use acts::expiry::{ExpiryBounds, KeptTurns};
pub use acts::restoring::restore;
pub use capability::{
    Capability, Capturing, Delivering, Everything, Folding, Indexing, Learning, Pinning,
    ReadingBack, Remembering, Replying, Working,
};
pub use contract::{Expired, StoreWork, ToolCounts};
pub use engine::backup::{BackupOptions, BackupReport, CopiedFiles, CopyProgress, backup};
pub use engine::content_copies::copy_stored_file;
pub use engine::contents::ContentWriter;
pub use engine::damage::{CheckReport, check_database, diagnose};
pub use engine::error::StoreError;
pub use engine::faults::advice_on;
pub use engine::open::StoreOptions;
pub use engine::restore::RestoreReport;
pub use engine::watch::{OpenPhase, OpenWatch};
pub use engine::writer::inline::{AccessGate, Moment};
pub use handle::{Reader, Store};
pub use new_id::NewId;
pub use opening::OpenReport;
pub use rows::accounts::ChannelBinding;
pub use rows::audit;
pub use rows::costs;
pub use rows::origins;
pub use rows::quarantine;
pub use rows::spending;
pub use rows::vectors;
pub use views::knowledge::COLLECTIONS_MAX;
pub use views::search::{MATCHES_MAX, THREADS_MAX, WORDINGS_MAX};
