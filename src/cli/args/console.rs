//! What `vocative console` takes.

use clap::Subcommand;

use super::TableFormat;

/// What to do about the console.
#[derive(Debug, Subcommand)]
pub enum ConsoleCommand {
    /// Print a link that lets one person in, once, within five minutes.
    Link {
        /// Their name in `[console.people.NAME]`, which says what they may do.
        #[arg(long = "as", value_name = "NAME")]
        name: String,
        /// How to print it.
        #[arg(long, value_name = "FORMAT", default_value = "table")]
        format: TableFormat,
    },
    /// List logins, looks into direct chats and actions in the console, the newest first; also without a daemon.
    Audit {
        /// The most rows.
        #[arg(long, value_name = "N", default_value_t = 100)]
        limit: usize,
        /// Only rows before the one with this number.
        #[arg(long, value_name = "NUMBER")]
        before: Option<i64>,
        /// How the list looks.
        #[arg(long, value_name = "FORMAT", default_value = "table")]
        format: TableFormat,
    },
}
