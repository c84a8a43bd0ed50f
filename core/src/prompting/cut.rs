//! Cuts a message to a number of tokens, with a marker that says how much is missing.

use super::TokenCounter;

/// A history turn is cut only if at least this many tokens of it can stay, marker included.
pub const CUT_MIN_TOKENS: usize = 32;

/// The length that the search for a cut tries first, in characters; it doubles from there.
const CHARS_TRIED_FIRST: usize = 128;

/// A message that was cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// The text that stays, with the marker.
    pub(super) text: String,
    /// What it costs, overhead included.
    pub(super) tokens: usize,
    /// Tokens left out.
    pub(super) left_out: usize,
}

/// The longest beginning of `text` that costs at most `limit` tokens with its marker.
///
/// `full` is what the whole costs. `None` if not even the marker fits. However long the text, only
/// about what stays of it is counted.
pub(super) fn cut(
    text: &str,
    full: usize,
    limit: usize,
    counter: &dyn TokenCounter,
) -> Option<Cut> {
    let fits = |end: usize| cut_at(text, end, full, counter).tokens <= limit;
    let mut ends_max = CHARS_TRIED_FIRST;
    while let Some((end, _)) = text.char_indices().nth(ends_max)
        && fits(end)
    {
        ends_max = ends_max.saturating_mul(2);
    }
    let ends: Vec<usize> = text
        .char_indices()
        .map(|(index, _)| index)
        .take(ends_max)
        .collect();
    let (mut low, mut high) = (0, ends.len());
    let mut best = None;
    while low < high {
        let middle = usize::midpoint(low, high);
        let candidate = cut_at(text, ends[middle], full, counter);
        if candidate.tokens <= limit {
            best = Some(candidate);
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    best
}

/// The marker alone, for a trigger whose limit is too small for any of its text.
pub(super) fn marker_only(text: &str, full: usize, counter: &dyn TokenCounter) -> Cut {
    cut_at(text, 0, full, counter)
}

fn cut_at(text: &str, end: usize, full: usize, counter: &dyn TokenCounter) -> Cut {
    let kept = text[..end].trim_end();
    let left_out = full.saturating_sub(counter.cost(kept)).max(1);
    let text = format!("{kept} … [cut: {left_out} tokens left out]");
    let tokens = counter.cost(&text);
    Cut {
        text,
        tokens,
        left_out,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ClassEstimate, Utf16Div4};
    use super::*;

    #[test]
    fn the_longest_beginning_that_fits_stays() {
        let text = "a".repeat(400);
        let found = cut(&text, 100, 40, &Utf16Div4).expect("the marker fits");
        assert_eq!(found.tokens, 40);
        assert_eq!(
            found.text,
            format!("{} … [cut: 67 tokens left out]", "a".repeat(132))
        );
        assert_eq!(cut(&text, 100, 3, &Utf16Div4), None);
    }

    #[test]
    fn characters_are_never_split() {
        let text = "🙂".repeat(300);
        let full = ClassEstimate.cost(&text);
        for limit in 20..60 {
            let found = cut(&text, full, limit, &ClassEstimate).expect("the marker fits");
            assert!(found.tokens <= limit, "{limit}");
            assert!(found.text.starts_with('🙂'), "{limit}");
        }
    }
}
