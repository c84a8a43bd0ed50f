//! What `vocative memory` takes.

use std::num::NonZeroUsize;

use clap::{Args, Subcommand};

use super::TableFormat;

/// `vocative memory`.
#[derive(Debug, Subcommand)]
pub enum MemorySubcommand {
    /// List entries of all rooms, the newest first.
    List(ListMemoryArgs),
    /// Show all of one, with the messages that say it.
    Show {
        /// Its number, from the list.
        id: i64,
        /// How it looks.
        #[arg(long, value_name = "FORMAT", default_value = "table")]
        format: TableFormat,
    },
    /// Have one say something else; agents are told that the words are an operator's.
    Edit {
        /// Its number, from the list.
        id: i64,
        /// What it says then.
        text: String,
    },
    /// Take one away for good.
    Forget {
        /// Its number, from the list.
        id: i64,
    },
    /// Let one appear in the account's other rooms: only what somebody said of themselves, or of the room, in a public one.
    Share {
        /// Its number, from the list.
        id: i64,
    },
    /// Have one appear in its own room only.
    Unshare {
        /// Its number, from the list.
        id: i64,
    },
}

/// `vocative memory list`.
#[derive(Debug, Args)]
pub struct ListMemoryArgs {
    /// Only of this channel.
    #[arg(long, value_name = "NAME")]
    pub channel: Option<String>,
    /// Only of this agent.
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Only what this person said and what is about them, by the platform's id: U012AB3CD.
    #[arg(long, value_name = "ID")]
    pub person: Option<String>,
    /// What newer ones replaced, too.
    #[arg(long)]
    pub all: bool,
    /// Only those with a lower number, for the next page.
    #[arg(long, value_name = "ID")]
    pub before: Option<i64>,
    /// The most of them (500 at most).
    #[arg(long, value_name = "N", default_value = "100")]
    pub limit: NonZeroUsize,
    /// How the list looks.
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: TableFormat,
}
