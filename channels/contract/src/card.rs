//! A post with buttons: what it says, and what a press of each button sends back.
//!
//! Everything in a card is plain text. A renderer shows it unchanged, reads no markup in it and lets no mention in it
//! notify anybody; where it can't, it makes no post ([`CardMisfit`]). A card is never cut.

use serde::{Deserialize, Serialize};

/// The longest data of a button, in bytes. *Source:* Telegram Bot API, `InlineKeyboardButton.callback_data`.
pub const BUTTON_DATA_MAX_BYTES: usize = 64;

/// The longest label of a button, in characters. *Source:* Slack's Block Kit reference, button element.
pub const BUTTON_LABEL_MAX_CHARS: usize = 75;

/// The most buttons of a card. *Source:* Slack's Block Kit reference, actions block.
pub const BUTTONS_MAX: usize = 25;

/// A post with buttons. It is shown in this order: heading, facts, texts, buttons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Card {
    /// What the card is about, on one line.
    pub heading: String,
    /// What is known about that, one line each.
    pub facts: Vec<CardFact>,
    /// Texts that are shown as code, each under its title.
    pub texts: Vec<CardText>,
    /// The buttons, in order; a card may have none.
    pub buttons: Vec<CardButton>,
}

/// One line of a card: `Asked by: Ann`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardFact {
    /// What the line is about; without a colon.
    pub label: String,
    /// The value behind the label.
    pub value: String,
}

/// A text that is shown as code, character by character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardText {
    /// What it is: the name of an argument.
    pub title: String,
    /// The text itself, lines included.
    pub text: String,
}

/// A button.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardButton {
    /// What comes back with a press: 1 to [`BUTTON_DATA_MAX_BYTES`] bytes, different for each button of a card.
    pub data: String,
    /// What it says: 1 to [`BUTTON_LABEL_MAX_CHARS`] characters.
    pub label: String,
    /// How it looks.
    #[serde(default, skip_serializing_if = "ButtonStyle::is_plain")]
    pub style: ButtonStyle,
}

/// How a button looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ButtonStyle {
    /// The platform's usual look.
    #[default]
    Plain,
    /// The button lets something happen; mostly green.
    Positive,
    /// The button prevents or ends something; mostly red.
    Negative,
}

impl ButtonStyle {
    fn is_plain(&self) -> bool {
        *self == Self::Plain
    }
}

/// Why a card can't be one post.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum CardMisfit {
    /// It has more text than one post holds.
    #[error("the card has more text than one post holds")]
    TooLong,
    /// It has more facts, texts or buttons than one post holds.
    #[error("the card has more lines, texts or buttons than one post holds")]
    TooMany,
    /// The platform would show some of its text differently: it drops, trims or replaces these characters.
    #[error("the platform would change a text of the card")]
    Altered,
    /// A button's data or label is empty, too long, or used twice.
    #[error("a button of the card can't be one")]
    BadButton,
    /// The platform has no buttons.
    #[error("the platform has no buttons")]
    NoButtons,
}

impl Card {
    /// Checks that every platform can show the buttons.
    ///
    /// # Errors
    /// [`CardMisfit::TooMany`] or [`CardMisfit::BadButton`].
    pub fn check_buttons(&self) -> Result<(), CardMisfit> {
        if self.buttons.len() > BUTTONS_MAX {
            return Err(CardMisfit::TooMany);
        }
        for (n, button) in self.buttons.iter().enumerate() {
            let label_chars = button.label.trim().chars().count();
            let is_own = self.buttons[..n].iter().all(|it| it.data != button.data);
            let is_data = (1..=BUTTON_DATA_MAX_BYTES).contains(&button.data.len());
            if !is_data || !is_own || !(1..=BUTTON_LABEL_MAX_CHARS).contains(&label_chars) {
                return Err(CardMisfit::BadButton);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn button(data: &str, label: &str) -> CardButton {
        CardButton {
            data: data.to_owned(),
            label: label.to_owned(),
            style: ButtonStyle::Positive,
        }
    }

    #[test]
    fn buttons_are_held_to_the_limits_of_all_platforms() {
        let (widest, too_wide) = ("é".repeat(32), format!("{}x", "é".repeat(32)));
        let (longest, too_long) = ("é".repeat(75), "é".repeat(76));
        let table = [
            (vec![], Ok(())),
            (vec![button(&widest, &longest)], Ok(())),
            (vec![button("", "Yes")], Err(CardMisfit::BadButton)),
            (vec![button(&too_wide, "Yes")], Err(CardMisfit::BadButton)),
            (vec![button("a", " ")], Err(CardMisfit::BadButton)),
            (vec![button("a", &too_long)], Err(CardMisfit::BadButton)),
            (
                vec![button("a", "Yes"), button("a", "No")],
                Err(CardMisfit::BadButton),
            ),
            (
                (0..26).map(|n| button(&n.to_string(), "x")).collect(),
                Err(CardMisfit::TooMany),
            ),
        ];
        for (buttons, expected) in table {
            let card = Card {
                buttons,
                ..Card::default()
            };
            assert_eq!(card.check_buttons(), expected, "{:?}", card.buttons);
        }
    }
}
