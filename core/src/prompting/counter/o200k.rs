//! Exact counts for OpenAI's models from `gpt-4o` on: their own vocabulary, 46 MB of memory once used.

use super::TokenCounter;

/// Texts longer than this are counted in pieces, in bytes. The vocabulary's pattern looks back and forth over
/// runs of white space; a run of a megabyte would end in a panic inside the library.
const PIECE_BYTES: usize = 4_096;
/// A piece that has no harmless place to end is ended at this length, in bytes, which may miscount by a token.
const PIECE_MAX_BYTES: usize = 4 * PIECE_BYTES;

/// Counts by the `o200k` vocabulary.
#[derive(Clone, Copy, Debug, Default)]
pub struct O200k;

impl TokenCounter for O200k {
    fn name(&self) -> &'static str {
        "o200k_v1"
    }

    fn count(&self, text: &str) -> u32 {
        let vocabulary = tiktoken_rs::o200k_base_singleton();
        let tokens: usize = pieces(text)
            .map(|piece| vocabulary.encode_ordinary(piece).len())
            .sum();
        u32::try_from(tokens).unwrap_or(u32::MAX)
    }

    fn per_message_overhead(&self) -> u32 {
        4
    }

    fn is_exact(&self) -> bool {
        true
    }
}

/// The text in pieces that end where the vocabulary would start a new word anyway.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, after) = rest.split_at(piece_end(rest));
        rest = after;
        Some(piece)
    })
}

fn piece_end(text: &str) -> usize {
    if text.len() <= PIECE_BYTES {
        return text.len();
    }
    let end = PIECE_MAX_BYTES.min(text.len());
    let bytes = text.as_bytes();
    // A single space between two plain letters: it belongs to the word after it.
    let is_harmless = |at: &usize| {
        bytes[*at] == b' '
            && bytes[at - 1].is_ascii_lowercase()
            && bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase)
    };
    (PIECE_BYTES..end)
        .find(is_harmless)
        .or_else(|| (0..=end).rev().find(|at| text.is_char_boundary(*at)))
        .unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_counts_like_a_whole() {
        let whole = |text: &str| {
            tiktoken_rs::o200k_base_singleton()
                .encode_ordinary(text)
                .len()
        };
        let prose =
            "the quick brown fox, they say, jumped over a lazy dog \u{201c}twice\u{201d}. \n";
        let text = prose.repeat(2_000);
        assert_eq!(O200k.count(&text) as usize, whole(&text));
        let han = "今天天气很好".repeat(4_000);
        let (counted, exact) = (O200k.count(&han) as usize, whole(&han));
        assert!(counted.abs_diff(exact) <= 10, "{counted} {exact}");
    }

    #[test]
    fn hostile_runs_are_counted_without_a_panic() {
        for text in [
            " ", "\n", "\t \n", "a", "A", "🙂", "\u{0301}", "\0", "=", "١",
        ] {
            let run = text.repeat(65_536 / text.len());
            assert!(O200k.count(&run) > 0, "{text:?}");
        }
        assert_eq!(O200k.count(""), 0);
        assert_eq!(
            O200k.count("<|endoftext|>"),
            7,
            "special tokens are plain text"
        );
    }
}
