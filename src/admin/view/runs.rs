//! Runs and posts that wait or were given up.

use serde::{Deserialize, Serialize};

use vocative_core::hooking::{HookDecision, HookVerdict};
use vocative_core::outbox::{OutboxEntry, OutboxState};
use vocative_core::run::{Run, RunState};
use vocative_core::words::Language;

/// A run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunView {
    /// Its id.
    pub id: String,
    /// Its agent.
    pub agent: String,
    /// Where it stands.
    pub state: String,
    /// Why it was given up or is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Attempts so far.
    pub attempt: u32,
    /// Tokens of its prompts.
    pub prompt_tokens: u64,
    /// Of these, read from the provider's cache.
    #[serde(default)]
    pub cache_read_tokens: u64,
    /// Of these, written to the provider's cache.
    #[serde(default)]
    pub cache_write_tokens: u64,
    /// Tokens of its answers.
    pub completion_tokens: u64,
    /// What they cost, in millionths of `limits.currency`; 0 where its models have no prices.
    #[serde(default)]
    pub cost_micros: u64,
    /// Where it has read content that the people who asked did not write: `fetch (step 1)`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    /// What hooks said of it, other than that they had no objection: `guard at before_tool (step 1): deny, not today`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<String>,
    /// The models that answered its steps, by their configured names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
}

impl RunView {
    /// The view of a run.
    #[must_use]
    pub fn of(run: &Run) -> Self {
        let reason = match &run.state {
            RunState::Dead { reason } | RunState::Held { reason } => Some(reason.clone()),
            _ => None,
        };
        Self {
            id: run.id.to_string(),
            agent: run.agent.to_string(),
            state: run.state.name().to_owned(),
            reason,
            attempt: run.attempt,
            prompt_tokens: run.usage.prompt_tokens,
            cache_read_tokens: run.usage.cache_read_tokens,
            cache_write_tokens: run.usage.cache_write_tokens,
            completion_tokens: run.usage.completion_tokens,
            cost_micros: run.cost_micros,
            read: run
                .taints
                .iter()
                .map(|it| it.words(Language::English))
                .collect(),
            hooks: {
                let said = run.hooks.iter();
                let said = said.filter(|said| said.verdict != HookDecision::Pass);
                said.map(HookVerdict::words).collect()
            },
            models: run.models.clone(),
        }
    }
}

/// A run that waits for a person.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HeldRunView {
    /// The run.
    pub run: RunView,
    /// The name of its conversation.
    pub conversation: String,
    /// What it was to answer; empty once deleted.
    pub text: String,
}

/// A run that waits for its answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct QueuedRunView {
    /// The run.
    pub run: RunView,
    /// The name of its conversation.
    pub conversation: String,
    /// Who asked first.
    pub person: Option<String>,
    /// What it is to answer, oldest first.
    pub texts: Vec<String>,
    /// How long ago it came to be.
    pub age_ms: i64,
    /// What it waits for, in words.
    pub why: String,
}

/// What was given up.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeadView {
    /// Questions.
    pub runs: Vec<HeldRunView>,
    /// Posts.
    pub posts: Vec<PostView>,
}

/// A row of a queue that can't be decoded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct QuarantinedView {
    /// Its id: the queue and the row.
    pub id: String,
    /// What of it can't be decoded.
    pub reason: String,
    /// When it was set aside, in milliseconds since the Unix epoch.
    pub at_ms: i64,
}

/// What was decided about.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct ReleasedView {
    /// Whether it is a run; else a post.
    pub is_run: bool,
}

/// A post.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PostView {
    /// Its id.
    pub id: String,
    /// Where it stands.
    pub state: String,
    /// Why it is held or dead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether the platform was asked and it is still unknown whether the post arrived.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undecided: bool,
    /// The platform's message id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The chat it goes to.
    pub chat: String,
    /// Which part of the answer, from 0.
    pub part: u32,
    /// Attempts so far.
    pub attempts: u32,
    /// When the first attempt began, in milliseconds since the Unix epoch: an older message can't be this post.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_attempt_ms: Option<i64>,
    /// Its text, as the platform takes it.
    pub text: String,
}

impl PostView {
    /// The view of a post.
    #[must_use]
    pub fn of(entry: &OutboxEntry) -> Self {
        let (reason, message_id) = match &entry.state {
            OutboxState::Held { reason } | OutboxState::Dead { reason } => {
                (Some(reason.clone()), None)
            }
            OutboxState::Sent { message_id } => (None, Some(message_id.clone())),
            _ => (None, None),
        };
        Self {
            id: entry.id.to_string(),
            state: entry.state.name().to_owned(),
            reason,
            undecided: entry.is_undecided,
            message_id,
            chat: entry.target.chat.clone(),
            part: entry.part_number,
            attempts: entry.attempts,
            first_attempt_ms: entry.first_attempt_ms,
            text: entry.part.text.clone(),
        }
    }
}
