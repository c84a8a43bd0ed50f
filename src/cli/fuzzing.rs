//! What the fuzz targets call of this module that nobody else may. Hidden, and no promise. See
//! `fuzz/README.md`.

use super::context::harmless;
use super::{conversations, markdown};

/// A message's text in a Markdown export.
#[must_use]
pub fn exported(text: &str) -> String {
    markdown::block(text) + &markdown::inline(text)
}

/// A message's text as `conversations show` prints it.
#[must_use]
pub fn shown(text: &str) -> String {
    harmless(&conversations::indented(text)).into_owned()
}
