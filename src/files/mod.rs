//! Fetching what people attach: after the commit of its turn, durably, and never in its way.
//!
//! A row of the store says that a file is to be fetched; the worker asks the channel for it, writes the
//! bytes beside the database and notes what became of it. Voice notes are then written down, where that is
//! configured. It knows no prompt, no model and no platform.
//!
//! Reading order: `policy` (what is fetched, and what follows from a failure: pure), `space` (the limit of all
//! together), `speech`, `held` (whether its server is asked), `worker`, `waiting`, `counters`.

pub mod counters;
pub mod held;
pub mod policy;
pub mod space;
pub mod speech;
pub mod waiting;
pub mod worker;
