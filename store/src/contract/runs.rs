//! Runs: claimed, worked on and told about.

use vocative_core::ids::{
    AccountId, AgentName, ConversationId, LeaseToken, OwnerId, RunId, TurnId,
};
use vocative_core::run::Run;
use vocative_core::turn::TokenCount;

/// A claim on the oldest waiting run of an idle conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRequest {
    /// Who claims.
    pub owner: OwnerId,
    /// How long the lease lasts, in milliseconds.
    pub lease_ms: i64,
    /// The time, in milliseconds since the Unix epoch.
    pub now_ms: i64,
    /// Only work of these accounts: those whose channel can be served now.
    pub accounts: Vec<AccountId>,
}

/// Which runs that were given up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadFilter {
    /// Only of this agent.
    pub agent: Option<AgentName>,
    /// Only those given up at or after this time, in milliseconds since the Unix epoch.
    pub since_ms: Option<i64>,
}

/// How a run ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnding {
    /// It answered.
    Done,
    /// It was given up, and the room is told.
    Dead {
        /// Why, for operators.
        reason: String,
    },
    /// It was cancelled, and the room is told.
    Cancelled,
}

/// A run that is not at its end.
#[derive(Clone, Debug, PartialEq)]
pub struct QueuedRun {
    /// The run.
    pub run: Run,
    /// Who asked first, by the best name there is.
    pub person: Option<String>,
    /// The account to answer through.
    pub account: AccountId,
    /// What it waits for.
    pub waiting_for: WaitingFor,
}

/// What a run waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitingFor {
    /// It is being worked on.
    Answer {
        /// Its lease lasts until then, in milliseconds since the Unix epoch; extended while it works.
        lease_until_ms: i64,
    },
    /// It was asked to stop, and its worker has not let go of it yet.
    Stop,
    /// An earlier run of its conversation.
    Earlier,
    /// Its next attempt.
    Attempt {
        /// When, in milliseconds since the Unix epoch.
        at_ms: i64,
        /// Why the one before failed.
        reason: String,
    },
    /// A time: an album may get further items, or the kind of its chat is to be learnt.
    Time {
        /// When, in milliseconds since the Unix epoch.
        at_ms: i64,
    },
    /// Its channel, which the platform refuses.
    Channel {
        /// Why.
        reason: String,
    },
    /// A worker that is free, or a daemon that runs.
    Worker,
}

/// What became of a write that needs a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseOutcome {
    /// It was written.
    Written,
    /// The lease is no longer held: nothing was written.
    Stale,
}

/// Something to tell of a leased run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewRunEvent {
    /// The model said something.
    Text {
        /// In which step.
        step: u32,
        /// The next piece.
        text: String,
    },
    /// All text before is void.
    Restarted,
    /// A tool is called.
    ToolCall {
        /// In which step.
        step: u32,
        /// The call's id.
        call_id: String,
        /// The tool.
        tool: String,
        /// What it is asked.
        arguments: String,
    },
    /// It gave a result, which is not recorded yet.
    ToolResult {
        /// In which step.
        step: u32,
        /// The call's id.
        call_id: String,
        /// The tool.
        tool: String,
        /// The result.
        text: String,
        /// Turns that it quotes: with one of them gone, its text is not told.
        sources: Vec<TurnId>,
    },
}

/// Whose events are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventScope {
    /// Everybody's.
    All,
    /// Those of a run.
    Run(RunId),
    /// Those of a conversation's runs.
    Conversation(ConversationId),
}

/// What became of a step's results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepOutcome {
    /// They were written.
    Written,
    /// The lease is no longer held: nothing was written.
    Stale,
    /// Something they quote was deleted meanwhile: nothing was written.
    SourceGone,
}

/// What a step of a run did with its tools: written together with the step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepTools {
    /// The run.
    pub run: RunId,
    /// Its lease.
    pub token: LeaseToken,
    /// The step's number.
    pub number: u32,
    /// The step as it is to be replayed, opaque.
    pub message: String,
    /// The agent's name for people.
    pub agent_display_name: String,
    /// Calls and results, in the order of the calls.
    pub calls: Vec<ToolTurn>,
    /// The time, in milliseconds since the Unix epoch.
    pub now_ms: i64,
}

/// A tool call and its result, as the timeline shows them.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolTurn {
    /// The call's id, the same on both turns.
    pub call_id: String,
    /// The tool, as the model called it.
    pub tool: String,
    /// Whether the agent has that tool; else the name is the model's invention.
    pub is_known: bool,
    /// What was called, as text.
    pub call: String,
    /// What the call's text costs.
    pub call_tokens: Option<TokenCount>,
    /// What came back.
    pub result: String,
    /// What the result's text costs.
    pub result_tokens: Option<TokenCount>,
    /// Turns that the result quotes: when one of them goes, so does the result.
    pub sources: Vec<TurnId>,
}

/// What a lease extension found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunLease {
    /// Still ours.
    Held,
    /// Still ours, but the run is to stop: its trigger is gone or a person said so.
    CancelRequested,
    /// No longer ours.
    Lost,
}
