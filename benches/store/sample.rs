//! Durations of one kind, and how they read.

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

    /// `p50 …, p99 … (n = …)`.
    pub(crate) fn shown(&self) -> String {
        let us = |percent| self.percentile(percent).as_secs_f64() * 1e6;
        format!(
            "p50 {:.0} µs, p99 {:.0} µs (n = {})",
            us(50),
            us(99),
            self.0.len()
        )
    }
}

/// The middle of a few ratios, with the least and the most.
pub(crate) fn middle(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    match (values.first(), values.get(values.len() / 2), values.last()) {
        (Some(least), Some(middle), Some(most)) => format!("{middle:.2} ({least:.2} to {most:.2})"),
        _ => "nothing".to_owned(),
    }
}
