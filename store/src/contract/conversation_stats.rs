//! Figures of a conversation.

use super::ThumbCounts;

/// Figures of a conversation and its threads since a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConversationStats {
    /// Messages of people, and of bots that are not ours.
    pub messages_of_people: u64,
    /// People and bots that sent them.
    pub speakers: u64,
    /// Messages of agents.
    pub messages_of_agents: u64,
    /// Runs that were made for questions.
    pub runs: u64,
    /// Of these, runs that answered.
    pub runs_answered: u64,
    /// Of these, runs that were given up.
    pub runs_dead: u64,
    /// From a question to its answer; `None` if none was answered.
    pub answer_times: Option<AnswerTimes>,
    /// Tokens of prompts whose details are kept.
    pub prompt_tokens: u64,
    /// Tokens of answers whose details are kept.
    pub completion_tokens: u64,
    /// What all runs cost, in millionths of the currency.
    pub cost_micros: u64,
    /// What people think of the answers.
    pub thumbs: ThumbCounts,
    /// Whether there is more than was counted.
    pub is_cut: bool,
}

/// How long answers took, in milliseconds: from when the run was made until its answer was committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerTimes {
    /// The median.
    pub p50_ms: u64,
    /// The 95th percentile.
    pub p95_ms: u64,
}
