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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::capture::policy::AllowList;
    use crate::capture::testing::{message, policy};

    fn list(ids: &[&str]) -> AllowList {
        AllowList::new(ids.iter().map(|id| (*id).to_owned()).collect())
    }

    fn decide(policy: &ChannelPolicy, kind: ChatKind, sender_id: &str) -> Access {
        let mut message = message("hi");
        message.sender.id = sender_id.into();
        access(&message.place, Some(kind), &message.sender, policy)
    }

    #[test]
    fn closed_by_default_means_groups_and_private_chats_by_id() {
        let closed = ChannelPolicy {
            allow_chats: list(&["C1"]),
            allow_people: AllowList::default(),
            ..policy()
        };
        assert_eq!(decide(&closed, ChatKind::Private, "U1"), Access::Served);
        let elsewhere = ChannelPolicy {
            allow_chats: list(&["C2"]),
            ..closed.clone()
        };
        assert_eq!(
            decide(&elsewhere, ChatKind::Private, "U1"),
            Access::ChatNotAllowed
        );
        assert_eq!(
            decide(&elsewhere, ChatKind::Direct, "U1"),
            Access::PersonNotAllowed
        );
        assert_eq!(
            decide(&elsewhere, ChatKind::Direct, "UADMIN"),
            Access::Served
        );
        let person = ChannelPolicy {
            allow_people: list(&["U1"]),
            ..elsewhere
        };
        assert_eq!(decide(&person, ChatKind::Direct, "U1"), Access::Served);
        assert_eq!(
            decide(&person, ChatKind::Direct, "U2"),
            Access::PersonNotAllowed
        );
    }

    #[test]
    fn a_list_of_people_also_holds_in_groups() {
        let listed = ChannelPolicy {
            allow_people: list(&["U1"]),
            ..policy()
        };
        assert_eq!(decide(&listed, ChatKind::Public, "U1"), Access::Served);
        assert_eq!(
            decide(&listed, ChatKind::Public, "U2"),
            Access::PersonNotAllowed
        );
    }

    #[test]
    fn strangers_of_shared_channels_are_closed_out_unless_answered() {
        let mut message = message("hi");
        message.sender.is_stranger = true;
        let decide = |policy: &ChannelPolicy, kind| {
            access(&message.place, Some(kind), &message.sender, policy)
        };
        assert_eq!(decide(&policy(), ChatKind::Public), Access::Stranger);
        assert_eq!(decide(&policy(), ChatKind::Direct), Access::Stranger);
        let open = ChannelPolicy {
            serves_strangers: true,
            ..policy()
        };
        assert_eq!(decide(&open, ChatKind::Public), Access::Served);
    }
}
