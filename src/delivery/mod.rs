//! Delivery: the only writer into rooms. It sends what is committed and never decides what to say.
//!
//! The life of an entry: `pending` -> `leased` (claimed) -> `sent`, or by what the platform said
//! (`vocative_core::sending`): pending again, `unknown` (looked for, where the platform can say), `held` (waits for a
//! person), `dead`, or replaced by plainer or smaller parts. Entries of one chat go in order.
//!
//! Beside it, `live` shows an answer while it is written: it never carries what is delivered.
//!
//! Reading order: `rooms` (who can send where), `worker`, `asking`, `live`.

mod asking;
pub mod live;
pub mod rooms;
pub mod worker;
