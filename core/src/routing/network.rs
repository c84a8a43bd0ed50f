//! What a network is made of.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use regex::{Regex, RegexBuilder};
use serde_json::Value;

use super::facts::{AskerKind, Facts};
use super::state::{StateSchema, has_same, order_to};
use crate::ids::AgentName;
use crate::place::Scope;

/// The most agent calls of one run.
pub const CALLS_MAX: u32 = 16;
/// The agent calls of one run where nothing else is set.
pub const CALLS_DEFAULT: u32 = 8;
/// The most rules of a network.
pub const RULES_MAX: usize = 64;
/// The most agents that a network lists, and that one rule calls.
pub const MEMBERS_MAX: usize = 16;
/// The longest pattern of a rule, in characters.
pub const PATTERN_MAX_CHARS: usize = 200;
/// What a compiled pattern may take, in bytes.
const COMPILED_MAX_BYTES: usize = 1 << 18;
/// How much of a text rules look at for words and patterns, in bytes.
pub const SUBJECT_MAX_BYTES: usize = 8 << 10;

/// Several agents behind one name.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// Its name: it is addressed as an agent is.
    pub name: AgentName,
    /// What the routing agent may choose from.
    pub members: Vec<AgentName>,
    /// Who is called where the routing agent gives no answer that counts.
    pub default_agent: AgentName,
    /// The most agent calls of one run: from 1 to [`CALLS_MAX`].
    pub max_calls: u32,
    /// Whose words are the answer.
    pub answer_from: AnswerFrom,
    /// Whose words are never posted.
    pub silent: BTreeSet<AgentName>,
    /// What decides who is next, from top to bottom.
    pub rules: Vec<RoutingRule>,
    /// The values that its agents share.
    pub state: StateSchema,
    /// Whether the values outlive the run, for each conversation.
    pub persist: bool,
    /// The values that an agent is shown; of an agent that is not named, none.
    pub reads: BTreeMap<AgentName, Vec<String>>,
    /// The values that an agent may set; of an agent that is not named, none.
    pub writes: BTreeMap<AgentName, Vec<String>>,
}

/// Whose words are the answer of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerFrom {
    /// Those of the agent that was called last and is not silent.
    Last,
    /// Those of this agent.
    Agent(AgentName),
    /// Those of each agent that is not silent: a post each.
    Each,
}

/// A rule that decides which agent is next.
#[derive(Clone, Debug, PartialEq)]
pub struct RoutingRule {
    /// When it matches.
    pub when: When,
    /// Values that it sets.
    pub set: Vec<(String, Value)>,
    /// What follows.
    pub action: RuleAction,
    /// How often it may be used in one run, from 1.
    pub at_most: u32,
}

/// What follows from a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleAction {
    /// These agents are called, one after the other, behind those that wait to be.
    Call(Vec<AgentName>),
    /// The routing agent is asked.
    AskRouter,
    /// The run ends, whoever waits to be called.
    Stop {
        /// Why, in an operator's words.
        reason: Option<String>,
    },
}

/// When a rule matches: all terms hold, and those of `not` do not all hold. Without any it always does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct When {
    /// What must hold.
    pub terms: Vec<RuleTerm>,
    /// What must not hold all together; empty: nothing.
    pub not: Vec<RuleTerm>,
}

/// One condition of a rule. Lists mean "one of".
#[derive(Clone, Debug, PartialEq)]
pub enum RuleTerm {
    /// Agent calls of this run so far.
    Calls(CountRange),
    /// Who was called last.
    LastAgent(Vec<AgentName>),
    /// What that agent said.
    LastText(TextTest),
    /// A tool that was called in the last agent call.
    LastTool(Vec<String>),
    /// Whether the last agent call failed.
    LastFailed(bool),
    /// Whether nobody waits to be called.
    StackEmpty(bool),
    /// A value.
    State(String, StateTest),
    /// By which name the network was addressed.
    Alias(Vec<String>),
    /// Where it was asked.
    Scope(Vec<Scope>),
    /// In which chat, as CHANNEL/CHAT.
    Chat(Vec<String>),
    /// Who asked.
    Sender(Vec<AskerKind>),
    /// Whether files came with the question.
    HasFiles(bool),
    /// What was asked.
    Text(TextTest),
}

/// Whole numbers from one to another, both included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountRange {
    /// The least.
    pub ge: Option<u32>,
    /// The most.
    pub le: Option<u32>,
}

impl CountRange {
    /// One number.
    #[must_use]
    pub fn exactly(n: u32) -> Self {
        Self {
            ge: Some(n),
            le: Some(n),
        }
    }

    /// Whether a number is in it.
    #[must_use]
    pub fn has(self, n: u32) -> bool {
        self.ge.is_none_or(|least| n >= least) && self.le.is_none_or(|most| n <= most)
    }
}

/// What a text must be: all tests that are given must hold.
#[derive(Clone, Debug, Default)]
pub struct TextTest {
    /// Words, one of which is in it, whatever their case.
    pub contains: Vec<String>,
    /// A pattern that finds something in it.
    pub matches: Option<Regex>,
    /// Whether it says nothing.
    pub is_empty: Option<bool>,
}

impl PartialEq for TextTest {
    fn eq(&self, other: &Self) -> bool {
        let pattern = |of: &Self| of.matches.as_ref().map(|it| it.as_str().to_owned());
        (&self.contains, pattern(self), self.is_empty)
            == (&other.contains, pattern(other), other.is_empty)
    }
}

impl TextTest {
    /// Reads a pattern. Matching is linear in the text's size.
    ///
    /// # Errors
    /// What is wrong with it, in words behind its name.
    pub fn pattern(text: &str) -> Result<Regex, String> {
        if text.chars().count() > PATTERN_MAX_CHARS {
            return Err(format!("is longer than {PATTERN_MAX_CHARS} characters"));
        }
        let built = RegexBuilder::new(text)
            .size_limit(COMPILED_MAX_BYTES)
            .build();
        built.map_err(|cause| match cause {
            regex::Error::CompiledTooBig(_) => "takes too much memory".to_owned(),
            other => format!(
                "is no pattern: {}",
                other.to_string().lines().last().unwrap_or_default()
            ),
        })
    }

    /// Whether a text passes.
    pub(super) fn holds(&self, text: &str) -> bool {
        let is_blank = || text.trim().is_empty();
        if self.is_empty.is_some_and(|is| is_blank() != is) {
            return false;
        }
        let text = subject(text);
        let folded = || text.to_lowercase();
        let has_word = self.contains.is_empty() || {
            let folded = folded();
            self.contains
                .iter()
                .any(|word| folded.contains(&word.to_lowercase()))
        };
        has_word
            && self
                .matches
                .as_ref()
                .is_none_or(|pattern| pattern.is_match(text))
    }
}

/// The beginning of a text, in which rules look for words and patterns.
fn subject(text: &str) -> &str {
    let mut end = text.len().min(SUBJECT_MAX_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// What a value must be: all tests that are given must hold. A value that is not set passes `is_set = false` alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StateTest {
    /// It is one of these.
    pub one_of: Vec<Value>,
    /// It is at least this.
    pub ge: Option<f64>,
    /// It is at most this.
    pub le: Option<f64>,
    /// Whether it has a value.
    pub is_set: Option<bool>,
}

impl StateTest {
    /// Whether a value passes.
    pub(super) fn holds(&self, value: Option<&Value>) -> bool {
        let is_set = value.is_some();
        if self.is_set.is_some_and(|wanted| wanted != is_set) {
            return false;
        }
        let order = |limit: f64| value.and_then(|value| order_to(value, limit));
        (self.one_of.is_empty() || value.is_some_and(|value| has_same(&self.one_of, value)))
            && self
                .ge
                .is_none_or(|least| order(least).is_some_and(Ordering::is_ge))
            && self
                .le
                .is_none_or(|most| order(most).is_some_and(Ordering::is_le))
    }
}

impl When {
    /// Whether it holds.
    #[must_use]
    pub fn holds(&self, facts: &Facts<'_>) -> bool {
        let all = |terms: &[RuleTerm]| terms.iter().all(|term| term.holds(facts));
        all(&self.terms) && (self.not.is_empty() || !all(&self.not))
    }
}

impl RuleTerm {
    /// Whether it holds.
    #[must_use]
    pub fn holds(&self, facts: &Facts<'_>) -> bool {
        let last = facts.last.as_ref();
        match self {
            Self::Calls(range) => range.has(facts.calls),
            Self::LastAgent(agents) => last.is_some_and(|last| agents.contains(last.agent)),
            Self::LastText(test) => last.is_some_and(|last| test.holds(last.text)),
            Self::LastTool(tools) => {
                last.is_some_and(|last| tools.iter().any(|tool| last.tools.contains(tool)))
            }
            Self::LastFailed(is) => last.is_some_and(|last| last.has_failed == *is),
            Self::StackEmpty(is) => facts.stack.is_empty() == *is,
            Self::State(key, test) => test.holds(facts.state.get(key)),
            Self::Alias(names) => {
                let name = facts.alias.map(str::to_lowercase);
                name.is_some_and(|name| names.iter().any(|it| it.to_lowercase() == name))
            }
            Self::Scope(scopes) => scopes.contains(&facts.scope),
            Self::Chat(chats) => chats.iter().any(|chat| chat == facts.chat),
            Self::Sender(senders) => senders.iter().any(|sender| facts.senders.contains(sender)),
            Self::HasFiles(is) => facts.has_files == *is,
            Self::Text(test) => test.holds(facts.text),
        }
    }
}

impl Network {
    /// Every agent that may be called: by a rule, by the routing agent, or in its place.
    #[must_use]
    pub fn callable(&self) -> BTreeSet<&AgentName> {
        let mut all = BTreeSet::new();
        for rule in &self.rules {
            match &rule.action {
                RuleAction::Call(agents) => all.extend(agents),
                RuleAction::AskRouter => {
                    all.extend(&self.members);
                    all.insert(&self.default_agent);
                }
                RuleAction::Stop { .. } => {}
            }
        }
        all
    }
}
