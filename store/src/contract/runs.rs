//! Runs: claimed, worked on and told about.

use std::fmt;
use std::sync::Arc;

use vocative_core::acting::Beginning;
use vocative_core::approving::{ApprovalState, DecidedBy};
use vocative_core::file::TurnFile;
use vocative_core::hooking::HookVerdict;
use vocative_core::ids::{
    AccountId, AgentName, ConversationId, LeaseToken, OwnerId, RunId, ToolCallId, TurnId,
};
use vocative_core::run::{Run, Usage};
use vocative_core::slots::Asker;
use vocative_core::tool_call::{CallDigest, CallLimits, CallRule, CallState, Refusal};
use vocative_core::turn::TokenCount;

use crate::contract::ConsentSought;

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
    /// The configured name of the model that it asks for; `None` = its agent's own.
    pub asked_model: Option<String>,
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
    /// People, who are to decide about its tool calls.
    Person {
        /// When the first of their decisions expires, in milliseconds since the Unix epoch.
        until_ms: Option<i64>,
    },
    /// Other agents, which it asked.
    Agents,
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
    /// All text told before is void.
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
    /// A tool reports its progress, in place of its earlier report.
    ToolProgress {
        /// In which step.
        step: u32,
        /// The call's id.
        call_id: String,
        /// The tool.
        tool: String,
        /// What it says.
        text: String,
    },
    /// A tool gave a result, which is not recorded yet.
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

/// A model call of a run, to be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedStep {
    /// From 1.
    pub number: u32,
    /// The provider's own message, opaque.
    pub message: String,
    /// Tokens used.
    pub usage: Usage,
    /// What hooks said of it.
    pub verdicts: Vec<HookVerdict>,
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

/// A call that a model asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToolCall {
    /// The provider's name for it.
    pub call_id: String,
    /// The tool, as the model names it.
    pub tool: String,
    /// The arguments, byte for byte as they are to be made.
    pub arguments: String,
    /// The digest of what it does.
    pub digest: CallDigest,
    /// What follows when it is not known whether it acted.
    pub rule: CallRule,
}

/// Other arguments for a call than its model asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NarrowedCall {
    /// The arguments, byte for byte as they are to be made.
    pub arguments: String,
    /// The digest of what the call then does.
    pub digest: CallDigest,
}

/// A call whose turn it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallToBegin {
    /// The run.
    pub run: RunId,
    /// Its lease.
    pub token: LeaseToken,
    /// The call.
    pub call: ToolCallId,
    /// What it would do now, with the arguments of its row.
    pub digest: CallDigest,
    /// Whether people changed its arguments, and what it does with them is not written down yet.
    pub is_changed: bool,
    /// What hooks said of it, where they were asked this time.
    pub verdicts: Vec<HookVerdict>,
    /// The arguments that hooks put in place of the call's own.
    pub narrowed: Option<NarrowedCall>,
    /// What follows when it is not known whether the call acted.
    pub rule: CallRule,
    /// Who asks.
    pub asker: Asker,
    /// How often it may be made.
    pub limits: CallLimits,
    /// The consent that the call needs from people.
    pub sought: ConsentSought,
    /// Whether a call before it in its step waits for a person.
    pub is_behind_open: bool,
    /// The time, in milliseconds since the Unix epoch.
    pub now_ms: i64,
}

/// What became of a call whose turn it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallBegun {
    /// What was decided; if it is made, its row says so.
    Decided(Beginning),
    /// It is not made, because people were asked and did not allow it.
    NotAllowed(ApprovalState, DecidedBy),
    /// The lease is no longer held: nothing was written.
    Stale,
    /// Its step was forgotten with something that it was made from: nothing was written.
    SourceGone,
}

/// The outcome of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallToFinish {
    /// The run.
    pub run: RunId,
    /// Its lease.
    pub token: LeaseToken,
    /// The call.
    pub call: ToolCallId,
    /// Its final state.
    pub state: CallState,
    /// Why it was not made, if a limit refused it.
    pub refusal: Option<Refusal>,
    /// What the model is told.
    pub result: String,
    /// Who asked.
    pub asker: Asker,
    /// The agent that calls: the run's, or one of its network.
    pub agent: AgentName,
    /// Its name for people.
    pub agent_display_name: String,
    /// The call and its result for the timeline.
    pub turn: ToolTurn,
    /// Files that came with the result.
    pub files: Vec<CallFile>,
    /// Whether what the model is told holds a text that came from outside.
    pub is_outside: bool,
    /// What hooks said of the call and of its result, where it is not kept yet.
    pub verdicts: Vec<HookVerdict>,
    /// The time, in milliseconds since the Unix epoch.
    pub now_ms: i64,
}

/// A file that a tool gave.
#[derive(Clone, PartialEq, Eq)]
pub struct CallFile {
    /// Its name, with extension.
    pub name: String,
    /// Its MIME type.
    pub mime_type: String,
    /// Its bytes.
    pub bytes: Arc<[u8]>,
    /// Whether it is posted with the answer.
    pub is_for_people: bool,
}

impl fmt::Debug for CallFile {
    /// Leaves out the bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallFile")
            .field("name", &self.name)
            .field("mime_type", &self.mime_type)
            .field("bytes", &self.bytes.len())
            .field("is_for_people", &self.is_for_people)
            .finish()
    }
}

/// A file that a call of a run gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCallFile {
    /// The step of the call.
    pub step: u32,
    /// The call, as its model names it.
    pub call_id: String,
    /// The file.
    pub file: TurnFile,
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
    /// The token count of the call's text.
    pub call_tokens: Option<TokenCount>,
    /// What came back.
    pub result: String,
    /// The token count of the result's text.
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
