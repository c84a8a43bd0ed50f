//! Whether a run may ask another agent, and what share of its budget that one gets.

use crate::delegating::{CHILDREN_MAX, DEPTH_MAX};
use crate::ids::AgentName;
use crate::running::budget::{RunBudget, RunUse};

/// What is known when a run is to ask another agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelegatingFacts {
    /// The agents from the person's question down to the run that asks, that one last.
    pub path: Vec<AgentName>,
    /// The agent that asked at each step of the path, and the one that asks now: in a network's run, one of its agents.
    pub askers: Vec<AgentName>,
    /// What the run may use.
    pub budget: RunBudget,
    /// Tool calls that it may make.
    pub calls_max: u32,
    /// What it has used itself.
    pub used: RunUse,
    /// Tool calls that it has made itself.
    pub calls: u32,
    /// What the runs that it started use.
    pub children: Vec<ChildUse>,
}

/// What a run that was started by another one uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChildUse {
    /// Whether it is at its end, and uses no more.
    pub is_over: bool,
    /// What it has used, with what it started itself.
    pub used: RunUse,
    /// Tool calls that were made for it.
    pub calls: u32,
    /// What it may use.
    pub share: Share,
}

/// What a run may use that another one starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Tokens, money, time. A limit of 0 does not hold.
    pub budget: RunBudget,
    /// Tool calls.
    pub calls: u32,
}

/// Why an agent is not asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotDelegated {
    /// It waits for this run already, or is this run's own.
    Cycle,
    /// It is a network, and one of its agents waits for this run already, or is this run's own.
    MemberWaits,
    /// The run stands as deep as runs may.
    TooDeep,
    /// The run has asked as many agents as it may.
    TooMany,
    /// Nothing is left of the run's budget to share.
    NothingLeft,
}

impl ChildUse {
    /// What is counted for the child: what it has used, and while it is not over, its whole share.
    fn counted(&self) -> (RunUse, u32) {
        if self.is_over {
            return (self.used, self.calls);
        }
        let share = self.share.budget;
        let used = RunUse {
            tokens: self.used.tokens.max(share.tokens),
            cost_micros: self.used.cost_micros.max(share.cost_micros),
            worked_ms: self.used.worked_ms.max(share.worked_ms),
        };
        (used, self.calls.max(self.share.calls))
    }
}

/// The share of an agent that a run asks: half of what is left of each limit, so that there is always something left to
/// answer with, and the sum of all shares stays within the limit. `members`: for a network, the agents that may be
/// called for it.
///
/// # Errors
/// [`NotDelegated`], the first that holds.
pub fn delegate(
    facts: &DelegatingFacts,
    agent: &AgentName,
    members: &[AgentName],
) -> Result<Share, NotDelegated> {
    let waits = |agent: &AgentName| facts.path.contains(agent) || facts.askers.contains(agent);
    if waits(agent) {
        return Err(NotDelegated::Cycle);
    }
    if members.iter().any(waits) {
        return Err(NotDelegated::MemberWaits);
    }
    if facts.path.len() > DEPTH_MAX {
        return Err(NotDelegated::TooDeep);
    }
    if facts.children.len() >= CHILDREN_MAX {
        return Err(NotDelegated::TooMany);
    }
    let (mut used, mut calls) = (facts.used, facts.calls);
    for child in &facts.children {
        let (of_child, calls_of_child) = child.counted();
        used = used.plus(of_child);
        calls = calls.saturating_add(calls_of_child);
    }
    let budget = RunBudget {
        tokens: half(facts.budget.tokens, used.tokens)?,
        cost_micros: half(facts.budget.cost_micros, used.cost_micros)?,
        worked_ms: half(facts.budget.worked_ms, used.worked_ms)?,
    };
    let calls = facts.calls_max.saturating_sub(calls) / 2;
    if calls == 0 {
        return Err(NotDelegated::NothingLeft);
    }
    Ok(Share { budget, calls })
}

/// Half of what is left of a limit; 0 where no limit is set.
fn half(limit: u64, used: u64) -> Result<u64, NotDelegated> {
    match limit {
        0 => Ok(0),
        limit => match limit.saturating_sub(used) / 2 {
            0 => Err(NotDelegated::NothingLeft),
            half => Ok(half),
        },
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn names(path: &[&str]) -> Vec<AgentName> {
        path.iter().map(|name| AgentName::trusted(*name)).collect()
    }

    fn facts(path: &[&str]) -> DelegatingFacts {
        DelegatingFacts {
            path: names(path),
            askers: Vec::new(),
            budget: RunBudget {
                tokens: 1_000,
                cost_micros: 0,
                worked_ms: 60_000,
            },
            calls_max: 64,
            used: RunUse {
                tokens: 200,
                cost_micros: 7,
                worked_ms: 10_000,
            },
            calls: 4,
            children: Vec::new(),
        }
    }

    #[test]
    fn agents_on_the_path_are_not_asked_and_the_path_has_an_end() {
        let table: [(&[&str], &str, Option<NotDelegated>); 6] = [
            (&["desk"], "look", None),
            (&["desk"], "desk", Some(NotDelegated::Cycle)),
            (&["desk", "look"], "desk", Some(NotDelegated::Cycle)),
            (&["desk", "look"], "pen", None),
            (
                &["desk", "look", "pen"],
                "check",
                Some(NotDelegated::TooDeep),
            ),
            (&["desk", "look", "pen"], "look", Some(NotDelegated::Cycle)),
        ];
        for (path, agent, refused) in table {
            let decided = delegate(&facts(path), &AgentName::trusted(agent), &[]);
            assert_eq!(decided.err(), refused, "{path:?} asks {agent}");
        }
    }

    #[test]
    fn an_agent_of_a_network_that_waits_is_not_asked() {
        let facts = DelegatingFacts {
            askers: names(&["desk", "look"]),
            ..facts(&["team", "look"])
        };
        for (agent, refused) in [
            ("team", Some(NotDelegated::Cycle)),
            ("desk", Some(NotDelegated::Cycle)),
            ("pen", None),
        ] {
            let decided = delegate(&facts, &AgentName::trusted(agent), &[]);
            assert_eq!(decided.err(), refused, "{agent}");
        }
    }

    #[test]
    fn a_network_is_asked_unless_it_or_one_of_its_agents_waits() {
        // desk asked the network team, whose agent look asks.
        let facts = DelegatingFacts {
            askers: names(&["desk", "look"]),
            ..facts(&["desk", "team"])
        };
        let table: [(&str, &[&str], Option<NotDelegated>); 5] = [
            ("aides", &["pen", "check"], None),
            ("team", &["look", "pen"], Some(NotDelegated::Cycle)),
            ("aides", &["pen", "look"], Some(NotDelegated::MemberWaits)),
            ("aides", &["desk"], Some(NotDelegated::MemberWaits)),
            // An agent that was called for the network earlier does not wait.
            ("pen", &[], None),
        ];
        for (network, members, refused) in table {
            let decided = delegate(&facts, &AgentName::trusted(network), &names(members));
            assert_eq!(decided.err(), refused, "{network} of {members:?}");
        }
        // A network's agents stand at the network's depth: the agent that they ask may ask no other.
        let deepest = DelegatingFacts {
            path: names(&["desk", "team", "aides"]),
            ..facts
        };
        let decided = delegate(&deepest, &AgentName::trusted("last"), &[]);
        assert_eq!(decided, Err(NotDelegated::TooDeep));
    }

    #[test]
    fn a_share_is_half_of_what_is_left_and_all_shares_together_fit() {
        let mut facts = facts(&["desk"]);
        let look = AgentName::trusted("look");
        let mut shares = Vec::new();
        for _ in 0..CHILDREN_MAX {
            let share = delegate(&facts, &look, &[]).unwrap();
            shares.push(share.budget.tokens);
            facts.children.push(ChildUse {
                share,
                ..ChildUse::default()
            });
        }
        assert_eq!(shares, [400, 200, 100, 50]);
        assert_eq!(delegate(&facts, &look, &[]), Err(NotDelegated::TooMany));

        // A child that is over gives back the unused part of its share; only what it used counts.
        facts.children.truncate(1);
        facts.children[0] = ChildUse {
            is_over: true,
            used: RunUse {
                tokens: 100,
                ..RunUse::default()
            },
            calls: 10,
            ..facts.children[0]
        };
        let share = delegate(&facts, &look, &[]).unwrap();
        let expected = RunBudget {
            tokens: 350,
            cost_micros: 0,
            worked_ms: 25_000,
        };
        assert_eq!((share.budget, share.calls), (expected, 25));
    }

    #[test]
    fn who_has_nothing_left_asks_nobody() {
        let look = AgentName::trusted("look");
        let spent = |change: fn(&mut DelegatingFacts)| {
            let mut facts = facts(&["desk"]);
            change(&mut facts);
            delegate(&facts, &look, &[])
        };
        let nothing = Err(NotDelegated::NothingLeft);
        assert_eq!(spent(|facts| facts.used.tokens = 999), nothing);
        assert_eq!(spent(|facts| facts.used.tokens = u64::MAX), nothing);
        assert_eq!(spent(|facts| facts.used.worked_ms = 60_000), nothing);
        assert_eq!(spent(|facts| facts.calls = 63), nothing);
        // A limit that is not set is never used up.
        assert!(spent(|facts| facts.used.cost_micros = u64::MAX).is_ok());
    }
}
