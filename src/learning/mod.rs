//! What agents learn in the background: once a conversation has settled, its new lines are read by a model for what is
//! worth keeping, and what it finds is written down with its sources.
//!
//! Knows no platform and posts nothing. A reading is a job of the queue: killed anywhere, the conversation is read again,
//! and what was written once is not written twice. What is asked and which entries count is decided in
//! `vocative_core::remembering::extracting`; what may be written, in the store's transaction.

mod learner;

pub use learner::Learner;
