//! Substitutes for a word that no line has: words that differ by typing errors, and parts of compounds.

/// Shorter words are never taken for others, in characters.
pub const MISSPELT_MIN_CHARS: usize = 4;
/// From this length on, two typing errors are allowed, in characters.
const TWO_SLIPS_MIN_CHARS: usize = 8;
/// The shortest part of a compound, in characters.
pub const PART_MIN_CHARS: usize = 4;

/// How a word may stand for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kinship {
    /// How many letters are left out, doubled, mistaken or swapped.
    Misspelt(u8),
    /// One is a part of the other.
    Part,
}

/// How two different plain words may stand for each other; `None` = not at all.
#[must_use]
pub fn kinship(asked: &[char], known: &[char]) -> Option<Kinship> {
    let slips_max = match asked.len() {
        0..MISSPELT_MIN_CHARS => 0,
        MISSPELT_MIN_CHARS..TWO_SLIPS_MIN_CHARS => 1,
        _ => 2,
    };
    // A number is another number, not a misspelt one.
    let has_digit = asked.iter().chain(known).any(|c| c.is_numeric());
    if slips_max > 0
        && !has_digit
        && let Some(slips) = slips(asked, known, slips_max).filter(|slips| *slips > 0)
    {
        return Some(Kinship::Misspelt(slips));
    }
    let (short, long) = match asked.len() < known.len() {
        true => (asked, known),
        false => (known, asked),
    };
    let is_part = short.len() >= PART_MIN_CHARS
        && short.len() < long.len()
        && (long.starts_with(short) || long.ends_with(short) || is_inside(short, long));
    is_part.then_some(Kinship::Part)
}

/// A part inside a compound has to be longer than one at its edges: `rain` is in `training`.
fn is_inside(short: &[char], long: &[char]) -> bool {
    short.len() > PART_MIN_CHARS && long.windows(short.len()).any(|part| part == short)
}

/// The edits between two words, a swap of neighbours counted as one (optimal string alignment); `None` = more than
/// allowed.
#[must_use]
pub fn slips(a: &[char], b: &[char], slips_max: u8) -> Option<u8> {
    let max = usize::from(slips_max);
    if a.len().abs_diff(b.len()) > max {
        return None;
    }
    let width = b.len() + 1;
    let (mut before, mut last) = (vec![0; width], (0..width).collect::<Vec<usize>>());
    for i in 1..=a.len() {
        let mut row = vec![i; width];
        for j in 1..width {
            let is_same = a[i - 1] == b[j - 1];
            let mut cost = (last[j - 1] + usize::from(!is_same))
                .min(last[j] + 1)
                .min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                cost = cost.min(before[j - 2] + 1);
            }
            row[j] = cost;
        }
        if row.iter().min().is_some_and(|least| *least > max) {
            return None;
        }
        before = std::mem::replace(&mut last, row);
    }
    let slips = last[b.len()];
    (slips <= max).then(|| u8::try_from(slips).unwrap_or(slips_max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_nowhere_stands_for_one_that_is_near() {
        use Kinship::{Misspelt, Part};
        let cases = [
            ("pasword", "password", Some(Misspelt(1))),
            ("passwrod", "password", Some(Misspelt(1))),
            ("lisbno", "lisbon", Some(Misspelt(1))),
            ("lisson", "lisboa", None),
            ("deplyomnet", "deployment", Some(Misspelt(2))),
            ("cat", "car", None),
            ("4711", "4712", None),
            ("v1024", "v1025", None),
            ("passwort", "gastepasswort", Some(Part)),
            ("gastepasswort", "passwort", Some(Part)),
            ("code", "codes", Some(Misspelt(1))),
            ("rain", "training", None),
            ("rechnung", "stromrechnungen", Some(Part)),
            ("abc", "abcdef", None),
            ("same", "same", None),
        ];
        for (asked, known, expected) in cases {
            let chars = |word: &str| word.chars().collect::<Vec<char>>();
            assert_eq!(
                kinship(&chars(asked), &chars(known)),
                expected,
                "{asked} {known}"
            );
        }
    }
}
