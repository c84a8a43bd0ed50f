//! Rate limits: how many requests are admitted in a window of time.

use std::time::Duration;

use tokio::time::Instant;

/// The requests of the current window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    began: Instant,
    count: u32,
}

impl Rate {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            began: now,
            count: 0,
        }
    }

    /// Counts one more request; returns whether it is among the `most` of its window.
    pub(crate) fn admits(&mut self, most: u32, window: Duration, now: Instant) -> bool {
        if now.duration_since(self.began) >= window {
            *self = Self::new(now);
        }
        self.count = self.count.saturating_add(1);
        self.count <= most
    }

    /// Whether its window is over, so that it may be forgotten.
    pub(crate) fn is_over(&self, window: Duration, now: Instant) -> bool {
        now.duration_since(self.began) >= window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_window_admits_so_many() {
        let second = Duration::from_secs(1);
        let mut rate = Rate::new(Instant::now());
        let mut admitted = || {
            (0..5)
                .filter(|_| rate.admits(3, second, Instant::now()))
                .count()
        };
        assert_eq!(admitted(), 3);
        assert_eq!(admitted(), 0);
        tokio::time::advance(second).await;
        assert_eq!(admitted(), 3);
    }
}
