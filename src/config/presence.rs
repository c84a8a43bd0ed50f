//! Checks of `[agents.NAME.enabled]`: chats and people of existing channels, and parts of a week.

use chrono::Weekday;
use schemars::JsonSchema;
use serde::Deserialize;

use super::resolve::Review;
use vocative_core::presence::Presence;
use vocative_core::wall_clock::{QuietHours, Zone};

/// Where, for whom and when an agent works.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EnabledShape {
    /// Only in these chats, as `CHANNEL/CHAT`; empty = in all.
    pub chats: Vec<String>,
    /// Only for these people, as `CHANNEL/PERSON`; empty = for all.
    pub people: Vec<String>,
    /// Only in this part of the day, like `08:00-18:00`; empty = all of it.
    pub hours: String,
    /// Only on these days; empty = on all.
    pub days: Vec<DayShape>,
    /// The zone of hours and days: a place like `Europe/Berlin`, `UTC`, or a distance like `+01:00`.
    pub time_zone: String,
}

/// A day of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum DayShape {
    /// Monday.
    Mon,
    /// Tuesday.
    Tue,
    /// Wednesday.
    Wed,
    /// Thursday.
    Thu,
    /// Friday.
    Fri,
    /// Saturday.
    Sat,
    /// Sunday.
    Sun,
}

impl From<DayShape> for Weekday {
    fn from(day: DayShape) -> Self {
        match day {
            DayShape::Mon => Self::Mon,
            DayShape::Tue => Self::Tue,
            DayShape::Wed => Self::Wed,
            DayShape::Thu => Self::Thu,
            DayShape::Fri => Self::Fri,
            DayShape::Sat => Self::Sat,
            DayShape::Sun => Self::Sun,
        }
    }
}

/// Checks where, for whom and when an agent works. The result is to be used only if no problem was found.
pub(super) fn resolve_presence(
    agent: &str,
    shape: &EnabledShape,
    channels: &[&str],
    review: &mut Review<'_>,
) -> Presence {
    let key = |setting: &str| format!("agents.{agent}.enabled.{setting}");
    for (setting, what, names) in [
        ("chats", "chat as CHANNEL/CHAT", &shape.chats),
        ("people", "person as CHANNEL/PERSON", &shape.people),
    ] {
        for name in names {
            match name.split_once('/') {
                Some((channel, id)) if !id.is_empty() && channels.contains(&channel) => {}
                Some((channel, id)) if !channel.is_empty() && !id.is_empty() => {
                    review.dangling(&key(setting), "channels", channel, channels);
                }
                _ => review.problem(&key(setting), format!("\"{name}\" is no {what}")),
            }
        }
    }
    let zone = Zone::read(&shape.time_zone);
    let hours = QuietHours::read(&shape.hours, &shape.time_zone);
    if zone.is_none() {
        let what = format!("\"{}\" is no time zone", shape.time_zone);
        review.problem(&key("time_zone"), what);
    } else if !shape.hours.is_empty() && hours.is_none() {
        let what = format!(
            "\"{}\" is no part of a day; write \"08:00-18:00\": from and until",
            shape.hours
        );
        review.problem(&key("hours"), what);
    }
    Presence {
        chats: shape.chats.clone(),
        people: shape.people.clone(),
        hours,
        days: shape.days.iter().copied().map(Weekday::from).collect(),
        zone: zone.unwrap_or_default(),
    }
}
