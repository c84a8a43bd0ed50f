//! Forms: texts that a person writes for the bot outside of the room's conversation.

use crate::outbound::Target;

/// A form with one text field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// What it is for, in a few words.
    pub title: String,
    /// The label of the field.
    pub label: String,
    /// How to fill it in, in one sentence.
    pub hint: String,
    /// The text that the field begins with.
    pub text: String,
    /// The words on the button that sends it.
    pub send: String,
    /// The [`CardButton::data`](crate::card::CardButton::data) of the button that opened the form; the sent form
    /// carries it.
    pub data: String,
    /// The platform's id of the message with that button.
    pub message_id: String,
    /// Where that message is.
    pub place: Target,
}
