//! Percentiles and spreads of a sample, and how they read.

use std::time::Duration;

/// Durations of one kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample(Vec<Duration>);

impl Sample {
    pub(crate) fn push(&mut self, value: Duration) {
        self.0.push(value);
    }

    /// The value that `percent` of the sample does not exceed; zero for an empty sample.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100).max(1) - 1;
        sorted.get(rank).copied().unwrap_or_default()
    }

    pub(crate) fn median(&self) -> Duration {
        self.percentile(50)
    }

    /// The sample in one cell: `p50 median (least to most, n = …)`.
    pub(crate) fn spread(&self) -> String {
        format!(
            "p50 {} ({} to {}, n = {})",
            ms(self.median()),
            ms(self.percentile(0)),
            ms(self.percentile(100)),
            self.0.len()
        )
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Milliseconds with two decimals.
pub(crate) fn ms(value: Duration) -> String {
    format!("{:.2} ms", value.as_secs_f64() * 1_000.0)
}
