//! A loopback Slack, a loopback Telegram and a scripted model server.
//!
//! They speak the real wire protocols over real sockets, refuse what the platforms refuse, and fail
//! on demand. Written from the protocol sheets; shares no code with any adapter, because a shared
//! bug would hide. Reading order: `wire`, `slack`, `telegram`, `model`, `control`.

pub mod model;
mod probe;
pub mod selfcheck;
pub mod slack;
mod socket;
pub mod telegram;
pub mod wire;
