//! Keeping within a platform's rate: a bucket of calls that fills again with time.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Lets calls through at a steady rate, a few of them at once.
#[derive(Debug)]
pub struct Pace {
    burst: u32,
    every: Duration,
    /// When the bucket is full again; a call moves it on by `every`.
    full_at: Mutex<Option<Instant>>,
}

impl Pace {
    /// One call every `every_ms` milliseconds, and `burst` at once after a rest.
    #[must_use]
    pub fn new(burst: u32, every_ms: u64) -> Self {
        Self {
            burst: burst.max(1),
            every: Duration::from_millis(every_ms),
            full_at: Mutex::default(),
        }
    }

    /// Waits until the next call may go. Calls go in the order in which they asked.
    pub async fn wait_turn(&self) {
        let wait = self.take(Instant::now());
        if !wait.is_zero() {
            sleep(wait).await;
        }
    }

    /// Takes a place and says how long it is away.
    fn take(&self, now: Instant) -> Duration {
        let mut full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let full = full_at.map_or(now, |at| at.max(now)) + self.every;
        *full_at = Some(full);
        (full - now).saturating_sub(self.every * self.burst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_goes_at_once_and_the_rest_one_by_one() {
        let pace = Pace::new(3, 1_000);
        let start = Instant::now();
        let waits: Vec<u64> = (0..5).map(|_| pace.take(start).as_secs()).collect();
        assert_eq!(waits, [0, 0, 0, 1, 2]);
        let later = start + Duration::from_secs(60);
        let waits: Vec<u64> = (0..4).map(|_| pace.take(later).as_secs()).collect();
        assert_eq!(waits, [0, 0, 0, 1]);
    }
}
