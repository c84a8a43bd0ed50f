//! A neutral text as Slack posts: pure.
//!
//! Texts go out plain: `&`, `<` and `>` are escaped, so that nothing in them can mention anybody,
//! ping a channel or make a link that shows another address.

use crate::capability::LengthUnit;
use crate::error::Fallback;
use crate::markup::neutral_text;
use crate::outbound::Part;
use crate::split::split_text;

use super::text::unescaped;

/// The longest text of one post, in characters as they go over the wire.
///
/// Slack takes 40,000 and cuts longer ones silently, but recommends this. Source: `chat.postMessage`.
pub const TEXT_MAX_CHARS: usize = 4_000;

/// What is posted for a text of which nothing can be shown.
const NOTHING_TO_SHOW: &str = "(nothing to show)";

/// Renders a text into posts within the limit.
#[must_use]
pub(super) fn render(text: &str) -> Vec<Part> {
    let neutral = neutral_text(text);
    let parts = parts_within(&neutral, TEXT_MAX_CHARS);
    if parts.is_empty() && !text.trim().is_empty() {
        return vec![Part::plain(NOTHING_TO_SHOW)];
    }
    parts
}

/// Replaces a refused part by smaller or plainer ones.
#[must_use]
pub(super) fn render_fallback(part: &Part, fallback: Fallback) -> Vec<Part> {
    match fallback {
        Fallback::Resplit => {
            let text = unescaped(&part.text);
            let half = part.text.chars().count().div_ceil(2);
            let parts = parts_within(&text, half);
            if parts.is_empty() {
                vec![part.clone()]
            } else {
                parts
            }
        }
        Fallback::Plain => vec![Part::plain(part.text.clone())],
        Fallback::None | Fallback::WithoutThread | Fallback::WithoutReply => vec![part.clone()],
    }
}

/// Escapes what Slack reads as control characters.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Parts of at most `max` characters each after escaping, where a single character allows it.
fn parts_within(text: &str, max: usize) -> Vec<Part> {
    let mut parts = Vec::new();
    for piece in split_text(text, max, LengthUnit::Chars) {
        push_within(&mut parts, &piece, max, max);
    }
    parts
}

/// Splits a piece smaller until it fits although escaping makes it longer.
fn push_within(parts: &mut Vec<Part>, piece: &str, max: usize, split_max: usize) {
    let wire = escaped(piece);
    if wire.chars().count() <= max || split_max <= 2 {
        parts.push(Part::plain(wire));
        return;
    }
    let smaller = (split_max * max / wire.chars().count()).clamp(2, split_max - 1);
    for piece in split_text(piece, smaller, LengthUnit::Chars) {
        push_within(parts, &piece, max, smaller);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(text: &str) -> Vec<String> {
        render(text).into_iter().map(|part| part.text).collect()
    }

    #[test]
    fn a_model_cannot_mention_or_ping_anybody() {
        assert_eq!(
            texts("<!channel> <@U1> <https://evil|bank> \u{FFF9}U1\u{FFFB} a & b &lt;"),
            ["&lt;!channel&gt; &lt;@U1&gt; &lt;https://evil|bank&gt; U1 a &amp; b &amp;lt;"]
        );
        assert_eq!(texts(" \n "), Vec::<String>::new());
        assert_eq!(texts("\u{FFF9}"), [NOTHING_TO_SHOW]);
    }

    #[test]
    fn long_texts_are_split_after_escaping() {
        let parts = texts(&"<<<< ".repeat(2_000));
        assert!(
            parts
                .iter()
                .all(|part| part.chars().count() <= TEXT_MAX_CHARS)
        );
        assert_eq!(parts.concat().matches("&lt;").count(), 8_000);
        assert_eq!(texts(&"word ".repeat(1_000)).len(), 2);
    }

    #[test]
    fn fallbacks_are_smaller_or_plainer() {
        let part = Part::plain("one two &lt;three&gt; four");
        let resplit = render_fallback(&part, Fallback::Resplit);
        assert!(resplit.len() > 1 && resplit.iter().all(|it| it.text.len() < part.text.len()));
        assert_eq!(render_fallback(&part, Fallback::WithoutThread), vec![part]);
        let tiny = Part::plain("x");
        assert_eq!(render_fallback(&tiny, Fallback::Resplit), vec![tiny]);
    }

    proptest! {
        #[test]
        fn every_part_fits_and_no_text_is_lost(text in "[<>&a \n]{0,3000}") {
            let parts = texts(&text);
            for part in &parts {
                prop_assert!(part.chars().count() <= TEXT_MAX_CHARS);
                prop_assert!(!part.contains(['<', '>']));
            }
            let squeeze = |text: &str| text.split_whitespace().collect::<String>();
            prop_assert_eq!(squeeze(&unescaped(&parts.concat())), squeeze(&text));
        }
    }
}
