//! The command line: its commands and options, and their help.
//!
//! Reading order: this page, then a file per subject; `examples` has the texts at the end of each help.

mod console;
mod conversations;
mod examples;
mod keeping;
mod knowledge;
mod memory;
mod pairing;
mod schedules;
mod setup;
mod skills;
mod states;
#[cfg(test)]
mod tests;
mod trying;
mod waiting;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use self::examples::{
    BACKUP_EXAMPLES, CHECK_EXAMPLES, DEMO_EXAMPLES, DOCTOR_EXAMPLES, ERASE_EXAMPLES,
    EVENTS_EXAMPLES, EXAMPLES, IMPORT_EXAMPLES, PROMPT_EXAMPLES, SANDBOX_EXAMPLES, SETUP_EXAMPLES,
};
use crate::config::LogFormat;

pub use self::console::ConsoleCommand;
pub use self::conversations::{
    ArchiveArgs, ConversationsCommand, ExportArgs, ExportFormat, ListArgs, SearchArgs, ShowArgs,
    StatsArgs, SummaryCommand, SummaryRebuildArgs, SummaryShowArgs, TitleArgs,
};
pub use self::keeping::{BackupArgs, EraseArgs, ImportArgs, RestoreArgs};
pub use self::knowledge::{KnowledgeCommand, SearchKnowledgeArgs};
pub use self::memory::{ListMemoryArgs, MemorySubcommand};
pub use self::pairing::PairingCommand;
pub use self::schedules::{AddScheduleArgs, SchedulesCommand};
pub use self::setup::{SetupArgs, SetupModel, SetupPlace, SetupPlatform};
pub use self::skills::SkillsCommand;
pub use self::states::{StateArgs, StateCommand};
pub use self::trying::{DemoArgs, Fault, SandboxArgs, Scene};
pub use self::waiting::{
    AgentsArgs, AgentsCommand, ApprovalsSubcommand, CostsArgs, DeadCommand, HeldCommand,
    HeldListArgs, JobsArgs, JobsCommand, McpCommand, QuarantineCommand, QuestionsCommand,
    QueueArgs, QueueCommand, RetryArgs, RunsCommand, ToolsCommand,
};

/// A daemon that joins Slack workspaces and Telegram chats as a bot, remembers the room, and answers
/// when it is addressed
#[derive(Debug, Parser)]
#[command(name = "vocative", version, after_long_help = EXAMPLES, max_term_width = 100)]
pub struct Cli {
    /// Print the notices of the libraries in this program, and end
    #[arg(long)]
    pub licenses: bool,
    /// Options of every command.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: CliCommand,
}

/// Options of every command.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Options of every command")]
pub struct GlobalArgs {
    /// The configuration file
    #[arg(short, long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Log more: once for debug, twice for trace
    #[arg(short, long, global = true, action = clap::ArgAction::Count, conflicts_with = "quiet")]
    pub verbose: u8,
    /// Log less: once for warnings, twice for errors only
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub quiet: u8,
    /// How log lines look; wins over the configuration
    #[arg(long, global = true, value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum CliCommand {
    /// Serve the configured channels until stopped
    ///
    /// SIGTERM or Ctrl-C takes in nothing more, finishes the answers in progress (up to
    /// daemon.drain_deadline_s) and ends; a second one ends at once. SIGHUP reads the configuration
    /// again, as `vocative reload` does.
    Run(RunArgs),
    /// Show the daemon at work against a Slack and a Telegram of its own
    ///
    /// Plays a short scene in a Slack channel, a Slack direct message, a Telegram group and a
    /// Telegram private chat, over real sockets, with the built-in offline model, and shows what was
    /// said, stored and sent. Then a refund waits for a person, through a kill of the daemon. Then you
    /// can type as a user: `#general @vocative hello`. Ctrl-C ends it.
    #[command(after_long_help = DEMO_EXAMPLES)]
    Demo(DemoArgs),
    /// Say whether the configuration will work, and what to fix
    ///
    /// Checks the configuration, that every secret is there, and that the folders can be used, without
    /// touching the network. With --live it also asks each platform (who the bot is, its scopes, that a
    /// socket opens, privacy mode) and the providers of models whether they take the keys. With
    /// --database it reads every page of the database, also beside a running daemon.
    #[command(after_long_help = CHECK_EXAMPLES)]
    Check(CheckArgs),
    /// Set everything up, from nothing to the first answer
    ///
    /// Asks for what has to be known and tries each answer at once: how the bot is made, its tokens, who
    /// writes to it (which tells the chat and the person), the model, who starts the daemon. Then it writes the
    /// configuration and a file for each secret, starts the daemon and waits for its first answer. A
    /// configuration that is there is shown as a difference, and kept. Each option is an answer that is not
    /// asked for; with --non-interactive nobody is asked.
    #[command(after_long_help = SETUP_EXAMPLES)]
    Setup(Box<SetupArgs>),
    /// Look at everything that can be wrong, and say what to type
    ///
    /// One verdict over the configuration, the daemon and what waits in it for a person, the systemd unit,
    /// the platforms and models, the clock, the disk and the backups. Works with and without a running
    /// daemon, and says as much as can be seen where something is broken. --fix puts right what can't harm:
    /// modes of files with secrets, and unit files that systemd has not read again. Exit code 0 if nothing is to
    /// be put right (there may be warnings), 1 if something is, 78 if the configuration is wrong.
    #[command(after_long_help = DOCTOR_EXAMPLES)]
    Doctor(DoctorArgs),
    /// Say how the running daemon is doing
    ///
    /// Per channel: whether it is connected and when it last heard and stored something; what is
    /// queued, waiting, held or given up. Exit code 1 if something needs a person, 69 if no daemon
    /// runs.
    Status(StatusArgs),
    /// Have the running daemon read its configuration again
    ///
    /// Says what is in force now and which of the changed settings need a restart. A configuration with a
    /// mistake changes nothing: exit code 1, with what is wrong. 69 if no daemon runs.
    Reload,
    /// Run the loopback Slack, Telegram and model server for a bot of your own
    ///
    /// They speak the real protocols on this machine, refuse what the real ones refuse, and fail on
    /// demand.
    #[command(after_long_help = SANDBOX_EXAMPLES)]
    Sandbox(SandboxArgs),
    /// List conversations, show one, search in one, name it or put it away
    #[command(subcommand)]
    Conversations(ConversationsCommand),
    /// Show the summaries of older turns, or have them made again
    #[command(subcommand)]
    Summary(SummaryCommand),
    /// Show the agents and whether their models are asked; have one asked again
    Agents(AgentsArgs),
    /// Show the questions that wait for an answer and why they wait; cancel one
    Queue(QueueArgs),
    /// Tell what happened in a run or a conversation, and with --follow what happens
    ///
    /// The same events as the API tells: an agent begins, says something, calls a tool, gets its
    /// result, and ends. Works with and without a running daemon, whether or not the API is enabled.
    #[command(after_long_help = EVENTS_EXAMPLES)]
    Events(EventsArgs),
    /// List questions and posts that were given up; show one, retry it or drop it
    #[command(subcommand)]
    Dead(DeadCommand),
    /// List what calls of models cost: tokens, and money where models have prices
    ///
    /// Added up by UTC day, channel, room, person, agent or model. Prices stand at each model (price_input and its kin), caps among the limits.
    Costs(CostsArgs),
    /// List the tool calls that wait for a person; show one, approve it or deny it; list and revoke grants
    ///
    /// A decision counts as one of who runs the daemon: it needs no place among a tool's approvers. Works with and without a running daemon.
    #[command(subcommand)]
    Approvals(ApprovalsSubcommand),
    /// List the questions that agents ask people; show one, or take it back
    ///
    /// A run that asks somebody something waits for the answer. Works with and without a running daemon.
    #[command(subcommand)]
    Questions(QuestionsCommand),
    /// Show all of one run: what was asked, what its model called, who decided, what it said and cost
    ///
    /// Ids of runs are in `conversations show`, `queue`, `dead` and the log. Works with and without a running daemon.
    #[command(subcommand)]
    Runs(RunsCommand),
    /// Print a link into the web console, or list who looked and acted there
    ///
    /// The console is served by a running daemon with console.enabled = true. Who may use the daemon's socket may
    /// let people in; what they may do says the configuration.
    #[command(subcommand)]
    Console(ConsoleCommand),
    /// List what is to start at a time: reminders and schedules; show, add, pause, resume, run or cancel one
    ///
    /// Works with and without a running daemon; what is due starts while one runs.
    #[command(subcommand)]
    Schedules(SchedulesCommand),
    /// List what agents remember of what people told them; show an entry, edit, forget or share it
    ///
    /// People see and correct what is remembered of them by the command memory in their rooms. Works with and without a running daemon.
    #[command(subcommand)]
    Memory(MemorySubcommand),
    /// Show the values that a network keeps in a conversation (persist = true), set or clear some
    ///
    /// A question that is being answered meanwhile does not write over the change: its own changes are not kept then.
    /// Works with and without a running daemon.
    #[command(subcommand)]
    State(StateCommand),
    /// List collections of documents and their files, search in them, or have them read again
    ///
    /// Works with and without a running daemon; what is to be read again is read while one runs.
    #[command(subcommand)]
    Knowledge(KnowledgeCommand),
    /// List background work and what was given up of it; have a job done now or cancel it
    ///
    /// Files to be fetched, voice notes to be written down, questions to the daemon itself, erasures, merges
    /// of chats: each waits, is at work, or was given up for a reason.
    Jobs(JobsArgs),
    /// List the tools that agents may call, or call one as the daemon would
    #[command(subcommand)]
    Tools(ToolsCommand),
    /// List who waits to be let in to direct chats; let somebody in, or no more
    ///
    /// People who write to a channel with `pairing = true` and are on no list are told a code. Works with and without a
    /// running daemon.
    #[command(subcommand)]
    Pairing(PairingCommand),
    /// List skills, show what one tells agents, approve it or take that back
    ///
    /// A skill is used once it is approved, and as long as no file of it changes. Works with and without a running daemon.
    #[command(subcommand)]
    Skills(SkillsCommand),
    /// List servers of tools and what they offer, approve it, or call one of their tools
    #[command(subcommand)]
    Mcp(McpCommand),
    /// List stored rows that can't be decoded; try one again or drop it
    ///
    /// Such a row stops no queue: it is set aside and shown here. Another version of the program, which
    /// may know what this one does not, tries it again at its first start.
    #[command(subcommand)]
    Quarantine(QuarantineCommand),
    /// List posts and questions that wait for a decision, let one go on, or drop it
    #[command(subcommand)]
    Held(HeldCommand),
    /// Give a channel the memory of its rooms from before the bot came
    ///
    /// Reads a Slack export (the zip or its folder) or what Telegram Desktop exports as
    /// machine-readable JSON (result.json or its folder), also while the daemon runs. Nothing imported
    /// is ever answered. What is there already is recognised, so that importing twice changes nothing;
    /// an import that was cut off goes on where it was.
    #[command(after_long_help = IMPORT_EXAMPLES)]
    Import(ImportArgs),
    /// Copy the database and its files, with or without a daemon, and verify the copy
    ///
    /// The copy holds everything that was captured before its start. It is made at a limited rate, so
    /// that a running daemon goes on answering, verified through and through, and has its name only
    /// when it is whole and on disk. It holds the text of all rooms: mode 0600. The bytes of attached
    /// files are beside it, in the folder FILE.files; exit 65 if some that ought to be stored are lost.
    #[command(after_long_help = BACKUP_EXAMPLES)]
    Backup(BackupArgs),
    /// Put a backup in the place of the database, while no daemon runs
    ///
    /// The backup is verified first, and its attached files (FILE.files) are brought back; the present
    /// database is kept beside it under another name, with its files.
    /// Questions and posts that were open in the backup may have been answered since: they are held,
    /// see `vocative held list`. What was erased since the backup is erased again at the next start.
    Restore(RestoreArgs),
    /// Erase everything that a person said, or a whole conversation, for good
    ///
    /// Blanks the turns and what was made from them: answers, quotes, summaries, tool results, posts,
    /// raw events, earlier texts. Ids stay, so that nothing comes back from a platform, an import or
    /// a backup that is put back. Says first what would go, and asks. Works with and without a
    /// running daemon.
    #[command(after_long_help = ERASE_EXAMPLES)]
    Erase(EraseArgs),
    /// Show exactly what the model would be sent
    ///
    /// Assembles the prompt for the newest turn (or the one at --at) and prints it with what was left
    /// out and why. Nothing is sent and nothing is stored. With --transcript it does the same over a
    /// JSON transcript, without a store or a configuration, or over what `conversations export` wrote,
    /// with the options that a configuration at hand has for the agent; that is always printed as JSON.
    #[command(after_long_help = PROMPT_EXAMPLES)]
    Prompt(PromptArgs),
    /// Show the configuration in force, its schema, or an example
    #[command(subcommand)]
    Config(ConfigCommand),
}

/// What `vocative run` takes.
#[derive(Debug, Args)]
pub struct RunArgs {}

/// What `vocative events` takes.
#[derive(Debug, Args)]
pub struct EventsArgs {
    /// The id of a run; or a conversation: the start of its id, or CHANNEL/CHAT
    #[arg(value_name = "RUN|CONVERSATION")]
    pub target: String,
    /// Go on telling until the run has ended; of a conversation, what comes from here on, without end
    #[arg(long)]
    pub follow: bool,
    /// Only what came after the event with this id
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(i64).range(0..))]
    pub after: Option<i64>,
    /// How to print it; json is one event a line
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: TextFormat,
}

/// What `vocative check` takes.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Ask the platforms, too
    #[arg(long)]
    pub live: bool,
    /// Read the whole database and all stored files and say what is damaged or lost
    #[arg(long, conflicts_with = "live")]
    pub database: bool,
    /// Post one line into this chat and wait to hear it, which proves that events are subscribed
    #[arg(long, value_name = "CHANNEL/CHAT", requires = "live")]
    pub probe: Option<String>,
}

/// What `vocative doctor` takes.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Put right what can't harm
    #[arg(long)]
    pub fix: bool,
    /// Ask no platform and no provider of models
    #[arg(long)]
    pub offline: bool,
    /// Read the newest backup through, too; as long as the disk takes
    #[arg(long)]
    pub verify: bool,
    /// Where the backups are; not given: where the unit's timer puts them
    #[arg(long, value_name = "FOLDER")]
    pub backups: Option<PathBuf>,
    /// How to print it
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: TextFormat,
}

/// What `vocative status` takes.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Measure what uses the space, how fast the disk is and how long its room lasts; reads the whole
    /// database
    #[arg(long)]
    pub capacity: bool,
    /// Say nothing but whether the daemon serves, for health checks: exit code 0 also while something
    /// needs a person or a platform is down, 69 if no daemon answers within 5 seconds
    #[arg(long, conflicts_with_all = ["capacity", "format"])]
    pub alive: bool,
    /// How to print it
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: TableFormat,
}

/// What `vocative prompt` takes.
#[derive(Debug, Args)]
pub struct PromptArgs {
    /// Which conversation: the start of its id, or CHANNEL/CHAT
    #[arg(
        required_unless_present_any = ["transcript", "run"],
        conflicts_with_all = ["transcript", "run"]
    )]
    pub conversation: Option<String>,
    /// What this run was sent, from its record; says what of it was changed or went since
    #[arg(long, value_name = "RUN", conflicts_with_all = ["transcript", "agent", "at"])]
    pub run: Option<String>,
    /// For this agent, not for the one that the turn addresses
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// As if the turn with this seq were the newest
    #[arg(long, value_name = "SEQ", conflicts_with = "transcript", value_parser = clap::value_parser!(i64).range(1..))]
    pub at: Option<i64>,
    /// Say how many rows were read, and what each part of the prompt costs
    #[arg(long, conflicts_with = "transcript")]
    pub stats: bool,
    /// Read the conversation from this JSON file, or from an export; `-` is stdin. The prompt is
    /// printed as JSON
    #[arg(long, value_name = "FILE")]
    pub transcript: Option<PathBuf>,
    /// How to print it
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: TextFormat,
}

/// How tables are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TableFormat {
    /// For people
    #[default]
    Table,
    /// For programs
    Json,
}

/// How texts are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TextFormat {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

/// What `vocative config` can do.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print every value in force and where it came from; secrets only as references
    Show,
    /// Print the JSON schema of the configuration file
    Schema,
    /// Print an example file: explained, every setting with its default
    Example,
    /// Print the manifest to make the Slack app from, at <https://api.slack.com/apps>
    ///
    /// Paste it under Create New App, From a manifest. As it is, it is for sockets (Socket Mode).
    SlackManifest(SlackManifestArgs),
}

/// What `vocative config slack-manifest` takes.
#[derive(Debug, Args)]
pub struct SlackManifestArgs {
    /// Declare Slack's agent view, which can't be taken back: docs/OPERATIONS.md
    #[arg(long)]
    pub agent_view: bool,
    /// Have Slack call this address instead of using sockets, for transport = "http"
    #[arg(long, value_name = "https://HOST", requires = "channel")]
    pub public_url: Option<String>,
    /// The name of the channel in the configuration, which is a part of the addresses that Slack calls
    #[arg(long, value_name = "NAME", requires = "public_url")]
    pub channel: Option<String>,
}
