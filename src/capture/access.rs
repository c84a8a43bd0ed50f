//! Who is served where. Pure.
//!
//! Source: DESIGN §7 "Access". Outside it nothing is stored or answered, but at most one polite line
//! per chat.

use vocative_channels::envelope::{ChatKind, Place, Sender, SenderKind};

use crate::capture::policy::ChannelPolicy;

/// Whether a message is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is stored and may be answered.
    Served,
    /// The chat is not on `allow_chats`.
    ChatNotAllowed,
    /// The person is not on `allow_people`.
    PersonNotAllowed,
    /// The person belongs to another organisation and `answer_strangers` is off.
    Stranger,
}

impl Access {
    /// The setting that would admit it.
    #[must_use]
    pub fn setting(self) -> &'static str {
        match self {
            Self::Served | Self::ChatNotAllowed => "allow_chats",
            Self::PersonNotAllowed => "allow_people",
            Self::Stranger => "answer_strangers",
        }
    }
}

/// Decides for one sender in one place.
#[must_use]
pub fn access(
    place: &Place,
    kind: Option<ChatKind>,
    sender: &Sender,
    policy: &ChannelPolicy,
) -> Access {
    if policy.admins.contains(&sender.id) {
        return Access::Served;
    }
    if kind == Some(ChatKind::Direct) {
        return direct_access(place, sender, policy);
    }
    if !policy.allow_chats.allows(&place.chat) {
        return Access::ChatNotAllowed;
    }
    if sender.is_stranger && !policy.serves_strangers {
        return Access::Stranger;
    }
    // Another bot or the platform is heard wherever people are; `allow_people` is about people.
    let is_person = sender.kind == SenderKind::Person;
    if is_person && !policy.allow_people.is_empty() && !policy.allow_people.allows(&sender.id) {
        return Access::PersonNotAllowed;
    }
    Access::Served
}

/// A direct chat is served when its person or the chat itself is allowed.
fn direct_access(place: &Place, sender: &Sender, policy: &ChannelPolicy) -> Access {
    if sender.is_stranger && !policy.serves_strangers {
        return Access::Stranger;
    }
    let is_allowed = policy.allow_people.allows(&sender.id)
        || (policy.allow_people.is_empty() && policy.allow_chats.allows(&place.chat));
    if is_allowed {
        Access::Served
    } else {
        Access::PersonNotAllowed
    }
}
