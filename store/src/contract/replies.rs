//! Answers, and what is posted of them.

use vocative_contract::envelope::ChatKind;
use vocative_contract::identity::Platform;
use vocative_contract::outbound::{Part, Target};

use super::networks::ValuesToKeep;
use super::runs::RunEnding;
use vocative_core::hooking::HookVerdict;
use vocative_core::ids::{AccountId, AgentName, ChatId, LeaseToken, OutboxId, RunId, TurnId};
use vocative_core::place::Scope;
use vocative_core::run::Usage;
use vocative_core::turn::{TokenCount, TurnKind};

/// The answer of a run: one transaction makes it durable.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplyCommit {
    /// The run.
    pub run: RunId,
    /// Its lease.
    pub token: LeaseToken,
    /// The agent, or the network, whose run it is.
    pub agent: AgentName,
    /// Who says it: the agent, or one of its network.
    pub speaker: AgentName,
    /// Their name for people.
    pub speaker_display_name: String,
    /// What others of the network say before it.
    pub before: Vec<SaidBefore>,
    /// What it says, platform-neutral.
    pub text: String,
    /// `Message` for an answer, `Notice` for a failure told to the room.
    pub kind: TurnKind,
    /// How the run ends.
    pub ending: RunEnding,
    /// The rendered posts, in order; none means nothing is posted.
    pub parts: Vec<Part>,
    /// Where they go.
    pub target: Target,
    /// How long an edit of the run's placeholder may still be on its way to the platform.
    pub live_settle_ms: i64,
    /// What hooks said of it.
    pub verdicts: Vec<HookVerdict>,
    /// The token count of the text.
    pub tokens: Option<TokenCount>,
    /// Tokens used.
    pub usage: Usage,
    /// Values that are to outlive the run.
    pub values: Option<ValuesToKeep>,
    /// The time, in milliseconds since the Unix epoch.
    pub now_ms: i64,
}

/// What another agent of a network says in the same answer.
#[derive(Clone, Debug, PartialEq)]
pub struct SaidBefore {
    /// Who.
    pub speaker: AgentName,
    /// Their name for people.
    pub speaker_display_name: String,
    /// What, platform-neutral.
    pub text: String,
    /// The rendered posts, in order.
    pub parts: Vec<Part>,
    /// The token count of the text.
    pub tokens: Option<TokenCount>,
}

/// The post that shows the beginning of an answer while it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct NewPlaceholder {
    /// The run that answers.
    pub run: RunId,
    /// Its lease.
    pub token: LeaseToken,
    /// Where.
    pub target: Target,
    /// The beginning, rendered.
    pub part: Part,
    /// The time, in milliseconds since the Unix epoch.
    pub now_ms: i64,
}

/// What became of a new placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// It will be posted.
    Committed,
    /// An earlier attempt of the run made one.
    Found,
    /// The run is another worker's by now, or is to stop.
    Refused,
}

/// Where a placeholder stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placeholder {
    /// It is not posted yet, or it is unknown whether it is.
    Waiting,
    /// It is in the room.
    Shown {
        /// The platform's chat id.
        chat: String,
        /// The platform's message id.
        message_id: String,
    },
    /// It will never be shown.
    Over,
}

/// Where an answer of a conversation goes.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplyRoute {
    /// The account.
    pub account: AccountId,
    /// The configured channel bound to it.
    pub channel: String,
    /// The platform.
    pub platform: Platform,
    /// The chat.
    pub chat: ChatId,
    /// Chat, thread, topic, and the trigger's message id as `reply_to`.
    pub target: Target,
    /// What kind of place.
    pub scope: Scope,
    /// The kind of chat.
    pub chat_kind: Option<ChatKind>,
    /// Whether the answer replaces an earlier one.
    pub replaces_answer: bool,
    /// The platform's id of the person who said the newest trigger.
    pub person: Option<String>,
}

/// What became of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommittedReply {
    /// The turn, and its posts.
    Written {
        /// The turn.
        turn: TurnId,
        /// The posts, in order.
        posts: Vec<OutboxId>,
    },
    /// The lease is no longer held: nothing was written.
    Stale,
    /// Something that the run read for certain is gone: nothing was written, and what it did so far is
    /// forgotten. It is to be tried again.
    SourceGone,
    /// The run was cancelled meanwhile and ended without an answer.
    Cancelled,
    /// The run was started by another run, which got its answer: nothing is posted.
    Reported,
}
