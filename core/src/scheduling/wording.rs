//! How people write a schedule behind `/remind` and `/schedule`: when, and then what. Other wordings are left to a
//! model.

use chrono::{NaiveDate, NaiveDateTime, NaiveTime};

use super::timing::{Timing, TimingProblem};
use crate::wall_clock::Zone;

/// What a person asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleOrder {
    /// Something starts at a time.
    Add {
        /// When.
        timing: Timing,
        /// What.
        task: String,
    },
    /// The schedules are listed.
    List,
    /// A schedule stops until it is resumed.
    Pause(i64),
    /// A paused schedule goes on.
    Resume(i64),
    /// A schedule starts now, besides its times.
    Run(i64),
    /// A schedule ends.
    Cancel(i64),
}

/// Why an order can't be carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WordingProblem {
    /// It does not begin with a time.
    #[error("I don't understand when")]
    When,
    /// The time is not accepted.
    #[error(transparent)]
    Timing(#[from] TimingProblem),
}

/// Reads what stands behind the command, as of now in a zone, unless it names another: `in 20m tea`, `17:30 call Bob`,
/// `tomorrow 9:00 …`, `2026-12-01 9:00 …`, `daily 9:00 …`, `weekdays 9:00 …`, `monday 9:00 …`, `cron 0 9 * * 1-5 …`;
/// `list`, `pause 3`, `resume 3`, `run 3`, `cancel 3`.
///
/// # Errors
/// [`WordingProblem`] says what is wrong.
pub fn read_order(text: &str, now_ms: i64, zone: Zone) -> Result<ScheduleOrder, WordingProblem> {
    let words = WordCursor(text.trim());
    let (first, rest) = words.next();
    let first = first.to_lowercase();
    if first.is_empty() || (first == "list" && rest.0.is_empty()) {
        return Ok(ScheduleOrder::List);
    }
    let number = |make: fn(i64) -> ScheduleOrder| {
        let id: i64 = rest.0.trim_start_matches('#').parse().ok()?;
        Some(make(id))
    };
    let about_one = match first.as_str() {
        "pause" => number(ScheduleOrder::Pause),
        "resume" => number(ScheduleOrder::Resume),
        "run" => number(ScheduleOrder::Run),
        "cancel" => number(ScheduleOrder::Cancel),
        _ => None,
    };
    match about_one {
        Some(order) => Ok(order),
        None => add(&first, rest, now_ms, zone),
    }
}

/// Reads a time alone, as of now in a zone, unless it names another: `in 20m`, `tomorrow 9:00`, `weekdays 9:00
/// Europe/Berlin`.
///
/// # Errors
/// [`WordingProblem`] says what is wrong.
pub fn read_timing(text: &str, now_ms: i64, zone: Zone) -> Result<Timing, WordingProblem> {
    let (first, rest) = WordCursor(text.trim()).next();
    match add(&first.to_lowercase(), rest, now_ms, zone)? {
        ScheduleOrder::Add { timing, task } if task.trim().is_empty() => Ok(timing),
        _ => Err(WordingProblem::When),
    }
}

/// The words of a text, one by one.
#[derive(Clone, Copy)]
struct WordCursor<'a>(&'a str);

impl<'a> WordCursor<'a> {
    fn next(self) -> (&'a str, Self) {
        let (word, rest) = self
            .0
            .split_once(char::is_whitespace)
            .unwrap_or((self.0, ""));
        (word, Self(rest.trim_start()))
    }
}

fn add(
    first: &str,
    rest: WordCursor<'_>,
    now_ms: i64,
    zone: Zone,
) -> Result<ScheduleOrder, WordingProblem> {
    let added = |timing, rest: WordCursor<'_>| ScheduleOrder::Add {
        timing,
        task: rest.0.to_owned(),
    };
    if first == "in" {
        let (length, rest) = rest.next();
        let length_ms = length_ms(length).ok_or(WordingProblem::When)?;
        let at_ms = now_ms.saturating_add(length_ms);
        return Ok(added(Timing::once(at_ms, zone, now_ms)?, rest));
    }
    if first == "cron" || first.starts_with('@') {
        let (expression, rest) = expression(first, rest);
        let (zone, rest) = named_zone(rest, zone);
        return Ok(added(Timing::cron(&expression, &zone.to_string())?, rest));
    }
    let days = match first {
        "daily" => Some("*"),
        "weekdays" => Some("1-5"),
        "monday" | "mondays" => Some("1"),
        "tuesday" | "tuesdays" => Some("2"),
        "wednesday" | "wednesdays" => Some("3"),
        "thursday" | "thursdays" => Some("4"),
        "friday" | "fridays" => Some("5"),
        "saturday" | "saturdays" => Some("6"),
        "sunday" | "sundays" => Some("0"),
        _ => None,
    };
    if let Some(days) = days {
        let (time, rest) = time(rest).ok_or(WordingProblem::When)?;
        let (zone, rest) = named_zone(rest, zone);
        let expression = format!("{} * * {days}", time.format("%-M %-H"));
        return Ok(added(Timing::cron(&expression, &zone.to_string())?, rest));
    }
    once(first, rest, now_ms, zone)
}

/// `17:30`, `at 17:30`, `today 17:30`, `tomorrow 9:00`, `2026-12-01 9:00`.
fn once(
    first: &str,
    rest: WordCursor<'_>,
    now_ms: i64,
    zone: Zone,
) -> Result<ScheduleOrder, WordingProblem> {
    let dated = NaiveDate::parse_from_str(first, "%Y-%m-%d").ok();
    let (time, rest) = match first {
        "at" | "today" | "tomorrow" => time(rest),
        _ if dated.is_some() => time(rest),
        _ => clock_time(first).map(|time| (time, rest)),
    }
    .ok_or(WordingProblem::When)?;
    let (zone, rest) = named_zone(rest, zone);
    let today = zone.clock(now_ms).ok_or(WordingProblem::When)?.date();
    let at = |day: NaiveDate| Some(zone.when(NaiveDateTime::new(day, time))?.0);
    let at_ms = match (dated, first) {
        (Some(day), _) => at(day),
        (None, "tomorrow") => today.succ_opt().and_then(at),
        (None, "today") => at(today),
        // The next time that the clocks show it.
        (None, _) => at(today)
            .filter(|at_ms| *at_ms > now_ms)
            .or_else(|| today.succ_opt().and_then(at)),
    };
    let at_ms = at_ms.ok_or(WordingProblem::When)?;
    Ok(ScheduleOrder::Add {
        timing: Timing::once(at_ms, zone, now_ms)?,
        task: rest.0.to_owned(),
    })
}

/// The expression behind `cron`, or a nickname, and what is behind it.
fn expression<'a>(first: &str, mut rest: WordCursor<'a>) -> (String, WordCursor<'a>) {
    if first.starts_with('@') {
        return (first.to_owned(), rest);
    }
    let mut fields = Vec::new();
    for _ in 0..5 {
        let (field, behind) = rest.next();
        rest = behind;
        fields.push(field.trim_matches('"'));
    }
    (fields.join(" "), rest)
}

/// The zone that stands next, if one does: a place with its part of the world, or UTC.
fn named_zone(rest: WordCursor<'_>, zone: Zone) -> (Zone, WordCursor<'_>) {
    let (word, behind) = rest.next();
    let is_named = word.contains('/') || word == "UTC";
    match Zone::read(word).filter(|_| is_named) {
        Some(named) => (named, behind),
        None => (zone, rest),
    }
}

fn time(rest: WordCursor<'_>) -> Option<(NaiveTime, WordCursor<'_>)> {
    let (mut word, mut behind) = rest.next();
    if word == "at" {
        (word, behind) = behind.next();
    }
    clock_time(word).map(|time| (time, behind))
}

/// `9:00`, `17:30`.
fn clock_time(text: &str) -> Option<NaiveTime> {
    let (hour, minute) = text.split_once(':')?;
    let number = |text: &str, least: usize| {
        let is_number =
            (least..=2).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        text.parse::<u32>().ok().filter(|_| is_number)
    };
    NaiveTime::from_hms_opt(number(hour, 1)?, number(minute, 2)?, 0)
}

/// `20m`, `2h`, `1h30m`, `3d`, in milliseconds.
fn length_ms(text: &str) -> Option<i64> {
    let (mut total_ms, mut digits) = (0i64, String::new());
    for c in text.chars() {
        if c.is_ascii_digit() && digits.len() < 6 {
            digits.push(c);
            continue;
        }
        let unit_ms: i64 = match c {
            'm' => 60_000,
            'h' => 3_600_000,
            'd' => 86_400_000,
            _ => return None,
        };
        let count: i64 = digits.parse().ok()?;
        digits.clear();
        total_ms = total_ms.saturating_add(count.saturating_mul(unit_ms));
    }
    Some(total_ms).filter(|_| digits.is_empty() && !text.is_empty())
}
