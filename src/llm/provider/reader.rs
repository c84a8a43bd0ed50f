//! Reads an answer of any wire, streamed or not, into the same draft.

use serde_json::Value;

use super::draft::{Draft, DraftOutcome, ReportedUsage};
use super::events::SseEvent;
use super::halves::SurrogateHalves;
use super::{chat, messages, responses};
use crate::llm::base_url::Wire;
use crate::llm::{ModelError, ToolCall};
use vocative_core::run::Finish;

/// A provider's answer.
#[derive(Debug)]
pub(super) struct ProviderAnswer {
    /// The text without thoughts.
    pub(super) text: String,
    /// Whether the text ended within a thought.
    pub(super) is_unclosed: bool,
    /// Whether there were thoughts without an opening tag.
    pub(super) is_headless: bool,
    pub(super) calls: Vec<ToolCall>,
    pub(super) reason: Reason,
    /// Tokens of prompt and answer, if the provider reports them.
    pub(super) usage: ReportedUsage,
    /// The provider's own message.
    pub(super) message: Value,
}

/// Why an answer ended, as far as providers distinguish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Stop,
    Tools,
    Length,
    /// The context is full.
    Full,
    Filter,
    Other,
}

impl Reason {
    pub(super) fn of(name: &str) -> Self {
        match name {
            "stop" | "end_turn" | "stop_sequence" | "completed" | "eos" => Self::Stop,
            "tool_calls" | "tool_use" | "function_call" => Self::Tools,
            "length" | "max_tokens" | "max_output_tokens" | "model_length" => Self::Length,
            "model_context_window_exceeded" => Self::Full,
            "content_filter" | "refusal" => Self::Filter,
            _ => Self::Other,
        }
    }

    pub(super) fn finish(self) -> Finish {
        match self {
            Self::Stop => Finish::Stop,
            Self::Length | Self::Full => Finish::Length,
            Self::Filter => Finish::ContentFilter,
            Self::Tools | Self::Other => Finish::Other,
        }
    }
}

/// The outcome of a stream.
pub(super) enum StreamResult {
    Said(ProviderAnswer),
    Failed(ModelError),
    /// A piece of the stream can't be read.
    Garbled,
    /// The stream ended before the answer did.
    Broken,
    /// The answer ended for tool calls but has none.
    LostCalls,
    /// The body is no stream.
    NoStream,
}

/// Reads events one by one, or a whole answer.
pub(super) struct ProviderReader {
    protocol: Protocol,
    pub(super) draft: Draft,
    halves: SurrogateHalves,
    /// Number of events, comments included.
    pub(super) events: u64,
    /// Whether an event of the protocol was read.
    is_stream: bool,
}

enum Protocol {
    Responses(responses::Output),
    Chat(chat::ChatMessage),
    Messages(messages::MessageContent),
}

impl ProviderReader {
    pub(super) fn new(wire: Wire, draft: Draft) -> Self {
        Self {
            protocol: match wire {
                Wire::Responses => Protocol::Responses(responses::Output::default()),
                Wire::Chat => Protocol::Chat(chat::ChatMessage::default()),
                Wire::Messages => Protocol::Messages(messages::MessageContent::default()),
            },
            draft,
            halves: SurrogateHalves::default(),
            events: 0,
            is_stream: false,
        }
    }

    /// Reads one event. Returns whether further events count.
    pub(super) fn read(&mut self, event: &SseEvent) -> bool {
        self.events += 1;
        if event.data.is_empty() || self.draft.is_over() {
            return !self.draft.is_over();
        }
        let data = self.halves.joined(&event.data);
        let (name, data, draft) = (event.name.as_deref(), data.as_ref(), &mut self.draft);
        self.is_stream |= match &mut self.protocol {
            Protocol::Responses(output) => output.read(name, data, draft),
            Protocol::Chat(message) => message.read(data, draft),
            Protocol::Messages(content) => content.read(name, data, draft),
        };
        !draft.is_over()
    }

    /// Reads an answer that is not streamed. Returns whether it belongs to this protocol.
    pub(super) fn read_whole(&mut self, body: &Value) -> bool {
        let draft = &mut self.draft;
        match &mut self.protocol {
            Protocol::Responses(output) => output.read_whole(body, draft),
            Protocol::Chat(message) => message.read_whole(body, draft),
            Protocol::Messages(content) => content.read_whole(body, draft),
        }
    }

    /// The outcome; the draft must be closed.
    pub(super) fn conclude(self) -> StreamResult {
        match self.draft.conclude() {
            DraftOutcome::Failed(cause) => StreamResult::Failed(cause),
            DraftOutcome::Garbled => StreamResult::Garbled,
            DraftOutcome::Broken if self.events > 0 && !self.is_stream => StreamResult::NoStream,
            DraftOutcome::Broken => StreamResult::Broken,
            DraftOutcome::Whole(written) if written.lost_its_calls() => StreamResult::LostCalls,
            DraftOutcome::Whole(written) => StreamResult::Said(match self.protocol {
                Protocol::Responses(output) => output.conclude(*written),
                Protocol::Chat(message) => message.conclude(*written),
                Protocol::Messages(content) => content.conclude(*written),
            }),
        }
    }
}
