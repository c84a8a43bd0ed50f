//! How long a run is leased, how old its question is, and how long it was worked on.

use std::time::Duration;

use tokio::time::Instant;

/// How long a run is leased, in milliseconds; the lease is extended while the run is worked on.
pub(super) const LEASE_MS: i64 = 60_000;
/// How often the lease is extended.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(15);

/// How old a question is, by the run clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Age {
    at_claim_ms: i64,
    claimed: Instant,
}

impl Age {
    pub(super) fn at_claim(at_claim_ms: i64) -> Self {
        Self {
            at_claim_ms: at_claim_ms.max(0),
            claimed: Instant::now(),
        }
    }

    pub(super) fn now_ms(self) -> i64 {
        let elapsed_ms = self.claimed.elapsed().as_millis();
        self.at_claim_ms
            .saturating_add(i64::try_from(elapsed_ms).unwrap_or(i64::MAX))
    }
}

/// How long a run was worked on, all attempts together.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkClock {
    /// In earlier attempts, in milliseconds.
    before_ms: u64,
    since: Instant,
}

impl WorkClock {
    pub(super) fn after(before_ms: u64) -> Self {
        Self {
            before_ms,
            since: Instant::now(),
        }
    }

    pub(super) fn worked_ms(self) -> u64 {
        let elapsed_ms = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.before_ms.saturating_add(elapsed_ms)
    }
}
