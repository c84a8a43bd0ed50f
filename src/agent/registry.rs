//! The configured agents, swapped as a whole on reload.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::agent::attached::FilesInPrompts;
use crate::config::{Agent, AgentSettings, Template};
use crate::hooks::Hooks;
use crate::llm::Model;
use crate::tools::{Delegate, ToolUse};
use vocative_core::hooking::HookPoint;
use vocative_core::ids::AgentName;
use vocative_core::options::AssemblerOptions;
use vocative_core::place::ChatName;
use vocative_core::price::Prices;
use vocative_core::prompting::{ClassEstimate, TokenCounter};
use vocative_core::routing::Network;
use vocative_core::routing::router::RouterForm;
use vocative_core::running::budget::RunBudget;
use vocative_store::contract::TellingHook;

/// One configured agent, ready to work: its settings with everything that they refer to.
#[derive(Clone)]
pub struct AgentSpec {
    /// Its name.
    pub name: AgentName,
    /// Its configuration.
    pub agent: Arc<Agent>,
    /// Its instructions, with places for values; its skills follow them.
    pub instructions: Template,
    /// Its instructions in chats that add something to them.
    pub chat_instructions: BTreeMap<ChatName, Template>,
    /// How its prompts are assembled.
    pub options: AssemblerOptions,
    /// How its prompts are assembled in chats that have settings of their own.
    pub chat_options: BTreeMap<ChatName, AssemblerOptions>,
    /// The model that it asks.
    pub model: Arc<dyn Model>,
    /// The name, limits and prices of that model.
    pub model_use: ModelUse,
    /// The same agent with the models that are asked while this one can't answer, in that order; its prompts are made
    /// for each of them.
    pub fallbacks: Vec<Arc<AgentSpec>>,
    /// The same agent with the models that a question may ask for, each with its own `fallbacks`, by their configured
    /// names.
    pub choices: BTreeMap<String, Arc<AgentSpec>>,
    /// The configured name of the model with the provider's name of it: reports of tokens under the same key belong
    /// together.
    pub model_key: String,
    /// The counter for its prompts.
    pub counter: &'static dyn TokenCounter,
    /// Tokens of the model's whole context, if known.
    pub context_limit: Option<usize>,
    /// Tokens reserved for the answer.
    pub answer_reserve: usize,
    /// The model for its summaries; `None` = the built-in summariser, which needs no network.
    pub summary_model: Option<BackgroundModel>,
    /// The model that reads settled conversations for its memory; `None` = no such learning.
    pub memory_model: Option<BackgroundModel>,
    /// The attempts after which a run is given up.
    pub max_attempts: u32,
    /// How long after the question a run whose model can't answer is given up, in milliseconds.
    pub answer_within_ms: i64,
    /// The most tool calls of one run.
    pub calls_per_run: u32,
    /// What one run may use.
    pub budget: RunBudget,
    /// The tools that its model may use.
    pub tools: Vec<ToolUse>,
    /// Which of these it may use in chats that don't allow all.
    pub chat_tools: BTreeMap<ChatName, Vec<String>>,
    /// The hooks that are asked at points of its runs.
    pub hooks: Hooks,
    /// The models of its hooks that ask one whether a message was meant for the agent, by the hook's name.
    pub intent_models: BTreeMap<String, BackgroundModel>,
    /// The collections of documents that it may search, each with the chats where it may; `None` = in all of its
    /// chats.
    pub knowledge: BTreeMap<String, Option<BTreeSet<ChatName>>>,
    /// How its prompts show files.
    pub files: FilesInPrompts,
    /// The agents that its model may ask.
    pub delegates: Vec<Delegate>,
    /// The channels where a reply starts with the agent's name.
    pub prefixed_channels: BTreeSet<String>,
    /// The channels where its posts stand under its name.
    pub speaking_channels: BTreeSet<String>,
    /// The network whose name this is: that network's agents work on its runs. The other fields hold for the whole
    /// run and are those of its default agent.
    pub network: Option<Arc<NetworkSpec>>,
}

/// A configured network, ready to work.
pub struct NetworkSpec {
    /// Its agents and rules.
    pub network: Network,
    /// The model of its routing agent.
    pub router: BackgroundModel,
    /// The description of each of its agents.
    pub descriptions: BTreeMap<AgentName, String>,
    /// The names by which it is addressed.
    pub names: Vec<String>,
    /// The form in which its routing agent is asked: the first that the model did not refuse.
    pub asking: Mutex<RouterForm>,
}

impl NetworkSpec {
    /// The form in which its routing agent is asked.
    pub(super) fn asking(&self) -> RouterForm {
        *self.asking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the routing agent's model refuses all forms before this one.
    pub(super) fn learn_asking(&self, asking: RouterForm) {
        *self.asking.lock().unwrap_or_else(PoisonError::into_inner) = asking;
    }
}

impl AgentSpec {
    /// A configured agent with its model, and without what its settings refer to: no tools, hooks, other models.
    #[must_use]
    pub fn new(agent: Arc<Agent>, model: BackgroundModel) -> Self {
        let settings = &agent.settings;
        Self {
            name: agent.name.clone(),
            instructions: agent.instructions.clone(),
            chat_instructions: BTreeMap::new(),
            options: agent.prompt.clone(),
            chat_options: BTreeMap::new(),
            model: model.model,
            model_key: model.model_use.name.clone(),
            model_use: model.model_use,
            fallbacks: Vec::new(),
            choices: BTreeMap::new(),
            counter: &ClassEstimate,
            context_limit: model.context_limit,
            answer_reserve: model.answer_reserve,
            summary_model: None,
            memory_model: None,
            max_attempts: settings.max_attempts,
            answer_within_ms: settings.answer_within_s.ms(),
            calls_per_run: settings.calls_per_run,
            budget: settings.budget(),
            tools: Vec::new(),
            chat_tools: BTreeMap::new(),
            hooks: Hooks::default(),
            intent_models: BTreeMap::new(),
            knowledge: BTreeMap::new(),
            files: FilesInPrompts::default(),
            delegates: Vec::new(),
            prefixed_channels: BTreeSet::new(),
            speaking_channels: BTreeSet::new(),
            network: None,
            agent,
        }
    }

    /// Its settings in the configuration.
    #[must_use]
    pub fn settings(&self) -> &AgentSettings {
        &self.agent.settings
    }

    /// The models that it may ask, in order.
    pub fn chain(&self) -> impl Iterator<Item = &ModelUse> {
        let fallbacks = self.fallbacks.iter().map(|spec| &spec.model_use);
        std::iter::once(&self.model_use).chain(fallbacks)
    }

    /// The agent for a question that names a model: with that model, if the agent allows it.
    #[must_use]
    pub fn chosen(self: &Arc<Self>, model: Option<&str>) -> Arc<Self> {
        let choice = model.and_then(|model| self.choices.get(model));
        Arc::clone(choice.unwrap_or(self))
    }

    /// The hooks of this agent that are told about events, with the events.
    pub fn telling_hooks(&self) -> impl Iterator<Item = TellingHook> {
        let points = HookPoint::ALL.into_iter().filter(|point| !point.decides());
        points.flat_map(move |point| {
            let hooks = self.hooks.at(point);
            hooks.map(move |hook| TellingHook {
                agent: self.name.clone(),
                point,
                hook: hook.name.clone(),
            })
        })
    }

    /// Whether hooks may change an answer after the model gave it, so that it is not shown while it is written.
    #[must_use]
    pub fn holds_answers_back(&self) -> bool {
        self.agent.answer_form.is_some() || self.hooks.hold_answers_back()
    }

    /// The collections that it may search in a chat.
    #[must_use]
    pub fn knowledge_in(&self, chat: &ChatName) -> Vec<String> {
        let is_there = |chats: &Option<BTreeSet<ChatName>>| {
            chats.as_ref().is_none_or(|chats| chats.contains(chat))
        };
        let allowed = self.knowledge.iter().filter(|(_, chats)| is_there(chats));
        allowed.map(|(name, _)| name.clone()).collect()
    }

    /// The agent with that model of its chain; unchanged if the chain has no such model.
    #[must_use]
    pub fn asking(self: &Arc<Self>, model: &str) -> Arc<Self> {
        let mut fallbacks = self.fallbacks.iter();
        let fallback = fallbacks.find(|spec| spec.model_use.name == model);
        Arc::clone(fallback.unwrap_or(self))
    }
}

/// A configured model: what all who ask it share.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelUse {
    /// Its configured name.
    pub name: String,
    /// The most runs that may ask it at the same time.
    pub max_parallel: usize,
    /// What its tokens cost.
    pub prices: Prices,
    /// The currency of the prices: `limits.currency`.
    pub currency: String,
    /// The most tokens of an answer.
    pub max_output_tokens: u32,
}

/// A model that is asked outside of runs.
#[derive(Clone)]
pub struct BackgroundModel {
    /// The model.
    pub model: Arc<dyn Model>,
    /// Its name, limits and prices.
    pub model_use: ModelUse,
    /// Tokens of its whole context, if known.
    pub context_limit: Option<usize>,
    /// Tokens reserved for the answer.
    pub answer_reserve: usize,
}

/// The agents, by name. Cloning shares it.
#[derive(Clone, Default)]
pub struct Registry {
    agents: Arc<RwLock<BTreeMap<AgentName, Arc<AgentSpec>>>>,
}

impl Registry {
    /// Replaces the agents, for runs claimed from now on.
    pub fn replace(&self, agents: Vec<AgentSpec>) {
        let agents = agents
            .into_iter()
            .map(|spec| (spec.name.clone(), Arc::new(spec)))
            .collect();
        *self.agents.write().expect("no holder of this lock panics") = agents;
    }

    /// The agent of that name.
    #[must_use]
    pub fn get(&self, name: &AgentName) -> Option<Arc<AgentSpec>> {
        self.agents
            .read()
            .expect("no holder of this lock panics")
            .get(name)
            .cloned()
    }

    /// The agents that may ask a model, networks of such agents included.
    #[must_use]
    pub fn of_model(&self, model: &str) -> Vec<AgentName> {
        let agents = self.agents.read().expect("no holder of this lock panics");
        let asks = |spec: &Arc<AgentSpec>| {
            let choices = spec.choices.values().flat_map(|choice| choice.chain());
            spec.chain().chain(choices).any(|it| it.name == model)
        };
        let has_asker = |of: &Arc<NetworkSpec>| {
            let mut members = of.network.callable().into_iter();
            of.router.model_use.name == model
                || members.any(|member| agents.get(member).is_some_and(asks))
        };
        let of_model = agents
            .values()
            .filter(|spec| asks(spec) || spec.network.as_ref().is_some_and(has_asker));
        of_model.map(|spec| spec.name.clone()).collect()
    }

    /// The network of that name.
    #[must_use]
    pub fn network(&self, name: &str) -> Option<Arc<NetworkSpec>> {
        let agents = self.agents.read().expect("no holder of this lock panics");
        let mut networks = agents.values().filter_map(|spec| spec.network.as_ref());
        networks
            .find(|it| it.network.name.as_str() == name)
            .cloned()
    }

    /// All agents.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<AgentSpec>> {
        let agents = self.agents.read().expect("no holder of this lock panics");
        agents.values().cloned().collect()
    }

    /// The hooks that are told of the ends of runs, with their agents.
    #[must_use]
    pub fn telling_hooks(&self) -> Vec<TellingHook> {
        let all = self.all();
        let told = all.iter().flat_map(|spec| spec.telling_hooks());
        told.collect()
    }

    /// All names.
    #[must_use]
    pub fn names(&self) -> Vec<AgentName> {
        self.agents
            .read()
            .expect("no holder of this lock panics")
            .keys()
            .cloned()
            .collect()
    }
}
