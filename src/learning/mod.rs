//! What agents learn in the background: once a conversation has settled, a model reads its new lines for facts to
//! remember, which are stored with their sources.
//!
//! Knows no platform and posts nothing. A reading is a job of the queue: after a kill the conversation is read again,
//! and stored entries are not stored twice. `vocative_core::remembering::extracting` decides what is asked and which
//! entries count; the store's transaction decides what may be written.

mod learner;

pub use learner::Learner;
