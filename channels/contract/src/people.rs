//! Whom an answer may really mention, and where it does.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::work::looked_at;

/// The most people that one answer can mention; further ones are left out.
const PEOPLE_MAX: usize = 200;

/// A person in the room.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Person {
    /// The name by which the agent knows them.
    pub name: String,
    /// Their id on the platform.
    pub id: String,
}

/// The people whom an answer may really mention; empty by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct People {
    /// The names as a tree of characters; the first node is the root. Empty without people.
    names: Vec<Letter>,
}

/// A node in the tree of names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Letter {
    /// The node for each next character.
    next: BTreeMap<char, usize>,
    /// The person whose name ends here.
    person: Option<Person>,
}

impl People {
    /// An empty set: every mention is plain text, and notifies nobody.
    #[must_use]
    pub fn nobody() -> Self {
        Self::default()
    }

    /// These people; a name that two of them have mentions neither.
    #[must_use]
    pub fn known(people: impl IntoIterator<Item = Person>) -> Self {
        let mut by_name: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for Person { name, id } in people {
            if !name.trim().is_empty() && !id.is_empty() {
                by_name.entry(name).or_default().insert(id);
            }
        }
        let mut known: Vec<Person> = by_name
            .into_iter()
            .filter(|(_, ids)| ids.len() == 1)
            .flat_map(|(name, ids)| ids.into_iter().map(move |id| (name.clone(), id)))
            .map(|(name, id)| Person { name, id })
            .collect();
        known.sort_by_key(|person| std::cmp::Reverse(person.name.len()));
        known.truncate(PEOPLE_MAX);
        let mut people = Self::default();
        known.into_iter().for_each(|person| people.add(person));
        people
    }

    fn add(&mut self, person: Person) {
        if self.names.is_empty() {
            self.names.push(Letter::default());
        }
        let mut at = 0;
        for c in person.name.chars() {
            let new = self.names.len();
            at = *self.names[at].next.entry(c).or_insert(new);
            if at == new {
                self.names.push(Letter::default());
            }
        }
        self.names[at].person = Some(person);
    }

    /// Follows a text through the tree of names: the node of each character, and the rest of the text there. Takes at
    /// most as many steps as the longest name has characters, however many names there are.
    fn way<'s, 't>(&'s self, text: &'t str) -> impl Iterator<Item = (&'s Letter, &'t str)> {
        let mut letter = self.names.first();
        let mut rest = text.chars();
        std::iter::from_fn(move || {
            looked_at(1);
            let next = letter?.next.get(&rest.next()?)?;
            letter = self.names.get(*next);
            Some((letter?, rest.as_str()))
        })
    }

    /// Whom the text after an `@` names: if one name begins with another, the longer one.
    fn named(&self, text: &str) -> Option<&Person> {
        let whole = self
            .way(text)
            .filter(|(_, rest)| !rest.starts_with(is_word));
        whole
            .filter_map(|(letter, _)| letter.person.as_ref())
            .last()
    }

    /// The people whom a text names, each once.
    #[must_use]
    pub fn named_in(&self, text: &str) -> Vec<Person> {
        let ats = text.match_indices('@');
        let named = ats.filter_map(|(at, _)| self.named(&text[at + 1..]));
        let by_name: BTreeMap<&str, &Person> = named.map(|it| (it.name.as_str(), it)).collect();
        by_name.into_values().cloned().collect()
    }

    /// Where a text mentions people: the bytes of `@Name`, in order, and the person.
    #[must_use]
    pub fn mentions_in(&self, text: &str) -> Vec<(Range<usize>, &Person)> {
        let mut mentions: Vec<(Range<usize>, &Person)> = Vec::new();
        if self.names.is_empty() {
            return mentions;
        }
        looked_at(text.len());
        for (at, _) in text.match_indices('@') {
            let done = mentions.last().map_or(0, |(bytes, _)| bytes.end);
            if at < done || text[..at].ends_with(is_word) {
                continue;
            }
            if let Some(person) = self.named(&text[at + 1..]) {
                mentions.push((at..at + 1 + person.name.len(), person));
            }
        }
        mentions
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(name: &str, id: &str) -> Person {
        Person {
            name: name.to_owned(),
            id: id.to_owned(),
        }
    }

    #[test]
    fn known_names_are_mentions_and_shared_ones_are_not() {
        let people = People::known([
            person("Ann", "U1"),
            person("Ann Lee", "U2"),
            person("Bob", "U3"),
            person("Bob", "U4"),
            person(" ", "U5"),
        ]);
        let mentions = |text: &str| -> Vec<(String, String)> {
            let found = people.mentions_in(text).into_iter();
            found
                .map(|(bytes, person)| (text[bytes].to_owned(), person.id.clone()))
                .collect()
        };
        let one = |text: &str, id: &str| vec![(text.to_owned(), id.to_owned())];
        assert_eq!(mentions("hi @Ann!"), one("@Ann", "U1"));
        assert_eq!(
            mentions("@Ann Lee and @Anna, x@Ann, @Bob"),
            one("@Ann Lee", "U2")
        );
        assert_eq!(People::nobody().mentions_in("@Ann"), []);
    }

    /// A room full of people whose names begin alike, and a text that names them and almost names them.
    #[test]
    fn a_name_is_found_by_its_letters_not_by_going_through_all_people() {
        let name = |n: usize| format!("Anna {}", "Maria ".repeat(n % 7) + &n.to_string());
        let room: Vec<Person> = (0..PEOPLE_MAX)
            .map(|n| person(&name(n), &format!("U{n}")))
            .collect();
        let people = People::known(room.clone());
        let text: String = (0..3 * PEOPLE_MAX)
            .map(|n| format!("@{} and @Anna Mari, @{}x, ", name(n), name(n / 2)))
            .collect();
        let mut steps = 0;
        for (at, _) in text.match_indices('@') {
            let after = &text[at + 1..];
            // What a search through all people finds.
            let all = room.iter().filter(|person| {
                let rest = after.strip_prefix(person.name.as_str());
                rest.is_some_and(|rest| !rest.starts_with(is_word))
            });
            let expected = all.max_by_key(|person| person.name.len());
            assert_eq!(people.named(after), expected, "{after:.60}");
            steps += people.way(after).count();
        }
        assert!(steps <= text.len(), "{steps} for {} bytes", text.len());
    }
}
