//! Checks of `delegates`: which agents may ask which, once agents and networks are known.

use std::collections::{BTreeMap, BTreeSet};

use super::resolve::Review;
use super::settings::{Agent, ChannelChoice};
use crate::tools::ASK_AGENT;
use vocative_core::ids::AgentName;

/// The longest `purpose`, in characters; it is part of every prompt of the agents that may ask.
const PURPOSE_MAX_CHARS: usize = 300;

/// The networks as they are written, including those with mistakes.
pub(super) struct Written {
    /// Their names.
    pub networks: BTreeSet<String>,
    /// The agents in these networks: they need no channel of their own.
    pub members: BTreeSet<String>,
}

/// Checks for each agent that its delegates exist and never wait for the agent itself, that it has delegates if it has
/// `ask_agent`, that it can be asked, and that its purpose is not too long.
pub(super) fn check_delegates(
    agents: &BTreeMap<AgentName, Agent>,
    written: &Written,
    review: &mut Review<'_>,
) {
    for agent in agents.values() {
        check_whom(agent, agents, written, review);
        check_asks(agent, review);
        check_is_served(agent, agents, written, review);
        if agent.settings.purpose.chars().count() > PURPOSE_MAX_CHARS {
            review.problem(
                &key(agent, "purpose"),
                format!("is longer than {PURPOSE_MAX_CHARS} characters"),
            );
        }
    }
}

fn key(agent: &Agent, setting: &str) -> String {
    let table = match agent.network {
        Some(_) => "networks",
        None => "agents",
    };
    format!("{table}.{}.{setting}", agent.name)
}

/// Checks that the agent may ask each of its delegates.
fn check_whom(
    agent: &Agent,
    agents: &BTreeMap<AgentName, Agent>,
    written: &Written,
    review: &mut Review<'_>,
) {
    let key = key(agent, "delegates");
    for name in &agent.delegates {
        match agents.get(name) {
            Some(_) if *name == agent.name => {
                review.problem(&key, "names the agent itself, which can't wait for itself");
            }
            Some(delegate) if delegate.callable().contains(&agent.name) => {
                let what = format!(
                    "names the network \"{name}\", which calls this agent: it would wait for itself"
                );
                review.problem(&key, what);
            }
            None if written.networks.contains(name.as_str())
                || review.faulty.contains(&format!("networks.{name}")) => {}
            None => {
                let known: Vec<&str> = agents.keys().map(AgentName::as_str).collect();
                review.dangling(&key, "agents", name.as_str(), &known);
            }
            Some(_) => {}
        }
    }
}

/// Checks that an agent with `ask_agent` has delegates, and that an agent with delegates has a step left for its
/// answer.
fn check_asks(agent: &Agent, review: &mut Review<'_>) {
    let key = key(agent, "delegates");
    if agent.delegates.is_empty() && agent.tools.iter().any(|tool| tool == ASK_AGENT) {
        review.problem(&key, "is empty, and the tool ask_agent asks those");
    }
    if !agent.delegates.is_empty() && agent.settings.max_steps < 2 {
        let what = "is set, and with max_steps = 1 the first step must be the answer";
        review.problem(&key, what);
    }
}

/// Warns of an agent that serves no channel and that no other agent may ask.
fn check_is_served(
    agent: &Agent,
    agents: &BTreeMap<AgentName, Agent>,
    written: &Written,
    review: &mut Review<'_>,
) {
    let serves_none = matches!(&agent.channels, ChannelChoice::Named(names) if names.is_empty());
    let is_asked = agents
        .values()
        .any(|other| other.delegates.contains(&agent.name));
    let is_member = written.members.contains(agent.name.as_str());
    if serves_none && !is_asked && !is_member {
        let what = match agent.network {
            Some(_) => "is empty, so the network serves no channel, and no agent may ask it",
            None => "is empty, so the agent serves no channel, and no other agent may ask it",
        };
        review.warn(&key(agent, "channels"), what);
    }
}
