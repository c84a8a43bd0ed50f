//! What the fuzz targets call of this module that nobody else may. Hidden, and no promise. See
//! `fuzz/README.md`.

use crate::acts::erasure;
use crate::views::search::terms::SearchTerms;
use vocative_core::search::excerpt::excerpt;

/// What is shown of a text that a query finds.
#[must_use]
pub fn found(query: &str, text: &str) -> String {
    let terms = SearchTerms::parse(query);
    let _ = terms.counts(text, &mut String::new());
    excerpt(text, terms.first_match(text), 300)
}

/// A text without the traces of another one, or of itself.
#[must_use]
pub fn erased(of: &str, text: &str) -> Option<String> {
    erasure::without_traces(of, text)
}
