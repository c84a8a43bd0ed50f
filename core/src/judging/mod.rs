//! Whether a message is stored, whom it addresses, and what else follows from it. Pure: facts in, a verdict out.
//!
//! Reading order: `policy`, `speech`, `addressees`, `stop`, `access`, `commands`, `asked_model`, `judge`, `request`,
//! `origin`.

pub mod access;
pub mod addressees;
mod asked_model;
pub mod commands;
pub mod judge;
pub mod origin;
pub mod policy;
pub mod request;
pub mod speech;
pub mod stop;
#[cfg(any(test, feature = "testing"))]
#[allow(clippy::unwrap_used)]
pub mod testing;
