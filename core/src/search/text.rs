//! A text as the words that a search compares.
//!
//! Words are normalised (NFKC), lower case, without format characters, soft hyphens and the vowel marks of Arabic
//! and Hebrew; the signs of Indic scripts are part of their words. Scripts without spaces between words give pairs
//! of characters, and single ones.

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::{decompose_canonical, is_combining_mark};
use vocative_contract::work::looked_at;

/// The longest word that is compared, in characters: the rest of a longer one is cut off.
pub const WORD_MAX_CHARS: usize = 48;
/// The most words of a text that are looked at.
pub const WORDS_MAX: usize = 4_000;

/// A word of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// As it is written, normalised, with its accents: what a stemmer reads.
    pub written: String,
    /// Its plain form: without accents.
    pub plain: String,
    /// What it is.
    pub kind: WordKind,
    /// Where it begins in the text, in bytes.
    pub at: usize,
    /// Its place among the words of the text.
    pub place: u32,
}

/// What a word of a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordKind {
    /// A word between spaces or signs.
    Spaced,
    /// A word with a hyphen in it, without the hyphen; its halves are words too.
    Joined,
    /// A character of a script without spaces.
    Single,
    /// Two characters of such a script that follow each other.
    Pair,
}

/// The words of a text, in its order.
#[must_use]
pub fn words(text: &str) -> Vec<Word> {
    looked_at(text.len());
    let mut words = WordSplitter::default();
    let mut start = None;
    for (at, c) in text.char_indices() {
        if is_of_word(c) {
            start.get_or_insert(at);
        } else if let Some(from) = start.take() {
            words.add(&text[from..at], from);
            words.hyphen = (c == '-' && words.ends_at(at)).then_some(at + 1);
        }
        if words.found.len() >= WORDS_MAX {
            return words.found;
        }
    }
    if let Some(from) = start {
        words.add(&text[from..], from);
    }
    words.found
}

#[derive(Default)]
struct WordSplitter {
    found: Vec<Word>,
    place: u32,
    /// Where the last spaced word ends, in bytes.
    end: usize,
    /// Where a word would begin that a hyphen joins with the last one.
    hyphen: Option<usize>,
}

impl WordSplitter {
    fn ends_at(&self, at: usize) -> bool {
        self.end == at
            && self
                .found
                .last()
                .is_some_and(|it| it.kind == WordKind::Spaced)
    }

    /// Adds the words of a piece without spaces.
    fn add(&mut self, piece: &str, at: usize) {
        let written = normalised(piece);
        let mut run = String::new();
        let mut is_unspaced_run = false;
        for c in written.chars() {
            let is_word = c.is_alphanumeric() || is_combining_mark(c);
            let is_unspaced = is_unspaced(c);
            if !run.is_empty() && (!is_word || is_unspaced != is_unspaced_run) {
                self.push_run(&run, is_unspaced_run, at);
                run.clear();
            }
            if is_word {
                is_unspaced_run = is_unspaced;
                run.push(c);
            }
        }
        if !run.is_empty() {
            self.push_run(&run, is_unspaced_run, at);
        }
        self.end = at + piece.len();
    }

    fn push_run(&mut self, run: &str, is_unspaced: bool, at: usize) {
        if is_unspaced {
            self.push_characters(run, at);
            return;
        }
        let joins = self.hyphen.take() == Some(at);
        let half = match self.found.last() {
            Some(last) if joins && is_letters(&last.written) && is_letters(run) => {
                Some(last.written.clone())
            }
            _ => None,
        };
        self.push(cut(run), WordKind::Spaced, at);
        if let Some(half) = half {
            self.push(cut(&(half + run)), WordKind::Joined, at);
        }
        self.place += 1;
    }

    fn push_characters(&mut self, run: &str, at: usize) {
        let mut before: Option<char> = None;
        for c in run.chars() {
            if let Some(first) = before {
                self.place -= 1;
                self.push([first, c].iter().collect(), WordKind::Pair, at);
                self.place += 1;
            }
            self.push(c.to_string(), WordKind::Single, at);
            self.place += 1;
            before = Some(c);
        }
    }

    fn push(&mut self, written: String, kind: WordKind, at: usize) {
        if self.found.len() >= WORDS_MAX {
            return;
        }
        let plain = plain(&written);
        let place = self.place;
        self.found.push(Word {
            written,
            plain,
            kind,
            at,
            place,
        });
    }
}

fn is_letters(word: &str) -> bool {
    word.chars().all(char::is_alphabetic)
}

fn cut(word: &str) -> String {
    word.chars().take(WORD_MAX_CHARS).collect()
}

/// Whether a character belongs to a word, or stands inside one unseen.
fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || (!c.is_ascii() && (c.is_alphanumeric() || is_combining_mark(c) || is_unseen(c)))
}

/// NFKC, lower case, without what is not seen or not always written.
fn normalised(piece: &str) -> String {
    if piece.is_ascii() {
        return piece.to_ascii_lowercase();
    }
    let seen = piece
        .chars()
        .filter(|c| !is_unseen(*c) && !is_vowel_mark(*c));
    let lower = seen.nfkc().flat_map(char::to_lowercase);
    let lower: String = lower
        .filter(|c| !is_vowel_mark(*c) && !is_unseen(*c))
        .collect();
    lower
        .nfc()
        .filter(|c| !matches!(c, '\u{300}'..='\u{36f}'))
        .collect()
}

/// Format characters, soft hyphens and variation selectors.
fn is_unseen(c: char) -> bool {
    matches!(u32::from(c),
        0xad | 0x600..=0x605 | 0x61c | 0x6dd | 0x70f | 0x180b..=0x180f | 0x200b..=0x200f
        | 0x202a..=0x202e | 0x2060..=0x206f | 0xfe00..=0xfe0f | 0xfeff | 0xfff9..=0xfffb
        | 0xe0000..=0xe01ef)
}

/// The marks of Arabic and Hebrew that most people leave out, and the Arabic stroke that only stretches a word.
fn is_vowel_mark(c: char) -> bool {
    matches!(u32::from(c),
        0x591..=0x5bd | 0x5bf | 0x5c1..=0x5c2 | 0x5c4..=0x5c5 | 0x5c7
        | 0x610..=0x61a | 0x640 | 0x64b..=0x65f | 0x670 | 0x6d6..=0x6dc | 0x6df..=0x6e4
        | 0x6e7..=0x6e8 | 0x6ea..=0x6ed)
}

/// Han, kana, Hangul, Thai, Lao, Myanmar and Khmer: scripts whose words are not told apart by spaces alone.
#[must_use]
pub fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c),
        0x0e00..=0x0eff | 0x1000..=0x109f | 0x1100..=0x11ff | 0x1780..=0x17ff
        | 0x3005..=0x3007 | 0x3040..=0x30ff | 0x3130..=0x318f | 0x31f0..=0x31ff
        | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xac00..=0xd7af | 0xf900..=0xfaff
        | 0xff66..=0xff9f | 0x20000..=0x3ffff)
}

/// A normalised word without accents. Letters that only look like accented ones stay (`й`), and so do the signs
/// of scripts in which they are letters.
#[must_use]
pub fn plain(word: &str) -> String {
    if word.is_ascii() {
        return word.to_owned();
    }
    let mut plain = String::with_capacity(word.len());
    for c in word.chars() {
        match c {
            'ß' => plain.push_str("ss"),
            'æ' => plain.push_str("ae"),
            'œ' => plain.push_str("oe"),
            'þ' => plain.push_str("th"),
            'ø' => plain.push('o'),
            'ł' => plain.push('l'),
            'đ' | 'ð' => plain.push('d'),
            'ħ' => plain.push('h'),
            'ı' => plain.push('i'),
            'ς' => plain.push('σ'),
            'ё' | 'ѐ' => plain.push('е'),
            'ѝ' => plain.push('и'),
            'أ' | 'إ' | 'آ' | 'ٱ' => plain.push('ا'),
            'ى' => plain.push('ي'),
            'ة' => plain.push('ه'),
            'à'..='ɏ' | 'ΐ'..='ώ' | 'ḁ'..='ỿ' | 'ἀ'..='῾' => {
                let mut base = None;
                decompose_canonical(c, |part| {
                    base.get_or_insert(part);
                });
                plain.push(base.unwrap_or(c));
            }
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plains(text: &str) -> Vec<String> {
        words(text).into_iter().map(|word| word.plain).collect()
    }

    #[test]
    fn a_text_is_read_as_plain_words() {
        let cases: [(&str, &[&str]); 24] = [
            ("", &[]),
            (" \u{1f389} -- !", &[]),
            ("Deploy at NINE!", &["deploy", "at", "nine"]),
            ("don't", &["don", "t"]),
            ("blue-otter-77", &["blue", "otter", "blueotter", "77"]),
            ("Wi-Fi", &["wi", "fi", "wifi"]),
            ("a - b", &["a", "b"]),
            ("user_id=5", &["user", "id", "5"]),
            ("Café, cafe\u{301}", &["cafe", "cafe"]),
            ("Straße STRASSE", &["strasse", "strasse"]),
            ("Ørsted Łódź Æsir", &["orsted", "lodz", "aesir"]),
            ("pass\u{ad}word pass\u{200b}word", &["password", "password"]),
            ("ﬁle ① ｗｉｆｉ", &["file", "1", "wifi"]),
            ("Ёлка елка", &["елка", "елка"]),
            ("мой мои", &["мой", "мои"]),
            ("काल कुल", &["काल", "कुल"]),
            ("हिन्दी।", &["हिन्दी"]),
            ("كِتَاب كتاب", &["كتاب", "كتاب"]),
            ("كتـــاب", &["كتاب"]),
            ("שָׁלוֹם שלום", &["שלום", "שלום"]),
            ("東京", &["東", "東京", "京"]),
            ("東京tower", &["東", "東京", "京", "tower"]),
            (
                "ﾄｳｷｮｳ",
                &["ト", "トウ", "ウ", "ウキ", "キ", "キョ", "ョ", "ョウ", "ウ"],
            ),
            ("İstanbul ISTANBUL", &["istanbul", "istanbul"]),
        ];
        for (text, expected) in cases {
            assert_eq!(plains(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_word_knows_where_it_stands() {
        let words = words("the wi-fi 東京");
        let at: Vec<(usize, u32)> = words.iter().map(|word| (word.at, word.place)).collect();
        assert_eq!(
            at,
            [(0, 0), (4, 1), (7, 2), (7, 2), (10, 3), (10, 3), (10, 4)]
        );
    }

    #[test]
    fn long_words_and_long_texts_are_cut() {
        let mark = "\u{301}".repeat(400_000);
        assert!(words(&mark).is_empty());
        let letters = "a".repeat(400_000);
        assert_eq!(words(&letters)[0].plain.len(), WORD_MAX_CHARS);
        assert_eq!(words(&"京".repeat(400_000)).len(), WORDS_MAX);
        assert_eq!(words(&"a-".repeat(200_000)).len(), WORDS_MAX);
    }
}
