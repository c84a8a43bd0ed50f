//! Runs: one agent's work on its trigger turns.

use crate::approving::Taint;
use crate::hooking::HookVerdict;
use crate::ids::{AgentName, ConversationId, LeaseToken, OwnerId, RunId, Seq, TurnId};
use crate::slots::Asker;

/// Where a run stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunState {
    /// Waits for its turn, not before that time.
    Queued {
        /// In milliseconds since the Unix epoch.
        not_before_ms: i64,
    },
    /// Somebody works on it.
    Leased {
        /// Who.
        owner: OwnerId,
        /// Until when, in milliseconds since the Unix epoch.
        until_ms: i64,
    },
    /// Waits for people to decide about its tool calls, or for agents that it asked.
    Waiting {
        /// When the first of them is decided by time, in milliseconds since the Unix epoch; `None` = never.
        until_ms: Option<i64>,
    },
    /// Was open in a backup that was restored, and may have been answered since; waits for a person.
    Held {
        /// Why.
        reason: String,
    },
    /// Answered.
    Done,
    /// Cancelled before it answered (its trigger was deleted or changed, or a person said so).
    Cancelled,
    /// Given up after its attempts; the room was told.
    Dead {
        /// Why, for operators; never shown in the room.
        reason: String,
    },
}

impl RunState {
    /// The stored and shown name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Queued { .. } => "queued",
            Self::Leased { .. } => "leased",
            Self::Waiting { .. } => "waiting",
            Self::Held { .. } => "held",
            Self::Done => "done",
            Self::Cancelled => "cancelled",
            Self::Dead { .. } => "dead",
        }
    }
}

/// Where a run stands, without what belongs to it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStage {
    /// Waits for its turn.
    Queued,
    /// Waits for a person, another run or a time.
    Waiting,
    /// Somebody works on it.
    Leased,
    /// Was open in a backup that was restored.
    Held,
    /// Its row can't be decoded.
    Quarantined,
    /// Answered.
    Done,
    /// Cancelled before it answered.
    Cancelled,
    /// Given up.
    Dead,
}

impl RunStage {
    /// The stored name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Waiting => "waiting",
            Self::Leased => "leased",
            Self::Held => "held",
            Self::Quarantined => "quarantined",
            Self::Done => "done",
            Self::Cancelled => "cancelled",
            Self::Dead => "dead",
        }
    }

    /// The stage of a stored name, those of earlier builds included.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "queued" => Self::Queued,
            "waiting" => Self::Waiting,
            "leased" => Self::Leased,
            "held" => Self::Held,
            "quarantined" => Self::Quarantined,
            "done" => Self::Done,
            "cancelled" | "superseded" => Self::Cancelled,
            "dead" | "failed" => Self::Dead,
            _ => return None,
        })
    }

    /// Whether it waits to be worked on.
    #[must_use]
    pub fn waits(self) -> bool {
        matches!(self, Self::Queued | Self::Waiting | Self::Held)
    }
}

/// Why a run is asked to stop, or ended without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopCause {
    /// What it was to answer was deleted.
    Deleted,
    /// An edit took the address away. Another edit that gives it back brings the run back.
    Edited,
    /// What it was to answer, or read, was erased.
    Erased,
    /// A later message took its place.
    Interrupted,
    /// A person in the room said so.
    Stopped,
    /// Its chat or person is not served any more.
    Unserved,
    /// An operator said so.
    Operator,
    /// The run that started it does not wait for it any more.
    Parent,
}

impl StopCause {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Deleted,
        Self::Edited,
        Self::Erased,
        Self::Interrupted,
        Self::Stopped,
        Self::Unserved,
        Self::Operator,
        Self::Parent,
    ];

    /// The stored and shown name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::Edited => "edited",
            Self::Erased => "erased",
            Self::Interrupted => "interrupted",
            Self::Stopped => "stopped",
            Self::Unserved => "unserved",
            Self::Operator => "operator",
            Self::Parent => "parent",
        }
    }

    /// The cause of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.name() == name)
    }
}

/// A cause with what people are told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopping {
    /// The cause.
    pub cause: StopCause,
    /// What people read.
    pub detail: String,
}

impl From<StopCause> for Stopping {
    fn from(cause: StopCause) -> Self {
        Self {
            cause,
            detail: cause.name().to_owned(),
        }
    }
}

/// Tokens a model reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt, whatever the provider's cache did with them.
    pub prompt_tokens: u64,
    /// Of these, read from the provider's cache.
    pub cache_read_tokens: u64,
    /// Of these, written to the provider's cache.
    pub cache_write_tokens: u64,
    /// Tokens of the answer.
    pub completion_tokens: u64,
}

impl Usage {
    /// Prompt and answer together.
    #[must_use]
    pub fn total(self) -> u64 {
        self.prompt_tokens.saturating_add(self.completion_tokens)
    }

    /// Tokens of the prompt that the provider's cache neither gave nor took.
    #[must_use]
    pub fn uncached_tokens(self) -> u64 {
        self.prompt_tokens
            .saturating_sub(self.cache_read_tokens)
            .saturating_sub(self.cache_write_tokens)
    }

    /// The usage of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            prompt_tokens: self.prompt_tokens.saturating_add(other.prompt_tokens),
            cache_read_tokens: self
                .cache_read_tokens
                .saturating_add(other.cache_read_tokens),
            cache_write_tokens: self
                .cache_write_tokens
                .saturating_add(other.cache_write_tokens),
            completion_tokens: self
                .completion_tokens
                .saturating_add(other.completion_tokens),
        }
    }
}

/// One agent's work on its trigger turns.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// The conversation it belongs to (the thread's, where the answer opens a thread).
    pub conversation: ConversationId,
    /// The agent that works on it.
    pub agent: AgentName,
    /// Where it stands.
    pub state: RunState,
    /// The read bound, written at the first claim.
    pub as_of_seq: Option<Seq>,
    /// When it was first claimed, in milliseconds since the Unix epoch.
    pub first_claimed_at_ms: Option<i64>,
    /// Attempts so far, the present one included.
    pub attempt: u32,
    /// Its triggers, oldest first.
    pub triggers: Vec<TurnId>,
    /// What it has read that its askers did not write, in the order in which it did.
    pub taints: Vec<Taint>,
    /// What hooks said of it, in the order of its steps.
    pub hooks: Vec<HookVerdict>,
    /// The configured names of the models that answered its steps, each once, while its steps are kept.
    pub models: Vec<String>,
    /// When it came to be, in milliseconds since the Unix epoch.
    pub created_at_ms: i64,
    /// Tokens used.
    pub usage: Usage,
    /// What they cost, in millionths of `limits.currency`.
    pub cost_micros: u64,
}

/// A run that this process has leased, with what is needed to answer.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimedRun {
    /// The run.
    pub run: Run,
    /// The lease; every write needs it.
    pub token: LeaseToken,
    /// The read bound.
    pub as_of_seq: Seq,
    /// When it was first claimed: the run's "now", so that a retry assembles the same bytes. In
    /// milliseconds since the Unix epoch.
    pub as_of_ms: i64,
    /// Who asks, through which account.
    pub asker: Asker,
    /// The configured name of the model that it asks for; `None` = its agent's own.
    pub asked_model: Option<String>,
    /// When it was asked, by the run clock.
    pub asked_at_run_ms: i64,
    /// Attempts that do not count: the model could not answer.
    pub put_offs: u32,
}

impl ClaimedRun {
    /// Attempts that count, the present one included.
    #[must_use]
    pub fn attempts_used(&self) -> u32 {
        self.run.attempt.saturating_sub(self.put_offs)
    }
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Finish {
    /// It was complete.
    Stop,
    /// `max_output_tokens` was reached: the text is cut.
    Length,
    /// The provider's filter stopped it.
    ContentFilter,
    /// Something else, or nothing was said.
    Other,
}
