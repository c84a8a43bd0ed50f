//! Renders an answer into posts. Pure.
//!
//! Until formatting is rendered, a post is plain text. It is normalised here as the server would do
//! it, so that what is stored is what people see.

use crate::capability::LengthUnit;
use crate::error::Fallback;
use crate::markup::replace_mentions;
use crate::outbound::Part;
use crate::split::split_text;

/// The longest text of one post, in UTF-16 units.
///
/// Telegram takes 4,096 characters; the margin covers what counts differently on their side.
pub const TEXT_MAX_UTF16: usize = 4_000;

/// What stands for a text of which the server would leave nothing.
const NOTHING_VISIBLE: &str = "…";

/// Renders a text into parts.
pub(super) fn render(text: &str) -> Vec<Part> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    let mut pieces = split(&normalised(text), TEXT_MAX_UTF16);
    if pieces.is_empty() {
        pieces.push(NOTHING_VISIBLE.to_owned());
    }
    pieces.into_iter().map(Part::plain).collect()
}

/// Replaces a refused part. An empty result means that nothing else can be tried.
pub(super) fn render_fallback(part: &Part, fallback: Fallback) -> Vec<Part> {
    match fallback {
        Fallback::None => Vec::new(),
        Fallback::Plain => vec![Part::plain(part.text.clone())],
        Fallback::Resplit => {
            let half = LengthUnit::Utf16.len(&part.text) / 2;
            if half < 2 {
                return Vec::new();
            }
            split(&part.text, half)
                .into_iter()
                .map(Part::plain)
                .collect()
        }
        Fallback::WithoutThread | Fallback::WithoutReply => vec![part.clone()],
    }
}

fn split(text: &str, max: usize) -> Vec<String> {
    split_text(text, max, LengthUnit::Utf16)
        .into_iter()
        .map(|piece| piece.trim_matches([' ', '\n']).to_owned())
        .collect()
}

/// The text as the server keeps it: control characters and tabs become spaces, carriage returns
/// and direction marks vanish, both ends are trimmed. Source: tdlib, `clean_input_string`.
fn normalised(text: &str) -> String {
    let text = replace_mentions(text, str::to_owned);
    let kept: String = text
        .chars()
        .filter(|c| !matches!(*c, '\r' | '\u{2028}'..='\u{202E}'))
        .map(|c| if c.is_control() && c != '\n' { ' ' } else { c })
        .collect();
    kept.trim_matches([' ', '\n']).to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::markup::mention_token;

    fn texts(text: &str) -> Vec<String> {
        render(text).into_iter().map(|part| part.text).collect()
    }

    #[test]
    fn short_text_is_one_trimmed_part() {
        assert_eq!(texts("\n hello\tworld\r\n\n"), ["hello world"]);
        assert_eq!(texts(" \n "), Vec::<String>::new());
        assert_eq!(texts("\u{202A}\u{202C}"), ["…"]);
        assert_eq!(texts("*a* _b_ <c> & d"), ["*a* _b_ <c> & d"]);
        assert_eq!(texts(&format!("hi {}", mention_token("@bob"))), ["hi @bob"]);
    }

    #[test]
    fn long_text_is_cut_by_utf16_units() {
        let parts = texts(&"👍".repeat(2_001));
        let lengths: Vec<usize> = parts
            .iter()
            .map(|part| LengthUnit::Utf16.len(part))
            .collect();
        assert_eq!(lengths, [4_000, 2]);
    }

    #[test]
    fn fallbacks_are_smaller_or_plainer() {
        let part = Part {
            entities: Some(serde_json::json!([{"type": "bold", "offset": 0, "length": 3}])),
            ..Part::plain("one two")
        };
        assert_eq!(
            render_fallback(&part, Fallback::Plain),
            [Part::plain("one two")]
        );
        assert_eq!(
            render_fallback(&part, Fallback::Resplit),
            [Part::plain("one"), Part::plain("two")]
        );
        assert_eq!(
            render_fallback(&part, Fallback::WithoutReply),
            std::slice::from_ref(&part)
        );
        assert_eq!(render_fallback(&part, Fallback::None), []);
        assert_eq!(render_fallback(&Part::plain("x"), Fallback::Resplit), []);
    }

    proptest! {
        #[test]
        fn every_part_fits_and_is_what_the_server_keeps(text in "(\\PC|[\n\t\r 👍a]){0,6000}") {
            let parts = texts(&text);
            prop_assert_eq!(parts.is_empty(), text.trim().is_empty());
            for part in parts {
                prop_assert!(LengthUnit::Utf16.len(&part) <= TEXT_MAX_UTF16);
                prop_assert!(!part.trim().is_empty());
                prop_assert_eq!(normalised(&part), part.clone());
            }
        }
    }
}
