//! What an agent's model may call while it works on an answer.
//!
//! A tool is made for one run and sees what it was made with: the model can't name another
//! conversation. It knows no agent, no platform and no provider's wire form. Nothing a tool does
//! ends a run: a wrong name, wrong arguments, a panic and a time-out are results that say so.
//!
//! Reading order: this page, `arguments` (what is wrong with a call), `approval` (when a call
//! waits for a person), `digest` (what makes two calls the same), `toolbox`
//! (the tools of one run), `search` (`conversation_search`), `knowledge` (`knowledge_search`), `read_skill`,
//! `ask_person` and `ask_human` (questions to people), `ask_agent` (tasks for other agents), `schedule` (something for later),
//! `memory` (what it is told to keep in mind), `set_state` (values of a network), `http` (requests by configuration), `command` (programs by configuration, made of a `program`),
//! `outside` (what comes from outside is data).

mod approval;
mod arguments;
mod ask_agent;
mod ask_human;
mod ask_person;
pub mod command;
mod digest;
pub mod http;
pub(crate) mod knowledge;
pub mod mcp;
mod memory;
mod outside;
pub mod program;
mod read_skill;
mod schedule;
pub(crate) mod search;
mod set_state;
mod toolbox;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::watch;

pub use approval::{ApprovalExpiry, ApprovalSettings, CallApproval};
pub use arguments::{other_arguments, unknown_keywords, wrong_with_answer};
pub use ask_agent::{ASK_AGENT, AskAgent, Delegate, TaskWish};
pub use ask_human::{ASK_HUMAN, AskHuman};
pub use ask_person::{ASK_PERSON, AskPerson, QuestionTo, QuestionWish};
pub use command::CommandTool;
pub use digest::CallScope;
pub use http::HttpTool;
pub use knowledge::{KNOWLEDGE_SEARCH, KnowledgeSearch};
pub use memory::{FORGET_MEMORY, ForgetMemory, MemoryDesk, RECALL, REMEMBER, Recall, Remember};
pub use outside::for_people;
pub use read_skill::{READ_SKILL, ReadSkill};
pub use schedule::{Planner, SCHEDULE, Schedule};
pub use search::{
    CONVERSATION_SEARCH, ConversationSearch, HIT_MAX_CHARS, HITS_DEFAULT, HITS_MAX, HITS_MAX_TOKENS,
};
pub use set_state::{SET_STATE, SetState, StateDesk};
pub use toolbox::{RESULT_MAX_CHARS, ToolOutcome, Toolbox};

use self::mcp::McpServer;
use crate::embeddings::Embeddings;
use vocative_core::approving::ApprovalPolicy;
use vocative_core::eliciting::InputRound;
use vocative_core::ids::{ConversationId, ToolCallId, TurnId};
use vocative_core::search::SearchReach;
use vocative_core::skills::Skill;
use vocative_core::tool_call::CallRule;
use vocative_store::Reader;
use vocative_store::contract::CallFile;

/// A built-in tool. A new one is a file beside `search`, and a variant and two arms here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuiltIn {
    /// Searches what was said in the conversation.
    ConversationSearch,
    /// Searches the operator's documents.
    KnowledgeSearch,
    /// Reads instructions for a kind of task.
    ReadSkill,
    /// Asks somebody in the room.
    AskPerson,
    /// Asks in the agent's room of experts.
    AskHuman,
    /// Asks another agent.
    AskAgent,
    /// Plans something for later.
    Schedule,
    /// Notes what people tell it.
    Remember,
    /// Looks up what it noted.
    Recall,
    /// Takes notes away.
    ForgetMemory,
}

/// A tool of an agent, with its limits.
#[derive(Clone, Debug)]
pub struct ToolUse {
    /// What is called.
    pub source: ToolSource,
    /// How often, and how long.
    pub limits: ToolLimits,
    /// The people whose questions it may be called for; `None` = everybody's.
    pub allow_people: Option<Vec<PersonName>>,
    /// When calls wait for a person.
    pub approval: ApprovalSettings,
}

/// What a tool is made of.
#[derive(Clone, Debug)]
pub enum ToolSource {
    /// One of ours.
    BuiltIn(BuiltIn),
    /// A request.
    Http(Arc<HttpTool>),
    /// A program.
    Command(Arc<CommandTool>),
    /// Tools of a server.
    Mcp(McpUse),
}

/// The tools of a server that an agent has.
#[derive(Clone, Debug)]
pub struct McpUse {
    /// The server.
    pub server: Arc<McpServer>,
    /// As an agent names them: `files__*`, or `files__read` for one.
    pub name: String,
}

/// Whether a name stands for a tool: its own, or all of its server's.
#[must_use]
pub fn names(name: &str, tool: &str) -> bool {
    let of_server = name.strip_suffix('*').filter(|it| it.ends_with("__"));
    name == tool || of_server.is_some_and(|server| tool.starts_with(server))
}

/// How often a tool may be called, and how long a call may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolLimits {
    /// Calls in one run.
    pub calls_per_run: Option<u32>,
    /// Calls in one day (UTC) for one person.
    pub calls_per_day: Option<u32>,
    /// In milliseconds; `None` = as its agent has it.
    pub timeout_ms: Option<u64>,
}

/// A person, as settings name one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonName {
    /// The channel.
    pub channel: String,
    /// The platform's id.
    pub id: String,
}

impl ToolUse {
    /// A tool of ours, without limits of its own.
    #[must_use]
    pub fn built_in(tool: BuiltIn) -> Self {
        Self {
            source: ToolSource::BuiltIn(tool),
            limits: ToolLimits::default(),
            allow_people: None,
            approval: tool.approval(ApprovalSettings::default()),
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.source {
            ToolSource::BuiltIn(tool) => tool.name(),
            ToolSource::Http(tool) => &tool.settings.name,
            ToolSource::Command(tool) => &tool.settings.name,
            ToolSource::Mcp(tools) => &tools.name,
        }
    }

    /// Whether it may be called for all of these people.
    #[must_use]
    pub fn is_for(&self, people: &[PersonName]) -> bool {
        let is_allowed = |allowed: &Vec<PersonName>| {
            !people.is_empty() && people.iter().all(|person| allowed.contains(person))
        };
        self.allow_people.as_ref().is_none_or(is_allowed)
    }

    /// Waits, within a bound, until it is known what the tool offers.
    pub async fn known(&self) {
        if let ToolSource::Mcp(tools) = &self.source {
            tools.server.first_started().await;
        }
    }

    /// The tool for a run; of a server, what it offers now.
    #[must_use]
    pub fn open(&self, to: &BoundTo) -> Vec<Arc<dyn Tool>> {
        match &self.source {
            ToolSource::BuiltIn(tool) => tool.open(to).into_iter().collect(),
            ToolSource::Http(tool) => vec![Arc::new(Arc::clone(tool))],
            ToolSource::Command(tool) => vec![Arc::new(Arc::clone(tool))],
            ToolSource::Mcp(tools) => tools.server.tools(&tools.name),
        }
    }
}

/// What the tools of a run are made with: they see nothing else.
#[derive(Clone)]
pub struct BoundTo {
    /// Where it was said.
    pub store: Reader,
    /// The run's conversation.
    pub conversation: ConversationId,
    /// How far its agent may search.
    pub search_reach: SearchReach,
    /// The turns that are being answered.
    pub triggers: Vec<TurnId>,
    /// Whether a search requires all words, as the `toolpack` profile's does.
    pub is_strict: bool,
    /// The collections of documents that its agent may search there.
    pub knowledge: Vec<String>,
    /// The skills that its agent may read.
    pub skills: Vec<Arc<Skill>>,
    /// Makes vectors of queries, where a server is configured.
    pub embeddings: Option<Arc<Embeddings>>,
    /// The agents that its agent may ask.
    pub delegates: Vec<Delegate>,
    /// Plans for later; `None` = nothing can be planned.
    pub planner: Option<Planner>,
    /// What its agent remembers by, where it remembers.
    pub memory: Option<MemoryDesk>,
}

impl BuiltIn {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::ConversationSearch,
        Self::KnowledgeSearch,
        Self::ReadSkill,
        Self::AskPerson,
        Self::AskHuman,
        Self::AskAgent,
        Self::Schedule,
        Self::Remember,
        Self::Recall,
        Self::ForgetMemory,
    ];
    /// Those that an agent has with `memory`, and no other one.
    pub const OF_MEMORY: [Self; 3] = [Self::Remember, Self::Recall, Self::ForgetMemory];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ConversationSearch => CONVERSATION_SEARCH,
            Self::KnowledgeSearch => KNOWLEDGE_SEARCH,
            Self::ReadSkill => READ_SKILL,
            Self::AskPerson => ASK_PERSON,
            Self::AskHuman => ASK_HUMAN,
            Self::AskAgent => ASK_AGENT,
            Self::Schedule => SCHEDULE,
            Self::Remember => REMEMBER,
            Self::Recall => RECALL,
            Self::ForgetMemory => FORGET_MEMORY,
        }
    }

    /// What follows when it is not known whether a call acted.
    #[must_use]
    pub fn rule(self) -> CallRule {
        match self {
            // They only read, or ask once however often they are called.
            Self::ConversationSearch
            | Self::KnowledgeSearch
            | Self::ReadSkill
            | Self::AskPerson
            | Self::AskHuman
            | Self::AskAgent
            | Self::Recall => CallRule::Repeatable,
            Self::Schedule | Self::Remember | Self::ForgetMemory => CallRule::Keyed,
        }
    }

    /// What is set of its approvals, with what holds where nothing is: of what it does in a person's name that person
    /// decides; a note of what somebody said waits for nobody, unless its run has read what its askers did not write.
    #[must_use]
    pub fn approval(self, set: ApprovalSettings) -> ApprovalSettings {
        let own = Self::OF_MEMORY
            .contains(&self)
            .then_some(ApprovalPolicy::Never);
        ApprovalSettings {
            is_askers: self == Self::Schedule,
            policy: set.policy.or(own),
            ..set
        }
    }

    /// The tool of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// The tool for a run; `None` where it is not to be had.
    #[must_use]
    pub fn open(self, to: &BoundTo) -> Option<Arc<dyn Tool>> {
        let memory = || to.memory.clone();
        Some(match self {
            Self::ConversationSearch => Arc::new(ConversationSearch::new(to.clone())),
            Self::KnowledgeSearch => Arc::new(KnowledgeSearch::new(to)),
            Self::ReadSkill if to.skills.is_empty() => return None,
            Self::ReadSkill => Arc::new(ReadSkill::new(to)),
            Self::AskPerson => Arc::new(AskPerson),
            Self::AskHuman => Arc::new(AskHuman),
            Self::AskAgent if to.delegates.is_empty() => return None,
            Self::AskAgent => Arc::new(AskAgent::new(to.delegates.clone())),
            Self::Schedule => Arc::new(Schedule(to.planner.clone())),
            Self::Remember => Arc::new(Remember(memory()?)),
            Self::Recall => Arc::new(Recall(memory()?)),
            Self::ForgetMemory => Arc::new(ForgetMemory(memory()?)),
        })
    }
}

/// Something a model may call.
pub trait Tool: Send + Sync {
    /// Its name: `[a-z0-9_]`.
    fn name(&self) -> &str;

    /// What it is for, in words for the model.
    fn description(&self) -> &str;

    /// The JSON schema of its arguments: an object.
    fn schema(&self) -> Value;

    /// What follows when it is not known whether a call acted.
    fn rule(&self) -> CallRule;

    /// All that decides what a call does beside its arguments. A call that was asked for under another definition is
    /// not made.
    fn definition(&self) -> Value {
        Value::Null
    }

    /// Whether what it gives was written by others than the people of the room: a result of it is no word of its asker.
    fn is_outside(&self) -> bool {
        true
    }

    /// Where its calls go, for a person who is to allow one; empty = its name says all.
    fn target(&self) -> String {
        String::new()
    }

    /// The question that a call asks a person, of a tool that does nothing else: the run waits for the answer, which
    /// is the call's result.
    fn question(&self, arguments: &Value) -> Option<Result<QuestionWish, ToolError>> {
        let _ = arguments;
        None
    }

    /// The task that a call gives another agent, of a tool that does nothing else: the run waits for what comes of it,
    /// which is the call's result.
    fn task(&self, arguments: &Value) -> Option<Result<TaskWish, ToolError>> {
        let _ = arguments;
        None
    }

    /// Calls it. The arguments fit the schema.
    fn call(
        &self,
        arguments: Value,
        context: CallContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>>;
}

/// What a tool is told of a call beside its arguments.
#[derive(Clone, Debug)]
pub struct CallContext {
    /// The call's own id: the same however often it is made.
    pub call: ToolCallId,
    /// How long the call may take, in milliseconds; `None` = as the toolbox has it, which fills this in.
    pub limit_ms: Option<u64>,
    /// What people answered the tool's server that asked them first.
    pub input: Option<InputGiven>,
    /// Hears how far the call is.
    pub progress: Progress,
}

/// Hears how far a call is. Only the newest word of a tool is kept until somebody looks.
#[derive(Clone, Debug)]
pub struct Progress(watch::Sender<String>);

impl Progress {
    /// The longest word that is heard, in characters.
    const MAX_CHARS: usize = 300;

    /// With who looks.
    #[must_use]
    pub fn new() -> (Self, watch::Receiver<String>) {
        let (said, seen) = watch::channel(String::new());
        (Self(said), seen)
    }

    /// How far it is, in plain words; longer ones are cut.
    pub fn say(&self, text: &str) {
        self.0
            .send_replace(text.chars().take(Self::MAX_CHARS).collect());
    }
}

/// What people answered a server of tools.
#[derive(Clone, Debug, PartialEq)]
pub struct InputGiven {
    /// What it asked.
    pub round: InputRound,
    /// The answers, by its own names.
    pub answers: BTreeMap<String, Value>,
}

impl CallContext {
    /// A call of that id.
    #[must_use]
    pub fn of(call: ToolCallId) -> Self {
        Self {
            call,
            limit_ms: None,
            input: None,
            progress: Progress::new().0,
        }
    }
}

/// What a tool gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolOutput {
    /// For the model.
    pub content: String,
    /// Turns that it quotes.
    pub sources: Vec<TurnId>,
    /// Files that came with it.
    pub files: Vec<CallFile>,
}

/// Why a tool gave nothing, in words for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// The arguments must be others.
    #[error("wrong arguments: {0}")]
    Arguments(String),
    /// It failed, and will not act later.
    #[error("the tool failed: {0}")]
    Failed(String),
    /// Whether it acted is not known.
    #[error("it is not known whether the tool acted: {0}")]
    Unknown(String),
    /// Its server asks people first; it has not acted.
    #[error("the server {} asks a person first, which is not possible here", .0.server)]
    InputRequired(Box<InputRound>),
}
