//! Joins characters that a server split: JavaScript counts an emoji as two halves and escapes each, so one event of a
//! stream may end with `\ud83d` and the next begin with `\ude80`. No JSON parser accepts one without the other.
//!
//! It works on the JSON before it is parsed, and so for every field of every wire. A half without its partner is shown
//! as U+FFFD, or not at all at the end of a stream.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use vocative_contract::work::looked_at;

/// The first halves of surrogate pairs.
const FIRST: RangeInclusive<u16> = 0xD800..=0xDBFF;
/// The second halves of surrogate pairs.
const SECOND: RangeInclusive<u16> = 0xDC00..=0xDFFF;
/// The escape that replaces a half without a partner.
const LOST: &str = "\\ufffd";
/// The length of `\uXXXX`.
const ESCAPE_BYTES: usize = 6;

/// The half with which an event ended.
#[derive(Debug, Default)]
pub(super) struct SurrogateHalves {
    /// As it was escaped.
    first: Option<String>,
}

impl SurrogateHalves {
    /// An event's JSON in which every half is next to its partner.
    pub(super) fn joined<'a>(&mut self, json: &'a str) -> Cow<'a, str> {
        if !json.contains("\\ud") && !json.contains("\\uD") {
            return Cow::Borrowed(json);
        }
        looked_at(json.len());
        let mut out = String::with_capacity(json.len() + ESCAPE_BYTES);
        let (mut at, mut done) = (0, 0);
        while let Some(found) = json[at..].find('\\') {
            let escape = at + found;
            let half = half_at(json, escape);
            let Some(half) = half else {
                // The escaped character may itself be a backslash.
                at = escape + 1 + json[escape + 1..].chars().next().map_or(0, char::len_utf8);
                continue;
            };
            let end = escape + ESCAPE_BYTES;
            at = end;
            if FIRST.contains(&half) && half_at(json, end).is_some_and(|it| SECOND.contains(&it)) {
                at = end + ESCAPE_BYTES;
                continue;
            }
            out.push_str(&json[done..escape]);
            done = end;
            if FIRST.contains(&half) {
                // Only a half at the end of a string can have its partner in the next event.
                let is_last = json[end..].starts_with('"');
                let before = match is_last {
                    true => self.first.replace(json[escape..end].to_owned()),
                    false => Some(String::new()),
                };
                out.push_str(before.map_or("", |_| LOST));
            } else {
                match self.first.take() {
                    Some(first) => {
                        out.push_str(&first);
                        out.push_str(&json[escape..end]);
                    }
                    None => out.push_str(LOST),
                }
            }
        }
        out.push_str(&json[done..]);
        Cow::Owned(out)
    }
}

/// Joins the halves in a body that is not streamed.
pub(super) fn whole(json: &str) -> Cow<'_, str> {
    SurrogateHalves::default().joined(json)
}

/// The half of a character that is escaped at this place.
fn half_at(json: &str, at: usize) -> Option<u16> {
    let digits = json.get(at..at + ESCAPE_BYTES)?.strip_prefix("\\u")?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let unit = u16::from_str_radix(digits, 16).ok().filter(|_| is_hex)?;
    (FIRST.contains(&unit) || SECOND.contains(&unit)).then_some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(events: &[&str]) -> Vec<String> {
        let mut halves = SurrogateHalves::default();
        let events = events.iter().map(|json| halves.joined(json));
        let texts = events.map(|json| serde_json::from_str::<String>(&json));
        texts.map(|text| text.expect("it is JSON")).collect()
    }

    #[test]
    fn halves_in_two_events_are_one_character() {
        let table: [(&[&str], &[&str]); 9] = [
            (&[r#""go \ud83d""#, r#""\ude80!""#], &["go ", "🚀!"]),
            (
                &[r#""\uD83D""#, r#""""#, r#""\uDE80\ud83d""#, r#""\ude80""#],
                &["", "", "🚀", "🚀"],
            ),
            (&[r#""\ud83d\ude80""#], &["🚀"]),
            (&[r#""plain""#], &["plain"]),
            (&[r#""a \\ud83d b""#], &[r"a \ud83d b"]),
            (&[r#""\\\ud83d""#, r#""\ude80""#], &["\\", "🚀"]),
            (&[r#""\ude80 and \ud83d x""#], &["\u{FFFD} and \u{FFFD} x"]),
            (
                &[r#""\ud83d""#, r#""\ud83d""#, r#""\ude80""#],
                &["", "\u{FFFD}", "🚀"],
            ),
            (&[r#""\ud83d""#], &[""]),
        ];
        for (events, expected) in table {
            assert_eq!(joined(events), expected, "{events:?}");
        }
    }

    #[test]
    fn what_is_no_json_stays_that() {
        for broken in [r#""\ud83"#, r#""\ud83d"#, r#""\"#, "\\ud", r#""\udé""#] {
            let mut halves = SurrogateHalves::default();
            assert!(serde_json::from_str::<String>(&halves.joined(broken)).is_err());
        }
    }
}
