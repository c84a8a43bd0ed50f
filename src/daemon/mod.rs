//! The daemon: wiring, supervision, shutdown. Nothing is decided here that a room below decides.
//!
//! Reading order: `wiring`, `supervise`, `names`, `system`, `start`.

pub mod supervise;
