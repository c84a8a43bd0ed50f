//! Splits plain text at lines or words so that every piece fits a platform's limit.

use unicode_segmentation::UnicodeSegmentation as _;

use crate::capability::LengthUnit;
use crate::work::looked_at;

/// Splits `text` into pieces of at most `max` units.
///
/// Prefers an empty line, then a line end, then a space, then a grapheme boundary, then any
/// character. Pieces are trimmed of the white space at the cut and are never blank; a blank text
/// gives no piece. A `max` of 0 counts as 1 (2 for UTF-16).
#[must_use]
pub fn split_text(text: &str, max: usize, unit: LengthUnit) -> Vec<String> {
    let least = match unit {
        LengthUnit::Chars => 1,
        LengthUnit::Utf16 => 2,
    };
    let max = max.max(least);
    let mut pieces = Vec::new();
    let mut rest = text.trim_end();
    loop {
        // Never measures all that is left: that would take quadratic time.
        let window = prefix_within(rest, max, unit);
        if window == rest.len() {
            break;
        }
        let cut = cut_position(rest, window);
        push_piece(&mut pieces, &rest[..cut]);
        rest = rest[cut..].trim_start_matches(['\n', ' ', '\r']);
    }
    push_piece(&mut pieces, rest);
    pieces
}

fn push_piece(pieces: &mut Vec<String>, piece: &str) {
    let piece = piece.trim_end();
    if !piece.trim().is_empty() {
        pieces.push(piece.to_owned());
    }
}

/// The byte length of the longest prefix of at most `max` units.
fn prefix_within(text: &str, max: usize, unit: LengthUnit) -> usize {
    let mut units = 0;
    for (at, c) in text.char_indices() {
        looked_at(1);
        units += match unit {
            LengthUnit::Chars => 1,
            LengthUnit::Utf16 => c.len_utf16(),
        };
        if units > max {
            return at;
        }
    }
    text.len()
}

/// Where to cut within the first `window` bytes; at least one character.
fn cut_position(text: &str, window: usize) -> usize {
    // White space right behind the window is a boundary too: it is dropped, so it need not fit.
    let head = match text[window..].chars().next() {
        Some('\n') => &text[..=window],
        Some(' ') if !text[..window].contains('\n') => &text[..=window],
        _ => &text[..window],
    };
    looked_at(window);
    // A cut in the first quarter would make many small pieces; then the next finer boundary is better.
    let floor = window / 4;
    let boundary = |found: Option<usize>| found.filter(|at| *at > floor);
    boundary(head.rfind("\n\n"))
        .or_else(|| boundary(head.rfind('\n')))
        .or_else(|| boundary(head.rfind(' ')))
        .or_else(|| last_grapheme_end(text, window))
        .unwrap_or(window)
}

fn last_grapheme_end(text: &str, window: usize) -> Option<usize> {
    // One character beyond the window is enough to see a grapheme that reaches across its end, and a grapheme may be as
    // long as the text.
    let next = text[window..].chars().next().map_or(0, char::len_utf8);
    text[..window + next]
        .grapheme_indices(true)
        .map(|(at, _)| at)
        .take_while(|at| *at <= window)
        .last()
        .filter(|at| *at > 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn splits_at_the_best_boundary() {
        let split = |text: &str, max| split_text(text, max, LengthUnit::Chars);
        assert_eq!(split("short", 10), ["short"]);
        assert_eq!(split("  \n ", 10), Vec::<String>::new());
        assert_eq!(split("one two\n\nthree", 10), ["one two", "three"]);
        assert_eq!(split("one\ntwo three", 9), ["one", "two three"]);
        assert_eq!(split("aaaa bbbb cccc", 9), ["aaaa bbbb", "cccc"]);
        assert_eq!(split("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(split("abc", 1), ["a", "b", "c"]);
    }

    #[test]
    fn keeps_graphemes_and_surrogate_pairs_whole() {
        let family = "👨‍👩‍👧";
        let pieces = split_text(&family.repeat(3), 8, LengthUnit::Utf16);
        assert_eq!(pieces, [family, family, family]);
        assert_eq!(split_text("👍👍", 2, LengthUnit::Utf16), ["👍", "👍"]);
    }

    proptest! {
        #[test]
        fn every_piece_fits_and_no_text_is_lost(text in "\\PC{0,200}|[a-c \n👍é]{0,200}", max in 1_usize..40) {
            for unit in [LengthUnit::Chars, LengthUnit::Utf16] {
                let pieces = split_text(&text, max, unit);
                for piece in &pieces {
                    prop_assert!(unit.len(piece) <= max.max(2));
                    prop_assert!(!piece.trim().is_empty());
                }
                let squeeze = |text: &str| text.split_whitespace().collect::<String>();
                prop_assert_eq!(squeeze(&pieces.concat()), squeeze(&text));
            }
        }
    }
}
