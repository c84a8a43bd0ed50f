//! What `vocative knowledge` takes.

use std::num::NonZeroUsize;

use clap::{Args, Subcommand};

use super::TableFormat;

/// `vocative knowledge`.
#[derive(Debug, Subcommand)]
pub enum KnowledgeCommand {
    /// List the collections, or the files of one: what is kept of each, or why nothing is.
    List {
        /// A collection.
        collection: Option<String>,
        /// How the list looks.
        #[arg(long, value_name = "FORMAT", default_value = "table")]
        format: TableFormat,
    },
    /// Search as agents do, in all collections or one.
    Search(SearchKnowledgeArgs),
    /// Have every file of the collections read again, changed or not; the daemon does it at once.
    Refresh {
        /// Only this collection.
        collection: Option<String>,
    },
}

/// `vocative knowledge search`.
#[derive(Debug, Args)]
pub struct SearchKnowledgeArgs {
    /// What to look for: "quotes" for a phrase, +word for one that must be there, a star for a beginning (deploy*).
    #[arg(required = true)]
    pub query: Vec<String>,
    /// Another wording of it, up to four times.
    #[arg(long = "or", value_name = "WORDS")]
    pub wordings: Vec<String>,
    /// Only in this collection.
    #[arg(long, value_name = "COLLECTION")]
    pub collection: Option<String>,
    /// The most pieces that are shown.
    #[arg(long, value_name = "N", default_value = "5")]
    pub limit: NonZeroUsize,
    /// How it looks.
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: TableFormat,
}
