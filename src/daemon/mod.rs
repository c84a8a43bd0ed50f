//! The daemon: wiring, supervision, shutdown. Nothing is decided here that a room below decides.
//!
//! Reading order: `start` (everything together), `core` (the workers), `time` (whose clock counts),
//! `loops` (what ends with the daemon), `shared` (what channels share),
//! `binding` (a channel that knows who it is), `supervise` (one channel), `surface`, `names` (look-ups),
//! `wiring` (configuration to rooms), `listeners`, `housekeeping`, `aging` (what may go for its age), `system` (signals and systemd), `confinement`
//! (what the daemon gives up of the file system).

mod aging;
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
