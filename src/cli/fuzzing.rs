//! What the fuzz targets call of this module and no other code may. Hidden, and not a stable interface. See
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
