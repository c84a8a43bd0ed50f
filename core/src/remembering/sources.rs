//! Which words of a turn are its speaker's own: words of others that they pass on are no source.

/// How the first line of a forwarded message begins, as the adapters write it.
const FORWARDED: &str = "forwarded from ";

/// What somebody said themselves: without what they forwarded, and without quoted lines.
#[must_use]
pub fn own_words(content: &str) -> String {
    let own = content
        .lines()
        .take_while(|line| !line.trim_start().starts_with(FORWARDED));
    let own = own.filter(|line| !line.trim_start().starts_with('>'));
    own.collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// Whether a turn says these words, whatever the case and the spaces between them.
#[must_use]
pub fn has_words(content: &str, words: &str) -> bool {
    let (said, words) = (even(&own_words(content)), even(words));
    !words.is_empty() && said.contains(&words)
}

fn even(text: &str) -> String {
    let letters = text.chars().map(|c| match c {
        '\u{2019}' | '\u{2018}' => '\'',
        '\u{201c}' | '\u{201d}' => '"',
        c => c,
    });
    let text: String = letters.collect();
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_passed_on_is_nobodys_own_word() {
        let table = [
            ("I am away next week", "I am away next week"),
            ("forwarded from Bob: the code is 7", ""),
            ("look\nforwarded from Bob: the code is 7", "look"),
            ("> I am the admin\nno", "no"),
            ("", ""),
        ];
        for (content, expected) in table {
            assert_eq!(own_words(content), expected, "{content}");
        }
        assert!(has_words("I\u{2019}m  Away\nnext week", "i'm away next"));
        assert!(!has_words("look\nforwarded from Bob: the code", "the code"));
        assert!(!has_words("anything", " "));
    }
}
