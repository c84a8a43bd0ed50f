//! Run events: what happens in a run, told while it happens. A turn is the durable fact.

use crate::ids::{AgentName, ConversationId, EventId, RunId, TurnId};
use crate::run::Usage;

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEvent {
    /// Its place among all events of the store; `None` where the event itself is gone and only told
    /// from the state of its run.
    pub id: Option<EventId>,
    /// Its run.
    pub run: RunId,
    /// The run's conversation.
    pub conversation: ConversationId,
    /// The agent whose run it is.
    pub agent: AgentName,
    /// What happened.
    pub what: Happening,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: i64,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Happening {
    /// Somebody began to work on the run.
    Started,
    /// The model said something.
    Text {
        /// The step; text of a later step replaces that of an earlier one.
        step: u32,
        /// The next piece.
        text: String,
    },
    /// The text that was heard is void: the model is asked again, or another attempt has begun.
    Restarted,
    /// A tool is called.
    ToolCall {
        /// The step.
        step: u32,
        /// The call's id.
        call_id: String,
        /// The tool.
        tool: String,
        /// The arguments; `None` once the run is let go: the timeline has them then.
        arguments: Option<String>,
    },
    /// A tool that is being called says how far it is. Only the newest of a call is kept, and none once the run is let
    /// go.
    ToolProgress {
        /// The step.
        step: u32,
        /// The call's id.
        call_id: String,
        /// The tool.
        tool: String,
        /// What it says.
        text: String,
    },
    /// A tool's result was recorded.
    ToolResult {
        /// The step.
        step: u32,
        /// The call's id.
        call_id: String,
        /// The tool.
        tool: String,
        /// The turn of the timeline that has the result.
        turn: Option<TurnId>,
        /// The result; empty once it was deleted.
        text: String,
    },
    /// A step of the model was recorded.
    Usage {
        /// Which.
        step: u32,
        /// Its tokens.
        usage: Usage,
    },
    /// The run ended.
    Ended(Ending),
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    /// The kind of ending.
    pub kind: EndingKind,
    /// The turn that was said, if one was.
    pub turn: Option<TurnId>,
    /// What it says; empty once it was deleted.
    pub text: String,
    /// Why, for operators.
    pub reason: Option<String>,
}

/// In which way a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndingKind {
    /// It answered.
    Finished,
    /// It was given up.
    Failed,
    /// A person or a delete stopped it, or an operator dropped it.
    Cancelled,
    /// A later message took its place.
    Interrupted,
}

impl EndingKind {
    const ALL: [Self; 4] = [
        Self::Finished,
        Self::Failed,
        Self::Cancelled,
        Self::Interrupted,
    ];

    /// The kind of ending of a run that was to give way to a later message.
    #[must_use]
    pub fn interrupted(self) -> Self {
        match self {
            Self::Cancelled => Self::Interrupted,
            Self::Finished | Self::Failed | Self::Interrupted => self,
        }
    }

    /// The stored and shown name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }

    /// The way of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl Happening {
    /// Which kind of event tells it.
    #[must_use]
    pub fn kind(&self) -> EventKind {
        match self {
            Self::Started => EventKind::Started,
            Self::Text { .. } => EventKind::Text,
            Self::Restarted => EventKind::Restarted,
            Self::ToolCall { .. } => EventKind::ToolCall,
            Self::ToolProgress { .. } => EventKind::ToolProgress,
            Self::ToolResult { .. } => EventKind::ToolResult,
            Self::Usage { .. } => EventKind::Usage,
            Self::Ended(ending) => EventKind::Ended(ending.kind),
        }
    }

    /// The stored and shown name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.kind().name()
    }
}

/// The kind of an event: what happened, without what belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Somebody began to work on the run.
    Started,
    /// The model said something.
    Text,
    /// The text that was heard is void.
    Restarted,
    /// A tool is called.
    ToolCall,
    /// A tool says how far it is.
    ToolProgress,
    /// A tool's result was recorded.
    ToolResult,
    /// A step of the model was recorded.
    Usage,
    /// The run ended.
    Ended(EndingKind),
}

impl EventKind {
    /// The event of a claim of a run.
    #[must_use]
    pub fn of_claim(is_first: bool) -> Self {
        match is_first {
            true => Self::Started,
            false => Self::Restarted,
        }
    }

    /// The stored and shown name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Text => "text",
            Self::Restarted => "restarted",
            Self::ToolCall => "tool_call",
            Self::ToolProgress => "tool_progress",
            Self::ToolResult => "tool_result",
            Self::Usage => "usage",
            Self::Ended(ending) => ending.name(),
        }
    }

    /// The kind of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let others = [
            Self::Started,
            Self::Text,
            Self::Restarted,
            Self::ToolCall,
            Self::ToolProgress,
            Self::ToolResult,
            Self::Usage,
        ];
        let ends = EndingKind::ALL.map(Self::Ended);
        let mut all = others.into_iter().chain(ends);
        all.find(|kind| kind.name() == name)
    }
}

/// A run as it stands: what a reader who comes late is told first.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSnapshot {
    /// The run.
    pub run: RunId,
    /// Its conversation.
    pub conversation: ConversationId,
    /// The agent whose run it is.
    pub agent: AgentName,
    /// The name of its state.
    pub state: &'static str,
    /// Attempts so far.
    pub attempt: u32,
    /// The newest step that said something; 0 where none did.
    pub step: u32,
    /// What was said in its newest step so far; all of it where the run has ended.
    pub text: String,
    /// How it ended, if it has.
    pub end: Option<RunEvent>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_found_by_its_name_and_a_claim_is_a_start_once() {
        for name in [
            "started",
            "text",
            "restarted",
            "tool_call",
            "tool_progress",
            "tool_result",
            "usage",
            "finished",
            "failed",
            "cancelled",
            "interrupted",
        ] {
            assert_eq!(EventKind::from_name(name).map(EventKind::name), Some(name));
        }
        assert_eq!(EventKind::from_name("else"), None);
        assert_eq!(EventKind::of_claim(true), EventKind::Started);
        assert_eq!(EventKind::of_claim(false), EventKind::Restarted);
    }

    #[test]
    fn only_a_cancelled_run_is_told_as_interrupted() {
        let table = [
            (EndingKind::Finished, EndingKind::Finished),
            (EndingKind::Failed, EndingKind::Failed),
            (EndingKind::Cancelled, EndingKind::Interrupted),
        ];
        for (kind, expected) in table {
            assert_eq!(kind.interrupted(), expected, "{kind:?}");
        }
    }
}
