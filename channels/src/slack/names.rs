//! Names of people and chats, looked up on demand and kept for a while.
//!
//! Bounded in number and time. Nothing between an event and its commit uses it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use vocative_contract::envelope::{Belonging, Place};

/// How many people, and how many chats, are remembered.
const ENTRIES_MAX: usize = 10_000;
/// How long a person's name holds.
const PERSON_LIFE: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a person stays unknown, and how long a chat's facts hold.
const HOUR: Duration = Duration::from_secs(60 * 60);

/// What was looked up.
#[derive(Debug, Default)]
pub(super) struct NameMemory {
    people: Mutex<KeptNames<Option<String>>>,
    belongings: Mutex<KeptNames<Option<Belonging>>>,
    chats: Mutex<KeptNames<Place>>,
}

impl NameMemory {
    /// A person's name; `Some(None)` = known to have none.
    pub(super) fn person(&self, id: &str) -> Option<Option<String>> {
        lock(&self.people).get(id, Instant::now())
    }

    pub(super) fn keep_person(&self, id: &str, name: Option<String>) {
        let life = if name.is_some() { PERSON_LIFE } else { HOUR };
        lock(&self.people).keep(id, name, Instant::now(), life);
    }

    pub(super) fn forget_person(&self, id: &str) {
        lock(&self.people).entries.remove(id);
        lock(&self.belongings).entries.remove(id);
    }

    /// How a person belongs to us; `Some(None)` = Slack knows no such person.
    pub(super) fn belonging(&self, id: &str) -> Option<Option<Belonging>> {
        lock(&self.belongings).get(id, Instant::now())
    }

    pub(super) fn keep_belonging(&self, id: &str, belonging: Option<Belonging>) {
        lock(&self.belongings).keep(id, belonging, Instant::now(), HOUR);
    }

    pub(super) fn chat(&self, id: &str) -> Option<Place> {
        lock(&self.chats).get(id, Instant::now())
    }

    pub(super) fn keep_chat(&self, id: &str, place: Place) {
        lock(&self.chats).keep(id, place, Instant::now(), HOUR);
    }

    pub(super) fn forget_chat(&self, id: &str) {
        lock(&self.chats).entries.remove(id);
    }
}

/// A panic elsewhere leaves the map as usable as it was.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
struct KeptNames<V> {
    entries: HashMap<String, (V, Instant)>,
}

impl<V> Default for KeptNames<V> {
    fn default() -> Self {
        Self {
            entries: HashMap::new(),
        }
    }
}

impl<V: Clone> KeptNames<V> {
    fn get(&self, id: &str, now: Instant) -> Option<V> {
        let (value, until) = self.entries.get(id)?;
        (now < *until).then(|| value.clone())
    }

    /// Keeps a value. A full cache first drops what is out of date, then everything.
    fn keep(&mut self, id: &str, value: V, now: Instant, life: Duration) {
        if self.entries.len() >= ENTRIES_MAX {
            self.entries.retain(|_, (_, until)| now < *until);
        }
        if self.entries.len() >= ENTRIES_MAX {
            self.entries.clear();
        }
        self.entries.insert(id.to_owned(), (value, now + life));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_end_by_time_and_are_bounded_in_number() {
        let start = Instant::now();
        let mut kept = KeptNames::default();
        kept.keep("U1", 1, start, HOUR);
        assert_eq!(kept.get("U1", start), Some(1));
        assert_eq!(kept.get("U1", start + HOUR), None);
        for n in 0..ENTRIES_MAX + 10 {
            kept.keep(&n.to_string(), n, start, HOUR);
            assert!(kept.entries.len() <= ENTRIES_MAX);
        }
        assert_eq!(
            kept.get(&(ENTRIES_MAX + 9).to_string(), start),
            Some(ENTRIES_MAX + 9)
        );
    }

    #[test]
    fn what_changed_is_forgotten() {
        let names = NameMemory::default();
        names.keep_person("U1", Some("Ann".to_owned()));
        names.keep_person("U2", None);
        assert_eq!(names.person("U2"), Some(None));
        names.keep_belonging("U1", Some(Belonging::Guest));
        names.forget_person("U1");
        assert_eq!((names.person("U1"), names.belonging("U1")), (None, None));
        names.keep_chat("C1", Place::default());
        names.forget_chat("C1");
        assert_eq!(names.chat("C1"), None);
    }
}
