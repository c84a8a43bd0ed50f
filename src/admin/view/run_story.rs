//! Everything about one run.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ApprovalView, QuestionView, RunView, ThumbsView};
use vocative_core::delegating::StoredTask;
use vocative_core::ids::AgentName;
use vocative_core::routing::{MemberCall, StoredDecision};
use vocative_store::contract::{RunStory, StoryCall, StoryLine};

/// A run with what was asked, done and said.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunStoryView {
    /// The run.
    #[serde(flatten)]
    pub run: RunView,
    /// The channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The platform's id of the chat.
    pub chat: String,
    /// The conversation.
    pub conversation: String,
    /// When it came to be, in milliseconds since the Unix epoch.
    pub created_at_ms: i64,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at_ms: Option<i64>,
    /// What it answers, oldest first.
    pub asked: Vec<StoryLineView>,
    /// What its models answered, oldest first.
    pub steps: Vec<StoryStepView>,
    /// What they called, in their order.
    pub calls: Vec<StoryCallView>,
    /// What it said in its room, oldest first.
    pub said: Vec<StoryLineView>,
    /// Thumbs up and down that people gave what it said.
    #[serde(default, skip_serializing_if = "ThumbsView::is_none")]
    pub thumbs: ThumbsView,
    /// The task that it works on, if another run started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskView>,
    /// The tasks that it gave other agents, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskView>,
    /// Of a run of a network: what decided who is next, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<DecisionView>,
    /// The agent calls of it that ended, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agent_calls: Vec<AgentCallView>,
}

/// A decision of a network.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DecisionView {
    /// The agent calls before it.
    pub calls: u32,
    /// Who is called; none: the run ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// What decided: `rule`, `list`, `router`, `default`; at the end of the run, why it ended: `no_rule`, `rule`,
    /// `done`, `max_calls`, `no_progress`.
    pub by: String,
    /// The rule that matched, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<u32>,
    /// The agents that wait to be called after that one.
    pub waiting: Vec<String>,
    /// Agents that could not be called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// The routing agent's reason, or an operator's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub words: String,
    /// The network's values after the decision.
    pub state: Value,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: i64,
}

/// An agent call of a network.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AgentCallView {
    /// From 1.
    pub n: u32,
    /// Who was called.
    pub agent: String,
    /// `done` or `failed`.
    pub outcome: String,
    /// What was said.
    pub text: String,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The tools that were called, each once.
    pub tools: Vec<String>,
    /// The last step of the run that belongs to it.
    pub steps: u32,
    /// Tokens of its prompts.
    pub prompt_tokens: u64,
    /// Tokens of its answers.
    pub completion_tokens: u64,
    /// The network's values after the call.
    pub state: Value,
    /// When it ended, in milliseconds since the Unix epoch.
    pub at_ms: i64,
}

impl DecisionView {
    fn of(decision: StoredDecision) -> Self {
        let names = |names: &[AgentName]| names.iter().map(ToString::to_string).collect();
        let (agent, by) = match &decision.next {
            Ok((agent, by)) => (Some(agent.to_string()), by.name()),
            Err(reason) => (None, reason.name()),
        };
        Self {
            calls: decision.calls,
            agent,
            by: by.to_owned(),
            rule: decision.rule,
            waiting: names(&decision.stack),
            refused: names(&decision.refused),
            words: decision.words,
            state: serde_json::from_str(&decision.state).unwrap_or_default(),
            at_ms: decision.at_ms,
        }
    }
}

impl AgentCallView {
    fn of(call: MemberCall) -> Self {
        Self {
            n: call.n,
            agent: call.agent.to_string(),
            outcome: call.outcome.name().to_owned(),
            text: call.text,
            reason: call.reason,
            tools: call.tools,
            steps: call.steps,
            prompt_tokens: call.usage.prompt_tokens,
            completion_tokens: call.usage.completion_tokens,
            state: serde_json::from_str(&call.state).unwrap_or_default(),
            at_ms: call.at_ms,
        }
    }
}

/// A task that one run gave another agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TaskView {
    /// The run that gave it.
    pub parent: String,
    /// The agent that gave it.
    pub asked_by: String,
    /// The run that works on it.
    pub child: String,
    /// The agent that works on it.
    pub agent: String,
    /// What is to be done; empty once it was forgotten.
    pub task: String,
    /// How it stands: `open`, `answered`, `failed`, `cancelled`, `forgotten`.
    pub state: String,
    /// What came of it; empty while it is open, and once it was forgotten.
    pub result: String,
    /// When it was given, in milliseconds since the Unix epoch.
    pub asked_at_ms: i64,
    /// When it was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at_ms: Option<i64>,
}

impl From<StoredTask> for TaskView {
    fn from(task: StoredTask) -> Self {
        Self {
            parent: task.parent.to_string(),
            asked_by: task.asked_by.to_string(),
            child: task.child.to_string(),
            agent: task.agent.to_string(),
            task: task.task,
            state: task.state.name().to_owned(),
            result: task.result,
            asked_at_ms: task.asked_at_ms,
            ended_at_ms: task.ended_at_ms,
        }
    }
}

/// Something that was said.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoryLineView {
    /// Its turn.
    pub turn: String,
    /// The name of who said it.
    pub by: String,
    /// The text.
    pub text: String,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: i64,
}

/// An answer of a model.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoryStepView {
    /// Its number in the run, from 1.
    pub number: u32,
    /// When it was recorded, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// The model's configured name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tokens of its prompt.
    pub prompt_tokens: u64,
    /// Of these, read from the provider's cache.
    pub cache_read_tokens: u64,
    /// Tokens of the answer.
    pub completion_tokens: u64,
}

/// A call of a tool, with the approval or the question that belongs to it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoryCallView {
    /// Its id, which is also the key of an idempotent request.
    pub id: String,
    /// The step that asked for it.
    pub step: u32,
    /// The tool.
    pub tool: String,
    /// The arguments, byte for byte as they are made.
    pub arguments: String,
    /// How it stands: `waiting`, `ready`, `running`, `done`, `failed`, `unknown`, `denied`.
    pub state: String,
    /// How often it was begun.
    pub attempts: u32,
    /// When it was first begun, in milliseconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at_ms: Option<i64>,
    /// When it was over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at_ms: Option<i64>,
    /// What the model is told of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The approval that it needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalView>,
    /// The question that it asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<QuestionView>,
}

impl RunStoryView {
    /// The view of a run in a channel.
    #[must_use]
    pub fn of(story: RunStory, channel: Option<String>) -> Self {
        let call = |it: StoryCall| StoryCallView {
            id: it.call.id.to_string(),
            step: it.call.step,
            tool: it.call.tool,
            arguments: it.call.arguments,
            state: it.call.state.name().to_owned(),
            attempts: it.call.attempts,
            started_at_ms: it.call.started_at_ms,
            finished_at_ms: it.call.finished_at_ms,
            result: it.call.result,
            approval: it.approval.map(|it| ApprovalView::of(&it, channel.clone())),
            question: it.question.map(|it| QuestionView::of(it, channel.clone())),
        };
        let calls = story.calls.into_iter().map(call).collect();
        let steps = story.steps.into_iter().map(|step| StoryStepView {
            number: step.number,
            at_ms: step.at_ms,
            model: step.model,
            prompt_tokens: step.prompt_tokens,
            cache_read_tokens: step.cache_read_tokens,
            completion_tokens: step.completion_tokens,
        });
        let lines = |lines: Vec<StoryLine>| lines.into_iter().map(line).collect();
        Self {
            run: RunView::of(&story.run),
            channel,
            chat: story.chat,
            conversation: story.run.conversation.to_string(),
            created_at_ms: story.run.created_at_ms,
            finished_at_ms: story.finished_at_ms,
            asked: lines(story.asked),
            steps: steps.collect(),
            calls,
            said: lines(story.said),
            thumbs: ThumbsView::of(story.thumbs),
            decisions: story
                .course
                .decisions
                .into_iter()
                .map(DecisionView::of)
                .collect(),
            agent_calls: story
                .course
                .calls
                .into_iter()
                .map(AgentCallView::of)
                .collect(),
            task: story.task.map(TaskView::from),
            tasks: story.tasks.into_iter().map(TaskView::from).collect(),
        }
    }
}

fn line(line: StoryLine) -> StoryLineView {
    StoryLineView {
        turn: line.turn.to_string(),
        by: line.by,
        text: line.text,
        at_ms: line.at_ms,
    }
}
