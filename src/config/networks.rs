//! Networks and their checks. Reading order: `shape` (what people write), this page, `values`, `rules`.

mod rules;
mod shape;
mod values;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::agents::{check_own_names, spoken};
use super::resolve::Review;
use super::settings::{Agent, AgentSettings, ChannelChoice, Model, Network};
use super::suggest::nearest;
use crate::tools::{SET_STATE, names};
pub(super) use shape::NetworkShape;
use vocative_core::ids::AgentName;
use vocative_core::presence::Presence;
use vocative_core::routing::bounds::{Around, NetworkReach, reach};
use vocative_core::routing::state::{KeySchema, StateSchema};
use vocative_core::routing::{self, AnswerFrom, CALLS_DEFAULT, MEMBERS_MAX, RuleAction};

/// The names that networks may refer to.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    /// Agents.
    pub agents: &'a BTreeMap<AgentName, Agent>,
    /// Models.
    pub models: &'a BTreeMap<String, Model>,
    /// Tools.
    pub tools: &'a [&'a str],
    /// Channels.
    pub channels: &'a [&'a str],
}

/// The agents that are members of a network: they need no channel of their own.
pub(super) fn members_of(shapes: &BTreeMap<String, NetworkShape>) -> BTreeSet<String> {
    let mut members = BTreeSet::new();
    for shape in shapes.values() {
        members.extend(shape.agents.iter().cloned());
        members.extend(shape.default_agent.clone());
        for rule in &shape.rules {
            let called = rule.call.iter().flat_map(one_or_more);
            members.extend(called.filter_map(Value::as_str).map(str::to_owned));
        }
    }
    members
}

/// Checks all networks, and returns each as an agent that can be addressed. The result is to be used only if no problem
/// was found.
pub(super) fn resolve_networks(
    shapes: BTreeMap<String, NetworkShape>,
    known: Known<'_>,
    review: &mut Review<'_>,
) -> Vec<Agent> {
    let each = shapes.into_iter();
    each.filter_map(|(name, shape)| {
        let mut checking = NetworkChecks {
            table: format!("networks.{name}"),
            known,
            review,
        };
        checking.network(&name, shape)
    })
    .collect()
}

struct NetworkChecks<'a, 'r> {
    table: String,
    known: Known<'a>,
    review: &'a mut Review<'r>,
}

impl NetworkChecks<'_, '_> {
    fn problem(&mut self, setting: &str, what: impl Into<String>) {
        let key = format!("{}.{setting}", self.table);
        self.review.problem(&key, what);
    }

    /// Finds a configured agent; networks do not count.
    fn agent(&mut self, setting: &str, name: &str) -> Option<AgentName> {
        let agent = AgentName::trusted(name);
        if self.known.agents.contains_key(&agent) {
            return Some(agent);
        }
        let agents: Vec<&str> = self.known.agents.keys().map(AgentName::as_str).collect();
        let key = format!("{}.{setting}", self.table);
        self.review.dangling(&key, "agents", name, &agents);
        None
    }

    fn agents(&mut self, setting: &str, names: &[String]) -> Vec<AgentName> {
        let mut agents: Vec<AgentName> = Vec::new();
        for name in names {
            match self.agent(setting, name) {
                Some(agent) if agents.contains(&agent) => {
                    self.problem(setting, format!("\"{agent}\" is there twice"));
                }
                Some(agent) => agents.push(agent),
                None => {}
            }
        }
        if agents.len() > MEMBERS_MAX {
            self.problem(setting, format!("has more than {MEMBERS_MAX} agents"));
        }
        agents
    }

    /// Checks that no agent has the network's name.
    fn check_name(&mut self, name: &AgentName) {
        if self.known.agents.contains_key(name) {
            let what = format!("an agent is called {name}, too; both are addressed by their names");
            self.review.problem(&self.table.clone(), what);
        }
    }

    fn network(&mut self, name: &str, shape: NetworkShape) -> Option<Agent> {
        let members = self.agents("agents", &shape.agents);
        let default = shape
            .default_agent
            .as_deref()
            .or(shape.agents.first().map(String::as_str));
        let Some(default) = default else {
            self.problem("agents", "is empty: list the agents of the network");
            return None;
        };
        let default = self.agent("default_agent", default)?;
        let state = self.state(shape.state);
        let rules = self.rules(shape.rules, &state);
        let answer_from = match shape.answer_from.as_deref() {
            None | Some("last") => AnswerFrom::Last,
            Some("each") => AnswerFrom::Each,
            Some(agent) => AnswerFrom::Agent(self.agent("answer_from", agent)?),
        };
        let silent: BTreeSet<AgentName> =
            self.agents("silent", &shape.silent).into_iter().collect();
        if let AnswerFrom::Agent(agent) = &answer_from
            && silent.contains(agent)
        {
            self.problem(
                "answer_from",
                format!("\"{agent}\" is silent, so nothing would be posted"),
            );
        }
        let reads = self.by_agent("reads", shape.reads, &state);
        let writes = self.by_agent("writes", shape.writes, &state);
        let descriptions = shape.descriptions.into_iter();
        let descriptions: BTreeMap<AgentName, String> = descriptions
            .filter_map(|(name, text)| Some((self.agent("descriptions", &name)?, text)))
            .collect();
        if shape.persist && state.0.is_empty() {
            self.problem(
                "persist",
                "there are no values to keep: [networks.NAME.state] names none",
            );
        }
        let network = routing::Network {
            name: AgentName::trusted(name),
            members,
            default_agent: default.clone(),
            max_calls: shape.max_calls.unwrap_or(CALLS_DEFAULT),
            answer_from,
            silent,
            rules,
            state,
            persist: shape.persist,
            reads,
            writes,
        };
        self.check_router(&network, &descriptions, shape.router_model.as_deref());
        let default = self.known.agents.get(&default)?;
        self.check_name(&network.name);
        let face = Agent {
            name: network.name.clone(),
            display_name: shape.display_name.unwrap_or_else(|| spoken(name)),
            settings: face_settings(&default.settings, shape.aliases, &shape.purpose),
            channels: channel_choice(shape.channels),
            // Its agents use tools and ask others; the network itself does not.
            tools: Vec::new(),
            experts: BTreeMap::new(),
            delegates: Vec::new(),
            presence: Presence::default(),
            network: Some(Network {
                network,
                router_model: shape.router_model,
                descriptions,
            }),
            ..default.clone()
        };
        if let Some(it) = &face.network {
            self.check_whole(&it.network, &face.names());
        }
        check_own_names(&face, "networks", self.review);
        self.check_channels(&face);
        Some(face)
    }

    fn check_channels(&mut self, face: &Agent) {
        if let ChannelChoice::Named(names) = &face.channels {
            let known = self.known.channels;
            for name in names.iter().filter(|name| !known.contains(&name.as_str())) {
                let key = format!("{}.channels", self.table);
                self.review.dangling(&key, "channels", name, known);
            }
        }
    }

    /// Checks that the routing agent's model exists, and that the agents have descriptions to choose by.
    fn check_router(
        &mut self,
        network: &routing::Network,
        descriptions: &BTreeMap<AgentName, String>,
        model: Option<&str>,
    ) {
        let is_asked = network
            .rules
            .iter()
            .any(|rule| rule.action == RuleAction::AskRouter);
        if let Some(model) = model
            && !self.known.models.contains_key(model)
        {
            let known: Vec<&str> = self.known.models.keys().map(String::as_str).collect();
            let key = format!("{}.router_model", self.table);
            self.review.dangling(&key, "models", model, &known);
        }
        let undescribed = network
            .members
            .iter()
            .find(|agent| !descriptions.contains_key(*agent));
        if let Some(agent) = undescribed.filter(|_| is_asked) {
            let key = format!("{}.descriptions", self.table);
            let what = format!("{agent} has none, and the routing agent is to choose among them");
            self.review.warn(&key, what);
        }
    }

    /// Warns of mistakes that only the network as a whole shows.
    fn check_whole(&mut self, network: &routing::Network, names: &[&str]) {
        let agents = self.known.agents;
        let of = |name: &AgentName| agents.get(name);
        let reach = reach(
            network,
            &Around {
                names,
                has_tool: &|agent, tool| of(agent).is_some_and(|it| has_tool(it, network, tool)),
                sets_values: &|agent| of(agent).is_some_and(|it| it.settings.max_steps > 1),
                is_always_there: &|agent| of(agent).is_some_and(|it| is_always_there(&it.presence)),
            },
        );
        for dead in &reach.dead {
            let key = format!("{}.rules[{}]", self.table, dead.rule - 1);
            let what = format!("rule {} never matches: {}", dead.rule, dead.why);
            self.review.warn(&key, what);
        }
        self.check_said(network, &reach);
        self.check_writers(network, &reach);
    }

    /// Warns if the network can never post anything.
    fn check_said(&mut self, network: &routing::Network, reach: &NetworkReach) {
        if reach.called.is_empty() {
            return;
        }
        match &network.answer_from {
            AnswerFrom::Agent(agent) if !reach.called.contains(agent) => {
                let key = format!("{}.answer_from", self.table);
                let what = format!("nothing calls {agent}, so nothing is ever posted");
                self.review.warn(&key, what);
            }
            AnswerFrom::Agent(_) => {}
            AnswerFrom::Last | AnswerFrom::Each if reach.called.is_subset(&network.silent) => {
                let key = format!("{}.silent", self.table);
                let what = "has every agent that is ever called, so nothing is ever posted";
                self.review.warn(&key, what);
            }
            AnswerFrom::Last | AnswerFrom::Each => {}
        }
    }

    /// Checks that agents that may set values are called, and have a step for that.
    fn check_writers(&mut self, network: &routing::Network, reach: &NetworkReach) {
        for (name, keys) in &network.writes {
            let steps = self
                .known
                .agents
                .get(name)
                .map_or(0, |it| it.settings.max_steps);
            let what = match reach.called.contains(name) {
                false => format!("nothing calls {name}"),
                true if steps == 1 && !keys.is_empty() => {
                    format!("{name} has max_steps = 1, so it never gets {SET_STATE}")
                }
                true => continue,
            };
            self.review.warn(&format!("{}.writes", self.table), what);
        }
    }

    fn by_agent(
        &mut self,
        setting: &str,
        shape: BTreeMap<String, Vec<String>>,
        state: &StateSchema,
    ) -> BTreeMap<AgentName, Vec<String>> {
        let mut of_agents = BTreeMap::new();
        for (name, keys) in shape {
            let setting = format!("{setting}.{name}");
            for key in &keys {
                self.check_key(&setting, key, state);
            }
            if let Some(agent) = self.agent(&setting, &name) {
                of_agents.insert(agent, keys);
            }
        }
        of_agents
    }

    fn check_key<'s>(
        &mut self,
        setting: &str,
        key: &str,
        state: &'s StateSchema,
    ) -> Option<&'s KeySchema> {
        let found = state.0.get(key);
        if found.is_none() {
            let meant = nearest(key, state.0.keys().map(String::as_str));
            let key_of = format!("{}.{setting}", self.table);
            let suggestion = meant.map(|meant| format!("did you mean \"{meant}\"?"));
            let what = format!("there is no value \"{key}\" in [{}.state]", self.table);
            self.review.advise(&key_of, what, suggestion);
        }
        found
    }
}

/// The settings for the runs of a network: those of its default agent, without those that its agents use themselves.
fn face_settings(default: &AgentSettings, aliases: Vec<String>, purpose: &str) -> AgentSettings {
    AgentSettings {
        aliases,
        purpose: purpose.trim().to_owned(),
        knowledge: Vec::new(),
        skills: Vec::new(),
        ..default.clone()
    }
}

/// Whether an agent of a network may have a tool.
fn has_tool(agent: &Agent, network: &routing::Network, tool: &str) -> bool {
    let writes = || {
        network
            .writes
            .get(&agent.name)
            .is_some_and(|keys| !keys.is_empty())
    };
    let is_its_own = agent.tools.iter().any(|own| names(own, tool));
    agent.settings.max_steps > 1 && (is_its_own || (tool == SET_STATE && writes()))
}

/// Whether an agent works everywhere, for everybody and at any time.
fn is_always_there(presence: &Presence) -> bool {
    let Presence {
        chats,
        people,
        hours,
        days,
        zone: _,
    } = presence;
    chats.is_empty() && people.is_empty() && hours.is_none() && days.is_empty()
}

/// The values of a list, or the one value that is written in place of a list.
fn one_or_more(value: &Value) -> impl Iterator<Item = &Value> {
    match value {
        Value::Array(items) => items.iter(),
        one => std::slice::from_ref(one).iter(),
    }
}

fn channel_choice(channels: Option<Vec<String>>) -> ChannelChoice {
    match channels {
        Some(names) if !names.iter().any(|name| name == "*") => ChannelChoice::Named(names),
        _ => ChannelChoice::All,
    }
}
