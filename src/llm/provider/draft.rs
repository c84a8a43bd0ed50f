//! An answer while it is read, from a stream or from a whole body.
//!
//! Pure. `chat`, `messages` and `responses` write into it; everything in it has a size limit.

use serde_json::Value;

use super::malformed;
use super::reader::{ProviderAnswer, Reason};
use super::thoughts::{Aloud, TextEnd, Thoughts};
use crate::llm::{Listener, ModelError, ToolCall, read_arguments};

/// The most bytes of a stream besides its text: tool calls, and thoughts in fields of their own.
const ASIDE_MAX_BYTES: usize = 1 << 20;
/// The least that a further call or block counts, in bytes.
const PART_MIN_BYTES: usize = 64;

/// The answer so far.
#[derive(Debug)]
pub(super) struct Draft {
    text: String,
    text_max_bytes: usize,
    thoughts: Thoughts,
    pub(super) calls: Vec<DraftCall>,
    aside_bytes: usize,
    reason: Option<Reason>,
    pub(super) usage: ReportedUsage,
    end: Option<End>,
}

/// A call as far as it was received.
#[derive(Debug, Default)]
pub(super) struct DraftCall {
    /// Its index among the calls, or the blocks, if the stream has one.
    pub(super) index: Option<u64>,
    pub(super) id: String,
    pub(super) name: String,
    /// JSON, once it is complete.
    pub(super) arguments: String,
    /// A field that some servers want back with the call.
    pub(super) extra: Option<Value>,
}

/// Token counts so far. For each, the last report counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReportedUsage {
    /// The whole prompt.
    pub(super) prompt: Option<u64>,
    /// Tokens of the prompt that were read from the cache.
    pub(super) cache_read: u64,
    /// Tokens of the prompt that were written to the cache.
    pub(super) cache_write: u64,
    pub(super) completion: Option<u64>,
}

/// Why nothing more is read.
#[derive(Debug)]
enum End {
    /// The stream reported its end.
    Said,
    /// The text reached its limit.
    Cut,
    /// An event could not be read.
    Garbled,
    /// The answer failed.
    Failed(ModelError),
}

/// The outcome of a stream.
#[derive(Debug)]
pub(super) enum DraftOutcome {
    /// A complete answer.
    Whole(Box<WrittenAnswer>),
    /// The stream ended before its answer did.
    Broken,
    /// A piece of the stream can't be read.
    Garbled,
    /// The stream reported a failure.
    Failed(ModelError),
}

/// A complete answer.
#[derive(Debug)]
pub(super) struct WrittenAnswer {
    /// The text with the thoughts in it.
    pub(super) full_text: String,
    /// The text without the thoughts.
    pub(super) thoughts: Thoughts,
    pub(super) calls: Vec<DraftCall>,
    pub(super) reason: Reason,
    pub(super) usage: ReportedUsage,
}

impl Draft {
    pub(super) fn new(text_max_bytes: usize, aloud: Aloud) -> Self {
        Self {
            text: String::new(),
            text_max_bytes,
            thoughts: Thoughts::new(aloud),
            calls: Vec::new(),
            aside_bytes: 0,
            reason: None,
            usage: ReportedUsage::default(),
            end: None,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.end.is_some()
    }

    /// Passes new text to the listener.
    pub(super) fn tell(&mut self, listener: &dyn Listener) {
        let end = self.text_end();
        self.thoughts.read(&self.text, end);
        let (is_void, news) = self.thoughts.news(end.is_some());
        if is_void {
            listener.restart();
        }
        if !news.is_empty() {
            listener.text(&self.thoughts.visible()[news]);
        }
    }

    /// How the text ended; `None` while more may come.
    fn text_end(&self) -> Option<TextEnd> {
        let is_cut = matches!(self.reason, Some(Reason::Length | Reason::Full));
        match self.end {
            None => None,
            Some(End::Said) if !is_cut => Some(TextEnd::Whole),
            Some(_) => Some(TextEnd::Cut),
        }
    }

    /// Adds text; beyond the limit the text is cut off, and the answer ends there.
    pub(super) fn write(&mut self, piece: &str) {
        let mut left = self.text_max_bytes.saturating_sub(self.text.len());
        if piece.len() <= left {
            self.text.push_str(piece);
            return;
        }
        while !piece.is_char_boundary(left) {
            left -= 1;
        }
        self.text.push_str(&piece[..left]);
        self.end = Some(End::Cut);
    }

    pub(super) fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// Thoughts came in a field of their own. Returns whether there is room to keep these bytes of them; if not, they
    /// are not kept.
    pub(super) fn thinks(&mut self, bytes: usize) -> bool {
        self.thoughts.are_elsewhere();
        self.has_room(bytes)
    }

    /// Adds to a call's arguments. Beyond the limit the answer fails, since half a call is of no use.
    pub(super) fn call(&mut self, at: usize, arguments: &str) {
        if self.has_room(arguments.len()) {
            self.calls[at].arguments.push_str(arguments);
        } else {
            self.fail(malformed("its tool calls are too long"));
        }
    }

    /// Begins a call; returns its index.
    pub(super) fn begin_call(&mut self, call: DraftCall) -> usize {
        if !self.has_room(PART_MIN_BYTES + call.id.len() + call.name.len()) {
            self.fail(malformed("its tool calls are too long"));
        }
        self.calls.push(call);
        self.calls.len() - 1
    }

    /// Counts the bytes of a value; false if there is no room for it.
    pub(super) fn keeps(&mut self, value: &Value) -> bool {
        self.has_room(PART_MIN_BYTES + value.to_string().len())
    }

    /// Adds to a string if there is room.
    pub(super) fn keep(&mut self, kept: &mut String, more: &str) {
        if self.has_room(more.len()) {
            kept.push_str(more);
        }
    }

    /// Whether there is room for `bytes` more; if so, counts them.
    pub(super) fn has_room(&mut self, bytes: usize) -> bool {
        let has_room = self.aside_bytes.saturating_add(bytes) <= ASIDE_MAX_BYTES;
        if has_room {
            self.aside_bytes += bytes;
        }
        has_room
    }

    /// The stream is over. The reason why an answer ended is the last thing in a stream: if it was there, only the end
    /// mark is missing.
    pub(super) fn close(&mut self) {
        if self.end.is_none() && self.reason.is_some() {
            self.end = Some(End::Said);
        }
    }

    pub(super) fn finish(&mut self, reason: &str) {
        self.reason = Some(Reason::of(reason));
    }

    /// The stream reported its end.
    pub(super) fn end(&mut self) {
        self.end.get_or_insert(End::Said);
    }

    /// An event could not be read. The reason why an answer ended is the last thing in a stream: if it was there, the
    /// answer is whole; otherwise a piece of it is lost, as after a lost connection.
    pub(super) fn garble(&mut self) {
        self.close();
        if self.end.is_none() {
            self.end = Some(End::Garbled);
        }
    }

    pub(super) fn fail(&mut self, cause: ModelError) {
        self.end = Some(End::Failed(cause));
    }

    /// The outcome.
    pub(super) fn conclude(mut self) -> DraftOutcome {
        let end = self.text_end().unwrap_or(TextEnd::Cut);
        let reason = match self.end {
            Some(End::Failed(cause)) => return DraftOutcome::Failed(cause),
            Some(End::Garbled) => return DraftOutcome::Garbled,
            Some(End::Cut) => Reason::Length,
            Some(End::Said) => self.reason.unwrap_or(Reason::Other),
            None => return DraftOutcome::Broken,
        };
        self.thoughts.read(&self.text, Some(end));
        DraftOutcome::Whole(Box::new(WrittenAnswer {
            full_text: self.text,
            thoughts: self.thoughts,
            calls: self.calls,
            reason,
            usage: self.usage,
        }))
    }
}

impl DraftCall {
    /// The arguments as JSON; if they are not readable, their text.
    pub(super) fn arguments(&self) -> Value {
        read_arguments(&self.arguments).unwrap_or_else(|_| Value::String(self.arguments.clone()))
    }
}

impl WrittenAnswer {
    /// Whether the answer ended for tool calls but has none.
    pub(super) fn lost_its_calls(&self) -> bool {
        self.calls.is_empty() && self.reason == Reason::Tools
    }

    /// Combines this with the provider's own message.
    pub(super) fn said(self, message: Value) -> ProviderAnswer {
        let calls = self.calls.iter().map(|call| ToolCall {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments(),
        });
        ProviderAnswer {
            calls: calls.collect(),
            text: self.thoughts.visible().to_owned(),
            is_unclosed: self.thoughts.is_unclosed(),
            is_headless: self.thoughts.is_headless(),
            reason: self.reason,
            usage: self.usage,
            message,
        }
    }
}

/// The error for a broken stream: another attempt may be whole.
pub(super) fn garbled(what: &str) -> ModelError {
    ModelError::Unavailable {
        cause: what.to_owned(),
    }
}

/// Reads the cached tokens of a prompt, by the names of OpenAI and compatible servers. Source: OpenAI's prompt caching
/// guide (`cached_tokens`; `cache_write_tokens` from GPT-5.6 on) and DeepSeek's context caching page
/// (`prompt_cache_hit_tokens`).
pub(super) fn read_cache_usage(usage: &Value, details: &str, known: &mut ReportedUsage) {
    let told = |name| tokens(&usage[details], name);
    let read = told("cached_tokens").or_else(|| tokens(usage, "prompt_cache_hit_tokens"));
    known.cache_read = read.unwrap_or(known.cache_read);
    known.cache_write = told("cache_write_tokens").unwrap_or(known.cache_write);
}

/// A token count of a provider; impossibly high counts are cut to the maximum.
pub(super) fn tokens(usage: &Value, name: &str) -> Option<u64> {
    let tokens = usage.get(name).and_then(Value::as_u64)?;
    Some(tokens.min(u64::from(u32::MAX)))
}
