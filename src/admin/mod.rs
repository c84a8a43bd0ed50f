//! What operators can ask of a running daemon: status and reads, over a Unix socket.
//!
//! Reading order: `health`, `status`, `protocol`, `server`, `client`.

pub mod health;
