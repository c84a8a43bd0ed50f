//! What becomes of a schedule whose time has come: it fires, or the times that have passed are counted as missed.

use super::timing::Timing;

/// How late a firing may be and count as on time, in milliseconds.
const ON_TIME_MS: i64 = 5 * 60_000;
/// How far ahead of now the time may lie at which the next firing was computed, in milliseconds: clocks are corrected
/// by little.
const AHEAD_MAX_MS: i64 = 60_000;
/// The most missed times that are counted one by one.
const COUNTED_MAX: u32 = 1_000;

/// What becomes of times that were missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// The last of them is made up for, if it is not too long ago.
    Once,
    /// Missed times are skipped.
    Skip,
}

impl Missed {
    /// The stored and shown name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Skip => "skip",
        }
    }

    /// The rule of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Once, Self::Skip]
            .into_iter()
            .find(|it| it.name() == name)
    }
}

/// What is known when a schedule is due.
#[derive(Clone, Copy, Debug)]
pub struct DueFacts<'a> {
    /// When it starts.
    pub timing: &'a Timing,
    /// What becomes of missed times.
    pub missed: Missed,
    /// The time that is due, in milliseconds since the Unix epoch; not after `now_ms`.
    pub at_ms: i64,
    /// The time.
    pub now_ms: i64,
    /// Whether what it started last still works or waits.
    pub is_last_open: bool,
    /// Whether its owner and its place are served now, and its agent is there.
    pub is_allowed: bool,
}

/// What became of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FiringOutcome {
    /// It started.
    Fired,
    /// It was too late.
    Missed,
    /// What was started before was not over.
    Overlapped,
    /// Its owner or its place is not served any more; the schedule is paused.
    Refused,
}

impl FiringOutcome {
    const ALL: [Self; 4] = [Self::Fired, Self::Missed, Self::Overlapped, Self::Refused];

    /// The stored and shown name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fired => "fired",
            Self::Missed => "missed",
            Self::Overlapped => "overlapped",
            Self::Refused => "refused",
        }
    }

    /// The outcome of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}

/// What becomes of a due schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Firing {
    /// The last time that has come, which is the firing's own.
    pub at_ms: i64,
    /// What becomes of it.
    pub outcome: FiringOutcome,
    /// How many times before it were missed; counted to a bound.
    pub missed_before: u32,
    /// When it is due next.
    pub next: NextFiring,
}

/// When a schedule is due next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextFiring {
    /// Then, in milliseconds since the Unix epoch.
    At(i64),
    /// Never.
    Over,
}

impl NextFiring {
    /// The time, if there is one.
    #[must_use]
    pub fn at_ms(self) -> Option<i64> {
        match self {
            Self::At(at_ms) => Some(at_ms),
            Self::Over => None,
        }
    }

    fn of(at_ms: Option<i64>) -> Self {
        at_ms.map_or(Self::Over, Self::At)
    }
}

/// Decides about a schedule that is due. However many times have come, at most one fires.
#[must_use]
pub fn decide(facts: &DueFacts<'_>) -> Firing {
    let (mut at_ms, mut missed_before) = (facts.at_ms, 0);
    while let Some(later_ms) = facts
        .timing
        .next_after(at_ms)
        .filter(|it| *it <= facts.now_ms)
        && missed_before < COUNTED_MAX
    {
        at_ms = later_ms;
        missed_before += 1;
    }
    let late_ms = facts.now_ms.saturating_sub(at_ms);
    let allowed_late_ms = match facts.missed {
        Missed::Once => facts.timing.catch_up_ms(),
        Missed::Skip => ON_TIME_MS,
    };
    let outcome = match () {
        () if late_ms > allowed_late_ms => FiringOutcome::Missed,
        () if !facts.is_allowed => FiringOutcome::Refused,
        () if facts.is_last_open => FiringOutcome::Overlapped,
        () => FiringOutcome::Fired,
    };
    Firing {
        at_ms,
        outcome,
        missed_before,
        next: NextFiring::of(facts.timing.next_after(facts.now_ms.max(at_ms))),
    }
}

/// Whether the time at which a schedule is due can't be trusted: it was computed under another clock (`None`: in a
/// database that a backup has replaced).
#[must_use]
pub fn is_doubtful(set_at_ms: Option<i64>, now_ms: i64) -> bool {
    set_at_ms.is_none_or(|set_at_ms| set_at_ms > now_ms.saturating_add(AHEAD_MAX_MS))
}

/// When a schedule is due whose time can't be trusted: it is unknown whether past times fired, so none is made up for.
#[must_use]
pub fn renewed(timing: &Timing, now_ms: i64) -> NextFiring {
    NextFiring::of(timing.next_after(now_ms))
}
