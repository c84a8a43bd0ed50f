//! Words that are taken out by pattern: keys, e-mail addresses, card numbers, and what an operator names.
//!
//! Work is linear in a text's size: the patterns are automata without backtracking, and digits are read once. A pattern
//! only finds what looks like a secret; a text without a match may still hold one.

use std::borrow::Cow;

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

/// The longest pattern of an operator, in characters.
pub const PATTERN_MAX_CHARS: usize = 500;
/// The most patterns of one hook.
pub const PATTERNS_MAX: usize = 50;
/// What a compiled pattern may take, in bytes.
const COMPILED_MAX_BYTES: usize = 1 << 20;

/// What keys of well-known services look like.
///
/// *Source:* the services' own pages on the form of their keys, and the rules of gitleaks.
const KEYS: [&str; 16] = [
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)",
    // OpenAI, Anthropic, and those who follow them.
    r"\bsk-[A-Za-z0-9_-]{20,}",
    // Stripe.
    r"\b[srw][a-z]?k_(?:live|test)_[A-Za-z0-9]{16,}",
    r"\bwhsec_[A-Za-z0-9+/=]{24,}",
    // Slack.
    r"\bx(?:ox[abeoprs]|app)-[A-Za-z0-9-]{10,}",
    r"\bhooks\.slack\.com/services/[A-Za-z0-9/]{20,}",
    // GitHub, GitLab.
    r"\bgh[opsur]_[A-Za-z0-9]{30,}",
    r"\bgithub_pat_[A-Za-z0-9_]{22,}",
    r"\bglpat-[A-Za-z0-9_-]{20,}",
    // AWS, Google.
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    r"\bAIza[0-9A-Za-z_-]{35}",
    // Telegram's bots.
    r"\b[0-9]{8,10}:[A-Za-z0-9_-]{35}\b",
    r"\bhf_[A-Za-z0-9]{30,}",
    r"\bnpm_[A-Za-z0-9]{36}\b",
    // A JSON web token.
    r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    r"(?i:\bbearer )[A-Za-z0-9._~+/=-]{20,}",
];

const EMAIL: &str =
    r"[\p{L}\p{N}._%+'-]+@(?:[\p{L}\p{N}][\p{L}\p{N}-]*\.)+(?:xn--[A-Za-z0-9-]+|\p{L}{2,24})";

/// Digits of the shortest and the longest card number. *Source:* ISO/IEC 7812-1.
const CARD_DIGITS: std::ops::RangeInclusive<usize> = 13..=19;

/// What is taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Removed {
    /// Keys and tokens of well-known services.
    Keys,
    /// E-mail addresses.
    Email,
    /// Numbers of payment cards.
    Cards,
}

impl Removed {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Keys, Self::Email, Self::Cards];

    /// The configured name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Keys => "keys",
            Self::Email => "email",
            Self::Cards => "cards",
        }
    }

    /// The text in its place.
    fn label(self) -> &'static str {
        match self {
            Self::Keys => "[key removed]",
            Self::Email => "[e-mail address removed]",
            Self::Cards => "[card number removed]",
        }
    }
}

/// The text in place of what an operator's pattern matched.
const OWN_LABEL: &str = "[removed]";

/// What is wrong with an operator's pattern, in words for them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PatternError(String);

/// Takes words out.
#[derive(Clone, Debug)]
pub struct Redactor {
    patterns: Vec<(Regex, &'static str)>,
    has_cards: bool,
    /// The operator's patterns, as they were written.
    own: Vec<String>,
    removed: Vec<Removed>,
}

impl PartialEq for Redactor {
    fn eq(&self, other: &Self) -> bool {
        (&self.own, &self.removed) == (&other.own, &other.removed)
    }
}

/// A text without these words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redacted<'a> {
    /// The text.
    pub text: Cow<'a, str>,
    /// How many times something was taken out.
    pub count: u32,
}

impl Redactor {
    /// A redactor of well-known things and of an operator's patterns.
    ///
    /// # Errors
    /// The number of the pattern, and what is wrong with it.
    pub fn new(removed: &[Removed], own: &[String]) -> Result<Self, (usize, PatternError)> {
        let known = |pattern: &str| Regex::new(pattern).expect("a pattern of ours is one");
        let mut patterns = Vec::new();
        if removed.contains(&Removed::Keys) {
            let label = Removed::Keys.label();
            patterns.extend(KEYS.map(|pattern| (known(pattern), label)));
        }
        if removed.contains(&Removed::Email) {
            patterns.push((known(EMAIL), Removed::Email.label()));
        }
        for (n, pattern) in own.iter().enumerate() {
            patterns.push((compiled(pattern).map_err(|wrong| (n, wrong))?, OWN_LABEL));
        }
        Ok(Self {
            patterns,
            has_cards: removed.contains(&Removed::Cards),
            own: own.to_vec(),
            removed: removed.to_vec(),
        })
    }

    /// A text without what the patterns find.
    #[must_use]
    pub fn redact<'a>(&self, text: &'a str) -> Redacted<'a> {
        let mut redacted = Redacted {
            text: Cow::Borrowed(text),
            count: 0,
        };
        for (pattern, label) in &self.patterns {
            let found = count(pattern.find_iter(&redacted.text).count());
            if found > 0 {
                let replaced = pattern.replace_all(&redacted.text, regex::NoExpand(label));
                redacted.text = Cow::Owned(replaced.into_owned());
                redacted.count = redacted.count.saturating_add(found);
            }
        }
        if self.has_cards
            && let Some((text, found)) = without_cards(&redacted.text)
        {
            redacted.text = Cow::Owned(text);
            redacted.count = redacted.count.saturating_add(found);
        }
        redacted
    }

    /// A value without what the patterns find in its texts, names and numbers; how many times. `None` = nothing was
    /// found.
    #[must_use]
    pub fn redact_value(&self, value: &Value) -> Option<(Value, u32)> {
        let mut found = 0;
        let redacted = self.value(value, &mut found);
        (found > 0).then_some((redacted, found))
    }

    fn value(&self, value: &Value, found: &mut u32) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text, found)),
            Value::Number(number) => {
                let text = number.to_string();
                let before = *found;
                let redacted = self.text(&text, found);
                match *found > before {
                    true => Value::String(redacted),
                    false => value.clone(),
                }
            }
            Value::Array(items) => {
                Value::Array(items.iter().map(|item| self.value(item, found)).collect())
            }
            Value::Object(fields) => {
                let mut redacted = Map::new();
                for (name, field) in fields {
                    let name = self.text(name, found);
                    redacted.insert(name, self.value(field, found));
                }
                Value::Object(redacted)
            }
            Value::Null | Value::Bool(_) => value.clone(),
        }
    }

    fn text(&self, text: &str, found: &mut u32) -> String {
        let redacted = self.redact(text);
        *found = found.saturating_add(redacted.count);
        redacted.text.into_owned()
    }
}

fn compiled(pattern: &str) -> Result<Regex, PatternError> {
    if pattern.chars().count() > PATTERN_MAX_CHARS {
        return Err(PatternError(format!(
            "is longer than {PATTERN_MAX_CHARS} characters"
        )));
    }
    let read = RegexBuilder::new(pattern)
        .size_limit(COMPILED_MAX_BYTES)
        .build();
    let read = read.map_err(|error| PatternError(told(&error)))?;
    match read.is_match("") {
        true => Err(PatternError("also matches an empty text".to_owned())),
        false => Ok(read),
    }
}

/// What is wrong with a pattern, on one line.
fn told(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(_) => "is too large".to_owned(),
        error => {
            let said = error.to_string();
            let last = said.lines().last().unwrap_or_default().trim();
            let last = last.strip_prefix("error: ").unwrap_or(last);
            format!("is no regular expression: {last}")
        }
    }
}

fn count(found: usize) -> u32 {
    u32::try_from(found).unwrap_or(u32::MAX)
}

/// A group of digits: where it begins and ends.
#[derive(Clone, Copy)]
struct DigitGroup {
    from: usize,
    to: usize,
}

/// The text without card numbers, and how many there were; `None` = none.
fn without_cards(text: &str) -> Option<(String, u32)> {
    let mut kept = String::new();
    let (mut copied, mut found) = (0, 0);
    for row in rows_of_groups(text) {
        let mut first = 0;
        while first < row.len() {
            match card_at(text, &row[first..]) {
                Some(groups) => {
                    kept.push_str(&text[copied..row[first].from]);
                    kept.push_str(Removed::Cards.label());
                    first += groups;
                    copied = row[first - 1].to;
                    found += 1;
                }
                None => first += 1,
            }
        }
    }
    kept.push_str(&text[copied..]);
    (found > 0).then_some((kept, found))
}

/// Groups of digits with one space or hyphen between them. A group beside a letter belongs to a name or an id.
fn rows_of_groups(text: &str) -> Vec<Vec<DigitGroup>> {
    let bytes = text.as_bytes();
    let mut rows: Vec<Vec<DigitGroup>> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let from = at;
        while at < bytes.len() && bytes[at].is_ascii_digit() {
            at += 1;
        }
        let group = DigitGroup { from, to: at };
        let is_name = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
        let is_behind_name = from > 0 && is_name(bytes[from - 1]);
        let is_before_name = bytes.get(at).copied().is_some_and(is_name);
        if is_behind_name || is_before_name {
            rows.push(Vec::new());
            continue;
        }
        match rows.last_mut() {
            Some(row)
                if row.last().is_some_and(|last| {
                    last.to + 1 == from && matches!(bytes[last.to], b' ' | b'-')
                }) =>
            {
                row.push(group);
            }
            _ => rows.push(vec![group]),
        }
    }
    rows
}

/// How many groups the card number has that begins with the first group; the longest number, if several fit.
fn card_at(text: &str, groups: &[DigitGroup]) -> Option<usize> {
    let mut digits: Vec<u8> = Vec::new();
    let mut fitting = None;
    for (n, group) in groups.iter().enumerate() {
        if digits.len() + (group.to - group.from) > *CARD_DIGITS.end() {
            break;
        }
        let of_group = text.as_bytes()[group.from..group.to].iter();
        digits.extend(of_group.map(|digit| digit - b'0'));
        // Payment cards begin with these. Source: ISO/IEC 7812-1, major industry identifiers.
        let is_payment = matches!(digits.first(), Some(2..=6));
        if CARD_DIGITS.contains(&digits.len()) && is_payment && has_check_digit(&digits) {
            fitting = Some(n + 1);
        }
    }
    fitting
}

/// Luhn's formula. *Source:* ISO/IEC 7812-1, annex B.
fn has_check_digit(digits: &[u8]) -> bool {
    let weighed = digits.iter().rev().enumerate().map(|(n, digit)| {
        let weighed = u32::from(*digit) * if n % 2 == 1 { 2 } else { 1 };
        if weighed > 9 { weighed - 9 } else { weighed }
    });
    weighed.sum::<u32>() % 10 == 0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn all() -> Redactor {
        Redactor::new(&Removed::ALL, &[r"EMP-\d{6}".to_owned()]).unwrap()
    }

    #[test]
    fn what_looks_like_a_secret_is_taken_out() {
        // Put together here, so that no scanner takes them for keys that leaked.
        let long = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5h";
        let table = [
            (
                format!("use sk-proj-{long} now"),
                "use [key removed] now",
                1,
            ),
            (format!("{}-12345-67890-{long}", "xoxb"), "[key removed]", 1),
            (format!("{}_{long}", "ghp"), "[key removed]", 1),
            (format!("{}IOSFODNN7EXAMPLE.", "AKIA"), "[key removed].", 1),
            (
                format!("Authorization: Bearer {long}"),
                "Authorization: [key removed]",
                1,
            ),
            (format!("123456789:AAH{}", &long[..32]), "[key removed]", 1),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nbye"
                    .to_owned(),
                "[key removed]\nbye",
                1,
            ),
            (
                "-----BEGIN PRIVATE KEY-----\nMIIE, cut".to_owned(),
                "[key removed]",
                1,
            ),
            (
                "write to ann.o'neil+x@mail.example.com, or <bob@bücher.example>!".to_owned(),
                "write to [e-mail address removed], or <[e-mail address removed]>!",
                2,
            ),
            (
                "EMP-123456 and EMP-12".to_owned(),
                "[removed] and EMP-12",
                1,
            ),
            (
                "a sk-short key, @ann, 7@ and x@y".to_owned(),
                "a sk-short key, @ann, 7@ and x@y",
                0,
            ),
        ];
        for (text, expected, count) in table {
            let redacted = all().redact(&text);
            assert_eq!((redacted.text.as_ref(), redacted.count), (expected, count));
            let again = all().redact(&redacted.text).count;
            assert_eq!(again, 0, "{expected}");
        }
    }

    #[test]
    fn a_card_number_has_its_check_digit() {
        let table = [
            ("4111 1111 1111 1111", "[card number removed]"),
            ("pay 4111-1111-1111-1111!", "pay [card number removed]!"),
            ("378282246310005", "[card number removed]"),
            ("1 4111111111111111 2", "1 [card number removed] 2"),
            (
                "5555555555554444 4111111111111111",
                "[card number removed] [card number removed]",
            ),
            ("4111 1111 1111 1112", "4111 1111 1111 1112"),
            // A time in milliseconds, a telephone number, digits that are part of a longer id, a name.
            ("1763942400000", "1763942400000"),
            ("+49 30 901820", "+49 30 901820"),
            ("41111111111111114111111", "41111111111111114111111"),
            ("x4111111111111111", "x4111111111111111"),
        ];
        for (text, expected) in table {
            assert_eq!(all().redact(text).text, expected, "{text}");
        }
    }

    #[test]
    fn arguments_keep_their_shape() {
        let asked = json!({"to": ["ann@mail.example"], "card": 4_111_111_111_111_111_i64, "n": 3, "ok": true,
            "bob@mail.example": null});
        let expected = json!({"to": ["[e-mail address removed]"], "card": "[card number removed]", "n": 3, "ok": true,
            "[e-mail address removed]": null});
        assert_eq!(all().redact_value(&asked), Some((expected, 3)));
        assert_eq!(all().redact_value(&json!({"n": [1, "x"]})), None);
    }

    #[test]
    fn a_pattern_that_can_not_be_used_says_why() {
        let told = |pattern: &str| {
            Redactor::new(&[], &["fine".to_owned(), pattern.to_owned()])
                .map(|_| ())
                .map_err(|(n, wrong)| (n, wrong.to_string()))
        };
        let table = [
            ("(", "is no regular expression: unclosed group"),
            ("x*", "also matches an empty text"),
            ("(?:a{1000}){1000}", "is too large"),
        ];
        for (pattern, expected) in table {
            assert_eq!(told(pattern), Err((1, expected.to_owned())), "{pattern}");
        }
        let long = "a".repeat(PATTERN_MAX_CHARS + 1);
        assert_eq!(
            told(&long),
            Err((1, "is longer than 500 characters".to_owned()))
        );
        assert_eq!(told(r"\bINT-\d+\b"), Ok(()));
    }

    #[test]
    fn a_huge_text_is_read_in_one_go() {
        let digits = "4111 1111 1111 1112 ".repeat(50_000);
        assert_eq!(all().redact(&digits).count, 0);
        let letters = "a.".repeat(500_000);
        assert_eq!(all().redact(&letters).count, 0);
    }
}
