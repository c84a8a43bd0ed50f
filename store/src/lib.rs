//! The durable store. Owns SQL, rows and transactions; nothing outside sees them.
//!
//! One writer thread commits many pending writes together; a pool of read-only connections serves
//! snapshots. Time comes in as an argument. Reading order: `contract`, `error`, then `open` (the
//! handle), `writer`, `reader`, `schema`, `upgrade`, then one file per noun.

mod accounts;
mod album;
mod backup;
mod capacity;
mod capture;
pub mod commands;
mod confirm;
mod content_copies;
mod contents;
mod context_limits;
pub mod contract;
mod conversations;
mod damage;
mod deletes;
mod derived;
mod edits;
mod ending;
pub mod erasure;
mod error;
mod expiry;
mod export;
mod facts;
mod faults;
mod files;
mod fold;
mod follow_ups;
mod fresh_starts;
#[doc(hidden)]
pub mod fuzzing;
mod history;
mod import;
mod learn;
mod lock;
mod made_from;
mod mentionable;
mod merge;
mod messages;
mod model_rests;
mod names;
mod notices;
mod open;
pub mod origins;
mod outbox;
mod outbox_rows;
mod outcome;
mod overlap;
mod overview;
mod pages;
mod parking;
mod participants;
mod placeholder;
mod places;
mod probing;
pub mod quarantine;
mod queue;
mod raw;
mod reach;
mod reactions;
mod reader;
mod reanswer;
mod reply;
mod restore;
mod restore_traces;
mod rows;
mod run_events;
mod run_rows;
mod runs;
#[cfg(test)]
mod scene;
mod schema;
mod search;
mod search_terms;
mod search_text;
mod sent_prompts;
pub mod spending;
mod sql;
mod standing;
mod status;
mod steps;
mod summaries;
#[cfg(test)]
mod tests;
mod token_counts;
mod token_ratios;
mod triggers;
mod turns;
mod upgrade;
mod watch;
mod writer;

use std::sync::Arc;

pub use accounts::ChannelBinding;
pub use backup::{BackupOptions, BackupReport, CopiedFiles, CopyProgress, backup};
pub use commands::INQUIRY_AGE_MS_MAX;
pub use content_copies::copy_stored_file;
pub use contents::ContentWriter;
pub use damage::{CheckReport, check_database, diagnose};
pub use error::StoreError;
pub use expiry::{Expired, ExpiryBounds, KeptTurns};
pub use faults::advice_on;
pub use open::{OpenReport, StoreOptions};
pub use restore::{RestoreReport, restore};
pub use search::{MATCHES_MAX, THREADS_MAX};
pub use watch::{OpenPhase, OpenWatch};
pub use writer::inline::{Gate, Moment};

/// The store. Cloning shares it.
#[derive(Clone)]
pub struct Store {
    inner: Arc<open::Inner>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}
