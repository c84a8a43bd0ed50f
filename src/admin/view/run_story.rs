//! All of one run.

use serde::{Deserialize, Serialize};

use super::{ApprovalView, QuestionView, RunView};
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

/// A call of a tool, with whom it was put before.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoryCallView {
    /// Its id: the key of an idempotent request.
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
    /// Who was to allow it.
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
