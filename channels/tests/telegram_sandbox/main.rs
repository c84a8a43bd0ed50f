//! The Telegram adapter against the loopback Telegram, over real sockets.

#![cfg(feature = "telegram")]
#![allow(clippy::unwrap_used)]

mod poll;
mod probe;
mod recorder;
mod scripted;
mod send;
mod webhook;
