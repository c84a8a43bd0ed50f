//! The platform's own time, which the machine's clock may contradict.
//!
//! Every answer of a platform says when it was made (the `Date` header), and every message when it was
//! posted. Between two of them time goes on by the machine's monotonic clock, which no correction of the
//! wall clock touches. See `docs/adr/0034-time.md`.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::http::HeaderMap;
use ::http::header::DATE;
use chrono::DateTime;
use tokio::time::Instant;

use crate::crash::{self, Sabotage};

/// The machine's clock is believed while it is this close to the platform's, in milliseconds: a `Date`
/// header counts whole seconds.
const AGREES_MS: i64 = 2_000;
/// The platform's time is not relied on once the last answer is older than this: the monotonic clock drifts, and stands
/// still while the machine is suspended.
const RELIED_ON: Duration = Duration::from_secs(86_400);
/// The most that the real time may be after a `Date` header, which leaves out the milliseconds.
const DATE_RESOLUTION_MS: i64 = 999;

/// Tells the time of the machine, in milliseconds since the Unix epoch.
pub type Wall = Arc<dyn Fn() -> i64 + Send + Sync>;

/// The time of one platform, as its answers and messages give it.
pub struct PlatformClock {
    wall: Wall,
    told: Mutex<Option<ToldTime>>,
}

/// A time that the platform gave, and when it arrived.
#[derive(Clone, Copy, Debug)]
struct ToldTime {
    time_ms: i64,
    at: Instant,
}

impl ToldTime {
    fn now_ms(self, now: Instant) -> i64 {
        self.time_ms + millis(now.saturating_duration_since(self.at))
    }
}

impl fmt::Debug for PlatformClock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("PlatformClock")
            .field("told", &self.told)
            .finish_non_exhaustive()
    }
}

impl Default for PlatformClock {
    fn default() -> Self {
        Self::new(Arc::new(|| chrono::Utc::now().timestamp_millis()))
    }
}

impl PlatformClock {
    /// A clock that has no time of the platform yet.
    #[must_use]
    pub fn new(wall: Wall) -> Self {
        Self {
            wall,
            told: Mutex::new(None),
        }
    }

    /// The platform's time, in milliseconds since the Unix epoch; the machine's where it agrees, or where the platform
    /// gave no time for a day.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        let wall_ms = (self.wall)();
        match self.told_now_ms() {
            Some(told_ms) if (wall_ms - told_ms).abs() > AGREES_MS => told_ms,
            _ => wall_ms,
        }
    }

    /// The time that follows from the platform's answers alone; `None` if it gave none for a day.
    #[must_use]
    pub fn told_now_ms(&self) -> Option<i64> {
        if crash::is_sabotaged(Sabotage::OwnClock) || crash::is_sabotaged(Sabotage::ReclaimOwn) {
            return None;
        }
        let now = Instant::now();
        let told = (*self.told()).filter(|told| now.duration_since(told.at) < RELIED_ON);
        told.map(|told| told.now_ms(now))
    }

    /// Notes the `Date` of an answer to a request that was sent at `asked`.
    pub fn note_date(&self, headers: &HeaderMap, asked: Instant) {
        let date = headers.get(DATE).and_then(|value| value.to_str().ok());
        let Some(date) = date.and_then(|date| DateTime::parse_from_rfc2822(date).ok()) else {
            return;
        };
        let earliest_ms = date.timestamp_millis();
        let latest_ms = earliest_ms + DATE_RESOLUTION_MS + millis(asked.elapsed());
        self.note_between(earliest_ms, latest_ms);
    }

    /// Notes that the platform's time lies between two times, in milliseconds since the Unix epoch. An earlier estimate
    /// is corrected no further than needed.
    pub fn note_between(&self, earliest_ms: i64, latest_ms: i64) {
        let at = Instant::now();
        let mut told = self.told();
        let known_ms = told.map_or_else(|| (self.wall)(), |told| told.now_ms(at));
        let time_ms = known_ms.clamp(earliest_ms, latest_ms.max(earliest_ms));
        *told = Some(ToldTime { time_ms, at });
    }

    /// Notes a message of that time: the platform's time is not earlier. How much later it is remains unknown.
    pub fn note_message(&self, sent_at_ms: i64) {
        let at = Instant::now();
        let mut told = self.told();
        let known_ms = told.map_or_else(|| (self.wall)(), |told| told.now_ms(at));
        if sent_at_ms > known_ms + AGREES_MS {
            *told = Some(ToldTime {
                time_ms: sent_at_ms,
                at,
            });
        }
    }

    fn told(&self) -> std::sync::MutexGuard<'_, Option<ToldTime>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use ::http::HeaderValue;

    use super::*;

    /// 2026-11-21T08:00:00Z.
    const TRUE_MS: i64 = 1_795_248_000_000;
    const DATE_TEXT: &str = "Sat, 21 Nov 2026 08:00:00 GMT";
    const YEAR_MS: i64 = 365 * 86_400_000;

    fn clock_at(wall_ms: i64) -> (PlatformClock, Arc<AtomicI64>) {
        let wall = Arc::new(AtomicI64::new(wall_ms));
        let told = Arc::clone(&wall);
        let clock = PlatformClock::new(Arc::new(move || told.load(Ordering::SeqCst)));
        (clock, wall)
    }

    fn date(text: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(DATE, HeaderValue::from_static(text))])
    }

    #[tokio::test(start_paused = true)]
    async fn the_platforms_date_counts_where_the_machine_disagrees() {
        for off_ms in [-YEAR_MS, -3_600_000, -30_000, 30_000, 3_600_000, YEAR_MS] {
            let (clock, _) = clock_at(TRUE_MS + off_ms);
            assert_eq!(clock.now_ms(), TRUE_MS + off_ms);
            clock.note_date(&date(DATE_TEXT), Instant::now());
            assert!((clock.now_ms() - TRUE_MS).abs() < 1_000, "{off_ms}");
            tokio::time::advance(Duration::from_secs(60)).await;
            let later_ms = clock.now_ms() - 60_000;
            assert!((later_ms - TRUE_MS).abs() < 1_000, "{off_ms}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_step_of_the_machines_clock_is_no_step_of_the_platforms() {
        let (clock, wall) = clock_at(TRUE_MS + 300);
        clock.note_date(&date(DATE_TEXT), Instant::now());
        assert_eq!(clock.now_ms(), TRUE_MS + 300);
        wall.fetch_add(YEAR_MS, Ordering::SeqCst);
        assert_eq!(clock.now_ms(), TRUE_MS + 300);
        // Without a time of the platform for a day, only the machine's clock is left.
        tokio::time::advance(RELIED_ON).await;
        assert_eq!(clock.now_ms(), TRUE_MS + 300 + YEAR_MS);
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_moves_it_forward_and_never_back() {
        let (clock, _) = clock_at(TRUE_MS - YEAR_MS);
        clock.note_message(TRUE_MS);
        assert_eq!(clock.now_ms(), TRUE_MS);
        clock.note_message(TRUE_MS - 600_000);
        assert_eq!(clock.now_ms(), TRUE_MS);
        let (ahead, _) = clock_at(TRUE_MS + YEAR_MS);
        ahead.note_message(TRUE_MS);
        assert_eq!(ahead.told_now_ms(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_answer_corrects_no_more_than_it_shows() {
        let (clock, _) = clock_at(TRUE_MS + YEAR_MS);
        clock.note_between(TRUE_MS, TRUE_MS + 100);
        // A poll that waited for half a minute: its date narrows the time down only roughly.
        clock.note_between(TRUE_MS - 20_000, TRUE_MS + 30_000);
        assert_eq!(clock.told_now_ms(), Some(TRUE_MS + 100));
        clock.note_date(&date("yesterday"), Instant::now());
        assert_eq!(clock.told_now_ms(), Some(TRUE_MS + 100));
    }
}
