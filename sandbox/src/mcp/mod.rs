//! A loopback server of tools (Model Context Protocol), over standard streams and HTTP, in both eras of the protocol:
//! with a handshake (to 2025-11-25), and stateless (2026-07-28). Strict where the specification is, and faulty on
//! demand.
//!
//! Reading order: `world` (what it offers and answers), then `http` and `stdio`.

mod http;
mod stdio;
mod world;

pub use http::McpServer;
pub use stdio::serve_stdio;
pub use world::{Era, McpCallFault, McpWorld};
