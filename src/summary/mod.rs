//! Rolling summaries: folds the older kept turns of an agent into a stored summary, outside the
//! reply path.
//!
//! Knows no platform, and no run waits for it. Nothing here is truth: a summary that is late, refused
//! or lost costs tokens or context, never a turn. What is folded, asked and accepted is decided in
//! `vocative_core::folding`; `summarizer` has it done. `titling` has the same model title conversations.

pub mod summarizer;
#[cfg(test)]
mod tests;
pub mod titling;
