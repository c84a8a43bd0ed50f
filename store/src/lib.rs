//! The durable store. Owns SQL, rows and transactions; nothing outside sees them.
//!
//! One writer thread commits many pending writes together; a pool of read-only connections serves
//! snapshots. Time comes in as an argument.
//!
//! Who holds it may write only what its type says ([`capability`]).
//!
//! Reading order: `contract` (what is asked and answered), `engine` (the database; `sql` is how the rest speaks to
//! it), `registry` (what becomes of each table's rows), `rows` (what the tables hold, a file per family), `acts`
//! (what becomes true in one transaction, a file per thing), `views` (what is read).

mod acts;
pub mod capability;
pub mod contract;
mod engine;
#[doc(hidden)]
pub mod fuzzing;
mod new_id;
mod registry;
mod rows;
#[cfg(test)]
mod scene;
#[cfg(test)]
mod tests;
mod views;

use std::marker::PhantomData;
use std::sync::Arc;

pub use acts::cleaning::PageWalk;
pub use acts::commands;
pub use acts::erasure;
pub use acts::expiry::{Expired, ExpiryBounds, KeptTurns};
pub use capability::{
    Capability, Capturing, Delivering, Everything, Folding, Indexing, Learning, Pinning,
    ReadingBack, Remembering, Replying, Working,
};
pub use engine::backup::{BackupOptions, BackupReport, CopiedFiles, CopyProgress, backup};
pub use engine::content_copies::copy_stored_file;
pub use engine::damage::{CheckReport, check_database, diagnose};
pub use engine::error::StoreError;
pub use engine::faults::advice_on;
pub use engine::open::{OpenReport, StoreOptions};
pub use engine::restore::{RestoreReport, restore};
pub use engine::watch::{OpenPhase, OpenWatch};
pub use engine::work::StoreWork;
pub use engine::writer::inline::{Gate, Moment};
pub use new_id::NewId;
pub use rows::accounts::ChannelBinding;
pub use rows::audit;
pub use rows::contents::ContentWriter;
pub use rows::costs;
pub use rows::origins;
pub use rows::quarantine;
pub use rows::spending;
pub use rows::tool_days::ToolCounts;
pub use rows::vectors;
pub use views::knowledge::COLLECTIONS_MAX;
pub use views::search::{MATCHES_MAX, THREADS_MAX, WORDINGS_MAX};

/// The store as its holder may write it, by the [`Capability`]. Cloning shares it.
pub struct Store<C = Everything> {
    reader: Reader,
    may: PhantomData<fn() -> C>,
}

/// The store for a holder that only reads. Cloning shares it.
#[derive(Clone)]
pub struct Reader {
    inner: Arc<engine::open::Inner>,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").finish_non_exhaustive()
    }
}
