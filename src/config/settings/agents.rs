//! Agents.

use std::collections::{BTreeMap, BTreeSet};

use crate::config::answer_form::AnswerForm;
use crate::config::template::Template;
use crate::tools::ApprovalSettings;
use vocative_core::addressing::Overlap;
use vocative_core::ids::AgentName;
use vocative_core::options::AssemblerOptions;
use vocative_core::presence::Presence;
use vocative_core::prompting::Example;
use vocative_core::routing;
use vocative_core::running::budget::RunBudget;
use vocative_core::search::SearchReach;

/// An agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Agent {
    /// Its name in the configuration.
    pub name: AgentName,
    /// The name that people see.
    pub display_name: String,
    /// Its picture where posts stand under its name; empty = the bot's.
    pub icon: String,
    /// Further names by which people address it.
    pub aliases: Vec<String>,
    /// The system instructions.
    pub instructions: Template,
    /// What stands behind the history of a prompt.
    pub situation: Template,
    /// Questions with the answers that it is to give.
    pub examples: Vec<Example>,
    /// Its model's name; `Config::models` has it.
    pub model: String,
    /// The model that makes its summaries; not set: the one above. `offline` is built in.
    pub summary_model: Option<String>,
    /// Whether that model titles its conversations that have no name.
    pub titles: bool,
    /// The model that reads settled conversations; not set: the one for summaries, else the one that answers.
    pub memory_model: Option<String>,
    /// How long nobody may have said anything before a conversation is read for memory, in milliseconds.
    pub memory_after_quiet_ms: i64,
    /// Tokens that this may take of one channel in a UTC day; 0 = no limit.
    pub memory_tokens_per_day: u64,
    /// The channels it serves.
    pub channels: ChannelChoice,
    /// How long one run may take.
    pub run_deadline_ms: u64,
    /// Attempts of one run.
    pub max_attempts: u32,
    /// How long a question is tried while the model can't answer.
    pub answer_within_ms: u64,
    /// The models that a question may ask for in place of its own, by their configured names; each once.
    pub models: Vec<String>,
    /// What becomes of a message to it while an earlier one still waits for its answer.
    pub overlap: Overlap,
    /// What its model may use while it works on an answer; each once.
    pub tools: Vec<String>,
    /// Those of them whose text is the answer; each once.
    pub stop_after_tools: Vec<String>,
    /// Those of which a failed call ends the run; each once.
    pub stop_after_failed_tools: Vec<String>,
    /// What its model is to call first in a run.
    pub first_tool: FirstTool,
    /// Where, for whom and when it works.
    pub presence: Presence,
    /// The form that its answers must have; its instructions say it, too.
    pub answer_form: Option<AnswerForm>,
    /// Its hooks, in the order in which they are asked; each once.
    pub hooks: Vec<String>,
    /// The collections of documents that it may search; each once.
    pub knowledge: Vec<String>,
    /// The names of its skills.
    pub skills: Vec<String>,
    /// What `conversation_search` searches.
    pub search_reach: SearchReach,
    /// Model calls of one run.
    pub max_steps: u32,
    /// How long one tool call may take.
    pub tool_timeout_ms: u64,
    /// How long people have to answer a question of its model, in milliseconds.
    pub question_expires_ms: i64,
    /// The platform's id of the chat where experts are asked, by channel.
    pub experts: BTreeMap<String, String>,
    /// What it is for, in words for agents that may ask it.
    pub purpose: String,
    /// The agents and networks that its model may ask; each once.
    pub delegates: Vec<AgentName>,
    /// Whether they are shown the room.
    pub delegates_see_room: bool,
    /// Tool calls of one run.
    pub calls_per_run: u32,
    /// What one run may use.
    pub budget: RunBudget,
    /// When calls of its tools that act wait for a person.
    pub approval: ApprovalSettings,
    /// How its prompts are assembled.
    pub prompt: AssemblerOptions,
    /// The network that it is the name of; `None`: it is an agent.
    pub network: Option<Network>,
}

/// A network, which is addressed as an agent is.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// Its agents and rules.
    pub network: routing::Network,
    /// The model of the routing agent; not set: the default agent's.
    pub router_model: Option<String>,
    /// What its agents are for.
    pub descriptions: BTreeMap<AgentName, String>,
}

impl Agent {
    /// Every text that addresses the agent: its name, its display name and its aliases, each once
    /// whatever its case.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = vec![self.name.as_str()];
        for name in std::iter::once(self.display_name.as_str())
            .chain(self.aliases.iter().map(String::as_str))
        {
            let folded = name.to_lowercase();
            if !names.iter().any(|known| known.to_lowercase() == folded) {
                names.push(name);
            }
        }
        names
    }

    /// Of a network, the agents that may be called for it; of an agent, nobody.
    #[must_use]
    pub fn callable(&self) -> BTreeSet<&AgentName> {
        let network = self.network.as_ref();
        network.map_or_else(BTreeSet::new, |it| it.network.callable())
    }
}

/// The channels an agent serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelChoice {
    /// All, those that are added later too.
    All,
    /// Those named.
    Named(Vec<String>),
}

impl ChannelChoice {
    /// Whether the channel is among them.
    #[must_use]
    pub fn has(&self, channel: &str) -> bool {
        match self {
            Self::All => true,
            Self::Named(names) => names.iter().any(|name| name == channel),
        }
    }
}

/// What the model of an agent is to call first in a run; afterwards it calls as it likes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FirstTool {
    /// What it likes, or nothing.
    #[default]
    Free,
    /// Some tool.
    Any,
    /// This tool.
    Named(String),
    /// Nothing, also not later: it is told of its tools and calls none.
    Never,
}
