//! What hooks are told.

use vocative_core::hooking::HookPoint;
use vocative_core::ids::{AgentName, ApprovalId, ConversationId, RunId, TellingId};

/// A hook that is told of an agent's runs or approvals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TellingHook {
    /// The agent.
    pub agent: AgentName,
    /// Of what it is told.
    pub point: HookPoint,
    /// Its configured name.
    pub hook: String,
}

/// Something that a hook is told; it holds nothing that was said, and no argument of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Telling {
    /// Its id, the same however often it is told.
    pub id: TellingId,
    /// Who is told.
    pub hook: String,
    /// Of what.
    pub point: HookPoint,
    /// The state that the run or the approval ended in.
    pub outcome: String,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// The run.
    pub run: RunId,
    /// The run's agent.
    pub agent: AgentName,
    /// Its conversation.
    pub conversation: ConversationId,
    /// The configured name of its channel.
    pub channel: String,
    /// The platform's id of its chat.
    pub chat: String,
    /// The platform's id of the person who asked, where there is one.
    pub person: Option<String>,
    /// The approval, where it is about one.
    pub approval: Option<ApprovalId>,
    /// The tool that was asked about.
    pub tool: Option<String>,
    /// Where it was decided: `card`, `cli`, `api`, `console`.
    pub via: Option<String>,
    /// The operator, if it was decided outside the room.
    pub operator: Option<String>,
    /// The platform's id of the person who decided in the room.
    pub decided_by: Option<String>,
}
