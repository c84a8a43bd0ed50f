//! Exponential back-off with full jitter.

use crate::chance;

/// Counts failures and says how long to wait. Units are milliseconds.
#[derive(Clone, Debug)]
pub struct Backoff {
    first_ms: u64,
    max_ms: u64,
    failures: u32,
}

impl Backoff {
    /// Waits between `first_ms` and `max_ms`.
    #[must_use]
    pub fn new(first_ms: u64, max_ms: u64) -> Self {
        Self {
            first_ms,
            max_ms,
            failures: 0,
        }
    }

    /// The next wait: between half of and the whole of the doubled interval.
    pub fn next_ms(&mut self) -> u64 {
        let ceiling = ceiling_ms(self.first_ms, self.max_ms, self.failures);
        self.failures = self.failures.saturating_add(1);
        chance::within(ceiling / 2..=ceiling)
    }

    /// Forgets the failures: the connection has been healthy.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// How many failures in a row.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.failures
    }
}

fn ceiling_ms(first_ms: u64, max_ms: u64, failures: u32) -> u64 {
    first_ms
        .saturating_mul(1_u64 << failures.min(32))
        .clamp(1, max_ms.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_the_maximum() {
        let ceilings: Vec<u64> = (0..6).map(|n| ceiling_ms(1_000, 8_000, n)).collect();
        assert_eq!(ceilings, [1_000, 2_000, 4_000, 8_000, 8_000, 8_000]);
        assert_eq!(ceiling_ms(1_000, 60_000, 4_000), 60_000);
    }

    #[test]
    fn stays_between_half_and_whole() {
        let mut backoff = Backoff::new(1_000, 60_000);
        for failures in 0..10 {
            let ceiling = ceiling_ms(1_000, 60_000, failures);
            let wait = backoff.next_ms();
            assert!(
                (ceiling / 2..=ceiling).contains(&wait),
                "{wait} of {ceiling}"
            );
        }
        backoff.reset();
        assert!(backoff.next_ms() <= 1_000);
    }
}
