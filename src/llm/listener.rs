//! Receives an answer while it is written.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use vocative_core::ids::TurnId;

/// Receives the text of an answer while the model writes it.
///
/// It is called on the task that reads the stream: every method is cheap and never blocks. What it receives is for
/// showing; the answer is what [`Model::complete`](super::Model::complete) returns. If that is an answer, the text
/// since the last `restart` is its text, except for white space at both ends; if it is an error that follows text,
/// `restart` was called.
pub trait Listener: Send + Sync {
    /// The next piece of the text; never empty.
    fn text(&self, delta: &str);

    /// The text of this answer is void: the answer failed, and is asked for again or given up.
    fn restart(&self);

    /// The answer is complete and asks for tools: the next text belongs to another answer.
    fn interlude(&self) {}

    /// A tool is called with the arguments from the last answer.
    fn tool_call(&self, _call_id: &str, _tool: &str, _arguments: &str) {}

    /// The tool reports its progress.
    fn tool_progress(&self, _call_id: &str, _tool: &str, _progress: &str) {}

    /// The tool gave a result, which quotes these turns.
    fn tool_result(&self, _call_id: &str, _tool: &str, _result: &str, _sources: &[TurnId]) {}
}

/// Remembers whether the listener has text that may become void.
pub(super) struct Tracked<'a> {
    listener: &'a dyn Listener,
    has_text: AtomicBool,
}

impl<'a> Tracked<'a> {
    pub(super) fn new(listener: &'a dyn Listener) -> Self {
        Self {
            listener,
            has_text: AtomicBool::new(false),
        }
    }

    /// The answer failed: its text is void.
    pub(super) fn void(&self) {
        if self.has_text.load(Ordering::Relaxed) {
            self.restart();
        }
    }
}

impl Listener for Tracked<'_> {
    fn text(&self, delta: &str) {
        self.has_text.store(true, Ordering::Relaxed);
        self.listener.text(delta);
    }

    fn restart(&self) {
        if self.has_text.swap(false, Ordering::Relaxed) {
            self.listener.restart();
        }
    }
}

impl fmt::Debug for dyn Listener + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}
