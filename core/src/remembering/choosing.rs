//! What stands in a prompt: the core notes of the room, and what is found for the question.

use std::collections::{BTreeMap, BTreeSet};

use crate::remembering::{
    CORE_NOTES_MAX, CORE_NOTES_MAX_CHARS, FOUND_MAX, MemoryKind, StoredMemory,
};
use crate::search::stems::stems_of;

/// Entries are shown down to this part of the best one's score: a name alone, which many have, clears no bar beside an
/// entry that has the question's other words, too.
const BESIDE_BEST: f64 = 0.5;

/// What was chosen of the entries that may appear, by their places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    /// Core notes, the oldest first.
    pub core: Vec<usize>,
    /// Found for the question, the best first.
    pub found: Vec<usize>,
}

/// Chooses what stands in a prompt. Entries that were replaced do not.
#[must_use]
pub fn choose(entries: &[StoredMemory], question: &str) -> Chosen {
    let holds = |place: &usize| entries[*place].until_ms.is_none();
    let is_core = |place: &usize| entries[*place].kind == MemoryKind::Core;
    let mut newest: Vec<usize> = (0..entries.len()).filter(holds).filter(is_core).collect();
    newest.sort_by_key(|place| std::cmp::Reverse(entries[*place].at.id));
    let mut left = CORE_NOTES_MAX_CHARS;
    let mut core: Vec<usize> = Vec::new();
    for place in newest.into_iter().take(CORE_NOTES_MAX) {
        let chars = entries[place].text.chars().count();
        // Notes of other rooms that are shared come on top of the room's own.
        if chars <= left {
            left -= chars;
            core.push(place);
        }
    }
    core.reverse();
    let others = |place: &usize| holds(place) && !core.contains(place);
    let places: Vec<usize> = (0..entries.len()).filter(others).collect();
    let scored = scored(entries, &places, &[question.to_owned()]);
    let bar = scored.first().map_or(0.0, |(score, _)| score * BESIDE_BEST);
    let cleared = scored.into_iter().filter(|(score, _)| *score >= bar);
    Chosen {
        core,
        found: cleared.map(|(_, place)| place).take(FOUND_MAX).collect(),
    }
}

/// The entries at these places that have a word of a query, the best first: rare words count more; of equals the newest
/// comes first. Without a word to look for there is none.
#[must_use]
pub fn found(entries: &[StoredMemory], places: &[usize], queries: &[String]) -> Vec<usize> {
    let scored = scored(entries, places, queries);
    scored.into_iter().map(|(_, place)| place).collect()
}

/// The same for each query by itself.
#[must_use]
pub fn found_each(
    entries: &[StoredMemory],
    places: &[usize],
    queries: &[String],
) -> Vec<Vec<usize>> {
    let entries = Stemmed::of(entries, places);
    let each = queries.iter().map(|query| entries.scored(&stems_of(query)));
    each.map(|scored| scored.into_iter().map(|(_, place)| place).collect())
        .collect()
}

/// Entries with how well each answers.
fn scored(entries: &[StoredMemory], places: &[usize], queries: &[String]) -> Vec<(f64, usize)> {
    let wanted: BTreeSet<String> = queries.iter().flat_map(|query| stems_of(query)).collect();
    match wanted.is_empty() {
        true => Vec::new(),
        false => Stemmed::of(entries, places).scored(&wanted),
    }
}

/// Entries with the stems of their words.
struct Stemmed<'a> {
    entries: &'a [StoredMemory],
    stems: Vec<(usize, BTreeSet<String>)>,
}

impl<'a> Stemmed<'a> {
    fn of(entries: &'a [StoredMemory], places: &[usize]) -> Self {
        let stems_at = |place: &usize| {
            let entry = &entries[*place];
            // Left out where it is the teller's own name, which would be in all that they said.
            let subject = entry.subject.as_ref().filter(|_| !entry.is_own_words());
            let text = [
                entry.text.as_str(),
                subject.map_or("", |it| it.name.as_str()),
            ]
            .join("\n");
            (*place, stems_of(&text))
        };
        Self {
            entries,
            stems: places.iter().map(stems_at).collect(),
        }
    }

    /// Those that have a wanted stem, the best first.
    fn scored(&self, wanted: &BTreeSet<String>) -> Vec<(f64, usize)> {
        let common = |(place, stems): &(usize, BTreeSet<String>)| {
            let common: Vec<String> = wanted.intersection(stems).cloned().collect();
            (*place, common)
        };
        let common: Vec<(usize, Vec<String>)> = self.stems.iter().map(common).collect();
        let mut with: BTreeMap<&str, usize> = BTreeMap::new();
        for stem in common.iter().flat_map(|(_, stems)| stems) {
            *with.entry(stem).or_default() += 1;
        }
        let all = common.len() as f64;
        let weight = |stem: &String| (1.0 + all / with[stem.as_str()] as f64).ln();
        let mut scored: Vec<(f64, usize)> = common
            .iter()
            .filter(|(_, stems)| !stems.is_empty())
            .map(|(place, stems)| (stems.iter().map(weight).sum(), *place))
            .collect();
        scored.sort_by(|(one, a), (other, b)| {
            let newest = self.entries[*b].at.id.cmp(&self.entries[*a].at.id);
            other.total_cmp(one).then(newest)
        });
        scored
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remembering::telling::testing::entry;

    #[test]
    fn core_notes_always_stand_there_and_the_rest_by_the_question() {
        let mut entries = vec![
            entry(1, MemoryKind::Fact, "Ann is away in the first week of June"),
            entry(2, MemoryKind::Core, "Answer in French here"),
            entry(3, MemoryKind::Fact, "The wifi code is 4711"),
            entry(4, MemoryKind::Core, "Deploys are on Thursdays"),
        ];
        let chosen = choose(&entries, "when is Ann away?");
        assert_eq!((chosen.core, chosen.found), (vec![1, 3], vec![0]));
        assert_eq!(choose(&entries, "hello").found, Vec::<usize>::new());
        entries[0].until_ms = Some(5);
        assert_eq!(
            choose(&entries, "when is Ann away?").found,
            Vec::<usize>::new()
        );
    }

    #[test]
    fn core_notes_keep_within_their_limits() {
        let long = "x".repeat(1_500);
        let notes = (1..=5).map(|n| entry(n, MemoryKind::Core, &long));
        let notes: Vec<StoredMemory> = notes.collect();
        assert_eq!(choose(&notes, "").core, [3, 4]);
        let many = (1..=30).map(|n| entry(n, MemoryKind::Core, "short"));
        let many: Vec<StoredMemory> = many.collect();
        assert_eq!(choose(&many, "").core.len(), CORE_NOTES_MAX);
    }

    #[test]
    fn rare_words_count_more_and_of_equals_the_newest() {
        let entries = vec![
            entry(1, MemoryKind::Fact, "the deploy needs the vault key"),
            entry(2, MemoryKind::Fact, "the deploy is at nine"),
            entry(3, MemoryKind::Fact, "the deploy is at ten"),
        ];
        let all = [0, 1, 2];
        let asked = |query: &str| found(&entries, &all, &[query.to_owned()]);
        assert_eq!(asked("deploy vault")[0], 0);
        assert_eq!(asked("deploy"), [2, 1, 0]);
        assert_eq!(asked(""), Vec::<usize>::new());
    }
}
