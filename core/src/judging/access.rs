//! Who is served where. Pure: [`place_access`] decides about places, [`person_access`] about people, and
//! [`access`] asks both. Everything that lets somebody in, or stores something of a chat, asks these.
//!
//! Where nobody is served nothing is stored or answered, but at most one polite line per chat.

use vocative_contract::envelope::{Belonging, ChatKind, Place, Sender, SenderKind};

use crate::addressing::Access;
use crate::judging::policy::ChannelPolicy;

/// Whether the lists allow a place, whoever speaks there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceAccess {
    /// It is served; where people are listed, only to them.
    Open,
    /// It is a direct chat, and served if its person is listed.
    ByPerson,
    /// Only administrators are served there.
    Closed,
}

/// Decides about a place.
#[must_use]
pub fn place_access(chat: &str, kind: Option<ChatKind>, policy: &ChannelPolicy) -> PlaceAccess {
    let is_direct = kind == Some(ChatKind::Direct);
    let is_by_person =
        !policy.allow_people.is_empty() || !policy.admins.is_empty() || policy.has_pairing;
    // If no person is listed, a direct chat may be allowed by its id, like any other chat.
    let is_allowed = policy.allow_chats.allows(chat);
    match is_direct {
        true if !policy.allow_people.is_empty() => PlaceAccess::ByPerson,
        // Where people are let in one by one, only the id of a chat opens it to whoever is there.
        true if policy.has_pairing && !policy.allow_chats.names(chat) => PlaceAccess::ByPerson,
        _ if is_allowed => PlaceAccess::Open,
        true if is_by_person => PlaceAccess::ByPerson,
        _ => PlaceAccess::Closed,
    }
}

/// Decides about a person in a place for which `place` was decided. `belonging` is what the platform's directory says
/// of them, if it was asked; without it, a person who may be a stranger counts as one, and so does one who may be a
/// guest.
#[must_use]
pub fn person_access(
    place: PlaceAccess,
    sender: &Sender,
    belonging: Option<Belonging>,
    policy: &ChannelPolicy,
) -> Access {
    if policy.admins.contains(&sender.id) {
        return Access::Served;
    }
    let is_stranger = match belonging {
        None => sender.is_stranger,
        Some(belonging) => belonging == Belonging::Stranger,
    };
    if is_stranger && !policy.serves_strangers {
        return Access::Stranger;
    }
    let is_person = sender.kind == SenderKind::Person;
    let may_be_guest = is_person && matches!(belonging, None | Some(Belonging::Guest));
    if may_be_guest && !policy.serves_guests {
        return Access::Guest;
    }
    let is_listed = policy.allow_people.allows(&sender.id);
    let is_admitted = match place {
        // Another bot or the platform is heard wherever people are; `allow_people` is about people.
        PlaceAccess::Open => !is_person || policy.allow_people.is_empty() || is_listed,
        PlaceAccess::ByPerson => {
            is_listed || (policy.has_pairing && policy.paired.contains(&sender.id))
        }
        PlaceAccess::Closed => false,
    };
    if is_admitted {
        Access::Served
    } else {
        Access::PersonNotAllowed
    }
}

/// Decides for one sender in one place.
#[must_use]
pub fn access(
    place: &Place,
    kind: Option<ChatKind>,
    sender: &Sender,
    belonging: Option<Belonging>,
    policy: &ChannelPolicy,
) -> Access {
    let of_place = place_access(&place.chat, kind, policy);
    let of_person = person_access(of_place, sender, belonging, policy);
    let is_room = kind != Some(ChatKind::Direct);
    match of_person {
        Access::Served => Access::Served,
        _ if is_room && of_place == PlaceAccess::Closed => Access::ChatNotAllowed,
        refused => refused,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::judging::policy::AllowList;
    use crate::judging::testing::{message, policy};

    fn list(ids: &[&str]) -> AllowList {
        AllowList::new(ids.iter().map(|id| (*id).to_owned()).collect())
    }

    fn decide(policy: &ChannelPolicy, kind: ChatKind, sender_id: &str) -> Access {
        let mut message = message("hi");
        message.sender.id = sender_id.into();
        access(&message.place, Some(kind), &message.sender, None, policy)
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
            access(&message.place, Some(kind), &message.sender, None, policy)
        };
        assert_eq!(decide(&policy(), ChatKind::Public), Access::Stranger);
        assert_eq!(decide(&policy(), ChatKind::Direct), Access::Stranger);
        let open = ChannelPolicy {
            serves_strangers: true,
            ..policy()
        };
        assert_eq!(decide(&open, ChatKind::Public), Access::Served);
    }

    #[test]
    fn everybody_is_a_room_s_business_only_where_the_room_is_allowed() {
        let everybody = ChannelPolicy {
            allow_chats: list(&["C1"]),
            allow_people: list(&["*"]),
            ..policy()
        };
        let nobody = ChannelPolicy {
            allow_chats: AllowList::default(),
            allow_people: AllowList::default(),
            admins: vec![],
            ..policy()
        };
        let only_chat = ChannelPolicy {
            allow_chats: list(&["D1"]),
            ..nobody.clone()
        };
        let only_admin = ChannelPolicy {
            admins: vec!["UADMIN".into()],
            ..nobody.clone()
        };
        use PlaceAccess::{ByPerson, Closed, Open};
        let (direct, room) = (Some(ChatKind::Direct), Some(ChatKind::Private));
        let table = [
            (&everybody, "C1", room, Open),
            (&everybody, "C2", room, Closed),
            (&everybody, "C2", None, Closed),
            (&everybody, "C2", Some(ChatKind::GroupDirect), Closed),
            (&everybody, "D1", direct, ByPerson),
            (&nobody, "C1", room, Closed),
            (&nobody, "D1", direct, Closed),
            (&only_chat, "D1", direct, Open),
            (&only_chat, "D2", direct, Closed),
            (&only_admin, "D1", direct, ByPerson),
            (&only_admin, "C1", room, Closed),
        ];
        for (policy, chat, kind, expected) in table {
            assert_eq!(
                place_access(chat, kind, policy),
                expected,
                "{chat} {kind:?}"
            );
        }
        assert_eq!(
            decide(&only_admin, ChatKind::Direct, "U1"),
            Access::PersonNotAllowed
        );
        assert_eq!(
            decide(&only_admin, ChatKind::Direct, "UADMIN"),
            Access::Served
        );
        assert_eq!(
            decide(&nobody, ChatKind::Direct, "U1"),
            Access::PersonNotAllowed
        );
    }

    #[test]
    fn people_who_were_let_in_by_a_code_are_served_in_direct_chats_alone() {
        let open = ChannelPolicy {
            has_pairing: true,
            paired: Arc::new(["U1".to_owned()].into()),
            allow_people: AllowList::default(),
            ..policy()
        };
        let listing = ChannelPolicy {
            allow_people: list(&["U2"]),
            ..open.clone()
        };
        let off = ChannelPolicy {
            has_pairing: false,
            ..listing.clone()
        };
        let with_chat = ChannelPolicy {
            allow_chats: list(&["C1"]),
            ..open.clone()
        };
        use Access::{PersonNotAllowed, Served};
        let (direct, room) = (ChatKind::Direct, ChatKind::Public);
        let table = [
            (&open, direct, "U1", Served),
            (&open, direct, "U3", PersonNotAllowed),
            (&open, direct, "UADMIN", Served),
            (&open, room, "U3", Served),
            (&listing, direct, "U1", Served),
            (&listing, direct, "U2", Served),
            (&listing, room, "U1", PersonNotAllowed),
            (&off, direct, "U1", PersonNotAllowed),
            // The message is said in the chat C1.
            (&with_chat, direct, "U3", Served),
        ];
        for (n, (policy, kind, person, expected)) in table.into_iter().enumerate() {
            assert_eq!(decide(policy, kind, person), expected, "{n} {person}");
        }
        let mut stranger = message("hi");
        stranger.sender.id = "U1".into();
        stranger.sender.is_stranger = true;
        let (place, kind) = (&stranger.place, Some(direct));
        let decided = access(place, kind, &stranger.sender, None, &open);
        assert_eq!(decided, Access::Stranger, "a code is no membership");
    }

    #[test]
    fn who_may_be_an_outsider_is_one_until_the_directory_says_otherwise() {
        use Belonging::{Guest, Member, Stranger};
        // is_stranger, what the directory says, answer_strangers, answer_guests
        let table = [
            (true, None, false, true, Access::Stranger),
            (true, Some(Member), false, true, Access::Served),
            (true, Some(Guest), false, true, Access::Served),
            (true, Some(Stranger), false, true, Access::Stranger),
            (false, Some(Stranger), false, true, Access::Stranger),
            (false, None, false, true, Access::Served),
            (false, None, false, false, Access::Guest),
            (false, Some(Guest), false, false, Access::Guest),
            (false, Some(Member), false, false, Access::Served),
            (true, None, true, false, Access::Guest),
            (true, Some(Stranger), true, false, Access::Served),
            (true, None, true, true, Access::Served),
        ];
        for (is_stranger, belonging, serves_strangers, serves_guests, expected) in table {
            let mut message = message("hi");
            message.sender.is_stranger = is_stranger;
            let policy = ChannelPolicy {
                serves_strangers,
                serves_guests,
                ..policy()
            };
            let decide = |sender: &Sender| {
                access(
                    &message.place,
                    message.place.kind,
                    sender,
                    belonging,
                    &policy,
                )
            };
            let said = (is_stranger, belonging, serves_strangers, serves_guests);
            assert_eq!(decide(&message.sender), expected, "{said:?}");
            let admin = Sender {
                id: "UADMIN".into(),
                ..message.sender.clone()
            };
            assert_eq!(decide(&admin), Access::Served, "{said:?}");
        }
    }

    #[test]
    fn guests_are_people() {
        let no_guests = ChannelPolicy {
            serves_guests: false,
            ..policy()
        };
        let mut bot = message("beep");
        bot.sender.kind = SenderKind::Bot;
        let decided = access(&bot.place, bot.place.kind, &bot.sender, None, &no_guests);
        assert_eq!(decided, Access::Served);
    }
}
