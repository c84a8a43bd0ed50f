//! The daemon: wiring, supervision, shutdown. Nothing is decided here that a room below decides.
//!
//! Reading order: `wiring` (configuration to rooms), `supervise` (one channel), `surface`, `names` (look-ups),
//! `start` (everything together), `system` (signals and systemd).

pub mod names;
pub mod start;
pub mod supervise;
mod surface;
pub mod system;
pub mod wiring;
