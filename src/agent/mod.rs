//! Agents at work: claims a run, assembles its prompt, asks its model, commits the answer.
//!
//! Knows no platform and posts nothing: an answer leaves through the outbox. Reading order:
//! `registry`, `prompting`, `run`, `worker`.

pub mod prompting;
pub mod registry;
mod run;
mod step;
#[cfg(test)]
mod tests;
pub mod worker;
