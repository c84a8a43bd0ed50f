//! The daemon: wiring, supervision, shutdown. It makes no decision that belongs to a lower module.
//!
//! Reading order: `start` (everything together), `core` (the workers), `time` (whose clock counts), `loops` (what
//! ends with the daemon), `shared` (what channels share), `binding` (an identified channel), `supervise` (one
//! channel), `surface`, `names` (look-ups), `wiring` (configuration to rooms), `listeners`, `housekeeping`, `system`
//! (signals and systemd), `confinement` (restricts access to the file system).

mod api_channel;
mod binding;
pub mod confinement;
pub mod core;
mod housekeeping;
mod listeners;
pub mod loops;
pub mod names;
mod shared;
pub mod start;
pub mod supervise;
mod surface;
pub mod system;
pub mod time;
pub mod wiring;
