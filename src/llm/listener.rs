//! Who hears an answer while it is written.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use vocative_core::ids::TurnId;

/// Hears the text of an answer while the model writes it.
///
/// It is told on the task that reads the stream: every method is cheap and never blocks. What it
/// hears is for showing; the answer is what [`Model::complete`](super::Model::complete) returns. When
/// that is an answer, what was heard since the last `restart` is its text, but for white space at both
/// ends; when it is an error that follows text, `restart` was called.
pub trait Listener: Send + Sync {
    /// The next piece of the text; never empty.
    fn text(&self, delta: &str);

    /// What was heard of this answer is void: it failed, and is asked again or given up.
    fn restart(&self);

    /// The answer was heard out and asks for tools: the next text belongs to another answer.
    fn interlude(&self) {}

    /// A tool is called with what the last answer asked for.
    fn tool_call(&self, _call_id: &str, _tool: &str, _arguments: &str) {}

    /// It says how far it is.
    fn tool_progress(&self, _call_id: &str, _tool: &str, _progress: &str) {}

    /// It gave a result, which quotes these turns.
    fn tool_result(&self, _call_id: &str, _tool: &str, _result: &str, _sources: &[TurnId]) {}
}

/// Knows whether something was heard that may turn out to be void.
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

    /// The answer failed: what was heard of it is void.
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
