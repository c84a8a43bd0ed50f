//! Turns and who speaks in them.

use vocative_contract::envelope::Attachment;

use crate::ids::{AgentName, ConversationId, ParticipantId, RunId, Seq, TurnId};
use crate::place::Scope;

/// What a participant is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParticipantKind {
    /// A person, or a bot that is not ours.
    User,
    /// One of our agents (or, in a transcript, any agent).
    Agent,
    /// The platform or the daemon.
    System,
}

impl ParticipantKind {
    /// The stored and shown name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Agent => "agent",
            Self::System => "system",
        }
    }

    /// The kind of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::User, Self::Agent, Self::System]
            .into_iter()
            .find(|kind| kind.name() == name)
    }
}

/// A user, an agent or the system in a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Participant {
    /// Opaque id.
    pub id: ParticipantId,
    /// What they are.
    pub kind: ParticipantKind,
    /// The platform's user id; an agent's name.
    pub platform_id: String,
    /// The name to show, once learnt. May be empty where a platform says so.
    pub display_name: Option<String>,
    /// The username without `@`, where there is one.
    pub username: Option<String>,
}

impl Participant {
    /// The name to show: the display name (even an empty one), else the platform id.
    #[must_use]
    pub fn shown_name(&self) -> &str {
        self.display_name.as_deref().unwrap_or(&self.platform_id)
    }
}

/// The room's order, in which people and models read.
///
/// Compares by platform time, then by the platform's order within it, then by capture order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Platform time in milliseconds since the Unix epoch, never later than capture.
    pub sent_at_ms: i64,
    /// The microseconds of Slack's `ts`, Telegram's message id.
    pub ordinal: i64,
    /// Capture order.
    pub seq: Seq,
}

/// The kind of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TurnKind {
    /// Something said.
    Message,
    /// An agent called a tool.
    ToolCall,
    /// A tool answered.
    ToolResult,
    /// The daemon told the room something.
    Notice,
}

impl TurnKind {
    const ALL: [Self; 4] = [
        Self::Message,
        Self::ToolCall,
        Self::ToolResult,
        Self::Notice,
    ];

    /// The stored and shown name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::ToolCall => "tool_call",
            Self::ToolResult => "tool_result",
            Self::Notice => "notice",
        }
    }

    /// The kind of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Who gets to see a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Visibility {
    /// It is in the room.
    Room,
    /// Only the timeline shows it (tool calls).
    Timeline,
    /// Deleted or erased: shown nowhere.
    Hidden,
}

impl Visibility {
    const ALL: [Self; 3] = [Self::Room, Self::Timeline, Self::Hidden];

    /// The stored and shown name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Room => "room",
            Self::Timeline => "timeline",
            Self::Hidden => "hidden",
        }
    }

    /// The visibility of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|visibility| visibility.name() == name)
    }
}

/// How many tokens a text has, and by whose count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenCount {
    /// Tokens.
    pub tokens: u32,
    /// The counter's name and version, like `class_v2`.
    pub counter: String,
}

/// A count to store beside a turn, if it is still at that revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recount {
    /// The turn.
    pub turn: TurnId,
    /// What was counted.
    pub revision: u32,
    /// What it costs.
    pub tokens: TokenCount,
}

/// One captured, ordered entry of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// Its id.
    pub id: TurnId,
    /// The conversation it was posted into; exactly one.
    pub conversation: ConversationId,
    /// Where it stands.
    pub position: Position,
    /// When it was said, in milliseconds since the Unix epoch: by the platform's clock, and by ours for
    /// what we say. Never before its position, which for a turn of ours is that of the turn before it.
    pub said_at_ms: i64,
    /// The scope of its conversation.
    pub scope: Scope,
    /// What it is.
    pub kind: TurnKind,
    /// Who said it.
    pub participant: Participant,
    /// Platform-neutral text with mention tokens; empty once deleted.
    pub content: String,
    /// What was attached.
    pub attachments: Vec<Attachment>,
    /// The agents it addresses.
    pub addressed_to: Vec<AgentName>,
    /// What it replies to, where that was captured.
    pub reply_to: Option<TurnId>,
    /// The passage of it that is quoted.
    pub quote: Option<String>,
    /// The tool call's id (tool call and tool result).
    pub call_id: Option<String>,
    /// Who sees it.
    pub visibility: Visibility,
    /// The run that made it.
    pub run: Option<RunId>,
    /// 1 at capture, one more with each edit.
    pub revision: u32,
    /// Its cost, counted once per revision.
    pub tokens: Option<TokenCount>,
}

impl Turn {
    /// Capture order.
    #[must_use]
    pub fn seq(&self) -> Seq {
        self.position.seq
    }
}
