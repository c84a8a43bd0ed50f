//! What `vocative pairing` takes.

use clap::Subcommand;

use super::TableFormat;

/// `vocative pairing`.
#[derive(Debug, Subcommand)]
pub enum PairingCommand {
    /// List who was told a code and waits, and who was let in.
    List {
        /// How the list looks.
        #[arg(long, value_name = "FORMAT", default_value = "table")]
        format: TableFormat,
    },
    /// Let somebody in who gave you their code: they are answered in their direct chat from then on.
    Approve {
        /// The channel that told them the code.
        channel: String,
        /// The code, as in K7QM-2F9X.
        code: String,
        /// Your name: it is recorded.
        #[arg(long, value_name = "NAME")]
        by: String,
    },
    /// Let somebody in no more.
    Revoke {
        /// The person, as CHANNEL/ID.
        person: String,
        /// Your name: it is logged.
        #[arg(long, value_name = "NAME")]
        by: String,
    },
}
