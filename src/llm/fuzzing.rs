//! What the fuzz targets call of this module that nobody else may. Hidden, and no promise. See
//! `fuzz/README.md`.

/// What of a model's text is no thought, read as it grows by a number of bytes at a time.
#[must_use]
pub fn without_thoughts(text: &str, piece_bytes: usize) -> String {
    super::provider::visible_of(text, piece_bytes)
}
