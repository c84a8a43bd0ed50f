//! How long a slot waits before it opens its next connection. Time is an argument.
//!
//! Only attempts that opened no connection are failures, and their waits double. A connection that said hello ends the
//! failures before it: one that breaks afterwards is opened again at once, and so is one that Slack wants to be
//! replaced. Both are paced, apart from each other, for a server that says hello and disconnects again and again.

use std::time::Duration;

use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::rate::Pace;

use super::socket::SocketTimings;

/// How many connections may be opened right after each other. Source: `apps.connections.open` is of Slack's
/// first tier, one a minute and more in bursts; a refusal says how long to wait.
const AT_ONCE: u32 = 5;

/// What a slot remembers of its connections.
#[derive(Debug)]
pub(super) struct Reopening {
    attempts: Backoff,
    losses: Pace,
    refreshes: Pace,
}

impl Reopening {
    pub(super) fn new(timings: &SocketTimings) -> Self {
        let pace = || Pace::new(AT_ONCE, timings.reopen_every_ms);
        Self {
            attempts: Backoff::new(timings.backoff_first_ms, timings.backoff_max_ms),
            losses: pace(),
            refreshes: pace(),
        }
    }

    /// The wait after an attempt that opened no connection, or that Slack refuses afterwards, in milliseconds.
    pub(super) fn after_failure_ms(&mut self) -> u64 {
        self.attempts.next_ms()
    }

    /// The wait after a connection that had said hello broke, in milliseconds.
    pub(super) fn after_loss_ms(&mut self, now: Instant) -> u64 {
        self.attempts.reset();
        self.attempts.next_ms().max(millis(self.losses.take(now)))
    }

    /// The wait before a connection is replaced because Slack wants that, in milliseconds.
    pub(super) fn before_refresh_ms(&mut self, now: Instant) -> u64 {
        self.attempts.reset();
        millis(self.refreshes.take(now))
    }
}

fn millis(wait: Duration) -> u64 {
    u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a wait is short: at most the first back-off, which is a second.
    fn is_short(wait_ms: u64) -> bool {
        wait_ms <= 1_000
    }

    #[test]
    fn a_break_after_refreshes_waits_no_longer_than_any_first_one() {
        let mut reopening = Reopening::new(&SocketTimings::default());
        let start = Instant::now();
        let refreshes = (0..5).map(|n| reopening.before_refresh_ms(start + Duration::from_secs(n)));
        assert_eq!(refreshes.collect::<Vec<_>>(), [0; 5]);
        let wait_ms = reopening.after_loss_ms(start + Duration::from_secs(6));
        assert!(is_short(wait_ms), "{wait_ms}");
    }

    #[test]
    fn young_connections_that_break_are_opened_again_soon_and_a_storm_of_them_is_paced() {
        let mut reopening = Reopening::new(&SocketTimings::default());
        let mut now = Instant::now();
        let waits: Vec<u64> = (0..30)
            .map(|_| {
                let wait_ms = reopening.after_loss_ms(now);
                // The connection said hello and broke at once.
                now += Duration::from_millis(wait_ms);
                wait_ms
            })
            .collect();
        assert!(
            waits[..5].iter().all(|wait_ms| is_short(*wait_ms)),
            "{waits:?}"
        );
        assert!(waits.iter().all(|wait_ms| *wait_ms <= 10_000), "{waits:?}");
        // All attempts of ten minutes stay within the pace.
        let sum: u64 = waits.iter().sum();
        assert!(sum >= (30 - 6) * 10_000, "{waits:?}");
    }

    #[test]
    fn attempts_without_a_connection_double_their_wait_until_there_is_one() {
        let mut reopening = Reopening::new(&SocketTimings::default());
        for ceiling_ms in [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000] {
            let wait_ms = reopening.after_failure_ms();
            assert!(
                (ceiling_ms / 2..=ceiling_ms).contains(&wait_ms),
                "{wait_ms}"
            );
        }
        let wait_ms = reopening.after_loss_ms(Instant::now());
        assert!(is_short(wait_ms), "{wait_ms}");
    }
}
