//! What `vocative state` takes.

use clap::{Args, Subcommand};

use super::TableFormat;

/// `vocative state`.
#[derive(Debug, Subcommand)]
pub enum StateCommand {
    /// Show the values, and what each may be.
    Show {
        /// Whose they are.
        #[command(flatten)]
        of: StateArgs,
        /// How they look.
        #[arg(long, value_name = "FORMAT", default_value = "table")]
        format: TableFormat,
    },
    /// Give some of them other values: all, or none if one does not fit.
    Set {
        /// Whose they are.
        #[command(flatten)]
        of: StateArgs,
        /// A name and its value as JSON; what is no JSON is a text: kind=refund, count=3, found='["A-1"]'
        #[arg(value_name = "NAME=VALUE", required = true)]
        values: Vec<String>,
        /// Only if they are still of this version, from `state show`.
        #[arg(long, value_name = "N")]
        version: Option<i64>,
    },
    /// Take values back to what they are before anything sets them.
    Clear {
        /// Whose they are.
        #[command(flatten)]
        of: StateArgs,
        /// Their names; none: all of them.
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// Only if they are still of this version, from `state show`.
        #[arg(long, value_name = "N")]
        version: Option<i64>,
    },
}

/// A network's values in a conversation.
#[derive(Debug, Args)]
pub struct StateArgs {
    /// The conversation: the start of its id, or CHANNEL/CHAT.
    #[arg(value_name = "CONVERSATION")]
    pub conversation: String,
    /// The network.
    #[arg(value_name = "NETWORK")]
    pub network: String,
}
