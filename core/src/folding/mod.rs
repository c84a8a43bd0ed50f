//! Rolling summaries: which turns are folded, what a model is asked, which answers count. Pure.
//!
//! Nothing here is truth: a summary that is late, refused or lost costs tokens or context, never a turn.
//! Reading order: `plan`, `request`, `accept`, `details` (what an answer lost), `offline` (a summariser without a
//! model).

pub mod accept;
pub mod details;
pub mod offline;
pub mod plan;
pub mod request;

/// The longest summary that is accepted, in tokens: it bounds what each following summary carries along.
pub const SUMMARY_MAX_TOKENS: usize = 1_000;
/// The most facts that a summary holds beside its text.
pub const FACTS_MAX: usize = 40;
