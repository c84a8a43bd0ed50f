//! Whom an answer may mention for real, and where it does.

use std::rc::Rc;

use super::tree::{Run, push_run};

/// So many people can be mentioned; more are left out.
const PEOPLE_MAX: usize = 200;

/// Somebody in the room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// The name by which the agent knows them.
    pub name: String,
    /// The platform's id of them.
    pub id: String,
}

/// Those whom an answer may mention for real. Empty: nobody, which is the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct People {
    /// The longest name first, so that it wins over one that it begins with.
    by_length: Vec<Person>,
}

impl People {
    /// Nobody: every mention is text that tells nobody.
    #[must_use]
    pub fn nobody() -> Self {
        Self::default()
    }

    /// These people; a name that two of them have mentions neither.
    #[must_use]
    pub fn known(people: impl IntoIterator<Item = Person>) -> Self {
        let mut known: Vec<Person> = people
            .into_iter()
            .filter(|person| !person.name.trim().is_empty() && !person.id.is_empty())
            .collect();
        known.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
        known.dedup();
        let is_shared =
            |person: &Person| known.iter().filter(|it| it.name == person.name).count() > 1;
        let mut by_length: Vec<Person> = known
            .iter()
            .filter(|person| !is_shared(person))
            .cloned()
            .collect();
        by_length.sort_by_key(|person| std::cmp::Reverse(person.name.len()));
        by_length.truncate(PEOPLE_MAX);
        Self { by_length }
    }

    /// Whom the text after an `@` names.
    fn named(&self, text: &str) -> Option<&Person> {
        self.by_length.iter().find(|person| {
            let rest = text.strip_prefix(person.name.as_str());
            rest.is_some_and(|rest| !rest.starts_with(is_word))
        })
    }

    /// Appends a run; `@Name` of one of them becomes a mention.
    pub(super) fn push_mentioned(&self, runs: &mut Vec<Run>, run: &Run) {
        if self.by_length.is_empty() || run.is_code || run.link.is_some() {
            return push_run(runs, run.clone());
        }
        let text = run.text.as_str();
        let mut done = 0;
        for (at, _) in text.match_indices('@') {
            let is_inside = at < done || text[..at].ends_with(is_word);
            let Some(person) = (!is_inside).then(|| self.named(&text[at + 1..])).flatten() else {
                continue;
            };
            push_run(runs, run.with_text(&text[done..at]));
            let end = at + 1 + person.name.len();
            runs.push(Run {
                mention: Some(Rc::from(person.id.as_str())),
                ..run.with_text(&text[at..end])
            });
            done = end;
        }
        push_run(runs, run.with_text(&text[done..]));
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
            let mut runs = Vec::new();
            people.push_mentioned(&mut runs, &Run::plain(text));
            assert_eq!(
                runs.iter().map(|run| run.text.as_str()).collect::<String>(),
                text
            );
            let found = runs.into_iter();
            found
                .filter_map(|run| Some((run.text, run.mention?.to_string())))
                .collect()
        };
        let one = |text: &str, id: &str| vec![(text.to_owned(), id.to_owned())];
        assert_eq!(mentions("hi @Ann!"), one("@Ann", "U1"));
        assert_eq!(
            mentions("@Ann Lee and @Anna, x@Ann, @Bob"),
            one("@Ann Lee", "U2")
        );
        let mut runs = Vec::new();
        People::nobody().push_mentioned(&mut runs, &Run::plain("@Ann"));
        assert_eq!(runs, [Run::plain("@Ann")]);
    }
}
