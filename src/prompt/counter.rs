//! Token counters: how much a text costs, estimated without a vocabulary.

/// Counts tokens of text.
pub trait TokenCounter: Send + Sync {
    /// Its name and version, stored beside what it counted.
    fn name(&self) -> &str;

    /// Tokens of a text.
    fn count(&self, text: &str) -> u32;

    /// Tokens that a message costs besides its text.
    fn per_message_overhead(&self) -> u32;

    /// Tokens of a message with that text.
    fn cost(&self, text: &str) -> usize {
        self.count(text) as usize + self.per_message_overhead() as usize
    }
}

/// Estimates by character class, fitted to the `o200k` vocabulary.
///
/// Bias within 8 % and 95th percentile of error within 21 % on prose in eight languages and on
/// code; `chars / 4` undercounts Chinese by 62 %. Measured on 500-character chunks.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClassEstimate;

/// Thousandths of a token, so that sums are exact and the same everywhere.
mod weight {
    pub(super) const ASCII_WORD_START: u64 = 448;
    pub(super) const ASCII_LETTER: u64 = 118;
    pub(super) const DIGIT: u64 = 1_067;
    pub(super) const NEWLINE: u64 = 2_025;
    pub(super) const SPACE: u64 = 18;
    pub(super) const ASCII_PUNCTUATION: u64 = 360;
    pub(super) const LATIN_EXTENDED: u64 = 1_510;
    pub(super) const CYRILLIC_OR_GREEK: u64 = 275;
    pub(super) const HAN: u64 = 713;
    pub(super) const KANA: u64 = 637;
    pub(super) const HANGUL: u64 = 714;
    pub(super) const OTHER: u64 = 369;
}

impl TokenCounter for ClassEstimate {
    fn name(&self) -> &'static str {
        "class_v1"
    }

    fn count(&self, text: &str) -> u32 {
        let mut thousandths = 0_u64;
        let mut is_in_word = false;
        for c in text.chars() {
            let is_letter = c.is_ascii_alphabetic();
            if is_letter && !is_in_word {
                thousandths += weight::ASCII_WORD_START;
            }
            is_in_word = is_letter;
            thousandths += class_weight(c);
        }
        u32::try_from(thousandths.div_ceil(1_000)).unwrap_or(u32::MAX)
    }

    fn per_message_overhead(&self) -> u32 {
        4
    }
}

fn class_weight(c: char) -> u64 {
    match c {
        'a'..='z' | 'A'..='Z' => weight::ASCII_LETTER,
        '0'..='9' => weight::DIGIT,
        '\n' => weight::NEWLINE,
        c if c.is_whitespace() => weight::SPACE,
        c if c.is_ascii_punctuation() => weight::ASCII_PUNCTUATION,
        '\u{00C0}'..='\u{024F}' | '\u{1E00}'..='\u{1EFF}' => weight::LATIN_EXTENDED,
        '\u{0370}'..='\u{052F}' | '\u{1F00}'..='\u{1FFF}' => weight::CYRILLIC_OR_GREEK,
        '\u{3040}'..='\u{30FF}' | '\u{31F0}'..='\u{31FF}' => weight::KANA,
        '\u{3000}'..='\u{303F}'
        | '\u{3400}'..='\u{4DBF}'
        | '\u{4E00}'..='\u{9FFF}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{FF00}'..='\u{FFEF}'
        | '\u{20000}'..='\u{3FFFF}' => weight::HAN,
        '\u{1100}'..='\u{11FF}' | '\u{3130}'..='\u{318F}' | '\u{AC00}'..='\u{D7AF}' => {
            weight::HANGUL
        }
        _ => weight::OTHER,
    }
}

/// UTF-16 units divided by four, rounded up: the other system's estimate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Utf16Div4;

impl TokenCounter for Utf16Div4 {
    fn name(&self) -> &'static str {
        "utf16_div4"
    }

    fn count(&self, text: &str) -> u32 {
        let units = text.encode_utf16().count();
        u32::try_from(units.div_ceil(4)).unwrap_or(u32::MAX)
    }

    fn per_message_overhead(&self) -> u32 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_estimate_weighs_each_class() {
        let cases = [
            ("", 0),
            ("hello", 2),
            ("hello hello", 3),
            ("the quick brown fox jumps over the lazy dog", 9),
            ("2026", 5),
            ("\n", 3),
            ("привет", 2),
            ("你好世界", 3),
            ("こんにちは", 4),
            ("안녕", 2),
            ("größe", 5),
            ("🙂🙂🙂", 2),
        ];
        for (text, expected) in cases {
            assert_eq!(ClassEstimate.count(text), expected, "{text:?}");
        }
        assert_eq!(ClassEstimate.cost("hello"), 6);
    }

    #[test]
    fn utf16_units_are_counted_and_rounded_up() {
        for (text, expected) in [
            ("", 0),
            ("abcd", 1),
            ("abcde", 2),
            ("🙂🙂", 1),
            ("🙂🙂a", 2),
        ] {
            assert_eq!(Utf16Div4.count(text), expected, "{text:?}");
        }
        assert_eq!(Utf16Div4.cost("abcd"), 1);
    }
}
