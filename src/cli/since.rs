//! A time in the past, as people write it.

use chrono::{DateTime, NaiveDate, NaiveDateTime};

/// Reads `30m`, `2h`, `1d` (ago), `2026-11-22`, `2026-11-22 10:30` (UTC), or RFC 3339 with a zone.
///
/// # Errors
/// What can be written.
pub(super) fn since_ms(text: &str, now_ms: i64) -> Result<i64, String> {
    let text = text.trim();
    if let Some(ms) = ago_ms(text) {
        return Ok(now_ms.saturating_sub(ms));
    }
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Ok(at.timestamp_millis());
    }
    let times = [
        "%Y-%m-%d %H:%M:%S",
        "%Y-%m-%d %H:%M",
        "%Y-%m-%dT%H:%M:%S",
        "%Y-%m-%dT%H:%M",
    ];
    let time = times
        .iter()
        .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok());
    let day = || {
        NaiveDate::parse_from_str(text, "%Y-%m-%d")
            .ok()?
            .and_hms_opt(0, 0, 0)
    };
    match time.or_else(day) {
        Some(at) => Ok(at.and_utc().timestamp_millis()),
        None => Err(format!(
            "{text:?} is no time: write how long ago (30m, 2h, 1d) or a day or time in UTC (2026-11-22, \"2026-11-22 10:30\")"
        )),
    }
}

fn ago_ms(text: &str) -> Option<i64> {
    let unit = text.chars().last()?;
    let unit_ms = match unit {
        's' => 1_000,
        'm' => 60_000,
        'h' => 3_600_000,
        'd' => 86_400_000,
        _ => return None,
    };
    let count: u32 = text[..text.len() - 1].parse().ok()?;
    Some(i64::from(count).saturating_mul(unit_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_as_people_write_it() {
        let now_ms = 1_700_000_000_000;
        let cases = [
            ("90s", Some(now_ms - 90_000)),
            ("30m", Some(now_ms - 1_800_000)),
            ("2h", Some(now_ms - 7_200_000)),
            ("1d", Some(now_ms - 86_400_000)),
            ("2023-11-14", Some(1_699_920_000_000)),
            ("2023-11-14 22:13", Some(1_699_999_980_000)),
            ("2023-11-14T22:13:20Z", Some(now_ms)),
            ("2023-11-14T23:13:20+01:00", Some(now_ms)),
            ("yesterday", None),
            ("h", None),
            ("-1h", None),
            ("ä", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(since_ms(text, now_ms).ok(), expected, "{text:?}");
        }
    }
}
