//! What happened in a run of a network so far: its decisions and its agent calls, as they are stored.

use super::facts::LastCall;
use super::network::Network;
use super::state::StateValues;
use crate::ids::AgentName;
use crate::run::Usage;

/// What decided that an agent is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoutedBy {
    /// A rule.
    Rule,
    /// Nothing new: it waited to be called.
    Stack,
    /// The routing agent.
    Router,
    /// The routing agent gave no answer that counts, so the default agent is called.
    Default,
}

impl RoutedBy {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Rule, Self::Stack, Self::Router, Self::Default];

    /// The stored and shown name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rule => "rule",
            Self::Stack => "list",
            Self::Router => "router",
            Self::Default => "default",
        }
    }

    /// The value of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|by| by.name() == name)
    }
}

/// Why a network's run ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// No rule matches, and nobody waits to be called.
    NoRule,
    /// A rule says so, with an operator's reason.
    Rule(Option<String>),
    /// The routing agent says that it is done.
    RouterDone,
    /// All agent calls are used up.
    MaxCalls,
    /// An agent said the same three times.
    NoProgress,
}

impl StopReason {
    /// The stored and shown name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::NoRule => "no_rule",
            Self::Rule(_) => "rule",
            Self::RouterDone => "done",
            Self::MaxCalls => "max_calls",
            Self::NoProgress => "no_progress",
        }
    }

    /// The reason of a name, with an operator's words.
    #[must_use]
    pub fn from_name(name: &str, words: Option<String>) -> Option<Self> {
        let all = [
            Self::NoRule,
            Self::Rule(words),
            Self::RouterDone,
            Self::MaxCalls,
            Self::NoProgress,
        ];
        all.into_iter().find(|reason| reason.name() == name)
    }
}

/// A decision, as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredDecision {
    /// The agent calls before it.
    pub calls: u32,
    /// Who is called, and what decided that; `Err`: the run ends, and why.
    pub next: Result<(AgentName, RoutedBy), StopReason>,
    /// The rule that matched, from 1.
    pub rule: Option<u32>,
    /// Who waits to be called behind that.
    pub stack: Vec<AgentName>,
    /// The values behind that, as JSON.
    pub state: String,
    /// Agents that would have been called, and were disabled.
    pub refused: Vec<AgentName>,
    /// Why, in the routing agent's words.
    pub words: String,
    /// The steps of the run so far: those of the agent that is called come behind.
    pub steps: u32,
    /// When it was kept, in milliseconds since the Unix epoch.
    pub at_ms: i64,
}

/// How an agent call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// The agent answered.
    Done,
    /// It did not.
    Failed,
}

impl CallOutcome {
    /// The stored and shown name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }

    /// The outcome of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Done, Self::Failed]
            .into_iter()
            .find(|it| it.name() == name)
    }
}

/// An agent call that ended, as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberCall {
    /// From 1.
    pub n: u32,
    /// Who was called.
    pub agent: AgentName,
    /// How it ended.
    pub outcome: CallOutcome,
    /// What was said; empty where it failed.
    pub text: String,
    /// What the room is told of the answer besides, where something is.
    pub note: Option<String>,
    /// Why it failed, for operators.
    pub reason: Option<String>,
    /// What the room is told if nobody takes over.
    pub told: Option<String>,
    /// The tools that were called, each once.
    pub tools: Vec<String>,
    /// The values behind it, as JSON.
    pub state: String,
    /// The steps of the run so far.
    pub steps: u32,
    /// What its model calls used.
    pub usage: Usage,
    /// When it ended, in milliseconds since the Unix epoch.
    pub at_ms: i64,
}

/// The decisions and agent calls of a run, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Course {
    /// One decision before the first call and one after each, as far as the run came.
    pub decisions: Vec<StoredDecision>,
    /// The agent calls that ended.
    pub calls: Vec<MemberCall>,
}

/// After how many identical texts of an agent its network ends.
const SAME_MAX: usize = 3;

impl Course {
    /// Agent calls that ended.
    #[must_use]
    pub fn count(&self) -> u32 {
        u32::try_from(self.calls.len()).unwrap_or(u32::MAX)
    }

    /// The decision that is in force: that behind the newest call, if it was made.
    #[must_use]
    pub fn decision(&self) -> Option<&StoredDecision> {
        self.decisions
            .last()
            .filter(|decision| decision.calls == self.count())
    }

    /// Who waits to be called.
    #[must_use]
    pub fn stack(&self) -> &[AgentName] {
        self.decisions
            .last()
            .map_or(&[], |decision| &decision.stack)
    }

    /// Steps of the run, as far as they belong to calls that ended, and to the decision in force.
    #[must_use]
    pub fn steps(&self) -> u32 {
        let of_calls = self.calls.last().map_or(0, |call| call.steps);
        self.decision().map_or(of_calls, |decision| decision.steps)
    }

    /// The newest values; `None` where nothing was decided yet.
    #[must_use]
    pub fn state(&self, network: &Network) -> Option<StateValues> {
        let decided = self.decision().map(|decision| &decision.state);
        let stored = decided.or_else(|| Some(&self.calls.last()?.state));
        stored.map(|stored| network.state.read(stored))
    }

    /// How often each rule was used.
    #[must_use]
    pub fn used(&self, network: &Network) -> Vec<u32> {
        let mut used = vec![0; network.rules.len()];
        let rules = self.decisions.iter().filter_map(|decision| decision.rule);
        for rule in rules {
            if let Some(used) = used.get_mut((rule as usize).wrapping_sub(1)) {
                *used += 1;
            }
        }
        used
    }

    /// The newest agent call.
    #[must_use]
    pub fn last(&self) -> Option<LastCall<'_>> {
        self.calls.last().map(|call| LastCall {
            agent: &call.agent,
            text: &call.text,
            tools: &call.tools,
            has_failed: call.outcome == CallOutcome::Failed,
        })
    }

    /// Whether the agent that was called last said the same as in its two calls before.
    #[must_use]
    pub fn is_circling(&self) -> bool {
        let Some(last) = self.calls.last() else {
            return false;
        };
        let own = self
            .calls
            .iter()
            .rev()
            .filter(|call| call.agent == last.agent);
        let mut newest = own.take(SAME_MAX);
        let count = newest.clone().count();
        let says_something = !last.text.trim().is_empty();
        says_something
            && count == SAME_MAX
            && newest.all(|call| call.text.trim() == last.text.trim())
    }

    /// What all agent calls that ended used.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.calls
            .iter()
            .fold(Usage::default(), |sum, call| sum.plus(call.usage))
    }
}
