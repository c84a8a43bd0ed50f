//! Answers, and what is posted of them.

use vocative_contract::envelope::ChatKind;
use vocative_contract::identity::Platform;
use vocative_contract::outbound::{Delivered, Operation, Part, Target};

use super::runs::RunEnding;
use crate::domain::ids::{AccountId, AgentName, ChatId, LeaseToken, OutboxId, RunId, TurnId};
use crate::domain::place::Scope;
use crate::domain::run::Usage;
use crate::domain::turn::{TokenCount, TurnKind};

/// The answer of a run: one transaction makes it durable.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplyCommit {
    /// The run.
    pub run: RunId,
    /// Its lease.
    pub token: LeaseToken,
    /// The agent that answers.
    pub agent: AgentName,
    /// The agent's name for people.
    pub agent_display_name: String,
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
    /// What the text costs.
    pub tokens: Option<TokenCount>,
    /// Tokens used.
    pub usage: Usage,
    /// The time, in milliseconds since the Unix epoch.
    pub now_ms: i64,
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
    /// The run is another's by now, or is to stop.
    Refused,
}

/// Where a placeholder stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placeholder {
    /// It is not posted yet, or nobody knows.
    Waiting,
    /// It is in the room.
    Shown {
        /// The platform's chat id.
        chat: String,
        /// The platform's message id.
        message_id: String,
    },
    /// It will not be.
    Over,
}

/// What becomes of an outbox entry after an attempt.
#[derive(Clone, Debug, PartialEq)]
pub enum OutboxUpdate {
    /// It is on the platform.
    Sent(Delivered),
    /// It was not sent: try again at that time. What stands behind it in its thread or topic waits.
    Retry {
        /// When.
        not_before_ms: i64,
        /// Why.
        reason: String,
    },
    /// It was not sent, and the platform takes nothing in its chat until then.
    Rest {
        /// When.
        until_ms: i64,
        /// Why.
        reason: String,
    },
    /// Its outcome is unknown: look for it at that time.
    Look {
        /// When.
        not_before_ms: i64,
        /// Why.
        reason: String,
    },
    /// It was looked for and is not there: send it again.
    Resend {
        /// Why.
        reason: String,
    },
    /// Its outcome is unknown, and it is sent again all the same, at that time.
    ResendLater {
        /// When.
        not_before_ms: i64,
        /// Why.
        reason: String,
    },
    /// It may be on the platform, and nobody can say: it is sent again (once), or waits for a person.
    Undecided {
        /// Whether it is sent again.
        resend: bool,
        /// Why nobody can say.
        reason: String,
    },
    /// It waits for a person.
    Hold {
        /// Why.
        reason: String,
    },
    /// It will never be sent.
    Dead {
        /// Why.
        reason: String,
    },
    /// It will never be sent, and nobody need look at it.
    Drop {
        /// Why.
        reason: String,
    },
    /// It is replaced by other parts in the same transaction.
    Replace {
        /// The new parts, in order.
        parts: Vec<Part>,
        /// Where they go.
        target: Target,
        /// What is done with the first one. Further parts of an edit are posts. A post in the place of
        /// an edit takes the message away that was to be edited.
        operation: Operation,
        /// Why.
        reason: String,
    },
    /// The chat refuses: nothing is sent there until something is heard from it, or that time.
    ParkChat {
        /// Try again at the latest then.
        not_before_ms: i64,
        /// Posts that have waited so long by then are given up, in milliseconds.
        keep_ms: i64,
        /// Why.
        reason: String,
    },
    /// The account is refused: the whole channel waits until it is identified again.
    HoldAccount {
        /// Why.
        reason: String,
    },
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
    /// Whether there is an answer that it replaces.
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
    /// The run was cancelled meanwhile: it ended without a word, whatever was to be said.
    Cancelled,
}
