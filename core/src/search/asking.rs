//! Whether a line only asks. A line that asks does not answer: such lines rank below statements.

use super::text::words;

/// How many characters of a line are looked at.
const LOOKED_AT_CHARS: usize = 1_000;

/// Words with which a question begins also where its mark is left out. Words that begin statements as often
/// (`when`, `if`, `quand`) are not among them.
const OPENERS: &[&str] = &[
    // English
    "who",
    "whose",
    "what",
    "whats",
    "where",
    "wheres",
    "which",
    "why",
    "how",
    "anyone",
    "anybody",
    // German
    "wer",
    "wo",
    "wann",
    "warum",
    "wieso",
    "welche",
    "welcher",
    "welches",
    "wie",
    "weiss",
    // French
    "qui",
    "ou",
    "pourquoi",
    "comment",
    "combien",
    "quel",
    "quelle",
    "quels",
    "quelles",
    // Spanish and Portuguese
    "quien",
    "donde",
    "cual",
    "cuando",
    "como",
    "cuanto",
    "onde",
    "qual",
    "quem",
    "alguien",
    "alguem",
    // Italian and Dutch
    "chi",
    "dove",
    "perche",
    "quale",
    "quanto",
    "waar",
    "waarom",
    "hoe",
    "wie",
    "welk",
    // Russian and Ukrainian
    "кто",
    "где",
    "когда",
    "почему",
    "зачем",
    "сколько",
    "какой",
    "какая",
    "какие",
    "хто",
    "де",
    "коли",
];

/// Pairs with which a question or a request to be told begins.
const OPENING_PAIRS: &[(&str, &str)] = &[
    ("does", "anyone"),
    ("does", "anybody"),
    ("do", "we"),
    ("do", "you"),
    ("can", "someone"),
    ("can", "anyone"),
    ("can", "you"),
    ("could", "someone"),
    ("could", "you"),
    ("has", "anyone"),
    ("has", "anybody"),
    ("is", "there"),
    ("are", "there"),
    ("any", "idea"),
    ("any", "ideas"),
    ("remind", "me"),
    ("tell", "me"),
    ("asking", "for"),
    ("hat", "jemand"),
    ("kann", "jemand"),
    ("kennt", "jemand"),
    ("weiss", "jemand"),
    ("gibt", "es"),
    ("est", "ce"),
    ("quelqu", "un"),
    ("sabe", "alguien"),
    ("alguien", "sabe"),
    ("кто", "нибудь"),
];

/// Whether every sentence of a line asks.
#[must_use]
pub fn only_asks(text: &str) -> bool {
    let cut = text.char_indices().nth(LOOKED_AT_CHARS);
    let text = cut.map_or(text, |(at, _)| &text[..at]);
    let (mut start, mut has_sentence) = (0, false);
    let mut sentence = |part: &str, is_marked: bool| {
        let words = words(part);
        // An address or a greeting before a question says nothing.
        if words.is_empty() || (words.len() <= 2 && !is_marked && !has_digit(part)) {
            return true;
        }
        has_sentence = true;
        (is_marked && !ends_in_tag(part)) || opens_question(&words)
    };
    let mut all = true;
    let mut ends = text.char_indices().peekable();
    while let Some((at, c)) = ends.next() {
        let next = ends.peek().map(|(_, next)| *next);
        let is_mark = matches!(c, '?' | '？' | '؟');
        let is_end = matches!(c, '.' | '!' | '。' | '！' | '।' | '\n') || is_mark;
        // A point inside a number, a name or an address ends nothing.
        if !is_end || next.is_some_and(|next| c == '.' && !next.is_whitespace()) {
            continue;
        }
        if is_mark && next.is_some_and(char::is_alphanumeric) {
            continue;
        }
        all &= sentence(&text[start..at], is_mark);
        start = at + c.len_utf8();
    }
    all &= sentence(&text[start..], false);
    all && has_sentence
}

/// Whether a question only asks for assent: "it is in room 4, right".
fn ends_in_tag(part: &str) -> bool {
    part.rsplit_once(',').is_some_and(|(said, tag)| {
        let said = words(said);
        words(tag).len() <= 2 && said.len() > 2 && !opens_question(&said)
    })
}

fn has_digit(text: &str) -> bool {
    text.chars().any(char::is_numeric)
}

fn opens_question(words: &[super::text::Word]) -> bool {
    // "Ann, where is it" begins with the name of the person who is asked.
    let is_opener = |at: usize| {
        let Some(first) = words.get(at).map(|word| word.plain.as_str()) else {
            return false;
        };
        let second = words.get(at + 1).map_or("", |word| word.plain.as_str());
        OPENING_PAIRS.contains(&(first, second)) || (at == 0 && OPENERS.contains(&first))
    };
    is_opener(0) || is_opener(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_only_ask_are_told_from_those_that_say() {
        let cases = [
            ("what's the wifi password in Lisbon?", true),
            ("anyone know the wifi password", true),
            ("hey, does anyone have the code?", true),
            ("Wo ist der Schlüssel", true),
            ("где пароль от вайфая?", true),
            ("密码是什么？", true),
            ("¿Dónde está la llave?", true),
            ("Hi all! What is the code? Who has it?", true),
            ("What is the code? It is blue-otter-77.", false),
            ("the code is blue-otter-77, ok?", false),
            (
                "Lisbon office: the guest network code is blue-otter-77",
                false,
            ),
            ("when the deploy is done, tell Ann", false),
            ("see https://example.com/?q=a for the plan", false),
            ("v1.2.3 is out", false),
            ("", false),
            ("ok", false),
            ("Where is it? Room 12", false),
        ];
        for (text, expected) in cases {
            assert_eq!(only_asks(text), expected, "{text:?}");
        }
    }
}
