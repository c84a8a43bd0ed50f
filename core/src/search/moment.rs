//! Days and times as filters of a search give them.

use chrono::{DateTime, NaiveDate, NaiveDateTime};

/// What can be given, for an error.
pub const MOMENTS: &str = "a day or time in UTC (2026-11-22, \"2026-11-22 10:30\")";

/// A day (its beginning) or a time in UTC, or with a zone as in RFC 3339, in milliseconds since the Unix epoch;
/// `None` = it is neither.
#[must_use]
pub fn moment_ms(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Some(at.timestamp_millis());
    }
    let formats = [
        "%Y-%m-%d %H:%M:%S",
        "%Y-%m-%d %H:%M",
        "%Y-%m-%dT%H:%M:%S",
        "%Y-%m-%dT%H:%M",
    ];
    let parse = |format: &&str| NaiveDateTime::parse_from_str(text, format).ok();
    let day = || {
        NaiveDate::parse_from_str(text, "%Y-%m-%d")
            .ok()?
            .and_hms_opt(0, 0, 0)
    };
    let at = formats.iter().find_map(parse).or_else(day)?;
    Some(at.and_utc().timestamp_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_times_are_read() {
        let cases = [
            ("1970-01-02", Some(86_400_000)),
            (" 1970-01-01 00:01 ", Some(60_000)),
            ("1970-01-01T00:00:01", Some(1_000)),
            ("1970-01-01T01:00:00+01:00", Some(0)),
            ("yesterday", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(moment_ms(text), expected, "{text:?}");
        }
    }
}
