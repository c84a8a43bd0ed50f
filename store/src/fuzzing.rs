//! Functions of this crate that only the fuzz targets may call. Hidden from the docs, and not a stable API. See
//! `fuzz/README.md`.

use crate::acts::erasure;
use crate::views::search::terms::SearchTerms;
use vocative_core::search::excerpt::excerpt;

/// The excerpt of `text` that is shown when `query` finds it.
#[must_use]
pub fn found(query: &str, text: &str) -> String {
    let terms = SearchTerms::parse(query);
    let _ = terms.counts(text, &mut String::new());
    excerpt(text, terms.first_match(text), 300)
}

/// `text` without the traces of `of`; the two may be the same text.
#[must_use]
pub fn erased(of: &str, text: &str) -> Option<String> {
    erasure::without_traces(of, text)
}
