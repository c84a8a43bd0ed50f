//! Where, for whom and when an agent works. Pure.

use chrono::{Datelike as _, Weekday};

use crate::wall_clock::{QuietHours, Zone};

/// The conditions under which an agent works; those that are not set always hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Presence {
    /// The chats, as `CHANNEL/CHAT` with the platform's id; empty = all.
    pub chats: Vec<String>,
    /// The people, as `CHANNEL/PERSON` with the platform's id; empty = all.
    pub people: Vec<String>,
    /// The part of a day; `None` = all of it.
    pub hours: Option<QuietHours>,
    /// The days on which that part begins; empty = all.
    pub days: Vec<Weekday>,
    /// The zone of the days.
    pub zone: Zone,
}

/// Where, by whom and when an agent is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskedAt<'a> {
    /// The channel.
    pub channel: &'a str,
    /// The platform's id of the chat.
    pub chat: &'a str,
    /// The platform's id of who asks.
    pub person: &'a str,
    /// The platform's time of the question, in milliseconds since the Unix epoch.
    pub at_ms: i64,
}

impl Presence {
    /// Whether the agent works there, for them, then.
    #[must_use]
    pub fn holds(&self, asked: &AskedAt<'_>) -> bool {
        let names = |list: &[String], id: &str| {
            let is_it = |name: &String| name.split_once('/') == Some((asked.channel, id));
            list.is_empty() || list.iter().any(is_it)
        };
        names(&self.chats, asked.chat)
            && names(&self.people, asked.person)
            && self.is_time(asked.at_ms).unwrap_or(true)
    }

    /// Whether it is the agent's time; `None` for a time that no calendar has.
    fn is_time(&self, at_ms: i64) -> Option<bool> {
        let today = self.zone.clock(at_ms)?.date();
        let is_day = |day: Weekday| self.days.is_empty() || self.days.contains(&day);
        let Some(hours) = self.hours else {
            return Some(is_day(today.weekday()));
        };
        // Hours that began yesterday may not be over.
        let mut days = [today.pred_opt(), Some(today)].into_iter().flatten();
        Some(days.any(|day| {
            let part = hours.of_day(day);
            let is_in =
                part.is_some_and(|(from_ms, until_ms)| (from_ms..until_ms).contains(&at_ms));
            is_in && is_day(day.weekday())
        }))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use chrono::DateTime;

    use super::*;

    fn at(time: &str) -> AskedAt<'static> {
        AskedAt {
            channel: "acme",
            chat: "C1",
            person: "U1",
            at_ms: DateTime::parse_from_rfc3339(time)
                .unwrap()
                .timestamp_millis(),
        }
    }

    #[test]
    fn an_agent_works_where_for_whom_and_when_it_is_said() {
        // A Friday.
        let noon = at("2026-11-27T12:00:00Z");
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let everywhere = Presence::default();
        let table = [
            (everywhere.clone(), true),
            (
                Presence {
                    chats: list(&["acme/C2", "acme/C1"]),
                    ..everywhere.clone()
                },
                true,
            ),
            (
                Presence {
                    chats: list(&["home/C1"]),
                    ..everywhere.clone()
                },
                false,
            ),
            (
                Presence {
                    people: list(&["acme/U1"]),
                    ..everywhere.clone()
                },
                true,
            ),
            (
                Presence {
                    people: list(&["acme/U2"]),
                    ..everywhere.clone()
                },
                false,
            ),
            (
                Presence {
                    days: vec![Weekday::Fri],
                    ..everywhere.clone()
                },
                true,
            ),
            (
                Presence {
                    days: vec![Weekday::Sat],
                    ..everywhere.clone()
                },
                false,
            ),
            (
                Presence {
                    chats: list(&["acme/C1"]),
                    people: list(&["acme/U2"]),
                    ..everywhere
                },
                false,
            ),
        ];
        for (presence, expected) in table {
            assert_eq!(presence.holds(&noon), expected, "{presence:?}");
        }
    }

    #[test]
    fn a_night_belongs_to_the_day_on_which_it_begins() {
        let zone = Zone::read("Europe/Berlin").unwrap();
        let nights = Presence {
            hours: QuietHours::read("22:00-06:00", "Europe/Berlin"),
            days: vec![Weekday::Fri],
            zone,
            ..Presence::default()
        };
        for (time, expected) in [
            ("2026-11-27T20:59:00Z", false),
            ("2026-11-27T21:00:00Z", true),
            ("2026-11-28T04:59:00Z", true),
            ("2026-11-28T05:00:00Z", false),
            ("2026-11-28T21:30:00Z", false),
        ] {
            assert_eq!(nights.holds(&at(time)), expected, "{time}");
        }
        let far = AskedAt {
            at_ms: i64::MAX,
            ..at("2026-11-27T12:00:00Z")
        };
        assert!(nights.holds(&far), "no calendar has it");
    }
}
