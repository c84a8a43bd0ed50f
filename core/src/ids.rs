//! Identifiers as newtypes, so that one can't be passed for another.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub Uuid);

        impl From<Uuid> for $name {
            fn from(uuid: Uuid) -> Self {
                Self(uuid)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    };
}

uuid_id!(
    /// A conversation.
    ConversationId
);
uuid_id!(
    /// A turn.
    TurnId
);
uuid_id!(
    /// A run.
    RunId
);
uuid_id!(
    /// An outbox entry; as text it is the marker carried in message metadata.
    OutboxId
);
uuid_id!(
    /// A tool call, and the turn of the timeline that shows it; outside, the key of an idempotent request.
    ToolCallId
);
uuid_id!(
    /// A decision that a person is asked for; it stands in the buttons of its card.
    ApprovalId
);
uuid_id!(
    /// A question to a person; it stands in the buttons of its post.
    QuestionId
);
uuid_id!(
    /// A standing consent.
    GrantId
);
uuid_id!(
    /// Who holds a lease: one per process start.
    OwnerId
);
uuid_id!(
    /// An order to erase, the same in every copy of the ledger.
    ErasureId
);
uuid_id!(
    /// An event that a hook is told, with the same id however often it is told.
    TellingId
);
uuid_id!(
    /// A lease token: a write with a stale one writes nothing.
    LeaseToken
);

macro_rules! opaque_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub i64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

opaque_id!(
    /// An account, opaque outside the store.
    AccountId
);
opaque_id!(
    /// A chat, opaque outside the store.
    ChatId
);
opaque_id!(
    /// A participant, opaque outside the store.
    ParticipantId
);
opaque_id!(
    /// A summary, opaque outside the store.
    SummaryId
);
opaque_id!(
    /// A run event: strictly increasing over the whole store, never reused, gaps allowed. A reader
    /// who knows one can ask for what came after it.
    EventId
);

impl EventId {
    /// The id that a reader says: a whole number from 0 on.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let id: u64 = text.trim().parse().ok()?;
        i64::try_from(id).ok().map(Self)
    }
}

opaque_id!(
    /// A file of a turn, opaque outside the store.
    FileId
);
opaque_id!(
    /// A job of the queue; also the order in which jobs of one time are done.
    JobId
);
opaque_id!(
    /// A question of a person to the daemon itself, opaque outside the store.
    InquiryId
);
opaque_id!(
    /// Capture order of a turn: strictly increasing over the whole store, never reused, gaps
    /// allowed. For cursors, snapshots and feeds; people and models read by position.
    Seq
);

/// An agent's configured name: `[a-z0-9_]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AgentName(String);

impl AgentName {
    /// A checked name.
    ///
    /// # Errors
    /// The text itself if it is empty or has another character than `[a-z0-9_]`.
    pub fn new(name: impl Into<String>) -> Result<Self, String> {
        let name = name.into();
        let is_valid = !name.is_empty()
            && name
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        if is_valid { Ok(Self(name)) } else { Err(name) }
    }

    /// A name read back from the store, where only checked names are written, or a name of another
    /// system's transcript, which may hold any text.
    #[must_use]
    pub fn trusted(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
