//! What people think of answers.

/// Thumbs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThumbCounts {
    /// Of those who found it good.
    pub up: u64,
    /// Of those who did not.
    pub down: u64,
}
