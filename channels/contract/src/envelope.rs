//! One inbound platform event in platform-neutral form.
//!
//! Text is CommonMark-like plain text with the platform's escapes undone; mentions are tokens of
//! [`crate::markup`]. An envelope carries everything capture needs, so that nothing is looked up
//! between an event and its commit.

use crate::clock::PlatformClock;
use crate::feedback::ThumbChange;
use crate::identity::Platform;
use crate::interaction::Interaction;
use crate::probe::Numbered;

/// One inbound platform event.
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope {
    /// The configured channel's name.
    pub channel: String,
    /// Which platform.
    pub platform: Platform,
    /// The account the channel turned out to be (Slack team of `auth.test`, Telegram bot id).
    pub account: String,
    /// The platform's delivery id (Slack envelope id, Telegram update id). For logs, never identity.
    pub delivery_id: String,
    /// When this process received it, in milliseconds since the Unix epoch, by the platform's time as
    /// far as that is known.
    pub received_at_ms: i64,
    /// What happened.
    pub event: Event,
    /// The number of the message that it is about, where the platform numbers its messages.
    pub numbered: Option<Numbered>,
    /// The platform's own JSON, for raw capture.
    pub raw: String,
}

impl Envelope {
    /// The envelope of a live event: its message corrects the clock, which may have been behind, since nothing is
    /// received before it is sent.
    #[must_use]
    pub fn heard_by(self, clock: &PlatformClock) -> Self {
        let (Event::Posted(message) | Event::Edited(message)) = &self.event else {
            return self;
        };
        clock.note_message(message.sent_at_ms);
        Self {
            received_at_ms: clock
                .now_ms()
                .max(self.received_at_ms)
                .max(message.sent_at_ms),
            ..self
        }
    }
}

/// What happened on the platform.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A message was posted.
    Posted(InboundMessage),
    /// A message's text or attachments were changed by its author.
    Edited(InboundMessage),
    /// A message was deleted.
    Deleted {
        /// Where it was.
        place: Place,
        /// Which message.
        message_id: String,
    },
    /// Our own post came back to us (Slack sends them; it may confirm a post of unknown outcome).
    OwnPost {
        /// Where it is.
        place: Place,
        /// Its platform message id.
        message_id: String,
        /// The outbox marker found in its metadata.
        marker: Option<String>,
    },
    /// A command that is not a message (a Slack slash command, or its agents' stop button). Identity is
    /// `id`.
    Command(Command),
    /// A button was pressed, or something else was done with what the bot shows. Identity is `id`.
    Interaction(Interaction),
    /// Somebody put a thumb on a message, or took it away.
    Thumb(ThumbChange),
    /// One chat got another id (Telegram supergroup upgrade, Slack `channel_id_changed`).
    ChatMoved {
        /// The id it had.
        from_chat: String,
        /// The id it has.
        to_chat: String,
    },
    /// A chat or topic was named, renamed or changed its kind.
    ChatChanged {
        /// Which; its title is the new one.
        place: Place,
    },
    /// The bot joined or left a chat, was blocked or unblocked.
    Membership {
        /// Which chat.
        place: Place,
        /// How the bot stands there.
        standing: Standing,
    },
    /// A person opened the bot's own surface (Slack's agent view). Nothing was said.
    Opened {
        /// Where.
        place: Place,
        /// Who.
        sender: Sender,
    },
    /// A person's name changed (Slack `user_change`).
    PersonChanged {
        /// The person with the new name.
        sender: Sender,
    },
    /// An event without content for a room (another reaction, typing, join notice). Acknowledged, not stored.
    Ignored {
        /// Why, as a short constant for counters (`reaction`, `service`, `unfurl`).
        reason: &'static str,
    },
    /// An event that could not be translated. Stored raw.
    Untranslated {
        /// Why, without any content of the event.
        reason: String,
    },
    /// Another program acts as this bot: posts of the bot need not be ours.
    OtherSender {
        /// When that was seen by the platform's time, in milliseconds since the Unix epoch.
        seen_at_ms: i64,
    },
    /// The account will get nothing more until somebody acts (token revoked, app removed).
    AccountLost {
        /// The platform's word for it.
        reason: String,
    },
}

/// How the bot stands in a chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// The bot was added and can post.
    Joined,
    /// The bot was there before, and can post again.
    Back,
    /// The bot can't post.
    Gone,
}

impl Standing {
    /// Whether the bot can post there.
    #[must_use]
    pub fn is_present(self) -> bool {
        self != Self::Gone
    }
}

/// Where something happened.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Place {
    /// The platform's chat id.
    pub chat: String,
    /// The kind of chat; `None` where this event does not say (Slack `app_mention`).
    pub kind: Option<ChatKind>,
    /// The chat's title, where the event carries it.
    pub title: Option<String>,
    /// Slack thread root `ts`, when the message is in a thread (also on the root itself if the event says so).
    pub thread: Option<String>,
    /// Telegram forum topic id; only when it is one.
    pub topic: Option<String>,
    /// The topic's name, where the event carries it; in a message, the name that the topic was created with.
    pub topic_title: Option<String>,
    /// Whether people of another organisation share the chat (Slack Connect).
    pub is_shared: bool,
}

/// What kind of chat a place is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChatKind {
    /// A direct chat with one person.
    Direct,
    /// A group direct message (Slack mpim): as private as a direct chat, but a mention is needed.
    GroupDirect,
    /// A private group or channel.
    Private,
    /// A public channel or group.
    Public,
    /// A broadcast channel (Telegram channel).
    Broadcast,
}

/// One message as a person or bot posted it.
#[derive(Clone, Debug, PartialEq)]
pub struct InboundMessage {
    /// Where.
    pub place: Place,
    /// The platform's message id: unique in the chat.
    pub message_id: String,
    /// Who wrote it.
    pub sender: Sender,
    /// Platform-neutral text, mention tokens included; it says what the message was when it was
    /// more than text (`[photo] caption`).
    pub text: String,
    /// Whom it mentions, in order, as platform user ids (or `@username` where the platform does not
    /// give the id).
    pub mentions: Vec<String>,
    /// Whether it mentions this bot's platform identity.
    pub mentions_bot: bool,
    /// A command at the start (`/ask@bot …`): name without slash, and whether it is for this bot.
    pub command: Option<CommandWord>,
    /// What it replies to.
    pub reply_to: Option<ReplyTo>,
    /// Files and other attachments, described.
    pub attachments: Vec<Attachment>,
    /// An album's id: all its items are one turn.
    pub album: Option<String>,
    /// When it was posted by platform time, in milliseconds since the Unix epoch.
    pub sent_at_ms: i64,
    /// Order among messages of one millisecond: the microseconds of Slack's `ts`, Telegram's
    /// message id.
    pub ordinal: i64,
    /// The platform's marker of the last edit; equal markers are the same edit.
    pub edit_marker: Option<String>,
}

/// A command word at the start of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandWord {
    /// The command without slash and target, lower-cased.
    pub name: String,
    /// Whether it names this bot (`/cmd@this_bot`) or no bot at all.
    pub target: CommandTarget,
    /// Whether the platform sends it by itself when a person opens a direct chat with the bot.
    pub opens_chat: bool,
}

/// For whom a command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandTarget {
    /// `/cmd@this_bot`.
    ThisBot,
    /// `/cmd@another_bot`: suppresses every other rule.
    AnotherBot,
    /// Bare `/cmd`.
    Anyone,
}

/// What a message replies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyTo {
    /// The platform message id, in the same chat.
    pub message_id: String,
    /// Whether that message is this bot's own, if the platform says so.
    pub is_own: bool,
    /// The passage quoted by hand, if any.
    pub quote: Option<String>,
    /// Whether its sender passes on what another person or program wrote.
    pub is_passed_on: bool,
}

/// Who wrote a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sender {
    /// The platform's user id (`chat:<id>` for somebody writing as a chat).
    pub id: String,
    /// The display name, where the event carries it.
    pub display_name: Option<String>,
    /// The username without `@`, where the platform has one.
    pub username: Option<String>,
    /// What they are.
    pub kind: SenderKind,
    /// Whether they may belong to another organisation: the event names another one, or names none in a shared chat.
    /// [`LookUps::belonging`](crate::handles::LookUps::belonging) says more.
    pub is_stranger: bool,
}

/// How a person belongs to the organisation of our account, by the platform's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Belonging {
    /// A full member.
    Member,
    /// A member who sees only some of its chats (Slack: restricted and ultra-restricted accounts).
    Guest,
    /// A member of another organisation.
    Stranger,
}

/// What a sender is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SenderKind {
    /// A person.
    Person,
    /// Another bot.
    Bot,
    /// The platform itself, or a chat speaking for itself (channel post, anonymous admin counts as
    /// a person).
    System,
}

/// A file or another thing attached to a message. Bytes are not fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// `photo`, `video`, `voice`, `audio`, `document`, `sticker`, `animation`, `poll`, `location`,
    /// `contact`, `file`, ...
    pub kind: String,
    /// The platform's file id, where there is one.
    pub file_id: Option<String>,
    /// File name or title.
    pub name: Option<String>,
    /// MIME type.
    pub mime_type: Option<String>,
    /// Size in bytes.
    pub size_bytes: Option<u64>,
}

/// A command that is not a message: a Slack slash command, or the button that stops its agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The platform's identity of the command (Slack `trigger_id`).
    pub id: String,
    /// Where it was given. Only a button is in a thread.
    pub place: Place,
    /// Who gave it.
    pub sender: Sender,
    /// The command with its slash.
    pub name: String,
    /// Its text.
    pub text: String,
}
