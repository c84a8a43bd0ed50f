//! Fetching what people attach: after the commit of its turn, durably, and never in its way.
//!
//! A job says that a file is to be fetched: the channel is asked for it, the bytes are stored beside the database,
//! and the outcome is noted. Voice notes are then transcribed by a job of their own, if that is configured. It knows
//! no prompt, no model and no platform.
//!
//! Reading order: `policy` (what is fetched, and what follows from a failure: pure), `space` (the limit of all
//! together), `speech`, `held` (whether its server is asked), `fetching`, `waiting`, `given_up`.

pub mod fetching;
pub mod given_up;
pub mod held;
pub mod policy;
pub mod space;
pub mod speech;
pub mod waiting;
