//! What people do with the buttons of posts, and which presses can count.

use crate::envelope::{Place, Sender, SenderKind};
use crate::outbound::Target;

/// A person pressed something. Its identity is `id`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interaction {
    /// The platform's identity of the interaction (Slack `trigger_id`, Telegram `callback_query.id`). An answer names
    /// it.
    pub id: String,
    /// What was pressed.
    pub control: Control,
    /// Where it happened, if in a chat.
    pub place: Option<Place>,
    /// The message that it was pressed in; for a form of ours, the message with the button that opened it. `None`
    /// outside of messages (another modal, a tab), and for a message that people had the bot write in a chat without it
    /// (Telegram `inline_message_id`).
    pub message: Option<PressedMessage>,
    /// Who did it.
    pub sender: Sender,
    /// The sender's team by the platform (Slack `user.team_id`).
    pub team: Option<String>,
    /// Whether the sender is an account that stands in for people who don't show themselves: an anonymous
    /// administrator, a person who speaks as a channel.
    pub is_anonymous: bool,
    /// For a button of ours its [`CardButton::data`](crate::card::CardButton::data), as the platform sends it: no proof
    /// that such a button is, or ever was, in the message. For any other control, the platform's name of it.
    pub data: String,
    /// The text that was written into a form of ours, unchanged.
    pub written: Option<String>,
}

/// What was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Control {
    /// A button.
    Button,
    /// A form that was sent.
    Form,
    /// Something else: a menu, a shortcut, another app's modal.
    Other,
}

/// The message in which something was pressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PressedMessage {
    /// The platform's message id, in the chat of the interaction's place.
    pub id: String,
    /// Whose message it is.
    pub author: PressedAuthor,
    /// Whether it is a copy of a message from elsewhere.
    pub is_forwarded: bool,
    /// Whether it was written by way of a bot's inline mode.
    pub is_via_bot: bool,
    /// Whether only the person who pressed sees it.
    pub is_ephemeral: bool,
}

/// Whose message it is, by what the platform says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PressedAuthor {
    /// This bot's.
    Us,
    /// Another sender's.
    Another,
    /// The platform does not say (for messages that it can't reach any more, Telegram gives only the ids).
    Untold,
}

/// Why a press can't count, whatever it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PressRefusal {
    /// What was pressed is no button of a message in a chat.
    NoMessage,
    /// The message is not ours, or is shown to one person only and not kept.
    NotOurs,
    /// The message is a copy, or was written by way of a bot.
    Copied,
    /// It was pressed by a bot or by the platform.
    NoPerson,
    /// It was pressed by an account that stands in for a person.
    Anonymous,
    /// It was pressed by a person who may belong to another organisation.
    Stranger,
}

impl Interaction {
    /// Why it can't count, whatever it is about; `None` if it is a person's press of a button in a message that may be
    /// ours. Whether it really is ours remains to be checked: the chat and the message's id must be those that were
    /// stored.
    #[must_use]
    pub fn refusal(&self) -> Option<PressRefusal> {
        let message = match (&self.message, &self.place, self.control) {
            (Some(message), Some(_), Control::Button | Control::Form) => message,
            (None, _, _) | (_, None, _) | (_, _, Control::Other) => {
                return Some(PressRefusal::NoMessage);
            }
        };
        if message.author == PressedAuthor::Another || message.is_ephemeral {
            return Some(PressRefusal::NotOurs);
        }
        if message.is_forwarded || message.is_via_bot {
            return Some(PressRefusal::Copied);
        }
        // Before the kind: a stand-in account is marked as a bot.
        if self.is_anonymous {
            return Some(PressRefusal::Anonymous);
        }
        if self.sender.kind != SenderKind::Person {
            return Some(PressRefusal::NoPerson);
        }
        self.sender.is_stranger.then_some(PressRefusal::Stranger)
    }

    /// Where an answer to it goes ([`Operation::Answer`](crate::outbound::Operation::Answer)); `None` where it
    /// happened in no chat.
    #[must_use]
    pub fn answer_target(&self) -> Option<Target> {
        let place = self.place.as_ref()?;
        Some(Target {
            chat: place.chat.clone(),
            thread: place.thread.clone(),
            topic: place.topic.clone(),
            reply_to: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press() -> Interaction {
        Interaction {
            id: "q1".to_owned(),
            control: Control::Button,
            place: Some(Place {
                chat: "C1".to_owned(),
                thread: Some("1.000100".to_owned()),
                ..Place::default()
            }),
            message: Some(PressedMessage {
                id: "1.000200".to_owned(),
                author: PressedAuthor::Us,
                is_forwarded: false,
                is_via_bot: false,
                is_ephemeral: false,
            }),
            sender: Sender {
                id: "U1".to_owned(),
                display_name: None,
                username: None,
                kind: SenderKind::Person,
                is_stranger: false,
            },
            team: Some("T1".to_owned()),
            is_anonymous: false,
            data: "a".to_owned(),
            written: None,
        }
    }

    fn changed(change: impl FnOnce(&mut Interaction)) -> Interaction {
        let mut press = press();
        change(&mut press);
        press
    }

    fn in_message(change: impl FnOnce(&mut PressedMessage)) -> Interaction {
        changed(|press| {
            if let Some(message) = &mut press.message {
                change(message);
            }
        })
    }

    #[test]
    fn only_a_persons_press_of_a_button_in_a_message_that_may_be_ours_can_count() {
        let table = [
            (press(), None),
            (in_message(|it| it.author = PressedAuthor::Untold), None),
            (
                changed(|it| it.message = None),
                Some(PressRefusal::NoMessage),
            ),
            (changed(|it| it.place = None), Some(PressRefusal::NoMessage)),
            (
                changed(|it| it.control = Control::Other),
                Some(PressRefusal::NoMessage),
            ),
            (
                in_message(|it| it.author = PressedAuthor::Another),
                Some(PressRefusal::NotOurs),
            ),
            (
                in_message(|it| it.is_ephemeral = true),
                Some(PressRefusal::NotOurs),
            ),
            (
                in_message(|it| it.is_forwarded = true),
                Some(PressRefusal::Copied),
            ),
            (
                in_message(|it| it.is_via_bot = true),
                Some(PressRefusal::Copied),
            ),
            (
                changed(|it| it.sender.kind = SenderKind::Bot),
                Some(PressRefusal::NoPerson),
            ),
            (
                changed(|it| it.sender.kind = SenderKind::System),
                Some(PressRefusal::NoPerson),
            ),
            (
                changed(|it| {
                    it.sender.kind = SenderKind::Bot;
                    it.is_anonymous = true;
                }),
                Some(PressRefusal::Anonymous),
            ),
            (
                changed(|it| it.sender.is_stranger = true),
                Some(PressRefusal::Stranger),
            ),
        ];
        for (press, expected) in table {
            assert_eq!(press.refusal(), expected, "{press:?}");
        }
    }

    #[test]
    fn an_answer_goes_to_the_thread_of_the_press() {
        let target = press().answer_target().map(|it| (it.chat, it.thread));
        assert_eq!(target, Some(("C1".into(), Some("1.000100".into()))));
        assert_eq!(changed(|it| it.place = None).answer_target(), None);
    }
}
