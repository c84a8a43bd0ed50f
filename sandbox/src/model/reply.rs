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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelUsage {
    /// Tokens of the prompt, whatever the cache did with them.
    pub input: u32,
    /// Of these, tokens read from the cache.
    pub cache_read: u32,
    /// Of these, tokens written to the cache.
    pub cache_write: u32,
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
    /// A 200 with a body that is not JSON (as a stream: an event that is not JSON).
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
    /// A stream that sends this and then nothing more, on an open connection. Not streaming: nothing is ever answered.
    Stalled {
        /// The text before the silence.
        text: String,
    },
    /// A stream whose connection breaks in the middle of the text. Not streaming: a body that ends
    /// in the middle.
    BrokenOff {
        /// The text before the break.
        text: String,
    },
    /// A stream that says why the answer ended, but lacks its end mark. Not streaming: an ordinary
    /// answer.
    Unmarked {
        /// The whole text.
        text: String,
    },
    /// A stream that sends this again and again, until the client disconnects. Not streaming: an ordinary answer.
    Endless {
        /// The text of each round.
        text: String,
    },
    /// A stream of one event that never ends. Not streaming: nothing is ever answered.
    EndlessEvent,
    /// A stream of these bytes, as they are. Not streaming: status 500.
    Stream(String),
}

/// How fast a text is streamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelPace {
    /// The text comes in so many pieces of equal length.
    pub deltas: usize,
    /// The wait before each of them.
    pub every: Duration,
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
    /// How fast it is streamed; `None` is word by word, all at once.
    pub pace: Option<ModelPace>,
    /// The model's thoughts before the answer: a thinking block, a reasoning item, or `reasoning_content`.
    pub thinking: Option<String>,
}

impl ModelReply {
    /// A reply that does this, at once.
    #[must_use]
    pub fn new(act: ModelAct) -> Self {
        Self {
            act,
            latency: Duration::ZERO,
            usage: None,
            pace: None,
            thinking: None,
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

    /// Streams the text in so many pieces, with a wait before each.
    #[must_use]
    pub fn paced(mut self, deltas: usize, every: Duration) -> Self {
        self.pace = Some(ModelPace { deltas, every });
        self
    }

    /// Lets the model think this before it answers.
    #[must_use]
    pub fn thinking(mut self, thinking: &str) -> Self {
        self.thinking = Some(thinking.to_owned());
        self
    }

    /// Sets the tokens to report.
    #[must_use]
    pub fn usage(mut self, input: u32, output: u32) -> Self {
        self.usage = Some(ModelUsage {
            input,
            output,
            ..ModelUsage::default()
        });
        self
    }
}

impl ModelUsage {
    /// Tokens that were neither read from nor written to the cache.
    pub(super) fn uncached(self) -> u32 {
        self.input
            .saturating_sub(self.cache_read)
            .saturating_sub(self.cache_write)
    }

    /// Whether tokens were read from or written to the cache.
    pub(super) fn is_cached(self) -> bool {
        self.cache_read > 0 || self.cache_write > 0
    }
}

/// Tokens by the rule of four characters each, at least one.
pub(super) fn counted(text: &str) -> u32 {
    u32::try_from(text.chars().count().div_ceil(4))
        .unwrap_or(u32::MAX)
        .max(1)
}

/// Splits a text into the pieces of a stream: words with the space behind them, or as many pieces as
/// a pace wants.
pub(super) fn pieces(text: &str, pace: Option<ModelPace>) -> Vec<&str> {
    let Some(pace) = pace else {
        return text.split_inclusive(' ').collect();
    };
    let length = text.len().div_ceil(pace.deltas.max(1)).max(1);
    let (mut pieces, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let mut at = length.min(rest.len());
        while !rest.is_char_boundary(at) {
            at += 1;
        }
        let (piece, after) = rest.split_at(at);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_into_words_or_into_as_many_pieces_as_wanted() {
        assert_eq!(
            pieces("one two  three", None),
            ["one ", "two ", " ", "three"]
        );
        let pace = |deltas| {
            Some(ModelPace {
                deltas,
                every: Duration::ZERO,
            })
        };
        assert_eq!(pieces("abcdef", pace(3)), ["ab", "cd", "ef"]);
        assert_eq!(pieces("äöü", pace(2)), ["äö", "ü"]);
        assert_eq!(pieces("ab", pace(9)), ["a", "b"]);
        assert_eq!(pieces("ab", pace(0)), ["ab"]);
    }
}
