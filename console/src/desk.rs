//! What the console may read from a daemon and have it do. The daemon implements it; the console has no other way out.

use std::future::Future;
use std::pin::Pin;

use serde_json::Value;
use tokio::sync::watch;

use crate::person::ConsoleUser;

/// What the desk returns: a view as JSON, with the names of the admin socket.
pub type DeskAnswer<'a, T = Value> =
    Pin<Box<dyn Future<Output = Result<T, DeskError>> + Send + 'a>>;

/// A daemon, as the console sees it.
pub trait Desk: Send + Sync + 'static {
    /// Reads something.
    fn ask(&self, ask: Ask) -> DeskAnswer<'_>;

    /// Does something, after a row of the audit was written that says who does it. The outcome is added to the row at
    /// the end.
    fn act<'a>(&'a self, by: &'a ConsoleUser, deed: Deed) -> DeskAnswer<'a, Done>;

    /// Writes a row of the audit for an act that changes nothing. If that fails, nothing may be shown.
    fn note<'a>(&'a self, by: &'a ConsoleUser, trace: Trace) -> DeskAnswer<'a, ()>;

    /// Changes with every commit; `None` where nothing commits.
    fn commits(&self) -> Option<watch::Receiver<()>>;

    /// The time, in milliseconds since the Unix epoch; only shown.
    fn now_ms(&self) -> i64;
}

/// Why the desk did not do or show something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeskError {
    /// There is no such thing.
    Missing(String),
    /// It was decided before, or has changed since it was looked at.
    Over(String),
    /// Another person must decide it.
    NotTheirs(String),
    /// The request is wrong.
    Wrong(String),
    /// The daemon can't do it now.
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
        /// Only rooms after this place of the list.
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
        /// Only turns before the one with this seq.
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
        /// Only runs older than this one.
        before: Option<String>,
        /// How many.
        limit: usize,
    },
    /// All of one run.
    Run(String),
    /// What a run has said so far.
    RunText(String),
    /// Calls that wait for a person; with `all`, also those that were decided.
    Approvals {
        /// Whether decided ones are listed, too.
        all: bool,
        /// Only approvals older than this one.
        before: Option<String>,
    },
    /// One approval, and whether a given person may allow it.
    Approval {
        /// Its id.
        id: String,
        /// The name of the person who looks.
        by: String,
    },
    /// Questions to people.
    Questions {
        /// Whether questions that are over are listed, too.
        all: bool,
        /// Only questions older than this one.
        before: Option<String>,
    },
    /// One question.
    Question(String),
    /// Standing consents.
    Grants,
    /// Runs that wait.
    Queue,
    /// Posts and runs that wait for a person.
    Held,
    /// Runs and posts that were given up.
    Dead,
    /// Schedules.
    Schedules {
        /// Whether schedules that are over are listed, too.
        all: bool,
    },
    /// One schedule.
    Schedule(i64),
    /// What agents remember.
    Memories {
        /// Only entries older than the one with this number.
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
    /// The costs of model calls.
    Costs {
        /// The grouping: `day`, `channel`, `room`, `person`, `agent`, `model`.
        by: String,
        /// From this time on, in milliseconds since the Unix epoch.
        since_ms: i64,
    },
    /// The tools that MCP servers offer.
    McpTools,
    /// Skills of agents, and the parts of their folders that can't be read.
    Skills,
    /// The settings in force with where each comes from.
    Settings,
    /// What an erasure would delete.
    ErasePlan(EraseChoice),
    /// Erasures that the console began since the daemon started, newest first.
    Erasures,
    /// Rows of the audit, newest first.
    Audit {
        /// Only rows older than the one with this number.
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

/// An action of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Stops a run.
    StopRun(String),
    /// Allows a call.
    Approve {
        /// The approval's id.
        id: String,
        /// The digest of the call as the person saw it.
        digest: String,
        /// Whether the same call may be made for a day without asking.
        grant: bool,
        /// A note for the model and the room.
        note: Option<String>,
    },
    /// Forbids a call.
    Deny {
        /// The approval's id.
        id: String,
        /// A note for the model and the room.
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
    /// Decides about a run or post that was given up.
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
    /// Gives a room a title; without one, removes its title.
    Title {
        /// The room's id.
        room: String,
        /// The title.
        title: Option<String>,
    },
    /// Archives a room, or restores it.
    Archive {
        /// The room's id.
        room: String,
        /// Whether it is archived or restored.
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
        /// The digest of the tool as the person saw it.
        digest: String,
    },
    /// Reads the configuration again.
    Reload,
    /// Begins to erase, with a search of the files at the end.
    Erase(EraseChoice),
}

/// The result of a deed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// The result in a sentence, for the person who did it.
    pub told: String,
}

/// Acts other than deeds that are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trace {
    /// A person signed in.
    CameIn,
    /// A person signed out.
    Went,
    /// A look into a direct chat: the room's id.
    Looked(String),
    /// A look at the plan of an erasure.
    Planned,
}
