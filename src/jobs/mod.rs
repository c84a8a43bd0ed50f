//! Durable background work: one queue, one loop, a handler for each kind.
//!
//! Which jobs there are, and how often and when a job is tried again: core's `job` and `queueing`. The rows: the
//! store's `rows/jobs`. A job that waits, or whose handler hangs, delays no other kind and no other account.
//!
//! Reading order: `worker` (the loop), `handlers` (what each kind does).

pub mod handlers;
#[cfg(test)]
mod tests;
pub mod worker;
