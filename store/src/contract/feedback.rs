//! What people think of answers.

/// How many thumbs answers got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThumbCounts {
    /// Thumbs up.
    pub up: u64,
    /// Thumbs down.
    pub down: u64,
}
