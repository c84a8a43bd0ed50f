//! What a script can make the model do with one request.
//!
//! Plain data. Knows no provider's wire form.

use std::time::Duration;

use serde_json::Value;

/// A call of a tool that the model asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelToolCall {
    /// Id that the result will name.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// Its arguments: an object.
    pub arguments: Value,
}

/// Tokens as the provider counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelUsage {
    /// Tokens of the prompt.
    pub input: u32,
    /// Tokens of the answer.
    pub output: u32,
}

/// What happens.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelAct {
    /// An answer: text, tool calls, or both.
    Answer {
        /// The text; may be empty when there are tool calls.
        text: String,
        /// Tool calls after the text.
        tool_calls: Vec<ModelToolCall>,
    },
    /// An answer that the token limit cut: finish reason `length` or `max_tokens`.
    Cut {
        /// The text so far.
        text: String,
    },
    /// An HTTP status with a body.
    Status {
        /// HTTP status.
        status: u16,
        /// Further headers, for example `retry-after`.
        headers: Vec<(String, String)>,
        /// The body; `None` is the provider's own body for that status.
        body: Option<String>,
    },
    /// Nothing is ever answered.
    Hang,
    /// The connection is reset before anything is answered.
    Reset,
    /// A 200 with a body that is no JSON (as a stream: an event that is no JSON).
    Malformed,
    /// A stream that ends in the middle of the text, without its end mark. Not streaming: a body
    /// that ends in the middle.
    Truncated {
        /// The text before the end.
        text: String,
    },
    /// A stream with a tool call whose parts carry no `index`. Not streaming: an ordinary answer.
    ToolCallWithoutIndex(ModelToolCall),
    /// A stream that breaks off with an error event. Not streaming: status 500.
    StreamError {
        /// The text before the error.
        text: String,
        /// The error's message.
        message: String,
    },
}

/// One scripted reply.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelReply {
    /// What happens.
    pub act: ModelAct,
    /// How long the model thinks first.
    pub latency: Duration,
    /// Tokens to report; `None` counts four characters as one.
    pub usage: Option<ModelUsage>,
}

impl ModelReply {
    /// A reply that does this, at once.
    #[must_use]
    pub fn new(act: ModelAct) -> Self {
        Self {
            act,
            latency: Duration::ZERO,
            usage: None,
        }
    }

    /// An answer of text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::new(ModelAct::Answer {
            text: text.to_owned(),
            tool_calls: Vec::new(),
        })
    }

    /// An answer of one tool call.
    #[must_use]
    pub fn tool_call(id: &str, name: &str, arguments: Value) -> Self {
        Self::tool_calls(vec![ModelToolCall {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments,
        }])
    }

    /// An answer of several tool calls.
    #[must_use]
    pub fn tool_calls(tool_calls: Vec<ModelToolCall>) -> Self {
        Self::new(ModelAct::Answer {
            text: String::new(),
            tool_calls,
        })
    }

    /// An HTTP status with the provider's own body.
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self::new(ModelAct::Status {
            status,
            headers: Vec::new(),
            body: None,
        })
    }

    /// A 429 with a `retry-after` header.
    #[must_use]
    pub fn rate_limited(retry_after_s: u32) -> Self {
        Self::status(429).header("retry-after", &retry_after_s.to_string())
    }

    /// Adds a header to a status; no effect on other acts.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let ModelAct::Status { headers, .. } = &mut self.act {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// Sets the body of a status; no effect on other acts.
    #[must_use]
    pub fn body(mut self, text: &str) -> Self {
        if let ModelAct::Status { body, .. } = &mut self.act {
            *body = Some(text.to_owned());
        }
        self
    }

    /// Lets the model think first.
    #[must_use]
    pub fn latency(mut self, latency: Duration) -> Self {
        self.latency = latency;
        self
    }

    /// Sets the tokens to report.
    #[must_use]
    pub fn usage(mut self, input: u32, output: u32) -> Self {
        self.usage = Some(ModelUsage { input, output });
        self
    }
}

/// Tokens by the rule of four characters each, at least one.
pub(super) fn counted(text: &str) -> u32 {
    u32::try_from(text.chars().count().div_ceil(4))
        .unwrap_or(u32::MAX)
        .max(1)
}

/// Splits a text into the pieces of a stream: words with the space behind them.
pub(super) fn pieces(text: &str) -> Vec<&str> {
    text.split_inclusive(' ').collect()
}
