//! The outbox: operations on a platform, committed and not yet confirmed.

use vocative_contract::outbound::{Operation, Part, Target};

use crate::domain::ids::{AccountId, ChatId, LeaseToken, OutboxId, TurnId};

/// Where an entry stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutboxState {
    /// To be sent, not before that time (milliseconds since the Unix epoch).
    Pending {
        /// Not before.
        not_before_ms: i64,
    },
    /// Being sent.
    Leased {
        /// Until when, in milliseconds since the Unix epoch.
        until_ms: i64,
    },
    /// On the platform.
    Sent {
        /// The platform's message id.
        message_id: String,
    },
    /// May be on the platform; to be looked for, not before that time.
    Unknown {
        /// Not before.
        not_before_ms: i64,
    },
    /// May be on the platform and cannot be looked for; waits for a person.
    Held {
        /// Why.
        reason: String,
    },
    /// Will never be sent.
    Dead {
        /// Why.
        reason: String,
    },
}

impl OutboxState {
    /// The stored and shown name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Pending { .. } => "pending",
            Self::Leased { .. } => "leased",
            Self::Sent { .. } => "sent",
            Self::Unknown { .. } => "unknown",
            Self::Held { .. } => "held",
            Self::Dead { .. } => "dead",
        }
    }
}

/// One operation on a platform.
#[derive(Clone, Debug, PartialEq)]
pub struct OutboxEntry {
    /// Its id; as text the marker in message metadata.
    pub id: OutboxId,
    /// The turn it posts; none for a notice into a chat of which nothing is stored.
    pub turn: Option<TurnId>,
    /// The account to send through.
    pub account: AccountId,
    /// The order key: entries of one chat are sent in order.
    pub chat: ChatId,
    /// Which part of the turn, from 0.
    pub part_number: u32,
    /// Where it goes.
    pub target: Target,
    /// What is done.
    pub operation: Operation,
    /// What is posted.
    pub part: Part,
    /// Where it stands.
    pub state: OutboxState,
    /// Attempts so far, the present one included.
    pub attempts: u32,
    /// When the first attempt began, in milliseconds since the Unix epoch.
    pub first_attempt_ms: Option<i64>,
    /// The platform's time of what it answers: it can't stand in the room before that. In milliseconds
    /// since the Unix epoch.
    pub later_than_ms: Option<i64>,
    /// When the last attempt ended, or began if it has not, in milliseconds since the Unix epoch.
    pub last_attempt_ms: Option<i64>,
    /// Looks for it on the platform after an unknown outcome.
    pub looks: u32,
    /// How often it was sent again after an unknown outcome.
    pub resends: u32,
    /// Whether it was asked about, and nobody can say whether it arrived.
    pub is_undecided: bool,
    /// When it was committed, in milliseconds since the Unix epoch.
    pub created_at_ms: i64,
}

/// An entry that this process has leased.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimedEntry {
    /// The entry.
    pub entry: OutboxEntry,
    /// The lease; every write needs it.
    pub token: LeaseToken,
    /// Whether its outcome is unknown and it must be looked for before it is sent again.
    pub is_unknown: bool,
}
