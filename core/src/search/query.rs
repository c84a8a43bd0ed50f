//! What a query asks for.
//!
//! Plain words are wished: the more of them a line has, and the rarer they are, the better it answers. A `"phrase"`,
//! the beginning of a word (`dep*`) and a word with a plus before it (`+deploy`) are required. Other operators mean
//! nothing.

use std::collections::BTreeSet;

use super::language::{Languages, StemLanguage};
use super::stems::stems_of_word;
use super::text::{Word, WordKind, words};

/// Queries are cut to this length, in characters.
pub const QUERY_MAX_CHARS: usize = 1_000;
/// The most words of a query that are looked for, and the most that are required.
pub const TERMS_MAX: usize = 32;

/// What a query asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// What lines should have.
    pub wished: Vec<WordWish>,
    /// What lines must have.
    pub required: Vec<Required>,
    /// Whether the wished words only hold sentences together (`who are you`): no index of stems has them.
    pub is_only_grammar: bool,
    /// Whether the query was longer than its limits.
    pub is_cut: bool,
}

/// A word that lines should have.
#[derive(Clone, Debug, PartialEq)]
pub struct WordWish {
    /// The word in plain form.
    pub plain: String,
    /// Its stems in every language that it may be of.
    pub stems: Vec<String>,
    /// How much it counts beside others of the query: 1, and less for the halves of a word with a hyphen.
    pub weight: f64,
    /// Whether it is a character or two of a script without spaces.
    pub is_gram: bool,
    /// Whether it is written as a name: with a capital inside a sentence, in a language that writes few words so.
    pub is_name: bool,
    /// Words that stand for it where no line has it, as stems, with how much they count.
    pub stands_in: Vec<(String, f64)>,
}

/// Words that a line must have one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Required {
    /// The required words, normalised.
    pub words: Vec<String>,
    /// Whether the last one is the beginning of a word.
    pub is_beginning: bool,
    /// As it was asked for, for an index that has its own way of reading words.
    pub asked: String,
}

impl Query {
    /// What a text asks for.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let cut: String = text.chars().take(QUERY_MAX_CHARS).collect();
        let is_quote = |c: char| matches!(c, '"' | '“' | '”' | '„');
        let pieces: Vec<&str> = cut.split(is_quote).collect();
        let (mut required, mut plain) = (Vec::new(), String::new());
        for (n, piece) in pieces.iter().enumerate() {
            // A quote that is never closed separates words like any other sign.
            if n % 2 == 1 && n + 1 < pieces.len() {
                required.extend(Required::of(piece, false));
                continue;
            }
            for word in piece.split(|c: char| c.is_whitespace() || c == '\0') {
                let start = word.trim_end_matches('*');
                let is_beginning =
                    start.len() < word.len() && start.ends_with(char::is_alphanumeric);
                match start.strip_prefix('+') {
                    Some(start) => required.extend(Required::of(start, is_beginning)),
                    None if is_beginning => required.extend(Required::of(start, true)),
                    None => {
                        plain.push(' ');
                        plain.push_str(word);
                    }
                }
            }
            plain.push(' ');
        }
        let (mut wished, is_only_grammar) = wishes(&plain);
        let names = names(&plain);
        for wish in &mut wished {
            wish.is_name = names.contains(&wish.plain);
        }
        let is_cut =
            cut.len() < text.len() || wished.len() > TERMS_MAX || required.len() > TERMS_MAX;
        wished.truncate(TERMS_MAX);
        required.truncate(TERMS_MAX);
        Self {
            wished,
            required,
            is_only_grammar,
            is_cut,
        }
    }

    /// Whether it asks for nothing: every line answers it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.wished.is_empty() && self.required.is_empty()
    }
}

/// The words of a text that are written as names, in plain form; none in German, which writes all nouns so.
fn names(text: &str) -> BTreeSet<String> {
    let words = words(text);
    let may_be_german = Languages::of(&words)
        .each()
        .any(|it| it == StemLanguage::German);
    let is_capital = |c: char| c.is_uppercase() && !(may_be_german && c <= '\u{ff}');
    let begins_sentence = |at: usize| {
        let before = text[..at].trim_end();
        before.is_empty() || before.ends_with(['.', '!', '?', ':', '\n'])
    };
    let is_name =
        |word: &&Word| text[word.at..].starts_with(is_capital) && !begins_sentence(word.at);
    let named = words.iter().filter(is_name);
    named.map(|word| word.plain.clone()).collect()
}

/// The telling words of a text, each once; all of them, if none tells anything. Returns also whether that is so.
fn wishes(text: &str) -> (Vec<WordWish>, bool) {
    let words = words(text);
    let languages = Languages::of(&words);
    let tells = |word: &&Word| !languages.is_grammar(&word.plain);
    let telling: Vec<&Word> = words.iter().filter(tells).collect();
    let is_only_grammar = telling.is_empty() && !words.is_empty();
    let chosen = if is_only_grammar {
        words.iter().collect()
    } else {
        telling
    };
    let mut wished: Vec<WordWish> = Vec::new();
    for word in &chosen {
        let is_gram = matches!(word.kind, WordKind::Single | WordKind::Pair);
        // A single character tells next to nothing where a pair begins with it.
        let has_pair = |it: &&&Word| it.kind == WordKind::Pair && it.at == word.at;
        if word.kind == WordKind::Single && chosen.iter().any(|it| has_pair(&it)) {
            continue;
        }
        if wished.iter().any(|wish| wish.plain == word.plain) {
            continue;
        }
        let is_half = |it: &&&Word| {
            let is_joined = it.kind == WordKind::Joined && word.kind == WordKind::Spaced;
            is_joined && (it.at == word.at || it.plain.starts_with(&word.plain))
        };
        let weight = if chosen.iter().any(|it| is_half(&it)) {
            0.5
        } else {
            1.0
        };
        wished.push(WordWish {
            plain: word.plain.clone(),
            stems: stems_of_word(word, Languages::all()),
            weight,
            is_gram,
            is_name: false,
            stands_in: Vec::new(),
        });
    }
    (wished, is_only_grammar)
}

impl Required {
    fn of(text: &str, is_beginning: bool) -> Option<Self> {
        let asked = text.replace('\0', " ");
        let words = words(&asked);
        let sequence = words.into_iter().filter(|word| is_in_sequence(word.kind));
        let words: Vec<String> = sequence.map(|word| word.plain).collect();
        (!words.is_empty()).then_some(Self {
            words,
            is_beginning,
            asked,
        })
    }

    /// Whether the words of a line, in its order, hold it.
    #[must_use]
    pub fn is_in(&self, line: &[&str]) -> bool {
        let Some((last, first)) = self.words.split_last() else {
            return true;
        };
        line.windows(self.words.len()).any(|place| {
            let ends = place.last().is_some_and(|word| {
                if self.is_beginning {
                    word.starts_with(last.as_str())
                } else {
                    word == last
                }
            });
            ends && first.iter().zip(place).all(|(asked, word)| asked == word)
        })
    }
}

/// Whether words of that kind, one after the other, are the text.
pub(crate) fn is_in_sequence(kind: WordKind) -> bool {
    matches!(kind, WordKind::Spaced | WordKind::Single)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_a_capital_inside_a_sentence() {
        let cases: [(&str, &[&str]); 5] = [
            ("what is the code of the Oslo office?", &["oslo"]),
            (
                "Where is it? What did Ann tell Maple & Sons",
                &["ann", "maple", "sons"],
            ),
            ("Wie lautet das Passwort im Büro Oslo?", &[]),
            ("где ключ от офиса в Осло", &["осло"]),
            ("THE DEPLOY", &["deploy"]),
        ];
        for (text, expected) in cases {
            let query = Query::parse(text);
            let names = query.wished.iter().filter(|wish| wish.is_name);
            let names: Vec<&str> = names.map(|wish| wish.plain.as_str()).collect();
            assert_eq!(names, expected, "{text}");
        }
    }

    fn wished(text: &str) -> Vec<String> {
        let query = Query::parse(text);
        query.wished.into_iter().map(|wish| wish.plain).collect()
    }

    fn required(text: &str) -> Vec<String> {
        let shown = |it: &Required| it.words.join(" ") + if it.is_beginning { "*" } else { "" };
        Query::parse(text).required.iter().map(shown).collect()
    }

    #[test]
    fn words_are_wished_and_marked_ones_required() {
        let cases: [(&str, &[&str], &[&str]); 16] = [
            ("", &[], &[]),
            ("  % \"\" * + \u{1f389}", &[], &[]),
            ("Lisbon wifi password", &["lisbon", "wifi", "password"], &[]),
            (
                "What is the wifi password in Lisbon?",
                &["wifi", "password", "lisbon"],
                &[],
            ),
            (
                "Wie ist das Passwort für das WLAN",
                &["passwort", "wlan"],
                &[],
            ),
            ("who are you", &["who", "are", "you"], &[]),
            ("deploy deploy Deploy", &["deploy"], &[]),
            ("deploy \"at nine\"", &["deploy"], &["at nine"]),
            ("“at nine” deploy", &["deploy"], &["at nine"]),
            ("\"at nine", &["nine"], &[]),
            ("depl* x +Lisbon +no*", &["x"], &["depl*", "lisbon", "no*"]),
            ("wi-fi", &["wi", "fi", "wifi"], &[]),
            ("東京", &["東京"], &[]),
            ("京", &["京"], &[]),
            ("\"東京\"", &[], &["東 京"]),
            ("'); DROP TABLE turns; --", &["drop", "table", "turns"], &[]),
        ];
        for (text, words, phrases) in cases {
            assert_eq!(wished(text), words, "{text:?}");
            assert_eq!(required(text), phrases, "{text:?}");
        }
        assert!(Query::parse("who are you").is_only_grammar);
        assert!(!Query::parse("who is Ada").is_only_grammar);
    }

    #[test]
    fn a_query_over_its_limits_is_cut_and_says_so() {
        let long = "x ".repeat(QUERY_MAX_CHARS / 2);
        assert!(!Query::parse(&long).is_cut);
        assert!(Query::parse(&(long + "y")).is_cut);
        let megabyte = Query::parse(&"word\"*+ ".repeat(131_072));
        assert!(megabyte.is_cut && megabyte.wished.len() <= 1);
        let many: String = (0..=TERMS_MAX).map(|n| format!("x{n} ")).collect();
        let many = Query::parse(&many);
        assert!(many.is_cut && many.wished.len() == TERMS_MAX);
    }

    #[test]
    fn what_is_required_stands_one_after_the_other() {
        let is_in = |query: &str, line: &[&str]| Query::parse(query).required[0].is_in(line);
        assert!(is_in("\"at nine\"", &["deploy", "at", "nine"]));
        assert!(!is_in("\"at nine\"", &["nine", "at"]));
        assert!(is_in("+dep*", &["we", "deploy"]));
        assert!(!is_in("+dep", &["we", "deploy"]));
        assert!(is_in("\"東京\"", &["東", "京"]));
    }
}
