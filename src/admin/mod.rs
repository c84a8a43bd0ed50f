//! What operators can ask: status, reads, and decisions on stuck work.
//!
//! The same operations run inside the daemon (asked over a Unix socket) and, without a daemon, in
//! the command itself on a store it opens. Reading order: `health`, `view`, `status`, `explain`,
//! `told`, `import`, `operations` (a file per noun), `socket`.

mod explain;
pub mod health;
pub mod import;
pub mod operations;
pub mod socket;
pub mod status;
pub mod told;
pub mod view;
