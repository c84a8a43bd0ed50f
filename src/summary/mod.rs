//! Rolling summaries: folds the older kept turns of an agent into a stored summary, outside the
//! reply path.
//!
//! Knows no platform, and no run waits for it. A summary is never the source of truth: if one is late, refused or
//! lost, that costs tokens or context, never a turn. `vocative_core::folding` decides what is folded, asked and
//! accepted; `summarizer` has it done. `titling` has the same model title conversations.

pub mod summarizer;
#[cfg(test)]
mod tests;
pub mod titling;
