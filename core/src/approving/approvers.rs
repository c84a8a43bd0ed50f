//! Who may decide about a call.

use crate::words::Language;

/// One of those who may decide.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Approver {
    /// The person who asked. Where several are answered together, each of them.
    Requester,
    /// Those who administer the bot in the channel (`admins`).
    Admins,
    /// Everybody who is served in the chat and is in it.
    AnyoneInChat,
    /// Never a person who asked. Alone: everybody else who is served in the chat and is in it.
    FourEyes,
    /// A person.
    Person {
        /// The channel.
        channel: String,
        /// The platform's id.
        id: String,
    },
}

/// Who may decide: lists, each of which must admit the person.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Approvers(pub Vec<Vec<Approver>>);

/// A person of the room who decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decider<'a> {
    /// The channel.
    pub channel: &'a str,
    /// The platform's id of the person.
    pub id: &'a str,
    /// Whether they asked for what the call is for.
    pub is_requester: bool,
    /// Whether they administer the bot.
    pub is_admin: bool,
    /// Whether they are served in the chat, by the lists and the platform's directory as they are now.
    pub is_served: bool,
    /// Whether the platform says that they are in the chat now; false where it does not say.
    pub is_member: bool,
}

impl Approver {
    /// The stored name, as settings write it.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Requester => "requester".to_owned(),
            Self::Admins => "admins".to_owned(),
            Self::AnyoneInChat => "anyone_in_chat".to_owned(),
            Self::FourEyes => "four_eyes".to_owned(),
            Self::Person { channel, id } => format!("{channel}/{id}"),
        }
    }

    /// The approver of a name; `None` if it is neither one of the words nor CHANNEL/ID.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "requester" => Self::Requester,
            "admins" => Self::Admins,
            "anyone_in_chat" => Self::AnyoneInChat,
            "four_eyes" => Self::FourEyes,
            _ => {
                let (channel, id) = name.split_once('/')?;
                let is_plain = |text: &str| {
                    let mut chars = text.chars();
                    !text.is_empty()
                        && chars.all(|c| c.is_ascii_alphanumeric() || "_-:".contains(c))
                };
                if !is_plain(channel) || !is_plain(id) {
                    return None;
                }
                Self::Person {
                    channel: channel.to_owned(),
                    id: id.to_owned(),
                }
            }
        })
    }

    fn admits(&self, decider: &Decider<'_>) -> bool {
        match self {
            Self::Requester => decider.is_requester,
            Self::Admins => decider.is_admin,
            Self::AnyoneInChat => decider.is_member,
            Self::FourEyes => decider.is_member && !decider.is_requester,
            Self::Person { channel, id } => channel == decider.channel && id == decider.id,
        }
    }
}

impl Approvers {
    /// The stored text: lists separated by `;`, their entries by `,`.
    #[must_use]
    pub fn text(&self) -> String {
        let list = |list: &Vec<Approver>| {
            let names: Vec<String> = list.iter().map(Approver::name).collect();
            names.join(",")
        };
        let lists: Vec<String> = self.0.iter().map(list).collect();
        lists.join(";")
    }

    /// Reads the stored text.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        let list = |list: &str| list.split(',').map(Approver::from_name).collect();
        let lists: Option<Vec<Vec<Approver>>> = text.split(';').map(list).collect();
        lists.map(Self)
    }

    /// Whether no person who asked may decide.
    #[must_use]
    pub fn are_four_eyes(&self) -> bool {
        self.0.iter().any(|list| list.contains(&Approver::FourEyes))
    }

    /// Whether the decision may depend on who is in the chat.
    #[must_use]
    pub fn ask_for_members(&self) -> bool {
        let asks = |one: &Approver| matches!(one, Approver::AnyoneInChat | Approver::FourEyes);
        self.0.iter().flatten().any(asks)
    }

    /// Who it is, for people.
    #[must_use]
    pub fn words(&self, language: Language) -> String {
        let list = |list: &Vec<Approver>| {
            let has_others = list.len() > 1;
            let words = list.iter().map(|approver| match approver {
                Approver::Requester => language.deciders_requester(),
                Approver::Admins => language.deciders_admins(),
                Approver::AnyoneInChat => language.deciders_everybody(),
                Approver::FourEyes if has_others => language.deciders_never_requester(),
                Approver::FourEyes => language.deciders_all_but_requester(),
                Approver::Person { .. } => language.deciders_named(),
            });
            let mut said: Vec<String> = Vec::new();
            for word in words {
                if !said.contains(&word) {
                    said.push(word);
                }
            }
            said.join(", ")
        };
        let lists = self.0.iter().map(list);
        let narrowed = |all: String, only: String| language.deciders_of_these(all, only);
        lists.reduce(narrowed).unwrap_or_default()
    }
}

/// Whether a person may decide. Without any list, no person may.
#[must_use]
pub fn may_decide(approvers: &Approvers, decider: &Decider<'_>) -> bool {
    let admits = |list: &Vec<Approver>| {
        let is_kept_out = list.contains(&Approver::FourEyes) && decider.is_requester;
        let mut others = list
            .iter()
            .filter(|one| **one != Approver::FourEyes)
            .peekable();
        let is_alone = others.peek().is_none();
        let is_admitted = match is_alone {
            true => Approver::FourEyes.admits(decider),
            false => others.any(|one| one.admits(decider)),
        };
        !list.is_empty() && !is_kept_out && is_admitted
    };
    decider.is_served && !approvers.0.is_empty() && approvers.0.iter().all(admits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Approvers {
        Approvers::from_text(text).unwrap_or_default()
    }

    #[test]
    fn each_list_must_admit_a_person() {
        let ann = Decider {
            channel: "acme",
            id: "U1",
            is_requester: true,
            is_admin: false,
            is_served: true,
            is_member: true,
        };
        let bob = Decider {
            id: "U2",
            is_requester: false,
            ..ann
        };
        let carl = Decider {
            id: "U3",
            is_admin: true,
            ..bob
        };
        // Which of Ann (asked), Bob and Carl (administers) may decide.
        let table = [
            ("requester", [true, false, false]),
            ("admins", [false, false, true]),
            ("anyone_in_chat", [true, true, true]),
            ("four_eyes", [false, true, true]),
            ("four_eyes,admins", [false, false, true]),
            ("four_eyes,acme/U1,acme/U2", [false, true, false]),
            ("acme/U2", [false, true, false]),
            ("other/U2", [false, false, false]),
            ("requester,admins", [true, false, true]),
            ("anyone_in_chat;four_eyes", [false, true, true]),
            ("requester;admins", [false, false, false]),
            ("", [false; 3]),
        ];
        for (text, expected) in table {
            let may = [ann, bob, carl].map(|decider| may_decide(&read(text), &decider));
            assert_eq!(may, expected, "{text}");
            assert_eq!(read(text).text(), text);
        }
        let outside = Decider {
            is_served: false,
            ..ann
        };
        assert!(!may_decide(&read("anyone_in_chat"), &outside));
        // A person who is served but not in the room may decide only by name or by right.
        let elsewhere = Decider {
            is_member: false,
            ..carl
        };
        let table = [
            ("anyone_in_chat", false),
            ("four_eyes", false),
            ("four_eyes,anyone_in_chat", false),
            ("four_eyes,admins", true),
            ("acme/U3", true),
            ("anyone_in_chat;admins", false),
        ];
        for (text, may) in table {
            assert_eq!(may_decide(&read(text), &elsewhere), may, "{text}");
        }
        assert!(!may_decide(&Approvers::default(), &ann));
        assert!(!may_decide(&Approvers(vec![Vec::new()]), &ann));
    }

    #[test]
    fn what_names_nobody_is_refused() {
        for text in ["nobody", "acme/", "/U1", "acme/U1;;", "a,b", "acme/U1 x"] {
            assert_eq!(Approvers::from_text(text), None, "{text}");
        }
    }

    #[test]
    fn people_are_told_who_may_decide() {
        let words = [
            "requester,admins",
            "four_eyes",
            "four_eyes,admins",
            "acme/U1,acme/U2",
            "anyone_in_chat;admins",
        ]
        .map(|text| read(text).words(Language::English));
        assert_eq!(
            words,
            [
                "the person who asked, those who administer me",
                "everybody here but the person who asked",
                "never the person who asked, those who administer me",
                "people who are named in my settings",
                "everybody here; of these only those who administer me",
            ]
        );
    }
}
