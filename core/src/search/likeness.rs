//! Whether two lines say nearly the same.

use std::cmp::Ordering;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Lines are near-identical from this share of common words on, of those that either has. Two lines of five
/// telling words of which one differs (another town, another name) are two lines.
const COMMON_SHARE: f64 = 0.75;

/// What a line is compared by: its telling words, without numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Likeness {
    /// Hashes of the words, ascending, each once.
    words: Vec<u64>,
}

impl Likeness {
    /// The likeness of a line's words; the caller leaves out words of a language's grammar.
    #[must_use]
    pub fn of<'a>(words: impl Iterator<Item = &'a str>) -> Self {
        let telling = words.filter(|word| !word.chars().any(char::is_numeric));
        let hash = |word: &str| {
            let mut hasher = DefaultHasher::new();
            word.hash(&mut hasher);
            hasher.finish()
        };
        let mut words: Vec<u64> = telling.map(hash).collect();
        words.sort_unstable();
        words.dedup();
        Self { words }
    }

    /// Whether two lines say nearly the same. Lines without a telling word are like no other.
    #[must_use]
    pub fn is_near(&self, other: &Self) -> bool {
        let share = |part: usize, of: usize| part as f64 / of as f64;
        let (fewer, more) = match self.words.len() <= other.words.len() {
            true => (&self.words, &other.words),
            false => (&other.words, &self.words),
        };
        if fewer.is_empty() || share(fewer.len(), more.len()) < COMMON_SHARE {
            return false;
        }
        let common = common(fewer, more);
        share(common, fewer.len() + more.len() - common) >= COMMON_SHARE
    }
}

/// How many of one ascending list's hashes are in the other.
fn common(a: &[u64], b: &[u64]) -> usize {
    let (mut at_a, mut at_b, mut common) = (0, 0, 0);
    while at_a < a.len() && at_b < b.len() {
        match a[at_a].cmp(&b[at_b]) {
            Ordering::Less => at_a += 1,
            Ordering::Greater => at_b += 1,
            Ordering::Equal => {
                common += 1;
                at_a += 1;
                at_b += 1;
            }
        }
    }
    common
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_differ_in_numbers_or_a_small_word_are_near() {
        let cases = [
            (
                "standup moved to 10 see you there",
                "standup moved to 9 see you there",
                true,
            ),
            (
                "guest network code lisbon office",
                "guest network code madrid office",
                false,
            ),
            ("deploy done", "deploy done", true),
            ("deploy done", "deploy failed", false),
            ("4711", "4711", false),
            ("", "", false),
            ("a b c d e f g h", "a b c d e f g x", true),
        ];
        for (a, b, expected) in cases {
            let likeness = |text: &str| Likeness::of(text.split(' ').filter(|it| !it.is_empty()));
            assert_eq!(likeness(a).is_near(&likeness(b)), expected, "{a} / {b}");
        }
    }
}
