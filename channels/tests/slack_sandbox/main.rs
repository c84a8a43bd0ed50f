//! The Slack adapter against the loopback Slack, over real sockets.

#![cfg(feature = "slack")]
#![allow(clippy::unwrap_used)]

mod asides;
mod changing;
mod hearing;
mod posting;
mod sockets;
mod stage;
