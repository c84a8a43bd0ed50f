//! How the bot behaves in a channel: commands, signs, bots among themselves, quiet hours. Settings as
//! they were checked, and what follows from them. Pure.

/// A command of people to the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CommandName {
    /// What there is.
    Help,
    /// Prompts read nothing that was said before.
    New,
    /// What waits for an answer ends.
    Stop,
    /// How things stand.
    Status,
    /// What an agent would be sent.
    Context,
    /// What an agent keeps of older turns.
    Summary,
    /// Something goes for good.
    Forget,
}

impl CommandName {
    /// All, in the order in which people are told of them.
    pub const ALL: [Self; 7] = [
        Self::Help,
        Self::New,
        Self::Stop,
        Self::Status,
        Self::Context,
        Self::Summary,
        Self::Forget,
    ];

    /// The word people say.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Help => "help",
            Self::New => "new",
            Self::Stop => "stop",
            Self::Status => "status",
            Self::Context => "context",
            Self::Summary => "summary",
            Self::Forget => "forget",
        }
    }

    /// The command of that word.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// What it does, for people.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::Help => "What I understand",
            Self::New => "Start afresh: I read nothing that was said before",
            Self::Stop => "Stop what I was asked and have not answered yet",
            Self::Status => "How things stand here",
            Self::Context => "What I would be sent if you asked me now",
            Self::Summary => "What I keep of the older part of the conversation",
            Self::Forget => "Have messages forgotten for good",
        }
    }
}

/// How the bot behaves in a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manners {
    /// Whether commands are carried out.
    pub commands: bool,
    /// Commands that only admins may use.
    pub admins_only: Vec<CommandName>,
    /// The reaction that says that a message was heard and will be answered; empty = none.
    pub ack_reaction: String,
    /// Whether it stays once the message is answered.
    pub keeps_ack_reaction: bool,
    /// At most so many messages of other bots in a row are answered in a chat without a person's word.
    pub bot_exchanges_max: u32,
    /// When nothing is answered.
    pub quiet: Option<QuietHours>,
    /// Whether that holds in direct chats, too.
    pub is_quiet_in_direct: bool,
    /// Whether a word to everybody (`@here`) addresses the default agent.
    pub broadcast_addresses: bool,
    /// What is said in a room that the bot was added to; empty = nothing.
    pub introduction: String,
    /// An answer changes when its question is edited within so long, in milliseconds; 0 = never.
    pub edit_answer_within_ms: i64,
}

const DAY_MS: i64 = 86_400_000;
const MINUTE_MS: i64 = 60_000;

/// A part of each day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuietHours {
    /// When it begins, in minutes of the local day.
    pub from_minute: u16,
    /// When it ends, in minutes of the local day; may be on the next.
    pub until_minute: u16,
    /// Local time is so far ahead of UTC, in minutes.
    pub offset_minutes: i32,
}

impl QuietHours {
    /// Until when it is quiet at a time, both in milliseconds since the Unix epoch; `None` if it is not.
    #[must_use]
    pub fn until_ms(&self, now_ms: i64) -> Option<i64> {
        let local_ms = now_ms.checked_add(i64::from(self.offset_minutes) * MINUTE_MS)?;
        let since_from_ms = (local_ms - i64::from(self.from_minute) * MINUTE_MS).rem_euclid(DAY_MS);
        let length = i64::from(self.until_minute) - i64::from(self.from_minute);
        let length_ms = (length * MINUTE_MS).rem_euclid(DAY_MS);
        (since_from_ms < length_ms).then(|| now_ms - since_from_ms + length_ms)
    }

    /// Its end as people say it.
    #[must_use]
    pub fn end(&self) -> String {
        format!(
            "{:02}:{:02}",
            self.until_minute / 60,
            self.until_minute % 60
        )
    }

    /// Reads `22:00-07:00` at a zone like `UTC` or `+01:00`.
    #[must_use]
    pub fn read(hours: &str, zone: &str) -> Option<Self> {
        let (from, until) = hours.split_once('-')?;
        let (from_minute, until_minute) = (minute_of(from)?, minute_of(until)?);
        (from_minute != until_minute).then_some(Self {
            from_minute,
            until_minute,
            offset_minutes: offset_of(zone)?,
        })
    }
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
#[must_use]
pub fn offset_of(zone: &str) -> Option<i32> {
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
        assert_eq!(night.end(), "07:00");
    }

    #[test]
    fn only_hours_that_can_be_are_read() {
        for (hours, zone) in [
            ("22:00", "UTC"),
            ("22:00-24:00", "UTC"),
            ("7:00-8:00", "UTC"),
            ("22:00-22:00", "UTC"),
            ("22:60-07:00", "UTC"),
            ("22:00-07:00", "Europe/Berlin"),
            ("22:00-07:00", "+15:00"),
            ("22:00-07:00", "+é"),
            ("22:00-07:00", ""),
        ] {
            assert_eq!(QuietHours::read(hours, zone), None, "{hours} {zone}");
        }
        assert_eq!(offset_of("-03:30"), Some(-210));
    }

    #[test]
    fn every_command_is_found_by_its_word() {
        for name in CommandName::ALL {
            assert_eq!(CommandName::from_name(name.name()), Some(name));
            assert!((1..=256).contains(&name.description().len()));
        }
        assert_eq!(CommandName::from_name("dance"), None);
    }
}
