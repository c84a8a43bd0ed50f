//! What people ask for behind `/memory`: to see what is remembered of them where they are, and to remove or change it.
//! Pure.

use crate::ids::{AgentName, ParticipantId};
use crate::remembering::{CHANGES_MAX, MemoryId, StoredMemory, entry_line};
use crate::words::Language;

/// The most entries that are listed.
const LISTED_MAX: usize = 20;
/// The most characters of one of them.
const LISTED_CHARS: usize = 300;

/// What somebody says behind the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryOrder {
    /// What is remembered is listed.
    List,
    /// These entries are removed.
    Forget {
        /// Which.
        entries: Vec<MemoryId>,
    },
    /// The text of an entry is replaced.
    Change {
        /// Which.
        entry: MemoryId,
        /// The new text.
        text: String,
    },
    /// An entry may appear in other rooms of the account, or no longer.
    Share {
        /// Which.
        entry: MemoryId,
        /// Whether it may.
        is_shared: bool,
    },
    /// Something else.
    Other,
}

impl MemoryOrder {
    /// What that text asks for.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let (word, rest) = split(text);
        let order = match (word.as_str(), rest) {
            ("" | "list", "") => Some(Self::List),
            ("forget", rest) => forgotten(rest),
            ("change", rest) => changed(rest),
            ("share", rest) => number(rest).map(|entry| Self::Share {
                entry,
                is_shared: true,
            }),
            ("unshare", rest) => number(rest).map(|entry| Self::Share {
                entry,
                is_shared: false,
            }),
            _ => None,
        };
        order.unwrap_or(Self::Other)
    }
}

fn split(text: &str) -> (String, &str) {
    let text = text.trim();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word.to_lowercase(), rest.trim())
}

/// The number of an entry, also with the version and the marks that it is shown with.
fn number(text: &str) -> Option<MemoryId> {
    let text = text.trim().trim_matches(['[', ']', '#', ',']);
    let id = text.split_once('.').map_or(text, |(id, _)| id);
    let id: i64 = id.parse().ok()?;
    (id > 0).then_some(MemoryId(id))
}

fn forgotten(rest: &str) -> Option<MemoryOrder> {
    let entries: Option<Vec<MemoryId>> = rest.split_whitespace().map(number).collect();
    let entries = entries.filter(|it| !it.is_empty() && it.len() <= CHANGES_MAX)?;
    Some(MemoryOrder::Forget { entries })
}

fn changed(rest: &str) -> Option<MemoryOrder> {
    let (entry, text) = split(rest);
    let text = text.trim_start_matches(':').trim();
    let entry = number(entry.trim_end_matches(':'))?;
    (!text.is_empty()).then(|| MemoryOrder::Change {
        entry,
        text: text.to_owned(),
    })
}

/// What somebody asks for about what is remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryCommand {
    /// What they ask for.
    pub order: MemoryOrder,
    /// The agents of the channel.
    pub agents: Vec<AgentName>,
    /// Whether its person administers the bot.
    pub is_admin: bool,
    /// Whether nobody else is there.
    pub is_direct: bool,
    /// In which language they are answered.
    pub language: Language,
}

/// What is remembered, as one person may see it where they ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemorySeen {
    /// What may appear there: what they said, what is about them, and what is of the room.
    pub here: Vec<StoredMemory>,
    /// What they said elsewhere; only where nobody else is there.
    pub elsewhere: Vec<StoredMemory>,
    /// How many entries elsewhere are about them and said by others.
    pub about_elsewhere: usize,
}

impl MemorySeen {
    /// The entries that may appear in a room and that a person is shown: the newest first.
    #[must_use]
    pub fn of(
        mut here: Vec<StoredMemory>,
        mut elsewhere: Vec<StoredMemory>,
        about_elsewhere: usize,
        person: ParticipantId,
    ) -> Self {
        let is_shown = |entry: &StoredMemory| {
            let subject = entry.subject.as_ref().map(|it| it.row);
            entry.teller.row == person || subject.is_none_or(|subject| subject == person)
        };
        here.retain(is_shown);
        elsewhere.retain(|entry| entry.teller.row == person);
        Self {
            here,
            elsewhere,
            about_elsewhere,
        }
    }

    /// An entry of a number among them.
    #[must_use]
    pub fn entry(&self, id: MemoryId) -> Option<&StoredMemory> {
        let mut all = self.here.iter().chain(&self.elsewhere);
        all.find(|entry| entry.at.id == id)
    }

    /// The list, for the person; `room` = the platform's id of where they ask.
    #[must_use]
    pub fn text(&self, room: &str, language: Language) -> String {
        let mut lines = Vec::new();
        let mut list = |title: String, entries: &[StoredMemory]| {
            if entries.is_empty() {
                return;
            }
            lines.push(title);
            let shown = entries.iter().take(LISTED_MAX);
            let shown = shown.map(|it| entry_line(it, room, LISTED_CHARS, language));
            lines.extend(shown.map(|line| format!("- {line}")));
            if entries.len() > LISTED_MAX {
                let older = language.memory_older(entries.len() - LISTED_MAX);
                lines.push(format!("- {older}"));
            }
        };
        list(language.memory_here(), &self.here);
        list(language.memory_elsewhere(), &self.elsewhere);
        if lines.is_empty() {
            lines.push(language.memory_nothing());
        }
        if self.about_elsewhere > 0 {
            lines.push(language.memory_about_elsewhere(self.about_elsewhere));
        }
        lines.push(language.memory_help());
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remembering::MemoryKind;
    use crate::remembering::telling::testing::entry;

    #[test]
    fn an_order_is_read_as_people_write_it() {
        use MemoryOrder::{Change, Forget, List, Other, Share};
        let id = MemoryId;
        let change = |entry, text: &str| Change {
            entry: id(entry),
            text: text.to_owned(),
        };
        let table = [
            ("", List),
            (" LIST ", List),
            (
                "forget 12",
                Forget {
                    entries: vec![id(12)],
                },
            ),
            (
                "Forget [12.1], #13",
                Forget {
                    entries: vec![id(12), id(13)],
                },
            ),
            ("change 12 is away in  July", change(12, "is away in  July")),
            ("change [12.3]: away", change(12, "away")),
            (
                "share 7",
                Share {
                    entry: id(7),
                    is_shared: true,
                },
            ),
            (
                "unshare 7",
                Share {
                    entry: id(7),
                    is_shared: false,
                },
            ),
            ("forget", Other),
            ("forget me", Other),
            ("forget 1 2 3 4 5 6 7 8 9 10 11", Other),
            ("forget -1", Other),
            ("forget 0", Other),
            ("forget 99999999999999999999", Other),
            ("change 12", Other),
            ("share", Other),
            ("of mine", Other),
        ];
        for (text, order) in table {
            assert_eq!(MemoryOrder::read(text), order, "{text:?}");
        }
        let long = "1 ".repeat(200_000);
        assert_eq!(MemoryOrder::read(&format!("forget {long}")), Other);
    }

    #[test]
    fn a_person_is_shown_what_is_theirs_and_the_rooms() {
        let mut of_bob = entry(3, MemoryKind::Fact, "likes tea");
        of_bob.teller.row = ParticipantId(2);
        of_bob.subject = Some(of_bob.teller.clone());
        let mut of_room = entry(2, MemoryKind::Core, "deploys are on Thursdays");
        of_room.teller.row = ParticipantId(2);
        of_room.subject = None;
        let own = entry(1, MemoryKind::Fact, "is away in June");
        let seen = MemorySeen::of(
            vec![of_bob.clone(), of_room, own],
            vec![of_bob],
            2,
            ParticipantId(1),
        );
        assert_eq!(seen.entry(MemoryId(3)), None);
        let text = seen.text("C1", Language::English);
        let lines: Vec<&str> = text.lines().collect();
        insta::assert_snapshot!(lines[..lines.len() - 1].join("\n"), @r#"
        What I remember here of you and of this room:
        - [2.1] Ann said of this room here on 2023-11-14: deploys are on Thursdays
        - [1.1] Ann said here on 2023-11-14: is away in June
        In other rooms I remember 2 about you that others said: ask me there, or "forget me" to have all of it gone.
        "#);
        let nothing = MemorySeen::default().text("C1", Language::English);
        assert!(nothing.starts_with("I remember nothing here"), "{nothing}");
    }
}
