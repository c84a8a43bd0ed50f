//! The tools that an agent's model may call while it works on an answer.
//!
//! A tool is made for one run and sees only what it was made with: the model can't name another conversation. It knows
//! no agent, no platform and no provider's wire form. Nothing that a tool does ends a run: a wrong name, wrong
//! arguments, a panic and a time-out each become a result that says so.
//!
//! Reading order: this page, `arguments` (what is wrong with a call's arguments), `approval` (when a call waits for a
//! person), `digest` (when two calls are the same), `toolbox` (the tools of one run), `search` (`conversation_search`),
//! `knowledge` (`knowledge_search`), `read_skill`, `ask_person` and `ask_human` (questions to people), `ask_agent`
//! (tasks for other agents), `schedule` (reminders and tasks for later), `memory` (notes of what people tell it),
//! `set_state` (values of a network), `http` (requests by configuration), `command` (programs by configuration, made of
//! a `program`), `outside` (marks text from outside as data).

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

vocative_core::named! {
    /// A built-in tool. A new one is a file beside `search`, and its module, variant and arms here.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum BuiltIn {
        /// Searches what was said in the conversation.
        ConversationSearch = CONVERSATION_SEARCH,
        /// Searches the operator's documents.
        KnowledgeSearch = KNOWLEDGE_SEARCH,
        /// Reads the instructions for a kind of task.
        ReadSkill = READ_SKILL,
        /// Asks somebody in the room.
        AskPerson = ASK_PERSON,
        /// Asks in the agent's room of experts.
        AskHuman = ASK_HUMAN,
        /// Asks another agent.
        AskAgent = ASK_AGENT,
        /// Plans something for later.
        Schedule = SCHEDULE,
        /// Notes what people say.
        Remember = REMEMBER,
        /// Looks up notes.
        Recall = RECALL,
        /// Deletes notes.
        ForgetMemory = FORGET_MEMORY,
    }
}

/// A tool of an agent, with its limits.
#[derive(Clone, Debug)]
pub struct ToolUse {
    /// What the tool is made of.
    pub source: ToolSource,
    /// How often it may be called, and how long a call may take.
    pub limits: ToolLimits,
    /// The people whose questions it may be called for; `None` = everybody.
    pub allow_people: Option<Vec<PersonName>>,
    /// When calls wait for a person.
    pub approval: ApprovalSettings,
}

/// What a tool is made of.
#[derive(Clone, Debug)]
pub enum ToolSource {
    /// A tool of this program.
    BuiltIn(BuiltIn),
    /// An HTTP request.
    Http(Arc<HttpTool>),
    /// A program.
    Command(Arc<CommandTool>),
    /// Tools of an MCP server.
    Mcp(McpUse),
}

/// The tools of an MCP server that an agent has.
#[derive(Clone, Debug)]
pub struct McpUse {
    /// The server.
    pub server: Arc<McpServer>,
    /// The tools as the agent's settings name them: `files__*`, or `files__read` for one.
    pub name: String,
}

/// Whether a name in settings matches a tool: its own name, or `*` for all tools of its server.
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
    /// The time limit of a call in milliseconds; `None` = the agent's limit.
    pub timeout_ms: Option<u64>,
}

/// A person as settings name them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonName {
    /// The channel.
    pub channel: String,
    /// The platform's id of the person.
    pub id: String,
}

impl ToolUse {
    /// A built-in tool without limits of its own.
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

    /// Whether the tool may be called for all of these people.
    #[must_use]
    pub fn is_for(&self, people: &[PersonName]) -> bool {
        let is_allowed = |allowed: &Vec<PersonName>| {
            !people.is_empty() && people.iter().all(|person| allowed.contains(person))
        };
        self.allow_people.as_ref().is_none_or(is_allowed)
    }

    /// Waits, up to a limit, until it is known which tools this is.
    pub async fn known(&self) {
        if let ToolSource::Mcp(tools) = &self.source {
            tools.server.first_started().await;
        }
    }

    /// The tools for a run; of a server, the tools that it offers now.
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
    /// Reads the store.
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
    /// Plans for later; `None` = planning is not possible.
    pub planner: Option<Planner>,
    /// The agent's memory, if it has one.
    pub memory: Option<MemoryDesk>,
}

impl BuiltIn {
    /// The tools that an agent has if `memory` is set, and only then.
    pub const OF_MEMORY: [Self; 3] = [Self::Remember, Self::Recall, Self::ForgetMemory];

    /// Whether a call is made again if it is not known whether it acted.
    #[must_use]
    pub fn rule(self) -> CallRule {
        match self {
            // These only read, or ask once however often they are called.
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

    /// The approval settings, with this tool's defaults for what is not set. The person who asked decides about
    /// `schedule`, which acts in their name. Notes do not wait, unless their run has read a text that its askers did
    /// not write.
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

    /// The tool for a run; `None` if the run can't have it.
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

/// A tool that a model may call.
pub trait Tool: Send + Sync {
    /// Its name: `[a-z0-9_]`.
    fn name(&self) -> &str;

    /// What it is for, in words for the model.
    fn description(&self) -> &str;

    /// The JSON schema of its arguments: an object.
    fn schema(&self) -> Value;

    /// Whether a call is made again if it is not known whether it acted.
    fn rule(&self) -> CallRule;

    /// Everything besides the arguments that decides what a call does. If the definition has changed since a call was
    /// asked for, the call is not made.
    fn definition(&self) -> Value {
        Value::Null
    }

    /// Whether the tool's results were written by others than the people of the room. Such a result is never taken as a
    /// word of the person who asked.
    fn is_outside(&self) -> bool {
        true
    }

    /// Where its calls go, for a person who decides about one; empty = its name says everything.
    fn target(&self) -> String {
        String::new()
    }

    /// The question that a call asks a person, for a tool that does nothing else: the run waits for the answer, which
    /// is the call's result.
    fn question(&self, arguments: &Value) -> Option<Result<QuestionWish, ToolError>> {
        let _ = arguments;
        None
    }

    /// The task that a call gives another agent, for a tool that does nothing else: the run waits for its outcome,
    /// which is the call's result.
    fn task(&self, arguments: &Value) -> Option<Result<TaskWish, ToolError>> {
        let _ = arguments;
        None
    }

    /// Makes a call. The arguments fit the schema.
    fn call(
        &self,
        arguments: Value,
        context: CallContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>>;
}

/// What a tool knows of a call besides its arguments.
#[derive(Clone, Debug)]
pub struct CallContext {
    /// The call's own id, which stays the same when the call is made again.
    pub call: ToolCallId,
    /// How long the call may take, in milliseconds; `None` = the toolbox fills in its own limit.
    pub limit_ms: Option<u64>,
    /// What people answered to the tool's server, which asked them first.
    pub input: Option<InputGiven>,
    /// Receives the progress of the call.
    pub progress: Progress,
}

/// Receives the progress of a call. Only a tool's newest message is kept until somebody reads it.
#[derive(Clone, Debug)]
pub struct Progress(watch::Sender<String>);

impl Progress {
    /// The longest message that is kept, in characters.
    const MAX_CHARS: usize = 300;

    /// A new one, and its receiver.
    #[must_use]
    pub fn new() -> (Self, watch::Receiver<String>) {
        let (said, seen) = watch::channel(String::new());
        (Self(said), seen)
    }

    /// Reports progress in plain words; long texts are cut.
    pub fn say(&self, text: &str) {
        self.0
            .send_replace(text.chars().take(Self::MAX_CHARS).collect());
    }
}

/// What people answered to an MCP server.
#[derive(Clone, Debug, PartialEq)]
pub struct InputGiven {
    /// What the server asked.
    pub round: InputRound,
    /// The answers, by the server's own names.
    pub answers: BTreeMap<String, Value>,
}

impl CallContext {
    /// The context of a call with this id, and nothing else.
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

/// The result of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolOutput {
    /// For the model.
    pub content: String,
    /// The turns that it quotes.
    pub sources: Vec<TurnId>,
    /// Files that came with it.
    pub files: Vec<CallFile>,
}

/// Why a tool has no result, in words for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// The arguments are wrong.
    #[error("wrong arguments: {0}")]
    Arguments(String),
    /// The tool failed, and will not act later.
    #[error("the tool failed: {0}")]
    Failed(String),
    /// It is not known whether the tool acted.
    #[error("it is not known whether the tool acted: {0}")]
    Unknown(String),
    /// The tool's server asks people first; it has not acted.
    #[error("the server {} asks a person first, which is not possible here", .0.server)]
    InputRequired(Box<InputRound>),
}
