//! What people think of a message, said with a thumb.

use crate::envelope::{Place, Sender};

/// A thumb.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Thumb {
    /// The message was good.
    Up,
    /// The message was bad.
    Down,
}

impl Thumb {
    /// Its name: `up` or `down`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }

    /// The thumb that a reaction is, by its emoji or by its name without colons, whatever the colour of its skin.
    ///
    /// *Source:* Slack names both, `+1` and `thumbsup`, and writes skins as `thumbsup::skin-tone-2`.
    #[must_use]
    pub fn of_reaction(reaction: &str) -> Option<Self> {
        let name = reaction.split("::").next().unwrap_or_default();
        let plain = name.trim_end_matches(|c| ('\u{1f3fb}'..='\u{1f3ff}').contains(&c));
        match plain {
            "+1" | "thumbsup" | "👍" => Some(Self::Up),
            "-1" | "thumbsdown" | "👎" => Some(Self::Down),
            _ => None,
        }
    }
}

/// A person put thumbs on a message, or took them away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThumbChange {
    /// Where the message is; platforms do not give its thread here.
    pub place: Place,
    /// The platform's id of the message.
    pub message_id: String,
    /// Who did it.
    pub sender: Sender,
    /// The thumbs that the platform reported, each with whether it is on the message now.
    pub thumbs: Vec<(Thumb, bool)>,
    /// When, by the platform's clock, in milliseconds since the Unix epoch: of two changes of a thumb the later one
    /// holds, in whatever order they come.
    pub at_ms: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thumbs_are_read_by_name_and_emoji_in_every_skin() {
        let cases = [
            ("+1", Some(Thumb::Up)),
            ("thumbsup::skin-tone-6", Some(Thumb::Up)),
            ("👍", Some(Thumb::Up)),
            ("👍🏽", Some(Thumb::Up)),
            ("-1", Some(Thumb::Down)),
            ("thumbsdown", Some(Thumb::Down)),
            ("👎", Some(Thumb::Down)),
            ("eyes", None),
            ("thumbs_up", None),
            ("🏽", None),
            ("", None),
        ];
        for (reaction, thumb) in cases {
            assert_eq!(Thumb::of_reaction(reaction), thumb, "{reaction}");
        }
    }
}
