//! What the steps of a run need, and how they end. They are made in `model_loop`.

use vocative_contract::handles::Renderer;
use vocative_contract::outbound::Target;

use crate::agent::attached::ToolFiles;
use crate::agent::clocks::WorkClock;
use crate::agent::counting::Counting;
use crate::agent::failing::Misshapen;
use crate::agent::hooking::Hooking;
use crate::agent::models::ModelSlot;
use crate::agent::registry::ModelUse;
use crate::agent::sharing::Delegating;
use crate::agent::stable::Stable;
use crate::agent::telling::ListenerGroup;
use crate::capture::clock::Clock;
use crate::config::{AnswerForm, FirstTool};
use crate::delivery::rooms::Rooms;
use crate::llm::{Answer, Model, ModelError, ToolSpec};
use crate::tools::Toolbox;
use vocative_core::ids::{AgentName, TurnId};
use vocative_core::judging::policy::{SpentUp, TooCostly};
use vocative_core::prompting::PromptMessage;
use vocative_core::prompting::files::PromptImage;
use vocative_core::run::{ClaimedRun, Usage};
use vocative_core::running::budget::{RunBudget, RunUsedUp};
use vocative_core::words::Language;
use vocative_store::{Replying, Store};

/// The most tool calls of one step that are made; further calls get an error as their result.
pub(super) const CALLS_MAX: usize = 16;
/// The most tokens of all tool results of a run together; results beyond it are left out.
pub(super) const RESULTS_MAX_TOKENS: usize = 16_000;

/// What the steps of a run need.
pub(super) struct Stepping<'a> {
    pub(super) store: &'a Store<Replying>,
    /// The channels with their limits.
    pub(super) rooms: &'a Rooms,
    pub(super) clock: &'a Clock,
    pub(super) claimed: &'a ClaimedRun,
    /// The agent that works: the run's, or one of its network.
    pub(super) agent: &'a AgentName,
    pub(super) display_name: &'a str,
    /// Steps that other agents of the network made in the run before.
    pub(super) steps_before: u32,
    pub(super) model: &'a dyn Model,
    /// Which model that is.
    pub(super) model_use: &'a ModelUse,
    /// The run's place at it.
    pub(super) place: &'a ModelSlot,
    /// The prompt.
    pub(super) messages: &'a [PromptMessage],
    /// The turns that the prompt shows.
    pub(super) shown: &'a [TurnId],
    /// Pictures that belong to its last message.
    pub(super) images: &'a [PromptImage],
    pub(super) toolbox: &'a Toolbox,
    /// What becomes of the files that they give.
    pub(super) files: ToolFiles<'a>,
    /// The tools that its model is told of.
    pub(super) tools: &'a [ToolSpec],
    /// Model calls of the run, those of earlier attempts included.
    pub(super) max_steps: u32,
    /// The tool that its model must call first.
    pub(super) first_tool: &'a FirstTool,
    /// The tools whose result is the answer.
    pub(super) stop_after: &'a [String],
    /// The tools of which a failed call ends the run.
    pub(super) stop_after_failed: &'a [String],
    /// The form that its answer must have.
    pub(super) form: Option<&'a AnswerForm>,
    /// The budget of the run.
    pub(super) budget: RunBudget,
    /// How long it was worked on.
    pub(super) work_clock: WorkClock,
    /// At most [`RESULTS_MAX_TOKENS`].
    pub(super) results_max_tokens: usize,
    pub(super) counting: Counting<'a>,
    /// The part of the messages that later prompts also begin with.
    pub(super) stable: Stable,
    /// Tokens that an answer may have; `None` = what the model's settings allow.
    pub(super) max_output_tokens: Option<u32>,
    /// The hooks that are asked at points of the run.
    pub(super) hooking: &'a Hooking,
    /// How other agents are asked.
    pub(super) delegating: Delegating,
    /// Where people are asked about calls.
    pub(super) asked_in: AskedIn<'a>,
    /// The listeners that hear the answers.
    pub(super) telling: ListenerGroup,
}

/// Where people are asked.
#[derive(Clone, Copy)]
pub(super) struct AskedIn<'a> {
    /// Makes posts of cards.
    pub(super) renderer: &'a dyn Renderer,
    /// Where the run's answer goes.
    pub(super) place: &'a Target,
    /// Where the experts of its account are asked.
    pub(super) experts: Option<&'a Target>,
    /// How long a question may be answered, in milliseconds.
    pub(super) question_expires_ms: i64,
    /// In which language the daemon itself speaks there.
    pub(super) language: Language,
}

/// How the steps ended.
#[derive(Debug, PartialEq)]
pub(super) enum StepsEnd {
    /// The model answered; the usage is that of all steps.
    Answered(Answer),
    /// It may not be asked again, and has said nothing.
    UsedUp(Usage),
    /// No answer has the required form, after as many repairs as are allowed.
    Misshapen(Misshapen),
    /// A call of this tool failed, which ends the run.
    ToolFailed(String),
    /// The day's tokens were used up between two of its steps.
    SpentUp(SpentUp),
    /// Its next request could pass a cap of the day.
    TooCostly(TooCostly),
    /// The run has used up its budget.
    RunUsedUp(RunUsedUp),
    /// A hook does not let it go on; the text is the reason, worded for the room.
    Refused(String),
    /// People are to decide about its calls, or agents to answer them.
    Waits,
    /// Somebody else holds the run.
    LeaseLost,
    /// A message that the prompt showed, or that a search found, was deleted meanwhile; the next attempt is made
    /// without it.
    SourceGone,
    /// The prompt is longer than the model's context, even with shortened tool results. Sizes in the provider's
    /// tokens, where it reports them.
    TooLong {
        limit: Option<u64>,
        asked: Option<u64>,
        /// Whether the run has recorded steps; its prompt can't change any more then.
        has_steps: bool,
    },
    /// The model gave no answer.
    Failed(ModelError),
}
