//! Functions that only the fuzz targets call. They are hidden and may change. See `fuzz/README.md`.

/// A model's text without its thoughts, read in pieces of a number of bytes.
#[must_use]
pub fn without_thoughts(text: &str, piece_bytes: usize) -> String {
    super::provider::visible_of(text, piece_bytes)
}
