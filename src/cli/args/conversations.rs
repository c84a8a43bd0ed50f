//! What `vocative conversations` and `vocative summary` take.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use vocative_core::search::moment::{MOMENTS, moment_ms};

use super::TableFormat;
use super::examples::{CONVERSATION_NAMES, EXPORT_EXAMPLES};
use crate::cli::markdown::ShownZone;

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
    /// A message need not have all of the words; rare ones weigh more, and other forms of a word
    /// count. Without any word it shows the newest turns.
    #[command(after_long_help = CONVERSATION_NAMES)]
    Search(SearchArgs),
    /// Figures of a conversation and its threads: messages, answers, times, tokens, costs, thumbs
    #[command(alias = "statistics")]
    Stats(StatsArgs),
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
    /// For programs (one message a line), for people, or as the messages of a provider's API
    #[arg(long, value_name = "FORMAT", default_value = "jsonl")]
    pub format: ExportFormat,
    /// With openai and anthropic: whose answers are the assistant's; every agent's if not given
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,
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
    pub timezone: ShownZone,
}

/// How a conversation is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// One message a line, as `vocative prompt --transcript` reads it
    Jsonl,
    /// To read
    Markdown,
    /// The messages of OpenAI's Chat Completions
    Openai,
    /// The messages of Anthropic's API, where user and assistant take turns
    Anthropic,
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

/// What `vocative conversations stats` takes.
#[derive(Debug, Args)]
pub struct StatsArgs {
    /// Which one: the start of its id, or CHANNEL/CHAT
    pub conversation: String,
    /// From when on: 2h, 30d, 2026-11-22, "2026-11-22 10:30" (UTC)
    #[arg(long, value_name = "TIME", default_value = "30d")]
    pub since: String,
    /// How the figures look
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: TableFormat,
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
    /// The most conversations to list
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
    /// How many turns to show, the newest
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
    /// What to look for: the more of the words a message has, the higher it ranks. "Quotes" for a phrase, +word for
    /// one that must be there, a star for the beginning of a word
    #[arg(required_unless_present_any = ["from", "after", "before", "files"])]
    pub query: Vec<String>,
    /// Another wording of the same; may be given several times
    #[arg(long = "or", value_name = "WORDS")]
    pub wordings: Vec<String>,
    /// Only what this person said: a shown name, a username or the platform's id
    #[arg(long, value_name = "NAME")]
    pub from: Option<String>,
    /// Only what was said on this day or later, or since this time (UTC)
    #[arg(long, value_name = "DAY", value_parser = moment)]
    pub after: Option<i64>,
    /// Only what was said before this day or time (UTC)
    #[arg(long, value_name = "DAY", value_parser = moment)]
    pub before: Option<i64>,
    /// Only messages with a file; with NAME in its name, if that is given
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "")]
    pub files: Option<String>,
    /// The most hits to show
    #[arg(long, value_name = "N", default_value = "20")]
    pub limit: NonZeroUsize,
    /// Also in the room of a thread, and in the threads of the room
    #[arg(long)]
    pub threads: bool,
    /// How to print them
    #[arg(long, value_name = "FORMAT", default_value = "table")]
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
    /// Also those that stand for turns which went by their age: what only they remember is lost
    #[arg(long)]
    pub forget_expired: bool,
}

fn moment(text: &str) -> Result<i64, String> {
    moment_ms(text).ok_or_else(|| format!("{text:?} is not {MOMENTS}"))
}
