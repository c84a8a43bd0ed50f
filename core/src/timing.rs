//! How long things took since the start of the process, as histograms: counts below fixed bounds.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Bounds for what a platform waits for, in milliseconds. Slack waits 3 s for an acknowledgement.
pub const BOUNDS_QUICK_MS: &[u64] = &[5, 10, 25, 50, 100, 250, 500, 1_000, 3_000, 10_000];

/// Bounds for what people and models take, in milliseconds.
pub const BOUNDS_SLOW_MS: &[u64] = &[
    250, 500, 1_000, 2_500, 5_000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000, 900_000,
];

/// How often something took how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// The upper bounds of the buckets, rising, in milliseconds; the last bucket has none.
    pub bounds_ms: &'static [u64],
    /// How often, for each bucket alone; one more than there are bounds.
    pub counts: Vec<u64>,
    /// All of it together, in milliseconds.
    pub sum_ms: u64,
}

impl Histogram {
    /// An empty histogram.
    #[must_use]
    pub fn new(bounds_ms: &'static [u64]) -> Self {
        Self {
            bounds_ms,
            counts: vec![0; bounds_ms.len() + 1],
            sum_ms: 0,
        }
    }

    /// Counts one more, in milliseconds.
    pub fn note(&mut self, took_ms: u64) {
        let bucket = self.bounds_ms.partition_point(|bound| *bound < took_ms);
        self.counts[bucket] += 1;
        self.sum_ms = self.sum_ms.saturating_add(took_ms);
    }
}

/// Histograms by name and what came of it, for a `static`. Names are from the configuration, so there are few.
pub struct Timings {
    bounds_ms: &'static [u64],
    by_name: Mutex<BTreeMap<(String, &'static str), Histogram>>,
}

impl Timings {
    /// Without measurements; the bounds are in milliseconds, rising.
    #[must_use]
    pub const fn new(bounds_ms: &'static [u64]) -> Self {
        Self {
            bounds_ms,
            by_name: Mutex::new(BTreeMap::new()),
        }
    }

    /// Counts one more, in milliseconds.
    pub fn note(&self, name: &str, outcome: &'static str, took_ms: u64) {
        let mut by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        by_name
            .entry((name.to_owned(), outcome))
            .or_insert_with(|| Histogram::new(self.bounds_ms))
            .note(took_ms);
    }

    /// All of them, by name and what came of it.
    #[must_use]
    pub fn read(&self) -> Vec<(String, &'static str, Histogram)> {
        let by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        let each = by_name
            .iter()
            .map(|((name, outcome), histogram)| (name.clone(), *outcome, histogram.clone()));
        each.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_the_bucket_that_it_ends() {
        const BOUNDS_MS: &[u64] = &[10, 100];
        let table: [(u64, [u64; 3]); 6] = [
            (0, [1, 0, 0]),
            (10, [1, 0, 0]),
            (11, [0, 1, 0]),
            (100, [0, 1, 0]),
            (101, [0, 0, 1]),
            (u64::MAX, [0, 0, 1]),
        ];
        for (took_ms, counts) in table {
            let mut histogram = Histogram::new(BOUNDS_MS);
            histogram.note(took_ms);
            assert_eq!(histogram.counts, counts, "{took_ms}");
            assert_eq!(histogram.sum_ms, took_ms);
        }
        for bounds_ms in [BOUNDS_QUICK_MS, BOUNDS_SLOW_MS] {
            assert!(bounds_ms.is_sorted_by(|one, next| one < next));
        }
    }

    #[test]
    fn what_was_measured_is_kept_by_name_and_outcome() {
        let timings = Timings::new(&[10]);
        timings.note("two", "failed", 5);
        timings.note("one", "answered", 5);
        timings.note("two", "failed", 15);
        let read = timings.read();
        let shown: Vec<_> = read
            .iter()
            .map(|(name, outcome, histogram)| (name.as_str(), *outcome, histogram.counts.clone()))
            .collect();
        assert_eq!(
            shown,
            [
                ("one", "answered", vec![1, 0]),
                ("two", "failed", vec![1, 1])
            ]
        );
    }
}
