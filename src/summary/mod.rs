//! Rolling summaries: folds the older kept turns of an agent into a stored summary, outside the
//! reply path.
//!
//! Knows no platform, and no run waits for it. Nothing here is truth: a summary that is late, refused
//! or lost costs tokens or context, never a turn. Reading order: `plan` (what is folded, pure),
//! `request` (what a model is asked, pure), `accept` (which answers count, pure), `offline` (a
//! summariser without a model, pure), `worker`.

#[cfg(test)]
mod tests;
pub mod worker;
