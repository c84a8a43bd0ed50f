//! What `vocative skills` takes.

use clap::Subcommand;

use super::TableFormat;

/// `vocative skills`.
#[derive(Debug, Subcommand)]
pub enum SkillsCommand {
    /// List the skills of `skills.folders`, and which of them wait for approval.
    List {
        /// How the list looks.
        #[arg(long, value_name = "FORMAT", default_value = "table")]
        format: TableFormat,
    },
    /// Show a skill with all that a model may be told of it.
    Show {
        /// Its name.
        name: String,
        /// How it looks.
        #[arg(long, value_name = "FORMAT", default_value = "table")]
        format: TableFormat,
    },
    /// Approve a skill as it is: from then on agents have it that name it, until a file of it changes.
    Approve {
        /// Its name.
        name: String,
        /// The digest that `vocative skills show` prints; refused if the skill is another one meanwhile.
        #[arg(long)]
        digest: Option<String>,
        /// Your name: it is recorded.
        #[arg(long, value_name = "NAME")]
        by: String,
    },
    /// Take an approval back: no agent is told of the skill any more, and none reads it.
    Revoke {
        /// Its name.
        name: String,
        /// Your name: it is logged.
        #[arg(long, value_name = "NAME")]
        by: String,
    },
}
