//! Forms: what a person writes for the bot beside the room.

use crate::outbound::Target;

/// A form with one text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// What it is for, in a few words.
    pub title: String,
    /// What is to be written.
    pub label: String,
    /// How, in a sentence.
    pub hint: String,
    /// What stands in it at first.
    pub text: String,
    /// What the button that sends it says.
    pub send: String,
    /// The [`CardButton::data`](crate::card::CardButton::data) of the button that it comes from; what is sent has it.
    pub data: String,
    /// The platform's id of the message with that button.
    pub message_id: String,
    /// Where that message is.
    pub place: Target,
}
