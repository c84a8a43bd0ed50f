//! Which agent is next.

use super::course::{RoutedBy, StopReason};
use super::facts::Facts;
use super::network::{Network, RuleAction};
use super::router::Routed;
use super::state::StateValues;
use crate::ids::AgentName;

/// What was decided, with what it changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Decided {
    /// What follows.
    pub decision: RoutingDecision,
    /// The rule that matched, from 1; `None`: none did.
    pub rule: Option<u32>,
    /// Who waits to be called behind that.
    pub stack: Vec<AgentName>,
    /// The values behind that.
    pub state: StateValues,
    /// Agents that would have been called, and may not be here and now.
    pub refused: Vec<AgentName>,
}

/// What follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoutingDecision {
    /// An agent is called.
    Call {
        /// Who.
        agent: AgentName,
        /// What decided that.
        by: RoutedBy,
    },
    /// The routing agent is asked; [`on_routed`] says what follows.
    AskRouter,
    /// The run ends.
    Stop(StopReason),
}

/// Decides: the first rule that matches and has uses left, from top to bottom; without one, the agent that waits first
/// is called; if none waits, the run ends. Agents that a rule calls are put behind those that wait.
///
/// A rule whose agents are all disabled is passed over, and uses nothing up.
#[must_use]
pub fn decide(network: &Network, facts: &Facts<'_>) -> Decided {
    let mut decided = Decided {
        decision: RoutingDecision::Stop(StopReason::NoRule),
        rule: None,
        stack: facts.stack.to_vec(),
        state: facts.state.clone(),
        refused: Vec::new(),
    };
    if facts.is_circling {
        decided.decision = RoutingDecision::Stop(StopReason::NoProgress);
        return decided;
    }
    let is_at_end = facts.calls >= network.max_calls;
    for (n, rule) in network.rules.iter().enumerate() {
        let used = facts.used.get(n).copied().unwrap_or(0);
        if used >= rule.at_most || !rule.when.holds(facts) {
            continue;
        }
        let number = u32::try_from(n + 1).unwrap_or(u32::MAX);
        let decision = match &rule.action {
            RuleAction::Stop { reason } => RoutingDecision::Stop(StopReason::Rule(reason.clone())),
            RuleAction::AskRouter => RoutingDecision::AskRouter,
            RuleAction::Call(agents) => {
                let is_enabled = |agent: &&AgentName| !facts.disabled.contains(*agent);
                let (called, refused): (Vec<_>, Vec<_>) = agents.iter().partition(is_enabled);
                for agent in refused {
                    if !decided.refused.contains(agent) {
                        decided.refused.push(agent.clone());
                    }
                }
                if called.is_empty() {
                    continue;
                }
                decided.stack.extend(called.into_iter().cloned());
                next_of_stack(&mut decided, facts, RoutedBy::Rule)
            }
        };
        decided.rule = Some(number);
        // A value that does not fit the schema was refused when the network was configured.
        let set = rule.set.iter().map(|(key, value)| (key.as_str(), value));
        let _ = network.state.set_all(&mut decided.state, set);
        return bounded(decided, decision, is_at_end, facts);
    }
    let decision = next_of_stack(&mut decided, facts, RoutedBy::Stack);
    bounded(decided, decision, is_at_end, facts)
}

/// What follows from the routing agent's answer, which the rule of `asked` asked for: the agent it names, the default
/// agent if it named none or was done before any agent was called, else the agent that waits first.
#[must_use]
pub fn on_routed(network: &Network, facts: &Facts<'_>, asked: Decided, routed: &Routed) -> Decided {
    let mut decided = asked;
    let default = &network.default_agent;
    let picked = match routed {
        Routed::Agent(agent) => Some((agent, RoutedBy::Router)),
        Routed::NoAnswer => Some((default, RoutedBy::Default)),
        Routed::Done if facts.calls == 0 => Some((default, RoutedBy::Default)),
        Routed::Done => None,
    };
    decided.decision = match picked {
        Some((agent, by)) if !facts.disabled.contains(agent) => {
            decided.stack.push(agent.clone());
            next_of_stack(&mut decided, facts, by)
        }
        Some((agent, _)) => {
            decided.refused.push(agent.clone());
            next_of_stack(&mut decided, facts, RoutedBy::Stack)
        }
        None => match next_of_stack(&mut decided, facts, RoutedBy::Stack) {
            RoutingDecision::Stop(_) => RoutingDecision::Stop(StopReason::RouterDone),
            other => other,
        },
    };
    decided
}

/// Calls the agent that waits first. One that is disabled by now is passed over.
fn next_of_stack(decided: &mut Decided, facts: &Facts<'_>, by: RoutedBy) -> RoutingDecision {
    let stack = std::mem::take(&mut decided.stack);
    for (n, agent) in stack.iter().enumerate() {
        if !facts.disabled.contains(agent) {
            decided.stack = stack[n + 1..].to_vec();
            // Agents that waited before come first, whatever was added behind them.
            let by = if n < facts.stack.len() {
                RoutedBy::Stack
            } else {
                by
            };
            return RoutingDecision::Call {
                agent: agent.clone(),
                by,
            };
        }
        if !decided.refused.contains(agent) {
            decided.refused.push(agent.clone());
        }
    }
    RoutingDecision::Stop(StopReason::NoRule)
}

/// The decision within `max_calls`: after the last call no other agent is called.
fn bounded(
    mut decided: Decided,
    decision: RoutingDecision,
    is_at_end: bool,
    facts: &Facts<'_>,
) -> Decided {
    decided.decision = match decision {
        RoutingDecision::Call { .. } | RoutingDecision::AskRouter if is_at_end => {
            decided.stack = facts.stack.to_vec();
            decided.state = facts.state.clone();
            RoutingDecision::Stop(StopReason::MaxCalls)
        }
        other => other,
    };
    decided
}
