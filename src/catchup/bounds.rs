//! How far is read back.

/// How far is read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatchupBounds {
    /// Days of missed messages that are read; 0 = none. Threads whose last reply is younger are checked, however old
    /// they are.
    pub catch_up_days: u32,
    /// The most missed messages that are read in one chat, the newest.
    pub catch_up_messages_max: usize,
    /// Days that are read of a chat that the bot joins; 0 = none.
    pub backfill_days: u32,
    /// The most messages that are read of such a chat, the newest; 0 = none.
    pub backfill_messages_max: usize,
    /// The silence after which a connection is doubted, in milliseconds; 0 = never.
    pub deaf_after_ms: i64,
}

const DAY_MS: i64 = 86_400_000;

impl CatchupBounds {
    /// Whether missed messages are read.
    #[must_use]
    pub fn catches_up(&self) -> bool {
        self.catch_up_days > 0 && self.catch_up_messages_max > 0
    }

    /// Whether a chat that the bot joins is read.
    #[must_use]
    pub fn backfills(&self) -> bool {
        self.backfill_days > 0 && self.backfill_messages_max > 0
    }

    /// The oldest missed message that is read, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn catch_up_from_ms(&self, now_ms: i64) -> i64 {
        now_ms - i64::from(self.catch_up_days) * DAY_MS
    }

    /// The oldest message that is read of a chat that the bot joined at `joined_ms`.
    #[must_use]
    pub fn backfill_from_ms(&self, joined_ms: i64) -> i64 {
        joined_ms - i64::from(self.backfill_days) * DAY_MS
    }
}
