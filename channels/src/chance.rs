//! Random numbers, for waits that must not coincide.
//!
//! All of them are drawn here, so that a simulation can fix them: what a thread draws after [`fix`] follows from the
//! seed.

use std::cell::RefCell;
use std::ops::RangeInclusive;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

thread_local! {
    static FIXED: RefCell<Option<StdRng>> = const { RefCell::new(None) };
}

/// A random number within the range.
#[must_use]
pub fn within(range: RangeInclusive<u64>) -> u64 {
    FIXED.with_borrow_mut(|fixed| match fixed {
        Some(random) => random.random_range(range),
        None => rand::rng().random_range(range),
    })
}

/// Fixes what this thread draws from now on; `None` makes the numbers random again.
pub fn fix(seed: Option<u64>) {
    FIXED.set(seed.map(StdRng::seed_from_u64));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_fixes_what_is_drawn() {
        let drawn = |seed| {
            fix(Some(seed));
            let drawn: Vec<u64> = (0..8).map(|_| within(0..=1_000)).collect();
            fix(None);
            drawn
        };
        assert_eq!(drawn(7), drawn(7));
        assert_ne!(drawn(7), drawn(8));
        assert!(within(3..=4) >= 3);
    }
}
