//! Settings of agents.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::config::answer_form::AnswerForm;
use crate::config::presence::EnabledShape;
use crate::config::resolve::micros;
use crate::config::shape::{PromptShape, forms};
use crate::config::template::Template;
use crate::config::units::Seconds;
use crate::tools::ApprovalSettings;
use vocative_core::addressing::Overlap;
use vocative_core::approving::AfterUntrusted;
use vocative_core::ids::AgentName;
use vocative_core::options::{AssemblerOptions, MemoryMode, RecallMode};
use vocative_core::presence::Presence;
use vocative_core::prompting::Example;
use vocative_core::routing;
use vocative_core::running::budget::RunBudget;
use vocative_core::search::SearchReach;

/// An agent as it is written, with the defaults of what is not. A setting is read from here, but for those that come to
/// something else than what is written: these are in [`Agent`], and only `config` sees them here.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(description = "An agent.")]
pub struct AgentSettings {
    /// Another agent, whose settings hold for what this one does not set.
    pub(in crate::config) like: Option<String>,
    /// The name that people see.
    pub(in crate::config) display_name: Option<String>,
    /// Its picture where posts stand under its name (`custom_names`): an emoji between colons, or an address.
    #[schemars(regex(pattern = r"^(:[a-z0-9_+'-]{1,100}:|https://[^\s]{1,500})?$"))]
    pub icon: String,
    /// Further names by which people address it.
    pub aliases: Vec<String>,
    /// The system instructions, a template.
    pub(in crate::config) instructions: String,
    /// A file with the system instructions.
    pub(in crate::config) instructions_file: Option<PathBuf>,
    /// What stands behind the history of a prompt, a template.
    pub(in crate::config) situation: String,
    /// Questions with the answers that it is to give, before what was said.
    pub examples: Vec<Example>,
    /// How much of what was said before its prompts show: full, none, or last N.
    pub(in crate::config) history: String,
    /// A name from `[models]`.
    pub model: String,
    /// The model that makes its summaries: a name from `[models]`, or `offline`.
    pub summary_model: Option<String>,
    /// Whether that model titles its conversations that have no name.
    pub titles: bool,
    /// Names from `[channels]` that it serves, or `*`.
    pub(in crate::config) channels: Vec<String>,
    /// Seconds that one run may take.
    #[schemars(range(min = 1, max = 86_400))]
    pub run_deadline_s: Seconds,
    /// Attempts of one run.
    #[schemars(range(min = 1, max = 100))]
    pub max_attempts: u32,
    /// Seconds that a question is tried while the model can't answer.
    #[schemars(range(min = 1, max = 604_800))]
    pub answer_within_s: Seconds,
    /// What becomes of a message to it while an earlier one still waits for its answer.
    pub overlap: Overlap,
    /// What its model may use while it works on an answer.
    pub(in crate::config) tools: Vec<String>,
    /// What `conversation_search` searches.
    pub search_reach: SearchReach,
    /// What is looked up in the room for a question.
    pub(in crate::config) recall: RecallMode,
    /// The most tokens of what is looked up without the model asking for it.
    #[schemars(range(max = 100_000))]
    pub(in crate::config) recall_max_tokens: usize,
    /// What it remembers of what people tell it.
    pub(in crate::config) memory: MemoryMode,
    /// The model that reads settled conversations for `memory = "auto"`: a name from `[models]`.
    pub memory_model: Option<String>,
    /// Seconds without a word after which a conversation is read for memory.
    #[schemars(range(min = 1, max = 86_400))]
    pub memory_after_quiet_s: Seconds,
    /// Tokens that reading for memory may take of one channel in a UTC day; 0 = no limit.
    pub memory_tokens_per_day: u64,
    /// Model calls of one run.
    #[schemars(range(min = 1, max = 100))]
    pub max_steps: u32,
    /// Seconds that one tool call may take.
    #[schemars(range(min = 1, max = 3600))]
    pub tool_timeout_s: Seconds,
    /// Seconds that people have to answer a question of its model.
    #[schemars(range(min = 1, max = 2_592_000))]
    pub question_expires_s: Seconds,
    /// The models that a question may ask for in place of its own.
    pub models: Vec<String>,
    /// Those of its tools whose text is the answer: once a call of one is done, the model is not asked again.
    pub stop_after_tools: Vec<String>,
    /// Those of which a failed call ends the run.
    pub stop_after_failed_tools: Vec<String>,
    /// What its model is to call first: auto, required, none, or a tool.
    pub(in crate::config) tool_choice: String,
    /// A JSON schema that its answers must have, as text.
    pub(in crate::config) answer_schema: Option<String>,
    /// A file with that schema.
    pub(in crate::config) answer_schema_file: Option<PathBuf>,
    /// Its hooks, in the order in which they are asked.
    pub hooks: Vec<String>,
    /// The rooms where its tool `ask_human` asks, one of each channel.
    pub(in crate::config) experts: Vec<String>,
    /// Names from `[knowledge]`: the collections that its tool `knowledge_search` searches.
    pub knowledge: Vec<String>,
    /// Names of skills that it may read with its tool `read_skill`, of those in `skills.folders`.
    pub skills: Vec<String>,
    /// What it is for, in words for agents that may ask it.
    pub purpose: String,
    /// Other agents, and networks, that its model may give tasks.
    pub(in crate::config) delegates: Vec<String>,
    /// What those are shown besides their task.
    pub delegates_see: DelegatesSee,
    /// Tool calls of one run.
    #[schemars(range(min = 1, max = 1000))]
    pub calls_per_run: u32,
    /// Tokens of one run, prompts and answers of all its model calls; 0 = no limit.
    pub(in crate::config) tokens_per_run: u64,
    /// What the model calls of one run may cost; 0 = no limit.
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub(in crate::config) cost_per_run: f64,
    /// Seconds for which one run may be worked on, all its attempts together; 0 = no limit.
    #[schemars(range(max = 604_800))]
    pub(in crate::config) seconds_per_run: u64,
    /// When calls of its tools that act wait for a person, besides what the tools say.
    #[schemars(schema_with = "forms")]
    pub(in crate::config) approval: Option<Value>,
    /// Who may decide about them, besides what the tools say.
    #[schemars(schema_with = "forms")]
    pub(in crate::config) approvers: Option<Value>,
    /// Seconds that they wait at most.
    #[schemars(schema_with = "forms")]
    pub(in crate::config) approval_expires_s: Option<Value>,
    /// What becomes of calls of its tools that act once their run has read what its asker did not write.
    pub(in crate::config) after_untrusted: Option<AfterUntrusted>,
    /// Where, for whom and when it works.
    pub(in crate::config) enabled: EnabledShape,
    /// How its prompts are assembled.
    pub(in crate::config) prompt: PromptShape,
}

/// What agents are shown that another one gives a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DelegatesSee {
    /// The task alone.
    Task,
    /// The room too, as the agent would see it that was asked there.
    Room,
}

impl AgentSettings {
    /// What one run may use.
    #[must_use]
    pub fn budget(&self) -> RunBudget {
        RunBudget {
            tokens: self.tokens_per_run,
            cost_micros: micros(self.cost_per_run),
            worked_ms: self.seconds_per_run * 1_000,
        }
    }

    /// Whether the agents that it delegates to are shown the room.
    #[must_use]
    pub fn delegates_see_room(&self) -> bool {
        self.delegates_see == DelegatesSee::Room
    }
}

/// An agent: its settings as written, and what the checks made of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Agent {
    /// Its name in the configuration.
    pub name: AgentName,
    /// The settings as written; lists name each thing once.
    pub settings: AgentSettings,
    /// The name that people see.
    pub display_name: String,
    /// The system instructions.
    pub instructions: Template,
    /// The text behind the history of a prompt.
    pub situation: Template,
    /// The channels it serves.
    pub channels: ChannelChoice,
    /// The tools that its model may use while it works on an answer; each once.
    pub tools: Vec<String>,
    /// The tool that its model must call first in a run.
    pub first_tool: FirstTool,
    /// Where, for whom and when it works.
    pub presence: Presence,
    /// The form that its answers must have; its instructions contain it, too.
    pub answer_form: Option<AnswerForm>,
    /// The platform's id of the chat where experts are asked, by channel.
    pub experts: BTreeMap<String, String>,
    /// The agents and networks that its model may ask; each once.
    pub delegates: Vec<AgentName>,
    /// When calls of its acting tools wait for a person.
    pub approval: ApprovalSettings,
    /// How its prompts are assembled.
    pub prompt: AssemblerOptions,
    /// The network that this entry stands for; `None` = it is an agent.
    pub network: Option<Network>,
}

/// A network, which is addressed like an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// Its agents and rules.
    pub network: routing::Network,
    /// The model of the routing agent; `None` = the default agent's.
    pub router_model: Option<String>,
    /// The purposes of its agents.
    pub descriptions: BTreeMap<AgentName, String>,
}

impl Agent {
    /// Every name that addresses the agent: its own name, its display name and its aliases, each once if case is
    /// ignored.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = vec![self.name.as_str()];
        for name in std::iter::once(self.display_name.as_str())
            .chain(self.settings.aliases.iter().map(String::as_str))
        {
            let folded = name.to_lowercase();
            if !names.iter().any(|known| known.to_lowercase() == folded) {
                names.push(name);
            }
        }
        names
    }

    /// For a network: the agents that may be called for it; empty for an agent.
    #[must_use]
    pub fn callable(&self) -> BTreeSet<&AgentName> {
        let network = self.network.as_ref();
        network.map_or_else(BTreeSet::new, |it| it.network.callable())
    }
}

/// The channels an agent serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelChoice {
    /// All channels, including those that are added later.
    All,
    /// The named channels.
    Named(Vec<String>),
}

impl ChannelChoice {
    /// Whether the channel is one of them.
    #[must_use]
    pub fn has(&self, channel: &str) -> bool {
        match self {
            Self::All => true,
            Self::Named(names) => names.iter().any(|name| name == channel),
        }
    }
}

/// What the model of an agent must call first in a run; later calls are up to the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FirstTool {
    /// Any tool, or none.
    #[default]
    Free,
    /// It must call a tool.
    Any,
    /// It must call this tool.
    Named(String),
    /// It calls no tool, also not later; it is only told of its tools.
    Never,
}
