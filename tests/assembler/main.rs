//! What a model is sent in the default profile, from messages that went the whole way: intake, durable
//! store, a claimed run, its prompt.

#![allow(clippy::unwrap_used)]

mod explain;
mod golden;
mod harness;
mod hostile;
mod options;
mod recalling;
