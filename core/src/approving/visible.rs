//! Text in which every character can be told from every other one.
//!
//! Letters, numbers, punctuation and symbols stand for themselves. Everything else is written with a backslash:
//! `\u{200B}` a character by its number, `\s{12}` spaces, `\n{3}` line ends, `\t`, `\r`, `\\`. So is what looks like
//! something else: letters of another script in a word of Latin ones, words of nothing but such letters, what
//! stands for another character by Unicode's own tables, accents that are characters of their own, and scripts written
//! from right to left beside others, which screens put into another order. *Source:* UTS 39, UAX 9, UAX 15.

use unicode_normalization::UnicodeNormalization;

/// The most spaces in a row that stand for themselves; more are written as a count.
const SPACES_MAX: usize = 8;
/// The most line ends in a row that stand for themselves (one blank line); more are written as a count.
const LINE_ENDS_MAX: usize = 2;

/// What becomes of line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineEnds {
    /// They stand for themselves.
    Kept,
    /// They are written with a backslash.
    Written,
}

/// A name or another short text, visible and on one line.
#[must_use]
pub fn visible_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    push_visible(&mut out, text, LineEnds::Written, false);
    out
}

/// A text in quotation marks, visible.
pub(super) fn push_quoted(out: &mut String, text: &str, line_ends: LineEnds) {
    out.push('"');
    push_visible(out, text, line_ends, true);
    out.push('"');
}

fn push_visible(out: &mut String, text: &str, line_ends: LineEnds, is_quoted: bool) {
    let scripts = Scripts::of(text);
    let mut lines = text.split('\n').peekable();
    let mut open_ends = 0;
    while let Some(line) = lines.next() {
        if !line.is_empty() {
            push_line_ends(out, open_ends, line_ends);
            open_ends = 0;
            push_line(out, line, &scripts, is_quoted);
        }
        if lines.peek().is_some() {
            open_ends += 1;
        }
    }
    push_line_ends(out, open_ends, line_ends);
}

fn push_line_ends(out: &mut String, count: usize, line_ends: LineEnds) {
    let (written, kept) = match line_ends {
        LineEnds::Kept if count <= LINE_ENDS_MAX => (0, count),
        LineEnds::Kept => (count - 1, 1),
        LineEnds::Written => (count, 0),
    };
    if written > 0 {
        out.push_str(&format!("\\n{{{written}}}"));
    }
    out.extend(std::iter::repeat_n('\n', kept));
}

fn push_line(out: &mut String, line: &str, scripts: &Scripts, is_quoted: bool) {
    let is_mixed = line.chars().any(is_right_to_left)
        && line
            .chars()
            .any(|c| c.is_alphanumeric() && !is_right_to_left(c));
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            ' ' => rest.find(|c| c != ' '),
            c if is_of_word(c) => rest.find(|c| !is_of_word(c)),
            c => Some(c.len_utf8()),
        };
        let (piece, after) = rest.split_at(length.unwrap_or(rest.len()));
        if c == ' ' {
            push_spaces(
                out,
                piece.len(),
                is_at_edge(rest.len() == line.len(), after, is_quoted),
            );
        } else {
            let word = SurroundingWord::of(piece, scripts);
            for c in piece.chars() {
                let is_hidden = !is_plain(c) || word.hides(c) || (is_mixed && is_right_to_left(c));
                push_char(out, c, is_hidden, is_quoted);
            }
        }
        rest = after;
    }
}

/// Whether spaces stand where a reader can't see them: at the end of a line, and without quotation marks at its
/// beginning.
fn is_at_edge(is_first: bool, after: &str, is_quoted: bool) -> bool {
    after.is_empty() || (is_first && !is_quoted)
}

fn push_spaces(out: &mut String, count: usize, is_at_edge: bool) {
    match is_at_edge || count > SPACES_MAX {
        true => out.push_str(&format!("\\s{{{count}}}")),
        false => out.extend(std::iter::repeat_n(' ', count)),
    }
}

fn push_char(out: &mut String, c: char, is_hidden: bool, is_quoted: bool) {
    match c {
        '\\' => out.push_str("\\\\"),
        '"' if is_quoted => out.push_str("\\\""),
        '\t' => out.push_str("\\t"),
        '\r' => out.push_str("\\r"),
        c if is_hidden => out.push_str(&format!("\\u{{{:X}}}", u32::from(c))),
        c => out.push(c),
    }
}

/// Whether a character by itself shows what it is.
fn is_plain(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    is_printable(c)
        && !INVISIBLE
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&c))
        && !ALIKE
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&c))
        && (KNOWN_FORMS.contains(&c) || WIDE.contains(&c) || std::iter::once(c).nfkc().eq([c]))
}

/// Whether the standard library takes a character for one that can be printed: assigned, and no control, format,
/// separator, private or surrogate one.
fn is_printable(c: char) -> bool {
    // Put behind a letter, so that combining marks are judged by the same test.
    ['a', c].iter().collect::<String>().escape_debug().nth(1) == Some(c)
}

/// Letters and symbols that show nothing.
const INVISIBLE: [(char, char); 11] = [
    ('\u{34F}', '\u{34F}'),
    ('\u{115F}', '\u{1160}'),
    ('\u{17B4}', '\u{17B5}'),
    ('\u{180B}', '\u{180F}'),
    ('\u{2800}', '\u{2800}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{FE00}', '\u{FE0F}'),
    ('\u{FFA0}', '\u{FFA0}'),
    ('\u{FFFC}', '\u{FFFC}'),
    ('\u{1D159}', '\u{1D159}'),
    ('\u{E0100}', '\u{E01EF}'),
];

/// What looks like something else wherever it stands: accents that are characters of their own, letters that are marks
/// of punctuation, parts of syllables, hyphens, dots and strokes.
const ALIKE: [(char, char); 30] = [
    ('\u{1C0}', '\u{1C3}'),
    ('\u{2B0}', '\u{36F}'),
    ('\u{387}', '\u{387}'),
    ('\u{559}', '\u{55F}'),
    ('\u{589}', '\u{58A}'),
    ('\u{5BE}', '\u{5C3}'),
    ('\u{5F3}', '\u{5F4}'),
    ('\u{6D4}', '\u{6D4}'),
    ('\u{1100}', '\u{11FF}'),
    ('\u{1400}', '\u{1400}'),
    ('\u{1AB0}', '\u{1AFF}'),
    ('\u{1DC0}', '\u{1DFF}'),
    ('\u{2010}', '\u{2013}'),
    ('\u{2016}', '\u{2016}'),
    ('\u{201A}', '\u{201B}'),
    ('\u{2032}', '\u{2037}'),
    ('\u{2039}', '\u{203A}'),
    ('\u{2043}', '\u{2044}'),
    ('\u{204E}', '\u{204F}'),
    ('\u{20D0}', '\u{20FF}'),
    ('\u{2212}', '\u{2219}'),
    ('\u{2223}', '\u{2223}'),
    ('\u{2236}', '\u{2236}'),
    ('\u{223C}', '\u{223C}'),
    ('\u{2795}', '\u{2796}'),
    ('\u{29F5}', '\u{29F9}'),
    ('\u{3099}', '\u{309C}'),
    ('\u{A700}', '\u{A721}'),
    ('\u{A788}', '\u{A78F}'),
    ('\u{FE20}', '\u{FE2F}'),
];

/// Forms of other characters that everybody can tell from them.
const KNOWN_FORMS: [char; 12] = ['…', '²', '³', '¹', '½', '¼', '¾', '™', '№', 'ª', 'º', '℃'];

/// Wide forms of punctuation: known to those who read Chinese, Japanese and Korean, look-alikes elsewhere.
const WIDE: [char; 8] = ['，', '！', '？', '：', '；', '（', '）', '～'];

/// Letters that look like Latin ones, of scripts that are read by many.
const LATIN_LIKE: &str =
    "аеорсухіѕјһԁԛԝѵӏАВЕЗКМНОРСТУХІЅЈҺԌԚԜӀоναικυχρϲϳοΑΒΕΖΗΙΚΜΝΟΡΤΥΧօոսհցզլքյՕՏԼՍɑɡıɩʋʏɪ";

/// Scripts with letters that look like Latin ones.
const LATIN_LIKE_SCRIPTS: [(char, char); 22] = [
    ('\u{131}', '\u{131}'),
    ('\u{138}', '\u{138}'),
    ('\u{17F}', '\u{1BF}'),
    ('\u{1DD}', '\u{1DD}'),
    ('\u{21C}', '\u{225}'),
    ('\u{234}', '\u{2AF}'),
    ('\u{370}', '\u{58F}'),
    ('\u{10A0}', '\u{10FF}'),
    ('\u{13A0}', '\u{13FF}'),
    ('\u{1400}', '\u{16FF}'),
    ('\u{1C80}', '\u{1CBF}'),
    ('\u{1D00}', '\u{1DBF}'),
    ('\u{1E9F}', '\u{1E9F}'),
    ('\u{1F00}', '\u{1FFF}'),
    ('\u{2C60}', '\u{2DFF}'),
    ('\u{A4D0}', '\u{A69F}'),
    ('\u{A722}', '\u{A7FF}'),
    ('\u{AB30}', '\u{ABBF}'),
    ('\u{10280}', '\u{1039F}'),
    ('\u{10400}', '\u{107FF}'),
    ('\u{118A0}', '\u{118FF}'),
    ('\u{1DF00}', '\u{1E2FF}'),
];

/// Scripts that few people read, whose words may be nothing but look-alikes.
const RARE_SCRIPTS: [(char, char); 9] = [
    ('\u{13A0}', '\u{13FF}'),
    ('\u{1400}', '\u{16FF}'),
    ('\u{1D00}', '\u{1DBF}'),
    ('\u{2C80}', '\u{2CFF}'),
    ('\u{2D30}', '\u{2D7F}'),
    ('\u{A4D0}', '\u{A4FF}'),
    ('\u{AB30}', '\u{ABBF}'),
    ('\u{10280}', '\u{1039F}'),
    ('\u{10400}', '\u{107FF}'),
];

fn is_within(c: char, ranges: &[(char, char)]) -> bool {
    ranges
        .iter()
        .any(|(first, last)| (*first..=*last).contains(&c))
}

fn looks_latin(c: char) -> bool {
    LATIN_LIKE.contains(c) || is_within(c, &RARE_SCRIPTS)
}

fn is_right_to_left(c: char) -> bool {
    const RIGHT_TO_LEFT: [(char, char); 5] = [
        ('\u{590}', '\u{8FF}'),
        ('\u{FB1D}', '\u{FDFF}'),
        ('\u{FE70}', '\u{FEFE}'),
        ('\u{10800}', '\u{10FFF}'),
        ('\u{1E800}', '\u{1EFFF}'),
    ];
    is_within(c, &RIGHT_TO_LEFT)
}

/// Whether a character can be part of a word, a path or an address.
fn is_of_word(c: char) -> bool {
    c.is_alphanumeric()
        || matches!(
            c,
            '.' | '_' | '-' | '@' | ':' | '/' | '%' | '+' | '~' | '#' | '=' | '&'
        )
}

/// Scripts that a text certainly has, because it has letters of them that look like no Latin ones.
#[derive(Debug, Default)]
struct Scripts {
    greek: bool,
    cyrillic: bool,
    armenian: bool,
    /// Chinese, Japanese or Korean.
    is_wide: bool,
}

impl Scripts {
    fn of(text: &str) -> Self {
        let mut scripts = Self::default();
        for c in text
            .chars()
            .filter(|c| c.is_alphabetic() && !looks_latin(*c))
        {
            match c {
                '\u{370}'..='\u{3FF}' => scripts.greek = true,
                '\u{400}'..='\u{52F}' => scripts.cyrillic = true,
                '\u{530}'..='\u{58F}' => scripts.armenian = true,
                '\u{3041}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7A3}' => scripts.is_wide = true,
                _ => {}
            }
        }
        scripts
    }

    fn has_that_of(&self, c: char) -> bool {
        match c {
            '\u{370}'..='\u{3FF}' => self.greek,
            '\u{400}'..='\u{52F}' => self.cyrillic,
            '\u{530}'..='\u{58F}' => self.armenian,
            _ => false,
        }
    }
}

/// What a character is judged by: the word around it.
#[derive(Debug)]
struct SurroundingWord<'a> {
    scripts: &'a Scripts,
    /// It has letters of ASCII.
    is_latin: bool,
    /// It has letters or digits of ASCII.
    is_ascii: bool,
}

impl<'a> SurroundingWord<'a> {
    fn of(piece: &str, scripts: &'a Scripts) -> Self {
        Self {
            scripts,
            is_latin: piece.contains(|c: char| c.is_ascii_alphabetic()),
            is_ascii: piece.contains(|c: char| c.is_ascii_alphanumeric()),
        }
    }

    /// Whether a character can be taken for another one here.
    fn hides(&self, c: char) -> bool {
        if c.is_ascii() {
            return false;
        }
        let is_foreign = self.is_latin && is_within(c, &LATIN_LIKE_SCRIPTS);
        let is_foreign_digit = self.is_ascii && c.is_numeric() && !KNOWN_FORMS.contains(&c);
        let is_wide = WIDE.contains(&c) && !self.scripts.is_wide;
        let is_alone = looks_latin(c) && !self.scripts.has_that_of(c);
        is_foreign || is_foreign_digit || is_wide || is_alone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(text: &str) -> String {
        let mut out = String::new();
        push_quoted(&mut out, text, LineEnds::Kept);
        out
    }

    #[test]
    fn what_people_write_stands_as_it_is() {
        for text in [
            "refund of 120.00 to Ann (see #42), €5, 50 % off: it’s “fine” …",
            "Größe, naïve, Łódź, Đà Nẵng, İstanbul",
            "Возврат 120 рублей Анне",
            "о чём мы говорим, а он нос",
            "Επιστροφή χρημάτων",
            "退款给 Ann 120 元，使用Rust编写",
            "返金をお願いします",
            "환불해 주세요",
            "धनवापसी करें",
            "اعد المبلغ الى الحساب",
            "💶 refund 👍🏽 🇩🇪",
            "fn main() {\n    let x = 1;\n\n    run(x);\n}",
        ] {
            assert_eq!(quoted(text), format!("\"{text}\""));
        }
    }

    #[test]
    fn what_does_not_show_or_looks_like_something_else_is_written() {
        let table = [
            ("a\"b\\c", r#""a\"b\\c""#),
            ("tab\tand\rreturn", r#""tab\tand\rreturn""#),
            (
                "zero\u{200B}width\u{FEFF}",
                r#""zero\u{200B}width\u{FEFF}""#,
            ),
            ("pay\u{202E}001", r#""pay\u{202E}001""#),
            ("a\u{2066}b\u{2069}", r#""a\u{2066}b\u{2069}""#),
            ("tag\u{E0041}\u{E007F}", r#""tag\u{E0041}\u{E007F}""#),
            (
                "no\u{A0}break\u{3000}wide",
                r#""no\u{A0}break\u{3000}wide""#,
            ),
            ("\u{3164}\u{2800}\u{115F}", r#""\u{3164}\u{2800}\u{115F}""#),
            ("\u{E000}\u{FFFF}\u{378}", r#""\u{E000}\u{FFFF}\u{378}""#),
            ("\u{FFF9}U1\u{FFFB}", r#""\u{FFF9}U1\u{FFFB}""#),
            // Cyrillic in a Latin word, and a word of nothing else.
            ("p\u{430}ypal.com", r#""p\u{430}ypal.com""#),
            (
                "\u{441}\u{43E}\u{441}\u{43E}",
                r#""\u{441}\u{43E}\u{441}\u{43E}""#,
            ),
            ("\u{3BF}k", r#""\u{3BF}k""#),
            ("\u{13DF}\u{13AA}", r#""\u{13DF}\u{13AA}""#),
            ("ad\u{131}n", r#""ad\u{131}n""#),
            ("ｒｍ", r#""\u{FF52}\u{FF4D}""#),
            ("𝐫𝐦", r#""\u{1D42B}\u{1D426}""#),
            ("\u{212A}elvin", r#""\u{212A}elvin""#),
            ("a，b：c", r#""a\u{FF0C}b\u{FF1A}c""#),
            ("ﬁle", r#""\u{FB01}le""#),
            (
                "\u{2013}rf \u{2212}1 a\u{2215}b\u{37E}",
                r#""\u{2013}rf \u{2212}1 a\u{2215}b\u{37E}""#,
            ),
            // An accent of its own looks like a letter that has it.
            ("cafe\u{301}", r#""cafe\u{301}""#),
            ("1\u{966}0", r#""1\u{966}0""#),
            // Screens would put these into another order.
            ("pay \u{5D0}\u{5D1} 100", r#""pay \u{5D0}\u{5D1} 100""#),
            ("end \nx", "\"end\\s{1}\nx\""),
            ("a         b ", r#""a\s{9}b\s{1}""#),
            ("a        b", r#""a        b""#),
            ("a\n\n\n\nb\n", "\"a\\n{3}\nb\n\""),
            ("\n\nx", "\"\n\nx\""),
        ];
        for (text, expected) in table {
            assert_eq!(quoted(text), expected);
        }
    }

    #[test]
    fn a_name_stays_on_its_line() {
        assert_eq!(
            visible_line(" Ann\n\"Bo\" \\ "),
            r#"\s{1}Ann\n{1}"Bo" \\\s{1}"#
        );
    }

    #[test]
    fn a_long_text_of_marks_takes_its_length() {
        let text = "\u{301}".repeat(400_000);
        assert_eq!(visible_line(&text).len(), 400_000 * r"\u{301}".len());
    }
}
