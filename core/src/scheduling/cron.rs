//! An expression of cron and the times that it names, in a zone.
//!
//! *Source:* crontab(5) and the treatment of daylight saving of Vixie cron as Debian ships it (cron(8)): jobs of a
//! fixed time that is left out run at the moment of the change, and those of a time that comes twice run once; jobs
//! with `*` as hour or minute go by the clock as it is.

use std::fmt;

use chrono::{Datelike as _, NaiveDate};

use crate::wall_clock::Zone;

/// How far ahead times are looked for, in days: the 29th of February comes eight years apart at most.
const DAYS_AHEAD_MAX: usize = 366 * 8 + 2;
/// The longest expression, in bytes.
const EXPRESSION_MAX: usize = 200;

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Why an expression can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CronProblem {
    /// It has not five fields.
    #[error("five fields are wanted: minute, hour, day of the month, month, day of the week")]
    Fields,
    /// A field can't be read.
    #[error("{field:?} is no {what}")]
    Field {
        /// The field.
        field: String,
        /// What it should be.
        what: CronField,
    },
    /// It names no time, like the 30th of February.
    #[error("it names no time at all")]
    Never,
}

/// What a field of an expression says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CronField {
    /// The minute.
    Minute,
    /// The hour.
    Hour,
    /// The day of the month.
    Day,
    /// The month.
    Month,
    /// The day of the week.
    Weekday,
}

impl fmt::Display for CronField {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Minute => "minute (0-59)",
            Self::Hour => "hour (0-23)",
            Self::Day => "day of the month (1-31)",
            Self::Month => "month (1-12, jan-dec)",
            Self::Weekday => "day of the week (0-7, sun-sat)",
        })
    }
}

/// An expression of five fields, or a nickname like `@daily`.
#[derive(Clone, PartialEq, Eq)]
pub struct Cron {
    text: String,
    /// Bit n: minute n.
    minutes: u64,
    hours: u32,
    /// Bit n: day n, from 1.
    days: u32,
    months: u16,
    /// Bit 0: Sunday.
    weekdays: u8,
    /// Whether the day of the month, or that of the week, begins with a star: then both must fit.
    has_open_day: bool,
    /// Whether the minute or the hour begins with a star: then it goes by the clock as it is.
    goes_by_clock: bool,
}

impl fmt::Debug for Cron {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Cron({:?})", self.text)
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl Cron {
    /// Reads an expression: lists, ranges, steps, names of months and weekdays, `@daily` and its like. Sunday is
    /// 0 or 7.
    ///
    /// # Errors
    /// [`CronProblem`] says which field is wrong.
    pub fn read(text: &str) -> Result<Self, CronProblem> {
        if text.len() > EXPRESSION_MAX {
            return Err(CronProblem::Fields);
        }
        let written = text.trim().to_lowercase();
        let expression = match written.as_str() {
            "@hourly" => "0 * * * *",
            "@daily" | "@midnight" => "0 0 * * *",
            "@weekly" => "0 0 * * 0",
            "@monthly" => "0 0 1 * *",
            "@yearly" | "@annually" => "0 0 1 1 *",
            other => other,
        };
        let fields: Vec<&str> = expression.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            return Err(CronProblem::Fields);
        };
        let field = |text, what, range, names| {
            CronFieldText {
                text,
                what,
                range,
                names,
            }
            .bits()
        };
        let mut weekdays = field(weekday, CronField::Weekday, (0, 7), &WEEKDAYS)?;
        if weekdays & (1 << 7) != 0 {
            weekdays = (weekdays | 1) & 0x7f;
        }
        let narrow = "the range of the field is that of the type";
        let cron = Self {
            minutes: field(minute, CronField::Minute, (0, 59), &[])?,
            hours: u32::try_from(field(hour, CronField::Hour, (0, 23), &[])?).expect(narrow),
            days: u32::try_from(field(day, CronField::Day, (1, 31), &[])?).expect(narrow),
            months: u16::try_from(field(month, CronField::Month, (1, 12), &MONTHS)?).expect(narrow),
            weekdays: u8::try_from(weekdays).expect(narrow),
            has_open_day: day.starts_with('*') || weekday.starts_with('*'),
            goes_by_clock: minute.starts_with('*') || hour.starts_with('*'),
            text: fields.join(" "),
        };
        match cron.next_after(Zone::Fixed(0), 0) {
            Some(_) => Ok(cron),
            None => Err(CronProblem::Never),
        }
    }

    /// The first time after a time, both in milliseconds since the Unix epoch; `None` beyond the calendar.
    #[must_use]
    pub fn next_after(&self, zone: Zone, after_ms: i64) -> Option<i64> {
        // Where clocks are put back over midnight, a day's end may come after the next day's beginning.
        let mut day = zone.clock(after_ms)?.date().pred_opt()?;
        let mut found: Option<i64> = None;
        for _ in 0..DAYS_AHEAD_MAX {
            let here = self
                .times_of(day, zone)
                .into_iter()
                .find(|at| *at > after_ms);
            match (found, here) {
                (Some(before), here) => return Some(here.map_or(before, |at| at.min(before))),
                (None, here) => found = here,
            }
            day = day.succ_opt()?;
        }
        found
    }

    /// The shortest time between two firings on a day without a change of clocks, in minutes; a day for one a day
    /// or fewer.
    #[must_use]
    pub fn shortest_minutes(&self) -> u32 {
        const DAY: u32 = 24 * 60;
        let minutes: Vec<u32> = self.minutes_of_day().collect();
        let Some(first) = minutes.first() else {
            return DAY;
        };
        let over_midnight = minutes.last().map(|last| first + DAY - last);
        let within = minutes.windows(2).map(|pair| pair[1] - pair[0]);
        within.chain(over_midnight).min().unwrap_or(DAY)
    }

    fn minutes_of_day(&self) -> impl Iterator<Item = u32> + '_ {
        let hours = (0..24u32).filter(|hour| self.hours & (1 << hour) != 0);
        hours.flat_map(|hour| {
            let minutes = (0..60u32).filter(|minute| self.minutes & (1 << minute) != 0);
            minutes.map(move |minute| hour * 60 + minute)
        })
    }

    fn has_day(&self, day: NaiveDate) -> bool {
        let in_month = self.days & (1 << day.day()) != 0;
        let in_week = self.weekdays & (1 << day.weekday().num_days_from_sunday()) != 0;
        let is_day = match self.has_open_day {
            true => in_month && in_week,
            false => in_month || in_week,
        };
        is_day && self.months & (1 << day.month()) != 0
    }

    /// Its times on a day of the zone's calendar, in order.
    fn times_of(&self, day: NaiveDate, zone: Zone) -> Vec<i64> {
        if !self.has_day(day) {
            return Vec::new();
        }
        let mut times = Vec::new();
        for minute in self.minutes_of_day() {
            let Some(shown) = day.and_hms_opt(minute / 60, minute % 60, 0) else {
                continue;
            };
            let Some((first, last)) = zone.when(shown) else {
                continue;
            };
            if !self.goes_by_clock {
                times.push(first);
            } else if zone.clock(first) == Some(shown) {
                times.extend([first, last]);
            }
        }
        times.sort_unstable();
        times.dedup();
        times
    }
}

/// A field of an expression.
struct CronFieldText<'a> {
    text: &'a str,
    what: CronField,
    range: (u32, u32),
    names: &'a [&'a str],
}

impl CronFieldText<'_> {
    fn bits(&self) -> Result<u64, CronProblem> {
        let wrong = || CronProblem::Field {
            field: self.text.to_owned(),
            what: self.what,
        };
        let mut bits = 0;
        for item in self.text.split(',') {
            bits |= self.item(item).ok_or_else(wrong)?;
        }
        Ok(bits)
    }

    /// One item of a list: `*`, `3`, `mon-fri`, `*/15`, `8-18/2`.
    fn item(&self, item: &str) -> Option<u64> {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(number(step).filter(|step| *step > 0)?)),
            None => (item, None),
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => self.range,
            Some((from, to)) => (self.value(from)?, self.value(to)?),
            // A step after a single value has no meaning.
            None if step.is_some() => return None,
            None => (self.value(range)?, self.value(range)?),
        };
        if from > to {
            return None;
        }
        let step = usize::try_from(step.unwrap_or(1)).ok()?;
        Some((from..=to).step_by(step).fold(0, |bits, at| bits | 1 << at))
    }

    fn value(&self, text: &str) -> Option<u32> {
        let named = self.names.iter().position(|name| *name == text);
        let named = named.and_then(|at| u32::try_from(at).ok());
        // The months begin with 1.
        let named = named.map(|at| at + u32::from(self.names.len() == 12));
        named
            .or_else(|| number(text))
            .filter(|value| (self.range.0..=self.range.1).contains(value))
    }
}

fn number(text: &str) -> Option<u32> {
    let is_number = (1..=2).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}
