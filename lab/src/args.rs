//! The command line of the laboratory.

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Kills the daemon again and again, or simulates it, and counts what is lost or doubled.
#[derive(Debug, Parser)]
#[command(name = "vocative-lab", version)]
pub(crate) struct LabCli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: LabCommand,
}

/// What `vocative-lab` can do.
#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
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
    /// rooms are searched as by `crash`, and what was captured is compared with what was said.
    /// Exit code 1 if something is wrong; then the seed and its story are shown.
    Sim(SimArgs),
    /// Plant facts in a room, ask for them, and count what is found
    ///
    /// Draws a room in which facts were said once, in passing, between lines that share their words, and asks for
    /// them in several ways. Vocative's search is compared with what there would be otherwise: SQLite's full
    /// text, and the newest lines of the room.
    Recall(RecallArgs),
    /// Read a folder of drawn documents, and measure what that takes
    ///
    /// Draws documents in Markdown, reads them as the daemon does into a store on the disk, then again as they are, then with
    /// one of them changed and one gone, and searches in them. Prints time, size and what a changed file costs.
    Documents(DocumentsArgs),
    /// Have an agent learn from rooms, ask it 200 questions, and count what it recalls where it must not
    ///
    /// Draws people who tell facts in public and private rooms and in direct chats, correct them, take them back, tell
    /// them about others, and one who wants to poison. The product's own learner reads the rooms with a model that finds every
    /// fact and believes everything it reads. Then each fact is asked for where it should be known and where it must not.
    /// Exit code 1 if anything is recalled where it must not be, whatever the rest says.
    Memory(MemoryArgs),
    /// Fold conversations again and again, and count what their summaries still say
    ///
    /// Draws conversations in which names, numbers, decisions and promises are said once, has the daemon's own
    /// worker fold them, and counts by kind what is left after one, two and more folds: without a model, and with a
    /// scripted one that keeps all it is asked to keep.
    Summaries(SummariesArgs),
    /// Start many idle daemons on this machine, and measure what they take
    ///
    /// Each has a database and a Telegram of its own, in which nobody says anything. Prints how long each took until it
    /// polled, what memory they share out among them, and the processor's time of an idle minute.
    Cells(CellsArgs),
}

/// What `vocative-lab cells` takes.
#[derive(Debug, Args)]
pub(crate) struct CellsArgs {
    /// How many daemons
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = cells_of)]
    pub(crate) count: usize,
}

/// What `vocative-lab documents` takes.
#[derive(Debug, Args)]
pub(crate) struct DocumentsArgs {
    /// How many documents
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(10..=100_000))]
    pub(crate) documents: u32,
    /// How many sections each has, of about 60 words
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) sections: u32,
    /// The seed that they are drawn from, or random
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = seed_of)]
    pub(crate) seed: u64,
}

/// What `vocative-lab memory` takes.
#[derive(Debug, Args)]
pub(crate) struct MemoryArgs {
    /// The seed that people and facts are drawn from, or random
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = seed_of)]
    pub(crate) seed: u64,
    /// How many entries the agent has when the time of a prompt is measured
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1_000..=100_000))]
    pub(crate) entries: u32,
}

/// What `vocative-lab summaries` takes.
#[derive(Debug, Args)]
pub(crate) struct SummariesArgs {
    /// How many lines a conversation has
    #[arg(long, value_name = "N", default_value_t = 600, value_parser = clap::value_parser!(u32).range(100..=5_000))]
    pub(crate) lines: u32,
    /// How many conversations; their seeds follow the first one's
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) conversations: u64,
    /// The first conversation's seed, or random
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = seed_of)]
    pub(crate) seed: u64,
    /// Also judge a model behind this address (OpenAI's protocol), such as http://127.0.0.1:11434/v1
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// The server's name of that model
    #[arg(long, value_name = "NAME", default_value = "llama3.2")]
    pub(crate) model: String,
}

/// What `vocative-lab recall` takes.
#[derive(Debug, Args)]
pub(crate) struct RecallArgs {
    /// How many lines the room has
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1_000..))]
    pub(crate) lines: u32,
    /// How many rooms; their seeds follow the first one's
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rooms: u64,
    /// The first room's seed, or random
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = seed_of)]
    pub(crate) seed: u64,
    /// Also name the questions whose answer Vocative did not find among its first five
    #[arg(long)]
    pub(crate) missed: bool,
    /// Also ask with vectors of this server (OpenAI's protocol), such as http://127.0.0.1:8090/v1
    #[arg(long, value_name = "URL")]
    pub(crate) embeddings: Option<String>,
    /// The server's name of the embedding model
    #[arg(long, value_name = "NAME", default_value = "all-MiniLM-L6-v2")]
    pub(crate) model: String,
}

/// What `vocative-lab sim` takes.
#[derive(Debug, Args)]
pub(crate) struct SimArgs {
    /// How many worlds
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seeds: u64,
    /// The first one's seed, or random; the others follow
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = seed_of)]
    pub(crate) seed: u64,
    /// Only this platform
    #[arg(long, value_name = "PLATFORM")]
    pub(crate) platform: Option<CrashPlatform>,
    /// Things that people do, or that happen to the network, in each world
    #[arg(long, value_name = "N", default_value_t = 24)]
    pub(crate) steps: usize,
    /// Break a promise on purpose, to see that it is noticed (most need the feature crash-points)
    #[arg(long, value_name = "PROMISE")]
    pub(crate) sabotage: Option<String>,
    /// Tell the whole story of one seed instead
    #[arg(long)]
    pub(crate) trace: bool,
    /// Name the worlds in which something is wrong, and end with 0 all the same
    #[arg(long, conflicts_with = "trace")]
    pub(crate) report_only: bool,
    /// End with the first world in which something is wrong
    #[arg(long, conflicts_with = "trace")]
    pub(crate) until_wrong: bool,
    /// In one world in three people also ask for reminders, and agree to them by cards
    #[arg(long)]
    pub(crate) plans: bool,
    /// In one world in N a network of random rules answers
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "3", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) networks: Option<u64>,
}

/// Drawn seeds are below this: short enough to be typed.
const DRAWN_SEEDS: u64 = 1_000_000_000_000;

/// A number of daemons.
fn cells_of(text: &str) -> Result<usize, String> {
    let count = text
        .parse()
        .ok()
        .filter(|count| (1..=1_000).contains(count));
    count.ok_or_else(|| "is a number from 1 to 1000".to_owned())
}

/// A seed, or one that is drawn.
fn seed_of(word: &str) -> Result<u64, String> {
    if word == "random" {
        return Ok(uuid::Uuid::new_v4().as_u64_pair().0 % DRAWN_SEEDS);
    }
    word.parse()
        .map_err(|_| "a seed is a number, or random".to_owned())
}

/// One of a number of shares: which, and of how many.
fn share_of(text: &str) -> Result<(usize, usize), String> {
    let numbers = text.split_once('/');
    let numbers = numbers.and_then(|(one, all)| Some((one.parse().ok()?, all.parse().ok()?)));
    let share = numbers.filter(|(one, all)| (1..=*all).contains(one));
    share.ok_or_else(|| "a share is K/N, K from 1 to N".to_owned())
}

/// What `vocative-lab crash` takes.
#[derive(Debug, Args)]
pub(crate) struct CrashArgs {
    /// Kills, over all platforms; each point is met at least once, which may be more
    #[arg(long, value_name = "N", default_value_t = 150)]
    pub(crate) rounds: u32,
    /// What chance begins with
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Only this platform
    #[arg(long, value_name = "PLATFORM")]
    pub(crate) platform: Option<CrashPlatform>,
    /// Only with this transport
    #[arg(long, value_name = "TRANSPORT")]
    pub(crate) transport: Option<CrashTransport>,
    /// Only this point, by its name in the table
    #[arg(long, value_name = "POINT")]
    pub(crate) point: Option<String>,
    /// Let the platforms fail, too: refusals, resets, late answers and late history
    #[arg(long)]
    pub(crate) faults: bool,
    /// Break a promise on purpose, to see that it is noticed (needs the feature crash-points)
    #[arg(long, value_name = "PROMISE")]
    pub(crate) sabotage: Option<String>,
    /// Only this piece of a row, by its name; rows are played in pieces of up to eight kills, and what
    /// fails says the command that plays its piece again, of which this is a part
    #[arg(long, value_name = "PIECE")]
    pub(crate) piece: Option<String>,
    /// Only one share of the pieces, as K/N: the shares 1/2 and 2/2 together are all
    #[arg(long, value_name = "K/N", value_parser = share_of, conflicts_with = "piece")]
    pub(crate) share: Option<(usize, usize)>,
    /// Say on stderr what each piece of a row gave as soon as it is played
    #[arg(long)]
    pub(crate) progress: bool,
}

/// A platform that the daemon is tested on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CrashPlatform {
    /// Slack
    Slack,
    /// Telegram, with on_unknown = "resend" and "hold"
    Telegram,
}

/// How a daemon that is tested hears its platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CrashTransport {
    /// It connects: sockets, polling
    Connect,
    /// It is called: HTTP requests, webhooks
    Http,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_one_of_a_number() {
        assert_eq!(share_of("2/3"), Ok((2, 3)));
        for wrong in ["0/2", "3/2", "2", "a/b", "1/0"] {
            assert!(share_of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_seed_is_a_number_or_drawn() {
        assert_eq!(seed_of("7"), Ok(7));
        assert!(seed_of("seven").is_err());
        for _ in 0..100 {
            assert!(seed_of("random").is_ok_and(|seed| seed < DRAWN_SEEDS));
        }
    }
}
