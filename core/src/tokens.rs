//! What providers report about the prompts they were sent, and what is learnt from it.
//!
//! A counter that estimates is off by some constant part for each model: its vocabulary, how it wraps messages, what it
//! says to the model about tools. Each model therefore has a ratio, reported tokens over counted ones, by which its
//! counts are multiplied.
//!
//! The ratio in use moves in steps of 1/64 (1.6 %) and stays where it is until the average is more
//! than a step and a half away. A prompt near its budget would otherwise lose and regain its oldest
//! turn with every answer, and with it the beginning that the provider has in its cache.

/// A ratio is written as a count of these parts of one.
const PARTS: u64 = 64;
/// The smallest ratio that is believed: below half, or above double, something else is wrong than the counting.
const MIN_64THS: u64 = 32;
const MAX_64THS: u64 = 128;
/// The ratio in use changes only when the average is further from it than this, in 64ths.
const STAY_64THS: f64 = 1.5;
/// Reports about prompts of fewer counted tokens are ignored: such prompts are mostly what providers wrap
/// around them.
const REPORT_MIN_TOKENS: u64 = 200;
/// The most that one report weighs, in counted tokens, however long its prompt was.
const REPORT_MAX_WEIGHT: f64 = 8_000.0;
/// The weight of the ratio of one that is assumed before the first report, in counted tokens.
const PRIOR_TOKENS: f64 = 2_000.0;
/// The part of their weight that all older reports together keep with each new report.
const MEMORY: f64 = 15.0 / 16.0;
/// A report further off than this factor is no count of the same prompt (a cached part left out, a
/// count of characters).
const ABSURD_FACTOR: u64 = 4;

/// What counted tokens are multiplied with: between a half and two, in steps of 1/64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenRatio(u64);

impl TokenRatio {
    /// The ratio of one: counts are used as they are.
    pub const ONE: Self = Self(PARTS);

    /// The nearest ratio that is allowed.
    #[must_use]
    pub fn from_64ths(parts: u64) -> Self {
        Self(parts.clamp(MIN_64THS, MAX_64THS))
    }

    /// In 64ths.
    #[must_use]
    pub fn as_64ths(self) -> u64 {
        self.0
    }

    /// The ratio as a number.
    #[must_use]
    pub fn as_number(self) -> f64 {
        as_float(self.0) / as_float(PARTS)
    }

    /// Counted tokens as the model counts them, rounded up.
    #[must_use]
    pub fn scale(self, tokens: usize) -> usize {
        let scaled = (tokens as u64).saturating_mul(self.0).div_ceil(PARTS);
        usize::try_from(scaled).unwrap_or(usize::MAX)
    }

    /// The model's tokens as the counter counts them, to the nearest.
    #[must_use]
    pub fn unscale(self, tokens: usize) -> u64 {
        ((tokens as u64).saturating_mul(PARTS) + self.0 / 2) / self.0
    }
}

impl Default for TokenRatio {
    fn default() -> Self {
        Self::ONE
    }
}

/// Like `1.08`.
impl std::fmt::Display for TokenRatio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hundredths = (self.0 * 100 + PARTS / 2) / PARTS;
        write!(f, "{}.{:02}", hundredths / 100, hundredths % 100)
    }
}

/// What a ratio belongs to: a model and a counter, since each counter differs from a model in its own way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RatioKey {
    /// The model, under its configured name and the provider's.
    pub model: String,
    /// The counter's name and version.
    pub counter: String,
}

/// A prompt that was sent, as counted here and by its provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptReport {
    /// Tokens by the counter, without any ratio.
    pub counted: u64,
    /// Tokens by the provider.
    pub reported: u64,
}

/// What a model's reports so far say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LearntRatio {
    /// Reported tokens; older ones weigh less.
    pub reported: f64,
    /// Counted tokens of the same prompts, weighed alike.
    pub counted: f64,
    /// The ratio in use.
    pub ratio: TokenRatio,
    /// Reports learnt from.
    pub reports: u64,
    /// Reports that were too far off to be believed.
    pub ignored: u64,
}

impl Default for LearntRatio {
    fn default() -> Self {
        Self {
            reported: PRIOR_TOKENS,
            counted: PRIOR_TOKENS,
            ratio: TokenRatio::ONE,
            reports: 0,
            ignored: 0,
        }
    }
}

impl LearntRatio {
    /// Learns from one more report. Returns whether anything changed.
    pub fn learn(&mut self, report: PromptReport) -> bool {
        let PromptReport { counted, reported } = report;
        if counted < REPORT_MIN_TOKENS {
            return false;
        }
        let is_absurd = reported.saturating_mul(ABSURD_FACTOR) < counted
            || reported > counted.saturating_mul(ABSURD_FACTOR);
        if is_absurd {
            self.ignored += 1;
            return true;
        }
        let (counted, reported) = (as_float(counted), as_float(reported));
        let weight = (REPORT_MAX_WEIGHT / counted).min(1.0);
        self.reported = self.reported * MEMORY + reported * weight;
        self.counted = self.counted * MEMORY + counted * weight;
        self.reports += 1;
        self.ratio = self.next_ratio();
        true
    }

    /// The average: reported over counted.
    #[must_use]
    pub fn average(&self) -> f64 {
        self.reported / self.counted
    }

    fn next_ratio(&self) -> TokenRatio {
        let exact = self.average() * as_float(PARTS);
        if (exact - as_float(self.ratio.0)).abs() <= STAY_64THS {
            return self.ratio;
        }
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a float to integer cast saturates, and both sums are positive"
        )]
        let nearest = exact.round() as u64;
        TokenRatio::from_64ths(nearest)
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "token counts are far below the 2^53 that a float holds exactly"
)]
fn as_float(tokens: u64) -> f64 {
    tokens as f64
}

/// A learnt ratio as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct RatioStatus {
    /// Whose.
    pub key: RatioKey,
    /// What was learnt.
    pub learnt: LearntRatio,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(counted: u64, reported: u64) -> PromptReport {
        PromptReport { counted, reported }
    }

    #[test]
    fn the_ratio_comes_to_what_is_reported() {
        for (reported, expected) in [
            (2_000, 64),
            (2_400, 77),
            (1_600, 51),
            (7_900, 128),
            (600, 32),
        ] {
            let mut learnt = LearntRatio::default();
            for _ in 0..100 {
                assert!(learnt.learn(report(2_000, reported)));
            }
            let off = learnt.ratio.as_64ths().abs_diff(expected);
            assert!(off <= 1, "{reported}: {}", learnt.ratio.as_64ths());
        }
    }

    #[test]
    fn one_report_moves_it_part_of_the_way_and_a_long_one_no_more() {
        let mut learnt = LearntRatio::default();
        learnt.learn(report(2_000, 2_400));
        assert_eq!(learnt.ratio.to_string(), "1.11");
        let mut long = LearntRatio::default();
        long.learn(report(8_000, 9_600));
        let mut longer = LearntRatio::default();
        longer.learn(report(8_000_000, 9_600_000));
        assert_eq!(long, longer);
    }

    #[test]
    fn tiny_prompts_and_absurd_reports_teach_nothing() {
        let mut learnt = LearntRatio::default();
        assert!(!learnt.learn(report(199, 400)));
        assert_eq!(learnt, LearntRatio::default());
        for absurd in [0, 499, 8_001, u64::MAX] {
            assert!(learnt.learn(report(2_000, absurd)));
        }
        let expected = LearntRatio {
            ignored: 4,
            ..LearntRatio::default()
        };
        assert_eq!(learnt, expected);
    }

    #[test]
    fn it_stays_while_the_average_wavers_by_two_percent() {
        let mut learnt = LearntRatio::default();
        for _ in 0..100 {
            learnt.learn(report(2_000, 2_400));
        }
        let settled = learnt.ratio;
        for n in 0..1_000 {
            // Prompts in turns of another mixture: 2 % above, 2 % below.
            learnt.learn(report(2_000, if n % 2 == 0 { 2_440 } else { 2_360 }));
            assert_eq!(learnt.ratio, settled, "{n}");
        }
    }

    #[test]
    fn scaling_rounds_up_and_never_overflows() {
        assert_eq!(TokenRatio::ONE.scale(7), 7);
        assert_eq!(TokenRatio::from_64ths(65).scale(7), 8);
        assert_eq!(TokenRatio::from_64ths(0).scale(8), 4);
        assert_eq!(TokenRatio::from_64ths(u64::MAX).scale(8), 16);
        assert!(TokenRatio::from_64ths(128).scale(usize::MAX) > 0);
        for parts in MIN_64THS..=MAX_64THS {
            let ratio = TokenRatio::from_64ths(parts);
            for tokens in [0_u64, 1, 100, 3_000] {
                let there = ratio.scale(usize::try_from(tokens).unwrap_or_default());
                assert!(
                    ratio.unscale(there).abs_diff(tokens) <= 2,
                    "{parts} {tokens}"
                );
            }
        }
    }
}
