//! When a schedule is due.

use super::cron::{Cron, CronProblem};
use crate::wall_clock::Zone;

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;

/// The shortest time between two firings of one schedule, in milliseconds. *Source:* issue 15, point 6.
pub const SHORTEST_MS: i64 = 15 * MINUTE_MS;
/// The longest that a firing is put off so that not all are due at once, in milliseconds.
pub const JITTER_MAX_MS: i64 = MINUTE_MS;
/// How far ahead a single time may be, in milliseconds.
const AHEAD_MAX_MS: i64 = 366 * DAY_MS;

/// When something is to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Timing {
    /// Again and again, by an expression and the clocks of a zone.
    Cron {
        /// The expression.
        cron: Cron,
        /// Whose clocks.
        zone: Zone,
    },
    /// Once.
    Once {
        /// In milliseconds since the Unix epoch.
        at_ms: i64,
        /// In which clocks it is told.
        zone: Zone,
    },
}

/// Why a timing is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimingProblem {
    /// The expression can't be read.
    #[error(transparent)]
    Cron(#[from] CronProblem),
    /// There is no such zone.
    #[error("{0:?} is no time zone: a place like Europe/Berlin, UTC, or +01:00")]
    Zone(String),
    /// It would start too often.
    #[error("it may start every 15 minutes at most")]
    TooOften,
    /// Its time has passed.
    #[error("that time is over")]
    Over,
    /// Its time is too far away.
    #[error("that is more than a year away")]
    TooFar,
}

/// How a single time is stored.
const ONCE: &str = "once ";

impl Timing {
    /// An expression of cron in a zone, checked.
    ///
    /// # Errors
    /// [`TimingProblem`] says what is wrong.
    pub fn cron(expression: &str, zone: &str) -> Result<Self, TimingProblem> {
        let zone = Zone::read(zone).ok_or_else(|| TimingProblem::Zone(zone.to_owned()))?;
        let cron = Cron::read(expression)?;
        match i64::from(cron.shortest_minutes()) * MINUTE_MS >= SHORTEST_MS {
            true => Ok(Self::Cron { cron, zone }),
            false => Err(TimingProblem::TooOften),
        }
    }

    /// A single time, checked.
    ///
    /// # Errors
    /// [`TimingProblem`] if it is over or too far away.
    pub fn once(at_ms: i64, zone: Zone, now_ms: i64) -> Result<Self, TimingProblem> {
        match at_ms.saturating_sub(now_ms) {
            ..=0 => Err(TimingProblem::Over),
            AHEAD_MAX_MS.. => Err(TimingProblem::TooFar),
            _ => Ok(Self::Once { at_ms, zone }),
        }
    }

    /// What is stored of it, besides its zone.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Cron { cron, .. } => cron.to_string(),
            Self::Once { at_ms, .. } => format!("{ONCE}{at_ms}"),
        }
    }

    /// Reads what is stored.
    #[must_use]
    pub fn from_text(text: &str, zone: &str) -> Option<Self> {
        let zone = Zone::read(zone)?;
        Some(match text.strip_prefix(ONCE) {
            Some(at_ms) => Self::Once {
                at_ms: at_ms.parse().ok()?,
                zone,
            },
            None => Self::Cron {
                cron: Cron::read(text).ok()?,
                zone,
            },
        })
    }

    /// Whose clocks count.
    #[must_use]
    pub fn zone(&self) -> Zone {
        match self {
            Self::Cron { zone, .. } | Self::Once { zone, .. } => *zone,
        }
    }

    /// Its first time after a time, both in milliseconds since the Unix epoch.
    #[must_use]
    pub fn next_after(&self, after_ms: i64) -> Option<i64> {
        match self {
            Self::Cron { cron, zone } => cron.next_after(*zone, after_ms),
            Self::Once { at_ms, .. } => Some(*at_ms).filter(|at_ms| *at_ms > after_ms),
        }
    }

    /// How late a firing is still made, in milliseconds: an hour where it comes more often than daily, else half a
    /// day; a single time a week, since nothing comes after it.
    #[must_use]
    pub fn catch_up_ms(&self) -> i64 {
        match self {
            Self::Cron { cron, .. } if i64::from(cron.shortest_minutes()) * MINUTE_MS < DAY_MS => {
                HOUR_MS
            }
            Self::Cron { .. } => 12 * HOUR_MS,
            Self::Once { .. } => 7 * DAY_MS,
        }
    }

    /// How long after its time a schedule is due, in milliseconds: the same each time, so that it never comes more
    /// often than its expression says.
    #[must_use]
    pub fn offset_ms(id: i64, jitter_ms: i64) -> i64 {
        // SplitMix64: neighbouring ids are spread evenly.
        let mut mixed = id.cast_unsigned().wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let span = jitter_ms.clamp(0, JITTER_MAX_MS) + 1;
        (mixed % span.cast_unsigned()).cast_signed()
    }
}
