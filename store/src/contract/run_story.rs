//! All of one run, as people look into it.

use super::ThumbCounts;
use vocative_core::approving::StoredApproval;
use vocative_core::delegating::StoredTask;
use vocative_core::ids::{AccountId, TurnId};
use vocative_core::questioning::StoredQuestion;
use vocative_core::routing::Course;
use vocative_core::run::Run;
use vocative_core::tool_call::StoredCall;

/// A run with what was asked, done and said.
#[derive(Clone, Debug)]
pub struct RunStory {
    /// The run.
    pub run: Run,
    /// The account through which it was asked.
    pub account: AccountId,
    /// The platform's id of the chat.
    pub chat: String,
    /// When it ended, in milliseconds since the Unix epoch.
    pub finished_at_ms: Option<i64>,
    /// What it answers, oldest first, as far as it is kept.
    pub asked: Vec<StoryLine>,
    /// What its models answered, oldest first; empty once its details were forgotten.
    pub steps: Vec<StoryStep>,
    /// The tool calls of its models, in order.
    pub calls: Vec<StoryCall>,
    /// What it said in its room.
    pub said: Vec<StoryLine>,
    /// The thumbs on what it said.
    pub thumbs: ThumbCounts,
    /// Of a run of a network: who was called, and why. Else empty.
    pub course: Course,
    /// The task that it works on, if another run started it.
    pub task: Option<StoredTask>,
    /// The tasks that it gave other agents, in their order.
    pub tasks: Vec<StoredTask>,
}

/// Something that was said.
#[derive(Clone, Debug)]
pub struct StoryLine {
    /// Its turn.
    pub turn: TurnId,
    /// The name of who said it.
    pub by: String,
    /// The text.
    pub text: String,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: i64,
}

/// An answer of a model.
#[derive(Clone, Debug)]
pub struct StoryStep {
    /// Its number in the run, from 1.
    pub number: u32,
    /// When it was recorded, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// The model's configured name, if it was recorded.
    pub model: Option<String>,
    /// Tokens of its prompt.
    pub prompt_tokens: u64,
    /// Of these, read from the provider's cache.
    pub cache_read_tokens: u64,
    /// Tokens of the answer.
    pub completion_tokens: u64,
}

/// A tool call, with the approval and the question that came of it.
#[derive(Clone, Debug)]
pub struct StoryCall {
    /// The call.
    pub call: StoredCall,
    /// The approval that was asked for it.
    pub approval: Option<StoredApproval>,
    /// The question that it asked.
    pub question: Option<StoredQuestion>,
}
