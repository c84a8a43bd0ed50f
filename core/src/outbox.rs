//! The outbox: operations on a platform, committed and not yet confirmed.

use vocative_contract::outbound::{Delivered, Operation, Part, Target};

use crate::ids::{AccountId, ChatId, LeaseToken, OutboxId, TurnId};

/// Where an entry stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutboxState {
    /// To be sent, not before that time (milliseconds since the Unix epoch).
    Pending {
        /// The earliest time.
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
        /// The earliest time.
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

/// Where an entry stands, without what belongs to it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostStage {
    /// To be sent.
    Pending,
    /// Being sent.
    Leased,
    /// May be on the platform; to be looked for.
    Unknown,
    /// On the platform.
    Sent,
    /// Waits for a person.
    Held,
    /// Its row can't be decoded.
    Quarantined,
    /// Will never be sent.
    Dead,
    /// Another entry stands for it, or it is no longer wanted.
    Replaced,
}

impl PostStage {
    const ALL: [Self; 8] = [
        Self::Pending,
        Self::Leased,
        Self::Unknown,
        Self::Sent,
        Self::Held,
        Self::Quarantined,
        Self::Dead,
        Self::Replaced,
    ];

    /// The stored name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Leased => "leased",
            Self::Unknown => "unknown",
            Self::Sent => "sent",
            Self::Held => "held",
            Self::Quarantined => "quarantined",
            Self::Dead => "dead",
            Self::Replaced => "replaced",
        }
    }

    /// The stage of a stored name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.name() == name)
    }

    /// The stage of a post that was given back: one that may have been sent is looked for first.
    #[must_use]
    pub fn given_back(is_send_started: bool) -> Self {
        match is_send_started {
            true => Self::Unknown,
            false => Self::Pending,
        }
    }
}

/// What becomes of a post whose text is taken away, because what it says is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emptied {
    /// It keeps its stage, which is final: it is known where the post went.
    Over,
    /// It keeps its stage, which is not final: bytes of it are about to leave.
    Leaving,
    /// It is not sent.
    Dropped,
}

/// What becomes of a post whose text is taken away.
#[must_use]
pub fn emptied(stage: PostStage, is_send_started: bool) -> Emptied {
    match stage {
        PostStage::Sent | PostStage::Dead | PostStage::Replaced => Emptied::Over,
        PostStage::Leased if is_send_started => Emptied::Leaving,
        PostStage::Leased
        | PostStage::Pending
        | PostStage::Unknown
        | PostStage::Held
        | PostStage::Quarantined => Emptied::Dropped,
    }
}

/// Why a post is never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadCause {
    /// It could not be sent: a person may send it again.
    GivenUp,
    /// It is no longer wanted, and needs no person's decision.
    Dropped,
}

impl DeadCause {
    /// The stored and shown name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::GivenUp => "given_up",
            Self::Dropped => "dropped",
        }
    }

    /// The cause of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::GivenUp, Self::Dropped]
            .into_iter()
            .find(|cause| cause.name() == name)
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
    /// The platform's time of the first message that it answers: the post can't be in the room before that. The run may
    /// have been given newer messages later. In milliseconds since the Unix epoch.
    pub later_than_ms: Option<i64>,
    /// When the last attempt ended, or began if it has not, in milliseconds since the Unix epoch.
    pub last_attempt_ms: Option<i64>,
    /// Looks for it on the platform after an unknown outcome.
    pub looks: u32,
    /// How often it was sent again after an unknown outcome.
    pub resends: u32,
    /// Whether the platform was asked and it is still unknown whether the post arrived.
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
    /// It is unknown for good whether the post arrived: it is sent again (once), or waits for a person.
    Undecided {
        /// Whether it is sent again.
        resend: bool,
        /// Why that can't be known.
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
    /// It will never be sent, and needs no person's decision.
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
        /// What is done with the first one. Further parts of an edit are posts. A post in the place of an edit removes
        /// the message that was to be edited.
        operation: Operation,
        /// Why.
        reason: String,
    },
    /// The chat refuses: nothing is sent there until something is received from it, or until that time.
    ParkChat {
        /// Try again at the latest then.
        not_before_ms: i64,
        /// Posts that have waited longer than this by then are given up, in milliseconds.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_emptied_is_not_sent_unless_it_is_out_or_on_its_way() {
        for stage in PostStage::ALL {
            for is_send_started in [false, true] {
                let expected = match stage {
                    PostStage::Sent | PostStage::Dead | PostStage::Replaced => Emptied::Over,
                    PostStage::Leased if is_send_started => Emptied::Leaving,
                    _ => Emptied::Dropped,
                };
                assert_eq!(emptied(stage, is_send_started), expected, "{stage:?}");
            }
        }
        assert_eq!(PostStage::given_back(true), PostStage::Unknown);
        assert_eq!(PostStage::given_back(false), PostStage::Pending);
    }
}
