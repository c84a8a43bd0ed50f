//! The command line: what can be asked, and the help that explains it.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::markdown::Zone;
use crate::config::LogFormat;

const EXAMPLES: &str = "\
Examples:
  vocative demo                                see it work, without any account
  vocative config slack-manifest               what to make the Slack app from
  vocative config example > vocative.toml      make a configuration to start from
  vocative check --live                        ask the platforms whether it will work
  vocative run                                 serve, until Ctrl-C
  vocative prompt acme/#general                see what the model would be sent

Configuration: --config, else $VOCATIVE_CONFIG, else the first of ./vocative.toml,
$XDG_CONFIG_HOME/vocative/vocative.toml and /etc/vocative/vocative.toml. A variable such as
VOCATIVE_DAEMON__LOG_LEVEL=debug wins over the file.

Exit codes:
  0   all is well
  1   it failed, or something needs a person
  2   the command line is wrong
  65  the database or a backup is damaged, or a stored file is lost
  69  the daemon, a platform or a model can't be reached; an address is taken
  74  the database can't be used: rights, room, a failing disk
  77  a platform or a model refused the credentials
  78  the configuration is wrong

Results go to stdout, the log to stderr.";

const DEMO_EXAMPLES: &str = "\
Examples:
  vocative demo
  vocative demo --once                         exit 0 only if every answer came where it belongs
  vocative demo --once --fault wrong-thread    must exit 1 and say what is missing";

const CHECK_EXAMPLES: &str = "\
Examples:
  vocative check
  vocative check --live
  vocative check --live --probe acme/C0123ABCD
  vocative check --database                    exit 65 if it is damaged, or a stored file is lost";

const SANDBOX_EXAMPLES: &str = "\
Examples:
  vocative sandbox --slack-port 9001 --telegram-port 9002 --model-port 9003
  vocative sandbox --self-check";

const PROMPT_EXAMPLES: &str = "\
Examples:
  vocative prompt acme/#general
  vocative prompt 0193 --agent iris --at 512 --stats
  vocative prompt --transcript case.json --format json

A conversation is named by the start of its id (see `vocative conversations list`), or by channel
and chat: acme/#general, acme/C0123ABCD, home/-1001234567890.";

const IMPORT_EXAMPLES: &str = "\
Examples:
  vocative import --channel acme slack-export.zip --dry-run
  vocative import --channel acme slack-export.zip --chat '#general' --chat '#ops'
  vocative import --channel home ~/ChatExport_2026-01-10

Exit code 1 if something of the export could not be read; what could is imported.";

const EXPORT_EXAMPLES: &str = "\
Examples:
  vocative conversations export acme/#general --output general.jsonl
  vocative conversations export acme/#general --output general.jsonl --files general-files
  vocative conversations export acme/#general --format markdown --timezone +02:00 | less

A conversation is named by the start of its id (see `vocative conversations list`), or by channel
and chat: acme/#general, acme/C0123ABCD, home/-1001234567890.";

const BACKUP_EXAMPLES: &str = "\
Examples:
  vocative backup /var/backups/vocative/ --keep 7
  vocative backup before-upgrade.db";

const ERASE_EXAMPLES: &str = "\
Examples:
  vocative erase --person acme/U0123ABCD --dry-run     say what would go
  vocative erase --person @ada --verify                and search the files afterwards
  vocative erase --conversation acme/#general --yes    without asking, for scripts

A person is named by the platform's user id, @username or full name, with CHANNEL/ before it where
several channels know one. Backups elsewhere are not reached: see docs/OPERATIONS.md.";

const EVENTS_EXAMPLES: &str = "\
Examples:
  vocative events acme/#general --follow
  vocative events 01a20324-e8b8-7589-b924-dab7d3ba46da --format json

`vocative queue` names the runs that wait or are at work; `vocative conversations show CONVERSATION
--timeline` names those of a conversation.";

const CONVERSATION_NAMES: &str = "\
A conversation is named by the start of its id (see `vocative conversations list`), or by channel
and chat: acme/#general, acme/C0123ABCD, home/-1001234567890.";

/// A daemon that joins Slack workspaces and Telegram chats as a bot, remembers the room, and answers
/// when it is addressed
#[derive(Debug, Parser)]
#[command(name = "vocative", version, after_long_help = EXAMPLES, max_term_width = 100)]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
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
pub enum Command {
    /// Serve the configured channels until stopped
    ///
    /// SIGTERM or Ctrl-C takes in nothing more, finishes the answers in progress (up to
    /// daemon.drain_deadline_s) and ends; a second one ends at once. SIGHUP reads agents and aliases
    /// again.
    Run(RunArgs),
    /// Show the daemon at work against a Slack and a Telegram of its own
    ///
    /// Plays a short scene in a Slack channel, a Slack direct message, a Telegram group and a
    /// Telegram private chat, over real sockets, with the built-in offline model, and shows what was
    /// said, stored and sent. Then you can type as a user: `#general @vocative hello`. Ctrl-C ends
    /// it.
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
    /// Say how the running daemon is doing
    ///
    /// Per channel: whether it is connected and when it last heard and stored something; what is
    /// queued, waiting, held or given up. Exit code 1 if something needs a person, 69 if no daemon
    /// runs.
    Status(StatusArgs),
    /// Run the loopback Slack, Telegram and model server for a bot of your own
    ///
    /// They speak the real protocols on this machine, refuse what the real ones refuse, and fail on
    /// demand.
    #[command(after_long_help = SANDBOX_EXAMPLES)]
    Sandbox(SandboxArgs),
    /// Kill a daemon again and again, or simulate it, and count what is lost or doubled
    #[command(subcommand)]
    Selftest(SelftestCommand),
    /// List conversations, show one, search in one, name it or put it away
    #[command(subcommand)]
    Conversations(ConversationsCommand),
    /// Show the summaries of older turns, or have them made again
    #[command(subcommand)]
    Summary(SummaryCommand),
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

/// What `vocative demo` takes.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// End after the scene; exit 0 only if every expected answer was posted where it belongs
    #[arg(long)]
    pub once: bool,
    /// Break something on purpose, to see that it is noticed
    #[arg(long, value_name = "FAULT", requires = "once")]
    pub fault: Option<Fault>,
    /// Write every frame and request on the wire to this file
    #[arg(long, value_name = "FILE")]
    pub wire: Option<PathBuf>,
}

/// Something broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Fault {
    /// One answer is never posted
    DropAnswer,
    /// The loopback Telegram sends no updates
    MuteTelegram,
    /// One answer goes into another thread
    WrongThread,
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

/// What `vocative status` takes.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// How to print it
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: TableFormat,
}

/// What `vocative sandbox` takes.
#[derive(Debug, Args)]
pub struct SandboxArgs {
    /// Port of the loopback Slack; 0 = any free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub slack_port: u16,
    /// Port of the loopback Telegram; 0 = any free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub telegram_port: u16,
    /// Port of the scripted model server; 0 = any free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub model_port: u16,
    /// Show what is refused, with the exact error of each, and end
    #[arg(long)]
    pub self_check: bool,
}

/// What `vocative selftest` can do.
#[derive(Debug, Subcommand)]
pub enum SelftestCommand {
    /// Kill the daemon at every point of a message's way, and under load, and count what is lost or
    /// doubled
    ///
    /// Runs a Slack and a Telegram of its own and starts this program as a daemon against them. Kills
    /// it with SIGKILL, starts it again, lets it finish, and looks into the rooms: every question has
    /// exactly one answer, its parts in order. Exit code 1 if not. A build with the feature
    /// crash-points stops it at named points; any other one kills at random.
    Crash(CrashArgs),
    /// Run the daemon in simulated worlds on a clock of their own, and count what is lost or doubled
    ///
    /// Each seed is a story of its own: people write, the network delays, drops, repeats and reorders,
    /// the platform refuses and forgets to answer, the daemon is killed and started again. Then the
    /// rooms are searched as in `selftest crash`, and what was captured is compared with what was said.
    /// Exit code 1 if something is wrong; then the seed and its story are shown.
    Sim(SimArgs),
}

/// What `vocative selftest sim` takes.
#[derive(Debug, Args)]
pub struct SimArgs {
    /// How many worlds
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: u64,
    /// The first one's seed; the others follow
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
    /// Only this platform
    #[arg(long, value_name = "PLATFORM")]
    pub platform: Option<CrashPlatform>,
    /// Things that people do, or that happen to the network, in each world
    #[arg(long, value_name = "N", default_value_t = 24)]
    pub steps: usize,
    /// Break a promise on purpose, to see that it is noticed (most need the feature crash-points)
    #[arg(long, value_name = "PROMISE")]
    pub sabotage: Option<String>,
    /// Tell the whole story of one seed instead
    #[arg(long)]
    pub trace: bool,
}

/// What `vocative selftest crash` takes.
#[derive(Debug, Args)]
pub struct CrashArgs {
    /// Kills, over all platforms; each point is met at least once, which may be more
    #[arg(long, value_name = "N", default_value_t = 150)]
    pub rounds: u32,
    /// What chance begins with
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
    /// Only this platform
    #[arg(long, value_name = "PLATFORM")]
    pub platform: Option<CrashPlatform>,
    /// Only with this transport
    #[arg(long, value_name = "TRANSPORT")]
    pub transport: Option<CrashTransport>,
    /// Only this point, by its name in the table
    #[arg(long, value_name = "POINT")]
    pub point: Option<String>,
    /// Let the platforms fail, too: refusals, resets, late answers and late history
    #[arg(long)]
    pub faults: bool,
    /// Break a promise on purpose, to see that it is noticed (needs the feature crash-points)
    #[arg(long, value_name = "PROMISE")]
    pub sabotage: Option<String>,
    /// Only this piece of a row, by its name; rows are played in pieces of up to eight kills, and what
    /// fails says the command that plays its piece again, of which this is a part
    #[arg(long, value_name = "PIECE")]
    pub piece: Option<String>,
    /// Say on stderr what each piece of a row gave as soon as it is played
    #[arg(long)]
    pub progress: bool,
}

/// A platform that the daemon is tested on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CrashPlatform {
    /// Slack
    Slack,
    /// Telegram, with on_unknown = "resend" and "hold"
    Telegram,
}

/// How a daemon that is tested hears its platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CrashTransport {
    /// It connects: sockets, polling
    Connect,
    /// It is called: HTTP requests, webhooks
    Http,
}

/// What `vocative conversations` can do.
#[derive(Debug, Subcommand)]
pub enum ConversationsCommand {
    /// List conversations, the most recently active first
    List(ListArgs),
    /// Show the turns of one conversation, in the order of the room
    #[command(after_long_help = CONVERSATION_NAMES)]
    Show(ShowArgs),
    /// Find what was said in one conversation, the best match first
    ///
    /// Words must all be there; "quotes" make a phrase, a star the beginning of a word (deploy*).
    /// Without any word it shows the newest turns.
    #[command(after_long_help = CONVERSATION_NAMES)]
    Search(SearchArgs),
    /// Write a whole conversation, for programs or for people
    ///
    /// As jsonl it is one message a line, which `vocative prompt --transcript` reads; as markdown a
    /// text to read. What is captured while it is written is left out. A thread begins with the
    /// message it hangs on; a room is written without its threads.
    #[command(after_long_help = EXPORT_EXAMPLES)]
    Export(ExportArgs),
    /// Call a conversation something else than its room's title or its first words
    #[command(after_long_help = CONVERSATION_NAMES)]
    Title(TitleArgs),
    /// Leave a conversation out of the list until something new is said there
    ///
    /// It is still captured, answered, searched and shown; the next new turn takes it back.
    #[command(after_long_help = CONVERSATION_NAMES)]
    Archive(ArchiveArgs),
    /// Have an archived conversation in the list again
    #[command(after_long_help = CONVERSATION_NAMES)]
    Unarchive(ArchiveArgs),
}

/// What `vocative conversations export` takes.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Which one: the start of its id, or CHANNEL/CHAT
    pub conversation: String,
    /// For programs (one message a line) or for people
    #[arg(long, value_name = "FORMAT", default_value = "jsonl")]
    pub format: ExportFormat,
    /// Write to this file, which must not be there yet; it has its name once it is whole (mode 0600)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Copy the stored files that are attached to its messages into this folder, each once, named by its
    /// hash; the export says which is which
    #[arg(long, value_name = "FOLDER")]
    pub files: Option<PathBuf>,
    /// Which clock markdown tells days and times by: utc, local, or an offset like +02:00
    #[arg(
        long,
        value_name = "ZONE",
        default_value = "utc",
        allow_hyphen_values = true
    )]
    pub timezone: Zone,
}

/// How a conversation is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// One message a line, as `vocative prompt --transcript` reads it
    Jsonl,
    /// To read
    Markdown,
}

/// What `vocative conversations title` takes.
#[derive(Debug, Args)]
pub struct TitleArgs {
    /// Which one: the start of its id, or CHANNEL/CHAT
    pub conversation: String,
    /// What to call it
    #[arg(required_unless_present = "clear")]
    pub title: Option<String>,
    /// Take its title away: it is called after its room or its first words again
    #[arg(long, conflicts_with = "title")]
    pub clear: bool,
}

/// What `vocative conversations archive` and `unarchive` take.
#[derive(Debug, Args)]
pub struct ArchiveArgs {
    /// Which one: the start of its id, or CHANNEL/CHAT
    pub conversation: String,
}

/// What `vocative conversations list` takes.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only those of this channel
    #[arg(long, value_name = "NAME")]
    pub channel: Option<String>,
    /// At most so many
    #[arg(long, value_name = "N", default_value = "50")]
    pub limit: NonZeroUsize,
    /// Also archived ones
    #[arg(long)]
    pub all: bool,
    /// How to print them
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: TableFormat,
}

/// What `vocative conversations show` takes.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Which one: the start of its id, or CHANNEL/CHAT
    pub conversation: String,
    /// Only the newest so many turns
    #[arg(long, value_name = "N", default_value = "50")]
    pub limit: NonZeroUsize,
    /// Only what stands before the turn with this seq: the next page, back in time
    #[arg(long, value_name = "SEQ", value_parser = clap::value_parser!(i64).range(1..))]
    pub before: Option<i64>,
    /// Everything that happened, in one order: also tool calls and their results, deleted turns, runs,
    /// posts and summaries
    #[arg(long)]
    pub timeline: bool,
    /// How to print them
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: TableFormat,
}

/// What `vocative conversations search` takes.
#[derive(Debug, Args)]
pub struct SearchArgs {
    /// Which one: the start of its id, or CHANNEL/CHAT
    pub conversation: String,
    /// What to look for; several words must all be there
    #[arg(required = true)]
    pub query: Vec<String>,
    /// At most so many hits
    #[arg(long, value_name = "N", default_value = "20")]
    pub limit: NonZeroUsize,
    /// Also in the room of a thread, and in the threads of the room
    #[arg(long)]
    pub threads: bool,
    /// How to print them
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: TableFormat,
}

/// What is to be erased.
#[derive(Debug, Args)]
pub struct EraseArgs {
    /// Everything of this person: id, @username or full name, with CHANNEL/ before it where needed
    #[arg(
        long,
        value_name = "PERSON",
        required_unless_present = "conversation",
        conflicts_with = "conversation"
    )]
    pub person: Option<String>,
    /// This conversation with its threads: the start of its id, or CHANNEL/CHAT
    #[arg(long, value_name = "CONVERSATION")]
    pub conversation: Option<String>,
    /// Afterwards search the files in the data directory for what was erased; exit 1 if it is there
    #[arg(long)]
    pub verify: bool,
    /// Only say what would go
    #[arg(long, conflicts_with_all = ["verify", "yes"])]
    pub dry_run: bool,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// How to print what was done
    #[arg(long, value_enum, default_value_t = TableFormat::Table, value_name = "FORMAT")]
    pub format: TableFormat,
}

/// What `vocative summary` can do.
#[derive(Debug, Subcommand)]
pub enum SummaryCommand {
    /// Show what stands for the older turns of a conversation, and how it came to be
    #[command(after_long_help = CONVERSATION_NAMES)]
    Show(SummaryShowArgs),
    /// Have the summaries of a conversation made again from its turns
    ///
    /// They are set aside at once and not sent any more. A running daemon makes new ones in the
    /// background; without one, the next start does. No model is asked by this command.
    #[command(after_long_help = CONVERSATION_NAMES)]
    Rebuild(SummaryRebuildArgs),
}

/// What `vocative summary show` takes.
#[derive(Debug, Args)]
pub struct SummaryShowArgs {
    /// Which conversation: the start of its id, or CHANNEL/CHAT
    pub conversation: String,
    /// Only those of this agent
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// How to print them
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: TableFormat,
}

/// What `vocative summary rebuild` takes.
#[derive(Debug, Args)]
pub struct SummaryRebuildArgs {
    /// Which conversation: the start of its id, or CHANNEL/CHAT
    pub conversation: String,
    /// Only those of this agent
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
}

/// What `vocative import` takes.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// The configured channel whose rooms these are
    #[arg(long, value_name = "NAME")]
    pub channel: String,
    /// The export: a zip, a folder, or result.json
    pub path: PathBuf,
    /// Only this chat, by id or name; may be given several times
    #[arg(long, value_name = "CHAT")]
    pub chat: Vec<String>,
    /// Only say what would be imported
    #[arg(long)]
    pub dry_run: bool,
}

/// What `vocative backup` takes.
#[derive(Debug, Args)]
pub struct BackupArgs {
    /// The file to make; in a folder the backup is named after the time
    #[arg(value_name = "FILE|FOLDER")]
    pub target: PathBuf,
    /// Replace a file that is there
    #[arg(long)]
    pub replace: bool,
    /// In a folder: keep only the newest so many backups named by this command
    #[arg(long, value_name = "N")]
    pub keep: Option<NonZeroUsize>,
    /// Copy at most so many MiB a second; 0 = as fast as the disk goes
    #[arg(long, value_name = "MIB", default_value_t = 64)]
    pub rate: u64,
    /// Leave out the bytes of attached files; a restored backup fetches them again where it can
    #[arg(long)]
    pub without_files: bool,
}

/// What `vocative restore` takes.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// The backup
    pub backup: PathBuf,
}

/// What `vocative prompt` takes.
#[derive(Debug, Args)]
pub struct PromptArgs {
    /// Which conversation: the start of its id, or CHANNEL/CHAT
    #[arg(required_unless_present = "transcript", conflicts_with = "transcript")]
    pub conversation: Option<String>,
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
    /// Have one tried again, with all its attempts.
    Retry {
        /// Its id, from the list.
        id: String,
    },
    /// Forget one: it is not tried again and no longer listed.
    Drop {
        /// Its id, from the list.
        id: String,
    },
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    /// The long help of a command; the empty path is the program's.
    fn help(path: &[&str]) -> String {
        let mut root = Cli::command().term_width(100);
        root.build();
        let mut command = &mut root;
        for name in path {
            command = command
                .find_subcommand_mut(name)
                .expect("the tests name commands that exist");
        }
        let text = command.render_long_help().to_string();
        text.lines()
            .map(str::trim_end)
            .fold(String::new(), |text, line| text + line + "\n")
    }

    #[test]
    fn the_help_of_the_program() {
        insta::assert_snapshot!(help(&[]), @r##"
    A daemon that joins Slack workspaces and Telegram chats as a bot, remembers the room, and answers
    when it is addressed

    Usage: vocative [OPTIONS] <COMMAND>

    Commands:
      run            Serve the configured channels until stopped
      demo           Show the daemon at work against a Slack and a Telegram of its own
      check          Say whether the configuration will work, and what to fix
      status         Say how the running daemon is doing
      sandbox        Run the loopback Slack, Telegram and model server for a bot of your own
      selftest       Kill a daemon again and again, or simulate it, and count what is lost or doubled
      conversations  List conversations, show one, search in one, name it or put it away
      summary        Show the summaries of older turns, or have them made again
      queue          Show the questions that wait for an answer and why they wait; cancel one
      events         Tell what happened in a run or a conversation, and with --follow what happens
      dead           List questions and posts that were given up; show one, retry it or drop it
      held           List posts and questions that wait for a decision, let one go on, or drop it
      import         Give a channel the memory of its rooms from before the bot came
      backup         Copy the database and its files, with or without a daemon, and verify the copy
      restore        Put a backup in the place of the database, while no daemon runs
      erase          Erase everything that a person said, or a whole conversation, for good
      prompt         Show exactly what the model would be sent
      config         Show the configuration in force, its schema, or an example
      help           Print this message or the help of the given subcommand(s)

    Options:
      -h, --help
              Print help (see a summary with '-h')

      -V, --version
              Print version

    Options of every command:
      -c, --config <FILE>
              The configuration file

      -v, --verbose...
              Log more: once for debug, twice for trace

      -q, --quiet...
              Log less: once for warnings, twice for errors only

          --log-format <FORMAT>
              How log lines look; wins over the configuration

              Possible values:
              - auto: Text; without time and colours under systemd
              - text: Text with time
              - json: One JSON object a line

    Examples:
      vocative demo                                see it work, without any account
      vocative config slack-manifest               what to make the Slack app from
      vocative config example > vocative.toml      make a configuration to start from
      vocative check --live                        ask the platforms whether it will work
      vocative run                                 serve, until Ctrl-C
      vocative prompt acme/#general                see what the model would be sent

    Configuration: --config, else $VOCATIVE_CONFIG, else the first of ./vocative.toml,
    $XDG_CONFIG_HOME/vocative/vocative.toml and /etc/vocative/vocative.toml. A variable such as
    VOCATIVE_DAEMON__LOG_LEVEL=debug wins over the file.

    Exit codes:
      0   all is well
      1   it failed, or something needs a person
      2   the command line is wrong
      65  the database or a backup is damaged, or a stored file is lost
      69  the daemon, a platform or a model can't be reached; an address is taken
      74  the database can't be used: rights, room, a failing disk
      77  a platform or a model refused the credentials
      78  the configuration is wrong

    Results go to stdout, the log to stderr.
    "##);
    }

    #[test]
    fn the_help_of_demo() {
        insta::assert_snapshot!(help(&["demo"]), @r##"
    Show the daemon at work against a Slack and a Telegram of its own

    Plays a short scene in a Slack channel, a Slack direct message, a Telegram group and a Telegram
    private chat, over real sockets, with the built-in offline model, and shows what was said, stored
    and sent. Then you can type as a user: `#general @vocative hello`. Ctrl-C ends it.

    Usage: vocative demo [OPTIONS]

    Options:
          --once
              End after the scene; exit 0 only if every expected answer was posted where it belongs

          --fault <FAULT>
              Break something on purpose, to see that it is noticed

              Possible values:
              - drop-answer:   One answer is never posted
              - mute-telegram: The loopback Telegram sends no updates
              - wrong-thread:  One answer goes into another thread

          --wire <FILE>
              Write every frame and request on the wire to this file

      -h, --help
              Print help (see a summary with '-h')

    Options of every command:
      -c, --config <FILE>
              The configuration file

      -v, --verbose...
              Log more: once for debug, twice for trace

      -q, --quiet...
              Log less: once for warnings, twice for errors only

          --log-format <FORMAT>
              How log lines look; wins over the configuration

              Possible values:
              - auto: Text; without time and colours under systemd
              - text: Text with time
              - json: One JSON object a line

    Examples:
      vocative demo
      vocative demo --once                         exit 0 only if every answer came where it belongs
      vocative demo --once --fault wrong-thread    must exit 1 and say what is missing
    "##);
    }

    #[test]
    fn the_help_of_check() {
        insta::assert_snapshot!(help(&["check"]), @r##"
    Say whether the configuration will work, and what to fix

    Checks the configuration, that every secret is there, and that the folders can be used, without
    touching the network. With --live it also asks each platform (who the bot is, its scopes, that a
    socket opens, privacy mode) and the providers of models whether they take the keys. With --database
    it reads every page of the database, also beside a running daemon.

    Usage: vocative check [OPTIONS]

    Options:
          --live
              Ask the platforms, too

          --database
              Read the whole database and all stored files and say what is damaged or lost

          --probe <CHANNEL/CHAT>
              Post one line into this chat and wait to hear it, which proves that events are subscribed

      -h, --help
              Print help (see a summary with '-h')

    Options of every command:
      -c, --config <FILE>
              The configuration file

      -v, --verbose...
              Log more: once for debug, twice for trace

      -q, --quiet...
              Log less: once for warnings, twice for errors only

          --log-format <FORMAT>
              How log lines look; wins over the configuration

              Possible values:
              - auto: Text; without time and colours under systemd
              - text: Text with time
              - json: One JSON object a line

    Examples:
      vocative check
      vocative check --live
      vocative check --live --probe acme/C0123ABCD
      vocative check --database                    exit 65 if it is damaged, or a stored file is lost
    "##);
    }

    #[test]
    fn the_help_of_prompt() {
        insta::assert_snapshot!(help(&["prompt"]), @r##"
    Show exactly what the model would be sent

    Assembles the prompt for the newest turn (or the one at --at) and prints it with what was left out
    and why. Nothing is sent and nothing is stored. With --transcript it does the same over a JSON
    transcript, without a store or a configuration, or over what `conversations export` wrote, with the
    options that a configuration at hand has for the agent; that is always printed as JSON.

    Usage: vocative prompt [OPTIONS] [CONVERSATION]

    Arguments:
      [CONVERSATION]
              Which conversation: the start of its id, or CHANNEL/CHAT

    Options:
          --agent <NAME>
              For this agent, not for the one that the turn addresses

          --at <SEQ>
              As if the turn with this seq were the newest

          --stats
              Say how many rows were read, and what each part of the prompt costs

          --transcript <FILE>
              Read the conversation from this JSON file, or from an export; `-` is stdin. The prompt is
              printed as JSON

          --format <FORMAT>
              How to print it

              Possible values:
              - text: For people
              - json: For programs

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Options of every command:
      -c, --config <FILE>
              The configuration file

      -v, --verbose...
              Log more: once for debug, twice for trace

      -q, --quiet...
              Log less: once for warnings, twice for errors only

          --log-format <FORMAT>
              How log lines look; wins over the configuration

              Possible values:
              - auto: Text; without time and colours under systemd
              - text: Text with time
              - json: One JSON object a line

    Examples:
      vocative prompt acme/#general
      vocative prompt 0193 --agent iris --at 512 --stats
      vocative prompt --transcript case.json --format json

    A conversation is named by the start of its id (see `vocative conversations list`), or by channel
    and chat: acme/#general, acme/C0123ABCD, home/-1001234567890.
    "##);
    }

    #[test]
    fn the_help_of_conversations_show() {
        insta::assert_snapshot!(help(&["conversations", "show"]), @r##"
    Show the turns of one conversation, in the order of the room

    Usage: vocative conversations show [OPTIONS] <CONVERSATION>

    Arguments:
      <CONVERSATION>
              Which one: the start of its id, or CHANNEL/CHAT

    Options:
          --limit <N>
              Only the newest so many turns

              [default: 50]

          --before <SEQ>
              Only what stands before the turn with this seq: the next page, back in time

          --timeline
              Everything that happened, in one order: also tool calls and their results, deleted turns,
              runs, posts and summaries

          --format <FORMAT>
              How to print them

              Possible values:
              - table: For people
              - json:  For programs

              [default: table]

      -h, --help
              Print help (see a summary with '-h')

    Options of every command:
      -c, --config <FILE>
              The configuration file

      -v, --verbose...
              Log more: once for debug, twice for trace

      -q, --quiet...
              Log less: once for warnings, twice for errors only

          --log-format <FORMAT>
              How log lines look; wins over the configuration

              Possible values:
              - auto: Text; without time and colours under systemd
              - text: Text with time
              - json: One JSON object a line

    A conversation is named by the start of its id (see `vocative conversations list`), or by channel
    and chat: acme/#general, acme/C0123ABCD, home/-1001234567890.
    "##);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let cases = [
            "vocative",
            "vocative prompt",
            "vocative prompt acme/#general --transcript x.json",
            "vocative prompt --transcript x.json --at 3",
            "vocative check --probe acme/C1",
            "vocative demo --fault drop-answer",
            "vocative run -v -q",
            "vocative conversations list --limit 0",
            "vocative events",
            "vocative events acme/#general --after -1",
            "vocative events acme/#general --after soon",
            "vocative conversations search acme/#general",
            "vocative conversations title acme/#general",
            "vocative conversations show acme/#general --before 0",
            "vocative prompt acme/#general --at=-5",
            "vocative selftest sim --seeds 0",
            "vocative config slack-manifest --public-url https://bot.example.org",
        ];
        for case in cases {
            assert!(Cli::try_parse_from(case.split(' ')).is_err(), "{case}");
        }
    }
}
