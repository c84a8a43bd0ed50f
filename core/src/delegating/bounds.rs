//! The most work that a question can cause where agents ask each other, known before any agent is asked.

use std::collections::BTreeMap;

use crate::delegating::{CHILDREN_MAX, DEPTH_MAX};
use crate::ids::AgentName;

/// What bounds the work of an agent, or of a network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkBounds {
    /// Calls of models for one run, those of a routing agent included.
    pub model_calls: u64,
    /// The agents and networks that it may ask; for a network, its agents ask.
    pub delegates: Vec<AgentName>,
    /// For a network, the agents that may be called for it.
    pub members: Vec<AgentName>,
}

/// The most work of all runs below one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Below {
    /// Calls of models.
    pub model_calls: u64,
    /// Runs.
    pub runs: u64,
}

impl Below {
    /// The larger number of model calls and of runs, each by itself: they may come from different paths.
    fn most(self, other: Self) -> Self {
        Self {
            model_calls: self.model_calls.max(other.model_calls),
            runs: self.runs.max(other.runs),
        }
    }
}

/// The most work of all runs below a run of `asked`: an agent, or a network, of which any agent may ask.
#[must_use]
pub fn worst_below(all: &BTreeMap<AgentName, WorkBounds>, asked: &AgentName) -> Below {
    below_run(all, asked, &mut Vec::new(), 0)
}

/// `path`: the agents that wait above the run. Its `depth` is at most `DEPTH_MAX`, so that the recursion ends.
fn below_run<'a>(
    all: &'a BTreeMap<AgentName, WorkBounds>,
    asked: &'a AgentName,
    path: &mut Vec<&'a AgentName>,
    depth: usize,
) -> Below {
    let Some(asking) = all.get(asked).filter(|_| depth < DEPTH_MAX) else {
        return Below::default();
    };
    path.push(asked);
    let of_itself = below_asker(all, asking, path, depth);
    // One agent of a network works at a time, and that one may ask.
    let of_members = asking.members.iter().map(|member| {
        let Some(asks) = all.get(member) else {
            return Below::default();
        };
        path.push(member);
        let below = below_asker(all, asks, path, depth);
        path.pop();
        below
    });
    let most = of_members.fold(of_itself, Below::most);
    path.pop();
    most
}

/// The most work of the runs that one asking agent may start in a run: as many as one run may start.
fn below_asker<'a>(
    all: &'a BTreeMap<AgentName, WorkBounds>,
    asks: &'a WorkBounds,
    path: &mut Vec<&'a AgentName>,
    depth: usize,
) -> Below {
    let mut most = Below::default();
    for delegate in &asks.delegates {
        let Some(child) = all.get(delegate) else {
            continue;
        };
        let waits = |agent: &AgentName| path.contains(&agent);
        if waits(delegate) || child.members.iter().any(waits) {
            continue;
        }
        let under = below_run(all, delegate, path, depth + 1);
        most = most.most(Below {
            model_calls: under.model_calls + child.model_calls,
            runs: under.runs + 1,
        });
    }
    Below {
        model_calls: most.model_calls * CHILDREN_MAX as u64,
        runs: most.runs * CHILDREN_MAX as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_agents_that_ask_each_other_come_to_is_known_before() {
        let name = |name: &str| AgentName::trusted(name);
        let asking = |model_calls, delegates: &[&str], members: &[&str]| WorkBounds {
            model_calls,
            delegates: delegates.iter().map(|it| name(it)).collect(),
            members: members.iter().map(|it| name(it)).collect(),
        };
        let agents = BTreeMap::from([
            (name("desk"), asking(8, &["look", "pen"], &[])),
            (name("look"), asking(3, &["desk", "pen"], &[])),
            (name("pen"), asking(2, &["check"], &[])),
            (name("check"), asking(5, &["desk"], &[])),
            (name("alone"), asking(9, &[], &[])),
            // It has two agents, of which one asks.
            (name("team"), asking(20, &[], &["alone", "pen"])),
            (name("head"), asking(4, &["team"], &[])),
            (name("whole"), asking(7, &[], &["head", "pen"])),
            (name("lost"), asking(1, &["gone"], &["gone"])),
        ]);
        let table: [(&str, u64, u64); 9] = [
            ("alone", 0, 0),
            // Four runs of check, each of which may ask desk four times.
            ("pen", 4 * (5 + 4 * 8), 4 * 5),
            // pen is the dearer one: it asks check, and nobody below asks.
            ("desk", 4 * (2 + 4 * 5), 4 * 5),
            ("look", 4 * (2 + 4 * 5), 4 * 5),
            ("team", 4 * (5 + 4 * 8), 4 * 5),
            // Four runs of the network, each of which may ask check four times.
            ("head", 4 * (20 + 4 * 5), 4 * 5),
            // As head: four runs of the network and what they ask are more than what pen asks.
            ("whole", 4 * (20 + 4 * 5), 4 * 5),
            ("lost", 0, 0),
            ("nobody", 0, 0),
        ];
        for (asked, model_calls, runs) in table {
            let expected = Below { model_calls, runs };
            assert_eq!(worst_below(&agents, &name(asked)), expected, "{asked}");
        }
    }

    #[test]
    fn a_network_whose_agent_waits_is_not_counted() {
        let name = |name: &str| AgentName::trusted(name);
        let asking = |delegates: &[&str], members: &[&str]| WorkBounds {
            model_calls: 1,
            delegates: delegates.iter().map(|it| name(it)).collect(),
            members: members.iter().map(|it| name(it)).collect(),
        };
        let all = BTreeMap::from([
            (name("desk"), asking(&["look"], &[])),
            (name("look"), asking(&["team"], &[])),
            (name("team"), asking(&[], &["desk"])),
        ]);
        let below = |runs| Below {
            model_calls: runs,
            runs,
        };
        // look asks the network, whose agent desk may not ask look, because look waits.
        assert_eq!(worst_below(&all, &name("look")), below(4));
        // desk asks look, which can't ask desk's network.
        assert_eq!(worst_below(&all, &name("desk")), below(4));
        assert_eq!(worst_below(&all, &name("team")), below(4));
    }
}
