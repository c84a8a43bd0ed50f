//! What a decision is made of, beside the rules.

use std::collections::BTreeSet;

use super::state::StateValues;
use crate::ids::AgentName;
use crate::place::Scope;

/// The facts at the moment of a decision.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// Agent calls of this run so far.
    pub calls: u32,
    /// The newest of them.
    pub last: Option<LastCall<'a>>,
    /// Who waits to be called, the next first.
    pub stack: &'a [AgentName],
    /// The values.
    pub state: &'a StateValues,
    /// How often each rule was used.
    pub used: &'a [u32],
    /// Agents that may not be called here and now.
    pub disabled: &'a BTreeSet<AgentName>,
    /// Whether the agent that was called last said the same three times.
    pub is_circling: bool,
    /// By which name the network was addressed, where one was said.
    pub alias: Option<&'a str>,
    /// Where it was asked.
    pub scope: Scope,
    /// In which chat, as CHANNEL/CHAT.
    pub chat: &'a str,
    /// What the sender of the question is.
    pub senders: &'a [AskerKind],
    /// Whether files came with the question.
    pub has_files: bool,
    /// What was asked.
    pub text: &'a str,
}

/// The newest agent call.
#[derive(Clone, Debug)]
pub struct LastCall<'a> {
    /// Who was called.
    pub agent: &'a AgentName,
    /// What was said.
    pub text: &'a str,
    /// The tools that were called.
    pub tools: &'a [String],
    /// Whether it failed.
    pub has_failed: bool,
}

/// What somebody who asks is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AskerKind {
    /// A person.
    Person,
    /// A bot.
    Bot,
    /// Somebody in the channel's `admins`.
    Admin,
}

impl AskerKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Person, Self::Bot, Self::Admin];

    /// The configured name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Bot => "bot",
            Self::Admin => "admin",
        }
    }

    /// The sender of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|sender| sender.name() == name)
    }
}
