//! Mention tokens: how platform-neutral text says "this participant".
//!
//! A token is `U+FFF9 id U+FFFB` (interlinear annotation marks, which people do not type and
//! which Unicode does not mean for interchange). [`neutral_text`] removes stray marks from platform text, so a
//! token can't be forged. The id is the platform's user id, or `@username` where the platform gives
//! no id.

use std::borrow::Cow;

use crate::work::looked_at;

/// The longest name, title or label that is kept, in characters.
pub const LABEL_MAX_CHARS: usize = 300;

/// The longest text of a platform that is read, in bytes. Slack's limit is 40,000 characters, Telegram's
/// 4,096 and 32,768 for formatted pages: no person can send a longer one.
pub const TEXT_MAX_BYTES: usize = 256 * 1_024;

/// Opens a mention token.
pub const MENTION_OPEN: char = '\u{FFF9}';
/// Closes a mention token.
pub const MENTION_CLOSE: char = '\u{FFFB}';

/// The token for a participant.
#[must_use]
pub fn mention_token(id: &str) -> String {
    format!("{MENTION_OPEN}{id}{MENTION_CLOSE}")
}

/// A text cut to the length that is read, before anything parses it. A text that was cut says so at its end.
#[must_use]
pub fn bounded(text: &str) -> Cow<'_, str> {
    if text.len() <= TEXT_MAX_BYTES {
        return Cow::Borrowed(text);
    }
    let mut end = TEXT_MAX_BYTES;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let left_out = text.len() - end;
    Cow::Owned(format!("{} [cut: {left_out} bytes left out]", &text[..end]))
}

/// Platform text made safe to carry tokens: the two marks and NUL are dropped.
#[must_use]
pub fn neutral_text(text: &str) -> String {
    looked_at(text.len());
    text.chars()
        .filter(|c| !matches!(*c, MENTION_OPEN | MENTION_CLOSE | '\0'))
        .collect()
}

/// A name or title made fit for one line: no tokens, no line ends or other control characters, not
/// longer than [`LABEL_MAX_CHARS`]; `None` if nothing is left.
#[must_use]
pub fn one_line(text: &str) -> Option<String> {
    let text = neutral_text(text).replace(|c: char| c.is_control(), " ");
    let words: Vec<&str> = text.split_whitespace().collect();
    let line: String = words.join(" ").chars().take(LABEL_MAX_CHARS).collect();
    (!line.is_empty()).then_some(line)
}

/// Replaces every mention token by what `name` returns for its id.
#[must_use]
pub fn replace_mentions(text: &str, mut name: impl FnMut(&str) -> String) -> String {
    looked_at(text.len());
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find(MENTION_OPEN) {
        out.push_str(&rest[..open]);
        let after = &rest[open + MENTION_OPEN.len_utf8()..];
        let close = after.find([MENTION_OPEN, MENTION_CLOSE]);
        let Some(close) = close.filter(|at| after[*at..].starts_with(MENTION_CLOSE)) else {
            // A closing or opening mark without its partner is dropped.
            rest = after;
            continue;
        };
        out.push_str(&name(&after[..close]));
        rest = &after[close + MENTION_CLOSE.len_utf8()..];
    }
    out + rest
}

/// The ids of all mention tokens, in order.
#[must_use]
pub fn mentioned_ids(text: &str) -> Vec<String> {
    let mut ids = Vec::new();
    let _ = replace_mentions(text, |id| {
        ids.push(id.to_owned());
        String::new()
    });
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_bounded_line() {
        assert_eq!(one_line(" Ann\n\tLee\u{7} "), Some("Ann Lee".to_owned()));
        assert_eq!(one_line(" \n\u{FFF9} "), None);
        let long = one_line(&"é".repeat(5_000)).map(|name| name.chars().count());
        assert_eq!(long, Some(LABEL_MAX_CHARS));
    }

    #[test]
    fn a_text_is_cut_before_it_is_read_and_says_so() {
        let longest = "é".repeat(TEXT_MAX_BYTES / 2);
        assert_eq!(bounded(&longest), longest);
        let longer = format!("x{longest}");
        let expected = format!("{} [cut: 2 bytes left out]", &longer[..longer.len() - 2]);
        assert_eq!(bounded(&longer), expected);
    }

    #[test]
    fn tokens_round_trip_and_cannot_be_forged() {
        let text = format!("hi {} and {}!", mention_token("U1"), mention_token("@bob"));
        assert_eq!(mentioned_ids(&text), ["U1", "@bob"]);
        assert_eq!(
            replace_mentions(&text, |id| format!("<{id}>")),
            "hi <U1> and <@bob>!"
        );
        assert_eq!(neutral_text("a\u{FFF9}U1\u{FFFB}\0b"), "aU1b");
        assert_eq!(
            replace_mentions("cut \u{FFF9}U1", |_| String::new()),
            "cut U1"
        );
    }
}
