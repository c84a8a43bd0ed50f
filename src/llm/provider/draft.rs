//! An answer while it is read: what a stream, or an answer that came at once, has said so far.
//!
//! Pure. `chat`, `messages` and `responses` read into it; nothing in it grows without a bound.

use serde_json::Value;

use super::malformed;
use super::reader::{ProviderAnswer, Reason};
use super::thoughts::{Aloud, TextEnd, Thoughts};
use crate::llm::{Listener, ModelError, ToolCall, read_arguments};

/// The most bytes that a stream may say beside its text: tool calls, and thoughts that come apart from it.
const ASIDE_MAX_BYTES: usize = 1 << 20;
/// The least that one more call or block counts, in bytes.
const PART_MIN_BYTES: usize = 64;

/// What was said so far.
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

/// A call as far as it has come.
#[derive(Debug, Default)]
pub(super) struct DraftCall {
    /// Its place among the calls, or the blocks, where the stream says so.
    pub(super) index: Option<u64>,
    pub(super) id: String,
    pub(super) name: String,
    /// JSON, when it is complete.
    pub(super) arguments: String,
    /// What some servers want back with it.
    pub(super) extra: Option<Value>,
}

/// Tokens as far as they were told. Each is what was said last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReportedUsage {
    /// All of the prompt.
    pub(super) prompt: Option<u64>,
    /// Of the prompt, what the cache gave.
    pub(super) cache_read: u64,
    /// Of the prompt, what the cache took.
    pub(super) cache_write: u64,
    pub(super) completion: Option<u64>,
}

/// Why nothing more counts.
#[derive(Debug)]
enum End {
    /// The end was said.
    Said,
    /// There is more text than may be.
    Cut,
    /// Something came that can't be read.
    Garbled,
    /// It failed.
    Failed(ModelError),
}

/// What a stream that is over was worth.
#[derive(Debug)]
pub(super) enum DraftOutcome {
    /// An answer.
    Whole(Box<WrittenAnswer>),
    /// It ended before its answer did.
    Broken,
    /// A piece of it can't be read.
    Garbled,
    /// It said that it failed.
    Failed(ModelError),
}

/// An answer as it was written.
#[derive(Debug)]
pub(super) struct WrittenAnswer {
    /// With the thoughts in it.
    pub(super) full_text: String,
    /// Without them.
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

    /// Tells what of the text is new.
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

    /// More text; what passes the limit is cut off, and the answer ends there.
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

    /// Thoughts came apart from the text. Whether there is room to keep these bytes of them; where
    /// there is none, they are not kept.
    pub(super) fn thinks(&mut self, bytes: usize) -> bool {
        self.thoughts.are_elsewhere();
        self.has_room(bytes)
    }

    /// More of a call. What passes the limit makes the answer fail: half a call is none.
    pub(super) fn call(&mut self, at: usize, arguments: &str) {
        if self.has_room(arguments.len()) {
            self.calls[at].arguments.push_str(arguments);
        } else {
            self.fail(malformed("its tool calls are too long"));
        }
    }

    /// A new call; its place.
    pub(super) fn begin_call(&mut self, call: DraftCall) -> usize {
        if !self.has_room(PART_MIN_BYTES + call.id.len() + call.name.len()) {
            self.fail(malformed("its tool calls are too long"));
        }
        self.calls.push(call);
        self.calls.len() - 1
    }

    /// Keeps a value, as long as there is room.
    pub(super) fn keeps(&mut self, value: &Value) -> bool {
        self.has_room(PART_MIN_BYTES + value.to_string().len())
    }

    /// Keeps more of something, as long as there is room.
    pub(super) fn keep(&mut self, kept: &mut String, more: &str) {
        if self.has_room(more.len()) {
            kept.push_str(more);
        }
    }

    /// Whether `bytes` more may be kept; then they count.
    pub(super) fn has_room(&mut self, bytes: usize) -> bool {
        let has_room = self.aside_bytes.saturating_add(bytes) <= ASIDE_MAX_BYTES;
        if has_room {
            self.aside_bytes += bytes;
        }
        has_room
    }

    /// Nothing more comes. Why an answer ended is the last thing a stream says of it: where that was
    /// said, only the mark at the end is missing.
    pub(super) fn close(&mut self) {
        if self.end.is_none() && self.reason.is_some() {
            self.end = Some(End::Said);
        }
    }

    pub(super) fn finish(&mut self, reason: &str) {
        self.reason = Some(Reason::of(reason));
    }

    /// The end was said.
    pub(super) fn end(&mut self) {
        self.end.get_or_insert(End::Said);
    }

    /// Something came that can't be read. Why an answer ended is the last thing that is said of it, so
    /// one that was told is whole; any other has lost a piece, as if its connection had broken.
    pub(super) fn garble(&mut self) {
        self.close();
        if self.end.is_none() {
            self.end = Some(End::Garbled);
        }
    }

    pub(super) fn fail(&mut self, cause: ModelError) {
        self.end = Some(End::Failed(cause));
    }

    /// What it is worth.
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
    /// The arguments, or what is written in their place.
    pub(super) fn arguments(&self) -> Value {
        read_arguments(&self.arguments).unwrap_or_else(|_| Value::String(self.arguments.clone()))
    }
}

impl WrittenAnswer {
    /// Whether tools are asked for, but none is named.
    pub(super) fn lost_its_calls(&self) -> bool {
        self.calls.is_empty() && self.reason == Reason::Tools
    }

    /// The same with the provider's own message.
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

/// A stream that broke: asked again, it may be whole.
pub(super) fn garbled(what: &str) -> ModelError {
    ModelError::Unavailable {
        cause: what.to_owned(),
    }
}

/// What the cache gave and took of a prompt, in the words of OpenAI and those compatible with it. Source:
/// OpenAI's prompt caching guide (`cached_tokens`; `cache_write_tokens` from GPT-5.6 on) and DeepSeek's
/// context caching page (`prompt_cache_hit_tokens`).
pub(super) fn read_cache_usage(usage: &Value, details: &str, known: &mut ReportedUsage) {
    let told = |name| tokens(&usage[details], name);
    let read = told("cached_tokens").or_else(|| tokens(usage, "prompt_cache_hit_tokens"));
    known.cache_read = read.unwrap_or(known.cache_read);
    known.cache_write = told("cache_write_tokens").unwrap_or(known.cache_write);
}

/// A number that a provider counts tokens with; what no prompt can have counts as the most there is.
pub(super) fn tokens(usage: &Value, name: &str) -> Option<u64> {
    let tokens = usage.get(name).and_then(Value::as_u64)?;
    Some(tokens.min(u64::from(u32::MAX)))
}
