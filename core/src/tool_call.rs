//! A call of a tool as a row of its own: what it is asked, by which rule it may be made again, and how it stands.

use crate::ids::ToolCallId;

/// SHA-256 of what a call does: its tool as defined, its arguments, its chat and its agent.
pub type CallDigest = [u8; 32];

/// The digest of a call whose arguments people changed, until its run has read them: no call has it, so no approval and
/// no grant applies.
pub const CHANGED_DIGEST: CallDigest = [0; 32];

/// What follows when it is not known whether a call acted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallRule {
    /// Made twice, it does no more than made once: it is made again.
    Repeatable,
    /// It carries the row's id, by which the other side recognises a repeated call: it is made again.
    Keyed,
    /// It is made at most once: a person decides what follows.
    Once,
}

impl CallRule {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Repeatable, Self::Keyed, Self::Once];

    /// The stored and shown name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Repeatable => "repeatable",
            Self::Keyed => "keyed",
            Self::Once => "once",
        }
    }

    /// The rule of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| rule.name() == name)
    }
}

/// How a call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallState {
    /// A person is to allow it first.
    Waiting,
    /// It may be made.
    Ready,
    /// It is being made, or was when the process died.
    Running,
    /// It gave a result.
    Done,
    /// It gave an error, and is known not to act later.
    Failed,
    /// Whether it acted is not known.
    Unknown,
    /// It was not made.
    Denied,
}

impl CallState {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Waiting,
        Self::Ready,
        Self::Running,
        Self::Done,
        Self::Failed,
        Self::Unknown,
        Self::Denied,
    ];

    /// The stored and shown name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
            Self::Denied => "denied",
        }
    }

    /// The state of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Whether the call has its result.
    #[must_use]
    pub fn is_over(self) -> bool {
        match self {
            Self::Waiting | Self::Ready | Self::Running => false,
            Self::Done | Self::Failed | Self::Unknown | Self::Denied => true,
        }
    }
}

/// Why a call is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its step asks for more calls than one step may.
    TooMany,
    /// The run has made as many calls as it may.
    RunBudget,
    /// The run has called this tool as often as it may.
    ToolBudget,
    /// The person has had this tool called as often as one may in a day.
    DayBudget,
    /// The run has made the same call twice.
    Repeated,
    /// The run was refused the same call before.
    Circling,
    /// The run made the call in a step that was forgotten since.
    MadeBefore,
    /// The tool was defined anew since the call was asked for.
    ToolChanged,
    /// The run ended first.
    RunEnded,
    /// A person did not allow it.
    NotAllowed,
    /// Nobody decided about it in time.
    Undecided,
    /// Asking for it was broken off.
    AskedInVain,
    /// Too many calls wait for a person already.
    TooManyOpen,
    /// A hook did not allow it, or gave no verdict.
    Hook,
}

impl Refusal {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::TooMany,
        Self::RunBudget,
        Self::ToolBudget,
        Self::DayBudget,
        Self::Repeated,
        Self::Circling,
        Self::MadeBefore,
        Self::ToolChanged,
        Self::RunEnded,
        Self::NotAllowed,
        Self::Undecided,
        Self::AskedInVain,
        Self::TooManyOpen,
        Self::Hook,
    ];

    /// The stored and shown name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::TooMany => "too_many",
            Self::RunBudget => "run_budget",
            Self::ToolBudget => "tool_budget",
            Self::DayBudget => "day_budget",
            Self::Repeated => "repeated",
            Self::Circling => "circling",
            Self::MadeBefore => "made_before",
            Self::ToolChanged => "tool_changed",
            Self::RunEnded => "run_ended",
            Self::NotAllowed => "not_allowed",
            Self::Undecided => "undecided",
            Self::AskedInVain => "asked_in_vain",
            Self::TooManyOpen => "too_many_open",
            Self::Hook => "hook",
        }
    }

    /// The refusal of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|refusal| refusal.name() == name)
    }

    /// Whether the model is to answer without further calls.
    #[must_use]
    pub fn ends_calls(self) -> bool {
        match self {
            Self::RunBudget | Self::Circling => true,
            Self::TooMany
            | Self::ToolBudget
            | Self::DayBudget
            | Self::Repeated
            | Self::MadeBefore
            | Self::ToolChanged
            | Self::RunEnded
            | Self::NotAllowed
            | Self::Undecided
            | Self::AskedInVain
            | Self::TooManyOpen
            | Self::Hook => false,
        }
    }
}

/// How often a call may be made. `None` means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// Calls of any tool in a run.
    pub run_calls_max: u32,
    /// Calls of this tool in a run.
    pub run_tool_calls_max: Option<u32>,
    /// Calls of this tool in a day (UTC) for the person who asks.
    pub day_tool_calls_max: Option<u32>,
}

/// A call as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCall {
    /// Its identity, also outside: the key of an idempotent request.
    pub id: ToolCallId,
    /// The model call that asked for it, from 1.
    pub step: u32,
    /// Its place in that step, from 0.
    pub n: u32,
    /// The provider's name for it.
    pub call_id: String,
    /// The tool, as the model names it.
    pub tool: String,
    /// The arguments, byte for byte as they are made.
    pub arguments: String,
    /// What it does.
    pub digest: CallDigest,
    /// What follows when it is not known whether it acted.
    pub rule: CallRule,
    /// How it stands.
    pub state: CallState,
    /// Why it was not made, if it was denied.
    pub refusal: Option<Refusal>,
    /// How often it was begun.
    pub attempts: u32,
    /// What the model is told of it; `None` until it is over.
    pub result: Option<String>,
    /// When it was first begun, in milliseconds since the Unix epoch.
    pub started_at_ms: Option<i64>,
    /// When it was over, in milliseconds since the Unix epoch.
    pub finished_at_ms: Option<i64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for rule in CallRule::ALL {
            assert_eq!(CallRule::from_name(rule.name()), Some(rule));
        }
        for state in CallState::ALL {
            assert_eq!(CallState::from_name(state.name()), Some(state));
        }
        for refusal in Refusal::ALL {
            assert_eq!(Refusal::from_name(refusal.name()), Some(refusal));
        }
    }
}
