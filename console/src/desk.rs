//! What the console may ask of a daemon and have it do. The daemon implements it; nothing else leads out of this crate.

use std::future::Future;
use std::pin::Pin;

use serde_json::Value;
use tokio::sync::watch;

use crate::person::ConsoleUser;

/// What comes back: a view as JSON, in the names of the admin socket.
pub type DeskAnswer<'a, T = Value> =
    Pin<Box<dyn Future<Output = Result<T, DeskError>> + Send + 'a>>;

/// A daemon, as the console sees it.
pub trait Desk: Send + Sync + 'static {
    /// Reads something.
    fn ask(&self, ask: Ask) -> DeskAnswer<'_>;

    /// Does something, after a row of the audit says who does it. The row says at the end what became of it.
    fn act<'a>(&'a self, by: &'a ConsoleUser, deed: Deed) -> DeskAnswer<'a, Done>;

    /// Writes a row of the audit for what changes nothing. Where it fails, nothing may be shown.
    fn note<'a>(&'a self, by: &'a ConsoleUser, trace: Trace) -> DeskAnswer<'a, ()>;

    /// Changes with every commit; `None` where nothing commits.
    fn commits(&self) -> Option<watch::Receiver<()>>;

    /// The time, in milliseconds since the Unix epoch; only shown.
    fn now_ms(&self) -> i64;
}

/// Why the desk did not do or show something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeskError {
    /// It is not there.
    Missing(String),
    /// It was decided before, or is another one than was looked at.
    Over(String),
    /// It is for somebody else to decide.
    NotTheirs(String),
    /// The request is wrong.
    Wrong(String),
    /// The daemon can't now.
    Unavailable(String),
}

impl DeskError {
    /// Why, in words.
    #[must_use]
    pub fn what(&self) -> &str {
        match self {
            Self::Missing(what)
            | Self::Over(what)
            | Self::NotTheirs(what)
            | Self::Wrong(what)
            | Self::Unavailable(what) => what,
        }
    }
}

/// What is read. Lists are bounded by the desk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// The daemon at a glance.
    Status,
    /// A page of rooms.
    Rooms {
        /// Only those after this place of the list.
        before: Option<String>,
        /// Whether archived ones are listed, too.
        all: bool,
    },
    /// A room without what was said in it.
    RoomHead(String),
    /// A room with a page of its timeline.
    Room {
        /// Its id.
        id: String,
        /// Only what stands before the turn with this seq.
        before: Option<i64>,
    },
    /// The prompt that an agent would be sent.
    Prompt {
        /// The room's id.
        room: String,
        /// The agent; absent: the one that spoke last.
        agent: Option<String>,
        /// Only turns up to this capture order.
        at: Option<i64>,
    },
    /// The prompt that a run's model was sent.
    SentPrompt(String),
    /// The summaries of a room.
    Summaries(String),
    /// Runs of all rooms, newest first.
    Runs {
        /// Only those that are older than this run.
        before: Option<String>,
        /// How many.
        limit: usize,
    },
    /// All of one run.
    Run(String),
    /// What a run has said so far.
    RunText(String),
    /// Calls that wait for a person; with all that waited.
    Approvals {
        /// Whether those that were decided are listed, too.
        all: bool,
        /// Only those that are older than this one.
        before: Option<String>,
    },
    /// One of them, and whether somebody may allow it.
    Approval {
        /// Its id.
        id: String,
        /// The name of who looks.
        by: String,
    },
    /// Questions to people.
    Questions {
        /// Whether those that are over are listed, too.
        all: bool,
        /// Only those that are older than this one.
        before: Option<String>,
    },
    /// One of them.
    Question(String),
    /// Standing consents.
    Grants,
    /// Runs that wait.
    Queue,
    /// Posts and runs that wait for a person.
    Held,
    /// Runs and posts that were given up.
    Dead,
    /// What is to start at a time.
    Schedules {
        /// Whether what is over is listed, too.
        all: bool,
    },
    /// One of them.
    Schedule(i64),
    /// What agents remember.
    Memories {
        /// Only those that are older than the one with this number.
        before: Option<i64>,
    },
    /// What was said, by words.
    Search {
        /// The room's id.
        room: String,
        /// What to look for.
        query: String,
        /// Whether a thread's room and a room's threads are searched, too.
        threads: bool,
    },
    /// What calls of models cost.
    Costs {
        /// By what: `day`, `channel`, `room`, `person`, `agent`, `model`.
        by: String,
        /// From this time on, in milliseconds since the Unix epoch.
        since_ms: i64,
    },
    /// What servers of tools offer.
    McpTools,
    /// Skills of agents, and what of their folders can't be read.
    Skills,
    /// The settings in force with where each comes from.
    Settings,
    /// What an erasure would take away.
    ErasePlan(EraseChoice),
    /// Erasures that the console began since the daemon started, newest first.
    Erasures,
    /// Rows of the audit, newest first.
    Audit {
        /// Only those that are older than the one with this number.
        before: Option<i64>,
    },
}

/// What is to be erased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EraseChoice {
    /// Everything of a person: id, `@username` or name, with `CHANNEL/` before it where needed.
    Person(String),
    /// A room with its threads.
    Room(String),
}

/// What is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Stops a run.
    StopRun(String),
    /// Allows a call.
    Approve {
        /// Of which approval.
        id: String,
        /// The digest of what was looked at.
        digest: String,
        /// Whether the same call may be made for a day without asking.
        grant: bool,
        /// What the model and the room are told with it.
        note: Option<String>,
    },
    /// Forbids a call.
    Deny {
        /// Of which approval.
        id: String,
        /// What the model and the room are told with it.
        note: Option<String>,
    },
    /// Answers a question.
    AnswerQuestion {
        /// Its id.
        id: String,
        /// The answer.
        text: String,
    },
    /// Takes a question back.
    CancelQuestion(String),
    /// Takes a standing consent back.
    RevokeGrant(String),
    /// Decides about a held post or run.
    Release {
        /// Its id.
        id: String,
        /// Whether it is sent; else it is dropped.
        send: bool,
    },
    /// Decides about what was given up.
    DecideDead {
        /// Its id.
        id: String,
        /// Whether it is tried again; else it is dropped.
        retry: bool,
    },
    /// Changes a schedule.
    ChangeSchedule {
        /// Its number.
        id: i64,
        /// How: `pause`, `resume`, `run`, `cancel`.
        change: String,
    },
    /// Gives a room a title; without one, takes it away.
    Title {
        /// The room's id.
        room: String,
        /// The title.
        title: Option<String>,
    },
    /// Puts a room away, or takes it back.
    Archive {
        /// The room's id.
        room: String,
        /// Away, or back.
        archived: bool,
    },
    /// Has a room's summaries made again.
    RebuildSummaries(String),
    /// Forgets an entry of an agent's memory.
    ForgetMemory(i64),
    /// Approves tools of a server that are new or changed.
    ApproveTool {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
        /// The digest of what was looked at.
        digest: String,
    },
    /// Reads the configuration again.
    Reload,
    /// Begins to erase, with a search of the files at the end.
    Erase(EraseChoice),
}

/// What became of a deed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// In a sentence, for who did it.
    pub told: String,
}

/// What is noted besides deeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trace {
    /// Somebody came in.
    CameIn,
    /// Somebody went.
    Went,
    /// A look into a direct chat: the room's id.
    Looked(String),
    /// A look at the plan of an erasure.
    Planned,
}
