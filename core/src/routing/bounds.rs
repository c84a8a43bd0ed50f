//! How far a network can go at most: what `check` says before anything runs. Which rules never match: `reach`.
//!
//! Only some of a rule's terms are known beforehand, those about the course itself: how many calls there were, who was
//! called last, who waits. Every other term may hold or not. So the longest path is one that the rules allow, whether
//! or not any question takes it; and no run takes a longer one.

use std::collections::{BTreeMap, HashMap};

pub use super::reach::{LOOKED_AT_MAX, NetworkReach, reach};

use super::network::{CALLS_MAX, Network, RoutingRule, RuleAction, RuleTerm, When};
use super::router::ASKED_MAX;
use crate::ids::AgentName;

/// The most states that the search for the longest path looks at; beyond that the sum of all uses is taken.
const PLACES_MAX: usize = 20_000;

/// The most waiting agents of which every combination of disabled ones is tried.
const DISABLED_AMONG_MAX: usize = 6;

/// The longest path of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LongestPath {
    /// The most agent calls.
    pub calls: u32,
    /// Who is called on it; empty where only the sum is known.
    pub agents: Vec<AgentName>,
}

/// The most that a run costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorstCost {
    /// Agent calls.
    pub agent_calls: u32,
    /// Calls of models by agents, with all their steps.
    pub model_calls: u64,
    /// Calls of the routing agent's model.
    pub routing_calls: u32,
}

/// A rule that never matches, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadRule {
    /// Which, from 1.
    pub rule: u32,
    /// Why, in words behind "rule 2 never matches: ".
    pub why: String,
}

/// The parts of the configuration around a network that decide what it can come to.
pub struct Around<'a> {
    /// All names by which it is addressed.
    pub names: &'a [&'a str],
    /// Whether an agent has a tool.
    pub has_tool: &'a dyn Fn(&AgentName, &str) -> bool,
    /// Whether an agent that may set values has the means to.
    pub sets_values: &'a dyn Fn(&AgentName) -> bool,
    /// Whether an agent works wherever, whenever and for whom the network does: it is never disabled.
    pub is_always_there: &'a dyn Fn(&AgentName) -> bool,
}

/// The most agent calls of one run.
pub(super) fn calls_max(network: &Network) -> u32 {
    network.max_calls.min(CALLS_MAX)
}

/// The longest path that the rules allow.
#[must_use]
pub fn longest_path(network: &Network) -> LongestPath {
    let mut search = CourseSearch {
        network,
        found: HashMap::new(),
        is_cut: false,
    };
    let start = CoursePoint {
        calls: 0,
        last: None,
        stack: Vec::new(),
        used: vec![0; network.rules.len()],
    };
    let agents = search.longest(&start);
    if search.is_cut {
        return LongestPath {
            calls: sum_of_uses(network),
            agents: Vec::new(),
        };
    }
    LongestPath {
        calls: u32::try_from(agents.len()).unwrap_or(u32::MAX),
        agents,
    }
}

/// The most that one run costs, given how many calls of a model one call of each agent may take. No run costs more:
/// whatever path it takes, its calls are among those that are summed here.
#[must_use]
pub fn worst_cost(network: &Network, max_steps: &BTreeMap<AgentName, u32>) -> WorstCost {
    let of = |agent: &AgentName| max_steps.get(agent).copied().unwrap_or(0);
    let max_calls = network.max_calls;
    let mut costs: Vec<u32> = Vec::new();
    let mut asked = 0_u32;
    for rule in &network.rules {
        // A rule is used at most once at a decision, and no decision but the last leads to nothing.
        let uses = rule.at_most.min(max_calls);
        match &rule.action {
            RuleAction::Call(agents) => {
                for _ in 0..uses {
                    costs.extend(agents.iter().map(of));
                }
            }
            RuleAction::AskRouter => {
                asked = asked.saturating_add(uses);
                let members = network.members.iter().chain([&network.default_agent]);
                let most = members.map(of).max().unwrap_or(0);
                costs.extend(std::iter::repeat_n(most, uses as usize));
            }
            RuleAction::Stop { .. } => {}
        }
    }
    costs.sort_unstable_by(|a, b| b.cmp(a));
    let calls = longest_path(network).calls;
    let model_calls = costs
        .iter()
        .take(calls as usize)
        .map(|cost| u64::from(*cost))
        .sum();
    WorstCost {
        agent_calls: calls,
        model_calls,
        routing_calls: asked.min(max_calls).saturating_mul(ASKED_MAX),
    }
}

/// The agent calls of all uses of all rules, within `max_calls`.
fn sum_of_uses(network: &Network) -> u32 {
    let of = |rule: &RoutingRule| match &rule.action {
        RuleAction::Call(agents) => rule
            .at_most
            .saturating_mul(u32::try_from(agents.len()).unwrap_or(u32::MAX)),
        RuleAction::AskRouter => rule.at_most,
        RuleAction::Stop { .. } => 0,
    };
    let sum = network.rules.iter().map(of).fold(0, u32::saturating_add);
    sum.min(network.max_calls)
}

/// Where a run may stand before a decision.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CoursePoint {
    calls: u32,
    last: Option<AgentName>,
    stack: Vec<AgentName>,
    used: Vec<u32>,
}

struct CourseSearch<'a> {
    network: &'a Network,
    found: HashMap<CoursePoint, Vec<AgentName>>,
    is_cut: bool,
}

impl CourseSearch<'_> {
    /// Who may still be called from a place on, on the longest path.
    fn longest(&mut self, place: &CoursePoint) -> Vec<AgentName> {
        let left = (self.network.max_calls - place.calls) as usize;
        if left == 0 {
            return Vec::new();
        }
        if let Some(found) = self.found.get(place) {
            return found.clone();
        }
        if self.found.len() >= PLACES_MAX {
            self.is_cut = true;
            return Vec::new();
        }
        let mut best: Vec<AgentName> = Vec::new();
        for next in self.nexts(place) {
            let Some(agent) = next.last.clone() else {
                continue;
            };
            let mut path = vec![agent];
            path.extend(self.longest(&next));
            if path.len() > best.len() {
                best = path;
            }
            if best.len() == left || self.is_cut {
                break;
            }
        }
        self.found.insert(place.clone(), best.clone());
        best
    }

    /// Where the run may stand after one more agent call.
    fn nexts(&self, place: &CoursePoint) -> Vec<CoursePoint> {
        let mut nexts: Vec<CoursePoint> = Vec::new();
        let mut add = |added: &[AgentName], rule: Option<usize>| {
            let waiting: Vec<&AgentName> = place.stack.iter().chain(added).collect();
            let mut used = place.used.clone();
            if let Some(rule) = rule {
                used[rule] += 1;
            }
            for mut stack in enabled(&waiting) {
                let agent = stack.remove(0);
                let next = CoursePoint {
                    calls: place.calls + 1,
                    last: Some(agent),
                    stack,
                    used: used.clone(),
                };
                if !nexts.contains(&next) {
                    nexts.push(next);
                }
            }
        };
        for (n, rule) in self.network.rules.iter().enumerate() {
            if place.used[n] >= rule.at_most {
                continue;
            }
            let holds = may_hold(&rule.when, place);
            if holds == Holds::Never {
                continue;
            }
            match &rule.action {
                RuleAction::Call(agents) => add(agents, Some(n)),
                RuleAction::AskRouter => {
                    for agent in self
                        .network
                        .members
                        .iter()
                        .chain([&self.network.default_agent])
                    {
                        add(std::slice::from_ref(agent), Some(n));
                    }
                    // The routing agent says that it is done, and the agents that wait are called.
                    add(&[], Some(n));
                }
                RuleAction::Stop { .. } => {}
            }
            // A rule whose agents are all disabled is passed over. Any other rule that surely holds is not: no later
            // rule is reached.
            if holds == Holds::Always && !matches!(rule.action, RuleAction::Call(_)) {
                return nexts;
            }
        }
        add(&[], None);
        nexts
    }
}

/// The agents that may be left of those that wait, if any of them may be disabled: first all of them. Of more than
/// [`DISABLED_AMONG_MAX`], only agents at the head are taken for disabled.
fn enabled(waiting: &[&AgentName]) -> Vec<Vec<AgentName>> {
    let all = |those: &[&AgentName]| those.iter().map(|agent| (*agent).clone()).collect();
    if waiting.len() > DISABLED_AMONG_MAX {
        return (0..waiting.len()).map(|n| all(&waiting[n..])).collect();
    }
    let sets = (1..1_u32 << waiting.len()).rev();
    let of = |set: u32| {
        let each = waiting.iter().enumerate();
        let left = each.filter(|(n, _)| set & (1 << n) != 0);
        left.map(|(_, agent)| (*agent).clone()).collect()
    };
    sets.map(of).collect()
}

/// Whether a condition holds, as far as the course decides that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Always,
    Perhaps,
    Never,
}

fn may_hold(when: &When, place: &CoursePoint) -> Holds {
    let all = |terms: &[RuleTerm]| {
        let each = terms.iter().map(|term| term_may_hold(term, place));
        each.fold(Holds::Always, |all, one| match (all, one) {
            (Holds::Never, _) | (_, Holds::Never) => Holds::Never,
            (Holds::Perhaps, _) | (_, Holds::Perhaps) => Holds::Perhaps,
            (Holds::Always, Holds::Always) => Holds::Always,
        })
    };
    let not = match (when.not.is_empty(), all(&when.not)) {
        (true, _) | (_, Holds::Never) => Holds::Always,
        (_, Holds::Perhaps) => Holds::Perhaps,
        (_, Holds::Always) => Holds::Never,
    };
    match (all(&when.terms), not) {
        (Holds::Never, _) | (_, Holds::Never) => Holds::Never,
        (Holds::Always, Holds::Always) => Holds::Always,
        _ => Holds::Perhaps,
    }
}

fn term_may_hold(term: &RuleTerm, place: &CoursePoint) -> Holds {
    let surely = |is: bool| if is { Holds::Always } else { Holds::Never };
    match term {
        RuleTerm::Calls(range) => surely(range.has(place.calls)),
        RuleTerm::LastAgent(agents) => surely(
            place
                .last
                .as_ref()
                .is_some_and(|last| agents.contains(last)),
        ),
        RuleTerm::StackEmpty(is) => surely(place.stack.is_empty() == *is),
        RuleTerm::LastText(_) | RuleTerm::LastTool(_) | RuleTerm::LastFailed(_)
            if place.last.is_none() =>
        {
            Holds::Never
        }
        _ => Holds::Perhaps,
    }
}
