//! Finds the known word that is nearest to a mistyped one.

/// The candidate with the fewest typing mistakes compared with `word`, if it is near enough: at most one mistake for
/// each three letters, but one is always allowed.
pub(super) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let allowed = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (mistakes(&word.to_lowercase(), candidate), candidate))
        .filter(|(count, _)| *count <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Counts the typing mistakes between two words: a letter added, dropped, changed, or two
/// neighbours swapped (optimal string alignment distance).
fn mistakes(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut rows = vec![vec![0_usize; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (rows[i - 1][j] + 1)
                .min(rows[i][j - 1] + 1)
                .min(rows[i - 1][j - 1] + change);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_counted() {
        let cases = [
            ("", "", 0),
            ("abc", "abc", 0),
            ("abc", "", 3),
            ("bot_tokn", "bot_token", 1),
            ("teh", "the", 1),
            ("kitten", "sitting", 3),
        ];
        for (a, b, want) in cases {
            assert_eq!((mistakes(a, b), mistakes(b, a)), (want, want), "{a} {b}");
        }
    }

    #[test]
    fn only_a_near_word_is_suggested() {
        let words = ["bot_token", "app_token", "sockets"];
        assert_eq!(nearest("bot_tokn", words), Some("bot_token"));
        assert_eq!(nearest("SOCKET", words), Some("sockets"));
        assert_eq!(nearest("colour", words), None);
        assert_eq!(nearest("x", words), None);
    }
}
