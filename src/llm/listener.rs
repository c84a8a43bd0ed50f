//! Who hears an answer while it is written.

use std::fmt;

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
}

impl fmt::Debug for dyn Listener + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}
