//! How much a question can come to where agents ask each other, known before any is asked.

use std::collections::BTreeMap;

use crate::delegating::{CHILDREN_MAX, DEPTH_MAX};
use crate::ids::AgentName;

/// What bounds the work of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asking {
    /// Calls of a model for one run.
    pub max_steps: u32,
    /// The agents that it may ask.
    pub delegates: Vec<AgentName>,
}

/// The most that the runs below one run come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Below {
    /// Calls of models.
    pub model_calls: u64,
    /// Runs.
    pub runs: u64,
}

/// The most that the runs below one come to that any of some agents works on: its own agent, or those of its network. Of
/// models and of runs each is the most, which need not be one and the same way.
#[must_use]
pub fn worst_below(agents: &BTreeMap<AgentName, Asking>, workers: &[AgentName]) -> Below {
    let mut most = Below::default();
    for worker in workers {
        let below = below(agents, &mut vec![worker]);
        most.model_calls = most.model_calls.max(below.model_calls);
        most.runs = most.runs.max(below.runs);
    }
    most
}

/// `path` ends with the agent that asks. It is at most `DEPTH_MAX + 1` long, so that this ends.
fn below<'a>(agents: &'a BTreeMap<AgentName, Asking>, path: &mut Vec<&'a AgentName>) -> Below {
    let asks = path.last().and_then(|agent| agents.get(*agent));
    let Some(asks) = asks.filter(|_| path.len() <= DEPTH_MAX) else {
        return Below::default();
    };
    let mut most = Below::default();
    for delegate in &asks.delegates {
        if path.contains(&delegate) {
            continue;
        }
        let Some(child) = agents.get(delegate) else {
            continue;
        };
        path.push(delegate);
        let under = below(agents, path);
        path.pop();
        let model_calls = under.model_calls + u64::from(child.max_steps);
        most.model_calls = most.model_calls.max(model_calls);
        most.runs = most.runs.max(under.runs + 1);
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
        let asking = |max_steps, delegates: &[&str]| Asking {
            max_steps,
            delegates: delegates.iter().map(|it| name(it)).collect(),
        };
        let agents = BTreeMap::from([
            (name("desk"), asking(8, &["look", "pen"])),
            (name("look"), asking(3, &["desk", "pen"])),
            (name("pen"), asking(2, &["check"])),
            (name("check"), asking(5, &["desk"])),
            (name("alone"), asking(9, &[])),
        ]);
        let table: [(&[&str], u64, u64); 6] = [
            (&["alone"], 0, 0),
            // Four of check, of which each may ask four of desk.
            (&["pen"], 4 * (5 + 4 * 8), 4 * 5),
            // pen is the dearer one: it asks check, and nobody below asks.
            (&["desk"], 4 * (2 + 4 * 5), 4 * 5),
            (&["look"], 4 * (2 + 4 * 5), 4 * 5),
            (&["alone", "desk", "pen"], 4 * (5 + 4 * 8), 4 * 5),
            (&["nobody"], 0, 0),
        ];
        for (workers, model_calls, runs) in table {
            let workers: Vec<AgentName> = workers.iter().map(|it| name(it)).collect();
            let expected = Below { model_calls, runs };
            assert_eq!(worst_below(&agents, &workers), expected, "{workers:?}");
        }
    }
}
