//! The daemon: wiring, supervision, shutdown. Nothing is decided here that a room below decides.
//!
//! Reading order: `wiring` (configuration to rooms), `supervise` (one channel), `names` (look-ups),
//! `start` (everything together), `system` (signals and systemd).

pub mod names;
pub mod start;
pub mod supervise;
pub mod system;
pub mod wiring;
