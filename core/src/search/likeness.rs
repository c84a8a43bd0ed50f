//! Whether two lines say nearly the same.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Lines are near-identical from this share of common words on, of those that either has. Two lines of five
/// telling words of which one differs (another town, another name) are two lines.
const COMMON_SHARE: f64 = 0.75;

/// What a line is compared by: its telling words, without numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Likeness {
    words: BTreeSet<u64>,
}

impl Likeness {
    /// That of the words of a line; words of a language's grammar are left out by the caller.
    #[must_use]
    pub fn of<'a>(words: impl Iterator<Item = &'a str>) -> Self {
        let telling = words.filter(|word| !word.chars().any(char::is_numeric));
        let hash = |word: &str| {
            let mut hasher = DefaultHasher::new();
            word.hash(&mut hasher);
            hasher.finish()
        };
        Self {
            words: telling.map(hash).collect(),
        }
    }

    /// Whether two lines say nearly the same. Lines without a telling word are like no other.
    #[must_use]
    pub fn is_near(&self, other: &Self) -> bool {
        let common = self.words.intersection(&other.words).count();
        let either = self.words.len() + other.words.len() - common;
        let share = |part: usize, of: usize| part as f64 / of as f64;
        common > 0 && share(common, either) >= COMMON_SHARE
    }
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
