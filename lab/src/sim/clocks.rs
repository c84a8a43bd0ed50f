//! The machine's clock in a world: it may be wrong at the start, step, drift and be corrected, while the
//! monotonic clock (tokio's) goes on and the platform knows the time. Pure.

use super::script::BEGINNING_MS;
use crate::dice::SeededDice;

const YEAR_MS: i64 = 365 * 86_400_000;

/// How far clocks were seen to be wrong, in milliseconds, either way: half a minute, a stepped send, an hour
/// and a minute, time zones, and what a machine without a battery believes.
const OFF_MS: [i64; 6] = [
    30_000,
    200_000,
    3_660_000,
    7_200_000,
    30 * 86_400_000,
    YEAR_MS,
];

/// Worlds in a thousand whose machine has a wrong clock.
const WRONG_PER_MILLE: u64 = 400;
/// Steps of such a clock.
const STEPS_MAX: u64 = 5;
/// The most that such a clock gains or loses, in millionths.
const DRIFT_MAX_PPM: i64 = 400;

/// The machine's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WallClock {
    /// From which time on the clock is ahead, and by how much, in order of time.
    steps: Vec<(i64, i64)>,
    drift_ppm: i64,
}

impl WallClock {
    /// The clock of a world that lasts until `until_ms`.
    pub(super) fn new(until_ms: i64, dice: &mut SeededDice) -> Self {
        if !dice.hits(WRONG_PER_MILLE) {
            return Self::default();
        }
        let mut steps = Vec::new();
        if dice.hits(500) {
            steps.push((BEGINNING_MS - 1, off_ms(dice)));
        }
        for _ in 0..=dice.below(STEPS_MAX) {
            let at_ms = dice.ms(BEGINNING_MS, until_ms);
            let is_corrected = dice.hits(350);
            let off_ms = if is_corrected { 0 } else { off_ms(dice) };
            steps.push((at_ms, off_ms));
        }
        steps.sort_unstable();
        Self {
            steps,
            drift_ppm: dice.ms(-DRIFT_MAX_PPM, DRIFT_MAX_PPM),
        }
    }

    /// The time that the clock shows at a true time; both in milliseconds since the Unix epoch.
    pub(super) fn shows_ms(&self, true_ms: i64) -> i64 {
        let is_past = |(at_ms, _): &&(i64, i64)| *at_ms <= true_ms;
        let ahead_ms = self.steps.iter().rev().find(is_past).map_or(0, |it| it.1);
        true_ms + ahead_ms + (true_ms - BEGINNING_MS) * self.drift_ppm / 1_000_000
    }

    /// Whether it shows the time, always.
    pub(super) fn is_right(&self) -> bool {
        *self == Self::default()
    }
}

/// How far the clock is ahead after a step: by a typical error, or anything up to a year.
fn off_ms(dice: &mut SeededDice) -> i64 {
    let by_ms = match dice.hits(700) {
        true => OFF_MS[dice.place(OFF_MS.len())],
        false => dice.ms(0, YEAR_MS),
    };
    if dice.hits(500) { by_ms } else { -by_ms }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_counts_from_its_instant_and_drift_from_the_beginning() {
        let clock = WallClock {
            steps: vec![
                (BEGINNING_MS + 1_000, 500),
                (BEGINNING_MS + 2_000, -YEAR_MS),
            ],
            drift_ppm: 1_000,
        };
        let table = [
            (0, 0),
            (999, 0),
            (1_000, 501),
            (1_999, 501),
            (2_000, 2 - YEAR_MS),
        ];
        for (after_ms, ahead_ms) in table {
            let true_ms = BEGINNING_MS + after_ms;
            assert_eq!(clock.shows_ms(true_ms) - true_ms, ahead_ms, "{after_ms}");
        }
        assert!(WallClock::default().is_right());
    }

    #[test]
    fn worlds_have_all_kinds_of_clocks() {
        let clocks: Vec<WallClock> = (0..400)
            .map(|seed| WallClock::new(BEGINNING_MS + 60_000, &mut SeededDice::of(seed, "clock")))
            .collect();
        let ahead_ms = |clock: &WallClock, at_ms: i64| clock.shows_ms(at_ms) - at_ms;
        let end_ms = BEGINNING_MS + 60_000;
        let count = |is: &dyn Fn(&WallClock) -> bool| clocks.iter().filter(|it| is(it)).count();
        assert!(count(&|clock| !clock.is_right()) > 150);
        assert!(count(&|clock| ahead_ms(clock, BEGINNING_MS) > 86_400_000) > 5);
        assert!(count(&|clock| ahead_ms(clock, BEGINNING_MS) < -86_400_000) > 5);
        let is_corrected = |clock: &WallClock| {
            ahead_ms(clock, BEGINNING_MS).abs() > 60_000 && ahead_ms(clock, end_ms).abs() < 1_000
        };
        assert!(count(&is_corrected) > 5);
    }
}
