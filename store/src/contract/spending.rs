//! Tokens that were spent, and on what.

use vocative_core::ids::{AccountId, AgentName, ConversationId, ParticipantId, RunId};
use vocative_core::price::Spent;
use vocative_core::run::Usage;

/// What tokens were spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Answers, with all steps to them.
    Answers,
    /// Summaries of older turns.
    Summaries,
    /// Writing voice notes down.
    Speech,
    /// Reading conversations for what is worth keeping.
    Memory,
}

/// Tokens that were spent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spending {
    /// The channel's account that spent them.
    pub account: AccountId,
    /// The person whose question or voice note it was; `None` for summaries and memory.
    pub person: Option<ParticipantId>,
    /// On what.
    pub purpose: Purpose,
    /// How many; of a voice note the tokens of its prompt only.
    pub usage: Usage,
    /// What they cost, in millionths of the currency of the prices.
    pub cost_micros: u64,
    /// The call of a model that spent them; `None` for voice notes.
    pub call: Option<ModelCall>,
    /// When, in milliseconds since the Unix epoch.
    pub now_ms: i64,
}

/// A call of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelCall {
    /// Where.
    pub conversation: ConversationId,
    /// For which agent.
    pub agent: AgentName,
    /// The model's name in the configuration.
    pub model: String,
    /// In which run; `None` for summaries.
    pub run: Option<RunId>,
}

/// What was spent since the start of the UTC day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpentToday {
    /// By everybody of an account.
    pub by_account: Spent,
    /// By one person of it, with all accounts that they joined to this one.
    pub by_person: Spent,
}
