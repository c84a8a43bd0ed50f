//! What `vocative agents`, `queue`, `dead`, `quarantine`, `costs`, `approvals`, `runs`, `questions`, `jobs`, `held`,
//! `tools` and `mcp` take.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::TableFormat;
use crate::admin::view::CostsBy;

/// `vocative agents`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct AgentsArgs {
    /// What to do; not given: list them.
    #[command(subcommand)]
    pub command: Option<AgentsCommand>,
    /// How the list looks.
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: TableFormat,
}

/// What to do about an agent.
#[derive(Debug, Subcommand)]
pub enum AgentsCommand {
    /// List them, which `vocative agents` alone does, too.
    List(HeldListArgs),
    /// Have its model asked again at once, which is held or rests: by one question at first.
    Release {
        /// The name of the agent, or of its model.
        name: String,
    },
}

/// `vocative queue`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct QueueArgs {
    /// What to do; not given: list them.
    #[command(subcommand)]
    pub command: Option<QueueCommand>,
    /// How the list looks.
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: TableFormat,
}

/// What to do about a question that waits.
#[derive(Debug, Subcommand)]
pub enum QueueCommand {
    /// List them, which `vocative queue` alone does, too.
    List(HeldListArgs),
    /// End one, waiting or at work, without a word in the room.
    Cancel {
        /// Its id, from the list.
        id: String,
    },
}

/// What to do about what was given up.
#[derive(Debug, Subcommand)]
pub enum DeadCommand {
    /// List them: questions that were given up after their attempts, and posts that were refused for good.
    List(HeldListArgs),
    /// Show all of one.
    Show {
        /// Its id, from the list.
        id: String,
        /// How it looks.
        #[command(flatten)]
        args: HeldListArgs,
    },
    /// Have one tried again, with all its attempts; or all questions, of one agent or since a time.
    Retry(RetryArgs),
    /// Forget one: it is not tried again and no longer listed.
    Drop {
        /// Its id, from the list.
        id: String,
    },
}

/// What to do about stored rows that can't be decoded.
#[derive(Debug, Subcommand)]
pub enum QuarantineCommand {
    /// List them: of which queue, and what of them can't be decoded.
    List(HeldListArgs),
    /// Try one again, after it was mended.
    Release {
        /// Its id, from the list.
        id: String,
    },
    /// Drop one: it is not answered, not sent, not fetched.
    Drop {
        /// Its id, from the list.
        id: String,
    },
}

/// `vocative costs`.
#[derive(Debug, Args)]
pub struct CostsArgs {
    /// By what they are added up.
    #[arg(long, value_name = "WHAT", default_value = "day")]
    pub by: CostsBy,
    /// From when on: 2h, 30d, 2026-11-22, "2026-11-22 10:30" (UTC); the whole day of it counts.
    #[arg(long, value_name = "TIME", default_value = "30d")]
    pub since: String,
    /// How the list looks.
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: TableFormat,
}

/// `vocative approvals`.
#[derive(Debug, Subcommand)]
pub enum ApprovalsSubcommand {
    /// List the calls that wait, newest first.
    List {
        /// Those that were decided, too.
        #[arg(long)]
        all: bool,
        /// How the list looks.
        #[arg(long, value_name = "FORMAT", default_value = "table")]
        format: TableFormat,
    },
    /// Show all of one, as it will run.
    Show {
        /// Its id, from the list.
        id: String,
        /// How it looks.
        #[arg(long, value_name = "FORMAT", default_value = "table")]
        format: TableFormat,
    },
    /// Count what became of calls that people were asked about, by tool: allowed, forbidden, expired, cancelled.
    Report {
        /// Of those asked about since then: 2h, 30d, 2026-11-22, "2026-11-22 10:30" (UTC).
        #[arg(long, value_name = "TIME", default_value = "30d")]
        since: String,
        /// How it looks.
        #[arg(long, value_name = "FORMAT", default_value = "table")]
        format: TableFormat,
    },
    /// Allow a call, or all of a list.
    Approve {
        /// Its id, from the list.
        #[arg(required_unless_present = "listed", conflicts_with = "listed")]
        id: Option<String>,
        /// All calls of a list that `vocative approvals list --format json` wrote to this file, as they stand there:
        /// what is decided already or does something else by now is left, and so is what came since.
        #[arg(long, value_name = "FILE")]
        listed: Option<PathBuf>,
        /// Your name: it is recorded, and stands on the card.
        #[arg(long, value_name = "NAME")]
        by: String,
        /// What stands on the card with it.
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
        /// Let exactly this call be made for 24 hours without asking.
        #[arg(long)]
        for_a_day: bool,
        /// Change the call's arguments instead: all of them as JSON, lines `name = value` for some of them, or a file of
        /// either. The call then waits again, as a new one in the list.
        #[arg(long, value_name = "FILE|JSON", conflicts_with_all = ["listed", "for_a_day"])]
        arguments: Option<String>,
    },
    /// Forbid a call, or all of a list; the model is told.
    Deny {
        /// Its id, from the list.
        #[arg(required_unless_present = "listed", conflicts_with = "listed")]
        id: Option<String>,
        /// All calls of a list that `vocative approvals list --format json` wrote to this file.
        #[arg(long, value_name = "FILE")]
        listed: Option<PathBuf>,
        /// Your name: it is recorded, and stands on the card.
        #[arg(long, value_name = "NAME")]
        by: String,
        /// What the model and the room are told with it.
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
    },
    /// List standing consents.
    Grants {
        /// How the list looks.
        #[arg(long, value_name = "FORMAT", default_value = "table")]
        format: TableFormat,
    },
    /// Take a standing consent back.
    Revoke {
        /// Its id, from the list of grants.
        id: String,
        /// Your name.
        #[arg(long, value_name = "NAME")]
        by: String,
    },
}

/// `vocative runs`.
#[derive(Debug, Subcommand)]
pub enum RunsCommand {
    /// Show one.
    Show {
        /// Its id.
        id: String,
        /// How it looks.
        #[arg(long, value_name = "FORMAT", default_value = "table")]
        format: TableFormat,
    },
}

/// `vocative questions`.
#[derive(Debug, Subcommand)]
pub enum QuestionsCommand {
    /// List the questions that wait for an answer, newest first.
    List {
        /// Those that are over, too.
        #[arg(long)]
        all: bool,
        /// How the list looks.
        #[arg(long, value_name = "FORMAT", default_value = "table")]
        format: TableFormat,
    },
    /// Show all of one, with its answer.
    Show {
        /// Its id, from the list.
        id: String,
        /// How it looks.
        #[arg(long, value_name = "FORMAT", default_value = "table")]
        format: TableFormat,
    },
    /// Answer one in the place of those whom it asks.
    Answer {
        /// Its id, from the list.
        id: String,
        /// The answer.
        text: String,
        /// Your name: it is recorded, and the model and the room are told it.
        #[arg(long, value_name = "NAME")]
        by: String,
    },
    /// Take one back: its run goes on without an answer.
    Cancel {
        /// Its id, from the list.
        id: String,
    },
}

/// `vocative jobs`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct JobsArgs {
    /// What to do; not given: list them.
    #[command(subcommand)]
    pub command: Option<JobsCommand>,
    /// How the list looks.
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: TableFormat,
}

/// What to do about background work.
#[derive(Debug, Subcommand)]
pub enum JobsCommand {
    /// List it, which `vocative jobs` alone does, too: what was given up first.
    List(HeldListArgs),
    /// Have one done now: one that was given up, or waits.
    Retry {
        /// Its id, from the list.
        id: String,
    },
    /// Take one away undone: a file is only named then, a note is not written down.
    Cancel {
        /// Its id, from the list.
        id: String,
    },
}

/// `vocative dead retry`.
#[derive(Debug, Args)]
pub struct RetryArgs {
    /// Its id, from the list.
    #[arg(required_unless_present_any = ["all", "agent", "since"],
          conflicts_with_all = ["all", "agent", "since"])]
    pub id: Option<String>,
    /// All questions that were given up; posts are decided about one by one.
    #[arg(long)]
    pub all: bool,
    /// Only questions to this agent.
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,
    /// Only those given up since then: 2h, 1d, 2026-11-22, "2026-11-22 10:30" (UTC).
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
}

/// What to do about posts that wait for a decision.
#[derive(Debug, Subcommand)]
pub enum HeldCommand {
    /// List them: posts that may or may not have arrived, posts refused for good, and questions that
    /// were open in a backup that was restored.
    List(HeldListArgs),
    /// Send one (again), or have a question answered.
    Release {
        /// Its id, from the list.
        id: String,
    },
    /// Drop one: it is not sent, or not answered.
    Drop {
        /// Its id, from the list.
        id: String,
    },
}

/// `vocative held list`.
#[derive(Debug, Args)]
pub struct HeldListArgs {
    /// How the list looks.
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: TableFormat,
}

/// Tools.
#[derive(Debug, Subcommand)]
pub enum ToolsCommand {
    /// List the tools that agents may have: which of them act, for whom, how often
    List {
        /// How the list looks.
        #[arg(long, value_name = "FORMAT", default_value = "table")]
        format: TableFormat,
    },
    /// Call a tool as the daemon would and print what a model would be told
    ///
    /// With the configuration and the secrets of the daemon. A tool that acts, acts. Exit code 1 if the call gives
    /// no result.
    Call {
        /// The tool.
        tool: String,
        /// Its arguments, as JSON.
        #[arg(default_value = "{}")]
        arguments: String,
    },
}

/// Servers of tools.
#[derive(Debug, Subcommand)]
pub enum McpCommand {
    /// List the configured servers and how they are doing
    List {
        /// How the list looks.
        #[arg(long, value_name = "FORMAT", default_value = "table")]
        format: TableFormat,
    },
    /// Show what servers offer, and which of it waits for approval
    Tools {
        /// Only of this server.
        server: Option<String>,
        /// How the list looks.
        #[arg(long, value_name = "FORMAT", default_value = "table")]
        format: TableFormat,
    },
    /// Approve tools of a server that are new or changed
    Approve {
        /// The server.
        server: String,
        /// The server's name for the tool; all that wait if it is left out.
        tool: Option<String>,
        /// The digest that `vocative mcp tools` shows; refused if the server says something else meanwhile.
        #[arg(long)]
        digest: Option<String>,
    },
    /// Call a tool of a server and print what a model would be told
    ///
    /// The server is started or asked by this command, with the configuration and the secrets of the daemon. A tool that
    /// acts, acts, whether or not it was approved. Exit code 1 if the call gives no result.
    Call {
        /// The server.
        server: String,
        /// The server's name for the tool.
        tool: String,
        /// Its arguments, as JSON.
        #[arg(default_value = "{}")]
        arguments: String,
    },
}
